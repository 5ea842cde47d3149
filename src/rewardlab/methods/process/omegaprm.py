"""OmegaPRM: step labels by bisection in a search tree; search failures of high-value prefixes first.

    MC(s) = share of n continuations of prefix s that are right;     pool: wrong continuations r of states with MC(s) > 0
    search:  argmax over the pool of  alpha^(1 - MC(s)) beta^(len(r)/L) + c sqrt(sum N) / (1 + N(s))
    halve r: continue its middle step; MC > 0: the error is later; MC = 0: it is there or before;   all its states join the tree
    process reward model: cross-entropy to MC;     at test time the answer with the largest sum of its words wins

Of m steps log2(m) are continued and not m; what is continued is sampled once and used twice, as labels and as new candidates.
States before the error are right, those after it wrong, and a search asks for about as many of both.

Luo et al. 2024, arXiv:2406.06592: alpha = 1/2, beta = 0.9, L = 500, c = 1/8, n = 8, and soft labels with a pointwise loss are the
paper's; it has 100 searches to a question. No code was released; the order of things is that of open versions of it. (inferred):
that the last step of a wrong reply is known to be wrong, that lengths are tokens, and 4 searches. A reply votes with the product of
the model's chances of its steps, as a summary by others has it. The model learns beside the policy, which stays as it is; there it
learns once, from a file. Steps are lines.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Literal

from rewardlab.checks.claim import Check, Within
from rewardlab.core import Group, Learner, Problem, Recipe, Run, Sampling, Trajectory, Turn, Update, rollout, with_surprise
from rewardlab.data.columns import Data
from rewardlab.errors import RewardlabError
from rewardlab.evals.reranked import reranked
from rewardlab.evals.step_labels import label_quality
from rewardlab.objectives.labels import label_cross_entropy
from rewardlab.rewards.algebra import aggregate, threshold
from rewardlab.rewards.environment import found_labels
from rewardlab.rewards.model import step_score
from rewardlab.rewards.monte_carlo import monte_carlo_steps
from rewardlab.rewards.progress import soft_best
from rewardlab.rewards.steps import correct_steps
from rewardlab.rewards.task import correct
from rewardlab.rollouts.stepwise import started
from rewardlab.settings.domain import NonNegativeFloat, PositiveFloat, PositiveInt, PositiveShare
from rewardlab.text.splitters import mark
from rewardlab.util.counted import count

# ---- Search trees in which wrong replies are halved, again and again, until their first error is found ---------------


@dataclass
class State:
    """A prefix of replies: how many tokens it has, its share of right continuations, and how often it was searched from."""

    length: int
    share: float
    visits: int = 0


@dataclass
class Halving:
    """The search for the first error of a wrong reply that goes on from a state.

    ends: the steps after the state that may be asked for, and the last one, which is known to be wrong.  low, high: places in it.
    """

    reply: Trajectory
    ends: list[int]
    low: int = -1
    high: int = field(init=False)

    def __post_init__(self) -> None:
        self.high = len(self.ends) - 1

    @property
    def over(self) -> bool:
        return self.high - self.low <= 1

    @property
    def asked(self) -> int:
        return self.ends[(self.low + self.high) // 2]

    def narrow(self, share: float) -> None:
        middle = (self.low + self.high) // 2
        self.low, self.high = (middle, self.high) if share > 0 else (self.low, middle)


@dataclass
class Search:
    """The tree of one problem.

    pool: wrong replies, with the states that they were sampled from.  found: replies that were searched, with their labels.
    """

    prompt: Trajectory
    states: list[State] = field(default_factory=list)
    pool: list[tuple[State, Trajectory]] = field(default_factory=list)
    found: list[tuple[Trajectory, dict[int, float]]] = field(default_factory=list)
    first: Trajectory | None = None

    def add(self, length: int, replies: Sequence[Trajectory], right: Sequence[bool | None]) -> float:
        """A state with its continuations; its share of right ones. Wrong ones are worth a search only if others are right."""
        known = [ok for ok in right if ok is not None]
        state = State(length, sum(known) / len(known) if known else 0.0)
        self.states.append(state)
        self.first = self.first or replies[0]
        if state.share > 0:
            self.pool += [(state, t) for t, ok in zip(replies, right, strict=True) if ok is False]
        return state.share

    def next(self, alpha: float, beta: float, length: float, explore: float) -> tuple[State, Trajectory]:
        """Take the pair with the highest Q + U out of the pool, the first of equals, and count the visit."""
        visits = sum(s.visits for s in self.states)

        def worth(pair: tuple[State, Trajectory]) -> float:
            state, reply = pair
            q = alpha ** (1 - state.share) * beta ** ((len(reply) - state.length) / length)
            return q + explore * math.sqrt(visits) / (1 + state.visits)

        best = max(self.pool, key=worth)
        self.pool = [pair for pair in self.pool if pair is not best]
        best[0].visits += 1
        return best


# a problem without any wrong reply, or without a right one, has one row
@rollout(rows=lambda searches, **_: searches)
def error_bisection_tree(
    problems: list[Problem], run: Run, *, n: PositiveInt = 8, searches: PositiveInt = 4, alpha: PositiveShare = 0.5,
    beta: PositiveShare = 0.9, length: PositiveFloat = 500.0, explore: NonNegativeFloat = 0.125,
    splitter: Literal["newline", "paragraph", "tag", "sentence"] = "newline", temperature: NonNegativeFloat = 1.0,
) -> list[Group]:  # fmt: skip
    """Wrong replies, with labels for `found_labels`: MC, the share of right ones among n continuations of a step.

    Each search takes the wrong reply r, sampled from the prompt or from a later state s, with the highest

        Q + U = alpha^(1 - MC(s)) beta^(tokens of r after s / length) + explore sqrt(sum of all visits) / (1 + visits of s)

    and halves the rest of it until the first step is found after which no continuation is right. The continuations of all steps on
    the way are candidates too: a step that is mostly continued rightly, and then wrongly, is one whose errors are worth finding. A
    problem without candidates has one row that nothing is said of. A reply that does not fit the context is asked as far as it
    does.  Luo et al. 2024, arXiv:2406.06592 (OmegaPRM)
    """
    if run.verify is None:
        raise RewardlabError("error_bisection_tree needs the task's verifier, and this run has none: name a task")
    trees = [Search(t) for t in started(problems, run)]
    how = Sampling(run.max_new, temperature)
    sampled = _continued([(tree, tree.prompt) for tree in trees], n, how, splitter, run)
    for tree, (replies, right) in zip(trees, sampled, strict=True):
        tree.add(len(tree.prompt), replies, right)
    for _ in range(searches):
        _search([tree for tree in trees if tree.pool], n, how, splitter, run, (alpha, beta, length, explore))
    return [[_labelled(*pair, run) for pair in tree.found] or [t for t in [tree.first] if t] for tree in trees]


def _search(
    trees: list[Search], n: int, how: Sampling, steps: str, run: Run, weights: tuple[float, float, float, float]
) -> None:  # fmt: skip
    """One search in each tree, all at once."""
    halvings = []
    for tree in trees:
        state, reply = tree.next(*weights)
        ends = [at for at in reply.steps if at + 1 > state.length]
        room = run.policy.context - run.max_new
        halvings.append(Halving(reply, [*(at for at in ends[:-1] if at + 1 <= room), *ends[-1:]]))
        tree.found.append((reply, {}))
    while open_ := [(tree, x) for tree, x in zip(trees, halvings, strict=True) if not x.over]:
        begun = [(tree, x.reply.cut(x.asked + 1, run.policy.decode)) for tree, x in open_]
        for (tree, x), (replies, right) in zip(open_, _continued(begun, n, how, steps, run), strict=True):
            share = tree.add(x.asked + 1, replies, right)
            tree.found[-1][1][x.asked] = share
            x.narrow(share)


def _continued(
    places: Sequence[tuple[Search, Trajectory]], n: int, how: Sampling, steps: str, run: Run
) -> Iterator[tuple[Group, list[bool | None]]]:
    """n continuations of each prefix, and whether they are right; None without a verdict."""
    rows = [replace(t, path=()) for _, t in places for _ in range(n)]
    done = run.policy.extend(rows, how, run.rng("rollout"))
    # as the rewards that sample continuations count them
    for name, value in (("completions", len(done)), ("prefix_tokens", sum(len(t) for _, t in places))):
        count(run, name, value)
    done = [mark(t, steps, run.policy.pieces, run.policy.name) for t in done]
    groups = [done[i : i + n] for i in range(0, len(done), n)]
    verdicts = [[None if s.value is None else s.value >= 1.0 for s in row] for row in run.verify(groups, run)]
    return zip(groups, verdicts, strict=True)


def _labelled(reply: Trajectory, shares: dict[int, float], run: Run) -> Trajectory:
    """The reply, cut into turns after the labelled steps; the turn after each carries its share."""
    turns: list[Turn] = []
    position, pay = 0, None
    for turn in reply.turns:
        bounds = [0, *(at + 1 - position for at in sorted(shares) if position <= at < position + len(turn.ids)), len(turn.ids)]
        for a, b in pairwise(bounds):
            if a < b or len(bounds) == 2:
                own = turn.text if len(bounds) == 2 else run.policy.decode(turn.ids[a:b])
                logprobs, sampled = (None if x is None else x[a:b] for x in (turn.logprobs, turn.sampled))
                turns.append(replace(turn, ids=turn.ids[a:b], logprobs=logprobs, sampled=sampled, text=own, reward=pay))
                pay = shares.get(position + b - 1)
        position += len(turn.ids)
    return replace(reply, turns=tuple(turns))


# ---- the recipe ---------------------------------------------------------------------------------------------------------


def omegaprm(
    base: Recipe | None = None, *, n: int = 8, searches: int = 4, alpha: float = 0.5, beta: float = 0.9, length: float = 500.0,
    explore: float = 0.125, choose: int = 8, init: str = "value-head", surprise: bool = False, lr: float | None = None,
    epochs: int = 1,
) -> Recipe:  # fmt: skip
    """n, searches, alpha, beta, length, explore: of the tree (`error_bisection_tree`).  choose: replies that vote in measuring.
    init, lr, epochs: of the model (`Learner.init`).  surprise: it also reads the surprise of the policy (`Learner.init`), which
    no paper has.
    """
    base = base or Recipe(name="omegaprm", update=Update(problems=8))
    tree = error_bisection_tree(n=n, searches=searches, alpha=alpha, beta=beta, length=length, explore=explore)
    # labels are the model's own reward: the policy, which stays as it is, needs a verdict on every reply
    prm = Recipe(reward=found_labels(), objective=label_cross_entropy(), update=Update(lr=lr, epochs=epochs, loss_kind="scorer"))
    return base.but(
        rollout=tree,
        reward=base.reward or correct(),
        # the tree labels steps within replies: of their ends alone the model has learnt nothing
        measure=reranked(by=aggregate(threshold(step_score(model="prm"), at=0.0, soft=1.0), by="product"), n=choose),
        also=(*base.also, Learner("prm", with_surprise(init, surprise), prm)),
    )


fidelity = "core"
left_out = (
    "pieces of equal length, into which the paper cuts replies, however their lines fall; leaving out questions that are too easy "
    "or too hard for any search, by 32 samples before"
)
data = Data(answer="the gold answer")

check = Check(
    says="for about as many continuations, more first errors are found by halving than by continuing every step half as often",
    versus=None, task="arithmetic:biased=0.8,error=0.05,difficulty=[2,5]", measure="first_error.tree", direction="higher",
    margin=0.044, against="first_error.every",
    by=label_quality(
        truth=correct_steps(), rollout=error_bisection_tree(n=8, searches=2),
        annotators={"tree": soft_best(found_labels(), eta=100.0), "every": soft_best(monte_carlo_steps(n=4), eta=100.0)},
    ), problems=150, steps=1, fault=Within("first_error.every", high=0.9, says="first errors found by continuing every step"),
    judge=Within("auc.tree", low=0.6, says="right steps above wrong ones, by the labels of the tree"), learns=None,
    finding="halving finds 61% of the first errors with 3,560 continuations, continuing every step half as often 69% with 2,600: "
    "replies here have few steps, so that halving saves nothing. Its labels rank right steps above wrong ones in 91% of pairs, "
    "the others in 86%",
    version=2,
    replaces="a step was wrong below a share of 1/2 in the tree, and at a share of 0 by continuing every step; its gate could not "
    "fail, since all replies have a label at their end",
)  # fmt: skip
baseline = None
