"""RAP: plan by Monte-Carlo tree search, with the model as agent (proposing actions) and as world model (predicting outcomes).

    r = r1^alpha r2^(1 - alpha),    r1: how likely the agent is to act so,    r2: share of foreseen states that agree
    next node = argmax of M + w sqrt(ln N / n),    M: highest mean r of a path from there;    answer = path with the highest mean r

A chain of thought acts and believes its first guess of what comes of it. Several guesses of each state show where it is unsure, and
the one that most agree on is where it goes on from: a vote at every step, where self-consistency votes on the last.

Hao et al. 2023, arXiv:2305.14992, and the released code (Ber666/RAP, 53bcada, run_gsm8k.py, gsm8k_mcts.py, mcts.py): 10 iterations,
4 actions, 8 states, alpha = 0.5, w = 1, temperature 0.8, M of the best path. There actions of sums are judged by P("Yes") after a
question to the model, and those of plans by their likelihood, as here; `--scorer` puts another judge in its place. There states of
sums agree by their last numbers, and one without a number comes last; here by the whole state, numbers as numbers, and a step
without a state is as sure as the least sure of the steps beside it. There means are over one more than the steps; here over them.

The policy must write steps that are an action and its outcome, with a text between them (`action_end`: "7+5=" leads to "12"), as it
was taught to, or is shown in its context.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from rewardlab.checks.claim import Claim, Within
from rewardlab.core import Group, Problem, Recipe, Run, Score, Trajectory, Update, rollout, select
from rewardlab.data.columns import Data
from rewardlab.evals.passk import accuracy
from rewardlab.rewards.reward import Reward, reward
from rewardlab.rollouts.stepwise import Stepping, grown, marked, one_step, started, worths
from rewardlab.settings.domain import NonNegativeFloat, PositiveInt, Share
from rewardlab.text.numbers import number

# ---- Planning: the policy proposes actions, and foresees as a world model where they lead, in a tree search ----------


@dataclass
class Plan:
    """A row up to an action and, once it is visited, the state that the action leads to.

    liked: what its action is worth.  agree: the share of foreseen states that agree; None until they are, and for a step that is
    all action.
    """

    row: Trajectory
    parent: Plan | None = None
    liked: float = 1.0
    agree: float | None = None
    visits: int = 0
    children: list[Plan] = field(default_factory=list)

    @property
    def sure(self) -> float:
        """The share of foreseen states that agree; 1 before the first visit. A step that is all action is as sure as the least sure
        beside it, or else as the step before it: what foresees nothing must not be preferred to what does."""
        if self.agree is not None or not self.visits or self.parent is None:
            return 1.0 if self.agree is None else self.agree
        beside = [node.agree for node in self.parent.children if node.agree is not None]
        return min(beside, default=self.parent.sure)

    def reward(self, alpha: float) -> float:
        return max(0.0, self.liked) ** alpha * self.sure ** (1 - alpha)

    def sums(self, alpha: float) -> list[tuple[float, int]]:
        """Of each path that was walked from here to its end, the sum of the rewards, and of how many."""
        below = [pair for child in self.children if child.visits for pair in child.sums(alpha)]
        own = self.reward(alpha)
        return [(own + total, steps + 1) for total, steps in below] or [(own, 1)]

    def best(self, alpha: float) -> float:
        """The highest mean reward of a path that was walked from here to its end."""
        return max(total / steps for total, steps in self.sums(alpha))

    def leaves(self) -> list[Plan]:
        return [leaf for child in self.children for leaf in child.leaves()] if self.children else [self]


@dataclass(frozen=True)
class Looking:
    """action, rest: how actions are sampled, and what ends a step after its action.  states: sampled for each action."""

    action: Stepping
    rest: Stepping
    states: int


@rollout(rows=lambda iterations, **_: iterations)
def world_model_mcts(
    problems: list[Problem], run: Run, *, score: Reward, iterations: PositiveInt = 10, branch: PositiveInt = 4,
    states: PositiveInt = 8, alpha: Share = 0.5, explore: NonNegativeFloat = 1.0, action_end: str = "=",
    temperature: NonNegativeFloat = 0.8, step_tokens: PositiveInt | None = None, stop: tuple[str, ...] = ("\n",),
) -> list[Group]:  # fmt: skip
    """The complete replies found by planning, per tree the one with the highest mean reward first.

    A step is an action, up to `action_end`, and the state that it leads to, the rest. `branch` different actions are proposed; of
    one that is visited for the first time, `states` states are sampled, and the most frequent one is its state. Its reward is
    r = liked^alpha sure^(1 - alpha): what `score` pays for the row up to the action, at least 0, and the share of that state. Each
    iteration walks to the end of a reply, by M + explore sqrt(ln N / n), r in place of M and n = 1 before a first visit; M is the
    highest mean of the rewards from a node on, over the paths through it. States are compared without regard to spaces and case,
    and numbers by their values. A step without `action_end` is all action, and no surer than the steps beside it.
    Replies of a tree are in the order of the mean rewards of their paths. step_tokens: most tokens of an action, and of a state
    (None: of a reply).  stop: the texts that end a step.

    Hao et al. 2023, arXiv:2305.14992
    """
    ends = tuple(stop)
    how = Looking(Stepping(step_tokens, temperature, (action_end, *ends)), Stepping(step_tokens, temperature, ends), states)
    roots = [Plan(t) for t in started(problems, run)]
    for _ in range(iterations):
        paths = [[root] for root in roots]
        while live := [path for path in paths if path[-1].row.stop is None]:
            _propose([path[-1] for path in live if not path[-1].children], branch, how, score, run)
            for path in live:
                path.append(choose(path[-1], explore, alpha))
            _foresee([path[-1] for path in live if not path[-1].visits], how, run)
        for node in (node for path in paths for node in path):
            node.visits += 1
    return [marked(_complete(root, alpha), run) for root in roots]


def choose(node: Plan, explore: float, alpha: float) -> Plan:
    """The child to go to: the highest UCT, that of one without visits being its reward as far as it is known."""
    bonus = explore * math.sqrt(math.log(max(1, node.visits)))
    return max(node.children, key=lambda c: (c.best(alpha) if c.visits else c.reward(alpha)) + bonus / math.sqrt(max(1, c.visits)))


def _propose(nodes: Sequence[Plan], branch: int, how: Looking, score: Reward, run: Run) -> None:
    """Give each node its children: different actions, with what they are worth."""
    rows = [node.row for node in nodes for _ in range(branch)]
    sampled = grown(rows, [*range(branch)] * len(nodes), how.action, run) if rows else []
    groups = []
    for i in range(len(nodes)):
        different: dict[tuple[str, str | None], Trajectory] = {}
        for t in sampled[i * branch : (i + 1) * branch]:
            different.setdefault((t.turns[-1].text, t.stop), t)
        groups.append([*different.values()])
    for node, group, known in zip(nodes, groups, worths(groups, score, run), strict=True):
        # without a verdict it is worth nothing
        node.children = [Plan(t, node, max(0.0, value)) for t, value in zip(group, known, strict=True)]


def _foresee(nodes: Sequence[Plan], how: Looking, run: Run) -> None:
    """Write after each action the state that most samples of it lead to."""
    # a step that has ended has no state
    nodes = [node for node in nodes if node.row.stop is None and not node.row.turns[-1].text.endswith(how.rest.stop)]
    if not nodes:
        return
    sampled = grown([node.row for node in nodes for _ in range(how.states)], [0] * how.states * len(nodes), how.rest, run)
    for i, node in enumerate(nodes):
        found = sampled[i * how.states : (i + 1) * how.states]
        said = [(_state(t.turns[-1].text), t.stop) for t in found]
        # the first of equally frequent ones
        (state, times), *_ = Counter(said).most_common(1)
        node.agree = times / how.states
        node.row = one_step(found[said.index(state)], run)


def _state(text: str) -> Any:
    """What equal states share: the number, or the words."""
    words = " ".join(text.split()).strip("$.").lower()
    value = number(words)
    return words if value is None else value


def _complete(root: Plan, alpha: float) -> Group:
    """The complete replies, by the mean rewards of their paths."""
    ended = [leaf for leaf in root.leaves() if leaf.visits and leaf.row.stop is not None]
    return [leaf.row for leaf in sorted(ended, key=lambda leaf: -_mean(leaf, alpha))]


def _mean(leaf: Plan, alpha: float) -> float:
    """Of the rewards on the way from the root, whose own, 1, is not among them."""
    rewards, node = [], leaf
    while node.parent is not None:
        rewards.append(node.reward(alpha))
        node = node.parent
    return math.fsum(rewards) / max(1, len(rewards))


# ---- Take the reply that the rollout puts first ----------------------------------------------------------------------


@select
def first(group: Group, scores: list[Score], run: Run) -> Trajectory:
    """The first reply: for searches that rank their replies themselves."""
    return group[0]


# ---- the recipe ---------------------------------------------------------------------------------------------------------


@reward
def action_probability(trajectory: Trajectory) -> Score:
    """The geometric mean of the probabilities of the last step's tokens, from 0 to 1."""
    logprobs = trajectory.turns[-1].logprobs if trajectory.turns else None
    if logprobs is None or not len(logprobs):
        return Score(None, why="no step was sampled")
    return Score(math.exp(float(np.mean(logprobs, dtype=np.float64))))


def rap(
    base: Recipe | None = None, *, iterations: int = 10, branch: int = 4, states: int = 8, alpha: float = 0.5,
    explore: float = 1.0, action_end: str = "=", temperature: float = 0.8, step_tokens: int | None = None,
    stop: tuple[str, ...] = ("\n",),
) -> Recipe:  # fmt: skip
    """iterations: paths that are walked.  branch: actions proposed.  states: foreseen for each.  alpha: weight of the action.
    explore: w.  action_end: text between an action and its outcome.  step_tokens: most tokens of an action, and of a state.
    stop: the texts that end a step."""
    base = base or Recipe(name="rap", reward=action_probability(), measure=accuracy(), update=Update())
    search = world_model_mcts(
        score=base.required("reward"), iterations=iterations, branch=branch, states=states, alpha=alpha, explore=explore,
        action_end=action_end, temperature=temperature, step_tokens=step_tokens, stop=stop,
    )  # fmt: skip
    return base.but(rollout=search, select=first())


fidelity = "core"
left_out = (
    "the question to the model whether an action is of use; the heuristics of goals in plans; more states until two of them agree; "
    "the whole question as the last action after so many steps; the vote over the paths' answers"
)
data = Data(answer="the gold answer")

claim = Claim(
    says="planning with foreseen states is right more often than a majority vote over chains of thought, at no more tokens",
    versus="majority_vote", task="arithmetic:error=0.4,difficulty=[5,7]", measure="accuracy", direction="higher", margin=0.22,
    settings={"iterations": 4, "branch": 2, "states": 5}, versus_settings={"n": 24}, problems=300,
    guard=Within("tokens_per_answer", high=0.0), fault=Within("accuracy", high=0.85, says="right answers by the majority"),
    learns=None, start=None,
    finding="planning is right 79% of the time at 154 tokens an answer, the majority of 24 chains of thought 33% at 1,230. Slips "
    "are independent here and a step is one sum, so that five guesses of each result mend most of them",
)  # fmt: skip
baseline = "majority_vote"
