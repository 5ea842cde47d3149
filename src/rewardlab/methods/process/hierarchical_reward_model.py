"""HRM: a process reward model for single steps and merged pairs of steps; a pair is right if it ends right.

    fine:    (s_1 .. s_{i-1} | s_i)              label of s_i; none after the first wrong step
    coarse:  (s_1 .. s_{i-2} | s_{i-1} s_i)      label of s_i; so (wrong, right) is 1, and (wrong, wrong) 0
    HNC:     in a tree, a node with four children or more loses one of them, with all below it, to its own parent:
             the two steps become one. Labels are shares of right replies below a node, without what it has lost

Labels that end at the first error say nothing of what comes after it, so that a model cannot tell a reply that corrects itself from
one that goes on wrongly. Pairs reach one step further. Compression gives other labels for the same samples, at no cost.

Wang et al. 2025, arXiv:2503.13551, and the released code (tengwang0318/hierarchial_reward_model, self-training/
construct_hrm_train_data.py at 42fe3ab): pairs take the label of their last step, at most one child of a node is moved, each with a
chance of 1/2 in turn, unless the node was moved itself, and at test time single steps are scored. As in construct_dataset/
rm_dataset_construction_phase1.py (7b96496) labels of annotated solutions end at the first error (`cut`); those of trees do not.
There a sample is one node, and its label stands on the same last token; here a text goes on after its labels, so that its end
tells nothing. (inferred): that merged steps stand on one line, which a model of lines reads as one step. With `labels`, a reward of
steps, no tree is grown.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from rewardlab.checks.claim import Claim, Within
from rewardlab.core import Group, Learner, Problem, Recipe, Rollout, Run, Score, Scores, Update, measure, uniform_of, with_surprise
from rewardlab.core.part import Part, decorator
from rewardlab.data.columns import Data
from rewardlab.errors import RewardlabError
from rewardlab.objectives.labels import label_cross_entropy
from rewardlab.rewards.monte_carlo import rows_in_steps
from rewardlab.rewards.recorded import step_labels
from rewardlab.rewards.reward import Reward, reward
from rewardlab.rewards.steps import correct_steps, step_texts
from rewardlab.rewards.task import correct
from rewardlab.rollouts.independent import independent
from rewardlab.rollouts.monte_carlo import monte_carlo_tree
from rewardlab.rollouts.recorded import recorded
from rewardlab.settings.domain import PositiveInt, Share
from rewardlab.util.outputs import values
from rewardlab.util.ranking import auc_of

# ---- Whether a model of steps tells, after an error, a reply that corrects itself from one that goes on wrongly ------


@measure
def after_errors(problems: Sequence[Problem], run: Run, *, truth: Reward, rollout: Rollout, model: str = "prm") -> dict[str, float]:
    """Of steps that follow a wrong one: after_auc, how often the model values a right one above a wrong one, 1/2 where one kind is
    missing; corrected, the share that is right.  step_auc: the same of all steps."""
    groups = rollout(list(problems), run)
    rows = [(t, dict(s.steps)) for g, row in zip(groups, truth(groups, run), strict=True) for t, s in zip(g, row, strict=True)]
    said = values(run.model(model), [t for t, _ in rows])
    each = [[(float(v[at]), paid > 0) for at, paid in known.items()] for v, (_, known) in zip(said, rows, strict=True)]
    after = [pair for row in each for before, pair in pairwise(row) if not before[1]]
    aucs = {"after_auc": auc_of(after), "step_auc": auc_of([pair for row in each for pair in row])}
    found = {name: 0.5 if np.isnan(x) else x for name, x in aucs.items()}
    return found | {"corrected": float(np.mean([ok for _, ok in after])) if after else 0.0, "n": float(len(after))}


# ---- The worth of steps by the replies that share them: a search tree, or samples of one problem, read as a tree -----


@reward(over="groups")
def compressed_shares(groups: list[Group], run: Run, *, compress: Share = 0.5, children: PositiveInt = 4) -> Scores:
    """At the end of each step, the share of right replies among the group's replies with the same prefix: its node in the search
    tree.

    Hierarchical node compression: a node with so many `children` or more gives its own parent the first for which a coin says so,
    with chance `compress`, and its share is that of the others; one that was given away itself gives none. No verdict on a reply
    without one.
    Wang et al. 2025, arXiv:2503.13551
    """
    rows_in_steps(groups, "compressed_shares")
    return [_shares(group, row, run, compress, children) for group, row in zip(groups, run.verdicts(groups), strict=True)]


def _shares(group: Group, ended: list[Score], run: Run, compress: float, children: int) -> list[Score]:
    nodes = [[t.ids[: at + 1].tobytes() for at in t.steps] for t in group]
    known = [(row, s.value >= 1.0) for row, s in zip(nodes, ended, strict=True) if s.value is not None]
    below: dict[bytes, list[tuple[bytes | None, bool]]] = {}
    for row, right in known:
        for node, child in zip(row, [*row[1:], None], strict=True):
            below.setdefault(node, []).append((child, right))
    shares, given = {}, set[bytes | None]()
    # from the root down, since what was given away keeps its children
    for node, found in sorted(below.items(), key=lambda pair: len(pair[0])):
        kinds = [c for c in dict.fromkeys(child for child, _ in found) if c]
        may = node not in given and len(kinds) >= children
        lost = next((c for c in kinds if may and uniform_of("hnc", run.seed, run.moment, c) < compress), b"")
        given.add(lost)
        shares[node] = float(np.mean([right for child, right in found if child != lost]))
    return [
        Score(None, why="the reply has no verdict") if s.value is None
        else Score(steps=[(at, shares[node]) for at, node in zip(t.steps, row, strict=True)])
        for t, row, s in zip(group, nodes, ended, strict=True)
    ]  # fmt: skip


# ---- the recipe ---------------------------------------------------------------------------------------------------------

problems_from = decorator(Part)
TEXT, LABELS = "merged", "merged_labels"


def fine_and_coarse(
    lines: Sequence[str], labels: Sequence[float | None], pairs: bool = True, cut: bool = True
) -> list[tuple[list[str], list[float | None]]]:  # fmt: skip
    """The solution with the labels up to its first wrong step; and, for each step up to the one after it, the solution in which
    that step and the one before are one, with the label of that pair.

    The text goes on to its end, without labels: cut off, it would tell by its end that a step is the last, and so wrong.
    """
    wrong = next((i for i, x in enumerate(labels) if cut and x is not None and x < 0.5), len(lines))
    unknown: list[float | None] = [None] * len(lines)
    fine = (list(lines), [*labels[: wrong + 1], *unknown[wrong + 1 :]])
    ends = range(1, min(wrong + 2, len(lines))) if pairs else ()
    merged = ([*lines[: i - 1], f"{lines[i - 1]} {lines[i]}", *lines[i + 1 :]] for i in ends)
    return [fine, *((x, [*unknown[: i - 1], labels[i], *unknown[i + 1 :]]) for i, x in zip(ends, merged, strict=True))]


@problems_from
def fine_and_coarse_solutions(
    groups: list[Group], scores: Scores, run: Run, *, pairs: bool = True, cut: bool = True
) -> list[Problem]:
    """The replies with labelled steps as problems to be read: once as they are, and once for each merged pair of steps."""
    made = []
    for t, score in ((t, s) for g, row in zip(groups, scores, strict=True) for t, s in zip(g, row, strict=True)):
        lines, known = step_texts(t, "newline"), dict(score.steps)
        if score.missing or len(lines) != len(t.steps) or not all(line.strip() for line in lines):
            continue
        for text, labels in fine_and_coarse(lines, [known.get(at) for at in t.steps], pairs, cut):
            if any(x is not None for x in labels):
                made.append(Problem(t.problem.prompt, None, {TEXT: "\n".join(text), LABELS: labels}))
    if made:
        return made
    raise RewardlabError("the hierarchical reward model learns from labelled steps, and no reply of this step has one")


def hierarchical_reward_model(
    base: Recipe | None = None, *, labels: Reward | None = None, pairs: bool = True, cut: bool | None = None, n: int = 4,
    iterations: int = 6, branch: int = 4, compress: float = 0.5, truth: Reward | None = None, init: str = "value-head",
    surprise: bool = False, lr: float | None = None, epochs: int = 1,
) -> Recipe:  # fmt: skip
    """labels: a reward of steps, for n replies; None: the shares of trees (iterations, branch: `monte_carlo_tree`; compress:
    HNC). pairs: False leaves a plain process reward model.  cut: labels end at the first error; None: where `labels` are
    given. truth: says which steps are right when it is measured.  init, lr, epochs: of the model (`Learner.init`).  surprise:
    it also reads the surprise of the policy (`Learner.init`), which no paper has.
    """
    base = base or Recipe(name="hierarchical_reward_model", update=Update(problems=8))
    cut = labels is not None if cut is None else cut
    tree = monte_carlo_tree(score=correct(), iterations=iterations, branch=branch, explore=1.4, simulate=True)
    prm = Recipe(
        rollout=recorded(fields=(TEXT,), steps="newline"), reward=step_labels(column=LABELS), objective=label_cross_entropy(),
        update=Update(lr=lr, epochs=epochs, loss_kind="scorer"),
    )  # fmt: skip
    return base.but(
        # no objective of its own: the policy samples, and stays as it is
        rollout=tree if labels is None else independent(n=n, steps="newline"),
        reward=labels or compressed_shares(compress=compress),
        measure=after_errors(truth=truth or correct_steps(), rollout=independent(n=n, steps="newline")),
        also=(*base.also, Learner("prm", with_surprise(init, surprise), prm, fine_and_coarse_solutions(pairs=pairs, cut=cut))),
    )


fidelity = "core"
left_out = (
    "the balance of labels among nodes of one height; learning from the tree twice, as it is and compressed (here compressed "
    "alone); and the squared error by which shares are learnt there: here it is cross-entropy, as for annotated steps, so that "
    "the value is a log-odds"
)
data = Data(answer="the gold answer")

claim = Claim(
    says="after a wrong step, steps that correct it are valued above others more often than by a model of single steps",
    versus="hierarchical_reward_model", task="arithmetic:biased=0.9,error=0.1,corrected=0.5", measure="after_auc",
    direction="higher", margin=0.08, settings={"labels": correct_steps(), "surprise": True},
    versus_settings={"labels": correct_steps(), "surprise": True, "pairs": False}, problems=200, steps=30,
    fault=Within("after_auc", high=0.9, says="AUC of steps after a wrong one, by a model of single steps"), learns=None,
    sanity=True,
    finding="after a wrong step, steps that correct it are valued above steps that go on wrongly in 65% of pairs, by a model of "
    "single steps in 51%, which is chance; 14% of such steps correct the error. In that run a text ended at its last label, so "
    "that its end gave a wrong step away to the model of single steps: how much of the difference pairs make is open",
)  # fmt: skip
baseline = None
kind = "reward-model"
