"""A pretrained model taught a task: supervised training on solutions by its careless teacher, as the small policies are warmed up.

    smollm2:arithmetic:redundant=0.4     SmolLM2, taught the solutions of this task: made once, and cached

As it comes it seldom writes the steps that rewards are about. Taught, it starts where a small policy would, and is a real language
model: what holds for the one can be tried on the other.
"""

from __future__ import annotations

from pathlib import Path

from rewardlab import registry
from rewardlab.core import Task
from rewardlab.errors import RewardlabError
from rewardlab.models import embedded, smollm2
from rewardlab.models.fingerprint import fingerprint
from rewardlab.models.start import keep
from rewardlab.models.warmup import Pupil, teach
from rewardlab.policies.llama.policy import LlamaPolicy
from rewardlab.util.files import cached

STEPS = 60
"""Batches of the first round."""
PUPIL = Pupil("SmolLM2", rate=3e-4, most=420)
"""All weights are taught, at a rate that does not undo what they know, in three rounds at most: a batch takes seconds."""
BASES = {"smollm2": smollm2.checkpoint}
"""Pretrained models that write text, and what unpacks them into a folder."""
MAKERS = ("models/taught.py", *embedded.MAKERS)


def checkpoint(kind: str, of: str) -> Path:
    """The folder of a pretrained model (smollm2) that was taught a task, as on the command line; teaches it if it is not there.

    On a GPU if there is one; on two cores it takes some minutes. Raises RewardlabError for a model that writes no text, and for a
    task that has no teacher.
    """
    task = teachable(kind, of)
    made_by = fingerprint((task.name,), MAKERS, task.source)
    return cached(f"{kind}-{task.name}-{made_by}", lambda folder: _make(folder, kind, task))


def teachable(kind: str, of: str) -> Task:
    """The task that a model is to be taught, endless."""
    if kind not in BASES:
        raise RewardlabError(f"{kind}:{of}: {kind} writes no text, so that it is taught no task: write smollm2:{of}")
    if not of:
        raise RewardlabError("smollm2: with which task? write smollm2:TASK, or smollm2 alone")
    task = registry.endless(registry.task(of))
    if task.warmed_as is not None:
        # what the small policy of this task is taught
        task = registry.endless(registry.task(task.warmed_as))
    if task.demonstrate is None or task.model != "embedded":
        raise RewardlabError(
            f"smollm2:{of}: the task {of} has no teacher who writes solutions that a model could be taught. Train it on "
            "solutions of yours: rewardlab train sft --task FILE --model smollm2"
        )
    return task


def _make(folder: Path, kind: str, task: Task) -> None:
    policy = LlamaPolicy.load(BASES[kind](), "auto", "auto")
    found = teach(policy, embedded.Demonstrations(task), STEPS, task, pupil=PUPIL)
    policy.save(folder)
    if found is not None:
        keep(folder, task, found)
