"""VLRMBench: errors of eight kinds in steps of reasoning about pictures; which of two solutions is right; will one end well?

    F1 of a task = (n_right F1_wrong + n_wrong F1_right) / (n_right + n_wrong),   over all its steps: the rarer class weighs more
    steps = the mean of the tasks;   multi_solution, foresight: shares of right pairs, and of right forecasts

F1_wrong is that of finding wrong steps, n_wrong their number. A rater that finds every step right has an F1_wrong of 0, whatever
its step accuracy.

Ruan et al. 2025, arXiv:2503.07478, and the released code (JCruan519/VLRMBench, model_eval/get_sc_mc_rd_eval_res.py,
get_ms_eval_res.py, get_fores_eval_res.py, utils.py). A file a task in benchmark_data/: id, image (paths from meta_data/Image/
beside it, or from the file), question, step_list, reasoning_error (a text whose steps begin with "STEP3:", or a list) and task_gt,
of each step 1 where it is wrong, or whether the partial solution will come to a right answer. Raters give the chance that a step is
right, and above 1/2 it is said to be. Steps of a solution without a verdict are left out, as in the released code; a pair or a
forecast without one is wrong, and so is a tie. (inferred): the mean over tasks; that a solution is worth the least chance of its
steps, and that one will end well where its last step is said to be right, since the released prompts ask language models for scores
from 0 to 10 and for yes or no. A row with `error_info` is left out, as in the released vllm_localapi_eval.py, and
one whose text does not fall into as many steps as it has labels.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from rewardlab.checks.claim import Check
from rewardlab.core import Recipe, Run, seed_of, study
from rewardlab.data.pictures import base64_of, pictures_in
from rewardlab.scoreboard.benchmark import Benchmark, Published
from rewardlab.scoreboard.drawn import counted, holds
from rewardlab.scoreboard.figures import Marks, f1
from rewardlab.scoreboard.items import Item, Verdict, users
from rewardlab.scoreboard.planted import figures_of, told_apart

kind = "benchmark"
STEP_TASKS = {
    "step_correctness": "it holds an error", "redundant_det": "it adds nothing", "most_confidence": "it holds an error",
    "existence_hallucination": "it speaks of what the picture does not show, or overlooks what it shows",
    "attribute_hallucination": "it mistakes the size, colour or shape of what the picture shows",
    "detail_error": "a number or a sign is wrong", "location_error": "it mistakes where something is",
    "image_ref_error": "it takes what one picture shows for what another one does",
}  # fmt: skip
"""Tasks of steps, and when a step is wrong in each."""
SOLUTIONS, FORECAST = "multi_solution", "foresight"
CRITIQUE = ("error_correction", "error_reason_analysis")
BEGINS = re.compile(r"^(?=STEP\s*\d+\s*:)", re.MULTILINE)


def read(row: Mapping[str, Any], file: str) -> Iterator[Item]:
    task = next((t for t in (*STEP_TASKS, SOLUTIONS, FORECAST, *CRITIQUE) if t in (row.get("category"), file)), None)
    if task is None:
        raise ValueError(f"neither the file {file!r} nor the category {row.get('category')!r} is a task of VLRMBench")
    if task in CRITIQUE or row.get("error_info") is not None:
        return
    name, pictures = f"{task}/{row['id']}", pictures_in(row["image"])
    if task == SOLUTIONS:
        replies = (steps_of(row["step_list"]), steps_of(row["reasoning_error"]))
        blank = tuple((None,) * len(steps) for steps in replies)
        yield _item(name, users(row["question"], pictures), task, replies, blank, (1.0, 0.0))
        return
    steps = steps_of(row["step_list"] if task == FORECAST and "reasoning_error" not in row else row["reasoning_error"])
    if task == FORECAST:
        ends_well = float(bool(row["task_gt"]))
        labels: tuple[float | None, ...] = (*[None] * (len(steps) - 1), ends_well)
        yield _item(name, users(row["question"], pictures), task, (steps,), (labels,), (ends_well,))
    elif len(steps) == len(row["task_gt"]):
        asked = f"{row['question']}\n\nA step is wrong here where {STEP_TASKS[task]}."
        labels = tuple(1.0 - int(x) for x in row["task_gt"])
        yield _item(name, users(asked, pictures), task, (steps,), (labels,), (float(min(x or 0.0 for x in labels)),))


def _item(name: str, prompt: Any, task: str, steps: Any, labels: Any, worth: tuple[float, ...]) -> Item:
    compared = None if task == SOLUTIONS else ()
    return Item(name, prompt, tuple(map("\n".join, steps)), worth, task, compared, steps, labels)


def steps_of(told: str | Sequence[str]) -> tuple[str, ...]:
    """The steps of a solution, given as a list or as one text."""
    parts = BEGINS.split(told) if isinstance(told, str) else told
    return tuple(part.strip() for part in parts if part.strip())


def marks(item: Item, verdict: Verdict) -> dict[str, float]:
    """Of steps: how many are wrong, are said to be, and both, and how many there are. right: of pairs and forecasts."""
    chances = [verdict.steps[k] if k < len(verdict.steps) else None for k in range(len(item.replies))]
    if item.subset in (SOLUTIONS, FORECAST):
        if any(c is None or not len(c) for c in chances):
            return {"right": 0.0}
        known = [c for c in chances if c is not None]
        if item.subset == SOLUTIONS:
            return {"right": float(min(known[0]) > min(known[1]))}
        return {"right": float((known[0][-1] > 0.5) == (item.worth[0] == 1.0))}
    if chances[0] is None:
        return {}
    wrong, said = np.array(item.labels[0], float) < 0.5, np.array(chances[0]) <= 0.5
    counts = {"hits": (wrong & said).sum(), "said": said.sum(), "wrong": wrong.sum(), "steps": len(wrong)}
    return {name: float(n) for name, n in counts.items()}


def figures(marks: Marks) -> dict[str, float]:
    """steps, each task, and step accuracy over all steps, which the benchmark does not have."""
    each = {task: weighted_f1(marks.only(task)) for task in marks.subsets() if task in STEP_TASKS}
    hits, said, wrong, n = (marks.total(name) for name in ("hits", "said", "wrong", "steps"))
    found = {"steps": float(np.nanmean(list(each.values()))) if each and n else float("nan"), **each}
    found |= {task: marks.only(task).mean("right") for task in marks.subsets() if task in (SOLUTIONS, FORECAST)}
    return found | {"step accuracy": (n - said - wrong + 2 * hits) / n if n else float("nan")}


def weighted_f1(marks: Marks) -> float:
    """F1 of both classes of steps, each weighted by the other one's share; NaN where no step was judged."""
    hits, said, wrong, n = (marks.total(name) for name in ("hits", "said", "wrong", "steps"))
    if not n:
        return float("nan")
    bad, good = f1(hits, said, wrong), f1(n - said - wrong + hits, n - said, n - wrong)
    return float(((n - wrong) * np.nan_to_num(bad) + wrong * np.nan_to_num(good)) / n)


def _row(name: str, task: str, image: Any, question: str, steps: Sequence[str], told: Any) -> dict[str, Any]:
    text = "\n\n".join(f"STEP{k + 1}: {step}" for k, step in enumerate(steps))
    return {"id": name, "image": [image], "question": question, "reasoning_error": text, "task_gt": told, "category": task}


_RED, _BLUE = (base64_of(np.full((8, 8, 3), colour, np.uint8)) for colour in ((220, 40, 40), (50, 80, 230)))

benchmark = Benchmark(
    title="VLRMBench", read=read, marks=marks, figures=figures, asks="steps", pictures=("image",),
    picture_folder="../meta_data/Image",
    published=(Published("GPT-4o", {FORECAST: 0.760}, "abstract of arXiv:2503.07478"),),
    example=(
        _row("1", "attribute_hallucination", _RED, "What is it?", ["It is a square.", "It is blue.", "So a square."], [0, 1, 0]),
        _row("2", "location_error", _BLUE, "Where is it?", ["It is everywhere.", "So it is not on the left."], [0, 1]),
        _row("3", FORECAST, _BLUE, "What colour is it?", ["I see a square.", "It is blue."], True),
        {
            **_row("4", SOLUTIONS, _RED, "What colour is it?", ["I see a square.", "It is green."], None),
            "step_list": ["STEP1: I see a square.", "STEP2: It is red."],
        },
    ),
)  # fmt: skip


# ---- its check: who checks sums alone, and who finds every step right ---------------------------------------------------

SEEN, READ = ("existence_hallucination", "attribute_hallucination"), ("detail_error", "step_correctness")


def rows(rng: np.random.Generator, n: int = 20) -> list[dict[str, Any]]:
    """Solutions of six steps of each of four tasks, one of them wrong: claims about the picture, or sums."""
    found = []
    for task in (*SEEN, *READ):
        for i in range(n):
            pair, at = counted(rng), int(rng.integers(6))
            a, b = rng.integers(2, 40, (2, 6))
            steps = [f"{x} + {y} = {x + y}" for x, y in zip(a.tolist(), b.tolist(), strict=True)]
            wrong = f"{a[at]} + {b[at]} = {a[at] + b[at] + int(rng.choice((-1, 1, 10)))}"
            if task in SEEN:
                steps, wrong = [f"{pair.better} ({k + 1})" for k in range(6)], f"{pair.worse} ({at + 1})"
            told = [int(k == at) for k in range(6)]
            found.append(_row(str(i), task, pair.frames[0], pair.question, [*steps[:at], wrong, *steps[at + 1 :]], told))
    return found


def right_step(item: Item, step: str, looks: bool) -> bool:
    """Whether a sum is right, or what is claimed of the picture; for who does not look, every claim is."""
    left, equals, value = step.partition(": ")[2].partition(" = ")
    if equals:
        first, second = left.split(" + ")
        return int(first) + int(second) == int(value)
    return bool(holds(item.pictures, step)) or not looks


def looks_and_errs(item: Item, rng: np.random.Generator) -> Verdict:
    """It checks sums and pictures, and errs about one step in seven."""
    return Verdict(steps=(tuple(float(right_step(item, s, True) != (rng.random() < 1 / 7)) for s in item.steps[0]),))


def checks_sums(item: Item, rng: np.random.Generator) -> Verdict:
    """It checks every sum, and does not look."""
    return Verdict(steps=(tuple(float(right_step(item, s, False)) for s in item.steps[0]),))


@study
def blind_checkers_found(run: Run) -> dict[str, float]:
    """met: in what share of 40 samples F1 on hallucinations puts a noisy rater that looks above a faultless checker of sums that
    does not; control: in what share step accuracy does; looks, blind: their F1 on hallucinations; sums: the blind one's on details.
    """
    rng = np.random.default_rng(seed_of("study", run.seed))
    told = told_apart(benchmark, rows, looks_and_errs, checks_sums, rng)
    items = [item for row in rows(rng, 100) for item in read(row, "")]
    looks, blind = (figures_of(benchmark, items, rates, rng) for rates in (looks_and_errs, checks_sums))
    return {
        "met": told[SEEN[0]], "control": told["step accuracy"], "looks": looks[SEEN[0]], "blind": blind[SEEN[0]],
        "sums": blind[READ[0]],
    }  # fmt: skip


def vlrmbench(base: Recipe | None = None) -> Recipe:
    """No settings: `rewardlab scoreboard RATER --on vlrmbench --data benchmark_data`."""
    base = base or Recipe(name="vlrmbench")
    return base.but(study=blind_checkers_found())


fidelity = "core"
left_out = "the two tasks of critiques (error_correction, error_reason_analysis), which another judge compares with GPT-4o's"

check = Check(
    says="F1 on hallucinations tells a noisy rater that looks from a faultless checker of sums that does not, which is ahead in "
    "step accuracy", versus=None, task="arithmetic", measure="met", direction="higher", margin=0.5, against="control",
    finding="F1 on hallucinations puts the rater that looks ahead in every sample (71% against 15%), step accuracy in none",
)  # fmt: skip
