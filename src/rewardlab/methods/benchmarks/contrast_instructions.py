"""Contrast Instructions: two instructions in nearly the same words, each with its reply: is the reply that belongs to it preferred?

    response   = 1[r(i1, y1) > r(i1, y2)], and the same of i2, y2, y1;   instruction = 1[r(i1, y1) > r(i2, y1)], and the same of y2
    both = mean over rows of 1[all four]

A reward model that scores replies by themselves, without regard to the instruction, gets exactly half of the response side, however
well it ranks replies to one instruction, and nothing of the instruction side, where its scores are equal: a tie is lost. Judges of
pairs are not asked across instructions, and have the response side alone.

Shen et al. 2023, arXiv:2309.16155, and the released data and code (shadowkiller33/Contrast-Instruction, code/inference.py,
inference_mt.py, inference_para.py). The released scripts compare from the side of `query` alone, one of the two ways each; here
both sides of a row count (inferred from the definition). Rows with equal replies, or instructions, are left out. What stands around
the text differs by task ("Question: ...", "Answer: ") and is that of the code (inference.py, inference_para.py, inference_sum.py).
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from rewardlab.checks.claim import Check
from rewardlab.core import Recipe, Run, seed_of, study
from rewardlab.scoreboard.agreement import matched
from rewardlab.scoreboard.benchmark import Benchmark
from rewardlab.scoreboard.figures import Marks
from rewardlab.scoreboard.items import Item, Verdict, users
from rewardlab.scoreboard.procedural import figures_of, from_table, items_of
from rewardlab.util.ranking import kendall_tau

kind = "benchmark"
ASKED = {
    "wmt": "Please translate the sentences to English: {}", "para": "Paraphrase the following sentence: {}\n\nAnswer: ",
    "stack": "Question: {}\n\nAnswer: ", "sum": "Summarize the paragraph: {}\n\nAnswer: ",
}  # fmt: skip
"""What stands before and behind the text in each task."""


def read(row: Mapping[str, Any], file: str) -> Iterator[Item]:
    """Two items: each instruction with its own reply, and the other's."""
    task = next((name for name in ASKED if file.startswith(name)), "stack")
    asked, said = (row["query"], row["retrieval"]), (row["query_response_k"], row["retrieval_response_k"])
    if said[0] == said[1] or asked[0] == asked[1]:
        return
    key = zlib.crc32("\n".join((*asked, *said)).encode())
    for side in (0, 1):
        about = {"cluster": f"{task}/{key}", "key": key, "side": side}
        prompt, replies = users(ASKED[task].format(asked[side])), (said[side], said[1 - side])
        yield Item(f"{task}/{key}/{side}", prompt, replies, (1.0, 0.0), task, meta=about)


def marks(item: Item, verdict: Verdict) -> dict[str, float]:
    """response: whether the own reply is preferred.  own, other: the scores of both, which are compared across instructions."""
    (pair,) = item.pairs
    found = {"response": float((verdict.prefers(*pair) or 0.0) > 0.5), "key": item.meta["key"], "side": item.meta["side"]}
    if len(verdict.scores) == 2 and None not in verdict.scores:
        found |= {name: float(x or 0.0) for name, x in zip(("own", "other"), verdict.scores, strict=True)}
    return found


def figures(marks: Marks) -> dict[str, float]:
    """response, instruction and both; then response and instruction by task."""
    found = _sides(marks)
    for task in marks.subsets() if len(marks.subsets()) > 1 else ():
        found |= {f"{name} {task}": x for name, x in _sides(marks.only(task)).items()}
    return found


def _sides(marks: Marks) -> dict[str, float]:
    found = {"response": marks.mean("response")}
    first, second = (marks.where(marks["side"] == side) for side in (0, 1))
    i, j = matched(first["key"], second["key"])
    first, second = first.take(i), second.take(j)
    known = ~np.isnan(first["own"] + second["own"])
    if not known.any():
        return found
    # the same reply stands under the other instruction as the other one
    one, two = first["own"] > second["other"], second["own"] > first["other"]
    both = one & two & (first["response"] == 1) & (second["response"] == 1)
    return found | {"instruction": float(np.mean([one[known], two[known]])), "both": float(both[known].mean())}


def _row(query: str, retrieval: str, own: str, other: str) -> dict[str, str]:
    return {"query": query, "retrieval": retrieval, "query_response_k": own, "retrieval_response_k": other}


benchmark = Benchmark(
    title="Contrast Instructions", read=read, marks=marks, figures=figures, chance={"response": 0.5, "instruction": 0.5},
    lacks="the data, which is in the repository shadowkiller33/Contrast-Instruction (data/contrast_instructions/*.json)",
    example=(
        _row("How do I add a key to a dict?", "How do I remove a key from a dict?", "d[key] = value", "del d[key]"),
        _row("Who wrote Emma?", "Who reads Emma?", "Jane Austen wrote it.", "Those who like novels read it."),
    ),
)  # fmt: skip


@study
def replies_by_themselves(run: Run, *, raters: int = 40, rows: int = 150) -> dict[str, float]:
    """Raters that weigh whether a reply belongs to the instruction, each in its own measure, against what they make of the reply by
    itself, and noise of the reading.

    told: how far the response side ranks raters by that weight (Kendall's tau); control: how far accuracy on pairs of replies to
    one instruction does, of which both belong to it and one is better.
    """
    rng = np.random.default_rng(seed_of("study", run.seed))
    items = items_of(benchmark, [_row(f"do {i}", f"undo {i}", f"done {i}", f"undone {i}") for i in range(rows)])
    found = []
    for _ in range(raters):
        weight, noise = rng.uniform(0, 3), rng.uniform(0.2, 1.0)
        alone = {reply: rng.normal() for item in items for reply in item.replies}
        match = np.array([weight, 0.0])
        scores = {i.id: (match + [alone[r] for r in i.replies] + noise * rng.normal(size=2)).tolist() for i in items}
        told = figures_of(benchmark, items, from_table(scores))
        plain = float((1 + math.sqrt(2) * noise * rng.normal(size=2 * rows) > 0).mean())
        found.append((weight, told["response"], told["instruction"], plain))
    weights, response, instruction, usual = zip(*found, strict=True)
    return {
        "told": kendall_tau(response, weights), "control": kendall_tau(usual, weights),
        "instruction": kendall_tau(instruction, weights),
    }  # fmt: skip


def contrast_instructions(base: Recipe | None = None) -> Recipe:
    """No settings: `rewardlab scoreboard RATER --on contrast-instructions --data FILE`."""
    base = base or Recipe(name="contrast_instructions")
    return base.but(study=replies_by_themselves())


fidelity = "core"
left_out = "ConvexDA and RewardFusion, which train and ask a reward model more consistently, and the policies trained with it"

check = Check(
    says="the response side ranks raters by how far they heed the instruction; accuracy on replies to one instruction does not",
    versus=None, task="arithmetic", measure="told", direction="higher", margin=0.2, against="control",
    finding="a tau of 0.88 against 0.08; the instruction side has 0.66 (five seeds)",
)  # fmt: skip
