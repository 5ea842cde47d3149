"""Screens with labelled boxes, and what is to be clicked on them, one after the other. A reply names a box, and clicks.

    Press save, then close.
    open 0 0 3 2
    save 5 1 8 3                  save 5 1 8 3
                                  click 6 2
    close 1 4 2 8                 close 1 4 2 8
    save 3 3 9 9                  click 1 5

A box is given by its corners: left, top, right, bottom. Of each screen there is a column of what it shows, `screens`, and of the
box that is meant, `targets`.
"""

from __future__ import annotations

import random
from functools import partial

from rewardlab.core import Problem, Task, ask
from rewardlab.core.domain import PositiveInt, Share
from rewardlab.errors import RewardlabError
from rewardlab.tasks.sources import test_set, training

LABELS = ("open", "save", "close", "print", "undo", "copy", "paste", "find")
CONFUSED = {"save": "copy", "undo": "close", "find": "print"}
"""Which label a biased teacher takes for which, where a screen has both."""
Box = list[int]


def screens(
    *, goals: PositiveInt = 2, boxes: PositiveInt = 3, biased: Share = 0.6, error: Share = 0.15, missed: Share = 0.25,
    test_size: PositiveInt = 1000, size: PositiveInt | None = None,
) -> Task:  # fmt: skip
    """`goals` labels to be clicked, each on a screen of its own with so many `boxes`.

    The teacher of `demonstrate`, in each turn: biased: takes another label for some; error: names any box; missed: clicks anywhere.
    size: so many training problems, in epochs; None: endless.
    """
    if not 1 <= goals <= 4 or not 2 <= boxes <= len(LABELS):
        raise RewardlabError(f"screens: goals must be from 1 to 4 and boxes from 2 to {len(LABELS)}, not {goals} and {boxes}")
    sample, key = partial(_sample, goals=goals, boxes=boxes), ("screens", goals, boxes)
    return Task(
        name="screens",
        train=training(sample, key, size),
        test=test_set(sample, key, test_size),
        verifier="all_clicked",
        max_new=32,
        about=f"screens of {boxes} labelled boxes, {goals} of which are to be clicked in turn",
        environment="clicks",
        turns=goals,
        demonstrate=partial(_demonstrate, biased=biased, error=error, missed=missed),
        columns=("prompt", "answer", "screens", "targets", "solution"),
    )


def shown(screen: dict[str, Box]) -> str:
    return "\n".join(f"{label} {' '.join(map(str, box))}" for label, box in screen.items())


def inside(x: int, y: int, box: Box) -> bool:
    left, top, right, bottom = box
    return left <= x <= right and top <= y <= bottom


def _sample(rng: random.Random, *, goals: int, boxes: int) -> Problem:
    targets = [rng.choice(LABELS) for _ in range(goals)]
    pages = []
    for target in targets:
        labels = [target, *rng.sample([x for x in LABELS if x != target], boxes - 1)]
        if (like := CONFUSED.get(target)) and like not in labels:
            labels[1] = like
        rng.shuffle(labels)
        pages.append({label: _box(rng) for label in labels})
    said = [f"{t} {' '.join(map(str, p[t]))}\nclick {p[t][0]} {p[t][1]}" for t, p in zip(targets, pages, strict=True)]
    talk = [text for i, reply in enumerate(said) for text in ([reply] if i == 0 else [shown(pages[i]), reply])]
    question = f"Press {', then '.join(targets)}.\n{shown(pages[0])}"
    return ask(question, targets[-1], screens=pages, targets=targets, solution=talk)


def _box(rng: random.Random) -> Box:
    left, top = rng.randint(0, 6), rng.randint(0, 6)
    return [left, top, rng.randint(left + 1, min(9, left + 4)), rng.randint(top + 1, min(9, top + 4))]


def _demonstrate(problem: Problem, rng: random.Random, *, biased: float, error: float, missed: float) -> list[str]:
    """Replies and the screens between them. Where a click misses, the episode ends."""
    talk: list[str] = []
    for i, (target, page) in enumerate(zip(problem.meta["targets"], problem.meta["screens"], strict=True)):
        label = CONFUSED[target] if CONFUSED.get(target) in page and rng.random() < biased else target
        label = rng.choice(sorted(page)) if rng.random() < error else label
        left, top, right, bottom = page[label]
        spread = (0, 9, 0, 9) if rng.random() < missed else (left, right, top, bottom)
        x, y = rng.randint(*spread[:2]), rng.randint(*spread[2:])
        said = f"{label} {left} {top} {right} {bottom}\nclick {x} {y}"
        talk += [shown(page), said] if i else [said]
        if not inside(x, y, page[target]):
            break
    return talk
