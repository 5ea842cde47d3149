"""CompassJudger-2: a judge imitates its right judgements, with a margin between right and wrong verdict at the token that gives it.

    y: of n judgements those whose verdict is the label (rejection sampling);     t: the token at which the verdict stands
    L = mean over the tokens of y:  -log pi(y_i) at i != t,
        and at t the mean over the ten likeliest other tokens k of  max(0, m - [log pi(y_t) - log pi(k)])

The reward of a judgement can be verified, and it hangs on one token of hundreds. There the margin takes the place of likelihood: it
is a policy gradient on that token, which goes on where likelihood is content, until the right verdict is e^m times as likely as
anything else that could stand there. Held against the wrong verdict alone, it lets both become unlikely: a small judge that learnt
so had no verdict in 96% of its judgements after 40 steps, and in 0.4% as it is here.

Zhang et al. 2025, arXiv:2507.09104: its table of losses, its settings (n = 8, m = 10, weight 1; 6e-5, batches of 512, one epoch)
and the prompt of its appendix, whose parts are followed, and which asks for JSON; the repository (open-compass/CompassJudger) has
no training code. (inferred): the mean over the ten tokens; that the judgements are those of the policy as it begins, since one that
imitates its own of each step writes ever shorter ones (a small one 8 tokens in place of 16 after 60 steps). Where the verdict
stands is found by a second row, the same judgement with the opposite mark, which shares all tokens before t: so the marks of any
form will do, whatever their tokens are.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from rewardlab.checks.claim import Check, Within
from rewardlab.core import Batch, Group, Learner, Outputs, Problem, Recipe, Rollout, Run, Trajectory, measure, objective, rollout
from rewardlab.data.columns import Column, Data
from rewardlab.errors import RewardlabError
from rewardlab.evals.judgements import accuracy_of, judged
from rewardlab.judges.cases import WORTH, agrees
from rewardlab.judges.forms import TWO_REPLIES, Form, Kind
from rewardlab.judges.marks import Marks
from rewardlab.judges.named import form_of
from rewardlab.methods.baselines.sft import sft
from rewardlab.rewards.judgements import right_judgement
from rewardlab.rollouts.judgements import Keep, accepted_judgements
from rewardlab.settings.domain import NonNegativeFloat, PositiveInt
from rewardlab.worlds.duels import FORM as SMALL_FORM

FORM = (
    """Two assistants reply to a question. Which reply is better?

Go through these parts, step by step. Demand: what the user asks for, with every constraint. Strengths of A, and weaknesses of A:
how well it meets the demand, and where it does not. Strengths of B, and weaknesses of B. Reasoning: which reply meets the demand
better. End with your verdict: [[A]] if reply A is better, [[B]] if reply B is.

"""
    + TWO_REPLIES
)
OTHERS = 10
"""Tokens that the right verdict is to be likelier than."""
WRONG = "wrong verdict"
"""The tag of a judgement with its verdict reversed."""


def with_other_verdict(judgement: str, marks: Marks) -> str | None:
    """The judgement with the mark whose value is the furthest from its last one's in that one's place; None where it has none."""
    found = list(marks.pattern.finditer(judgement))
    values: Mapping[str, float] = marks.values
    if not found or (said := found[-1][1]).casefold() not in values:
        return None
    # of equally far ones, for a tie say, the first, so that the same is taken each time
    other = max(values, key=lambda name: abs(values[name] - values[said.casefold()]))
    start, end = found[-1].span(1)
    return judgement[:start] + (other.upper() if said.isupper() else other) + judgement[end:]


def marks_of(form: str, kind: str = "pairwise") -> Marks:
    """The marks of a form; RewardlabError for one that has scores of several replies instead."""
    if (marks := form_of(form, kind).marks) is None:
        raise RewardlabError(f"a margin between verdicts needs a form with marks, and {form or kind} has scores of several replies")
    return marks


def check_marks(form: str, kind: str, **_: Any) -> None:
    marks_of(form, kind)


@rollout(wraps="inner", check=check_marks)
def both_verdicts(problems: list[Problem], run: Run, *, inner: Rollout, form: str = "", kind: Kind = "pairwise") -> list[Group]:
    """Each judgement of `inner`, which has one of a row, followed by the same with the opposite verdict (tagged `WRONG`)."""
    marks, groups = marks_of(form, kind), []
    for (t,) in inner(problems, run):
        text = with_other_verdict(t.reply, marks)
        begun = run.policy.read([Trajectory(t.problem)], [t.problem.prompt])
        other = run.policy.write(begun, [text])[0] if text is not None else t
        groups.append([t, replace(other, tag=WRONG)])
    return groups


def verdict_place(batch: Batch) -> Tensor:
    """(G, T) the place where the two rows of a pair first differ; nowhere in a pair of the same rows."""
    differ = (batch.ids[::2] != batch.ids[1::2]) & batch.mask[::2] & batch.mask[1::2]
    return differ & (differ.cumsum(1) == 1)


def short_of_margin(logits: Tensor, ids: Tensor, *, least: float = 10.0) -> dict[str, Tensor]:
    """short: (N,) the mean of max(0, least - [log p of the token - log p of another]) over the ten likeliest others of (N, V)
    logits."""
    # differences of logits are those of log-probs
    own, others = logits.gather(1, ids[:, None]), logits.scatter(1, ids[:, None], -torch.inf)
    likeliest = others.topk(min(OTHERS, logits.shape[1] - 1), dim=1).values
    return {"short": (least - (own - likeliest)).clamp(min=0).mean(1)}


@objective(unit="group", per_token=short_of_margin)
def verdict_margin(
    out: Outputs, batch: Batch, run: Run, *, gamma: NonNegativeFloat = 1.0, least: NonNegativeFloat = 10.0
) -> Tensor:
    """(G,) the mean over the first row's tokens of -log p, in whose place at the verdict stands gamma times `short_of_margin`.

    gamma=0: likelihood alone, at the verdict too.
    """
    losses = torch.where(batch.mask, -out.logprobs, 0.0)
    if gamma:
        losses = torch.where(verdict_place(batch).repeat_interleave(2, 0), gamma * out.extra["short"], losses)
    return losses[::2].sum(1) / batch.mask[::2].sum(1).clamp(min=1)


@measure
def verdicts_apart(
    problems: Sequence[Problem], run: Run, *, form: str = "", kind: Kind = "pairwise", k: PositiveInt = 1
) -> dict[str, float]:
    """As `judgement_accuracy`; and verdict_margin, the mean of log p(right verdict) - log p(wrong one) after what each held-out
    judgement says before its verdict, over those that have one."""
    of = form_of(form, kind)
    found = judged(problems, run, of, k)
    rows = []
    for a, texts in zip(found.asked, found.texts, strict=True):
        for text in texts:
            if (other := with_other_verdict(text, marks_of(form, kind))) is not None:
                right, wrong = (_right(of, x, a.question) for x in (text, other))
                # after a tie both may be wrong
                rows += [(a.question, *((text, other) if right else (other, text)))] if right != wrong else []
    apart = _apart(run.policy, rows)
    return accuracy_of(found) | ({"verdict_margin": float(np.mean(apart))} if apart else {})


def _right(form: Form, judgement: str, question: Problem) -> bool:
    values = form.read(judgement, len(question.meta[WORTH])).values
    return values is not None and agrees(values, question.meta[WORTH])


def _apart(policy: Any, rows: Sequence[tuple[Problem, str, str]]) -> list[float]:
    """log p of the verdict of the first judgement of a question - log p of that of the second, which differs in it alone."""
    if not rows:
        return []
    asked = policy.read([Trajectory(p) for p, *_ in rows], [p.prompt for p, *_ in rows])
    right, wrong = (policy.write(asked, [row[i] for row in rows]) for i in (1, 2))
    apart = []
    for a, b, x, y in zip(right, wrong, policy.score(right), policy.score(wrong), strict=True):
        both = min(len(a), len(b))
        if len(differ := np.flatnonzero(a.ids[:both] != b.ids[:both])):
            apart.append(float(x[differ[0]] - y[differ[0]]))
    return apart


def compassjudger_2(
    base: Recipe | None = None, *, form: str = FORM, kind: Kind = "pairwise", n: int = 8, keep: Keep = "all", gamma: float = 1.0,
    least: float = 10.0, writer: str = "copy:policy", problems: int = 16, lr: float | None = None,
) -> Recipe:  # fmt: skip
    """form, kind: what the judge is asked (`trained_judge`).  n: judgements of a row.  keep: which of those with the right verdict
    are imitated.  gamma, least: weight of the margin, 0 for likelihood in its place, and its m.  writer: a model that writes the
    judgements and does not learn (`Learner.init`), the policy as it begins or a larger one; empty: the policy as it learns."""
    base = base or sft(problems=problems, lr=lr)
    paid = right_judgement(form=form, kind=kind)
    kept = accepted_judgements(by=paid, form=form, kind=kind, n=n, keep=keep, writer="writer" if writer else "policy")
    also = (*base.also, Learner("writer", writer, Recipe(), every=0)) if writer else base.also
    return base.but(
        rollout=both_verdicts(inner=kept, form=form, kind=kind), objective=verdict_margin(gamma=gamma, least=least),
        weighting=None, measure=verdicts_apart(form=form, kind=kind), also=also, small_lr=1e-4,
    )  # fmt: skip


fidelity = "core"
left_out = (
    "the curated mixture of judge data of several domains and general instructions, which is the user's rows; JudgerBenchV2; the "
    "other two losses that the paper compares with the margin"
)
data = Data(
    chosen="the better reply", rejected="the worse reply",
    judgement=Column("a judgement to imitate, where the better reply stands first", optional=True),
    rows=[
        {"prompt": "Why do leaves fall?", "chosen": "Trees save water in winter.", "rejected": "Because of gravity alone."},
        {
            "prompt": "How does one boil an egg?", "chosen": "Seven minutes in boiling water.", "rejected": "In a pan, somehow.",
            "judgement": "A says how long, B says nothing that one could do. [[A]]",
        },
    ],
)  # fmt: skip

check = Check(
    says="with a margin between the two verdicts, a judge that imitates its right judgements gives more right verdicts than one "
    "that imitates them alone",
    versus="compassjudger_2", task="duels", measure="judged", direction="higher", margin=0.02, settings={"form": SMALL_FORM},
    versus_settings={"form": SMALL_FORM, "gamma": 0.0}, problems=300, steps=60, moved=Within("verdict_margin", low=0.5),
    tried="a rate of 1e-3, with a margin to the wrong verdict alone: right verdicts fell from 64% to 47%, to 52% without it; as "
    "it is now, once on wishes alone: 57% before, 61% with the margin and 61% without it, 1.9 and 1.5 apart",
    finding="the margin parts the two verdicts by 4.0 nats, likelihood by 3.3 (3.0 at first), and verdicts are right as often, "
    "68 and 69% from 66%: it is surer, and no more often right",
)  # fmt: skip
baseline = "trained_judge"
