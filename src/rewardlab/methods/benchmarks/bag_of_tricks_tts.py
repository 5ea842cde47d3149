"""Inference-time computation under matched budgets: which of N sampled solutions does a reward choose, and does it beat a vote?

    best_of_n = mean over problems of [the reply with the highest reward is right]
    best_of_k = its mean over all choices of k of the N replies;   majority: the most frequent answer
    vote      = the answer with the largest sum of rewards, scaled to 0..1 in each problem
    *_at_B    = the same of the replies, in their order, that fit B tokens together

Liu, Chao, Tan and Liu 2025, arXiv:2502.07191 (usail-hkust/benchmark_inference_time_computation_LLM), which samples anew for each
method; the proposer is varied there, the verifier here. Its samples are not released; those of StrictPRMBench are read (32 replies
each to 500 problems of GSM8K and of MATH-500, step scores of seven process reward models), and its published best-of-32 is the
check. How a reply is scored by its steps (product, geometric mean, minimum, last step, mean) is part of the rater's name.
`vote` differs from StrictPRMBench's cluster_sum, which adds raw scores, so that no reward that may be negative can be read.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from rewardlab.checks.claim import Check
from rewardlab.core import Recipe, Run, study
from rewardlab.data.strictprm import problems, step_scores
from rewardlab.scoreboard.benchmark import Benchmark, Published
from rewardlab.scoreboard.choices import chosen, expected_best, points, voted
from rewardlab.scoreboard.figures import Marks, by_subset
from rewardlab.scoreboard.items import Item, Verdict, users
from rewardlab.scoreboard.reproduced import reproduced
from rewardlab.text.votes import majority_of

kind = "benchmark"
BUDGETS = (1024, 4096)
RULES: dict[str, Callable[[Sequence[float]], float]] = {
    "product": math.prod, "gm": lambda x: math.prod(x) ** (1 / len(x)), "min": min, "last": lambda x: x[-1],
    "mean": lambda x: sum(x) / len(x),
}  # fmt: skip


def read(row: Mapping[str, Any], file: str) -> Iterator[Item]:
    """The candidates of a problem; a right one is worth 1."""
    candidates = row["candidates"]
    if not candidates:
        raise ValueError("a problem has at least one candidate")
    steps = tuple(tuple(map(str, c["steps"])) for c in candidates)
    answers = [None if (a := c.get("extracted_answer")) in (None, "") else str(a) for c in candidates]
    meta = {"answers": answers, "tokens": [c.get("num_tokens") for c in candidates]}
    problem = row["problem"]
    yield Item(
        str(row["problem_id"]), users(problem["question"]), tuple("\n\n".join(s) for s in steps),
        tuple(float(bool(c["is_correct"])) for c in candidates), str(problem.get("dataset", "")), steps=steps, meta=meta,
    )  # fmt: skip


def marks(item: Item, verdict: Verdict) -> dict[str, float]:
    reward, n = points(item, verdict), len(item.replies)
    found = {f"best_of_{k}": expected_best(reward, item.worth, k) for k in (2, 4, 8, 16) if k < n}
    found |= {"pass_at_1": float(np.mean(item.worth)), "pass_at_n": max(item.worth)}
    found |= {"best_of_n": _best(item, reward, n), "majority": _majority(item, n), "vote": _vote(item, reward)}
    tokens = item.meta["tokens"]
    if all(isinstance(t, int | float) for t in tokens):
        for budget in BUDGETS:
            # the first reply is paid for in any case
            fits = max(1, int(np.searchsorted(np.cumsum(tokens), budget, side="right")))
            found |= {f"best_at_{budget}": _best(item, reward, fits), f"majority_at_{budget}": _majority(item, fits)}
    return found


def _best(item: Item, reward: np.ndarray, n: int) -> float:
    place = chosen(reward[:n])
    return 0.0 if place is None else item.worth[place]


def _majority(item: Item, n: int) -> float:
    return _worth_of(item, majority_of(item.meta["answers"][:n]))


def _vote(item: Item, reward: np.ndarray) -> float:
    known = reward[np.isfinite(reward)]
    if not len(known):
        return 0.0
    return _worth_of(item, voted((reward - known.min()) / (np.ptp(known) or 1.0), item.meta["answers"]))


def _worth_of(item: Item, answer: str | None) -> float:
    """Of an answer: that of the first reply that gives it."""
    return 0.0 if answer is None else item.worth[item.meta["answers"].index(answer)]


def figures(marks: Marks) -> dict[str, float]:
    """best_of_n of all sets alike, and of each; then the other figures, means over the sets."""
    sets = marks.subsets()
    names = [name for name in marks.columns if name != "best_of_n"]
    best = by_subset(marks, "best_of_n", "macro")
    rest = {name: by_subset(marks, name, "macro")["overall"] for name in sorted(names, key=_order)}
    return {"best_of_n": best["overall"], **{s: marks.only(s).mean("best_of_n") for s in sets if s}, **rest}


def _order(name: str) -> tuple[str, int]:
    stem, _, number = name.rpartition("_")
    return (stem, int(number)) if number.isdigit() else (name, 0)


def outputs(path: Path) -> Iterator[tuple[str, str, Verdict]]:
    """Step scores of a process reward model, by each rule; rewards that are no chances by the last step and the mean alone."""
    name = path.name.split(".")[0].removeprefix("steps_").rsplit("_", 1)[0]
    rules = ("last", "mean") if name.startswith("internlm2") else RULES
    for problem, rows in step_scores(path):
        for rule in rules:
            yield f"{name}/{rule}", problem, Verdict(tuple(RULES[rule](row) if row else None for row in rows))


def _candidate(steps: list[str], answer: str, right: bool) -> dict[str, Any]:
    return {"steps": steps, "extracted_answer": answer, "is_correct": right, "num_tokens": 8 * len(steps)}


_TABLE = "StrictPRMBench, results: gain over best-of-1 at 32, published_gain32.csv"
_GAINS = {
    "math_shepherd": (0.850, 0.848, "min", 0.852), "skywork_prm": (0.870, 0.888, "mean", 0.888),
    "skywork_prm_1_5b": (0.852, 0.872, "mean", 0.876), "qwen_prm": (0.894, 0.894, "product", 0.894),
    "rlhflow_prm": (0.852, 0.856, "mean", 0.858), "internlm2_7b_reward": (None, None, "last", 0.884),
    "internlm2_1_8b_reward": (None, None, "last", 0.844),
}  # fmt: skip
"""Best-of-32 on GSM8K by the product and the geometric mean, and by the rule that the model's authors use."""


def _published() -> Iterator[Published]:
    for prm, (product, mean, own, official) in _GAINS.items():
        for rule, value in (("product", product), ("gm", mean), (own, official)):
            if value is not None:
                yield Published(f"{prm} by {rule}", {"gsm8k": value}, _TABLE, f"{prm}/{rule}")


benchmark = Benchmark(
    title="Inference-time computation (StrictPRMBench's samples)", data="strictprm", load=problems, released="steps_",
    skip=("answers", "deletion", "published"), read=read, marks=marks, figures=figures, outputs=outputs,
    published=tuple(_published()),
    example=(
        {
            "problem_id": "a", "problem": {"question": "What is 6 * 7?", "dataset": "gsm8k", "ground_truth": "42"},
            "candidates": [
                _candidate(["6 * 7 = 48", "So 48."], "48", False), _candidate(["6 * 7 = 42"], "42", True),
                _candidate(["7 + 7 = 14", "14 * 3 = 42"], "42", True),
            ],
        },
        {
            "problem_id": "b", "problem": {"question": "What is 100 / 8?", "dataset": "math500", "ground_truth": "12.5"},
            "candidates": [_candidate(["100 / 8 = 12"], "12", False), _candidate(["50 / 4 = 12.5"], "12.5", True)],
        },
    ),
)  # fmt: skip


@study
def published_best_of_32(run: Run) -> dict[str, float]:
    """The published best-of-32 of seven process reward models by their rules, from the released scores of steps."""
    return reproduced(benchmark)


def bag_of_tricks_tts(base: Recipe | None = None) -> Recipe:
    """No settings: `rewardlab scoreboard RATER --on bag-of-tricks-tts`, a process reward model as `PATH?by=product`."""
    base = base or Recipe(name="bag_of_tricks_tts")
    return base.but(study=published_best_of_32())


fidelity = "core"
left_out = (
    "the proposer (prompts, temperature, top-p) and step beam search, tree search and self-refinement, which sample while they "
    "search: the samples here are fixed; six of the eight tasks"
)

check = Check(
    says="the published best-of-32 of seven process reward models comes out of the released scores of steps", versus=None,
    task="arithmetic", measure="met", direction="higher", margin=0.5, against="control",
    finding="all 17 published figures come out exactly; where each problem gets the verdict of the next one, none does",
)  # fmt: skip
