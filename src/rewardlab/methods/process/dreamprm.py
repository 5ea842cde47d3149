"""DreamPRM: a process reward model learns from labelled solutions of several domains, by weights that trusted outcomes teach.

    lower:  phi = argmin  sum over domains k of alpha_k L_k(phi),      L_k = sum over its steps i of (sigmoid(V_i) - label_i)^2
    upper:  alpha = argmin  mean over trusted solutions of (sigmoid(A) - right)^2,   A = mean over steps of V = log p / (1 - p)
            alpha_k = softplus(a_k) / mean over domains of softplus(a),  a = 0 at first;    dL_upper/d alpha_k = -<dL_upper, dL_k>

V_i is the log-odds at the end of step i, gradients are by phi. A domain whose gradient points where the loss of trusted solutions
falls gains weight: one whose labels are wrong, or teach nothing that helps to tell right answers from wrong ones, loses it. What is
minimised above is what the model is used for: the best of n solutions is the one of the highest A. The trusted ones need no labels
of steps, only whether their answers are right.

Cao et al. 2025, arXiv:2505.20241; the released code (coder-qicao/DreamPRM, 3670507, main.py, model.py) and reweighting/main.py
(f878a8b), which trained the paper's fifteen domains: squared errors in both levels, 10,000 updates by AdamW at 5e-7, after every
fifth one of a by AdamW at 0.01 with weight decay 1e-3. A in the paper is the sum over steps, in the code, in all its versions, the
mean, which is followed here; `aggregate="sum"` is the paper's. The derivative by one unrolled step is that of the code (Betty's
type "darts"): by the batch learnt last, at the model as it is after that update, the update taken as one of plain gradient descent,
whose rate Adam's step in a takes out. There a finite difference, here exact products of gradients. In the code a batch is
one step and one trusted solution; here `problems` and `outcomes` solutions. Few updates need a larger `meta_lr`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from rewardlab.checks.claim import Check, Within
from rewardlab.core import Batch, Learner, Outputs, Problem, Recipe, Rollout, Run, Update, loop, measure, objective, weighting
from rewardlab.data.columns import Column, Data
from rewardlab.data.values import number_of
from rewardlab.errors import RewardlabError
from rewardlab.evals.passk import mean_interval
from rewardlab.evals.reranked import auc_within
from rewardlab.methods.baselines.rlhf import pairs_in
from rewardlab.prm.recipe import scorer_recipe
from rewardlab.settings.domain import NonNegativeFloat, PositiveInt
from rewardlab.tasks.sources import Shuffled
from rewardlab.util.adam import adam_step
from rewardlab.util.outputs import values
from rewardlab.util.ranking import auc_of

MODEL, TABLE, MOMENTS = "prm", "dreamprm.table", "dreamprm.moments"
DECAY, BETAS = 1e-3, (0.9, 0.999)
Aggregate = Literal["mean", "sum"]

# ---- the domains and their weights -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Domains(Shuffled):
    """The solutions of all domains, in epochs, and the trusted ones beside them."""

    names: tuple[str, ...] = ()
    trusted: tuple[Problem, ...] = ()


def split(problems: Sequence[Problem], seed: int) -> Domains:
    """The solutions to learn from, and those that the column `trusted` names. Raises RewardlabError where a kind is missing."""
    by_trust = defaultdict(list)
    for p in problems:
        by_trust[bool(number_of(p.meta.get("trusted")))].append(p)
    names = tuple(sorted({domain_of(p) for p in by_trust[False]}))
    known = tuple(p for p in by_trust[True] if number_of(p.meta.get("right")) is not None)
    if len(names) < 2 or not known:
        raise RewardlabError(
            "dreamprm needs solutions of two domains or more (column `domain`), and trusted ones (true in `trusted`) with a "
            f"verdict in `right`: there are {len(by_trust[False])} of {len(names)} domains, and {len(known)} trusted"
        )
    return Domains(by_trust[False], seed, names=names, trusted=known)


def domain_of(problem: Problem) -> str:
    if (name := problem.meta.get("domain")) is None:
        raise RewardlabError(f"the solution to {problem.question[:60]!r} has no `domain`, and is not `trusted` either")
    return str(name)


def weights(table: Tensor) -> Tensor:
    """(K,) the weights of the domains, 1 on average; table: (K,) what is learnt."""
    positive = F.softplus(table)
    return positive / positive.mean()


def table_of(run: Run, names: Sequence[str]) -> Tensor:
    known = run.memory.setdefault(TABLE, {})
    return torch.tensor([known.setdefault(name, 0.0) for name in names])


@objective(unit="token", wants=("value",))
def weighted_step_error(out: Outputs, batch: Batch, run: Run) -> Tensor:
    """(B, T) the squared error at the end of each labelled step, times the weight of its solution's domain."""
    names = list(run.memory[TABLE])
    by_name = dict(zip(names, weights(table_of(run, names)).tolist(), strict=True))
    of_row = torch.tensor([by_name[domain_of(t.problem)] for t, _ in batch.rows], device=batch.ids.device)
    return of_row[:, None] * step_errors(out.value, batch)


def step_errors(value: Tensor, batch: Batch) -> Tensor:
    """(B, T) (sigmoid(V) - label)^2 at the ends of steps with a label, else 0."""
    return torch.where(batch.rewarded, (value.sigmoid() - batch.reward.clamp(0, 1)).square(), 0.0)


@weighting
def labelled_mean(batch: Batch) -> Tensor:
    """Every step with a label counts the same."""
    return batch.rewarded / batch.rewarded.sum().clamp(min=1)


# ---- the upper level -------------------------------------------------------------------------------------------------


def aggregated(value: Tensor, batch: Batch, aggregate: Aggregate) -> Tensor:
    """(B,) A of each solution, from the log-odds (B, T)."""
    said = [v[list(t.steps)] for v, (t, _) in zip(value, batch.rows, strict=True)]
    return torch.stack([x.mean() if aggregate == "mean" else x.sum() for x in said])


def outcome_errors(value: Tensor, batch: Batch, aggregate: Aggregate) -> Tensor:
    """(B,) (sigmoid(A) - right)^2."""
    right = torch.tensor([number_of(t.problem.meta["right"]) for t, _ in batch.rows], device=value.device)
    return (aggregated(value, batch, aggregate).sigmoid() - right).square()


def gradient(model: Any, batch: Batch, loss: Callable[[Tensor, Batch], Tensor], tokens: int) -> list[Tensor]:
    """Of the sum of a loss over the rows, by the weights that train, in passes of so many tokens."""
    trained = [p for p in model.parameters() if p.requires_grad]
    total = [torch.zeros_like(p, dtype=torch.float32) for p in trained]
    for rows in torch.arange(len(batch)).split(max(1, tokens // batch.width)):
        part = batch[rows]
        lost = loss(model.evaluate(part, ("value",)).value, part).sum()
        for own, g in zip(total, torch.autograd.grad(lost, trained, allow_unused=True), strict=True):
            if g is not None:
                own += g
    return total


def hypergradient(
    model: Any, batch: Batch, outcomes: Batch, names: Sequence[str], aggregate: Aggregate = "mean", tokens: int = 1 << 14
) -> Tensor:
    """(K,) the derivatives of the mean loss of trusted solutions by the weights of the domains, through one step on the batch."""
    upper = gradient(model, outcomes, lambda v, b: outcome_errors(v, b, aggregate) / len(outcomes), tokens)
    labelled, found = int(batch.rewarded.sum()), torch.zeros(len(names))
    rows_of = defaultdict(list)
    for i, (t, _) in enumerate(batch.rows):
        rows_of[domain_of(t.problem)].append(i)
    for name, rows in rows_of.items():
        lower = gradient(model, batch[torch.tensor(rows)], lambda v, b: step_errors(v, b) / max(labelled, 1), tokens)
        found[names.index(name)] = -sum(float((a * b).sum()) for a, b in zip(upper, lower, strict=True))
    return found


def learn_weights(run: Run, names: Sequence[str], by_weight: Tensor, rate: float) -> None:
    """One step of AdamW in the table. by_weight: (K,) the derivatives by the weights."""
    table = table_of(run, names).requires_grad_()
    (slope,) = torch.autograd.grad(weights(table) @ by_weight, table)
    step = adam_step(run.memory.setdefault(MOMENTS, {}), slope, BETAS)
    new = table.detach() * (1 - rate * DECAY) - rate * step
    run.memory[TABLE] = dict(zip(names, new.tolist(), strict=True))


@loop
def reweighted(
    recipe: Recipe, run: Run, ops: Any, *, every: PositiveInt = 5, meta_lr: NonNegativeFloat = 0.01, outcomes: PositiveInt = 16,
    aggregate: Aggregate = "mean",
) -> None:  # fmt: skip
    """One update of the model by the weighted loss; after every so many, one of the weights by so many trusted solutions.

    meta_lr: 0 keeps all weights at 1.
    """
    if not isinstance(ops.task.train, Domains):
        ops.task = replace(ops.task, train=split(pairs_in(ops, run, None), run.seed))
    source, learner = ops.task.train, ops.learners[MODEL]
    table_of(run, source.names)
    groups = ops.rollout(ops.problems())
    scores = ops.score(groups)
    batch = ops.collate(groups, scores)
    ops.learn(learner, batch, groups, scores)
    if meta_lr and (run.step + 1) % every == 0:
        drawn = torch.randperm(len(source.trusted), generator=run.rng("trusted"))[:outcomes].tolist()
        trusted = ops.collate(ops.rollout([source.trusted[i] for i in drawn]), None, learner, author=ops.policy.name)
        with ops.timed("train"):
            found = hypergradient(learner.model, batch, trusted, source.names, aggregate, ops.settings.micro_tokens)
        learn_weights(run, source.names, found, meta_lr)
    for name, weight in zip(source.names, weights(table_of(run, source.names)).tolist(), strict=True):
        run.log(f"weight/{name}", weight)


# ---- the best of n ---------------------------------------------------------------------------------------------------


@measure
def best_by_steps(
    problems: Sequence[Problem], run: Run, *, rollout: Rollout, model: str = MODEL, aggregate: Aggregate = "mean"
) -> dict[str, float]:
    """Of held-out solutions: how often the one of the highest A is right, among all to a prompt; how well steps are told apart.

    best_of_n: over the prompts with two solutions or more whose answers are known to be right or wrong; equals share.  pass@1: of
    these, a random one.  best: any of them.  outcome_auc: a right one above a wrong one to the same prompt.  step_auc: a step
    labelled right above one labelled wrong; 1/2 where there are not both.
    """
    rows = [t for group in rollout(list(problems), run) for t in group]
    odds = [v[list(t.steps)] for v, t in zip(values(run.model(model), rows), rows, strict=True)]
    labels = [t.problem.meta.get("labels") or [None] * len(t.steps) for t in rows]
    pairs = [pair for said, row in zip(odds, labels, strict=True) for pair in zip(said, row, strict=True)]
    to = defaultdict(list)
    for t, said in zip(rows, odds, strict=True):
        if (right := number_of(t.problem.meta.get("right"))) is not None:
            to[t.problem.key].append((float(said.mean() if aggregate == "mean" else said.sum()), right >= 1))
    several = [row for row in to.values() if len(row) > 1]
    auc = auc_of([(float(x), label >= 0.5) for x, label in pairs if label is not None])
    return {**_best(several), "step_auc": 0.5 if np.isnan(auc) else auc, "solutions": float(len(rows))}


def _best(several: Sequence[Sequence[tuple[float, bool]]]) -> dict[str, float]:
    if not several:
        return {}
    chosen = [float(np.mean([ok for x, ok in row if x == max(row)[0]])) for row in several]
    low, high = mean_interval(chosen)
    scores, right = [[x for x, _ in row] for row in several], [[ok for _, ok in row] for row in several]
    return {
        "best_of_n": float(np.mean(chosen)), "ci95_low": low, "ci95_high": high, "n": float(len(several)),
        "pass@1": float(np.mean([np.mean(row) for row in right])), "best": float(np.mean([any(row) for row in right])),
        "outcome_auc": auc_within(scores, right),
    }  # fmt: skip


# ---- the recipe ------------------------------------------------------------------------------------------------------


def dreamprm(
    base: Recipe | None = None, *, every: int = 5, meta_lr: float = 0.01, outcomes: int = 16, aggregate: Aggregate = "mean",
    problems: int = 16, prm_lr: float | None = None, init: str = "value-head",
) -> Recipe:  # fmt: skip
    """every: updates of the model to one of the weights.  meta_lr: of the weights; 0 keeps them uniform.  outcomes: trusted
    solutions for an update of the weights.  aggregate: of the log-odds of steps; "sum" is the paper's.  problems: solutions in a
    batch.  prm_lr, init: of the model (`Learner.init`)."""
    base = base or scorer_recipe("head", "mse", problems=problems)
    plain = scorer_recipe("head", "mse")
    learner = Recipe(
        objective=weighted_step_error(), weighting=labelled_mean(), update=Update(lr=prm_lr, loss_kind="scorer", small_lr=3e-4)
    )
    others = tuple(learner for learner in base.also if learner.name != MODEL)
    return base.but(
        rollout=plain.rollout,
        reward=plain.reward,
        measure=best_by_steps(rollout=plain.rollout, aggregate=aggregate),
        loop=reweighted(every=every, meta_lr=meta_lr, outcomes=outcomes, aggregate=aggregate),
        also=(*others, Learner(MODEL, init, learner)),
    )


fidelity = "core"
left_out = (
    "pictures, which the paper's model reads; labels by Monte Carlo (`rewardlab prm label`); a linear layer on the logits of the "
    "last token, here on the hidden state; and the rate halved after 5,000 updates"
)
data = Data(
    steps="a solution in steps, a list of texts",
    labels=Column("how right each of them is, a list of numbers from 0 to 1, or null; trusted solutions need none", some=True),
    domain=Column("the name of the data set that a solution with labels belongs to; trusted ones need none", some=True),
    trusted=Column("true for the few solutions by which the weights of the domains are learnt", some=True),
    right=Column("whether the final answer is right, as it is known of the trusted solutions, and of held-out ones", some=True),
    rows=[
        {
            "prompt": "Ann has 3 apples and buys 2 bags of 4. How many has she?",
            "steps": ["2 bags of 4 are 8 apples.", "3 + 8 = 11, so the answer is 11."], "labels": [1, 1], "domain": "apples",
        },
        {
            "prompt": "A book costs $12 and a pen a third of that. What do both cost, in dollars?",
            "steps": ["A pen costs 12 / 3 = 4.", "12 + 4 = 18."], "labels": [0.75, 0], "domain": "shops",
        },
        {"prompt": "A pen is $2, a book $10. What are both?", "steps": ["2 + 10 = 12."], "labels": [0.5], "domain": "shops"},
        {"prompt": "What is $2^5 - 7$?", "steps": ["2^5 = 32.", "32 - 7 = 25."], "right": True, "trusted": True},
        {"prompt": "What is $2^4 - 7$?", "steps": ["2^4 = 8.", "8 - 7 = 1."], "right": False, "trusted": True},
        {"prompt": "Bob has 5 pears and eats 2. How many has he?", "steps": ["5 - 2 = 3."], "labels": [1], "domain": "apples"},
    ],
)  # fmt: skip

SAME = {"init": "value-head:surprise", "prm_lr": 1e-3}
check = Check(
    says="where one domain of five has flipped labels and another trivial ones, weights learnt from trusted outcomes rank more "
    "right solutions above wrong ones to the same prompt than uniform weights do (the model reads surprise)",
    versus="dreamprm", task="labelled_domains:noisy=1", measure="outcome_auc", direction="higher", margin=0.02,
    settings={**SAME, "every": 2, "meta_lr": 0.1}, versus_settings={**SAME, "meta_lr": 0.0}, problems=600, steps=80,
    fault=Within("outcome_auc", high=0.8, says="right solutions above wrong ones, by uniform weights"),
    moved=Within("train.weight/four", high=-0.2, says="weight of the domain with flipped labels, uniform 1"),
    judge=Within("outcome_auc", low=0.6, says="right solutions above wrong ones, by the model"), learns=None, start=None,
    tried="one pair of runs of each: noisy=1, 80 steps, .65 and .68 (uniform, learnt), .76 and .76, weights of the noisy domains "
    ".59 and .29, .37 and .48; noisy=2, 40 steps, too few: .55 and .48. Best of eight: .17 to .45, of one .40",
    finding="the weights of the domains with flipped and trivial labels fall to .39 and .31, but right solutions come above wrong "
    "ones in 67%, by uniform weights in 64%: no more than chance could do. Best of eight: 37% and 30%, one at random 40%",
)  # fmt: skip
baseline = None
kind = "reward-model"
