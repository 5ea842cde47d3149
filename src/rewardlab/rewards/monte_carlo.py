"""The worth of each step, estimated by how often the policy reaches a right answer from there."""

from __future__ import annotations

from rewardlab.core import Group, Run, Sampling, Score, Scores, Term, Trajectory, uniform_of
from rewardlab.core.domain import NonNegativeFloat, PositiveInt, Share
from rewardlab.errors import RewardlabError

from .reward import reward

TERM = "monte_carlo_steps"


@reward(over="groups")
def monte_carlo_steps(groups: list[Group], run: Run, *, n: PositiveInt = 4, temperature: NonNegativeFloat = 1.0) -> Scores:
    """At the end of each step but the last, the share of n sampled continuations that are right; there, whether the reply is.

    Labels for a process reward model where nobody can check steps: Wang et al. 2024, arXiv:2312.08935 (Math-Shepherd, soft
    estimation). The rollout marks the steps; continuations are as long as replies may be. A reply without a verdict gets none.
    """
    if run.verify is None:
        raise RewardlabError("monte_carlo_steps needs the task's verifier, and this run has none: name a task")
    rows = [t for group in groups for t in group]
    if not all(t.steps for t in rows):
        raise RewardlabError('monte_carlo_steps needs the positions where steps end: set steps="newline" in the rollout')
    starts = [(i, at) for i, t in enumerate(rows) for at in t.steps[:-1] if at + 1 + run.max_new <= run.policy.context]
    begun = [_from(rows[i], at, run) for i, at in starts for _ in range(n)]
    done = run.policy.extend(begun, Sampling(run.max_new, temperature), run.rng("monte_carlo")) if begun else []
    continued = run.verify([done[k : k + n] for k in range(0, len(done), n)], run) if done else []
    shares = {start: _share(scores) for start, scores in zip(starts, continued, strict=True)}
    ended = [s.value for row in run.verdicts(groups) for s in row]
    scores = iter([_score(t, i, shares, value) for i, (t, value) in enumerate(zip(rows, ended, strict=True))])
    return [[next(scores) for _ in group] for group in groups]


def _from(t: Trajectory, at: int, run: Run) -> Trajectory:
    """The reply up to and including this position, to be continued."""
    return t.cut(at + 1, run.policy.decode)


def _share(scores: list[Score]) -> float | None:
    """The share of right continuations, of those that have a verdict."""
    verdicts = [s.value >= 1.0 for s in scores if s.value is not None]
    return sum(verdicts) / len(verdicts) if verdicts else None


def _score(t: Trajectory, i: int, shares: dict[tuple[int, int], float | None], value: float | None) -> Score:
    if value is None:
        return Score(terms={TERM: Term(None, ())}, missing=True, why="the reply has no verdict")
    steps = [(at, share) for at in t.steps[:-1] if (share := shares.get((i, at))) is not None]
    return Score(terms={TERM: Term(None, (*steps, (t.steps[-1], float(value >= 1.0))))})


@reward(over="groups")
def sampled_pass_rate(groups: list[Group], run: Run, *, n: PositiveInt = 16, astray: Share = 0.0) -> Scores:
    """The share of right replies among n further samples to the problem, whatever the reply; no verdict where none has one.

    astray: of this share of the problems, always the same ones, it says 1 minus that: what a value model is wrong about.
    """
    problems = [group[0].problem for group in groups if group]
    prompts = run.policy.read([Trajectory(p) for p in problems], [p.prompt for p in problems])
    done = run.policy.extend([t for t in prompts for _ in range(n)], Sampling(run.max_new), run.rng("monte_carlo"))
    shares = [_share(row) for row in run.verify([done[k : k + n] for k in range(0, len(done), n)], run)]
    lost = [uniform_of("astray", run.seed, p.key) < astray for p in problems]
    said = iter([share if share is None or not wrong else 1 - share for share, wrong in zip(shares, lost, strict=True)])
    return [[Score(share) for _ in group] for group in groups if group for share in [next(said)]]
