"""KTO: learn from single replies labelled good or bad, with the utility function of prospect theory.

    r = log pi/ref(y);   z0 = max(0, mean over mismatched prompts and replies of log pi/ref);   w = w_good or w_bad
    loss = w (1 - sigmoid(beta (r - z0))) if y is good, w (1 - sigmoid(beta (z0 - r))) if it is bad

z0 estimates KL(pi || ref), the reference point from which gains and losses are measured. Replies far from it on either side have
little gradient. No prompt needs two replies; pairs are split. Rows may be of either form that is usual: the columns `chosen`,
`rejected` or both, or one reply in `completion` and true or false in `label`.

Ethayarajh et al. 2024, arXiv:2402.01306. Mismatched: each prompt of a batch with the next reply to another prompt, as in the paper
and its released code; TRL takes the previous reply. z0 carries no gradient. It is estimated once for a batch, before its updates;
the released code estimates it for each micro-batch.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from rewardlab.checks.claim import Claim
from rewardlab.core import Batch, Group, Outputs, Problem, Recipe, Run, Update, credit, objective, rollout
from rewardlab.data.columns import Column, Data
from rewardlab.data.values import number_of
from rewardlab.errors import RewardlabError
from rewardlab.evals.passk import accuracy
from rewardlab.objectives.pairs import row_sum
from rewardlab.rollouts.recorded import recorded

from .sft import sft_first

GOOD, BAD, EITHER = "chosen", "rejected", "completion"


def _accepts(problems: Sequence[Problem], fields: tuple[str, ...]) -> None:
    """Refuse a row without a judged reply, with its place: one that lacks its label stands for nothing."""
    for given, problem in zip(problems, (_by_label(p, fields) for p in problems), strict=True):
        if not any(problem.meta.get(field) for field in fields[:2]):
            raise RewardlabError(f"{given.place or f'prompt {given.question[:40]!r}'}: {_unjudged(given, fields)}")


def _unjudged(problem: Problem, fields: tuple[str, ...]) -> str:
    label = problem.meta.get("label")
    said = f"; its label is {label!r:.40}" if problem.meta.get(fields[-1]) and label is not None else ""
    return f"no judged reply: it needs a column {' or '.join(fields)}, the last of them with a `label` of true or false{said}"


@rollout(rows=lambda fields: len(fields[:2]), accepts=_accepts)
def judged(problems: list[Problem], run: Run, *, fields: tuple[str, ...] = (GOOD, BAD, EITHER)) -> list[Group]:
    """One row for each of the first two fields that a problem has, tagged with the field's name. A problem needs at least one.

    A problem without any may have a reply in the third: `label` says whether it is one of the first field or of the second.
    """
    problems = [_by_label(p, fields) for p in problems]
    groups: list[Group] = [[] for _ in problems]
    for i, field in enumerate(fields[:2]):
        labelled = [p for p in problems if p.meta.get(field)]
        # one call per field: `recorded` needs the field in every problem, and returns one reply for each
        rows = iter(recorded(fields=(field,))(labelled, run)) if labelled else iter(())
        for p, group in zip(problems, groups, strict=True):
            if p.meta.get(field):
                group.append(replace(next(rows)[0], path=(i,)))
    for p, group in zip(problems, groups, strict=True):
        if not group:
            raise RewardlabError(f"problem {p.question[:60]!r}: {_unjudged(p, fields)}")
    return groups


def _by_label(problem: Problem, fields: tuple[str, ...]) -> Problem:
    *names, either = fields
    # in a table it is a text, "True" as pandas writes it
    reply, label = problem.meta.get(either), number_of(problem.meta.get("label"))
    if len(names) != 2 or not reply or label not in (0.0, 1.0) or any(problem.meta.get(name) for name in names):
        return problem
    return replace(problem, meta={**problem.meta, names[0 if label else 1]: reply})


def mismatched(rows: Group, context: int) -> Group:
    """Each row's prompt with the next row's reply to another problem (in the order good, bad), cut to `context` tokens."""
    order = sorted(range(len(rows)), key=lambda i: rows[i].tag != GOOD)
    # the index of the turn with which each reply begins
    reply_starts = [next(k for k, turn in enumerate(t.turns) if turn.author is not None) for t in rows]
    mixed = list(rows)
    for place, i in enumerate(order):
        # the next rows in this order, from the start again after the last
        candidates = (j for j in (*order[place + 1 :], *order[:place]) if rows[j].problem.key != rows[i].problem.key)
        if (j := next(candidates, None)) is None:
            raise RewardlabError("KTO compares replies with those to other problems: a batch needs two problems; raise --problems")
        # a long prompt with a long reply may exceed the context; the reply loses its end
        mixed[i] = replace(rows[i], turns=(*rows[i].turns[: reply_starts[i]], *rows[j].turns[reply_starts[j] :])).cut(context)
    return mixed


@credit(needs=("ref",))
def reference_point(a: Tensor, batch: Batch, run: Run) -> Tensor:
    """z0 (nats per reply) at every position. It is the reference point for `kto_loss`, not an advantage."""
    rows = mismatched([t for t, _ in batch.rows], run.policy.context)
    scored_rows = zip(rows, run.policy.score(rows), run.reference.score(rows), strict=True)
    log_ratios = [float((logprobs - ref)[t.mask].sum(dtype=np.float64)) for t, logprobs, ref in scored_rows]  # float64: long sums
    # a KL is never negative, but its estimate from few mismatched replies can be
    z0 = max(0.0, float(np.mean(log_ratios)))
    run.log("reference_point", z0)
    return torch.full_like(a, z0)


@objective(unit="row", needs=("ref",))
def kto_loss(
    out: Outputs, batch: Batch, run: Run, *, beta: float = 0.1, desirable: float = 1.0, undesirable: float = 1.0
) -> Tensor:
    """1 minus the utility of each reply, weighted by its label; credit is the reference point."""
    good = torch.tensor([t.tag == GOOD for t, _ in batch.rows], device=batch.ids.device)
    gain = row_sum(out.logprobs - batch.ref, batch) - batch.credit[:, 0]  # (B,) z0 is the same at every position
    # 1 - sigmoid(x) = sigmoid(-x), which keeps its precision where sigmoid(x) rounds to 1
    return torch.where(good, desirable, undesirable) * torch.sigmoid(-beta * torch.where(good, gain, -gain))


def kto(
    base: Recipe | None = None, *, beta: float = 0.1, desirable: float = 1.0, undesirable: float = 1.0, lr: float | None = None,
    problems: int = 16, sft_steps: int = 0,
) -> Recipe:  # fmt: skip
    """desirable, undesirable: weights of good and bad replies, to balance unequal numbers.  problems: per step,
    each with a good reply, a bad one, or both: 16 pairs are the paper's 32 replies.
    sft_steps: steps of SFT on the column `chosen` before the others, as in `dpo`; each problem needs one for it."""
    base = base or Recipe(name="kto", measure=accuracy(), update=Update())
    loss = kto_loss(beta=beta, desirable=desirable, undesirable=undesirable)
    first = sft_first(steps=sft_steps) if sft_steps else base.loop
    return base.but(
        rollout=judged(),
        credit=reference_point(),
        objective=loss,
        loop=first,
        lr=lr,
        loss_kind="preference",
        small_lr=None,
        problems=problems,
    )


fidelity = "whole"
data = Data(
    chosen=Column("a good reply; a row may have a good one, a bad one, or both", optional=True),
    rejected=Column("a bad reply", optional=True),
    completion=Column("a reply, where a row has neither of these", optional=True),
    label=Column("whether `completion` is good: true or false", optional=True),
    rows=[
        {"prompt": "Name a planet.", "chosen": "Mars."},
        {"prompt": "Why do leaves fall?", "rejected": "Because of gravity alone."},
        {"prompt": "What is $2^5 - 7$?", "chosen": "$2^5 = 32$, so it is 25.", "rejected": "\\boxed{3}"},
        {"prompt": "How does one boil an egg?", "completion": "In a pan, somehow.", "label": False},
    ],
)

claim = Claim(
    says="with labels turned round now and then, single good and bad replies teach more than the pairs teach DPO",
    versus="dpo", task="preferences:writer=policy,biased=0.75,error=0.1,flip=0.15", measure="pass@1", direction="higher",
    margin=0.02, settings={"problems": 32}, steps=40,
    tried="the share of pairs whose better reply is likelier, at 3e-4: .86 after both; three labels in ten turned round, from "
    "which DPO learns too little to compare with: -.012 on five pairs",
    finding="47% right before; 59% with KTO and 60% with DPO, from as many replies of which one label in seven is wrong: single "
    "labels teach nearly as much as pairs, here where pairs are to be had. The reference point z0 is 0 in the last quarter of "
    "all runs: it has no effect there. Labels of unequal number, for which KTO was made, are not tested",
    version=3, replaces="DPO did not learn, where three labels in ten were turned round",
)  # fmt: skip
