"""Rewards for brevity, and lengths for operators."""

from __future__ import annotations

from rewardlab.core import Group, Run, Score, Scores, Trajectory
from rewardlab.rewards.reward import reward
from rewardlab.rewards.task import correct
from rewardlab.settings.domain import NonNegativeInt, PositiveFloat, PositiveInt
from rewardlab.text.rationale import rationale
from rewardlab.text.words import words_and_signs


@reward
def length_penalty(trajectory: Trajectory, *, per_token: float = 0.001) -> float:
    """-`per_token` times the number of sampled tokens: 0 or negative, so it is added."""
    return -per_token * float(trajectory.mask.sum())


@reward
def tokens(trajectory: Trajectory) -> float:
    """The number of sampled tokens: an operand for operators, since by itself it rewards length."""
    return float(trajectory.mask.sum())


@reward
def words(trajectory: Trajectory) -> float:
    """The number of words and runs of signs in a reply: an operand for operators, since by itself it rewards length."""
    return float(len(words_and_signs(trajectory.reply)))


@reward
def thinking_between(trajectory: Trajectory, *, shortest: NonNegativeInt = 0, longest: PositiveInt = 2048) -> Score:
    """1 where the text before the answer is within bounds, in words and runs of signs, else 0: a gate for other rewards."""
    length = len(words_and_signs(rationale(trajectory.reply)))
    return Score(float(shortest <= length <= longest), why=f"{length} words and signs before the answer")


@reward
def cut_off(trajectory: Trajectory) -> float:
    """1 where a reply was truncated at the length limit, else 0."""
    return float(trajectory.stop == "length")


@reward
def short_penalty(trajectory: Trajectory, *, scale: PositiveFloat = 20.0) -> float:
    """-`scale` divided by the number of sampled tokens: largest for short replies, and towards 0 as they grow."""
    # a reply without any token loses as much as one of a single token
    return -scale / max(1.0, float(trajectory.mask.sum()))


@reward(over="groups", relative=True)
def brevity_among_right(groups: list[Group], run: Run) -> Scores:
    """(longest - length) / (longest - shortest) for right replies, over the sampled tokens of the group's right ones: 1 for the
    shortest, 0 for the longest, 1 where all have one length. 0 for wrong replies; no verdict where the task has none.
    """
    return [_brevities(group, row) for group, row in zip(groups, correct()(groups, run), strict=True)]


def _brevities(group: Group, verdicts: list[Score]) -> list[Score]:
    lengths = [int(t.mask.sum()) for t in group]
    right = [n for n, v in zip(lengths, verdicts, strict=True) if v.value is not None and v.value >= 1.0]
    spread = max(right) - min(right) if right else 0
    made = []
    for n, verdict in zip(lengths, verdicts, strict=True):
        if verdict.value is None or verdict.value < 1.0:
            made.append(Score(None if verdict.value is None else 0.0, why=verdict.why))
        else:
            made.append(
                Score((max(right) - n) / spread if spread else 1.0, why=f"{n} tokens; right ones have {min(right)} to {max(right)}")
            )
    return made
