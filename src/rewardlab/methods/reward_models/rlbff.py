"""RLBFF: a reward model that is asked whether a reply satisfies a principle, yes or no.

    r(x, y | principle) = log P(Yes) - log P(No);     L = -log P(label),   label: Yes or No, P of the two alone

    user: x   assistant: y   user: Evaluate the response ... whether it satisfies this principle: ... Only answer Yes or No.   -> r

Written feedback names what is good or bad about a reply. Each such remark becomes a principle that can be answered by yes or no
("accuracy of information: yes"), so that the label of a reply says of what it is the label; a preference between two replies
does not. Whoever uses the model chooses the principle: --reward 'model:RUN?principle=Be brief.'.

Wang et al. 2025, arXiv:2509.21319; models at huggingface.co/collections/nvidia/reward-models-10-2025; no training code was found.
The scalar model: one forward pass, no reasoning. The question is the one on the card of the released scalar model,
nvidia/Llama-3.3-Nemotron-70B-Reward-Principle: a turn of its own after the reply, and the value is read where the answer would
begin. The head starts as the difference of the rows of Yes and No in the vocabulary head, so that before any training the value is
already what the model answers, as on the card (the logit of Yes minus that of No); it is saved as a scalar reward model.
(inferred): that training asks as the card does. Runs of earlier versions, taught with the principle in the prompt and the value at
the reply's end, are still read and measured so (`models/reads.py`).

Rows bring `reply`, `principle` and `label`; an answer such as "partially" gives no verdict and teaches nothing, as in the paper.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from rewardlab.checks.claim import Check
from rewardlab.core import (
    Batch,
    Group,
    Learner,
    Message,
    Outputs,
    Problem,
    Recipe,
    Run,
    Score,
    Trajectory,
    Update,
    measure,
    objective,
    rollout,
)
from rewardlab.core.recipe import PRINCIPLES
from rewardlab.data.columns import Column, Data
from rewardlab.data.values import number_of
from rewardlab.evals.pairs import end_values, pair_accuracy, pairs_told
from rewardlab.evals.passk import mean_interval
from rewardlab.objectives.pairs import last_value
from rewardlab.rewards.reward import reward
from rewardlab.rollouts.recorded import recorded
from rewardlab.text.principles import AFTER, question_about, with_principles

ANSWERS = {"yes": 1.0, "no": 0.0}


def told(problem: Problem) -> Problem:
    """The problem with its principle in the prompt, as runs of earlier versions were taught."""
    return problem.reworded(with_principles(problem.question, [principle_of(problem)]))


def principle_of(problem: Problem) -> str:
    problem.required("principle", by="rlbff")
    return str(problem.meta["principle"])


def asked_after(rows: Sequence[Trajectory], run: Run) -> list[Trajectory]:
    """The rows, each with the question about its problem's principle after the reply, up to where the answer would begin."""
    questions = [(Message("user", question_about(principle_of(t.problem))),) for t in rows]
    # the question is read, not decided: the row still ends as its reply does
    done = [replace(t, stop=row.stop) for t, row in zip(run.policy.read(rows, questions), rows, strict=True)]
    for t in done:
        run.policy.check_fits(t, 0)
    return done


def answer_of(label: Any) -> float | None:
    """1 for yes, 0 for no, also as true and false or 1 and 0; None for any other label."""
    value = ANSWERS.get(label.strip().lower()) if isinstance(label, str) else None
    value = number_of(label) if value is None else value
    return value if value in (0.0, 1.0) else None


@rollout(wraps="inner", rows=lambda **_: 1)
def under_principle(problems: list[Problem], run: Run, *, inner: Any, after: bool = False) -> list[Group]:
    """The groups of `inner`, whose rows are asked after the reply whether it satisfies the principle of their row.

    after: else prompts are told the principle, as runs of earlier versions were taught.
    """
    if not after:
        return inner([told(p) for p in problems], run)
    for problem in problems:
        principle_of(problem)
    return [asked_after(group, run) for group in inner(problems, run)]


@reward
def satisfied(trajectory: Trajectory) -> Score:
    """The row's `label`: whether the reply satisfies the principle."""
    label = trajectory.problem.meta.get("label")
    value = answer_of(label)
    return Score(value, why="" if value is not None else f"the label {label!r} is neither yes nor no")


@objective(unit="row", wants=("value",))
def answer_cross_entropy(out: Outputs, batch: Batch, run: Run) -> Tensor:
    """-log P(label) of each row, by the value at the end of its text as the log-odds of yes; 0 for a row without a label."""
    losses = F.binary_cross_entropy_with_logits(last_value(out, batch), batch.reward.sum(1), reduction="none")
    return torch.where(batch.rewarded.any(1), losses, 0.0)


@measure
def entailment(problems: Sequence[Problem], run: Run, *, model: str = "reward") -> dict[str, float]:
    """accuracy: the share of held-out replies whose answer is right (yes where r > 0; r = 0 counts half).

    Where rows have `chosen` and `rejected` too, of which the first one satisfies the principle, also what `pair_accuracy` says of
    them; untold: its accuracy if nothing names the principle, and the value is read at the reply's end.
    """
    known = [(p, label) for p in problems if (label := answer_of(p.meta.get("label"))) is not None and p.meta.get("reply")]
    found = _answered(known, run, model) if known else {}
    if pairs := [p for p in problems if p.meta.get("chosen") and p.meta.get("rejected")]:
        ranked, plain = _ranked(pairs, run, model), pair_accuracy(model=model)(pairs, run)
        # the interval is that of the first number
        found = ranked | {k: v for k, v in found.items() if k == "accuracy"} | {"untold": plain["pair_accuracy"]}
    return found


def as_taught(problems: Sequence[Problem], column: str, run: Run, model: str) -> list[Trajectory]:
    """The replies in a column as the run's model was taught to read them: asked about after the reply, or told in the prompt."""
    before = getattr(run.models[model], "reads", AFTER) == PRINCIPLES
    shown = [told(p) for p in problems] if before else problems
    prompts = run.policy.read([Trajectory(p) for p in shown], [p.prompt for p in shown])
    rows = run.policy.write(prompts, [p.meta[column] for p in shown])
    return rows if before else asked_after(rows, run)


def _ranked(pairs: Sequence[Problem], run: Run, model: str) -> dict[str, float]:
    sides = [as_taught(pairs, side, run, model) for side in ("chosen", "rejected")]
    chosen, rejected = (end_values(run.models[model], side) for side in sides)
    return pairs_told(chosen, rejected, np.array([int(a.mask.sum()) - int(b.mask.sum()) for a, b in zip(*sides, strict=True)]))


def _answered(known: Sequence[tuple[Problem, float]], run: Run, model: str) -> dict[str, float]:
    values = end_values(run.models[model], as_taught([p for p, _ in known], "reply", run, model))
    labels = np.array([label for _, label in known])
    right = np.where(values == 0, 0.5, (values > 0) == (labels > 0.5)).astype(float)
    low, high = mean_interval(right.tolist())
    return {"accuracy": float(right.mean()), "ci95_low": low, "ci95_high": high, "n": float(len(right))}


def rlbff(
    base: Recipe | None = None, *, reward_lr: float | None = None, problems: int = 32, init: str = "value-head:words=Yes,No"
) -> Recipe:
    """init: of the reward model; value-head:words=A,B is log P(A) - log P(B).  reward_lr, problems: as in `bradley_terry`."""
    base = base or Recipe(name="rlbff", update=Update(problems=problems))
    taught = Recipe(objective=answer_cross_entropy(), reward=satisfied(), update=Update(lr=reward_lr, loss_kind="scorer"))
    others = tuple(learner for learner in base.also if learner.name != "reward")
    return base.but(
        rollout=under_principle(inner=recorded(fields=("reply",)), after=True),
        measure=entailment(),
        also=(*others, Learner("reward", init, taught, reads=AFTER)),
    )


fidelity = "core"
left_out = (
    "the model that extracts principles from written feedback and checks them against it (rows bring them), the generative model "
    "that reasons first, and GRPO by it"
)
data = Data(
    reply="a reply that somebody judged",
    principle="what it was judged by, in a few words",
    label=Column("whether it satisfies the principle: yes or no; another answer teaches nothing"),
    rows=[
        {"prompt": "Why do leaves fall?", "reply": "Trees save water.", "principle": "accuracy of information", "label": "yes"},
        {"prompt": "Why do leaves fall?", "reply": "Because of gravity.", "principle": "accuracy of information", "label": "no"},
        {"prompt": "How does one boil an egg?", "reply": "Seven minutes in boiling water.", "principle": "clarity", "label": "yes"},
        {"prompt": "How does one boil an egg?", "reply": "In a pan, somehow.", "principle": "clarity", "label": "no"},
    ],
)  # fmt: skip

LEARNT = {"init": "value-head:surprise", "reward_lr": 1e-3}
# it is asked about the principle and the rival is not: that it learns by it is what could fail
check = Check(
    says="told the principle, a model taught yes or no ranks more pairs of notes right by it than Bradley-Terry on the pairs "
    "themselves (both read surprise)",
    versus="bradley_terry", task="principled", measure="pair_accuracy", direction="higher", margin=0.05,
    settings=LEARNT, versus_settings=LEARNT, problems=500, steps=100, sanity=True,
    finding="After 100 updates the model that is told the principle ranks 75% of held-out pairs right, one taught by the pairs "
    "alone 66% (5 pairs of runs, and as many tokens)",
)  # fmt: skip
baseline = "bradley_terry"
