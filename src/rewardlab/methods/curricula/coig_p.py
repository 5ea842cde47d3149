"""COIG-P: answers of several models, graded by judges; two random answers make a pair if their grades differ enough.

    replies y_1 .. y_m by m models, grades s_j from 0 to 10;    a pair: i, j at random among those with |s_i - s_j| >= gap

A judge's error turns round the labels of near-ties alone. So a gap cleans labels without anybody who checks them, at the price of
pairs; choosing two at random, not the best and the worst, keeps pairs of every quality. The same pairs teach the policy (DPO, as
here) and a reward model that grades further data cheaply: bradley_terry+coig_p, then rewardlab data filter --reward.

M-A-P Team et al. 2025, arXiv:2504.05535: 15 models, 8 judges, two replies at random, a threshold of 2 of 10. (inferred): that a
difference of 2 itself counts (a summary of the paper has "exceeding", which is gap=3 for whole grades), and one pair for each
prompt and visit, another one each time (they have 1,006,946 pairs of 92,784 queries, so about eleven of each). They draw two
replies and drop those too near to each other; here the draw is among the others, so that a visit is not lost. Training follows
qwen2.5_7b_full_dpo.yaml of the released code (multimodal-art-projection/COIG-P, 28104b6): plain DPO, three epochs. rewardlab data
pass-rate --keep-replies asks one model, and its judge.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any, Literal

from rewardlab.checks.claim import Claim, Within
from rewardlab.core import Group, Problem, Recipe, Rollout, Run, rollout
from rewardlab.data.columns import Column, Data
from rewardlab.data.pairing import pairs
from rewardlab.data.values import list_of, number_of
from rewardlab.errors import NothingKept, RewardlabError
from rewardlab.evals.rewards import mean_reward
from rewardlab.methods.baselines.dpo import dpo
from rewardlab.settings.domain import NonNegativeFloat, PositiveInt

# ---- Pairs made of several scored replies that the data holds --------------------------------------------------------

TRUE = "true_scores"
"""The column of what replies are really worth, where the data knows."""


@rollout(wraps="inner")
def paired(
    problems: list[Problem], run: Run, *, inner: Rollout, choose: Literal["best-worst", "best-random", "random"] = "best-worst",
    gap: NonNegativeFloat = 0.0, replies: str = "replies", scores: str = "scores", attempts: PositiveInt = 20,
) -> list[Group]:  # fmt: skip
    """The groups of `inner`, each with a pair of its replies in the columns `chosen` and `rejected`.

    choose, gap: as in `rewardlab data pairs`; what is chosen at random is chosen anew at each visit, and for held-out problems is
    always the same.  replies, scores: the columns of the texts and of their scores, two lists.  Problems without such a pair are
    dropped, and others asked for, `attempts` times at most.
    Logged: paired, the share of problems that have a pair; true_labels, the share of pairs whose chosen reply is worth more, ties
    half, where the data has a column `true_scores`.
    """
    kept, seen = list[Problem](), Counter[str]()
    wanted, looked_at = len(problems), 0
    for _ in range(attempts):
        looked_at += len(problems)
        for p in problems:
            # a problem may be there several times in a step
            seen[p.key] += 1
            seed = f"{run.seed} {run.moment} {p.key} {seen[p.key]}"
            if (new := _paired(p, choose, gap, replies, scores, seed)) is not None:
                kept.append(new)
        # outside of training there are no further problems to ask for
        if len(kept) >= wanted or run.more_problems is None:
            break
        problems = run.more_problems(wanted - len(kept))
    if not kept:
        by = f" by {gap:g}" if gap else ""
        raise NothingKept(f"none of {looked_at} problems has two replies whose scores differ{by}: lower the gap")
    run.log("paired", len(kept) / looked_at)
    if known := [label for p in kept if (label := _truth(p, replies)) is not None]:
        run.log("true_labels", sum(known) / len(known))
    return inner(kept, run)


def _paired(problem: Problem, choose: str, gap: float, replies: str, scores: str, seed: str) -> Problem | None:
    """The problem with its pair; None where its replies give none."""
    texts, numbers = (_column(problem, name) for name in (replies, scores))
    if len(texts) != len(numbers):
        raise RewardlabError(f"problem {problem.question[:60]!r} has {len(texts)} {replies}, but {len(numbers)} {scores}")
    found = pairs(texts, [number_of(x) for x in numbers], choose, gap, seed)
    if not found:
        return None
    pair = found[0]
    both = {"chosen_score": pair.chosen_score, "rejected_score": pair.rejected_score}
    return replace(problem, meta={**problem.meta, "chosen": pair.chosen, "rejected": pair.rejected, **both})


def _column(problem: Problem, name: str) -> list[Any]:
    found = list_of(problem.meta.get(name))
    if found is None:
        has = ", ".join(problem.meta) or "nothing"
        raise RewardlabError(f"problem {problem.question[:60]!r} has no list {name!r} to make pairs of; it has: {has}")
    return found


def _truth(problem: Problem, replies: str) -> float | None:
    """1 for a pair whose chosen reply is truly worth more, 0 for one whose rejected reply is, a half for equals."""
    # backwards, so that of equal texts the first counts, as it does for pairs
    worth = dict(zip(*(reversed(list_of(problem.meta.get(name)) or []) for name in (replies, TRUE)), strict=False))
    better, worse = (worth.get(problem.meta[side]) for side in ("chosen", "rejected"))
    if better is None or worse is None:
        return None
    return 0.5 if better == worse else float(better > worse)


# ---- the recipe ---------------------------------------------------------------------------------------------------------


def coig_p(base: Recipe | None = None, *, gap: float = 2.0) -> Recipe:
    """gap: the least difference of two grades that makes a pair; 0: any."""
    base = base or dpo()
    return base.but(rollout=paired(inner=base.required("rollout"), choose="random", gap=gap))


fidelity = "core"
left_out = "crawling and filtering the queries, and asking fifteen models and eight judges: rows bring replies and scores"
data = Data(
    replies="a list of replies to the prompt, two or more",
    scores="a list of numbers, a score for each reply",
    true_scores=Column("a list of the true scores, to count how many pairs are ordered rightly", optional=True),
    rows=[
        {
            "prompt": "How can I fall asleep faster?",
            "scores": [8.5, 2.0],
            "replies": ["Keep the same bedtime every day and put screens away an hour before it.", "Just sleep."],
        },
        {
            "prompt": "Why is the sky blue?",
            "scores": [1.0, 9.0],
            "replies": ["Because it mirrors the sea.", "Air scatters blue light more than red light."],
        },
    ],
)
claim = Claim(
    says="DPO on pairs whose grades differ enough gives better replies than DPO on as many pairs of any difference",
    versus="coig_p", task="notes:writers=6,noise=0.4", measure="reward", direction="higher", margin=0.017,
    settings={"gap": 4.0, "lr": 1e-4}, versus_settings={"gap": 0.0, "lr": 1e-4}, by=mean_reward(), steps=40,
    fault=Within("train.true_labels", 0.55, 0.75, "share of right labels where any difference makes a pair"),
    moved=Within("train.true_labels", low=0.05, says="right labels"), learns="reward", start=None,
    finding="true reward, from 0 to 1: .54 at the start, .66 after DPO on pairs whose grades differ clearly, .63 on any pairs. "
    "Their labels are right in 76% and 69%, at the price of half of the prompts",
)  # fmt: skip
