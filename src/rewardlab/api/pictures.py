"""Whether a model sees the pictures that prompts show."""

from __future__ import annotations

from typing import Any

from rewardlab.api.checking import place_of
from rewardlab.core import Task
from rewardlab.errors import RewardlabError
from rewardlab.policies.hf.sight import FAMILIES
from rewardlab.runs.config import RunConfig
from rewardlab.tasks.pictures import shows_pictures
from rewardlab.tasks.sources import Listed


def check_sees(task: Task, policy: Any, config: RunConfig) -> None:
    """Raise RewardlabError, with the place, for a prompt that shows a picture to a model that reads text alone, or through TRL.

    Of problems that are made on demand the first ones are looked at.
    """
    sees = getattr(policy, "sees", False)
    if sees and config.engine != "trl":
        return
    train = task.train.problems if isinstance(task.train, Listed) else []
    # a task of ours shows pictures in all of its problems or in none
    test = task.test if isinstance(task.test, list) else task.test[:1]
    if (problem := next((p for p in (*train, *test) if shows_pictures(p)), None)) is None:
        return
    if sees:
        raise RewardlabError(
            f"{place_of(problem)}: the prompt shows a picture, and through TRL models are trained on text alone here: leave out "
            "--engine trl"
        )
    raise RewardlabError(
        f"{place_of(problem)}: the prompt shows a picture, and the model reads text alone: give --model a vision-language model "
        f"(of transformers {', '.join(FAMILIES)}; or a served one), or leave the pictures out by --image-column none"
    )
