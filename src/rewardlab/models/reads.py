"""What a reward model of a run was taught to read besides prompt and reply (`Learner.reads`), and the refusal to show it less."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from rewardlab import registry
from rewardlab.core import Message, Problem
from rewardlab.core.recipe import PRINCIPLES, REFERENCE
from rewardlab.errors import RewardlabError
from rewardlab.models.checkpoint import Checkpoint
from rewardlab.runs.named import config_of_run
from rewardlab.text.principles import AFTER, question_about, with_principles
from rewardlab.util.reads import stated_reads

CRITIC = "critic"
PLAIN = "plain"
"""The setting `reads` of whoever writes prompts and replies as the model was taught to read them."""


def reads_of(found: Checkpoint) -> str:
    """What lies beside the weights; of a run that was saved before anything did, what its method says today."""
    folder = found.adapter or found.folder
    stated = stated_reads(folder)
    return _of_method(folder.parent) if stated is None else stated


def _of_method(run: Path) -> str:
    document = config_of_run(run) or {}
    for name in str(document.get("method") or "").split("+"):
        # a recipe of the user's own, or a method that is gone
        with suppress(RewardlabError):
            if reads := next((learner.reads for learner in registry.build(name).also if learner.reads), ""):
                # such runs are older than the question after the reply, and were told principles in the prompt
                return PRINCIPLES if reads == AFTER else reads
    return ""


def beside(found: Checkpoint) -> str:
    """What to use in place of a run's policy: the reward models that learnt beside it, where there are any."""
    run = (found.adapter or found.folder).parent
    document = config_of_run(run)
    learners = document["recipe"]["also"] if document else ()
    # a critic has such a loss too, and says what is to come from a place on, not how good a reply is
    names = [x["name"] for x in learners if x["recipe"]["update"].get("loss_kind") == "scorer" and x["name"] != CRITIC]
    return f"; its run also trained {', '.join(names)}: rewardlab export {run} DIR --model {names[0]}, then DIR" if names else ""


def words(reads: str) -> str:
    return "principles at the end of the prompt" if reads == PRINCIPLES else reads


def check_reads(place: str, reads: str, said: str, principles: Sequence[str]) -> None:
    """Raise RewardlabError where a reward model would be shown less, or other things, than it was taught to read.

    said: the setting `reads`, "" or "plain".  principles: that it is told.
    """
    if said not in ("", PLAIN):
        raise RewardlabError(
            f"{place}: reads={said!r} is not known: {PLAIN} says that prompts and replies are written as the model was taught"
        )
    if reads == AFTER and (said or len(principles) > 1):
        why = f"reads={PLAIN} is not for it, as no prompt holds what comes after the reply" if said else f"not of {len(principles)}"
        raise RewardlabError(f"{place} is asked after each reply of one principle, '{place}?principle=Be brief.': {why}")
    if principles and (said or reads not in (PRINCIPLES, AFTER)):
        why = f"reads={PLAIN} says that prompts name them" if said else f"it reads {words(reads) or 'prompt and reply alone'}"
        raise RewardlabError(f"{place} takes no principle: {why}")
    # a reference comes with each row, so that whoever scores one without is told there (`RewardModel`)
    if reads and reads != REFERENCE and not said and not principles:
        raise RewardlabError(
            f"{place} is a reward model that reads {words(reads)}: of prompt and reply alone its score says nothing. "
            + _remedy(place, reads)
        )


def _remedy(place: str, reads: str) -> str:
    if reads == AFTER:
        return f"Say by what replies are judged, '{place}?principle=Be brief.'"
    if reads == PRINCIPLES:
        return f"Say by what replies are judged, '{place}?principle=Be brief.' (several: &principle=Be true.)"
    already = f"where prompts and replies are written so already, {place}?reads={PLAIN}"
    if config_of_run(place) is None:
        return (
            "This export holds the scorer alone: the run that it is of writes that first (`rewardlab eval RUN`), and an export "
            f"made of it now holds what writes it; {already}"
        )
    return (
        f"Measure it with `rewardlab eval {place}`, which writes that first, or use an export, which holds what writes it "
        f"(`rewardlab export {place} DIR`); {already}"
    )


def told(prompt: Sequence[Message], principles: Sequence[str]) -> tuple[Message, ...]:
    """The prompt with these principles, as methods that teach them there write it."""
    problem = Problem(tuple(prompt))
    return problem.reworded(with_principles(problem.question, principles)).prompt if principles else problem.prompt


def question_after(found: Checkpoint, about: str) -> list[Message]:
    """What the user asks after a reply. Raises RewardlabError where no principle is named."""
    if not about:
        raise RewardlabError(
            f"the reward model {found.folder} is asked after each reply about a principle, and there is none: "
            f"'{found.folder}?principle=Be brief.'"
        )
    return [Message("user", question_about(about))]
