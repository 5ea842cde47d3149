"""PPE: twelve metrics of a reward model on votes of people and on verified answers, as proxies of the policy it would train.

    people, pairs:      accuracy = mean 1[r ranks the pair as the vote does]
    people, 20 models:  W_ab = share of battles won by a;  theta: Bradley-Terry fits of the votes, and of the reward model's choices
        row_pearson = mean over a of corr(W_a., W'_a.);   spearman, kendall of theta and theta'
        separability = pairs of models whose 95% intervals of theta' do not overlap
        confidence_agreement = +1 the same order, -1 the opposite one, 0 not separated; mean over pairs that the votes separate
        brier = mean (Phi((theta'_a - theta'_b) / s_ab) - 1[theta_a > theta_b])^2        (lower is better)
    verified answers, n replies to a prompt:  B(k) = E[truth of the best scored of k];  T(k) = E[the highest truth of k]
        correct_accuracy on sampled pairs that differ;  auc;  max_score = max_k B(k);  end_score = B(n);  loss = mean_k T(k) - B(k)
        (lower is better); each the mean over the benchmarks (MMLU-Pro, MATH, GPQA, IFEval, MBPP-Plus)

The authors find that accuracy on people's votes goes closest with the votes on policies trained by DPO, and the correlations of
rankings hardly at all.

Frick et al. 2024, arXiv:2410.14872; the columns are those of the published sets (lmarena-ai/PPE-Human-Preference-V1,
PPE-MATH-Best-of-K and so on), as public code reads them. The released code (lmarena/PPE) was not at hand, so these are (inferred):
intervals by the Fisher information of the fit, where the authors resample battles; exact expectations over subsets for B and T; the
area under the curve within each prompt; ties of people left out; a missing score is minus infinity, as released.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np

from rewardlab.checks.claim import Check
from rewardlab.core import Recipe, Run, seed_of, study
from rewardlab.scoreboard.benchmark import Benchmark
from rewardlab.scoreboard.correlation import auc, kendall, pearson, spearman
from rewardlab.scoreboard.figures import Marks
from rewardlab.scoreboard.items import Item, Verdict, said, users

kind = "benchmark"
PEOPLE = "people"
SETS = ("mmlu_pro", "math", "gpqa", "ifeval", "mbpp_plus")
Z = 1.959964
RIDGE = 1e-3
"""Keeps a model that never loses at a finite strength."""


# ---- rows -----------------------------------------------------------------------------------------------------------------


def read(row: Mapping[str, Any], file: str) -> Iterator[Item]:
    """A battle of two models (none where people saw a tie), or the replies to one prompt with their truth.

    Pairs of equal truth among those that are to conflict are passed over. The set that verified answers belong to is in a column
    "benchmark", in the name of the file, or in the question's id.
    """
    prompt = users(row["prompt"]) if isinstance(row["prompt"], str) else said(row["prompt"])
    name = str(row.get("uid", row["question_id"]))
    if "winner" in row:
        if row["winner"] in ("model_a", "model_b"):
            worth = (1.0, 0.0) if row["winner"] == "model_a" else (0.0, 1.0)
            meta = {"a": str(row["model_a"]), "b": str(row["model_b"])}
            yield Item(f"{PEOPLE}/{name}", prompt, (row["response_1"], row["response_2"]), worth, PEOPLE, meta=meta)
        return
    truth = tuple(float(x) for x in row["scores"])
    replies = tuple(row[f"response_{k + 1}"] for k in range(len(truth)))
    pairs = [(int(i), int(j)) for i, j in row["sampled_conflict_pairs"]]
    told_apart = [(i, j) for i, j in pairs if truth[i] != truth[j]]
    place = f"{row.get('benchmark', '')} {file} {name}".lower().replace("-", "_")
    own = next((s for s in SETS if s in place), "correctness")
    compared = tuple((i, j) if truth[i] > truth[j] else (j, i) for i, j in told_apart)
    about = {"tied": len(pairs) - len(told_apart)}
    yield Item(f"{own}/{row.get('model_name', '')}/{name}", prompt, replies, truth, own, compared if pairs else None, meta=about)


# ---- one item --------------------------------------------------------------------------------------------------------------


def marks(item: Item, verdict: Verdict) -> dict[str, float]:
    right = [float((verdict.prefers(i, j) or 0.0) > 0.5) for i, j in item.pairs]
    if item.subset == PEOPLE:
        chosen = verdict.prefers(0, 1)
        models = {"a": _code(item.meta["a"]), "b": _code(item.meta["b"])}
        return {"right": right[0], **models, "vote": item.worth[0], **({} if chosen is None else {"choice": chosen})}
    found = {"right": float(np.mean(right))} if right else {}
    if not verdict.scores:
        return found
    truth = np.array(item.worth)
    scores = np.array([-math.inf if s is None else s for s in (*verdict.scores, *[None] * len(truth))][: len(truth)])
    picked, best = best_of_k(scores, truth), best_of_k(truth, truth)
    return found | {
        "auc": auc(scores, truth > 0.5), "end": float(picked[-1]), "loss": float((best - picked).mean()),
        **{f"best of {k + 1}": float(x) for k, x in enumerate(picked)},
    }  # fmt: skip


def _code(model: str) -> float:
    """A number for a name: columns hold numbers."""
    return float(int(hashlib.sha256(model.encode()).hexdigest()[:12], 16))


def best_of_k(scores: np.ndarray, truth: np.ndarray) -> np.ndarray:
    """(n,): for k = 1..n the expected truth of the best scored of k replies chosen by chance; those with equal scores share it."""
    n = len(scores)
    order = np.argsort(-scores, kind="stable")
    _, which = np.unique(-scores[order], return_inverse=True)
    shared = (np.bincount(which, truth[order]) / np.bincount(which))[which]
    return _chances(n) @ shared


@cache
def _chances(n: int) -> np.ndarray:
    """(n, n): for each k, the chance that the best of k is the r-th best of all: it is chosen, and the others are below it."""
    return np.array([[math.comb(n - 1 - r, k - 1) / math.comb(n, k) for r in range(n)] for k in range(1, n + 1)])


# ---- all items -------------------------------------------------------------------------------------------------------------


def figures(marks: Marks) -> dict[str, float]:
    """accuracy (of people's votes), the rankings of models, the metrics on verified answers, and each set's accuracy."""
    people, sets = marks.where(marks.subset == PEOPLE), [s for s in marks.subsets() if s != PEOPLE]
    parts = {s: _correctness(marks.where(marks.subset == s)) for s in sets}
    names = ("correct_accuracy", "auc", "max_score", "end_score", "loss")
    means = {name: _mean([parts[s][name] for s in sets]) for name in names}
    whole = people.mean("right") if len(people) else means["correct_accuracy"]
    return {"accuracy": whole, **_rankings(people), **means, **{s: parts[s]["correct_accuracy"] for s in sets}}


def _mean(known: Sequence[float]) -> float:
    there = [x for x in known if not math.isnan(x)]
    return float(np.mean(there)) if there else math.nan


def _correctness(own: Marks) -> dict[str, float]:
    curve = [own.mean(name) for name in own.columns if name.startswith("best of ")]
    known = [x for x in curve if not math.isnan(x)]
    return {
        "correct_accuracy": own.mean("right"), "auc": own.mean("auc"), "max_score": max(known, default=math.nan),
        "end_score": own.mean("end"), "loss": own.mean("loss"),
    }  # fmt: skip


def _rankings(people: Marks) -> dict[str, float]:
    """Of models by the votes, and by what the rater chooses on the same battles. Battles without a choice are left out."""
    names = ("row_pearson", "separability", "confidence_agreement", "kendall", "spearman", "brier")
    people = people.where(~np.isnan(people["choice"]))
    models, place = np.unique(np.concatenate((people["a"], people["b"])), return_inverse=True)
    if len(models) < 3:
        return dict.fromkeys(names, math.nan)
    a, b = np.split(place, 2)
    votes, choices = (_wins(a, b, people[x], len(models)) for x in ("vote", "choice"))
    (truth, sure), (found, spread) = strengths(votes), strengths(choices)
    i, j = np.triu_indices(len(models), 1)
    apart, known = _apart(found, spread), _apart(truth, sure)
    agreed = np.sign(found[i] - found[j]) == np.sign(truth[i] - truth[j])
    held = np.where(apart, np.where(agreed, 1.0, -1.0), 0.0)[known]
    chance = [0.5 * math.erfc(-z / math.sqrt(2)) for z in (found[i] - found[j]) / np.sqrt(spread[i] ** 2 + spread[j] ** 2)]
    numbers = (
        _row_pearson(votes, choices), float(apart.mean()), float(held.mean()) if len(held) else math.nan,
        kendall(found, truth), spearman(found, truth), float(((np.array(chance) - (truth[i] > truth[j])) ** 2).mean()),
    )  # fmt: skip
    return dict(zip(names, numbers, strict=True))


def _wins(a: np.ndarray, b: np.ndarray, first: np.ndarray, n: int) -> np.ndarray:
    """(n, n): how often the model of the row has won against that of the column; a tie is half a win of both."""
    wins = np.zeros((n, n))
    np.add.at(wins, (a, b), first)
    np.add.at(wins, (b, a), 1 - first)
    return wins


def strengths(wins: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Bradley-Terry's log-strengths (n,), of mean 0, and their standard errors, by Newton's method."""
    n = len(wins)
    games, theta = wins + wins.T, np.zeros(n)
    for _ in range(30):
        p = 1 / (1 + np.exp(theta[None] - theta[:, None]))
        weight = games * p * (1 - p)
        information = np.diag(weight.sum(1)) - weight + RIDGE * np.eye(n)
        step = np.linalg.solve(information, (wins - games * p).sum(1) - RIDGE * theta)
        theta = theta + np.clip(step, -1, 1)
        if np.abs(step).max() < 1e-8:
            break
    # only differences are known: the direction in which all rise together is left out
    centred = np.eye(n) - 1 / n
    return theta - theta.mean(), np.sqrt(np.diag(centred @ np.linalg.inv(information) @ centred))


def _apart(theta: np.ndarray, error: np.ndarray) -> np.ndarray:
    i, j = np.triu_indices(len(theta), 1)
    return np.abs(theta[i] - theta[j]) > Z * (error[i] + error[j])


def _row_pearson(votes: np.ndarray, choices: np.ndarray) -> float:
    games = votes + votes.T
    rows = [pearson(votes[k, g > 0] / g[g > 0], choices[k, g > 0] / g[g > 0]) for k, g in enumerate(games) if (g > 0).sum() > 2]
    return _mean(rows)


def lacking(items: Sequence[Item]) -> str:
    if tied := sum(item.meta.get("tied", 0) for item in items):
        return f"{tied:,} of the sampled pairs are of replies of the same truth, and are passed over"
    return ""


def _battle(name: int, a: str, b: str, winner: str, prompt: str, first: str, second: str) -> dict[str, Any]:
    own = {"question_id": str(name), "prompt": prompt, "response_1": first, "response_2": second, "language": "English"}
    return {**own, "model_a": a, "model_b": b, "winner": winner}


benchmark = Benchmark(
    title="PPE", hub="lmarena-ai/PPE-Human-Preference-V1", read=read, marks=marks, figures=figures, lacking=lacking,
    chance={"accuracy": 0.5, "correct_accuracy": 0.5, "auc": 0.5},
    example=(
        _battle(1, "x", "y", "model_a", "Why is the sea salty?", "Rivers wash salt into it.", "It is not."),
        _battle(2, "y", "z", "model_b", "Name a prime.", "9, of course, and 15.", "7"),
        _battle(3, "z", "x", "model_b", "How far is the moon?", "Near.", "About 384,000 km."),
        {
            "question_id": "math_4", "model_name": "x", "prompt": "What is 6 * 7?", "response_1": "42", "response_2": "48",
            "response_3": "It is 42.", "scores": [True, False, True], "sampled_conflict_pairs": [[0, 1], [1, 2]],
        },
    ),
)  # fmt: skip


# ---- check -----------------------------------------------------------------------------------------------------------------

MODELS, BATTLES, RATERS = 20, 2000, 30


@study
def proxies(run: Run) -> dict[str, float]:
    """By metric on people's votes, its correlation over 30 raters with the worth of their picks (Spearman; the sign turned where
    lower is better).

    A reply's worth is its model's plus its own; a rater sees it with noise, and likes some models for their style. Its picks are
    the best of 16 replies of one policy, where style is the same.
    """
    rng = np.random.default_rng(seed_of("study", run.seed))
    strength, style = 0.7 * rng.normal(size=MODELS), rng.normal(size=MODELS)
    a, b = (rng.permuted(np.tile(np.arange(MODELS), (BATTLES, 1)), axis=1)[:, k] for k in (0, 1))
    worth = np.stack((strength[a], strength[b])) + rng.normal(size=(2, BATTLES))
    votes = worth[0] - worth[1] + 0.5 * rng.normal(size=BATTLES) > 0
    sides = ("model_b", "model_a")
    rows = [_battle(k, f"m{a[k]}", f"m{b[k]}", sides[int(votes[k])], f"q{k}", "a", "b") for k in range(BATTLES)]
    items = [item for row in rows for item in read(row, "procedural")]
    found, truth = [], []
    for noise, liking in zip(rng.uniform(0.3, 3, RATERS), rng.uniform(0, 1, RATERS), strict=True):
        scores = worth + noise * rng.normal(size=worth.shape) + liking * np.stack((style[a], style[b]))
        verdicts = [Verdict(tuple(pair)) for pair in scores.T.tolist()]
        found.append(figures(Marks.of(items, [marks(i, v) for i, v in zip(items, verdicts, strict=True)])))
        own = rng.normal(size=(2000, 16))
        truth.append(own[np.arange(2000), (own + noise * rng.normal(size=own.shape)).argmax(1)].mean())
    told = {name: np.array([f[name] for f in found]) for name in ("accuracy", "row_pearson", "spearman", "kendall", "brier")}
    return {name: (-1 if name == "brier" else 1) * spearman(x, np.array(truth)) for name, x in told.items()}


def ppe_preference_proxy_evaluations(base: Recipe | None = None) -> Recipe:
    """No settings: `rewardlab scoreboard RATER --on ppe-preference-proxy-evaluations --data FILE`."""
    base = base or Recipe(name="ppe_preference_proxy_evaluations")
    return base.but(study=proxies())


fidelity = "core"
left_out = "the released code was not at hand: intervals are those of the fit, not of resampled battles; people's ties are left out"

check = Check(
    says="accuracy on votes goes closer than rankings of models with the worth of picks, over raters with noise and liked styles",
    versus=None, task="arithmetic", measure="accuracy", direction="higher", margin=0.3, against="spearman",
    finding="correlations of 0.97 and 0.21 (five seeds): noise on single replies averages out over battles, and a liking for some "
    "models' style moves a ranking without spoiling the choice among replies of one policy. So the authors found in policies",
)  # fmt: skip
