"""A reward that is worth more on what is still done badly: on answers of a kind that are seldom right, and on hard problems."""

from __future__ import annotations

from statistics import fmean

from rewardlab.core import Group, Run, Score, Scores
from rewardlab.core.domain import NonNegativeFloat, PositiveFloat, PositiveShare
from rewardlab.errors import RewardlabError
from rewardlab.rewards.reward import Reward, reward

MEMORY = "harder_pays_more.accuracy"
KINDS = 64
"""Different gold answers that are told apart: they are labels, not texts."""


@reward(over="groups")
def difficulty_weighting(
    groups: list[Group], run: Run, *, of: Reward, momentum: PositiveShare = 0.1, lowest: PositiveFloat = 0.5,
    highest: PositiveFloat = 2.0, sample: NonNegativeFloat = 1.0,
) -> Scores:  # fmt: skip
    """The reward `of` times a factor of the problem's gold answer, a label, and a factor of its group:

        label: clip((1 - a_l) / mean over labels of (1 - a), lowest, highest)       sample: 1 + sample (1 - p)

    a_l: the accuracy on problems with that label, a running mean over steps that begins with the first.  p: the share of the group
    that is right. Replies without a verdict by the task's verifier count in neither, and get none; steps are paid as outcomes.
    """
    verdicts = run.verdicts(groups)
    accuracy = _accuracy(groups, verdicts, run, momentum)
    missed = fmean(1 - a for a in accuracy.values()) if accuracy else 0.0
    factors = {label: min(highest, max(lowest, (1 - a) / missed)) if missed else 1.0 for label, a in accuracy.items()}
    for label, factor in factors.items():
        run.log(f"factor/{label}", factor)
    scores = []
    for group, row, verdict in zip(groups, of(groups, run), verdicts, strict=True):
        hard = 1 + sample * (1 - fmean(right)) if (right := _right(verdict)) else 1.0
        scores.append([_scaled(s, v, factors.get(_label(t), 1.0) * hard) for t, s, v in zip(group, row, verdict, strict=True)])
    return scores


def _scaled(score: Score, verdict: Score, factor: float) -> Score:
    if score.total is None or verdict.value is None:
        return Score(None, why=score.why or verdict.why)
    return Score(factor * score.total, why=f"{score.total:.3g} times {factor:.3g}")


def _right(row: list[Score]) -> list[bool]:
    return [s.value >= 1.0 for s in row if s.value is not None]


def _label(t) -> str:
    return str(t.problem.answer)


def _accuracy(groups: list[Group], verdicts: Scores, run: Run, momentum: float) -> dict[str, float]:
    """By label, up to this step. run.memory holds [step, before it, after it], so that a step may be scored again."""
    seen: dict[str, list[bool]] = {}
    for group, row in zip(groups, verdicts, strict=True):
        for t, s in zip(group, row, strict=True):
            if s.value is not None:
                seen.setdefault(_label(t), []).append(s.value >= 1.0)
    memory = run.memory.setdefault(MEMORY, {})
    if len(memory.keys() | seen.keys()) > KINDS:
        raise RewardlabError(
            f"harder_pays_more: over {KINDS} different answers, such as {next(iter(seen))[:40]!r}; it compares labels, of which "
            "there are few"
        )
    for label, right in seen.items():
        step, before, after = memory.get(label, (None, None, None))
        before = before if step == run.step else after
        share = fmean(right)
        memory[label] = [run.step, before, share if before is None else (1 - momentum) * before + momentum * share]
    return {label: after for label, (_, _, after) in memory.items()}
