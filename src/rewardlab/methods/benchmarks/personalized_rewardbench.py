"""Personalized RewardBench: which of two good replies suits this user, whose earlier posts stand before the question?

    right = 1[r(profile, question, chosen) > r(profile, question, rejected)];   overall = mean over three domains (inferred)

Both replies are good ones; the chosen one keeps to what this user expects (rubrics, which no rater sees), and the rejected one
violates it. A rater that does not read the profile can only guess.

Ma et al. 2026, arXiv:2604.07343, and the released code and data (Martin-qyma/Personalized-RewardBench: evaluation/pointwise.py,
BoN/sample.py; QiyaoMa/Personalized-RewardBench). A tie is lost. Posts are written as in BoN/sample.py, the first ten of them. The
card has the profile as an option; the released script of the table scores the question alone, and the one of best-of-n puts the
profile after it. Here it stands before. An unread judgement counts as A there; here it is wrong.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from rewardlab.checks.claim import Check
from rewardlab.core import Recipe, Run, seed_of, study
from rewardlab.scoreboard.benchmark import Benchmark, Published
from rewardlab.scoreboard.figures import Marks, by_subset
from rewardlab.scoreboard.items import Item, Verdict, users
from rewardlab.scoreboard.procedural import figures_of, items_of
from rewardlab.util.ranking import kendall_tau

kind = "benchmark"
POSTS = 10
DOMAINS = {"Art": "art", "Lifestyle": "lifestyle", "Society": "society"}


def read(row: Mapping[str, Any], file: str) -> Iterator[Item]:
    posts = row["profile"][:POSTS]
    if not posts:
        raise ValueError("the profile has no posts")
    profile = "\n".join(f"Post {k} (Category: {post['category']}):\n{post['text']}" for k, post in enumerate(posts, 1))
    category = str(row["category"])
    subset = next((name for start, name in DOMAINS.items() if category.startswith(start) or file.startswith(start)), category)
    prompt = f"Earlier posts of the user:\n{profile}\n\nQuestion:\n{row['question']}"
    yield Item(str(row["id"]), users(prompt), (row["chosen"], row["rejected"]), (1.0, 0.0), subset)


def marks(item: Item, verdict: Verdict) -> dict[str, float]:
    (pair,) = item.pairs
    return {"right": float((verdict.prefers(*pair) or 0.0) > 0.5)}


def figures(marks: Marks) -> dict[str, float]:
    """overall, the mean of the domains; each domain; and the share of all pairs."""
    return {**by_subset(marks, "right", "macro"), "all pairs": marks.mean("right")}


benchmark = Benchmark(
    title="Personalized RewardBench", hub="QiyaoMa/Personalized-RewardBench", read=read, marks=marks, figures=figures,
    chance={"overall": 0.5, "all pairs": 0.5},
    published=(Published("the best of the paper's reward models", {"overall": 0.7594}, "arXiv:2604.07343, abstract"),),
    example=(
        {
            "id": "a", "category": "Art_and_Entertainment", "question": "Which film should I see?",
            "profile": [{"id": "1", "category": "Art", "text": "I only watch films under 90 minutes."}],
            "chosen": "A short one: Run Lola Run, 81 minutes.", "rejected": "The Godfather, a classic of three hours.",
        },
        {
            "id": "b", "category": "Lifestyle_and_Personal_Development", "question": "What can I cook tonight?",
            "profile": [{"id": "2", "category": "Lifestyle", "text": "We have been vegan for a year."}],
            "chosen": "A lentil stew with rice.", "rejected": "A roast chicken with rice.",
        },
    ),
)  # fmt: skip

STYLES = ("brief", "formal", "funny", "detailed", "with sources", "step by step")


@study
def what_best_of_n_is_worth(run: Run, *, raters: int = 40, users: int = 150) -> dict[str, float]:
    """Raters that all know a good reply from a poor one, as those of the paper do, and heed what the user asked for in earlier
    posts each in its own measure; with noise.

    told: how far accuracy here ranks raters by what their best of 16 is worth to the user (Kendall's tau); control: how far
    accuracy on pairs of a good and a poor reply, whatever the user likes, does. Replies are worth quality and liking alike.
    """
    rng = np.random.default_rng(seed_of("study", run.seed))
    items = items_of(benchmark, [_row(i, rng) for i in range(users)])
    found = []
    for _ in range(raters):
        good, liked, noise = rng.uniform(0.7, 1), rng.uniform(0, 1), rng.uniform(0.2, 0.6)
        errors = {i.id: noise * rng.normal(size=2) for i in items}

        def score(item: Item, k: int, liked: float = liked, errors: dict[str, np.ndarray] = errors) -> float:
            likes = item.question.split("I like replies ")[1].split(".")[0]
            return liked * float(likes in item.replies[k]) + float(errors[item.id][k])

        generic = good + noise * rng.normal(size=users) > noise * rng.normal(size=users)
        worth = _best_of(good, liked, noise, rng)
        found.append((figures_of(benchmark, items, score)["overall"], float(generic.mean()), worth))
    here, usual, truth = zip(*found, strict=True)
    return {"told": kendall_tau(here, truth), "control": kendall_tau(usual, truth)}


def _row(index: int, rng: np.random.Generator) -> dict[str, Any]:
    liked, other = (str(x) for x in rng.choice(STYLES, 2, replace=False))
    return {
        "id": str(index), "category": ("Art", "Lifestyle", "Society")[index % 3], "question": f"Question {index}?",
        "profile": [{"category": "Art", "text": f"I like replies {liked}."}],
        "chosen": f"A good reply, {liked}.", "rejected": f"A good reply, {other}.",
    }  # fmt: skip


def _best_of(good: float, liked: float, noise: float, rng: np.random.Generator, n: int = 16, prompts: int = 1000) -> float:
    """What the reply that a rater scores best of n is worth on average: quality (0 or 1) and liking (0 or 1)."""
    quality, liking = (rng.random((prompts, n)) < 0.3).astype(float), (rng.random((prompts, n)) < 1 / len(STYLES)).astype(float)
    chosen = (good * quality + liked * liking + noise * rng.normal(size=(prompts, n))).argmax(1)
    return float((quality + liking)[np.arange(prompts), chosen].mean())


def personalized_rewardbench(base: Recipe | None = None) -> Recipe:
    """No settings: `rewardlab scoreboard RATER --on personalized-rewardbench --data FILE`."""
    base = base or Recipe(name="personalized_rewardbench")
    return base.but(study=what_best_of_n_is_worth())


fidelity = "core"
left_out = "reinforcement learning with the raters, and best-of-n with the paper's models"

check = Check(
    says="where raters know good replies from poor ones, accuracy on one user's liking ranks them by what their best of 16 is "
    "worth to users better than accuracy on pairs of a good and a poor reply", versus=None, task="arithmetic", measure="told",
    direction="higher", margin=0.15, against="control",
    tried="raters that differ in both alike, weights 0 to 1 of quality and of liking: no difference (a tau of 0.50 against 0.56)",
    finding="a tau of 0.79 against 0.41 (five seeds)",
)  # fmt: skip
