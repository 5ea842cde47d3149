"""Co-Reward: reward the replies to a question by the majority answer to its paraphrase, and the other way round.

    v = most frequent answer to x,    v' = most frequent answer to its rewrite x'
    r(y) = 1[answer(y) = v'] for y sampled from x,    1[answer(y) = v] for y sampled from x';    group-normalised, on both

No labels are needed. Paid by its own majority, a policy confirms what it says most often, mistakes as well, and may end with one
answer to every question, which earns all there is. A mistake that comes with a wording is not confirmed by the other one.

Zhang et al. 2025, arXiv:2508.00410, and the released reward and script (resistzzz/Co-Reward, 0653c59:
reward_manager/co_reward.py, math_co_reward.sh): one rewrite of each question, made beforehand by Qwen3-32B, n = 8 for each of
the two, KL .005, ties to the answer that came first, no answer no vote. (inferred): answers are compared by value and not as
texts, and without any vote there is no verdict, where the release pays all 0 (a group learns from neither). The reward takes
the place of a base's.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np

from rewardlab.checks.claim import Check, Within
from rewardlab.core import Group, Problem, Recipe, Rollout, Run, Score, Scores, measure, rollout
from rewardlab.data.columns import Column, Data
from rewardlab.errors import RewardlabError
from rewardlab.evals.own_reward import own_reward
from rewardlab.evals.passk import mean_interval
from rewardlab.methods.baselines.grpo import grpo
from rewardlab.rewards.reward import Reward, reward
from rewardlab.rewards.task import correct
from rewardlab.rollouts.independent import independent
from rewardlab.text.votes import answer_of, majority_of

# ---- Whether what a reward pays is right, and whether it pays what is right ------------------------------------------


@measure
def paid_right(problems: Sequence[Problem], run: Run, *, reward: Reward, truth: Reward, rollout: Rollout) -> dict[str, float]:
    """How far rewards of 0 and 1 are those of `truth`, on the replies that `rollout` samples; nothing is learnt.

    precision.X: of the replies that the term X pays at least 1, the share that is right; NaN where it pays none.  recall.X: of the
    right ones, the share that it pays; NaN where none is right.  paid.X: the share of all that it pays.  right: the share that is
    right, n: the replies. One without a verdict is not paid; without one by `truth` it is left out.
    Raises RewardlabError where `truth` gives no verdict at all.
    """
    groups = rollout(list(problems), run)
    rows = [
        (score, verdict.total >= 1.0)
        for row, true in zip(reward(groups, run), truth(groups, run), strict=True)
        for score, verdict in zip(row, true, strict=True)
        if verdict.total is not None
    ]
    if not rows:
        raise RewardlabError(f"paid_right: {truth} gives no verdict on any reply to {len(problems)} problems")
    right = np.array([ok for _, ok in rows])
    names = dict.fromkeys(name for score, _ in rows for name in score.terms)
    found: dict[str, float] = {}
    for name in names:
        paid = np.array([_paid(score, name) for score, _ in rows])
        found |= {f"precision.{name}": _share(right[paid]), f"recall.{name}": _share(paid[right]), f"paid.{name}": _share(paid)}
    low, high = mean_interval(right.astype(float).tolist())
    return {**found, "right": _share(right), "ci95_low": low, "ci95_high": high, "n": float(len(rows))}


def _paid(score: Score, name: str) -> bool:
    term = score.terms.get(name)
    return term is not None and term.value is not None and term.value >= 1.0


def _share(of: np.ndarray) -> float:
    return float(of.mean()) if len(of) else float("nan")


# ----------------------------------------------------------------------------------------------------------------------
#
# Whether a reply gives the answer that most replies give: to its own question, or to the same question in other words.

Voters = Literal["other", "own"]


@reward(over="groups", relative=True)
def with_majority(groups: list[Group], run: Run, *, voters: Literal["other", "own"] = "other") -> Scores:
    """1 for the answer that most of the voters give, else 0; no gold answer is read.

    voters: "own": the replies to the same prompt, itself among them.  "other": those to the same question in other words, which
    `with_rewrites` samples; so a mistake that comes with one wording is paid in neither. Answers are compared by value, and of
    equally frequent ones the first counts. No verdict where no voter states an answer, or a question has no other wording.
    """
    answers = [[answer_of(t.reply) for t in group] for group in groups]
    votes: dict[tuple[str, bool], list[Any]] = defaultdict(list)
    for group, row in zip(groups, answers, strict=True):
        votes[_wording(group)] += row
    return [_agree(row, votes.get(_voters(group, voters), [])) for group, row in zip(groups, answers, strict=True)]


def _wording(group: Group) -> tuple[str, bool]:
    """The key of the original problem, and whether this is its rewrite; ("", False) for a group without rows."""
    if not group:
        return "", False
    problem = group[0].problem
    return problem.meta.get("rewrite_of", problem.key), "rewrite_of" in problem.meta


def _voters(group: Group, voters: Voters) -> tuple[str, bool]:
    key, rewritten = _wording(group)
    return key, rewritten if voters == "own" else not rewritten


def _agree(answers: list[Any], votes: list[Any]) -> list[Score]:
    label = majority_of(votes)
    if label is None:
        return [Score(None, why="none of the voters states an answer") for _ in answers]
    return [Score(float(answer == label), why=f"the voters say {label}") for answer in answers]


# ---- Groups of replies to a question, and to the same question in other words ----------------------------------------

ORIGINAL = "rewrite_of"
"""The column of a rewritten problem that holds the key of the problem whose rewrite it is."""


@rollout(wraps="inner", groups=lambda **_: 2)
def with_rewrites(problems: list[Problem], run: Run, *, inner: Rollout, column: str = "rewrite") -> list[Group]:
    """What `inner` samples for each problem, and for the same problem with the text in `column` as its question.

    A step has twice as many groups as it has problems. A rewritten problem is told by its column `rewrite_of`, the key of the
    other. Further problems that `inner` asks for itself have no rewrites.
    """
    return inner([each for problem in problems for each in (problem, _rewritten(problem, column))], run)


def _rewritten(problem: Problem, column: str) -> Problem:
    text = problem.meta.get(column)
    if not isinstance(text, str) or not text.strip():
        has = ", ".join(problem.meta) or "nothing"
        raise RewardlabError(f"problem {problem.question[:60]!r} has no text {column!r}, its question reworded; it has: {has}")
    return replace(problem.reworded(text), meta={**problem.meta, ORIGINAL: problem.key})


# ---- the recipe ---------------------------------------------------------------------------------------------------------


def co_reward(
    base: Recipe | None = None, *, voters: Literal["other", "own"] = "other", column: str = "rewrite", n: int = 8,
    beta: float = 0.005,
) -> Recipe:  # fmt: skip
    """voters: whose majority pays: the replies to the other wording, or to the same one, as in TTRL.  column: of the rewrites.
    n, beta: of grpo; a step has 2 n replies to a problem.
    """
    base = base or grpo(n=n, beta=beta)
    both, paid = with_rewrites(inner=base.required("rollout"), column=column), with_majority(voters=voters)
    shown = own_reward(reward=paid, rollout=with_rewrites(inner=independent(n=4), column=column))
    return base.but(rollout=both, reward=paid, measure=shown)


fidelity = "core"
left_out = (
    '"Co-rewarding-II" of the second version, whose labels come from a slow average of the policy, and the loss\'s mean over '
    "tokens, where GRPO's is over replies"
)
data = Data(
    rewrite=Column("the same question in other words, by any model", setting="column"),
    answer=Column("the gold answer, for reports alone", optional=True),
    rows=[
        {
            "prompt": "Tom has 5 pens and buys 7 more. How many has he?",
            "rewrite": "After buying 7 pens, how many pens does Tom own if he had 5?",
            "answer": "12",
        },
        {"prompt": "What is $\\frac{3}{4}$ of 20?", "rewrite": "Compute three quarters of twenty.", "answer": "15"},
        {"prompt": "How many sides has a hexagon?", "rewrite": "A hexagon is a polygon with how many sides?", "answer": "6"},
    ],
)

OTHER, OWN = with_majority().named("other"), with_majority(voters="own").named("own")
check = Check(
    says="of the replies that the majority of the question in other words pays, more are right than of those that their own pays",
    versus=None, task="wordings", measure="precision.other", direction="higher", margin=0.15, against="precision.own",
    by=paid_right(reward=OTHER + OWN, truth=correct(), rollout=with_rewrites(inner=independent(n=8))), problems=300, steps=1,
    fault=Within("precision.own", high=0.7, says="share of the replies paid by their own majority that are right"), learns=None,
    tried="pairs told apart: .69 against .75, frozen: in half of the groups nobody gives the other's answer, and all earn 0",
    finding="of the replies that the other wording's majority pays 77% are right, of those that their own pays 51%; but it pays "
    "fewer of the right ones (52% against 85%). No policy is trained with it here",
)  # fmt: skip
baseline = "grpo"
