"""LLMBar: which of two replies follows the instruction? The adversarial ones that do not are better to look at.

    correct_average: the mean share of right verdicts over both orders;   correct_both: pairs right in both orders
    equal: pairs with the same verdict in both orders (positional agreement);   kappa_average: Cohen's kappa with the label, mean
    over the orders;   kappa_agreement: of one order with the other

Zeng et al. 2023, arXiv:2310.07641, and the released statistics and code (princeton-nlp/LLMBar, LLMEvaluator/evaluate.py). A
verdict that cannot be read counts as wrong, and as a mark of its own for the kappas. The released code writes 0 for a verdict of 2,
and for one that cannot be read, where the label is 2: its kappas with the label, and of unread verdicts, are not what they are
called. The check computes them in both ways; the figures here are the right ones. The sets Natural, Neighbor, GPTInst, GPTOut and
Manual are the paper's 419 pairs; `processed` are older pairs (FairEval, LLMEval^2, MT-Bench), `case study` its counterfactual ones.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from rewardlab.checks.claim import Check
from rewardlab.core import Recipe, Run, study
from rewardlab.data.files import rows_of
from rewardlab.scoreboard.agreement import kappa
from rewardlab.scoreboard.benchmark import Benchmark, Published
from rewardlab.scoreboard.figures import Marks
from rewardlab.scoreboard.items import Item, Verdict, users

kind = "benchmark"
NO = 3.0
"""The mark of a verdict that cannot be read."""


def read(row: Mapping[str, Any], file: str) -> Iterator[Item]:
    label, subset = int(row["label"]), str(row["set"])
    if label not in (1, 2):
        raise ValueError(f"the label is 1 or 2, and not {label}")
    worth = (1.0, 0.0) if label == 1 else (0.0, 1.0)
    yield Item(f"{subset}/{row['index']}", users(row["input"]), (row["output_1"], row["output_2"]), worth, subset)


def marks(item: Item, verdict: Verdict) -> dict[str, float]:
    """said, swapped: the reply that is preferred, 1 or 2, in either order; label: the better one."""
    label = 1.0 if item.worth[0] > item.worth[1] else 2.0
    said = _choice(verdict.order(0, 1))
    swapped = verdict.order(1, 0)
    other = _choice(None if swapped is None else 1.0 - swapped)
    return {"label": label, "said": said, "swapped": other, "correct": ((said == label) + (other == label)) / 2}


def _choice(first: float | None) -> float:
    return NO if first is None or first == 0.5 else 1.0 if first > 0.5 else 2.0


def statistics(marks: Marks) -> dict[str, float]:
    """The statistics that are published of a run, of all items given."""
    label, said, swapped = marks["label"], marks["said"], marks["swapped"]
    kappas = [kappa(label, said), kappa(label, swapped)]
    both = (said == label) & (swapped == label)
    return {
        "correct_average": marks.mean("correct"), "correct_both": float(both.mean()) if len(both) else math.nan,
        "equal": float((said == swapped).mean()), "kappa_average": float(np.mean(kappas)), "kappa_agreement": kappa(said, swapped),
    }  # fmt: skip


def figures(marks: Marks) -> dict[str, float]:
    """overall: correct_average of the adversarial sets and the natural one, each counting alike; of each set; the statistics."""
    own = [s for s in marks.subsets() if s.startswith("LLMBar/")]
    each = {s.rsplit("/", 1)[-1].lower(): marks.only(s).mean("correct") for s in own}
    rest = {}
    for name, start in (("processed", "Processed/"), ("case study", "CaseStudy/")):
        if others := [s for s in marks.subsets() if s.startswith(start)]:
            rest[name] = marks.only(*others).mean("correct")
    whole = statistics(marks.only(*own)) if own else {}
    return {"overall": float(np.mean(list(each.values()))) if each else math.nan, **each, **rest, **whole}


def outputs(path: Path) -> Iterator[tuple[str, str, Verdict]]:
    """The released verdicts: of each run (set, model, strategy) the winner with the replies as they stand and exchanged."""
    for _, row in rows_of(path):
        for index, (winner, swapped) in enumerate(row["winners"]):
            orders = {(0, 1): _first(winner), (1, 0): None if swapped is None else 1.0 - (_first(swapped) or 0.0)}
            yield f"{row['model']}/{row['strategy']}", f"{row['set']}/{index}", Verdict(orders=orders)


def _first(winner: str | None) -> float | None:
    return None if winner is None else float(winner == "1")


_SETS = ("natural", "neighbor", "gptinst", "gptout", "manual")
_RUNS = {
    "GPT-4/Vanilla": (0.955, 0.7873, 0.8641, 0.7766, 0.8043),
    "GPT-4/Metrics_Reference": (0.96, 0.8545, 0.8967, 0.7234, 0.837),
    "PaLM2/Vanilla": (0.83, 0.6269, 0.7337, 0.5957, 0.6522),
    "PaLM2/Metrics_Reference": (0.865, 0.6978, 0.7717, 0.6383, 0.6739),
    "LLaMA2/Vanilla": (0.805, 0.2463, 0.3043, 0.5638, 0.3696),
    "LLaMA2/Metrics_Reference": (0.76, 0.3582, 0.3478, 0.5957, 0.4348),
    "ChatGPT-0301/Vanilla": (0.84, 0.2873, 0.375, 0.5106, 0.4457),
    "ChatGPT-0301/Metrics_Reference": (0.8, 0.4104, 0.4076, 0.4787, 0.4674),
    "ChatGPT/Vanilla": (0.815, 0.194, 0.2663, 0.4149, 0.3478),
    "ChatGPT/Metrics_Reference": (0.825, 0.3806, 0.3587, 0.383, 0.4348),
    "Falcon/Vanilla": (0.74, 0.5037, 0.5, 0.5426, 0.5109),
    "Falcon/Metrics_Reference": (0.625, 0.5149, 0.4946, 0.5213, 0.5217),
}
"""Shares right, mean over both orders, of each judge asked plainly and with metrics and a reference of its own."""


def _published() -> Iterator[Published]:
    source = "statistics released with arXiv:2310.07641"
    for run, shares in _RUNS.items():
        each = dict(zip(_SETS, shares, strict=True))
        yield Published(run, {"overall": float(np.mean(shares)), **each}, source, run)


benchmark = Benchmark(
    title="LLMBar", data="llmbar", skip=("statistics", "rationales"), released="verdicts", hub="princeton-nlp/LLMBar",
    read=read, marks=marks, figures=figures, outputs=outputs, chance={"overall": 0.5},
    published=tuple(_published()),
    example=(
        {
            "set": "LLMBar/Natural", "index": 0, "input": "Name a colour in one word.", "label": 1,
            "output_1": "Red", "output_2": "There are many colours, for example red.",
        },
        {
            "set": "LLMBar/Adversarial/Manual", "index": 0, "input": "Write the word 'cat' backwards.", "label": 2,
            "output_1": "Cats are lovely animals with a long history!", "output_2": "tac",
        },
    ),
)  # fmt: skip


NAMES = ("correct_average", "correct_both", "equal", "kappa_average", "kappa_agreement")


@study
def published_statistics(run: Run) -> dict[str, float]:
    """met: the share of the published statistics of all released runs that come out, kappas in the way of the released code;
    control: where each verdict is given to the next pair; kappas_changed: the share of kappas with the label that the right way
    changes; figures: how many statistics these are."""
    sets: dict[str, list[Item]] = {}
    for item in benchmark.items():
        sets.setdefault(item.subset, []).append(item)
    (path,) = benchmark.released_files()
    known: dict[tuple[str, str], list[Verdict]] = {}
    for rater, name, verdict in outputs(path):
        known.setdefault((name.rsplit("/", 1)[0], rater), []).append(verdict)
    pairs = []
    for _, row in rows_of(path.with_name(path.name.replace("verdicts", "statistics"))):
        verdicts = known[row["set"], f"{row['model']}/{row['strategy']}"]
        told = [_number(row[name]) for name in NAMES]
        own = sets[row["set"]]
        pairs.append((told, _of_run(own, verdicts, True), _of_run(own, verdicts[1:] + verdicts[:1], True), _of_run(own, verdicts)))
    truth, ours, control, right = (np.array(rows) for rows in zip(*pairs, strict=True))
    return {
        "met": _same(truth, ours), "control": _same(truth[:, 0], control[:, 0]), "figures": float(truth.size),
        "kappas_changed": 1 - _same(ours[:, 3], right[:, 3]),
    }  # fmt: skip


def _of_run(items: list[Item], verdicts: list[Verdict], as_released: bool = False) -> list[float]:
    found = Marks.of(items, [marks(i, v) for i, v in zip(items, verdicts, strict=True)])
    known = statistics(found)
    if as_released:
        label, said, swapped = found["label"], *(np.where(found[x] == 1.0, 1.0, 0.0) for x in ("said", "swapped"))
        known["kappa_average"] = (kappa(label, said) + kappa(label, swapped)) / 2
        known["kappa_agreement"] = kappa(said, swapped)
    return [known[name] for name in NAMES]


def _number(told: float | str | None) -> float:
    """A published statistic: "29 / 54 = 53.70%", "48.15%" or a number."""
    if isinstance(told, str):
        return float(told.rpartition("=")[2].strip().rstrip("%")) / 100
    return math.nan if told is None else float(told)


def _same(a: np.ndarray, b: np.ndarray) -> float:
    return float(np.isclose(a, b, rtol=0, atol=1e-9, equal_nan=True).mean())


def llmbar(base: Recipe | None = None) -> Recipe:
    """No settings: `rewardlab scoreboard RATER --on llmbar`."""
    base = base or Recipe(name="llmbar")
    return base.but(study=published_statistics())


fidelity = "whole"

check = Check(
    says="the published statistics of 499 runs of six judges come out of their released verdicts", versus=None, task="arithmetic",
    measure="met", direction="higher", margin=0.8, against="control",
    finding="all 2,495 statistics come out. The kappas with the label only as the released code has them, which compares verdicts "
    "written 0 and 1 with labels 1 and 2: computed rightly, 97.6% of them are others",
)  # fmt: skip
