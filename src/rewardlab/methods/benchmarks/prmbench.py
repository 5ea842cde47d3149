"""PRMBench: does a process reward model find nine kinds of errors put into right solutions, and not see errors elsewhere?

    PRMScore = F1(right steps) / 2 + F1(wrong steps) / 2,   over the steps of all solutions of a category, or of all nine

Song et al. 2025, arXiv:2501.03124, and the released code (ssmisya/PRMBench, mr_eval/tasks/prmtest_classified/task.py). Two sums
circulate: `prm_score`, the headline of the paper, of the steps of all categories together (its F1 and negative_f1 beside it), and
`mean_of_categories`, each category counting alike. In `multi_solutions` no step is wrong, and its score is the F1 of right steps
alone, as in the paper's tables. A step is said to be right if its chance is above 1/2 (the released code has a threshold for each
model, most of them 1/2). A solution without a verdict is left out, as in the released code; `no_verdict` tells how many. Its
separate labels of redundancy are read for no model here: one number a step is asked.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from rewardlab.checks.claim import Check
from rewardlab.core import Recipe, Run, study
from rewardlab.data.published import from_prmbench
from rewardlab.evals.process import PRMBENCH
from rewardlab.scoreboard.benchmark import Benchmark
from rewardlab.scoreboard.figures import Marks
from rewardlab.scoreboard.items import Item, Verdict
from rewardlab.scoreboard.planted import told_apart
from rewardlab.scoreboard.steps import item_of, prm_figures, prm_marks

kind = "benchmark"


def read(row: Mapping[str, Any], file: str) -> Iterator[Item]:
    """The modified process of a row; a second row of the same category and number is left out, as in the released code."""
    solution = from_prmbench(dict(row))[0]
    category = str(row["classification"])
    yield item_of(solution, f"{category}/{row['idx']}", category)


marks = prm_marks


def figures(marks: Marks) -> dict[str, float]:
    return prm_figures(marks, PRMBENCH)


def _row(idx: str, category: str, question: str, steps: list[str], wrong: list[int]) -> dict[str, Any]:
    return {
        "idx": idx, "classification": category, "original_question": question, "modified_question": question,
        "original_process": steps, "modified_process": steps, "error_steps": wrong,
    }  # fmt: skip


_BOXES = "A box holds 3 red and 4 blue pens. How many pens are in 2 boxes?"

benchmark = Benchmark(
    title="PRMBench", data="prmbench*", hub="hitsmy/PRMBench_Preview", read=read, marks=marks, figures=figures, asks="steps",
    example=(
        _row("a_1", "counterfactual", _BOXES, ["3 + 4 = 8 pens a box.", "2 * 7 = 14 pens."], [1]),
        _row("a_2", "redundency", _BOXES, ["3 + 4 = 7 pens a box.", "So there are 7 a box.", "2 * 7 = 14."], [2]),
    ),
)  # fmt: skip


# ---- its check: step accuracy praises who finds everything right --------------------------------------------------------


def rows(rng: np.random.Generator, n: int = 60) -> list[dict[str, Any]]:
    """Running sums of six steps: half with one wrong value, half with a step that says again what is known."""
    found = []
    for i in range(n):
        numbers = rng.integers(2, 30, size=7).tolist()
        at, total, steps = int(rng.integers(1, 6)), numbers[0], []
        for number in numbers[1:]:
            steps.append(f"{total} + {number} = {total + number}")
            total += number
        question = f"What is {' + '.join(map(str, numbers))}?"
        if i % 2:
            left, _, value = steps[at].rpartition(" = ")
            steps[at] = f"{left} = {int(value) + int(rng.choice((-2, -1, 1, 10)))}"
            found.append(_row(str(i), "counterfactual", question, steps, [at + 1]))
        else:
            found.append(_row(str(i), "redundency", question, [*steps[:at], steps[at - 1], *steps[at:]], [at + 1]))
    return found


def checks_sums(item: Item, rng: np.random.Generator) -> Verdict:
    """It adds up: it sees four wrong values in five and no repeated step, and doubts one right step in ten."""
    chances = []
    for step in item.steps[0]:
        left, _, value = step.partition(" = ")
        a, b = left.split(" + ")
        chances.append(float(rng.random() > (0.1 if int(a) + int(b) == int(value) else 0.8)))
    return Verdict(steps=(tuple(chances),))


def finds_all_right(item: Item, rng: np.random.Generator) -> Verdict:
    return Verdict(steps=(tuple(0.9 for _ in item.steps[0]),))


@study
def fault_found(run: Run) -> dict[str, float]:
    """met: in what share of 40 samples PRMScore puts a noisy checker of sums above a rater that finds every step right; control:
    in what share step accuracy does; categories: how much better the checker is on wrong values than on repeated steps."""
    rng = np.random.default_rng(run.seed)
    told = told_apart(benchmark, rows, checks_sums, finds_all_right, rng)
    items = [item for row in rows(rng) for item in read(row, "")]
    found = figures(Marks.of(items, [marks(item, checks_sums(item, rng)) for item in items]))
    return {"met": told["prm_score"], "control": told["step_accuracy"], "categories": found["counterfactual"] - found["redundency"]}


def prmbench(base: Recipe | None = None) -> Recipe:
    """No settings: `rewardlab scoreboard RATER --on prmbench`."""
    base = base or Recipe(name="prmbench")
    return base.but(study=fault_found())


fidelity = "core"
left_out = (
    "`similarity`, the difference of what is said of a flawed solution and of its original, and with it the 758 originals, which "
    "enter no PRMScore; labels of redundancy beside those of validity, which the released code asks of critics"
)

check = Check(
    says="PRMScore tells a checker of sums from a rater that finds every step right, which is ahead in step accuracy", versus=None,
    task="arithmetic", measure="met", direction="higher", margin=0.5, against="control",
    finding="PRMScore puts the noisy checker ahead in every sample, step accuracy in 14%; it is 39 points better on wrong "
    "values than on repeated steps",
)  # fmt: skip
