"""MPBench: what a process reward model is used for, in three ways: to find errors, to choose among answers, and to guide a search.

    step correctness     fei: F1 of first errors as in ProcessBench;  aei: PRMScore, of all steps
    answer aggregation   bon: the solution with the highest mean score is right;  mv: so is the answer of the largest sum
    process search       f1, mcc: of candidates for the next step, the one with the highest score is said to be right
    overall = mean of the means of each two

Xu et al. 2025, arXiv:2503.12505, tables 2 to 7. The released code (xu5zhao/MPBench) was not found in stored text; the hub has three
files, step_correctness.json, answer_aggregation.json and reasoning_process_search.json, with pictures in a zip. Known from the
paper: the means above; that a model scores every step from -1 to 1, and every candidate with the steps before it; chance. From its
numbers: mcc is 2 f1 - 1 for each of the 12 models, so that one of two candidates is right; a vote depends on the model, so that it
is weighted. (inferred): the rest: columns, that the paper's "RM-Score" is PRMScore, the mean over steps as the score of a solution,
a threshold of 1/2, and that what has no verdict is told wrongly. Equal scores share the choice. `image`, in any form, is part of
the prompt. The paper's row of InternVL2.5-38B is not the mean of its parts and is left out here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from rewardlab.checks.claim import Check
from rewardlab.core import Message, Recipe, Run, study
from rewardlab.data.pictures import base64_of, pictures_in
from rewardlab.data.solutions import Solution
from rewardlab.evals.process import harmonic
from rewardlab.scoreboard.benchmark import Benchmark, Published
from rewardlab.scoreboard.choices import expected_best, voted
from rewardlab.scoreboard.figures import Marks, f1
from rewardlab.scoreboard.items import Item, Verdict
from rewardlab.scoreboard.planted import figures_of, told_apart
from rewardlab.scoreboard.procedural import items_of
from rewardlab.scoreboard.steps import COUNTS, first_error_mark, item_of, mcc, prm_marks, score_of

kind = "benchmark"
STEPS, ANSWERS, SEARCH = "step_correctness", "answer_aggregation", "reasoning_process_search"
PARTS = {STEPS: ("fei", "aei"), ANSWERS: ("bon", "mv"), SEARCH: ("f1", "mcc")}


def read(row: Mapping[str, Any], file: str) -> Iterator[Item]:
    """A row with `solutions` is one to aggregate, with `candidates` one of search, and else one of steps."""
    domain = str(row.get("domain") or "")
    name = str(row["id"])
    if "solutions" in row:
        yield _choice(row, f"{ANSWERS}/{name}", f"{ANSWERS}/{domain}", *_solutions(row))
    elif "candidates" in row:
        label, candidates = row["label"], row["candidates"]
        if not isinstance(label, int) or not 0 <= label < len(candidates) or len(candidates) < 2:
            raise ValueError(f"the label is the place of one of several candidates, from 0, and not {label!r} of {len(candidates)}")
        rows = [(*row["steps"], step) for step in candidates]
        yield _choice(row, f"{SEARCH}/{name}", f"{SEARCH}/{domain}", rows, [float(k == label) for k in range(len(rows))])
    else:
        steps, wrong = tuple(row["steps"]), row["error_steps"]
        if not steps or not all(isinstance(k, int) and 1 <= k <= len(steps) for k in wrong):
            raise ValueError(f"error_steps are places of the {len(steps)} steps, from 1, and not {wrong!r}")
        labels = tuple(float(k not in wrong) for k in range(1, len(steps) + 1))
        prompt = _prompt(row)
        yield item_of(Solution(prompt[0].text, steps, labels), f"{STEPS}/{name}", f"{STEPS}/{domain}", prompt)


def _prompt(row: Mapping[str, Any]) -> tuple[Message, ...]:
    images = pictures_in(row["image"]) if row.get("image") else ()
    choices = [f"({chr(65 + k)}) {text}" for k, text in enumerate(row.get("choices") or ())]
    return (Message("user", "\n".join((row["question"], *choices)), images=images),)


def _solutions(row: Mapping[str, Any]) -> tuple[list[tuple[str, ...]], list[float]]:
    steps = [tuple(s["steps"]) for s in row["solutions"]]
    worth = [float(str(s["answer"]) == str(row["answer"])) for s in row["solutions"]]
    if len(steps) < 2 or not all(steps) or not 0 < sum(worth) < len(worth):
        raise ValueError(f"of {len(steps)} solutions, each with steps, some are right and some wrong, and here {sum(worth):g} are")
    return steps, worth


def _choice(row: Mapping[str, Any], name: str, subset: str, steps: Sequence[tuple[str, ...]], worth: Sequence[float]) -> Item:
    """Replies of which one is chosen by the scores of their steps; of these the last is labelled, by what the reply is worth."""
    labels = tuple((*[None] * (len(s) - 1), w) for s, w in zip(steps, worth, strict=True))
    meta = {"answers": [str(s["answer"]) for s in row.get("solutions", ())]}
    replies = tuple("\n\n".join(s) for s in steps)
    return Item(name, _prompt(row), replies, tuple(worth), subset, compared=(), steps=tuple(steps), labels=labels, meta=meta)


def marks(item: Item, verdict: Verdict) -> dict[str, float]:
    """Of steps: PRMBench's counts, and whether the first error is found.  Of answers: whether the best of n and the vote are right.
    Of search: chosen, how far the right candidate is the one with the highest score; candidates."""
    if item.subset.startswith(STEPS):
        wrong = item.labels[0].count(0.0)
        silent = {"tp": 0.0, "fp": float(wrong), "tn": 0.0, "fn": float(len(item.labels[0]) - wrong)}
        return {name: x for name, x in (prm_marks(item, verdict) or silent).items() if name in COUNTS} | first_error_mark(
            item, verdict
        )
    said = [*verdict.steps, *[None] * (len(item.replies) - len(verdict.steps))]
    score = np.mean if item.subset.startswith(ANSWERS) else (lambda row: row[-1])
    points = np.array([float(score(row)) if row else -np.inf for row in said])
    best = expected_best(points, item.worth, len(points))
    if item.subset.startswith(SEARCH):
        return {"chosen": best, "candidates": len(points)}
    answers = item.meta["answers"]
    vote = voted(points, answers)
    return {"bon": best, "mv": 0.0 if vote is None else item.worth[answers.index(vote)]}


def figures(marks: Marks) -> dict[str, float]:
    """overall; the mean of each of the three, and its two figures; overall of each domain, where there are several."""
    domains = list(dict.fromkeys(s.rpartition("/")[2] for s in marks.subsets()))
    each = {d: _figures(marks.only(*(f"{part}/{d}" for part in PARTS)))["overall"] for d in domains if d}
    return _figures(marks) | (each if len(each) > 1 else {})


def _figures(marks: Marks) -> dict[str, float]:
    steps, answers, search = (marks.only(*(s for s in marks.subsets() if s.startswith(part))) for part in PARTS)
    found: dict[str, float] = {}
    if len(steps):
        error, correct = steps.mean("error"), steps.mean("correct")
        # where every solution has an error, or none has, there is nothing to weigh
        both = error if np.isnan(correct) else correct if np.isnan(error) else harmonic(error, correct)
        found |= {"fei": both, "aei": score_of(steps)["prm_score"]}
    if len(answers):
        found |= {"bon": answers.mean("bon"), "mv": answers.mean("mv")}
    if len(search):
        n, hits, others = len(search), search.total("chosen"), search.total("candidates") - len(search)
        found |= {"f1": f1(hits, n, n), "mcc": mcc(hits, n - hits, others - (n - hits), n - hits)}
    return averages(found) | found


def averages(found: Mapping[str, float]) -> dict[str, float]:
    """overall, and the mean of the two figures of each part that is there."""
    means = {part: float(np.mean([found[name] for name in names])) for part, names in PARTS.items() if names[0] in found}
    return {"overall": float(np.mean(list(means.values()))) if means else float("nan")} | means


_NAMES = ("overall", "fei", "aei", "bon", "mv", "f1", "mcc")
_TABLE = {
    "GPT-4o": (0.712, 0.512, 0.744, 0.853, 0.622, 0.847, 0.695),
    "Gemini-2.0-flash-exp": (0.654, 0.538, 0.749, 0.822, 0.696, 0.705, 0.411),
    "Gemini-2.0-thinking-exp": (0.646, 0.540, 0.749, 0.817, 0.677, 0.698, 0.396),
    "Qwen2.5-VL-72B": (0.558, 0.248, 0.652, 0.816, 0.698, 0.644, 0.288),
    "Qwen2.5-VL-7B": (0.457, 0.098, 0.542, 0.590, 0.525, 0.663, 0.325),
    "InternVL2.5-1B": (0.313, 0.222, 0.491, 0.471, 0.333, 0.455, -0.091),
}  # fmt: skip
_CHANCE = (0.318, 0.091, 0.5, 0.409, 0.409, 0.5, 0.0)
_TILES = base64_of(
    np.kron(np.tile([[0, 255], [255, 0]], (2, 2))[:3], np.ones((8, 8), int))[..., None].repeat(3, 2).astype(np.uint8)
)
_QUESTION = "The picture shows 3 rows of 4 tiles. Two tiles are taken away. How many are left?"


def _row(name: str, question: str, domain: str = "mathematics", **columns: Any) -> dict[str, Any]:
    return {"id": name, "domain": domain, "question": question, "choices": None, "image": None, **columns}


benchmark = Benchmark(
    title="MPBench", hub="xuzhaopan/MPBench", read=read, marks=marks, figures=figures, asks="steps", pictures=("image",),
    chance=dict(zip(_NAMES, _CHANCE, strict=True)),
    published=tuple(Published(m, dict(zip(_NAMES, x, strict=True)), "arXiv:2503.12505, table 2") for m, x in _TABLE.items()),
    example=(
        _row("1", _QUESTION, image=_TILES, steps=["There are 3 * 4 = 12 tiles.", "12 + 2 = 14 are left."], error_steps=[2]),
        _row("2", _QUESTION, image=_TILES, steps=["There are 3 * 4 = 12 tiles.", "12 - 2 = 10 are left."], error_steps=[]),
        _row("3", "Which is cold?", "commonsense", choices=["ice", "fire"], answer="A", solutions=[
            {"steps": ["Fire burns.", "So B is cold."], "answer": "B"}, {"steps": ["Ice is wet.", "So A is cold."], "answer": "A"},
        ]),
        _row("4", "What is 6 * 7 + 1?", steps=["6 * 7 = 42."], candidates=["42 + 1 = 44.", "42 + 1 = 43."], label=1),
    ),
)  # fmt: skip


# ---- its check: to know the answer is not to know the steps ----------------------------------------------------------


def rows(rng: np.random.Generator, n: int = 40) -> list[dict[str, Any]]:
    """Running sums for each of the three parts: n flawed or right ones, n with five solutions, n with two next steps."""
    found = []
    for i in range(n):
        numbers = rng.integers(2, 30, 6).tolist()
        question, wrong = f"What is {' + '.join(map(str, numbers))}?", int(rng.integers(5)) if i % 3 else -1
        found.append(_row(f"{i}", question, steps=_sums(rng, numbers, wrong), error_steps=[wrong + 1] if wrong >= 0 else []))
        # one solution is right, the others go wrong somewhere
        several = [_sums(rng, numbers, int(rng.integers(5)) if k else -1) for k in rng.permutation(5)]
        solutions = [{"steps": steps, "answer": steps[-1].rpartition(" ")[2]} for steps in several]
        found.append(_row(f"{i}", question, solutions=solutions, answer=str(sum(numbers))))
        at, label = int(rng.integers(1, 5)), int(rng.integers(2))
        sides = [_sums(rng, numbers, -1 if k == label else at) for k in range(2)]
        found.append(_row(f"{i}", question, steps=sides[0][:at], candidates=[s[at] for s in sides], label=label))
    return found


def _sums(rng: np.random.Generator, numbers: Sequence[int], wrong: int) -> list[str]:
    total, steps = numbers[0], []
    for k, number in enumerate(numbers[1:]):
        value = total + number + (int(rng.choice((-10, -1, 1, 10))) if k == wrong else 0)
        steps.append(f"{total} + {number} = {value}")
        total = value
    return steps


def _holds(step: str) -> bool:
    left, _, value = step.partition(" = ")
    return sum(map(int, left.split(" + "))) == int(value)


class Checks:
    """It checks each sum, and is wrong about a share `noise` of them."""

    def __init__(self, noise: float):
        self.noise = noise

    def __call__(self, item: Item, rng: np.random.Generator) -> Verdict:
        return Verdict(steps=tuple(tuple(float(_holds(s) != (rng.random() < self.noise)) for s in row) for row in item.steps))


def by_answer(item: Item, rng: np.random.Generator) -> Verdict:
    """It knows the sum that is asked for, as an outcome reward model might: a last step with another value is wrong. It sees no
    other fault."""
    truth = sum(int(x) for x in item.question.removeprefix("What is ").rstrip("?").split(" + "))
    whole = [len(row) == item.question.count("+") for row in item.steps]
    ends = [float(row[-1].endswith(f" = {truth}")) if known else 0.9 for row, known in zip(item.steps, whole, strict=True)]
    return Verdict(steps=tuple((*(0.9 for _ in row[1:]), end) for row, end in zip(item.steps, ends, strict=True)))


NOISE = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5)


@study
def three_parts(run: Run) -> dict[str, float]:
    """met: in what share of 40 samples overall puts a checker of steps that is wrong about one in ten above a rater that knows the
    answer; control: in what share the best of n does. falls_PART: the share of neighbouring pairs of six rates of noise, on 10
    samples, between which the mean of a part falls."""
    rng = np.random.default_rng(run.seed)
    told = told_apart(benchmark, rows, Checks(0.1), by_answer, rng)
    items = [items_of(benchmark, rows(rng)) for _ in range(10)]
    ladder = [[figures_of(benchmark, some, Checks(p), rng) for p in NOISE] for some in items]
    falls = {
        f"falls_{x}": float((np.diff([[f[x] for f in row] for row in ladder], axis=1) < 0).mean()) for x in ("overall", *PARTS)
    }
    return {"met": told["overall"], "control": told["bon"], **{part: told[part] for part in PARTS}, **falls}


def mpbench(base: Recipe | None = None) -> Recipe:
    """No settings: `rewardlab scoreboard RATER --on mpbench --data FOLDER`."""
    base = base or Recipe(name="mpbench")
    return base.but(study=three_parts())


fidelity = "core"
left_out = "the few-shot prompts by which the paper has multimodal models score all steps or candidates of a problem at once"

check = Check(
    says="the mean over three uses tells a checker of steps from a rater that knows the answer, whose best of n is better",
    versus=None, task="arithmetic", measure="met", direction="higher", margin=0.5, against="control",
    finding="the mean puts the checker ahead in every sample (one that is wrong about a fifth, in 55 to 83%), the best of n in "
    "none. As noise grows, the mean falls in 98% of the steps of the ladder, step correctness in 91%, search in 93%, aggregation "
    "in 87% (five seeds)",
)  # fmt: skip
