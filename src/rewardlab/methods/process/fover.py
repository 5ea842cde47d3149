"""FoVer: train a process reward model on steps labelled by a formal verifier; it transfers to other tasks.

    label of step k = 1 if the statements that it cites entail what it says, else 0        (a checker decides, nobody annotates)
    loss = -[label log sigmoid(V_k) + (1 - label) log(1 - sigmoid(V_k))],    V_k the value at the end of step k
    right steps weigh as much as wrong ones;     score of a solution = min over k of sigmoid(V_k)

The policy writes solutions to symbolic problems, which a program can check line by line, and is not trained. What the model has
learnt there is used where no program can: best-of-K by the least step. A step is judged by what it cites alone: what rightly
follows from an error is right.

Kamoi et al. 2025, arXiv:2505.15960; balanced steps as in the released code (psunlpgroup/FoVer, 0715af8, src/dataset_creation/
postprocessing/generate_final_dataset.py), which leaves out the surplus at random; here it weighs less. There the last step,
balanced apart, is the second to last by a slip of its index; here the last. The paper's model says "correct" or "incorrect" after
each step; here a value head's log-odds say it (inferred to be equivalent). Its fixed dataset is sampled as we go.

Held-out problems may be of any task, with `truth`, a reward that knows which of their steps are right; by default derivations are
checked as in training, and chains of arithmetic against the equations in their column `steps`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rewardlab.checks.claim import Check
from rewardlab.core import Group, Learner, Problem, Recipe, Rollout, Run, Score, Trajectory, Update, measure
from rewardlab.data.columns import Column, Data
from rewardlab.evals.judges import first_error_f1
from rewardlab.objectives.labels import balanced_labels, each_label_cross_entropy
from rewardlab.objectives.weighting import token_mean
from rewardlab.rewards.reward import Reward, reward
from rewardlab.rewards.steps import derived_steps, sound_steps
from rewardlab.rollouts.independent import independent
from rewardlab.settings.domain import Share
from rewardlab.util.outputs import values
from rewardlab.util.ranking import auc_of

# ----------------------------------------------------------------------------------------------------------------------
#
# What a judge of steps is worth on solutions that the policy writes: ranking steps, finding first errors, choosing solutions.

Judged = list[tuple[float, bool]]
"""The score of each step, from 0 to 1, and whether it is right."""


@measure
def step_judgements(
    problems: Sequence[Problem], run: Run, *, rollout: Rollout, steps: Reward, model: str = "prm", threshold: Share = 0.5
) -> dict[str, float]:
    """Accuracy of the values of `model` at the ends of steps, as log-odds of being right, on solutions sampled by `rollout`.

    steps: a reward that says which steps are right (above 0).
    first_error_f1: a step below `threshold` is judged wrong; the harmonic mean of the shares of clean solutions judged clean and of
    flawed ones whose first error is found, as ProcessBench has it.  step_auc: how often a right step scores above a wrong one, ties
    counting half.  best_of_k: accuracy of the solution whose least step score is highest, the first of equals.  pass@1: of all.
    Solutions without a verdict, or whose steps have no labels, are left out; what nothing is left for is NaN.
    """
    groups = rollout(list(problems), run)
    right = [[s.value for s in row] for row in run.verify(groups, run)]
    labels = [[dict(s.steps) for s in row] for row in steps(groups, run)]
    judged = [_judged(run, model, group, row) for group, row in zip(groups, labels, strict=True)]
    known = [
        [(j, v >= 1.0) for j, v in zip(row, verdicts, strict=True) if j and v is not None]
        for row, verdicts in zip(judged, right, strict=True)
    ]
    known = [row for row in known if row]
    each = [j for row in known for j, _ in row]
    if not each:
        return dict.fromkeys(("first_error_f1", "step_auc", "best_of_k", "pass@1"), float("nan"))
    f1 = first_error_f1([[ok for _, ok in j] for j in each], [[score >= threshold for score, _ in j] for j in each])
    return {
        # the first number chooses the best model, and is finite where every step is wrong
        "first_error_f1": f1,
        "step_auc": auc_of([step for j in each for step in j]),
        "best_of_k": float(np.mean([max(row, key=_least)[1] for row in known])),
        "pass@1": float(np.mean([np.mean([ok for _, ok in row]) for row in known])),
        "n": float(len(each)),
    }


def _least(solution: tuple[Judged, bool]) -> float:
    return min(score for score, _ in solution[0])


def _judged(run: Run, model: str, group: Group, labels: list[dict[int, float]]) -> list[Judged]:
    """Of each solution the score of every step that has a label."""
    said = values(run.model(model), group)
    return [
        [(float(1 / (1 + np.exp(-v[at]))), label[at] > 0) for at in t.steps if at in label]
        for v, t, label in zip(said, group, labels, strict=True)
    ]


@reward(steps=True)
def derived_or_sound_steps(trajectory: Trajectory) -> list[tuple[int, float]] | Score:
    """`derived_steps` where the problem has premises, else `sound_steps`."""
    by = derived_steps if trajectory.problem.meta.get("premises") else sound_steps
    return by.function(trajectory)


# ---- the recipe ---------------------------------------------------------------------------------------------------------


def fover(
    base: Recipe | None = None, *, n: int = 2, k: int = 4, prm_lr: float | None = None, init: str = "value-head",
    balanced: bool = True, labels: Reward | None = None, truth: Reward | None = None,
) -> Recipe:  # fmt: skip
    """n: solutions per problem to be labelled.  k: solutions that the best is chosen from, held out.  init: what the process reward
    model starts from (`Learner.init`).  balanced: right and wrong labels weigh the same.  labels, truth: rewards that say which
    steps are right, of training and of held-out problems."""
    base = base or Recipe(name="fover", update=Update())
    weighting = balanced_labels() if balanced else token_mean()
    learner = Recipe(
        objective=each_label_cross_entropy(), weighting=weighting, update=Update(lr=prm_lr, lr_end=0.2, loss_kind="scorer")
    )
    return base.but(
        rollout=independent(n=n, steps="newline"),
        reward=labels or derived_steps(),
        measure=step_judgements(rollout=independent(n=k, steps="newline"), steps=truth or derived_or_sound_steps()),
        also=(*base.also, Learner("prm", init, learner)),
    )


fidelity = "core"
left_out = (
    "Z3 and Isabelle, in whose place the table of all cases decides propositional logic, in lines of a fixed form; theorems as a "
    "second source of labels; that one pair of steps in five is merged into one, right if both are; and that 30% of the solutions "
    "taken are right throughout"
)
data = Data(
    prompt="a problem of propositional logic, with the form in which its derivation is written: 3 mp 1 2:q",
    premises="the formulas that are given, a list",
    answer="the goal, a formula",
    steps=Column("of a held-out chain of arithmetic, its equations in order, a list", optional=True),
    rows=[
        {
            "prompt": "1:p->q\n2:p\nShow q, in numbered lines with a rule and the lines that it cites, such as 3 and 2:p",
            "premises": ["p->q", "p"],
            "answer": "q",
        },
        {
            "prompt": "1:r|s\n2:~r\n3:s->t\nShow t, in numbered lines with a rule and the lines that it cites, such as 4 ds 1 2:s",
            "premises": ["r|s", "~r", "s->t"],
            "answer": "t",
        },
    ],
    verified_by="derivation",
)

check = Check(
    says="labels of derivations by a checker teach a model to judge steps of arithmetic, which it has no label of",
    versus=None, task="formal", measure="step_auc", direction="higher", margin=0.12, against="before.step_auc",
    settings={"init": "value-head:surprise", "problems": 16}, problems=300, steps=40, learns=None, start=None,
    finding="the model learns the checker's labels of derivations (balanced loss .58 at the end, .69 at chance), and then ranks "
    "right steps of arithmetic above wrong ones in 38% of pairs, where chance is 50%: what it learnt does not carry over. Its "
    "trunk is that of a small policy; the paper tunes whole models of 8B",
)  # fmt: skip
baseline = None
kind = "reward-model"
