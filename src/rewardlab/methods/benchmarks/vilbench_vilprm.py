"""ViLBench: which of N solutions to a question about a picture does a reward choose: by its steps, or by its end?

    overall = mean over questions of [the reply with the highest reward is right]   best of N; equal ones share their chance
    one sample = mean over questions of the share of right replies;   oracle = questions with a right reply among the N

A process reward model scores each step, and an outcome reward model the whole reply; which of both chooses better depends on the
question. ViLBench's 600 questions are those of MMStar, MathVista, MathVerse, MMMU-Pro and RealWorldQA on which pilot raters have
the highest indicator of a preference for process rewards (this form of it is inferred):

    d = (mean PRM score of right replies - of wrong ones) - (the same of the ORM's scores)

Tu et al. 2025, arXiv:2503.20271 (UCSC-VLAA/ViLBench; its code was not found). Judges give steps 1 to 5 there. (inferred): the
columns `image`, `question`, `dataset`, and `responses` with `steps` and `correct`; the data on the hub may hold questions alone, to
which replies are sampled; that a reply is worth the mean of its steps' scores is the rater's setting here: `PATH?as=...&by=mean`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from rewardlab.checks.claim import Check
from rewardlab.core import Recipe, Run, seed_of, study
from rewardlab.data.pictures import base64_of, pictures_in
from rewardlab.scoreboard.benchmark import Benchmark, Published
from rewardlab.scoreboard.choices import expected_best, points
from rewardlab.scoreboard.drawn import COLOURS, SIDE, draw, holds
from rewardlab.scoreboard.figures import Marks, by_subset
from rewardlab.scoreboard.items import Item, Verdict, users

kind = "benchmark"


def read(row: Mapping[str, Any], file: str) -> Iterator[Item]:
    responses = row["responses"]
    if len(responses) < 2:
        raise ValueError(f"there are several responses to choose from, and not {len(responses)}")
    steps = tuple(tuple(map(str, r["steps"])) for r in responses)
    worth = tuple(float(bool(r["correct"])) for r in responses)
    item = Item("", users(str(row["question"]), pictures_in(row["image"])), tuple(map("\n".join, steps)), worth, steps=steps)
    name = str(row.get("id", item.key("replies")))
    yield Item(name, item.prompt, item.replies, worth, str(row.get("dataset", "")), steps=steps)


def marks(item: Item, verdict: Verdict) -> dict[str, float]:
    n = len(item.replies)
    right = expected_best(points(item, verdict), item.worth, n)
    return {"right": right, "sample": sum(item.worth) / n, "oracle": max(item.worth)}


def figures(marks: Marks) -> dict[str, float]:
    """overall, each source, one sample and oracle."""
    return by_subset(marks, "right") | {"one sample": marks.mean("sample"), "oracle": marks.mean("oracle")}


def indicator(worth: Sequence[float], by_steps: Sequence[float], by_end: Sequence[float]) -> float:
    """By how much more the scores of steps lead for right replies than those of ends do; 0 where all replies are alike."""
    right = np.asarray(worth, float) > 0.5
    if right.all() or not right.any():
        return 0.0
    leads = (float(np.mean(s[right]) - np.mean(s[~right])) for s in (np.asarray(by_steps, float), np.asarray(by_end, float)))
    return next(leads) - next(leads)


_RED, _BLUE = (base64_of(np.full((8, 8, 3), colour, np.uint8)) for colour in ((220, 40, 40), (50, 80, 230)))


def _row(name: str, dataset: str, image: Any, question: str, responses: Sequence[tuple[Sequence[str], bool]]) -> dict[str, Any]:
    told = [{"steps": list(steps), "correct": correct} for steps, correct in responses]
    return {"id": name, "dataset": dataset, "image": image, "question": question, "responses": told}


benchmark = Benchmark(
    title="ViLBench", hub="UCSC-VLAA/ViLBench", read=read, marks=marks, figures=figures, pictures=("image",),
    published=(Published("GPT-4o, one sample", {"one sample": 0.273}, "abstract of arXiv:2503.20271"),),
    example=(
        _row("1", "MMStar", _RED, "What colour is it?", [(["I look.", "It is red."], True), (["I look.", "It is blue."], False)]),
        _row("2", "MathVista", _BLUE, "How many sides has it?", [(["A square."], False), (["It is a square.", "So 4."], True)]),
    ),
)  # fmt: skip


# ---- its check: questions on which the steps decide, found by pilots, hold for others -------------------------------------

RIGHT = 0.8
"""The chance that a step of the study's replies is right."""


def rows(rng: np.random.Generator, n: int, replies: int = 8) -> list[dict[str, Any]]:
    """Half of the questions end in a claim about the picture; the others in a sum of three, of which the end shows nothing."""
    found = []
    for i in range(n):
        counts = rng.integers(1, 5, len(COLOURS))
        cells = np.full(SIDE * SIDE, -1)
        cells[rng.permutation(SIDE * SIDE)[: counts.sum()]] = np.repeat(np.arange(len(COLOURS)), counts)
        picture, deep, responses = draw(cells.reshape(SIDE, SIDE)), bool(i % 2), []
        for _ in range(replies):
            told = np.where(rng.random(len(COLOURS)) < RIGHT, counts, counts % 5 + 1)
            claims = [f"There are {k} {name} squares." for k, name in zip(told.tolist(), COLOURS, strict=True)]
            if deep:
                responses.append(([*claims, f"So there are {told.sum()} in all."], bool((told == counts).all())))
            else:
                responses.append((["I look at the picture.", claims[0]], bool(told[0] == counts[0])))
        found.append(_row(str(i), "deep" if deep else "plain", picture, "How many squares are there?", responses))
    return found


def by_steps(item: Item, rng: np.random.Generator, noise: float = 0.15) -> np.ndarray:
    """The mean over the steps of each reply of whether it holds, wrong with the chance `noise`."""
    return np.array([np.mean([_said(item, step, rng, noise) for step in steps]) for steps in item.steps])


def by_end(item: Item, rng: np.random.Generator, noise: float = 0.15) -> np.ndarray:
    """The same of the last step alone."""
    return np.array([_said(item, steps[-1], rng, noise) for steps in item.steps])


def _said(item: Item, step: str, rng: np.random.Generator, noise: float) -> float:
    shown = holds(item.pictures, step)
    return 0.5 if shown is None else float(shown != (rng.random() < noise))


def _chance(item: Item, rng: np.random.Generator) -> np.ndarray:
    return rng.random(len(item.replies))


Scores = Callable[[Item, np.random.Generator], np.ndarray]


def best_of(items: Sequence[Item], scores: Scores, rng: np.random.Generator) -> float:
    verdicts = [Verdict(tuple(scores(item, rng).tolist())) for item in items]
    return figures(Marks.of(items, [marks(i, v) for i, v in zip(items, verdicts, strict=True)]))["overall"]


@study
def steps_where_they_matter(run: Run, *, questions: int = 600, kept: float = 1 / 3) -> dict[str, float]:
    """The questions with the highest indicator by a pilot PRM and a pilot ORM, and what other raters get on them.

    met: by how much the held-out PRM's best of 8 is above the ORM's there; control: on all questions; by noise: where the pilots'
    scores are drawn by chance; prm, orm, blind, one sample: what they get on the kept questions (blind: scores by chance).
    """
    rng = np.random.default_rng(seed_of("study", run.seed))
    items = [item for row in rows(rng, questions) for item in read(row, "")]

    def chosen(first: Scores, second: Scores) -> list[Item]:
        d = np.array([indicator(i.worth, first(i, rng).tolist(), second(i, rng).tolist()) for i in items])
        return [items[k] for k in np.argsort(-d, kind="stable")[: int(kept * len(items))]]

    def gap(some: Sequence[Item]) -> float:
        return best_of(some, by_steps, rng) - best_of(some, by_end, rng)

    own, noise = chosen(by_steps, by_end), chosen(_chance, _chance)
    return {
        "met": gap(own), "control": gap(items), "by noise": gap(noise), "prm": best_of(own, by_steps, rng),
        "orm": best_of(own, by_end, rng), "blind": best_of(own, _chance, rng),
        "one sample": float(np.mean([np.mean(i.worth) for i in own])),
    }  # fmt: skip


def vilbench_vilprm(base: Recipe | None = None) -> Recipe:
    """No settings: `rewardlab scoreboard RATER --on vilbench-vilprm --data FILE`."""
    base = base or Recipe(name="vilbench_vilprm")
    return base.but(study=steps_where_they_matter())


fidelity = "core"
left_out = "ViLPRM: its 73.6K step labels by tree search, and the 3B model that is trained on them"

check = Check(
    says="questions that pilots find to need process rewards are ones on which other process rewards lead too", versus=None,
    task="arithmetic", measure="met", direction="higher", margin=0.1, against="control",
    finding="best of 8 by steps leads that by the end by 30 to 34 points on the third that pilots chose (five seeds), by 17 to 19 "
    "on all questions, and by 16 to 20 on a third chosen by noise; who does not look gets what one sample does, 53%",
)  # fmt: skip
