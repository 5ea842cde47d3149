"""StrictPRMBench: 32 solutions of a real model to each of 1,000 problems, with the step scores of seven real process reward models.

github.com/staged-benchmark-2026/StrictPRMBench (CC-BY-4.0). Its labels miss numbers with commas, and many of its gold answers to
MATH-500 are cut: these are taken from RewardMATH, which has 477 of the 500. Where the label, our verifier and Math-Verify did not
agree the replies were read; gsm8k.json and math500.json beside this file hold which of them are right.
"""

from __future__ import annotations

import functools
import gzip
import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, Literal

from rewardlab.core import Problem, Task, ask
from rewardlab.data.strictprm import problems as recorded
from rewardlab.data.strictprm import step_scores
from rewardlab.tasks.sources import Listed, OnDemand, data_file

Name = Literal["gsm8k", "math500"]
Labels = Literal["true", "published"]
PLACE = "strictprm"
SCORERS: dict[str, tuple[str, ...]] = {
    "gsm8k": (
        "qwen_prm", "skywork_prm", "skywork_prm_1_5b", "math_shepherd", "rlhflow_prm", "internlm2_7b_reward",
        "internlm2_1_8b_reward",
    ),
    "math500": ("qwen_prm",),
}  # fmt: skip
"""The models whose step scores are there, each under its name a column of the problems."""


def strictprm(*, name: Name, labels: Labels = "true") -> Task:
    """Problems with 32 recorded solutions each, for `--model recorded`: 500 of GSM8K, or the 477 of MATH-500 with a known answer.

    labels: "true", by which a recorded reply is right as adjudicated; "published", by the benchmark's own labels, on all 500.
    Columns: replies, a list of steps each; tokens; right; and the step scores of each scorer. Nothing is there to train on. Needs
    strictprm/ and, for true answers of MATH-500, rewardmath/ in the folder that REWARDLAB_DATA names; read when first asked for.
    """
    return Task(
        name=f"strictprm:{name}",
        train=Listed(()),
        test=OnDemand(partial(_iterate, name, labels)),
        verifier="verdict_in_data",
        max_new=2048,
        about=f"32 recorded solutions to each problem of {name}, with the step scores of real process reward models",
        columns=("prompt", "answer", "replies", "tokens", "right", *SCORERS[name]),
        model="recorded",
    )


def _iterate(name: Name, labels: Labels) -> Iterator[Problem]:
    return iter(problems(name, labels))


@functools.cache
def problems(name: Name, labels: Labels = "true") -> list[Problem]:
    """All problems of a set. Raises RewardlabError where the data is not there."""
    # the answers stand in a file beside the candidates, which is asked for here so that a missing one is told
    rows, _ = recorded(_file("candidates", name)), _file("answers", name)
    verdicts = {} if labels == "published" else adjudicated(name)
    scores = {scorer: dict(step_scores(_file(f"steps_{scorer}", name))) for scorer in SCORERS[name]}
    found = []
    for _, row in rows:
        about, candidates, key = row["problem"], row["candidates"], row["problem_id"]
        answer = about["ground_truth"] if labels == "published" else true_answer(name, about)
        if answer is not None:
            columns: dict[str, Any] = {
                "replies": [c["steps"] for c in candidates], "tokens": [c["num_tokens"] for c in candidates],
                "right": [verdicts.get((key, c["candidate_index"]), c["is_correct"]) for c in candidates],
                **{scorer: of[key] for scorer, of in scores.items()},
            }  # fmt: skip
            found.append(ask(about["question"], answer, **columns))
    return found


def true_answer(name: str, about: dict[str, Any]) -> str | None:
    """The answer of a problem; None where it is not known."""
    return about["ground_truth"] if name == "gsm8k" else _answers_of_math().get(" ".join(about["question"].split()))


@functools.cache
def _answers_of_math() -> dict[str, str]:
    found = lines("rewardmath", "problems.jsonl.gz")
    return {" ".join(row["problem"].split()): row["answer"] for row in found if "answer" in row}


def adjudicated(name: str) -> dict[tuple[str, int], bool]:
    """Whether each of the replies that were read is right, by problem and candidate."""
    kept = json.loads((Path(__file__).parent / f"{name}.json").read_text("utf-8"))
    return {(problem, i): verdict == "right" for verdict, ids in kept.items() for problem, found in ids.items() for i in found}


def _file(kind: str, name: str) -> Path:
    return data_file(PLACE, f"{kind}_{name}.jsonl.gz")


def lines(*parts: str) -> list[dict[str, Any]]:
    """The rows of a file of the shared data."""
    path = data_file(*parts)
    with (gzip.open if path.suffix == ".gz" else open)(path, "rt", encoding="utf-8") as file:
        return [json.loads(line) for line in file]
