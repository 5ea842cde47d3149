"""GroundedPRM: label the steps of a search tree by tool checks, combined with Monte-Carlo outcomes.

    V(branch) = (F + sum over i < N of (N - i) / N v_i) / N;    F, v: the outcome, and the tool's word on N steps between: 1 or -1
    value(step) = v(step) + sum over branches below of 0.9^distance V(branch);     label: whether it is above 0
    process reward model: cross-entropy to these labels;     at test time it picks each next step among a few (greedy search)

Outcomes alone blame right steps of replies that go wrong later, and praise wrong ones of replies that come right by luck. A tool
alone knows whether what a step states is true, and not whether it leads anywhere. From a wrong reply, labels are taken up to
where a right step would follow a wrong one.

Zhang et al. 2025, arXiv:2510.14942. V, its way up the tree and the cut are those of the released code
(JerryPlain/GroundedPRMCode, d908314, pipeline/MCTS/mcts.py, data_process/construct.py), and so are three children of a step. It
searches ten rounds at most, until it has three right and three wrong replies of five steps; here six rounds. (inferred): that tool
and tree are fused by addition (the code drops replies where a step is true to the tool and has no positive value, or the reverse),
and that children are chosen by outcome at `explore` = 1.4 (the code has the formula, and takes random children). There a language
model asks Wolfram Alpha; here the tool is any reward of steps, by default of the equations between numbers that a step states.
Steps are lines; where they state no equations, pass a step reward of your own as `check`.
"""

from __future__ import annotations

from collections.abc import Sequence

from rewardlab.checks.claim import Check, Within
from rewardlab.core import Group, Learner, Recipe, Run, Score, Scores, Trajectory, Update, with_surprise
from rewardlab.data.columns import Data
from rewardlab.evals.search import search_accuracy
from rewardlab.evals.step_labels import label_quality
from rewardlab.objectives.labels import label_cross_entropy
from rewardlab.rewards.model import model_score
from rewardlab.rewards.monte_carlo import rows_in_steps
from rewardlab.rewards.reward import Reward, reward
from rewardlab.rewards.steps import correct_steps
from rewardlab.rewards.task import correct
from rewardlab.rewards.tool_steps import tool_steps
from rewardlab.rollouts.beams import subtrees
from rewardlab.rollouts.monte_carlo import monte_carlo_tree
from rewardlab.settings.domain import NonNegativeFloat, Share

# ----------------------------------------------------------------------------------------------------------------------
#
# Labels of steps by what a tool says of each of them and what became of them, added up over the replies that share them.

Node = bytes
"""A step of a tree: the tokens of a reply up to its end. Replies that begin alike share their first steps."""


@reward(over="groups")
def fused_steps(
    groups: list[Group], run: Run, *, check: Reward, decay: Share = 0.9, tool: NonNegativeFloat = 1.0, cut: bool = True
) -> Scores:
    """1 at the end of each step whose value is above 0, 0 where it is below; no label where it is 0.

    The value of a step: tool v + the sum of decay^k V over the replies of the group that branch off k steps later, at a step that
    no earlier reply has. v is 1 or -1 where the step reward `check` pays the step at least 1/2 or less, and 0 where it says nothing
    of it. V is what became of such a branch: with N steps between the first and the last, which the outcome F (1 or -1, by the
    task's verifier) stands for,

        V = (F + sum over i < N of (N - i) / N tool v_i) / N,  i = 0 the step after the first;    V = F if N = 0

    tool=0: by the outcomes alone.  cut: a wrong reply has no labels from the first right step after a wrong one on.
    A group is a search tree, or replies sampled independently. No verdict on a reply without one.
    Zhang et al. 2025, arXiv:2510.14942 (GroundedPRM)
    """
    rows_in_steps(groups, "fused_steps")
    said, ended = check(groups, run), run.verdicts(groups)
    return [_labelled(*both, decay, tool, cut) for both in zip(groups, said, ended, strict=True)]


def _labelled(
    group: Group, said: Sequence[Score], ended: Sequence[Score], decay: float, tool: float, cut: bool
) -> list[Score]:  # fmt: skip
    nodes = [[t.ids[: at + 1].tobytes() for at in t.steps] for t in group]
    checked = [[tool * v for v in _checked(t, s)] for t, s in zip(group, said, strict=True)]
    outcomes = [None if s.value is None else (1.0 if s.value >= 1.0 else -1.0) for s in ended]
    values: dict[Node, float] = {}
    for row, own in zip(nodes, checked, strict=True):
        values |= dict(zip(row, own, strict=True))
    seen: set[Node] = set()
    for row, own, outcome in zip(nodes, checked, outcomes, strict=True):
        new = next((k for k, node in enumerate(row) if node not in seen), None)
        if outcome is not None and new is not None:
            worth = branch_worth(own[new:], outcome)
            for k in range(new + 1):
                values[row[k]] += decay ** (new - k) * worth
            seen |= set(row)
    known = [[values[node] for node in row] for row in nodes]
    return [_score(t, row, x, cut) for t, row, x in zip(group, known, outcomes, strict=True)]


def branch_worth(checked: Sequence[float], outcome: float) -> float:
    """V of a branch, by what the tool says of its steps and by its outcome."""
    between = checked[1:-1]
    n = len(between)
    return (outcome + sum((n - i) / n * v for i, v in enumerate(between))) / n if n else outcome


def _checked(t: Trajectory, said: Score) -> list[float]:
    known = {} if said.missing else dict(said.steps)
    return [0.0 if at not in known else 1.0 if known[at] >= 0.5 else -1.0 for at in t.steps]


def _score(t: Trajectory, values: list[float], outcome: float | None, cut: bool) -> Score:
    if outcome is None:
        return Score(None, why="the reply has no verdict")
    upto = len(values)
    if cut and outcome < 0:
        wrong = next((k for k, x in enumerate(values) if x <= 0), upto)
        upto = next((k for k in range(wrong + 1, len(values)) if values[k] >= 0), upto)
    labels = [(at, float(x > 0)) for at, x in zip(t.steps[:upto], values, strict=False) if x]
    return Score(steps=labels) if labels else Score(None, why="neither tool nor outcome tells of any step")


# ---- the recipe ---------------------------------------------------------------------------------------------------------


def groundedprm(
    base: Recipe | None = None, *, check: Reward | None = None, iterations: int = 6, branch: int = 3, explore: float = 1.4,
    decay: float = 0.9, tool: float = 1.0, tries: int = 4, init: str = "value-head", surprise: bool = False,
    lr: float | None = None, epochs: int = 1,
) -> Recipe:  # fmt: skip
    """check: a step reward, None: `tool_steps`.  iterations, branch, explore: of the tree (`monte_carlo_tree`).  decay: of a
    branch's worth, per step up.  tool: weight of the tool; 0: outcomes alone.  tries: next steps that the model picks from in
    the search.  init, lr, epochs: of the model (`Learner.init`).  surprise: it also reads the surprise of the policy
    (`Learner.init`), which no paper has.
    """
    base = base or Recipe(name="groundedprm", update=Update(problems=8))
    # labels are the model's own reward: the policy, which stays as it is, needs a verdict on every reply
    labels = fused_steps(check=check or tool_steps(), decay=decay, tool=tool)
    prm = Recipe(reward=labels, objective=label_cross_entropy(), update=Update(lr=lr, epochs=epochs, loss_kind="scorer"))
    return base.but(
        rollout=monte_carlo_tree(score=correct(), iterations=iterations, branch=branch, explore=explore, simulate=True),
        reward=base.reward or correct(),
        measure=search_accuracy(search=subtrees(score=model_score(model="prm"), trees=1, branch=tries), value="prm"),
        also=(*base.also, Learner("prm", with_surprise(init, surprise), prm)),
    )


fidelity = "core"
left_out = (
    "the written rationale, so that the model's word is read from a value head; as many right as wrong replies of a problem; and "
    "dropping replies on which tool and tree disagree"
)
data = Data(answer="the gold answer")

check = Check(
    says="labels of tool and outcomes find more first errors of the same trees than those of the outcomes alone",
    versus=None, task="arithmetic:biased=0.75,error=0.1", measure="f1.fused", direction="higher", margin=0.17,
    against="f1.outcomes", by=label_quality(
        truth=correct_steps(), rollout=monte_carlo_tree(score=correct(), iterations=6, branch=3, explore=1.4, simulate=True),
        annotators={
            "fused": fused_steps(check=tool_steps()), "outcomes": fused_steps(check=tool_steps(), tool=0.0), "tool": tool_steps(),
        },
    ), problems=150, steps=1, fault=Within("f1.outcomes", high=0.8, says="F1 of first errors by outcomes alone"), learns=None,
    sanity=True,
    finding="labels of tool and outcomes find first errors with F1 .76, outcomes alone with .39, and the tool alone with .998: "
    "every step here is one that the tool can check, so that outcomes only blur what it says. Where a tool sees some of the "
    "steps the order may be another",
)  # fmt: skip
baseline = None
