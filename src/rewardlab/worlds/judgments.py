"""Answer verification: replies to short sums, judged against the gold answer; also reads VerifierBench's file.

The training replies state their answers plainly. The held-out ones state them in other forms, come near to the gold answer, break
off, repeat themselves, or refuse: what a verifier meets where it is used. No augmentation makes them (`unseen.py`).
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from rewardlab.core import Group, Message, Problem, ProblemSource, Run, Sampling, Score, Scores, Task, Term, Trajectory
from rewardlab.errors import RewardlabError
from rewardlab.rewards.reward import reward
from rewardlab.settings.domain import PositiveInt
from rewardlab.tasks.rows import splits
from rewardlab.tasks.sources import Shuffled, held_out, test_set, training
from rewardlab.text.answers import after_answer
from rewardlab.text.boxes import boxes, inside
from rewardlab.text.judgments import JUDGMENTS, read_judgment

# ----------------------------------------------------------------------------------------------------------------------
#
# What a verifier reads, and how it answers: it repeats the gold answer and the one that the reply states, then gives the letter.
#
#     What is 7+5?
#     Gold: 12              ->      12 | 12.0 | A
#     Reply: 7+5=12
#     Answer: 12.0
#
# A small model compares two answers that stand side by side, and hardly two that are lines apart.

LONGEST = 40
"""Characters of an answer that is repeated; of a longer one nothing is."""


@dataclass(frozen=True)
class Case:
    """A reply to a question with its gold answer.  judgment: A, B or C; None where it is not known."""

    question: str
    gold: str
    response: str
    judgment: str | None = None


def to_judge(case: Case) -> Problem:
    """The problem of judging a case, in the columns of VerifierBench, and with the verifier's text where the judgement is known."""
    prompt = (Message("user", f"{case.question}\nGold: {case.gold}\nReply: {case.response}"),)
    columns = {"question": case.question, "gold_answer": case.gold, "llm_response": case.response}
    if case.judgment is None:
        return Problem(prompt, None, columns)
    return Problem(prompt, case.judgment, {**columns, "gold_judgment": case.judgment, "solution": written(case, case.judgment)})


def written(case: Case, judgment: str) -> str:
    """A judgement as a verifier writes it."""
    said = stated(case.response) or "none"
    return judgment if max(len(case.gold), len(said)) > LONGEST else f"{case.gold} | {said} | {judgment}"


def case_of(problem: Problem) -> Case:
    """The case that a problem is about."""
    meta = problem.meta
    return Case(meta["question"], meta["gold_answer"], meta["llm_response"], meta.get("gold_judgment"))


def but(case: Case, answer: str, judgment: str | None = None) -> Case | None:
    """The case with another final answer in its reply; None where the reply does not state one that can be found."""
    where = place(case.response)
    if where is None:
        return None
    start, end = where
    return replace(case, response=f"{case.response[:start]}{answer}{case.response[end:]}", judgment=judgment or case.judgment)


def place(response: str) -> tuple[int, int] | None:
    r"""Where a reply states its final answer: in its last \boxed{...}, else after "Answer:" and the like; None if nowhere."""
    if found := boxes(response):
        said = inside(found[-1])
        # braces and spaces around it stay
        start = response.find(said, found[-1].start) if said else -1
    else:
        said = after_answer(response) or ""
        start = response.rfind(said) if said else -1
    return (start, start + len(said)) if start >= 0 else None


def stated(response: str) -> str | None:
    """The final answer of a reply."""
    where = place(response)
    return None if where is None else response[where[0] : where[1]]


# ---- Cases to test a verifier on, in forms and with errors that the augmentation (`augment.py`) does not make --------
#
# A verifier that was trained on forms of one list, and is tested on the same list, shows that it has learnt the list. Here right
# answers, wrong ones and replies without an answer are written by rules that have nothing in common with those.

Write = Callable[[Sequence[int]], str]
"""From the numbers of an answer to its text."""

RIGHT_ONE: Mapping[str, Write] = {
    "hundredths": lambda x: f"{x[0]}.00", "plus": lambda x: f"+{x[0]}", "over one": lambda x: f"{x[0]}/1",
    "tenths": lambda x: f"{10 * x[0]}/10", "in brackets": lambda x: f"({x[0]})", "leading zero": lambda x: f"0{x[0]}",
    "box": lambda x: f"\\boxed{{{x[0]}}}",
}  # fmt: skip
RIGHT_SEVERAL: Mapping[str, Write] = {
    "semicolons": lambda x: "; ".join(map(str, x)), "tuple": lambda x: f"({', '.join(map(str, x))})",
    "ampersand": lambda x: " & ".join(map(str, x)), "hundredths": lambda x: ", ".join(f"{n}.00" for n in x),
    "box": lambda x: f"\\boxed{{{', '.join(map(str, x))}}}",
}  # fmt: skip
WRONG: Mapping[str, Callable[[Sequence[int]], list[int]]] = {
    "two off": lambda x: [*x[:-1], x[-1] + 2], "ten times": lambda x: [*x[:-1], 10 * x[-1]],
    "doubled": lambda x: [2 * x[0], *x[1:]], "hundred more": lambda x: [x[0] + 100, *x[1:]],
}  # fmt: skip
INVALID: Sequence[Callable[[str], str]] = (
    lambda asked: f"We are to find {asked}, so we",
    lambda asked: f"{asked}={asked}={asked}={asked}={asked}=",
    lambda asked: f"What is {asked}? What is {asked}? What is {asked}?",
    lambda asked: "That is not for me to say.",
)  # fmt: skip


def unseen(question: str, right: Sequence[int], judgment: str, rng: random.Random) -> Case:
    """A case of this judgement: the right numbers, or wrong ones, in an unseen form; or a reply without an answer."""
    asked, gold = question.removeprefix("What is ").rstrip("?"), ", ".join(map(str, right))
    if judgment == "C":
        return Case(question, gold, rng.choice(INVALID)(asked), judgment)
    said = list(right) if judgment == "A" else WRONG[rng.choice(sorted(WRONG))](right)
    forms = RIGHT_ONE if len(said) == 1 else RIGHT_SEVERAL
    stated = forms[rng.choice(sorted(forms))](said)
    worked = "\n".join(f"{sum_}={n}" for sum_, n in zip(asked.split(" and "), said, strict=True))
    return Case(question, gold, f"{worked}\n{stated}" if "boxed" in stated else f"{worked}\nAnswer: {stated}", judgment)


# ---- the task ---------------------------------------------------------------------------------------------------------

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


# ---- Whether a judgement is right, and the judgement of a learnt verifier as a reward --------------------------------


@reward
def judgment_right(trajectory: Trajectory) -> Score:
    """1 where the judgement A, B or C is the gold one."""
    gold = trajectory.problem.answer
    if gold not in JUDGMENTS:
        return Score(None, why=f"the gold judgement {gold!r} is not A, B or C")
    said = read_judgment(trajectory.reply)
    return Score(float(said == gold), why=f"said {said or 'nothing'}, it is {gold}")


@reward(over="groups")
def judged_right(groups: list[Group], run: Run, *, model: str = "verifier", max_new: PositiveInt = 32) -> Scores:
    """1 where the model `model` judges a reply right (A) against the gold answer, 0 where it judges it wrong (B) or no answer (C).

    It says the likeliest. Whether a reply was no answer is logged beside it. Without a gold answer there is no verdict, nor where
    reply and question do not fit the model's context, or it gives no judgement.
    """
    rollouts = [t for group in groups for t in group]
    verifier = run.model(model)
    cases = [to_judge(Case(t.problem.question, str(t.problem.answer), t.reply)) for t in rollouts]
    rows = verifier.read([Trajectory(p) for p in cases], [p.prompt for p in cases])
    fits = [t.problem.answer is not None and len(row) + max_new <= verifier.context for t, row in zip(rollouts, rows, strict=True)]
    asked = [row for row, ok in zip(rows, fits, strict=True) if ok]
    said = iter(verifier.extend(asked, Sampling(max_new, temperature=0.0), run.rng("judgments")) if asked else [])
    scores = iter([_score(next(said).reply if ok else None) for ok in fits])
    return [[next(scores) for _ in group] for group in groups]


def _score(text: str | None) -> Score:
    judgment = None if text is None else read_judgment(text)
    if judgment is None:
        return Score(None, why="not judged: no gold answer, or too long" if text is None else f"no judgement in {text[:80]!r}")
    terms = {"judged_right": Term(float(judgment == "A")), "judged_right.invalid": Term(float(judgment == "C"), weight=None)}
    return Score(terms=terms, why=f"judged {judgment}")
