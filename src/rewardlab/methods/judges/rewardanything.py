"""RewardAnything: a judge that scores and ranks all replies by a principle in words, which each row brings, in one judgement.

    y ~ pi(. | principle p, prompt x, replies y_1 .. y_k)       says scores S_1 .. S_k from 1 to 5, and an order
    r(y) = form(y) + agreement(y);        GRPO over n judgements
    agreement = 1 - sum_ij w_ij c_ij / sum_ij w_ij,    w_ij = 1 + |g_i - g_j|,    g: the scores that several judges agree on
                c_ij = 1 where S orders i and j the other way than g does,  1/2 where only S ties them,  else 0

Reward models learn one order of the replies to a prompt, and cannot take another. Here the same replies stand in training under
different principles, so that the principle must be read; held out, principles are new. All replies are seen together, and pairs far
apart in g cost more.

Yu et al. 2025, arXiv:2506.03637, and the released zhuohaoyu/RewardAnything rewardanything/processing.py at 41bd116, which has both
rewards: `calculate_weighted_pair_penalty`, over the replies that a judgement scores, by these scores and not by its order, and
`format_reward`, whose shares are kept (`well_formed`). There fewer than two replies with scores earn an agreement of 1; here 0, or
a judge would be paid for saying nothing. (inferred): both rewards weigh the same; where replies are ranked, the order of a
judgement parts those of equal scores; `check_ranking_consistency`, which is called and not in the release, is the share of
neighbours in the order whose scores do not rise; with a form other than `rewardanything`, form(y) is 1 for scores that can be read.
"""

from __future__ import annotations

import itertools
import json
import math
import random
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from rewardlab.checks.claim import Check
from rewardlab.core import Group, Problem, Recipe, Rollout, Run, Sampling, Score, Trajectory, measure, rollout, seed_of
from rewardlab.data.columns import Column, Data
from rewardlab.evals.passk import mean_interval
from rewardlab.judges.cases import UNREAD, cases_of, to_judge
from rewardlab.judges.forms import Kind
from rewardlab.judges.named import form_of
from rewardlab.judges.published.lists import given_scores
from rewardlab.methods.baselines.grpo import grpo
from rewardlab.methods.baselines.trained_judge import trained_judge
from rewardlab.rewards.judgements import reading_of
from rewardlab.rewards.reward import reward
from rewardlab.scoreboard.correlation import kendall
from rewardlab.settings.domain import NonNegativeFloat, PositiveInt
from rewardlab.worlds.graded import BY_PRINCIPLE

FORM = "rewardanything"
PRINCIPLE = "Prefer the reply that is right, does what was asked, and is clear."
"""The principle of rows that bring none."""


def with_principle(problem: Problem, told: str = "") -> Problem:
    """The row with this principle; without one with its own, or the general one where it has none."""
    return replace(problem, meta={**problem.meta, "principle": told or problem.meta.get("principle") or PRINCIPLE})


@rollout(wraps="inner")
def by_principle(problems: list[Problem], run: Run, *, inner: Rollout, told: str = "") -> list[Group]:
    """`inner` on rows that all have a principle: `told`, or without it their own, or the general one where they have none."""
    return inner([with_principle(p, told) for p in problems], run)


# ---- the two rewards -------------------------------------------------------------------------------------------------------------


def agreement(said: Sequence[float], gold: Sequence[float]) -> float:
    """The share of pairs in the order of `gold`, each weighing 1 and its distance there; a tie that only `said` has counts half."""
    wrong = weight = 0.0
    for i, j in itertools.combinations(range(len(gold)), 2):
        w = 1 + abs(gold[i] - gold[j])
        order, true = said[i] - said[j], gold[i] - gold[j]
        wrong += w if order * true < 0 else w / 2 if order == 0 and true != 0 else 0.0
        weight += w
    return 1 - wrong / weight if weight else 0.0


def _is_published(form: str) -> bool:
    return form.partition(":")[0] == FORM


@reward
def in_agreement(trajectory: Trajectory, *, form: str = FORM, kind: Kind = "scores") -> Score:
    """How far a judgement orders the replies as their scores in the row do, from 0 to 1; 0 where it has no scores.

    In the form `rewardanything` the replies that have a score count, two at least, and replies of equal scores are tied."""
    found = reading_of(trajectory, form, kind)
    if isinstance(found, str):
        return Score(None, why=found)
    reading, gold = found
    if _is_published(form):
        given = given_scores(trajectory.reply, len(gold))
        pairs = [(x, g) for x, g in zip(given, gold, strict=True) if x is not None]
        if len(pairs) < 2:
            return Score(UNREAD, why=f"scores of {len(pairs)} replies")
        return Score(agreement(*zip(*pairs, strict=True)), extracted=str(given))
    if reading.values is None:
        return Score(UNREAD, why=reading.said)
    return Score(agreement(reading.values, gold), extracted=str(reading.values))


def form_of_json(text: str, shown: int) -> float:
    """From 0 to 1: thinking in its tags .15, of over 50 characters .05 more; JSON .2 (.15 with other text around it); scores .1, an
    order .1; the share of replies that have a score .2; neighbours in the order whose scores do not rise .2."""
    opened, closed = "<think>" in text, "</think>" in text
    thought = text.partition("<think>")[2].partition("</think>")[0].strip()
    total = (0.15 + 0.05 * (len(thought) > 50)) if opened and closed else 0.05 * (opened or closed)
    # written without a pattern over any text between the tags, which would take quadratic time on many open ones
    rest = text.rpartition("</think>")[2]
    rest = re.sub(r"```(?:json)?", "", rest).strip()
    inside = rest[rest.find("{") : rest.rfind("}") + 1]
    said = _object(inside)
    if not said:
        return total
    scores, order = said.get("scores"), said.get("best-to-worst", said.get("best-to-worse"))
    total += (0.2 if inside == rest else 0.15) + 0.1 * ("scores" in said) + 0.1 * (order is not None)
    known = scores if isinstance(scores, dict) else {}
    total += 0.2 * sum(f"model-{i + 1}" in known for i in range(shown)) / shown
    return min(1.0, total + 0.2 * (_falling(known, order) if known and isinstance(order, list) else 0.0))


def _object(text: str) -> dict[str, Any]:
    try:
        said = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return said if isinstance(said, dict) else {}


def _falling(scores: dict[str, Any], order: list[Any]) -> float:
    """The share of neighbours in the order whose scores do not rise."""
    values = [scores.get(name) for name in order if isinstance(name, str)]
    numbers = [float(x) for x in values if isinstance(x, int | float) and not isinstance(x, bool)]
    steps = [a >= b for a, b in itertools.pairwise(numbers)]
    return sum(steps) / len(steps) if steps and len(numbers) == len(order) else 0.0


@reward
def well_formed(trajectory: Trajectory, *, form: str = FORM, kind: Kind = "scores") -> Score:
    """How well a judgement keeps to its form, from 0 to 1; of forms other than `rewardanything`, whether scores can be read."""
    found = reading_of(trajectory, form, kind)
    if isinstance(found, str):
        return Score(None, why=found)
    reading, gold = found
    if _is_published(form):
        return Score(form_of_json(trajectory.reply, len(gold)))
    return Score(float(reading.values is not None), why=reading.said)


# ---- the measure -----------------------------------------------------------------------------------------------------------------


def ndcg(said: Sequence[float], gold: Sequence[float]) -> float:
    """Discounted gain of the order of `said` over that of the best order; gains are 2^g - 1, with g from 0. 1 where all g are 0.

    g goes up to 10 at most: scores that lie further apart, such as percentages, are scaled to that.
    """
    low = min(gold)
    unit = min(1.0, 10 / ((max(gold) - low) or 1.0))
    gains = [2 ** ((g - low) * unit) - 1 for g in gold]
    order = sorted(range(len(said)), key=lambda i: -said[i])
    total, best = (
        sum(x / math.log2(place + 2) for place, x in enumerate(row)) for row in ([gains[i] for i in order], sorted(gains)[::-1])
    )
    return total / best if best else 1.0


@measure
def ranking_agreement(
    problems: Sequence[Problem], run: Run, *, form: str = FORM, kind: Kind = "scores", told: str = "", k: PositiveInt = 1,
    temperature: NonNegativeFloat = 1.0,
) -> dict[str, float]:  # fmt: skip
    """How held-out replies are ranked by the mean of k judgements, against the rows' scores; replies stand in a random order.

    tau: Kendall's tau-b, mean over rows.  pairs: the share of pairs in the right order, ties half.  ndcg.  Judgements without
    scores, counted as `unread`, tie all replies.  told: a principle for all rows, in place of their own.
    """
    of = form_of(form, kind)
    rows = [with_principle(p, told) for p in problems]
    cases = [cases_of(p, of)[0] for p in rows]
    orders = [_shuffled(p, len(c.replies)) for p, c in zip(rows, cases, strict=True)]
    asked = [to_judge(p, c.at(o), of) for p, c, o in zip(rows, cases, orders, strict=True)]
    begun = run.policy.read([Trajectory(q) for q in asked], [q.prompt for q in asked])
    for t in begun:
        run.policy.check_fits(t, run.max_new)
    said = run.policy.extend([t for t in begun for _ in range(k)], Sampling(run.max_new, temperature), run.rng("judgements"))
    read = [of.read(t.reply, len(orders[i // k])).values for i, t in enumerate(said)]
    worth = [[c.worth[i] for i in o] for c, o in zip(cases, orders, strict=True)]
    means = [_mean(read[i * k : (i + 1) * k], len(w)) for i, w in enumerate(worth)]
    taus = [0.0 if np.ptp(m) == 0 else kendall(m, np.array(w)) for m, w in zip(means, worth, strict=True) if np.ptp(w) > 0]
    low, high = mean_interval(taus or [0.0])
    return {
        "tau": float(np.mean(taus)) if taus else 0.0, "ci95_low": low, "ci95_high": high, "n": float(len(rows)),
        "pairs": float(np.mean([_pairs(m, w) for m, w in zip(means, worth, strict=True)])),
        "ndcg": float(np.mean([ndcg(m, w) for m, w in zip(means, worth, strict=True)])),
        "unread": float(np.mean([v is None for v in read])),
    }  # fmt: skip


def _shuffled(problem: Problem, shown: int) -> list[int]:
    return random.Random(seed_of("ranking", problem.key)).sample(range(shown), shown)


def _mean(read: Sequence[tuple[float, ...] | None], shown: int) -> Any:
    """(shown,) the mean scores; zeros where none can be read."""
    known = [v for v in read if v is not None]
    return np.mean(known, axis=0) if known else np.zeros(shown)


def _pairs(said: Sequence[float], gold: Sequence[float]) -> float:
    untied = [(i, j) for i, j in itertools.permutations(range(len(gold)), 2) if gold[i] > gold[j]]
    return float(np.mean([(said[i] > said[j]) + (said[i] == said[j]) / 2 for i, j in untied])) if untied else 0.5


# ---- the recipe ------------------------------------------------------------------------------------------------------------------


def rewardanything(
    base: Recipe | None = None, *, form: str = FORM, kind: Kind = "scores", told: str = "", n: int = 8, problems: int = 16,
    formed: NonNegativeFloat = 1.0, votes: int = 1, lr: float | None = None,
) -> Recipe:  # fmt: skip
    """form: what the judge is asked, a published form by name, a file, or a text with {principle}, {prompt} and {replies}.  kind:
    of a text.  told: a principle for all rows, in place of their own.  n: judgements of a row.  problems: rows of a step.
    formed: weight of the reward for the form.  votes: judgements of a held-out row, whose scores are averaged."""
    base = base or grpo(n=n)
    base = trained_judge(base, form=form, kind=kind, n=n, problems=problems, lr=lr)
    return base.but(
        rollout=by_principle(inner=base.required("rollout"), told=told),
        reward=in_agreement(form=form, kind=kind) + formed * well_formed(form=form, kind=kind),
        measure=ranking_agreement(form=form, kind=kind, told=told, k=votes),
    )


fidelity = "core"
left_out = (
    "the data: 200 principles in words, and how the scores of several models as judges become one consensus, which rows bring as "
    "`scores`; repairs of broken JSON before it is read"
)
data = Data(
    replies="a list of replies to score together",
    scores="what each of them is worth by the row's principle, as several judges agree",
    principle=Column("the principle to judge by; a general one where a row has none", optional=True),
    rows=[
        {
            "prompt": "Why do leaves fall?", "principle": "Prefer the shorter reply.", "scores": [2, 5, 1],
            "replies": ["Trees save water in winter.", "To save water.", "They fall since trees save water in the cold months."],
        },
        {
            "prompt": "How does one boil an egg?", "principle": "Prefer a reply that can be followed at once.", "scores": [5, 1],
            "replies": ["Seven minutes in boiling water.", "In a pan, somehow."],
        },
    ],
)  # fmt: skip

OF_NOTES = {"form": BY_PRINCIPLE}
check = Check(
    says="by principles that stand in no training row, a judge that is told them ranks notes better than one that judges all rows "
    "by one principle, and can only learn what is liked in general",
    versus="rewardanything", task="graded:by=principle", measure="tau", direction="higher", margin=0.05, settings=OF_NOTES,
    versus_settings={**OF_NOTES, "told": "polite, urgent, signed"}, problems=300, steps=40,
    tried="one seed: tau .25 from .12 with the rows' principles, .24 from .14 with one for all; .26 of `trained_judge`, "
    "which is paid for finding the best alone; .00 of a judge told a principle in words that the small judge does not know",
    finding="40 steps of rewards raise tau from .13 to .20, with each row's own principle as with one for all: what so few "
    "teach is to score notes at all, and not yet to read a principle",
)  # fmt: skip
baseline = "trained_judge"
