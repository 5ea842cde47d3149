"""DeepSeek-GRM: a judge writes principles for the question, a critique, and a score of every reply; many such scores are summed.

    S_1 .. S_n ~ pi(. | x, y_1 .. y_n);      r = 1 if the best reply's score is the highest alone, else -1
    first   imitate samples with r = 1: of n_rft of a row, unless all have it; and one whose prompt says which reply is best
            (rejective fine-tuning)
    then    GRPO on r over n samples, with beta KL(pi || pi after the first stage)             (rule-based online RL)
    held out:   S*_i = sum over the k_meta samples, of k, that a meta RM scores highest, of S_i;   the replies in another order each
    meta RM:    L = -log sigmoid(V) of samples with r = 1, -log sigmoid(-V) of the others

One sample scores by a few principles and in whole numbers, so that replies tie; the sum sees more principles and finer differences.
Principles that the judge chooses itself differ from sample to sample, and some are beside the point: the meta RM leaves these out.
r has no term for the form; the KL keeps it, and with a small one the judge became biased.

Liu et al. 2025, arXiv:2504.02495 (self-principled critique tuning, SPCT), by the paper and its appendices; training code was not
released. n = 4, beta = .08 (for its model of 16B .002), n_rft = 3, votes at a temperature of .5, k_meta = k / 2 and 12.5 times the
rate of RL in the first stage (5e-6 and 4e-7) are the paper's. (inferred): the meta RM learns beside the judge, from all samples of
both stages but hinted ones, and reads the question as the judge does; the words of the hint; samples that cannot be read have no
vote; where the highest sum is tied, each of these replies is chosen equally often. Where several replies are worth the most, any of
them is the best.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from rewardlab.checks.claim import Check
from rewardlab.core import (
    Batch,
    Group,
    Learner,
    Loop,
    Problem,
    Recipe,
    Rollout,
    Run,
    Sampling,
    Score,
    Trajectory,
    Update,
    loop,
    measure,
    rollout,
    seed_of,
    weighting,
)
from rewardlab.data.columns import Column, Data
from rewardlab.evals.passk import mean_interval
from rewardlab.judges.cases import UNREAD, WORTH, cases_of, to_judge
from rewardlab.judges.forms import Kind
from rewardlab.judges.named import form_of
from rewardlab.methods.baselines.grpo import grpo
from rewardlab.methods.baselines.trained_judge import trained_judge
from rewardlab.objectives.labels import label_cross_entropy
from rewardlab.objectives.ratio import imitate
from rewardlab.objectives.regularise import kl_to_reference
from rewardlab.rewards.judgements import right_judgement
from rewardlab.rewards.model import model_score
from rewardlab.rewards.reward import reward
from rewardlab.settings.domain import NonNegativeFloat, NonNegativeInt, PositiveFloat, PositiveInt
from rewardlab.text.filled import filled
from rewardlab.worlds.graded import BY_QUESTION

HINTED = "hinted"
HINT = "\n\nThe best of these responses is number {number} ({letter})."

# ---- votes ---------------------------------------------------------------------------------------------------------------------


class Vote(NamedTuple):
    """Scores that one sample gives the replies of a row, in the row's order; None where it cannot be read.  quality: by the
    meta RM."""

    scores: tuple[float, ...] | None
    quality: float


def summed(votes: Sequence[Vote], shown: int, best: int | None = None) -> list[float]:
    """The sum of the scores of each reply, over the `best` votes of the highest quality among those that can be read; None: all."""
    known = sorted((v for v in votes if v.scores is not None), key=lambda v: -v.quality)
    return np.sum([[0.0] * shown, *(v.scores or () for v in known[:best])], axis=0).tolist()


def chance_of_best(totals: Sequence[float], worth: Sequence[float]) -> float:
    """How likely the best reply is chosen: 1 where its total is the highest, 1/m of the time among m that tie with it."""
    # sums of the same scores in another order differ in their last digits
    top = [i for i, total in enumerate(totals) if np.isclose(total, max(totals))]
    return float(np.mean([worth[i] == max(worth) for i in top]))


@measure
def guided_votes(
    problems: Sequence[Problem], run: Run, *, form: str = "", kind: Kind = "scores", k: PositiveInt = 8,
    best: NonNegativeInt = 0, temperature: NonNegativeFloat = 0.5, meta: str = "meta",
) -> dict[str, float]:  # fmt: skip
    """How often the best reply of held-out rows is chosen: by the votes that the meta RM keeps, by all k of them, and by one.

    guided: by the sum of the `best` votes that the model `meta` scores highest (0: half of them).  voted: of all.  judged: by a
    single one, on average.  unread: votes without scores.  meta_auc: how often the meta RM scores a right vote above a wrong one,
    ties half; left out where all are right, or none.
    """
    of = form_of(form, kind)
    cases = [cases_of(p, of)[0] for p in problems]
    orders = [_orders(p, len(case.replies), k) for p, case in zip(problems, cases, strict=True)]
    asked = [to_judge(p, c.at(o), of) for p, c, row in zip(problems, cases, orders, strict=True) for o in row]
    begun = run.policy.read([Trajectory(q) for q in asked], [q.prompt for q in asked])
    for t in begun:
        run.policy.check_fits(t, run.max_new)
    said = run.policy.extend(begun, Sampling(run.max_new, temperature), run.rng("judgements"))
    qualities = [row[0].value or 0.0 for row in model_score(model=meta)([[t] for t in said], run)]
    flat = iter(zip(said, qualities, strict=True))
    votes = [[_vote(of.read(t.reply, len(o)).values, o, q) for o, (t, q) in zip(row, flat, strict=False)] for row in orders]
    return _told([case.worth for case in cases], votes, best or max(1, k // 2))


def _orders(problem: Problem, shown: int, k: int) -> list[list[int]]:
    rng = random.Random(seed_of("votes", problem.key))
    return [rng.sample(range(shown), shown) for _ in range(k)]


def _vote(values: tuple[float, ...] | None, order: Sequence[int], quality: float) -> Vote:
    """The scores as the row has the replies.  order: the places there of those that the judge saw."""
    return Vote(None if values is None else tuple(values[order.index(i)] for i in range(len(order))), quality)


def _found(votes: Sequence[Vote], worth: Sequence[float], best: int | None = None) -> float:
    """How likely the best reply is chosen by these votes; that no vote can be read is no choice by lot."""
    readable = any(v.scores is not None for v in votes)
    return chance_of_best(summed(votes, len(worth), best), worth) if readable else UNREAD


def _told(worth: list[tuple[float, ...]], votes: list[list[Vote]], best: int) -> dict[str, float]:
    rows = list(zip(worth, votes, strict=True))
    guided, voted = ([_found(row, w, kept) for w, row in rows] for kept in (best, None))
    single = [[_found([v], w) for v in row] for w, row in rows]
    low, high = mean_interval(guided)
    told = {
        "guided": float(np.mean(guided)), "ci95_low": low, "ci95_high": high, "n": float(len(rows)),
        "voted": float(np.mean(voted)), "judged": float(np.mean(single)),
        "unread": float(np.mean([v.scores is None for row in votes for v in row])),
    }  # fmt: skip
    known = [(v.quality, x == 1) for row, own in zip(votes, single, strict=True) for v, x in zip(row, own, strict=True)]
    right, wrong = ([q for q, ok in known if ok == side] for side in (True, False))
    if right and wrong:
        over = np.subtract.outer(right, wrong)
        told["meta_auc"] = float(np.mean((over > 0) + 0.5 * (over == 0)))
    return told


# ---- rejective fine-tuning -------------------------------------------------------------------------------------------------------


@rollout(wraps="inner")
def and_hinted(problems: list[Problem], run: Run, *, inner: Rollout, hint: str = HINT) -> list[Group]:
    """The samples of `inner`, and one more of each row, which is told which reply is best; it is recorded as if it were not."""
    groups = inner(problems, run)
    asked = [group[0].problem for group in groups]
    told = [q.reworded(q.question + filled(hint, number=str(_best(q) + 1), letter=chr(ord("A") + _best(q)))) for q in asked]
    begun = run.policy.read([Trajectory(q) for q in told], [q.prompt for q in told])
    said = run.policy.extend(begun, Sampling(run.max_new), run.rng("hinted"))
    plain = run.policy.read([Trajectory(q) for q in asked], [q.prompt for q in asked])
    written = run.policy.write(plain, [t.reply for t in said])
    return [[*group, replace(t, tag=HINTED)] for group, t in zip(groups, written, strict=True)]


def _best(question: Problem) -> int:
    """The place of the best reply among those that the question shows."""
    worth = question.meta[WORTH]
    return max(range(len(worth)), key=lambda i: worth[i])


@weighting
def right_of_hard_rows(batch: Batch) -> Tensor:
    """Every decision of right samples counts the same, those of wrong ones nothing, nor of rows that all samples get right.

    Samples that were told the best reply count if they are right, and say nothing of how hard a row is.
    """
    right = torch.where(batch.mask, batch.reward, 0.0).sum(1) > 0
    hinted = torch.tensor([t.tag == HINTED for t, _ in batch.rows], dtype=torch.bool, device=right.device)
    easy = torch.stack([(right | hinted)[batch.group == g].all() for g in batch.group])
    weight = batch.mask & (right & (hinted | ~easy))[:, None]
    # where no sample is kept all weights are 0 and the update is empty, instead of 0 / 0
    return weight / weight.sum().clamp(min=1)


@reward
def right_unhinted(trajectory: Trajectory, *, form: str = "", kind: Kind = "scores") -> Score:
    """1 for a right judgement, 0 for a wrong one; no verdict where the judge was told the best reply."""
    if trajectory.tag == HINTED:
        return Score(None, why="the judge was told which reply is best")
    return right_judgement(form=form, kind=kind, wrong=0.0)([[trajectory]], Run(None))[0][0]


@loop(wraps="inner", first=("steps",))
def rejective_first(
    recipe: Recipe, run: Run, ops: Any, *, steps: NonNegativeInt, n: PositiveInt = 3, hinted: bool = True,
    lr_scale: PositiveFloat = 12.5, inner: Loop | None = None,
) -> None:  # fmt: skip
    """Imitate right samples of rows that are not trivial, of n of each, in the first `steps` steps, from which the meta RM learns
    too. Then the policy so far becomes the reference, and training goes on by the recipe.

    hinted: one sample of each row more, which is told the best reply.  lr_scale: the learning rate of these steps, as a multiple of
    the recipe's.  inner: how a step of the recipe is taken.
    """
    if 0 < run.step == steps:
        ops.new_stage()
    if run.step >= steps:
        inner(recipe, run, ops) if inner else ops.standard_step(recipe)
        return
    plain = recipe.required("rollout").but_innermost(n=n)
    sampled = and_hinted(inner=plain) if hinted else plain
    lr = lr_scale * recipe.update.rate
    ops.standard_step(recipe.but(rollout=sampled, credit=None, objective=imitate(), weighting=right_of_hard_rows(), lr=lr))


# ---- the recipe ------------------------------------------------------------------------------------------------------------------


def deepseek_grm_spct(
    base: Recipe | None = None, *, form: str = "deepseek_grm", kind: Kind = "scores", n: int = 4, problems: int = 16,
    rft: NonNegativeInt = 20, n_rft: PositiveInt = 3, hinted: bool = True, rft_lr_scale: float = 12.5,
    beta: NonNegativeFloat = 0.08, votes: int = 8, k_meta: int = 0, temperature: float = 0.5, init: str = "value-head",
    meta_lr: float | None = None, lr: float | None = None,
) -> Recipe:  # fmt: skip
    """form, kind, problems: as in `trained_judge`; a text has {prompt} and {replies}.  n: samples of a row in RL.

    rft: first steps, which imitate right ones of n_rft samples.  hinted: and of one more, which is told the best reply.
    rft_lr_scale: their rate, as a multiple of that of RL.  beta: weight of the KL to the policy after them.  votes: samples of a
    held-out row.  k_meta: of these, so many that the meta RM chooses vote; 0: half.  temperature: of votes.  init, meta_lr: of the
    meta RM (`Learner.init`)."""
    base = base or grpo(n=n)
    base = trained_judge(base, form=form, kind=kind, problems=problems, lr=lr)
    labels = right_unhinted(form=form, kind=kind)
    scorer = Recipe(reward=labels, objective=label_cross_entropy(), update=Update(lr=meta_lr, loss_kind="scorer"))
    objective = base.required("objective")
    return base.but(
        objective=objective + beta * kl_to_reference() if beta else objective,
        loop=rejective_first(steps=rft, n=n_rft, hinted=hinted, lr_scale=rft_lr_scale, inner=base.loop) if rft else base.loop,
        measure=guided_votes(form=form, kind=kind, k=votes, best=k_meta, temperature=temperature),
        also=(*base.also, Learner("meta", init, scorer)),
    )


fidelity = "core"
left_out = (
    "fine-tuning data of other kinds beside the judgements; scores of a single reply, which its label must equal; a first stage "
    "over a fixed set of samples of a larger model: here the judge samples as it learns; leaving rows out of RL that a small model "
    "always gets right"
)
data = Data(
    replies=Column("a list of replies to score together (or a pair, `chosen` and `rejected`)", optional=True),
    scores=Column("what each of the replies is worth, of which the highest counts", optional=True),
    chosen=Column("the better reply of a pair", optional=True), rejected=Column("the worse one", optional=True),
    rows=[
        {
            "prompt": "Why do leaves fall?", "replies": ["Because of gravity.", "Trees save water in winter.", "They do not."],
            "scores": [1, 2, 0],
        },
        {"prompt": "How does one boil an egg?", "chosen": "Seven minutes in boiling water.", "rejected": "In a pan, somehow."},
    ],
)  # fmt: skip

check = Check(
    says="the summed scores of eight samples find the best of three notes more often than the scores of one do",
    versus=None, task="graded", measure="voted", direction="higher", margin=0.05, against="judged",
    settings={"form": BY_QUESTION, "rft": 5, "rft_lr_scale": 1.0, "temperature": 1.0}, problems=200, steps=30,
    tried="`guided` against `voted` of four votes, on this world: after 30 steps the meta RM tells right samples from wrong ones "
    "no better than chance (AUC .46), and half of the votes do worse (.54) than all of them (.65)",
    finding="one sample finds the best of three notes in 48% of cases, eight summed in 63% (43% and 60% before training); the "
    "half of them that the meta RM chooses in 60%: it tells right samples at an AUC of .61, which is worth less than "
    "the votes that it leaves out",
)  # fmt: skip
baseline = "trained_judge"
