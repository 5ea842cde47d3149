"""Words of a task that the small policy which all tasks share was never taught."""

from __future__ import annotations

from rewardlab.core import Task
from rewardlab.tasks.sources import Listed

SAMPLE = 100
"""Problems of either side whose words are compared with those that the embedded policy was taught."""


def tell_untaught(name: str, task: Task) -> None:
    """Warn of words of the task that the small policy of this name was never taught, if it is the one that tasks share."""
    # without demonstrations, its own or those of a task like it, it has no policy of its own: it gets one that was taught others
    if name == "embedded" and task.demonstrate is None and task.warmed_as is None:
        # imported here, since it imports the trainer of the policy
        from rewardlab.models.vocabulary import warn_of_untaught

        train = task.train.problems[:SAMPLE] if isinstance(task.train, Listed) else ()
        warn_of_untaught([*task.test[:SAMPLE], *train])
