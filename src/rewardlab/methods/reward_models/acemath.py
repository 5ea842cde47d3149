"""AceMath-RM: a reward model from lists of right and wrong solutions, taken from the clearest by another model's scores.

    candidates of several models, right or wrong by the verifier:  the `top` right ones of the highest score s, the `top` wrong ones
    of the lowest; `size` of these at random, k of them right, half where there are as many
    L = -1 / (k (size - k))  sum over right y, wrong y'  of  log sigmoid(r(x, y) - r(x, y'))
    rm@n: whether the reply of the highest r among n is right

A verifier that cannot read every form of an answer calls right solutions wrong. These are the wrong ones that a reward model rates
high, so leaving those out cleans the labels; prompts with right or with wrong candidates alone teach nothing and are left out. All
pairs of a list cost one pass over its replies, where as many separate pairs cost several.

Liu et al. 2024, arXiv:2412.15084, sections 4.1.2, 4.2 and 4.3.1: top = 14, size = 6, 64 candidates of eight models in the
benchmark; two epochs at 5e-6 (7B) and 2e-6 (72B), 256 lists an update. No training code was released. Where their rm@8 is the mean
over 100 random sets of 8, this is the mean over all sets. (inferred): a prompt has the same list each time; where one kind is rare,
the other fills the list.

`replies` of a row are the candidates; `right` says which are, or the task's verifier by the `answer`. Without `scores` any may be
chosen. rewardlab data pass-rate --keep-replies makes such rows: name its column with --right scores.
"""

import random
from collections.abc import Sequence
from dataclasses import replace
from math import comb
from typing import Any, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from rewardlab.checks.claim import Check, Within
from rewardlab.core import Batch, Group, Learner, Outputs, Problem, Recipe, Run, Update, measure, objective, rollout, seed_of
from rewardlab.data.columns import Column, Data
from rewardlab.data.values import list_of, number_of
from rewardlab.errors import NothingKept, RewardlabError
from rewardlab.evals.pairs import end_values
from rewardlab.evals.passk import mean_interval
from rewardlab.evals.reranked import auc_within
from rewardlab.methods.baselines.bradley_terry import bradley_terry
from rewardlab.objectives.pairs import last_value, row_sum
from rewardlab.rewards.recorded import verdict_in_data
from rewardlab.rollouts.ranked import recorded_pairs
from rewardlab.settings.domain import PositiveInt

TRUE = "true_scores"
"""The column of what replies are really worth, where the data knows."""


class Candidate(NamedTuple):
    text: str
    right: bool
    score: float
    truly: bool | None


def chosen_of(candidates: Sequence[Candidate], size: int, top: int, key: str) -> list[Candidate]:
    """`size` of the candidates, right ones first: of the `top` right ones of the highest scores and wrong ones of the lowest."""
    rng = random.Random(seed_of("acemath", key))
    right = sorted((c for c in candidates if c.right), key=lambda c: -c.score)[:top]
    wrong = sorted((c for c in candidates if not c.right), key=lambda c: c.score)[:top]
    k = min(len(right), max(size // 2, size - len(wrong)))
    return rng.sample(right, k) + rng.sample(wrong, min(len(wrong), size - k))


@rollout(rows=lambda size, **_: size)
def score_sorted(
    problems: list[Problem], run: Run, *, size: PositiveInt = 6, top: PositiveInt = 14, replies: str = "replies",
    right: str = "right", at_least: float = 1.0, scores: str = "scores", attempts: PositiveInt = 20,
) -> list[Group]:  # fmt: skip
    """A group for each problem that has right and wrong candidates: `size` of them, chosen by their scores, right ones first.

    replies, right, scores: the columns of the candidates, of a number each that is `at_least` so much if it is right, and of the
    scores by which they are sorted.  Other problems are asked for in the place of those that teach nothing, `attempts` times.
    Logged: usable, the share of problems with candidates of both kinds; true_labels, where the data has a column `true_scores`.
    """
    kept: list[tuple[Problem, list[Candidate]]] = []
    wanted, looked_at = len(problems), 0
    for _ in range(attempts):
        looked_at += len(problems)
        for problem, found in zip(problems, _labelled(problems, run, replies, right, at_least, scores), strict=True):
            if len({c.right for c in found}) == 2:
                kept.append((problem, chosen_of(found, size, top, problem.key)))
        if len(kept) >= wanted or run.more_problems is None:
            break
        problems = run.more_problems(wanted - len(kept))
    if not kept:
        raise NothingKept(f"none of {looked_at} problems has both a right and a wrong reply in its column {replies!r}")
    run.log("usable", len(kept) / looked_at)
    if known := [c.right == c.truly for _, found in kept for c in found if c.truly is not None]:
        run.log("true_labels", sum(known) / len(known))
    groups = recorded_pairs([(_told(problem, found), [c.text for c in found]) for problem, found in kept], run)
    for t in (t for group in groups for t in group):
        run.policy.check_fits(t, 0)
    return groups


def _told(problem: Problem, found: Sequence[Candidate]) -> Problem:
    """The problem, whose column `right` is of the chosen candidates."""
    return replace(problem, meta={**problem.meta, "right": [float(c.right) for c in found]})


def _labelled(
    problems: Sequence[Problem], run: Run, replies: str, right: str, at_least: float, scores: str
) -> list[list[Candidate]]:
    """The candidates of each problem that have a verdict, and a score where the problem has scores; equal texts count once."""
    texts = [_column(p, replies) for p in problems]
    verdicts = [p.meta.get(right) for p in problems]
    asked = [i for i, known in enumerate(verdicts) if known is None]
    if asked and run.verify is not None:
        groups = recorded_pairs([(problems[i], texts[i]) for i in asked], run)
        for i, row in zip(asked, run.verify(groups, run), strict=True):
            verdicts[i] = [None if s.value is None else (at_least if s.value >= 1.0 else at_least - 1) for s in row]
    found = []
    for problem, said, labels in zip(problems, texts, verdicts, strict=True):
        sorted_by, truly = problem.meta.get(scores), problem.meta.get(TRUE)
        columns = [_numbers(problem, x, len(said), name) for x, name in ((labels, right), (sorted_by, scores), (truly, TRUE))]
        by_text: dict[str, Candidate] = {}
        for text, label, score, worth in zip(said, *columns, strict=True):
            if label is not None and (score is not None or sorted_by is None):
                true = None if worth is None else worth >= at_least
                by_text.setdefault(text, Candidate(text, label >= at_least, score or 0.0, true))
        found.append(list(by_text.values()))
    return found


def _column(problem: Problem, name: str) -> list[Any]:
    found = list_of(problem.meta.get(name))
    if not found:
        has = ", ".join(problem.meta) or "nothing"
        raise RewardlabError(f"problem {problem.question[:60]!r} has no list {name!r} of candidates; it has: {has}")
    return found


def _numbers(problem: Problem, values: Any, n: int, name: str) -> list[float | None]:
    if values is None:
        return [None] * n
    found = list_of(values) or []
    if len(found) != n:
        raise RewardlabError(f"problem {problem.question[:60]!r} has {n} candidates, but {len(found)} numbers in {name!r}")
    return [number_of(x) for x in found]


# ---- the loss, and best of n ---------------------------------------------------------------------------------------------------


@objective(unit="group", wants=("value",))
def listwise_preference(out: Outputs, batch: Batch, run: Run) -> Tensor:
    """(G,) the mean of -log sigmoid(r - r') over all pairs of a right and a wrong row of a group; 0 where there is none."""
    score, right = last_value(out, batch), row_sum(batch.reward, batch)
    pairs = (batch.group[:, None] == batch.group) & (right[:, None] > right)  # (B, B): the first is right
    losses = torch.where(pairs, -F.logsigmoid(score[:, None] - score), 0.0)
    zeros = losses.new_zeros(batch.groups)
    total, count = (zeros.index_add(0, batch.group, x.sum(1)) for x in (losses, pairs.to(losses)))
    return total / count.clamp(min=1)


def best_of_random(scores: Sequence[float], right: Sequence[bool], n: int) -> float:
    """The chance that the highest score of n random ones belongs to a right reply; equal scores share theirs."""
    n, score, ok = min(n, len(scores)), np.asarray(scores, float), np.asarray(right, float)
    found = 0.0
    for value in np.unique(score):
        below, upto = int((score < value).sum()), int((score <= value).sum())
        found += (comb(upto, n) - comb(below, n)) / comb(len(score), n) * float(ok[score == value].mean())
    return found


@measure
def rm_at_n(
    problems: Sequence[Problem], run: Run, *, n: PositiveInt = 8, model: str = "reward", replies: str = "replies",
    right: str = "right", at_least: float = 1.0,
) -> dict[str, float]:  # fmt: skip
    """Of the candidates of held-out problems, how often the best of n by the reward model is right, over all sets of n.

    rm@n: that share; pass@1: of the candidates, which is what choosing blindly gets; pass@n: how often one of the n is right.
    auc: how often a right candidate scores higher than a wrong one of the same problem.
    """
    labelled = [(p, row) for p, row in zip(problems, _labelled(problems, run, replies, right, at_least, ""), strict=True) if row]
    if not labelled:
        raise RewardlabError(
            f"no held-out problem has candidates in {replies!r} that are known to be right or wrong: give a list of verdicts in "
            f"{right!r}, or an answer"
        )
    groups = recorded_pairs([(p, [c.text for c in row]) for p, row in labelled], run)
    values = iter(end_values(run.models[model], [t for group in groups for t in group]).tolist())
    scores = [[next(values) for _ in group] for group in groups]
    known = [[c.right for c in row] for _, row in labelled]
    best = [best_of_random(score, row, n) for score, row in zip(scores, known, strict=True)]
    low, high = mean_interval(best)
    return {
        f"rm@{n}": float(np.mean(best)), "ci95_low": low, "ci95_high": high, "n": float(len(best)),
        "pass@1": float(np.mean([np.mean(row) for row in known])),
        f"pass@{n}": float(np.mean([best_of_random([float(x) for x in row], row, n) for row in known])),
        "auc": auc_within(scores, known),
    }  # fmt: skip


# ---- the recipe ---------------------------------------------------------------------------------------------------------------


def acemath(
    base: Recipe | None = None, *, size: int = 6, top: int = 14, right: str = "right", at_least: float = 1.0, n: int = 8,
    reward_lr: float | None = None, problems: int = 32, init: str = "value-head",
) -> Recipe:  # fmt: skip
    """size: replies in a list.  top: of the candidates of each kind, by score, so many may be chosen; a large number: any.
    right, at_least: the column of verdicts, and the least number in it that is right.  n: candidates of held-out problems of which
    the best is chosen.  reward_lr, problems, init: as in `bradley_terry`, with lists in the place of pairs."""
    base = base or bradley_terry(problems=problems)
    taught = Recipe(
        objective=listwise_preference(), reward=verdict_in_data(), update=Update(lr=reward_lr, loss_kind="scorer")
    )  # fmt: skip
    others = tuple(learner for learner in base.also if learner.name != "reward")
    return base.but(
        rollout=score_sorted(size=size, top=top, right=right, at_least=at_least),
        measure=rm_at_n(n=n, right=right, at_least=at_least),
        also=(*others, Learner("reward", init, taught)),
    )


fidelity = "core"
left_out = "writing the candidates with fourteen models, and AceMath-Instruct, the two stages of SFT from which the model starts"
data = Data(
    replies="a list of replies to the prompt, right ones and wrong ones",
    right=Column("a list of verdicts, one a reply: 1 or true if it is right", optional=True),
    scores=Column("a list of scores of the replies by another reward model, by which the clearest are chosen", optional=True),
    answer=Column("the gold answer, by which the task's verifier judges replies without a verdict", optional=True),
    true_scores=Column("a list of what the replies are worth, to count how many verdicts are true", optional=True),
    rows=[
        {
            "prompt": "A recipe for 4 people takes 300 g of flour. How much do 10 people need, in g?",
            "replies": ["300 / 4 = 75, and 10 * 75 = 750. Answer: 750", "300 + 10 * 4 = 340. Answer: 340", "Answer: 3000"],
            "right": [1, 0, 0], "scores": [2.5, -0.5, -3.0],
        },
        {
            "prompt": "How many even numbers are there from 1 to 99?",
            "replies": ["99 / 2 = 49.5, so 50. Answer: 50", "2, 4, ..., 98: 98 / 2 = 49. Answer: 49"],
            "right": [0, 1], "scores": [-1.0, 1.5],
        },
    ],
)  # fmt: skip

OFTEN_WRONG = {"right": "scores", "at_least": 7.0, "size": 4, "init": "value-head:surprise", "reward_lr": 1e-3, "problems": 16}
check = Check(
    says="lists of the clearest candidates make a better judge than lists of any, where verdicts are often wrong (the model reads "
    "surprise)",
    versus="acemath", task="notes:writers=12,noise=0.15", measure="rm@8", direction="higher", margin=0.03,
    settings={**OFTEN_WRONG, "top": 2}, versus_settings={**OFTEN_WRONG, "top": 12},
    by=rm_at_n(right="true_scores", at_least=7.0), problems=300, steps=100,
    fault=Within("train.true_labels", 0.5, 0.85, "verdicts on any candidates that are true"),
    moved=Within("train.true_labels", low=0.05, says="true verdicts"),
    finding="Undecided in 20 pairs of runs. Verdicts on the clearest candidates are true in 85%, on any in 77%; the best of eight "
    "by the judge is right in 75% with the former and 68% with the latter, but most of this is two runs that ended at 18% and 46%: "
    "the medians are 76% and 73%",
)  # fmt: skip
