"""Replies to short sums, to be judged against the gold answer: for verifiers that learn, and for VerifierBench's own file.

The training replies state their answers plainly. The held-out ones state them in other forms, come near to the gold answer, break
off, repeat themselves, or refuse: what a verifier meets where it is used. No augmentation makes them (`unseen.py`).
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from rewardlab.core import Problem, ProblemSource, Task
from rewardlab.core.domain import PositiveInt
from rewardlab.errors import RewardlabError
from rewardlab.tasks.rows import splits
from rewardlab.tasks.sources import Shuffled, held_out, test_set, training
from rewardlab.text.judgments import JUDGMENTS

from .language import Case, to_judge
from .unseen import unseen

COLUMNS = ("question", "gold_answer", "llm_response", "gold_judgment")
"""Of VerifierBench's rows."""
REFUSAL = "I do not know."
"""The only one of training."""


def judgments(
    *, path: str | None = None, test: str | None = None, test_size: PositiveInt = 1000, size: PositiveInt | None = None
) -> Task:
    """Cases for a three-way verifier: generated ones or, with `path`, those of a file in VerifierBench's format.

    path, test: rows with the columns question, gold_answer, llm_response and gold_judgment (A, B or C), to train on and held out;
    without `test` a tenth of `path` is held out.  test_size, size: of generated cases; size: in epochs, None: endless.
    """
    train, held = _generated(test_size, size) if path is None else _of_file(path, test)
    return Task(
        name="judgments",
        train=train,
        test=held,
        verifier="judgment_right",
        max_new=32,
        about="replies to be judged right, wrong or no answer",
        demonstrate=_demonstrate if path is None else None,
        columns=("prompt", "answer", *COLUMNS, "solution"),
        warmup_steps=400,
        window=(0.5, 0.8),
    )


def _demonstrate(problem: Problem, rng: random.Random) -> str:
    return problem.meta["solution"]


# ---- generated -------------------------------------------------------------------------------------------------------


def _generated(test_size: int, size: int | None) -> tuple[ProblemSource, Sequence[Problem]]:
    return training(_plain, ("judgments",), size), test_set(_unseen, ("judgments",), test_size)


def _plain(rng: random.Random) -> Problem:
    return to_judge(_case(rng, rng.choices(JUDGMENTS, (9, 9, 2))[0]))


def _case(rng: random.Random, judgment: str) -> Case:
    """A reply that states its answer plainly, or refuses."""
    pairs = [(rng.randint(2, 49), rng.randint(2, 49)) for _ in range(rng.choice((1, 1, 2)))]
    question = f"What is {' and '.join(f'{a}+{b}' for a, b in pairs)}?"
    right = [a + b for a, b in pairs]
    # a plain wrong answer is far off
    said = right if judgment == "A" else [*right[:-1], (right[-1] + rng.randint(15, 85)) % 99]
    lines = [f"{a}+{b}={x}" for (a, b), x in zip(pairs, said, strict=True)]
    case = Case(question, ", ".join(map(str, right)), "\n".join([*lines, f"Answer: {', '.join(map(str, said))}"]), judgment)
    return replace(case, response=REFUSAL) if judgment == "C" else case


def _unseen(rng: random.Random) -> Problem:
    """A third of each judgement, none of them plain."""
    plain = _case(rng, "A")
    return to_judge(unseen(plain.question, [int(n) for n in plain.gold.split(", ")], rng.choice(JUDGMENTS), rng))


# ---- of a file -------------------------------------------------------------------------------------------------------


def _of_file(path: str, test: str | None) -> tuple[ProblemSource, list[Problem]]:
    rows = [_read(row, place) for place, row in splits(path)["train"]]
    if test is not None:
        return Shuffled(rows), [_read(row, place) for place, row in splits(test)["train"]]
    train, held = ([p for p in rows if held_out(p) == side] for side in (False, True))
    if not train or not held:
        raise RewardlabError(
            f"{path}: {len(rows)} cases are too few to hold out a tenth of them; give the held-out ones as test=FILE"
        )
    return Shuffled(train), held


def _read(row: Mapping[str, Any] | RewardlabError, place: str) -> Problem:
    if isinstance(row, RewardlabError):
        raise row
    missing = [name for name in COLUMNS if not isinstance(row.get(name), str)]
    if missing or row["gold_judgment"] not in JUDGMENTS:
        what = f"no text in {', '.join(missing)}" if missing else f"gold_judgment is {row['gold_judgment']!r}"
        raise RewardlabError(f"{place}: {what}; a case has {', '.join(COLUMNS)}, the last of them A, B or C")
    return to_judge(Case(*(row[name] for name in COLUMNS)))
