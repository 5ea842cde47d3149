"""How well labels of steps, estimated for solutions of the policy, locate the first error."""

from __future__ import annotations

from collections.abc import Sequence

from rewardlab.core import Problem, Rollout, Run, Score, measure
from rewardlab.core.domain import PositiveShare
from rewardlab.errors import RewardlabError
from rewardlab.evals.judges import first_error_accuracies
from rewardlab.rewards.reward import Reward


@measure
def first_errors_labelled(
    problems: Sequence[Problem], run: Run, *, truth: Reward, annotators: dict[str, Reward], rollout: Rollout,
    threshold: PositiveShare = 0.5,
) -> dict[str, float]:  # fmt: skip
    """ProcessBench's F1 (Zheng et al. 2024, arXiv:2412.06559) of several annotators' labels for the same solutions.

    truth: a reward of steps, 0 or less for a wrong one.  A label below `threshold` says that a step is wrong. For each annotator X:
    located.X, the share of flawed solutions whose first error is the first step said to be wrong; cleared.X, that of right ones in
    which no step is; f1.X, their harmonic mean. A step without a label counts as missed in both. flawed: share of the solutions.
    Solutions of which the truth says nothing are left out.
    """
    groups = rollout(list(problems), run)
    true = [dict(s.steps) for row in truth(groups, run) for s in row]
    gold = [[paid > 0 for paid in steps.values()] for steps in true if steps]
    if not gold:
        raise RewardlabError(f"first_errors_labelled: {truth} speaks of no step of the replies to {len(problems)} problems")
    found = {"n": float(len(gold)), "flawed": sum(not all(steps) for steps in gold) / len(gold)}
    for name, annotator in annotators.items():
        scores = [s for row in annotator(groups, run) for s in row]
        said = [_said(score, steps, threshold) for score, steps in zip(scores, true, strict=True) if steps]
        cleared, located = first_error_accuracies(gold, said)
        f1 = 2 * cleared * located / (cleared + located) if cleared + located else 0.0
        found |= {f"f1.{name}": f1, f"located.{name}": located, f"cleared.{name}": cleared}
    return found


def _said(score: Score, steps: dict[int, float], threshold: float) -> list[bool]:
    labels = dict(score.steps) if not score.missing else {}
    return [labels[at] >= threshold for at in steps if at in labels]
