"""ProcessBench: where is the first wrong step of a model's solution, or is there none?

    F1 = 2 a b / (a + b),   a: of solutions with an error, those whose first wrong step is named;   b: of right ones, those in which
                            no step is said to be wrong;   of each of the four sets; the headline is the mean over the sets

Zheng et al. 2024, arXiv:2412.06559, and the released code (QwenLM/ProcessBench, code/run_eval_prm_rlhflow.py and _trl.py). The
first step whose chance of being right is not above 1/2 is the one that is named, as by argmax over two labels in the released code.
The paper gives models that score by a scalar a threshold of their own; here it is 1/2 for all.
Not the same: `pooled_f1`, of all sets together; and `detection_f1`, the common F1 of saying that a solution has an error, wherever
it is said to be, which is higher and is also reported under the name of ProcessBench's F1. A solution without a verdict is wrong.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from rewardlab.checks.claim import Check
from rewardlab.core import Recipe, Run, study
from rewardlab.data.published import from_processbench
from rewardlab.evals.process import THRESHOLD, harmonic
from rewardlab.scoreboard.benchmark import Benchmark, Published
from rewardlab.scoreboard.figures import Marks, f1, mean_of_known
from rewardlab.scoreboard.items import Item, Verdict
from rewardlab.scoreboard.planted import told_apart
from rewardlab.scoreboard.steps import first_error_mark, item_of, judged

kind = "benchmark"


def read(row: Mapping[str, Any], file: str) -> Iterator[Item]:
    """Its set is the beginning of its id ("omnimath-12")."""
    name = str(row["id"])
    (solution,) = from_processbench(dict(row))
    yield item_of(solution, name, name.rpartition("-")[0] or file)


def marks(item: Item, verdict: Verdict) -> dict[str, float]:
    """error, correct: whether the verdict is right, of a solution with an error, and of a right one.  flawed: it has an error;
    said: it is said to have one."""
    flawed = item.worth[0] < 1.0
    found = judged(item, verdict)
    said = any(c <= THRESHOLD for c in found[0].chances) if found else not flawed
    return first_error_mark(item, verdict) | {"flawed": float(flawed), "said": float(said)}


def figures(marks: Marks) -> dict[str, float]:
    """f1: the mean over the sets, each set's, and the two accuracies that it is made of (means over the sets). A set without
    solutions of one kind, as some items of it may be, is in no mean that needs them."""
    each = {name: _f1(marks.only(name)) for name in marks.subsets()}
    parts = {name: [marks.only(s).mean(name) for s in marks.subsets()] for name in ("error", "correct")}
    flawed, said = marks["flawed"], marks["said"]
    return {
        "f1": mean_of_known(each.values()), **(each if len(each) > 1 else {}),
        "error_accuracy": mean_of_known(parts["error"]), "correct_accuracy": mean_of_known(parts["correct"]),
        "pooled_f1": _f1(marks), "detection_f1": f1(float((flawed * said).sum()), float(said.sum()), float(flawed.sum())),
    }  # fmt: skip


def _f1(marks: Marks) -> float:
    return harmonic(marks.mean("error"), marks.mean("correct"))


def lacking(items: Sequence[Item]) -> str:
    """Which sets are not in the F1, since all of their solutions that are asked about are right, or all wrong."""
    kinds: dict[str, set[bool]] = {}
    for item in items:
        kinds.setdefault(item.subset, set()).add(item.worth[0] < 1.0)
    lone = {name: "right" if True in known else "wrong" for name, known in kinds.items() if len(known) == 1}
    if not lone:
        return ""
    told = ", ".join(f"{name} has no {kind} solution here" for name, kind in lone.items())
    left = len(kinds) - len(lone)
    return f"f1 is {f'the mean of {left} of {len(kinds)} sets' if left else 'left out'}: {told}"


_PAGES = "Ann reads 12 pages on Monday and twice as many on Tuesday. How many in all?"

benchmark = Benchmark(
    title="ProcessBench", data="processbench", hub="Qwen/ProcessBench", read=read, marks=marks, figures=figures, asks="steps",
    lacking=lacking,
    published=(
        Published("o1-mini (critic)", {"f1": 0.879}, "arXiv:2412.06559, table 3"),
        Published("QwQ-32B-Preview (critic, majority of 8)", {"f1": 0.715}, "arXiv:2412.06559, table 3"),
        Published("GPT-4o-0806 (critic)", {"f1": 0.619}, "arXiv:2412.06559, table 3"),
        Published("Qwen2.5-Math-7B-PRM800K", {"f1": 0.565}, "arXiv:2412.06559, table 3"),
        Published("Skywork-PRM-7B", {"f1": 0.421}, "arXiv:2412.06559, table 3"),
    ),
    example=(
        {
            "id": "gsm8k-0", "generator": "ours", "problem": _PAGES, "final_answer_correct": False, "label": 0,
            "steps": ["On Tuesday she reads 12 + 2 = 14 pages.", "Together 12 + 14 = 26 pages."],
        },
        {
            "id": "gsm8k-1", "generator": "ours", "problem": _PAGES, "final_answer_correct": True, "label": -1,
            "steps": ["On Tuesday she reads 2 * 12 = 24 pages.", "Together 12 + 24 = 36 pages."],
        },
    ),
)  # fmt: skip


# ---- its check: the common F1 does not see where an error is said to be --------------------------------------------------


def rows(rng: np.random.Generator, n: int = 80) -> list[dict[str, Any]]:
    """Running sums of six steps, two in three with an error from some step on (its later steps build on it)."""
    found: list[dict[str, Any]] = []
    for i in range(n):
        numbers = rng.integers(2, 30, size=7).tolist()
        label = int(rng.integers(6)) if i % 3 else -1
        total, steps = numbers[0], []
        for k, number in enumerate(numbers[1:]):
            value = total + number + (int(rng.choice((-10, -1, 1, 10))) if k == label else 0)
            steps.append(f"{total} + {number} = {value}")
            total = value
        question = f"What is {' + '.join(map(str, numbers))}?"
        found.append({"id": f"sums-{i}", "problem": question, "steps": steps, "final_answer_correct": label < 0, "label": label})
    return found


def by_step(item: Item, rng: np.random.Generator) -> Verdict:
    """It checks each sum, and sees three wrong ones out of four."""
    chances = []
    for step in item.steps[0]:
        left, _, value = step.partition(" = ")
        a, b = left.split(" + ")
        chances.append(0.9 if int(a) + int(b) == int(value) or rng.random() < 0.25 else 0.1)
    return Verdict(steps=(tuple(chances),))


def by_answer(item: Item, rng: np.random.Generator) -> Verdict:
    """It knows whether the answer is right, as an outcome reward model might, and says so at the last step."""
    right = item.worth[0] == 1.0
    return Verdict(steps=((*(0.9 for _ in item.steps[0][1:]), 0.9 if right else 0.1),))


@study
def fault_found(run: Run) -> dict[str, float]:
    """met: in what share of 40 samples F1 puts a checker of steps above a rater that knows the answer and no step; control: in
    what share the common F1 of detection does."""
    rng = np.random.default_rng(run.seed)
    told = told_apart(benchmark, rows, by_step, by_answer, rng)
    return {"met": told["f1"], "control": told["detection_f1"], "correct_accuracy": told["correct_accuracy"]}


def processbench(base: Recipe | None = None) -> Recipe:
    """No settings: `rewardlab scoreboard RATER --on processbench`."""
    base = base or Recipe(name="processbench")
    return base.but(study=fault_found())


fidelity = "whole"

check = Check(
    says="F1 of first errors tells a checker of steps from a rater of answers, which the common F1 of detection prefers",
    versus=None, task="arithmetic", measure="met", direction="higher", margin=0.5, against="control",
    finding="F1 puts the checker of steps ahead in every sample, the F1 of detection in none",
)  # fmt: skip
