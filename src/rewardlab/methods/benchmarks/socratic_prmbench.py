"""Socratic-PRMBench: does a process reward model find errors in all six patterns of reasoning, or only in those that it knows?

    PRM-Score = F1(right steps) / 2 + F1(wrong steps) / 2,   over the steps of all 2,995 flawed solutions; of each of 20 categories;
                                                             of a pattern: the mean of its categories (inferred)

Each solution has an error put into a step of one pattern: transformation, decomposition, regather, deduction, verification or
integration. `lowest_pattern` is ours: the headline can be high where one pattern is not known at all.

Li et al. 2025, arXiv:2505.23474. The paper calls its metric PRM-Score and evaluates with the toolkit of PRMBench (its appendix A),
whose code is followed here (ssmisya/PRMBench, mr_eval/tasks/prmtest_classified/task.py): steps of all solutions are counted
together, a second row of the same category and number is left out, and so is a solution without a verdict. Where an F1 is of
nothing the toolkit writes -1, and here it is 0. accuracy_right and accuracy_wrong are the paper's table of reward bias: how many
of the right steps, and of the wrong ones, are told rightly. The released rows (Xiang-Li-oss/Socratic-PRMBench, a file a category)
have PRMBench's columns. Some 80 of them list no step, or one that is not there; these mark nothing. (inferred): the spelling of the
categories, of which only the pattern is read (a premise or a conclusion is one of deduction, a detection or correction one of
verification; else the file's name), and the threshold 1/2, which the toolkit sets for each model.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from rewardlab.checks.claim import Check
from rewardlab.core import Recipe, Run, study
from rewardlab.data.published import from_prmbench
from rewardlab.prm.linear import LinearScorer, of_steps
from rewardlab.scoreboard.benchmark import Benchmark, Published
from rewardlab.scoreboard.figures import Marks
from rewardlab.scoreboard.items import Item, Verdict
from rewardlab.scoreboard.procedural import items_of
from rewardlab.scoreboard.steps import item_of, prm_figures, prm_marks

kind = "benchmark"
PATTERNS = ("transformation", "decomposition", "regather", "deduction", "verification", "integration")
OF = {"premise": "deduction", "conclusion": "deduction", "detection": "verification", "correction": "verification"}


def read(row: Mapping[str, Any], file: str) -> Iterator[Item]:
    """The modified process of a row; its subset is "pattern/category"."""
    category = str(row["classification"])
    if not category:
        raise ValueError("the row has no classification")
    wrong = [k for k in row["error_steps"] or () if isinstance(k, int) and k >= 1]
    solution = from_prmbench({**row, "error_steps": wrong, "original_process": None})[0]
    pattern = _pattern(category) or _pattern(file)
    yield item_of(solution, f"{category}/{row['idx']}", f"{pattern}/{category}" if pattern else category)


def _pattern(text: str) -> str:
    words = re.findall("[a-z]+", text.lower())
    return next((OF.get(w, w) for w in words if w in OF or w in PATTERNS), "")


marks = prm_marks


def figures(marks: Marks) -> dict[str, float]:
    """prm_score of all steps; each pattern and the lowest of them; each category; the parts of the score; how many of the right
    and of the wrong steps are told rightly."""
    groups = {pattern: [s for s in marks.subsets() if s.startswith(f"{pattern}/")] for pattern in PATTERNS}
    found = prm_figures(marks, groups)
    known = [found[pattern] for pattern in PATTERNS if pattern in found]
    right, wrong = (marks.total(a) + marks.total(b) for a, b in (("tp", "fn"), ("tn", "fp")))
    return found | {
        "lowest_pattern": min(known) if known else float("nan"),
        "accuracy_right": marks.total("tp") / right if right else float("nan"),
        "accuracy_wrong": marks.total("tn") / wrong if wrong else float("nan"),
    }


def _row(idx: str, category: str, question: str, steps: list[str], wrong: list[int]) -> dict[str, Any]:
    return {
        "idx": idx, "classification": category, "question": question, "modified_question": question,
        "original_process": steps, "modified_process": steps, "error_steps": wrong, "reason": "ours",
    }  # fmt: skip


_SOURCE = "arXiv:2505.23474, tables 3 and 4"
_TABLE = {
    "o3-mini (critic)": (0.757, 0.826, 0.690), "QwQ-32B (critic)": (0.738, 0.839, 0.631),
    "Gemini-2.5-Pro (critic)": (0.735, 0.836, 0.628), "GPT-4o (critic)": (0.708, 0.830, 0.575),
    "Qwen2.5-Math-PRM-7B": (0.680, 0.908, 0.429), "MathShepherd-Mistral-7B": (0.644, 0.733, 0.560),
    "ReasonEval-7B": (0.619, 0.873, 0.357), "Skywork-PRM-7B": (0.436, 0.227, 0.930),
}  # fmt: skip
_TEA = "Tea costs 4 a bag. How much are 6 bags?"

benchmark = Benchmark(
    title="Socratic-PRMBench", read=read, marks=marks, figures=figures, asks="steps",
    published=tuple(
        Published(name, {"prm_score": a, "accuracy_right": b, "accuracy_wrong": c}, _SOURCE) for name, (a, b, c) in _TABLE.items()
    ),
    example=(
        _row("gsm8k_test#1", "decomposition_redundancy", _TEA, [
            "<Decomposition>: Find the price of 6 bags, and the weight of one.", "<Deduction>: 6 * 4 = 24.",
        ], [1]),
        _row("gsm8k_test#2", "premise_unsoundness", _TEA, [
            "<Transformation>: We want 6 times 4.", "<Deduction>: There are 5 bags, so 5 * 4 = 20.", "<Integration>: They are 20.",
        ], [2, 3]),
    ),
)  # fmt: skip


# ---- its check: a scorer that has not seen a pattern -----------------------------------------------------------------

KINDS = ("counterfactual", "unsound")


def solution(rng: np.random.Generator, idx: int, pattern: str, kind: str) -> dict[str, Any]:
    """A price in six steps, with an error in the step of one pattern: a number that stands nowhere, or words that are not so."""
    a, b, c = rng.choice(np.arange(2, 40), 3, replace=False).tolist()
    thing, way = str(rng.choice(("pens", "cups", "hats", "bags"))), str(rng.choice(("plus", "minus", "divided by")))
    sides = [_steps(a, b, c, thing, int(rng.integers(2)), "times", "number")]
    odd = _steps(a, b + int(rng.integers(100, 900)), c, thing, int(rng.integers(2)), "times", "number")
    sides.append(odd if kind == "counterfactual" else _steps(a, b, c, thing, int(rng.integers(2)), way, "weight"))
    steps = [f"<{name.title()}>: {sides[name == pattern][name]}" for name in PATTERNS]
    question = f"A shop has {a} boxes of {b} {thing}. Each of the {thing} costs {c}. What do all cost?"
    return _row(f"ours#{idx}", f"{pattern}_{kind}", question, steps, [PATTERNS.index(pattern) + 1])


def _steps(a: int, b: int, c: int, thing: str, wording: int, way: str, what: str) -> dict[str, str]:
    """A step of each pattern, in one of two wordings. In right ones `way` is times, and `what` the number."""
    all_of = ("all", f"all {thing}")[wording]
    return {
        "transformation": (f"We want {a} {way} {b} {way} {c}.", f"It is asked for {a} {way} {b}, {way} {c}.")[wording],
        "decomposition": f"First find the {what} of {b} {thing} in {a} boxes, {('then', 'and after it')[wording]} their price.",
        "regather": f"The price of {all_of} is their {what} {way} the price of one, {c}.",
        "deduction": f"{a} {way} {b} gives {a * b}, {way} {c} gives {a * b * c}{('.', ' in all.')[wording]}",
        "verification": f"{('Check', 'To verify')[wording]}: {a * b * c} comes from {a} {way} {b}, which is the {what}.",
        "integration": f"{('So', 'Together')[wording]} {all_of} cost {a * b * c}, which is their {what} {way} {c}.",
    }


def _solutions(rng: np.random.Generator, each: int) -> list[Item]:
    return items_of(benchmark, [solution(rng, i, p, k) for i in range(each) for p in PATTERNS for k in KINDS])


@study
def unseen_patterns(run: Run) -> dict[str, float]:
    """A linear scorer learns from solutions with errors in five patterns, each left out once. unseen: its PRM-Score on the pattern
    left out, the mean over patterns; aggregate: its PRM-Score on all; step_accuracy: on all; seen: the score on the pattern where
    it is learnt too; lowest_found: in what share lowest_pattern is that of the pattern left out."""
    rng = np.random.default_rng(run.seed)
    training, test = _solutions(rng, 12), _solutions(rng, 12)
    rows = {item.id: of_steps(item.question, item.steps[0]) for item in (*training, *test)}
    whole = _figures_after(training, test, rows)
    found: list[list[float]] = []
    for pattern in PATTERNS:
        one = _figures_after([i for i in training if not i.subset.startswith(pattern)], test, rows)
        lowest = float(one["lowest_pattern"] == one[pattern])
        found.append([one[pattern], one["prm_score"], one["step_accuracy"], whole[pattern], lowest])
    names = ("unseen", "aggregate", "step_accuracy", "seen", "lowest_found")
    return dict(zip(names, np.mean(found, 0).tolist(), strict=True)) | {"seen_all": whole["prm_score"]}


def _figures_after(training: list[Item], test: list[Item], rows: Mapping[str, list[np.ndarray]]) -> dict[str, float]:
    """The figures on test solutions of a scorer of single steps that learns from the others."""
    learnt = [([step], label or 0.0) for item in training for step, label in zip(rows[item.id], item.labels[0], strict=True)]
    scorer = LinearScorer.fit([x for x, _ in learnt], [y for _, y in learnt])
    said = [Verdict(steps=(tuple(scorer.chances([[s] for s in rows[i.id]]).tolist()),)) for i in test]
    return figures(Marks.of(test, [marks(i, v) for i, v in zip(test, said, strict=True)]))


def socratic_prmbench(base: Recipe | None = None) -> Recipe:
    """No settings: `rewardlab scoreboard RATER --on socratic-prmbench --data FOLDER`."""
    base = base or Recipe(name="socratic_prmbench")
    return base.but(study=unseen_patterns())


fidelity = "core"
left_out = (
    "the model that writes solutions in the six patterns and the models that put errors in and filter them, of which only the rows "
    "are read; thresholds for each model; the distribution of the first errors that are named"
)

check = Check(
    says="on a pattern whose errors a scorer has not seen, its PRM-Score is lower than its aggregate score suggests", versus=None,
    task="arithmetic", measure="unseen", direction="lower", margin=0.05, against="aggregate",
    finding="0.47 on the pattern left out, 0.89 where it is learnt too; the aggregate score stays at 0.87 and step accuracy at "
    "0.94. In every run the lowest pattern is the one left out",
)  # fmt: skip
