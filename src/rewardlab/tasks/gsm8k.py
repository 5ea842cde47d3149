"""GSM8K: word problems of grade-school mathematics, with worked solutions.

Cobbe et al. 2021, arXiv:2110.14168 (openai/grade-school-math, MIT). Read from disk, never downloaded.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

from rewardlab.core import Problem, Task, ask
from rewardlab.errors import RewardlabError

from .sources import Shuffled, data_file


def gsm8k(*, seed: int = 0) -> Task:
    """The published split: 7,473 problems to train on, 1,319 to test. `seed` orders the training epochs.

    Needs gsm8k/train.jsonl and gsm8k/test.jsonl in the folder that REWARDLAB_DATA names.
    """
    return Task(
        name="gsm8k",
        train=Shuffled(_read(data_file("gsm8k", "train.jsonl")), seed),
        test=_read(data_file("gsm8k", "test.jsonl")),
        verifier="final_number",
        max_new=320,
        about="grade-school word problems (GSM8K), published split",
        columns=("prompt", "answer", "solution"),
    )


def _read(path: Path) -> list[Problem]:
    with path.open(encoding="utf-8") as file:
        return [_problem(line, f"{path} line {number}") for number, line in enumerate(file, 1)]


def _problem(line: str, place: str) -> Problem:
    try:
        row = json.loads(line)
        worked, mark, answer = row["answer"].rpartition("####")
        question = row["question"]
    except (ValueError, KeyError, TypeError, AttributeError) as e:
        raise RewardlabError(f"{place}: not a GSM8K row with question and answer ({e!r})") from e
    if not mark:
        raise RewardlabError(f"{place}: the answer has no '####' before its number")
    # <<3*4=12>> are calculator annotations
    text = re.sub(r"<<[^<>\n]*>>", "", worked).strip()
    return ask(question, answer.strip(), solution=f"{text}\nAnswer: {answer.strip()}")
