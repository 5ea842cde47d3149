"""Program optimisation: the same function with fewer operations, without calls of the slow library.

    f: + 3; + 4
    g: sort; last           f; g            right, but lazy: all the work is the library's
    Write f; g faster.      + 7; g          the small part is faster, the large one still the library's
                            + 7; max        what is wanted

What a program must give on hidden inputs, and what the library needs for it, is in meta (library, inputs, outputs, cost).
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from functools import partial
from typing import Any, NamedTuple

from rewardlab.core import Message, Problem, Score, Task, Trajectory, Turn, ask, environment
from rewardlab.errors import RewardlabError
from rewardlab.rewards.reward import reward
from rewardlab.settings.domain import PositiveInt, Share
from rewardlab.tasks.programs import ProgramError, parse, run
from rewardlab.tasks.sources import test_set, training

# ----------------------------------------------------------------------------------------------------------------------
#
# Judges a rewritten program: whether it is right, how many operations it takes, and which share of them the library does.


class Judged(NamedTuple):
    """right: it has the reference's output on every input.  operations, cost: of the program and of the reference, on all inputs.

    own: share of the operations that run outside the library.  read: whether the text is a program.
    """

    right: bool
    operations: int
    cost: int
    own: float
    read: bool = True
    why: str = ""

    @property
    def speedup(self) -> float:
        """How many times fewer operations than the reference; 0 if it is not right."""
        return self.cost / self.operations if self.right else 0.0

    def __str__(self) -> str:
        if not self.right:
            return f"Wrong: {self.why}."
        return f"Right: {self.operations} of {self.cost} operations, {round(100 * self.own)}% own."


def judge(text: str, meta: Mapping[str, Any]) -> Judged:
    """A rewritten program against the reference of a problem's meta: library, inputs, outputs, cost."""
    try:
        library = {name: parse(body) for name, body in meta["library"].items()}
        program = parse(text.strip(), library)
    except ProgramError as e:
        return Judged(False, 0, meta["cost"], 0.0, False, str(e))
    operations = in_library = 0
    for value, expected in zip(meta["inputs"], meta["outputs"], strict=True):
        try:
            result = run(program, value, library=library)
        except ProgramError as e:
            return Judged(False, 0, meta["cost"], 0.0, why=str(e))
        if result.value != expected:
            return Judged(False, 0, meta["cost"], 0.0, why=f"gives {result.value}, not {expected}"[:60])
        operations, in_library = operations + result.operations, in_library + result.in_library
    # max: a program of no operations at all must not divide by 0
    return Judged(True, operations, meta["cost"], 1 - in_library / max(1, operations))


# ---- Runs rewritten programs, answers with the error or the cost in operations, and lets the policy try again --------

State = dict[str, Any]


def _start(problem: Problem, seed: int) -> tuple[Message | None, State]:
    fields = ("library", "inputs", "outputs", "cost")
    if not all(name in problem.meta for name in fields):
        raise RewardlabError(f"kernels needs {', '.join(fields)} in the meta of problem {problem.question[:60]!r}; use that task")
    return None, {name: problem.meta[name] for name in fields}


@environment(start=_start)
def cost_feedback(state: State, turn: Turn) -> tuple[Message | None, State]:
    """Answers every program with its verdict. A text that is not a program ends the episode."""
    verdict = judge(turn.text, state)
    return (Message("user", str(verdict)) if verdict.read else None), state


# ---- the task ---------------------------------------------------------------------------------------------------------

SAME = (
    ("reverse; sort", "sort"), ("sort; sort", "sort"), ("abs; abs", "abs"), ("reverse; keep even", "keep even; reverse"),
    ("sort; keep odd", "keep odd; sort"), ("sort; unique", "unique; sort"),
)  # fmt: skip
"""Lists of lists that are the same; the second of each needs no more operations."""
FOLDED = (
    ("sort; last", "max"), ("sort; head", "min"), ("sort; sum", "sum"), ("sort; len", "len"), ("reverse; head", "last"),
    ("reverse; last", "head"), ("reverse; sum", "sum"), ("reverse; max", "max"), ("reverse; min", "min"), ("sort; max", "max"),
)  # fmt: skip
"""Numbers of lists that are the same; the second of each needs fewer operations."""
SIGNS = "+-*"
WORTH = 2.0


def kernels(
    *,
    inputs: PositiveInt = 4,
    length: PositiveInt = 8,
    test_size: PositiveInt = 200,
    size: PositiveInt | None = None,
    error: Share = 0.5,
) -> Task:
    """Rewrite f; g, judged on `inputs` hidden lists of `length` numbers.

    error: how often the teacher of `demonstrate` leaves a part to the library, or gets one wrong.
    size: so many training problems, in epochs; None: endless.
    """
    if not 1 <= inputs <= 20 or not 4 <= length <= 50:
        raise RewardlabError(f"kernels: inputs must be between 1 and 20 and length between 4 and 50, not {inputs} and {length}")
    if not 0 <= error <= 1:
        raise RewardlabError(f"kernels: error is a probability between 0 and 1, not {error}")
    sample, key = partial(_sample, inputs=inputs, length=length), ("kernels", inputs, length)
    return Task(
        name="kernels",
        train=training(sample, key, size),
        test=test_set(sample, key, test_size),
        verifier="fast_program",
        max_new=24,
        about="rewrite a program to do the same with fewer operations",
        environment="cost_feedback",
        turns=3,
        demonstrate=partial(_demonstrate, error=error),
        columns=("prompt", "answer", "library", "inputs", "outputs", "cost", "parts", "solution"),
    )


def _sample(rng: random.Random, *, inputs: int, length: int) -> Problem:
    """A problem whose gold answer takes at most 1 / WORTH of the reference's operations."""
    while judge((problem := _candidate(rng, inputs, length)).answer, problem.meta).speedup < WORTH:
        pass
    return problem


def _candidate(rng: random.Random, inputs: int, length: int) -> Problem:
    first, second = _arithmetic(rng) if rng.random() < 0.8 else rng.choice(SAME), rng.choice(FOLDED)
    library = {"f": first[0], "g": second[0]}
    hidden_inputs = [[rng.randint(-20, 50) for _ in range(length)] for _ in range(inputs)]
    programs = {name: parse(body) for name, body in library.items()}
    runs = [run(parse("f; g", programs), value, library=programs) for value in hidden_inputs]
    answer = f"{first[1]}; {second[1]}"
    question = f"f: {library['f']}\ng: {library['g']}\nWrite f; g faster."
    return ask(
        question, answer, library=library, inputs=hidden_inputs, outputs=[r.value for r in runs],
        cost=sum(r.operations for r in runs),
        parts=[first[1], second[1]], solution=answer,
    )  # fmt: skip


def _arithmetic(rng: random.Random) -> tuple[str, str]:
    """Two steps of arithmetic, and the one that does both."""
    sign = rng.choice(SIGNS)
    a, b = rng.randint(2, 12), rng.randint(2, 12)
    return f"{sign} {a}; {sign} {b}", f"{sign} {a * b if sign == '*' else a + b}"


def _demonstrate(problem: Problem, rng: random.Random, *, error: float) -> list[str]:
    """Three attempts with the environment's answers, each as good as the last or better, unless a part is written wrongly."""
    turns: list[str] = []
    parts = ["f", "g"]
    for attempt in range(3):
        for i, (name, better) in enumerate(zip("fg", problem.meta["parts"], strict=True)):
            if parts[i] != better and rng.random() >= error:
                parts[i] = better
            elif parts[i] not in (name, better):
                parts[i] = name
        slips = rng.random() < error / 4
        i = rng.randrange(2)
        written = [_slip(x, rng) if slips and j == i else x for j, x in enumerate(parts)]
        turns.append("; ".join(written))
        if attempt < 2:
            turns.append(str(judge(turns[-1], problem.meta)))
    return turns


def _slip(part: str, rng: random.Random) -> str:
    """Another program of the same kind."""
    return rng.choice([better for _, better in (*SAME, *FOLDED)] + [f"{rng.choice(SIGNS)} {rng.randint(2, 24)}"])


# ----------------------------------------------------------------------------------------------------------------------
#
# Rewards for rewriting programs: for being right, for being faster, and for not leaving the work to the library.


@reward(steps=True)
def speedup(trajectory: Trajectory, *, max_speedup: float = 3.0) -> list[tuple[int, float]]:
    """For every turn the reference's operations divided by its program's, at most `max_speedup`; 0 if the program is wrong."""
    return [(end, min(max_speedup, judged.speedup)) for end, judged in _turns(trajectory)]


@reward(steps=True)
def work_share(trajectory: Trajectory) -> list[tuple[int, float]]:
    """For every turn the share of the operations done by the program's own code, not by the library; 0 if it is wrong."""
    return [(end, judged.own if judged.right else 0.0) for end, judged in _turns(trajectory)]


@reward
def fast_program(trajectory: Trajectory, *, times: float = 2.0, best: bool = False) -> Score:
    """1 where the last program (with `best`: any) is right and at least `times` as fast as the reference."""
    judgements = [judged for _, judged in _turns(trajectory)] or [judge("", trajectory.problem.meta)]
    chosen = max(judgements, key=lambda x: x.speedup) if best else judgements[-1]
    return Score(float(chosen.speedup >= times), why=str(chosen))


def _turns(trajectory: Trajectory) -> list[tuple[int, Judged]]:
    meta = trajectory.problem.meta
    return [(end, judge(reply, meta)) for end, reply in zip(trajectory.ends, trajectory.replies, strict=True)]
