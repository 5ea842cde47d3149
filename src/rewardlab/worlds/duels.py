"""Two replies to compare, of two kinds: sums, for which one must calculate, and notes with wishes, for which one must look.

    Work out 12+5-3.                        We need corn. Wishes: polite, urgent, signed.
    A: 14                                   A: we need corn please today
    B: 13                                   B: Ann we need corn
    12+5=17 17-3=14 A + B - [[A]]           polite + - urgent + - signed - + [[A]]

A judge writes what it checks, a sign for each reply, and a verdict. The careless one miscalculates, or names only some of the
wishes and goes by those; one that is direct says its verdict at once. As pairs, the rows have a question, `chosen` and `rejected`;
with `judged`, they are a judge's prompts, as the small policy is taught to answer them.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Literal

from rewardlab.core import Problem, Task, ask, seed_of
from rewardlab.settings.domain import PositiveInt, Share
from rewardlab.tasks.pairs import Annotator, Paired, Reply, all_paired
from rewardlab.tasks.sources import changed, test_set, training

FORM = "{prompt}\nA: {first}\nB: {second}"
"""How a small judge is shown a pair; it needs no words about what to do."""
WISHES: Mapping[str, str] = {
    "polite": "please", "urgent": "today", "signed": "Ann", "warm": "dear", "grateful": "thanks", "exact": "7",
    "loud": "!", "curious": "?",
}  # fmt: skip
"""What may be wished of a note, and the word that fulfils it."""
NEEDS = ("corn", "rice", "bread", "milk", "wood", "wool", "salt", "fish", "tea", "soap")
COLUMNS = ("kind", "wishes", "steps", "chosen", "rejected", "qualities")
MARKS = ("A", "B")
NEAR = (-10, -2, -1, 1, 2, 10)

Kinds = Literal["sums", "wishes", "both"]


def duels(
    *, kinds: Kinds = "both", difficulty: PositiveInt = 2, wishes: PositiveInt = 3, error: Share = 0.1, named: Share = 0.6,
    direct: Share = 0.0, flip: Share = 0.0, judged: bool = False, test_size: PositiveInt = 500, size: PositiveInt | None = None,
) -> Task:  # fmt: skip
    """Pairs of replies of known quality.

    difficulty: operations of a sum.  wishes: of a note.  error: of the careless judge, for each result that it calculates.  named:
    the chance that it names a wish.  direct: the share of its judgements that are a verdict alone.  flip: share of training labels
    that are turned round.  judged: the rows are a judge's prompts.  size: so many training problems, in epochs; None: endless.
    """
    settings = {"kinds": kinds, "difficulty": difficulty, "wishes": min(wishes, len(WISHES))}
    key, sample = ("duels", *settings.values()), partial(_sample, **settings)  # type: ignore[arg-type]
    train = Paired(training(sample, key, size), partial(_pair, annotator=Annotator(flip)))
    test = all_paired(test_set(sample, key, test_size), partial(_pair, annotator=Annotator()))
    teacher = {"error": error, "named": named, "direct": direct}
    return Task(
        name="duels",
        train=Paired(train, _shown) if judged else train,
        test=changed(test, partial(_asked, seed=0)) if judged else test,
        verifier="judged_rightly",
        max_new=max(13 * difficulty + 12, 6 * wishes + 12),
        about="two replies to a sum or to wishes, of which one is better",
        demonstrate=partial(_demonstrate, error=error, named=named, direct=direct) if judged else None,
        columns=(
            "prompt",
            "answer",
            "kind",
            "wishes",
            "steps",
            "chosen",
            "rejected",
            "qualities",
            *(("shown", "worth") if judged else ()),
        ),
        warmup_steps=800,
        window=(0.6, 0.8),
        # one small judge serves either kind alone
        warmed_as=None if judged else warmed_as(**{**settings, "kinds": "both"}, **teacher),
    )


def warmed_as(**settings: object) -> str:
    """The task that the small judge of these pairs was taught."""
    return "duels:judged=true," + ",".join(f"{name}={value}" for name, value in settings.items())


# ---- problems ----------------------------------------------------------------------------------------------------------


def _sample(rng: random.Random, *, kinds: Kinds, difficulty: int, wishes: int) -> Problem:
    kind = rng.choice(("sums", "wishes")) if kinds == "both" else kinds
    if kind == "wishes":
        asked, need = rng.sample(sorted(WISHES), wishes), rng.choice(NEEDS)
        return ask(f"We need {need}. Wishes: {', '.join(asked)}.", None, kind=kind, wishes=asked, steps=[])
    value, text = (start := rng.randint(2, 20)), ""
    steps = []
    for _ in range(difficulty):
        sign = rng.choice("+-") if value > 4 else "+"
        operand = rng.randint(2, 9 if sign == "+" else min(9, value - 1))
        result = value + operand if sign == "+" else value - operand
        steps.append(f"{value}{sign}{operand}={result}")
        value, text = result, f"{text}{sign}{operand}"
    return ask(f"Work out {start}{text}.", str(value), kind=kind, wishes=[], steps=steps)


def _pair(problem: Problem, rng: random.Random, *, annotator: Annotator) -> Problem:
    if problem.meta["kind"] == "sums":
        right = int(problem.answer)
        wrong = rng.choice([right + off for off in NEAR if right + off > 0])
        return annotator.label(problem, Reply(problem.answer, 1.0), Reply(str(wrong), 0.0), rng)
    a = _note(problem, rng)
    while (b := _note(problem, rng)).quality == a.quality:
        pass
    return annotator.label(problem, a, b, rng)


def _note(problem: Problem, rng: random.Random) -> Reply:
    """A note that fulfils each wish by chance, and has some other words of wishes that nobody has."""
    wished = problem.meta["wishes"]
    words = [WISHES[w] for w in sorted(WISHES) if rng.random() < (0.55 if w in wished else 0.25)]
    need = problem.question.removeprefix("We need ").partition(".")[0]
    texts = [f"we need {need}", *words]
    rng.shuffle(texts)
    text = " ".join(texts)
    return Reply(text, quality(text, wished))


def quality(reply: str, wishes: list[str]) -> float:
    """The share of the wishes that a note fulfils."""
    return sum(fulfilled(reply, wish) for wish in wishes) / len(wishes)


def request(rng: random.Random, count: int, item: Callable[[str], Mapping[str, Any]]) -> Problem:
    """A note to write, with so many wishes, a checklist of an `item` a wish, and a note that fulfils them all."""
    asked, need = rng.sample(sorted(WISHES), count), rng.choice(NEEDS)
    best = " ".join([f"we need {need}", *(WISHES[wish] for wish in asked)])
    return ask(
        f"We need {need}. Wishes: {', '.join(asked)}.", None, wishes=asked, checklist=[item(wish) for wish in asked], solution=best
    )


def fulfilled(reply: str, wish: str) -> bool:
    return WISHES[wish] in reply.split()


# ---- judgements --------------------------------------------------------------------------------------------------------


def _shown(problem: Problem, rng: random.Random) -> Problem:
    """The judge's prompt, with the better reply first half of the time."""
    first = rng.random() < 0.5
    pair = (problem.meta["chosen"], problem.meta["rejected"])
    shown = pair if first else pair[::-1]
    text = FORM.format(prompt=problem.question, first=shown[0], second=shown[1])
    worth = [float(first), float(not first)]
    return replace(problem.reworded(text), meta={**problem.meta, "shown": list(shown), "worth": worth})


def _asked(problem: Problem, *, seed: int) -> Problem:
    return _shown(problem, random.Random(seed_of("duels", seed, problem.key)))


def _demonstrate(problem: Problem, rng: random.Random, *, error: float, named: float, direct: float) -> str:
    """A careless judge's judgement. Of two replies that it finds alike it prefers either."""
    first, second = problem.meta["shown"]
    if problem.meta["kind"] == "sums":
        checks, values = _calculated(problem, first, second, rng, error)
    else:
        wishes = [w for w in problem.meta["wishes"] if rng.random() < named]
        signs = [(w, fulfilled(first, w), fulfilled(second, w)) for w in wishes]
        checks = [f"{w} {_sign(a)} {_sign(b)}" for w, a, b in signs]
        values = sum(a for _, a, _ in signs), sum(b for _, _, b in signs)
    verdict = rng.randint(0, 1) if values[0] == values[1] else int(values[0] < values[1])
    mark = f"[[{MARKS[verdict]}]]"
    return mark if rng.random() < direct else " ".join([*checks, mark])


def _calculated(problem: Problem, first: str, second: str, rng: random.Random, error: float) -> tuple[list[str], tuple[int, int]]:
    lines, value = [], None
    for step in problem.meta["steps"]:
        left, _, _ = step.partition("=")
        sign = "+" if "+" in left else "-"
        start, operand = left.split(sign)
        before = int(start) if value is None else value
        value = before + int(operand) if sign == "+" else before - int(operand)
        value += rng.choice(NEAR) if rng.random() < error else 0
        lines.append(f"{before}{sign}{operand}={value}")
    found = (int(first == str(value)), int(second == str(value)))
    return [*lines, f"A {_sign(found[0])} B {_sign(found[1])}"], found


def _sign(holds: object) -> str:
    return "+" if holds else "-"
