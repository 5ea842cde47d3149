"""Monte-Carlo step values: how often the policy reaches a right answer from each step."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from rewardlab.core import Group, Run, Sampling, Score, Scores, Term, Trajectory, uniform_of
from rewardlab.errors import RewardlabError
from rewardlab.rewards.reward import reward
from rewardlab.settings.domain import NonNegativeFloat, PositiveInt, Share
from rewardlab.util.counted import count

TERM = "monte_carlo_steps"
COMPLETIONS, PREFIX_TOKENS = "completions", "prefix_tokens"
"""The metrics in which the cost is logged: continuations that were sampled (of a judge: replies), and the tokens of the prefixes
that they go on from (the questions), each counted once, since all continuations of one are computed from one reading of it."""


@reward(over="groups")
def monte_carlo_steps(groups: list[Group], run: Run, *, n: PositiveInt = 4, temperature: NonNegativeFloat = 1.0) -> Scores:
    """At the end of each step, the share of right ones among n sampled continuations; at the last step, whether the reply is right.

    Labels for a process reward model where nobody can check steps: Wang et al. 2024, arXiv:2312.08935 (Math-Shepherd, soft
    estimation). The rollout marks the steps; continuations are as long as replies may be, and equal prefixes are continued once.
    A reply without a verdict gets none, and a step whose continuation does not fit the context gets no label.
    """
    rows, continued = rows_in_steps(groups, TERM), Continuations(run, n, temperature, TERM)
    starts = [(i, at) for i, t in enumerate(rows) for at in t.steps[:-1] if continued.fits(at)]
    shares = dict(zip(starts, continued.shares([(rows[i], at) for i, at in starts]), strict=True))
    ended = [s.value for row in run.verdicts(groups) for s in row]
    scores = iter([_score(t, i, shares, value) for i, (t, value) in enumerate(zip(rows, ended, strict=True))])
    return [[next(scores) for _ in group] for group in groups]


@reward(over="groups")
def binary_search_steps(groups: list[Group], run: Run, *, n: PositiveInt = 4, temperature: NonNegativeFloat = 1.0) -> Scores:
    """1 at the end of each step before the first error of a wrong reply, 0 from the error on; 1 at all steps of a right reply.

    The first error is the first step after which none of n sampled continuations is right: Luo et al. 2024, arXiv:2406.06592
    (OmegaPRM). It is found by bisection, of all replies at once: of m steps, log2(m) are continued, where `monte_carlo_steps`
    continues m - 1. That from the prompt itself a right answer can be reached, and from a step after the error none, is taken for
    granted; a right reply is evidence enough for its own steps, though it may be right by luck. No verdict for a reply without
    one, and where no continuation of a step that is asked for has one; no label where the context does not tell.
    """
    rows, continued = rows_in_steps(groups, "binary_search_steps"), Continuations(run, n, temperature, "binary_search_steps")
    ended = [s.value for row in run.verdicts(groups) for s in row]
    searches = [Bisection.of(t, continued) for t in rows]
    wrong = [search for search, value in zip(searches, ended, strict=True) if value is not None and value < 1.0]
    while open_ := [search for search in wrong if not search.over]:
        shares = continued.shares([(search.reply, search.reply.steps[search.asked]) for search in open_])
        for search, share in zip(open_, shares, strict=True):
            search.narrow(share)
    scores = iter([search.score(value) for search, value in zip(searches, ended, strict=True)])
    return [[next(scores) for _ in group] for group in groups]


class Continuations:
    """The shares of right ones among n continuations of prefixes; those of equal prefixes are sampled once.

    counts: says of a continuation, and the position that it goes on after, whether it counts if it is right. Raises RewardlabError
    where the run has no verifier; `of` names the reward in the message.
    """

    def __init__(
        self, run: Run, n: int, temperature: float, of: str, counts: Callable[[Trajectory, int], bool] = lambda t, at: True
    ):  # fmt: skip
        if run.verify is None:
            raise RewardlabError(f"{of} needs the task's verifier, and this run has none: name a task")
        self.run, self.n, self.sampling, self.counts = run, n, Sampling(run.max_new, temperature), counts
        self._known: dict[tuple[str, str, bytes], float | None] = {}

    def fits(self, at: int) -> bool:
        """Whether the context holds the prefix that ends at this position and a whole reply after it."""
        return at + 1 + self.run.max_new <= self.run.policy.context

    def shares(self, places: Sequence[tuple[Trajectory, int]]) -> list[float | None]:
        """For each reply, gone on from up to and including a position; None where no continuation has a verdict."""
        # two rows with the same prompt may still have different answers
        keys = [(t.problem.key, repr(t.problem.answer), t.ids[: at + 1].tobytes()) for t, at in places]
        new = {key: place for key, place in zip(keys, places, strict=True) if key not in self._known}
        self._known |= dict(zip(new, self._sampled(list(new.values())), strict=True))
        return [self._known[key] for key in keys]

    def _sampled(self, places: Sequence[tuple[Trajectory, int]]) -> list[float | None]:
        if not places:
            return []
        run, n = self.run, self.n
        begun = [t.cut(at + 1, run.policy.decode) for t, at in places]
        done = run.policy.extend([t for t in begun for _ in range(n)], self.sampling, run.rng("monte_carlo"))
        count_cost(run, len(done), sum(map(len, begun)))
        groups = [done[k : k + n] for k in range(0, len(done), n)]
        verdicts = run.verify(groups, run)
        return [self._share(row, at, group) for row, (_, at), group in zip(verdicts, places, groups, strict=True)]

    def _share(self, scores: list[Score], at: int, done: Group) -> float | None:
        idle = [s.value is not None and s.value >= 1.0 and not self.counts(t, at) for s, t in zip(scores, done, strict=True)]
        return _share([Score(0.0) if skip else s for s, skip in zip(scores, idle, strict=True)])


@dataclass
class Bisection:
    """The search for the first step of a wrong reply after which no continuation is right.

    steps: the steps that may be asked for, and the last, which is known to be wrong.  low, high: places in `steps` of the last one
    known to be right (-1: the prompt), and of the first known to be wrong.  lost: a step had no verdict.
    """

    reply: Trajectory
    steps: list[int]
    low: int = -1
    high: int = field(init=False)
    lost: bool = False

    def __post_init__(self) -> None:
        self.high = len(self.steps) - 1

    @classmethod
    def of(cls, reply: Trajectory, continued: Continuations) -> Bisection:
        *before, _ = reply.steps
        return cls(reply, [*(k for k, at in enumerate(before) if continued.fits(at)), len(before)])

    @property
    def over(self) -> bool:
        return self.lost or self.high - self.low <= 1

    @property
    def asked(self) -> int:
        """The step in the middle of those that are open."""
        return self.steps[(self.low + self.high) // 2]

    def narrow(self, share: float | None) -> None:
        middle = (self.low + self.high) // 2
        if share is None:
            self.lost = True
        elif share > 0:
            self.low = middle
        else:
            self.high = middle

    def score(self, value: float | None) -> Score:
        """The labels, for a reply of this value."""
        if value is None or self.lost:
            return Score(None, why="the reply has no verdict" if value is None else "no continuation of a step has a verdict")
        if value >= 1.0:
            return Score(steps=((at, 1.0) for at in self.reply.steps))
        right = self.steps[self.low] if self.low >= 0 else -1
        labels = ((k, at, 1.0 if k <= right else 0.0) for k, at in enumerate(self.reply.steps))
        # steps between the two could not be continued
        known = ((at, label) for k, at, label in labels if k <= right or k >= self.steps[self.high])
        return Score(steps=known, why=f"step {self.steps[self.high] + 1} of {len(self.reply.steps)} is the first wrong one")


def count_cost(run: Run, completions: int, prefix_tokens: int) -> None:
    """Add to what the annotators of this step have cost so far."""
    for name, value in ((COMPLETIONS, completions), (PREFIX_TOKENS, prefix_tokens)):
        count(run, name, value)


def rows_in_steps(groups: list[Group], of: str) -> list[Trajectory]:
    """All rollouts, in a row. Raises RewardlabError unless their steps are marked; `of` names the reward in the message."""
    rows = [t for group in groups for t in group]
    if not all(t.steps for t in rows):
        raise RewardlabError(f'{of} needs the positions where steps end: set steps="newline" in the rollout')
    return rows


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
    """The pass rate of the problem, from n further samples, whatever the reply; no verdict where no sample has one.

    astray: of this share of the problems, always the same ones, it says 1 minus that: what a value model is wrong about.
    """
    problems = [group[0].problem for group in groups if group]
    prompts = run.policy.read([Trajectory(p) for p in problems], [p.prompt for p in problems])
    done = run.policy.extend([t for t in prompts for _ in range(n)], Sampling(run.max_new), run.rng("monte_carlo"))
    shares = [_share(row) for row in run.verify([done[k : k + n] for k in range(0, len(done), n)], run)]
    lost = [uniform_of("astray", run.seed, p.key) < astray for p in problems]
    said = iter([share if share is None or not wrong else 1 - share for share, wrong in zip(shares, lost, strict=True)])
    return [[Score(share) for _ in group] for group in groups if group for share in [next(said)]]
