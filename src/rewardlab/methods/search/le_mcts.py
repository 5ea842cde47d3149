"""LE-MCTS: an ensemble of models writes one solution in a tree search guided by a process reward model.

    action: one of the models writes the next step;    next node = argmax of v + c sqrt(ln N / n), once each on the way is expanded
    v(node) = max over its children of v,  r(node) if it has none;    answer = argmax over complete replies of r

Votes over whole answers are lost where all models err somewhere, and mixed logits need one vocabulary; here a right first step of
one model is followed by a right second one of another. A mean over children would punish a node for the weaker models' steps, so
that its best child is what it is worth.

Park et al. 2024, arXiv:2412.15797 (abstract and summaries), without released code. (inferred): a node is passed on the way down
when `width` steps were tried there; models take turns where the paper samples them; c; the number of steps, 50, which completes
replies of few lines alone. A tree without any goes on from its best leaf, of `width` steps by the models always to the best.

The scorer must read unfinished replies (`rewardlab search --scorer`). `models` are checkpoints or run folders beside the --model.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from rewardlab.checks.claim import Claim, Within
from rewardlab.core import Group, Learner, Problem, Recipe, Run, Trajectory, Update, rollout
from rewardlab.data.columns import Data
from rewardlab.evals.passk import accuracy
from rewardlab.methods.baselines.weighted_vote import own_probability
from rewardlab.rewards.correct_so_far import correct_so_far
from rewardlab.rewards.imperfect import imperfect
from rewardlab.rewards.reward import Reward
from rewardlab.rollouts.best import best
from rewardlab.rollouts.stepwise import UNSURE, Stepping, grown, marked, read_alike, started, worths
from rewardlab.settings.domain import NonNegativeFloat, PositiveInt

# ---- Monte-Carlo tree search in which several models write the steps -------------------------------------------------


@dataclass
class State:
    """A partial solution. own: its score.  value: the best that is known of it.  tried: steps that were sampled from it."""

    row: Trajectory
    parent: State | None = None
    own: float = 0.0
    value: float = 0.0
    visits: int = 0
    tried: int = 0
    children: list[State] = field(default_factory=list)

    def wants(self, width: int) -> bool:
        """Whether another step is to be tried here."""
        return self.row.stop is None and self.tried < width

    def alive(self, width: int) -> bool:
        """Whether anything can still be tried here or below."""
        return self.wants(width) or any(child.alive(width) for child in self.children)

    def leaves(self) -> list[State]:
        return [leaf for child in self.children for leaf in child.leaves()] if self.children else [self]


@rollout(rows=lambda iterations, width, **_: max(iterations, width))
def ensemble_tree(
    problems: list[Problem], run: Run, *, score: Reward, models: tuple[str, ...] = ("policy",), iterations: PositiveInt = 50,
    width: PositiveInt = 3, explore: NonNegativeFloat = 1.0, temperature: NonNegativeFloat = 1.0,
    step_tokens: PositiveInt | None = None, stop: tuple[str, ...] = ("\n",),
) -> list[Group]:  # fmt: skip
    """The complete replies of a tree to each problem. Each iteration adds one step, by the model whose turn it is at that node.

    It walks down by value + explore sqrt(ln N / n) to a node where fewer than `width` steps were tried, so that no node is passed
    before it is tried so often; equal steps are one child. The value of a node is its own score, or the highest of its children's
    values once it has any: another model's bad step is no reason to leave a good one. Subtrees in which nothing is left to try are
    passed over. Where a tree completes no reply, it goes on from its best leaf, of `width` steps by the models always to the best,
    until that ends.  Logged: unfinished, the share of such trees.
    models: of the run, with the policy's vocabulary; at each node they take turns.  step_tokens: most tokens of a step (None: of a
    reply).  stop: the texts that end a step.

    Park et al. 2024, arXiv:2412.15797
    """
    read_alike(run, models)
    how = Stepping(step_tokens, temperature, tuple(stop))
    roots = [State(t) for t in started(problems, run)]
    for _ in range(iterations):
        nodes = [descend(root, width, explore) for root in roots if root.alive(width)]
        _expand(nodes, models, how, score, run)
    return _complete(roots, width, lambda nodes: _expand(nodes, models, how, score, run), run)


def descend(node: State, width: int, explore: float) -> State:
    """The node to expand next, on the way to which every node has been tried `width` times."""
    while not node.wants(width):
        bonus = explore * math.sqrt(math.log(node.visits))
        node = max((c for c in node.children if c.alive(width)), key=lambda c: c.value + bonus / math.sqrt(c.visits))
    return node


def back_up(leaf: State) -> None:
    """Count a visit of a node and of all above it, each of which is worth as much as the best of its children."""
    node: State | None = leaf
    while node is not None:
        node.visits += 1
        node.value = max((child.value for child in node.children), default=node.own)
        node = node.parent


def _expand(nodes: Sequence[State], models: Sequence[str], how: Stepping, score: Reward, run: Run) -> None:
    """Give each node one more step, and all above it what it is worth."""
    rows = _tried(nodes, models, how, run)
    for node, row, (value,) in zip(nodes, rows, worths([[t] for t in rows], score, run), strict=True):
        back_up(_child(node, row, value))


def _tried(nodes: Sequence[State], models: Sequence[str], how: Stepping, run: Run) -> list[Trajectory]:
    """The next step of each node, by the model whose turn it is; one call for each model."""
    found: dict[int, Trajectory] = {}
    for place, model in enumerate(models):
        at = [i for i, node in enumerate(nodes) if node.tried % len(models) == place]
        # the number of a child tells who wrote it
        longer = grown([nodes[i].row for i in at], [nodes[i].tried for i in at], how, run, model) if at else []
        found |= dict(zip(at, longer, strict=True))
    for node in nodes:
        node.tried += 1
    return [found[i] for i in range(len(nodes))]


def _child(node: State, row: Trajectory, value: float) -> State:
    """The child that this step leads to: the one that is known, if it is."""
    said = (row.turns[-1].text, row.stop)
    for child in node.children:
        if (child.row.turns[-1].text, child.row.stop) == said:
            return child
    node.children.append(State(row, node, value, value))
    return node.children[-1]


def _complete(roots: Sequence[State], width: int, expand: Callable[[list[State]], None], run: Run) -> list[Group]:
    """The complete replies of each tree; where there is none, those among the last steps from its best leaf on."""
    found = [[leaf.row for leaf in root.leaves() if leaf.row.stop is not None] for root in roots]
    bare = [i for i, rows in enumerate(found) if not rows]
    run.log("unfinished", len(bare) / max(1, len(roots)))
    at = {i: max(roots[i].leaves(), key=lambda leaf: leaf.own if leaf.row.path else UNSURE) for i in bare}
    while live := {i: node for i, node in at.items() if node.row.stop is None}:
        for _ in range(width):
            expand([*live.values()])
        for i, node in live.items():
            at[i] = max(node.children, key=lambda child: child.own)
            found[i] = [child.row for child in node.children if child.row.stop is not None]
    return [marked(rows, run) for rows in found]


# ---- the recipe ---------------------------------------------------------------------------------------------------------

POLICY, OTHER = "policy", "other"


def le_mcts(
    base: Recipe | None = None, *, models: tuple[str, ...] = (), iterations: int = 50, width: int = 3, explore: float = 1.0,
    temperature: float = 1.0, step_tokens: int | None = None, stop: tuple[str, ...] = ("\n",),
) -> Recipe:  # fmt: skip
    """models: the pool beside the policy; without any, the policy searches alone.  iterations: steps that are tried.
    width: steps tried at a node before the search goes below it.  explore: c.  step_tokens: most tokens of a step.
    stop: the texts that end one."""
    base = base or Recipe(name="le_mcts", reward=own_probability(), measure=accuracy(), update=Update())
    names = tuple(f"{OTHER}_{i}" for i in range(len(models)))
    search = ensemble_tree(
        score=base.required("reward"), models=(POLICY, *names), iterations=iterations, width=width, explore=explore,
        temperature=temperature, step_tokens=step_tokens, stop=stop,
    )  # fmt: skip
    others = tuple(Learner(name, path, Recipe(), every=0) for name, path in zip(names, models, strict=True))
    return base.but(rollout=search, select=best(), also=(*base.also, *others))


SMALL = {"iterations": 24, "width": 4}
CAREFUL = "embedded:arithmetic:biased=0.9,error=0.02,rules=*"
"""It always multiplies wrongly, and hardly ever errs otherwise; the policy always subtracts wrongly."""

fidelity = "reading"
left_out = (
    "models with vocabularies of their own, which read each other's steps as text: here they share one; the paper's rule for when "
    "a node is expanded enough, its c and its budget are not known to us"
)
data = Data(answer="the gold answer")

claim = Claim(
    says="two models that each get one operation wrong are right more often in one tree than one of them in a tree as large",
    versus="le_mcts", task="arithmetic:biased=0.9,error=0.02,rules=-", measure="accuracy", direction="higher", margin=0.077,
    settings=SMALL | {"models": (CAREFUL,)}, versus_settings=SMALL, reward=imperfect(auc=0.9, inner=correct_so_far()), problems=300,
    guard=Within("tokens_per_answer", high=15.0), fault=Within("accuracy", high=0.8, says="right answers of one model's tree"),
    learns=None, start=None,
    finding="two models in one tree are right 87% of the time, one model in a tree of as many steps 72%, at 149 tokens an answer "
    "and 134: better, and 20 pairs do not tell whether it takes more tokens than were allowed",
)  # fmt: skip
baseline = "mcts"
