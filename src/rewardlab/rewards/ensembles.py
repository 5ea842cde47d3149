"""Several annotators of steps, put to the vote."""

from __future__ import annotations

from rewardlab.core import Group, Run, Score, Scores, Trajectory
from rewardlab.core.domain import Share
from rewardlab.errors import RewardlabError
from rewardlab.rewards.noise import FRESH, quantile, step_errors
from rewardlab.rewards.reward import Reward, reward


@reward(over="groups")
def voted_steps(groups: list[Group], run: Run, *, of: tuple[Reward, ...], reference: bool = False, hard: bool = True) -> Scores:
    """1 at the end of each step that most annotators find right, 0 at those that most find wrong; no label where half do.

    of: step rewards, each with a vote on the steps that it speaks of: right where it pays at least 1/2.  reference: an annotator
    has no vote on a wrong reply in which it finds no step wrong: the task's verifier, which knows the answer, says that one is.
    hard: False: the label is the share of votes for right.  No verdict where nobody votes.
    """
    if not of:
        raise RewardlabError("voted_steps needs annotators: of=(judged_steps(...), tool_steps(), ...)")
    tables = [part(groups, run) for part in of]
    failed = [[s.value is not None and s.value < 1.0 for s in row] for row in run.verdicts(groups)] if reference else None
    return [
        [_voted([table[g][i] for table in tables], failed is not None and failed[g][i], hard) for i in range(len(group))]
        for g, group in enumerate(groups)
    ]


def _voted(said: list[Score], flawed: bool, hard: bool) -> Score:
    ballots = [{at: x >= 0.5 for at, x in s.steps} for s in said if not s.missing and s.steps]
    ballots = [ballot for ballot in ballots if not (flawed and all(ballot.values()))]
    votes: dict[int, list[bool]] = {}
    for ballot in ballots:
        for at, right in ballot.items():
            votes.setdefault(at, []).append(right)
    shares = {at: sum(row) / len(row) for at, row in sorted(votes.items())}
    labels = [(at, float(x > 0.5) if hard else x) for at, x in shares.items() if not hard or x != 0.5]
    return Score(steps=labels) if labels else Score(None, why="no annotator has a vote")


@reward(over="groups")
def noisy_steps(
    groups: list[Group], run: Run, *, of: Reward, miss: Share = 0.2, alarm: Share = 0.1, annotator: str = "a",
    fresh: Share = FRESH,
) -> Scores:  # fmt: skip
    """An annotator of known quality: 0 at a step that the step reward `of` pays nothing, except for a share `miss`, and 1 at the
    others, except for a share `alarm`.

    The noise belongs to annotator, problem, reply and step: the same one errs alike whenever it is asked, others by themselves.
    fresh: share of its variance that is new at each step: one who overlooks a step is likely to overlook the next wrong one.
    """
    return [[_noisy(t, s, miss, alarm, annotator, fresh, run.seed) for t, s in zip(*rows, strict=True)]
            for rows in zip(groups, of(groups, run), strict=True)]  # fmt: skip


def _noisy(t: Trajectory, truth: Score, miss: float, alarm: float, annotator: str, fresh: float, seed: int) -> Score:
    if truth.missing or not truth.steps:
        return Score(None, why=truth.why or "no steps were judged")
    ends = [at for at, _ in truth.steps]
    noise = {right: step_errors(("noisy_steps", seed, annotator, right), t, ends, fresh) for right in (True, False)}

    def errs(k: int, right: bool) -> bool:
        return quantile(noise[right][k]) < (alarm if right else miss)

    return Score(steps=[(at, float((paid > 0) != errs(k, paid > 0))) for k, (at, paid) in enumerate(truth.steps)])
