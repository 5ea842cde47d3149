"""PandaLM test set: does a judge agree with the majority of three people, where a tie is an answer too?

    label = majority of three annotators, 1, 2 or 0 (tie);   agreement = share of pairs with judge = label
    precision, recall, f1: of each of the three labels, averaged over them alike (macro)

Wang et al. 2023, arXiv:2306.05087, and the released data and code (WeOpenML/PandaLM, data/compute_metrics.py). That code takes an
output that cannot be read for a tie: `accuracy`, precision, recall and f1 follow it, so that 13 of 25 unread outputs of
gpt-3.5-turbo are right there. `agreement` counts them as wrong. Pairs of five models of 7B, each trained on the same
instructions; the annotators agree with a kappa of .85 to .88, since pairs on which they diverged were taken out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from rewardlab.checks.claim import Check
from rewardlab.core import Recipe, Run, study
from rewardlab.data.files import rows_of
from rewardlab.scoreboard.agreement import kappa
from rewardlab.scoreboard.benchmark import Benchmark, Published
from rewardlab.scoreboard.figures import Marks, f1
from rewardlab.scoreboard.items import Item, Verdict, users
from rewardlab.scoreboard.reproduced import reproduced

kind = "benchmark"
TIE, UNREAD = 0.0, 3.0
WORTH = {0: (0.0, 0.0), 1: (1.0, 0.0), 2: (0.0, 1.0)}


def read(row: Mapping[str, Any], file: str) -> Iterator[Item]:
    votes = [int(row[f"annotator{k}"]) for k in (1, 2, 3)]
    if not set(votes) <= set(WORTH):
        raise ValueError(f"annotators say 0, 1 or 2, and not {votes}")
    # three different votes have no majority: the first counts, as the released code has it
    label = max(votes, key=votes.count)
    prompt = f"{row['instruction']}\n\n{row['input']}" if row["input"] else row["instruction"]
    # a few responses were published as true and false
    replies = (str(row["response1"]), str(row["response2"]))
    yield Item(str(row["idx"]), users(prompt), replies, WORTH[label], row["cmp_key"], meta={"votes": votes, "label": label})


def marks(item: Item, verdict: Verdict) -> dict[str, float]:
    """label, said: 1 or 2, the better reply, or 0 for a tie; said 3 where there is no verdict."""
    first = verdict.prefers(0, 1)
    said = UNREAD if first is None else TIE if first == 0.5 else 1.0 if first > 0.5 else 2.0
    label = float(item.meta["label"])
    return {"label": label, "said": said, "right": float(said == label)}


def figures(marks: Marks) -> dict[str, float]:
    """agreement: no verdict is wrong.  decided: of the pairs that are no tie.  accuracy, precision, recall, f1: as released."""
    label, said = marks["label"], np.where(marks["said"] == UNREAD, TIE, marks["said"])
    rows = [_of_class(label == c, said == c) for c in (0.0, 1.0, 2.0)]
    macro = dict(zip(("precision", "recall", "f1"), map(float, np.mean(rows, 0)), strict=True))
    decided = marks.where(label != TIE).mean("right")
    return {"agreement": marks.mean("right"), "decided": decided, "accuracy": float((label == said).mean()), **macro}


def _of_class(there: np.ndarray, said: np.ndarray) -> tuple[float, float, float]:
    hits, n_said, n_there = (float(x.sum()) for x in (there & said, said, there))
    score = f1(hits, n_said, n_there) if n_said + n_there else 0.0
    return hits / max(n_said, 1.0), hits / max(n_there, 1.0), score


def outputs(path: Path) -> Iterator[tuple[str, str, Verdict]]:
    """The released outputs of gpt-3.5-turbo and PandaLM-7B, one order each: "1", "2", 0 or "Tie"; others are no verdict."""
    for _, row in rows_of(path):
        said = str(row["gpt_result"] if "gpt_result" in row else row["pandalm_result"]).lower()
        first = {"1": 1.0, "2": 0.0, "0": 0.5, "tie": 0.5}.get(said)
        yield path.name.split(".jsonl")[0], str(row["idx"]), Verdict(orders={(0, 1): first})


_CODE = "data/compute_metrics.py of WeOpenML/PandaLM; agreement counted here"
_GPT = {"agreement": 0.6977, "accuracy": 0.7107, "precision": 0.5879, "recall": 0.5736, "f1": 0.5755}
_PANDA = {"agreement": 0.6677, "accuracy": 0.6677, "precision": 0.5738, "recall": 0.5750, "f1": 0.5743}
_ABOUT = {"motivation_app": "", "cmp_key": "llama-7b_opt-7b"}

benchmark = Benchmark(
    title="PandaLM test set", data="pandalm", released=("gpt-3.5-turbo", "pandalm-7b"), read=read, marks=marks,
    figures=figures, outputs=outputs, chance={"decided": 0.5},
    published=(
        Published("gpt-3.5-turbo", _GPT, _CODE, "gpt-3.5-turbo"), Published("PandaLM-7B", _PANDA, _CODE, "pandalm-7b"),
    ),
    example=(
        {
            "idx": 0, "instruction": "Name the opposite.", "input": "hot", "response1": "cold", "response2": "very hot",
            "annotator1": 1, "annotator2": 1, "annotator3": 0, **_ABOUT,
        },
        {
            "idx": 1, "instruction": "Is 7 a prime number?", "input": "", "response1": False, "response2": "Yes, it is.",
            "annotator1": 2, "annotator2": 2, "annotator3": 2, **_ABOUT,
        },
    ),
)  # fmt: skip

OF_LABELS = {
    "ties": (105, 0.0), "first": (422, 0.0), "second": (472, 0.0), "kappa_1_2": (0.85, 0.005), "kappa_1_3": (0.88, 0.005),
    "kappa_2_3": (0.86, 0.005), "longer": (0.672, 0.0005),
}  # fmt: skip
"""Figures of the labels, and how far rounding may move them: those of the README, and how often the longer response is better."""


def of_labels(votes: np.ndarray, lengths: np.ndarray) -> dict[str, float]:
    """How many majorities are ties, 1 and 2; Cohen's kappa of each two annotators; and how often the longer response, or the second
    of two of the same length, is the better one, of the pairs that are no tie.  votes: (n, 3).  lengths: (n, 2), of the
    responses."""
    majority = np.array([max(row, key=list(row).count) for row in votes.tolist()])
    apart = {f"kappa_{i + 1}_{j + 1}": kappa(votes[:, i], votes[:, j]) for i, j in combinations(range(3), 2)}
    won = np.where(lengths[:, 0] > lengths[:, 1], 1, 2)[majority > 0] == majority[majority > 0]
    counts = {name: float((majority == c).sum()) for c, name in enumerate(("ties", "first", "second"))}
    return {**counts, **apart, "longer": float(won.mean())}


@study
def published_figures(run: Run) -> dict[str, float]:
    """met: the share of the judges' published figures, and of those of the labels, that come out; control: where each verdict, each
    annotator's vote and each response's length is given to another pair."""
    items = benchmark.items()
    judges = reproduced(benchmark)
    votes = np.array([item.meta["votes"] for item in items])
    lengths = np.array([[len(reply) for reply in item.replies] for item in items])
    moved = np.stack([np.roll(votes[:, k], k) for k in range(3)], 1), np.roll(lengths, 1, 0)
    total = judges["figures"] + len(OF_LABELS)
    return {
        "met": (judges["met"] * judges["figures"] + _met(of_labels(votes, lengths))) / total,
        "control": (judges["control"] * judges["figures"] + _met(of_labels(*moved))) / total, "figures": total,
    }  # fmt: skip


def _met(found: Mapping[str, float]) -> int:
    return sum(abs(found[name] - value) <= within for name, (value, within) in OF_LABELS.items())


def pandalm(base: Recipe | None = None) -> Recipe:
    """No settings: `rewardlab scoreboard RATER --on pandalm`."""
    base = base or Recipe(name="pandalm")
    return base.but(study=published_figures())


fidelity = "whole"

check = Check(
    says="the published figures of two judges and of three annotators come out of the released outputs and votes", versus=None,
    task="arithmetic", measure="met", direction="higher", margin=0.8, against="control",
    finding="all 17 figures come out, and none where verdicts and votes are given to other pairs. On the pairs that are no tie, a "
    "rater by length is right on 67%, PandaLM-7B on 71%, gpt-3.5-turbo on 77%",
)  # fmt: skip
