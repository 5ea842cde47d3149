"""Preference pairs of solutions over the problems of another task.

    writer       the better reply                            the worse one
    teacher      the gold solution                           a careless teacher's wrong one, of the same length where possible
    several      two replies by writers of different skill: the one with more right steps before its first error
    policy       a right sample of the small policy          a wrong sample for the same problem

The teacher's pairs have the same length wherever there is such a pair, so that length does not tell them apart; the others are as
long as they come. Cues that are no quality (length, style, order) can be made to go with quality in training; in the test they
go with it in half of the pairs.
"""

from __future__ import annotations

import inspect
import random
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Literal

from rewardlab.core import Problem, Task
from rewardlab.errors import RewardlabError, unknown
from rewardlab.settings.domain import NonNegativeFloat, PositiveInt, Share
from rewardlab.tasks.arithmetic import arithmetic
from rewardlab.tasks.countdown.problems import countdown
from rewardlab.tasks.cues import Cues
from rewardlab.tasks.pairs import Annotator, Paired, Reply, all_paired
from rewardlab.tasks.sampled import SampledPairs

BASES: Mapping[str, Callable[..., Task]] = {"arithmetic": arithmetic, "countdown": countdown}
TRIES = 64
SKILLS = (0.05, 0.2, 0.4, 0.6)
"""How often the several writers err, per step (arithmetic) or per solution (countdown)."""
POOL = 2000
"""Problems that the small policy answers, where `size` does not say."""

Demonstrate = Callable[[Problem, random.Random], str]
Write = Callable[[Problem, random.Random], tuple[Reply, Reply]]


def preferences(
    *,
    base: str = "arithmetic",
    difficulty: int | tuple[int, int] | None = None,
    error: Share = 0.3,
    biased: Share = 0.0,
    writer: Literal["teacher", "several", "policy"] = "teacher",
    flip: Share = 0.0,
    noise: NonNegativeFloat = 0.0,
    longer: Share | None = None,
    style: Share | None = None,
    first: Share | None = None,
    test_size: PositiveInt = 1000,
    size: PositiveInt | None = None,
) -> Task:
    """Pairs over the problems of another task, whose verifier is the task's own, so that accuracy can be measured too.

    difficulty: as in `base`, where it has one.  error, biased: of the teacher who writes the rejected solutions, per step, as in
    `base`; the small policy is warmed up on that teacher, and with a biased one its own likelihood prefers wrong replies.
    writer: who writes the pairs, see above; quality is 1 for a right reply, else the share of its steps before the first error.
    flip: share of training pairs whose label is turned round.  noise: the annotator prefers the
    better reply with log-odds (difference in quality / noise); 0: always.  longer, style, first: share of training pairs in which
    the better reply is the one with extra lines that only check, opens with a phrase, is to be shown first (`first` in the meta);
    in the test it is half; None: without this cue.  size: so many training problems, in epochs; None: endless, or for the policy's
    own samples 2000.
    """
    taught = _taught(base, difficulty, error, biased)
    if writer not in _ABOUT:
        raise unknown("writer of preferences", writer, _ABOUT)
    task = BASES[base](**taught, test_size=test_size, size=size)
    assert task.demonstrate is not None
    cues = Cues(longer, style, first)
    labelled = partial(_pair, cues=cues, annotator=Annotator(flip, noise))
    true = partial(_pair, cues=cues.balanced(), annotator=Annotator())
    sides = _sides(task, writer, _formula(base, taught), size, labelled, true)
    columns = ("chosen", "rejected", "qualities", *(["first"] if first is not None else []))
    return replace(
        task, name="preferences", train=sides[0], test=sides[1], about=f"{_ABOUT[writer]} for each problem of: {task.about}",
        columns=(*task.columns, *columns), warmed_as=_formula(base, taught),
    )  # fmt: skip


def _taught(base: str, difficulty: Any, error: float, biased: float) -> dict[str, Any]:
    """The settings of the base task, whose careless teacher writes and teaches the small policy."""
    if base not in BASES:
        raise unknown("base of preferences", base, BASES)
    if not 0 < error <= 1:
        raise RewardlabError(f"preferences: error must be above 0 and at most 1, not {error}: without errors nothing is rejected")
    taught = {"biased": biased} if biased else {}
    taught |= {"error": error} | ({} if difficulty is None else {"difficulty": difficulty})
    for name in taught:
        if name not in (known := inspect.signature(BASES[base]).parameters):
            raise unknown(f"option of {base}", name, known)
    return taught


_ABOUT = {
    "teacher": "a right and a wrong solution",
    "several": "a better and a worse solution",
    "policy": "a right and a wrong sample of the small policy",
}


def _formula(base: str, options: Mapping[str, Any]) -> str:
    """The base task as it is named on the command line."""
    texts = {k: str(list(v) if isinstance(v, tuple) else v).replace(" ", "") for k, v in options.items()}
    return f"{base}:{','.join(f'{k}={v}' for k, v in texts.items())}"


def _sides(task: Task, writer: str, formula: str, size: int | None, labelled: Callable, true: Callable) -> tuple[Any, Any]:
    """The training and the test problems with their pairs."""
    if writer == "policy":
        asked = [task.train[i] for i in range(size or POOL)]
        distinct = list({problem.key: problem for problem in asked}.values())
        return SampledPairs(formula, distinct, _wrong, labelled, shuffled=True), SampledPairs(formula, task.test, _wrong, true)
    write: Write = partial(_by_teacher if writer == "teacher" else _by_several, task)
    train, test = (partial(_written, write=write, pair=pair) for pair in (labelled, true))
    return Paired(task.train, train), all_paired(task.test, test)


def _written(problem: Problem, rng: random.Random, *, write: Write, pair: Callable) -> Problem:
    return pair(problem, write(problem, rng), rng)


def _pair(
    problem: Problem, replies: tuple[Reply, Reply], rng: random.Random, *, cues: Cues, annotator: Annotator
) -> Problem:  # fmt: skip
    """The problem with a pair: cues are put on two replies, the better one first, and the annotator labels them."""
    better, worse, better_first = cues.put_on(*replies, rng)
    labelled = annotator.label(problem, better, worse, rng)
    if better_first is None:
        return labelled
    chosen_first = (labelled.meta["chosen"] == better.text) == better_first
    return replace(labelled, meta={**labelled.meta, "first": "chosen" if chosen_first else "rejected"})


# ---- writers ---------------------------------------------------------------------------------------------------------


def _by_teacher(task: Task, problem: Problem, rng: random.Random) -> tuple[Reply, Reply]:
    """The gold solution, and a wrong one: the first of the same length, else the nearest in length of those sampled."""
    chosen, nearest, tries = problem.meta["solution"], None, 0
    assert task.demonstrate is not None
    # a teacher who errs rarely may need more than TRIES attempts for one wrong solution
    while nearest is None or (tries < TRIES and len(nearest) != len(chosen)):
        tries += 1
        text: str = task.demonstrate(problem, rng)
        if _result(text) == _result(chosen):
            continue
        if nearest is None or abs(len(text) - len(chosen)) < abs(len(nearest) - len(chosen)):
            nearest = text
    return _reply(problem, chosen), _reply(problem, nearest)


def _by_several(task: Task, problem: Problem, rng: random.Random) -> tuple[Reply, Reply]:
    """Replies of two writers whose skill differs, that differ in quality; the better one first."""
    assert task.demonstrate is not None
    demonstrate: Callable[..., str] = task.demonstrate
    while True:
        # the teacher's error is a setting of its function: a writer is the same teacher with another one
        teachers = [partial(demonstrate, error=error) for error in rng.sample(SKILLS, 2)]
        a, b = (_reply(problem, teacher(problem, rng)) for teacher in teachers)
        if a.quality != b.quality:
            return (a, b) if a.quality > b.quality else (b, a)


def _reply(problem: Problem, text: str) -> Reply:
    """A reply of a teacher, which is of quality 1 if its result is right."""
    return Reply(text, 1.0) if _result(text) == _result(problem.meta["solution"]) else _wrong(problem, text)


def _wrong(problem: Problem, text: str) -> Reply:
    """A wrong reply with its quality: the share of its steps before the first that is not the gold one."""
    gold, lines = problem.meta["solution"].splitlines(), text.splitlines()
    same = [line == want for line, want in zip(lines, gold, strict=False)]
    wrong_at = same.index(False) if False in same else len(same)
    return Reply(text, min(wrong_at / len(gold), 0.99))


def _result(solution: str) -> str | None:
    """The result of the last step: the line before "Answer: ..."; None for a text of another form."""
    lines = solution.splitlines()
    return lines[-2].rpartition("=")[2] if len(lines) > 1 and lines[-1].startswith("Answer: ") else None
