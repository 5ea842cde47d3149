"""Circle packing: maximise the sum of radii of circles in a square of side 10. The optimum is not known. Nobody knows the best
packing beforehand.

    Pack.                     2 2 2
    0.512                     7 3 3
    2 2 2                     2 7 2
    7 3 1
    2 7 2

A line is a circle: where its centre is, and its radius. The question shows a packing, and how good it is; a reply is another one.
`start` holds a poor packing to begin with.
"""

from __future__ import annotations

import math
import random
from functools import partial

from rewardlab.core import Problem, Score, Task, Trajectory, ask
from rewardlab.errors import RewardlabError
from rewardlab.rewards.reward import reward
from rewardlab.settings.domain import PositiveInt, Share
from rewardlab.tasks.sources import test_set, training

SIDE = 10
Circle = tuple[int, int, int]


def packings(
    *, circles: int | tuple[int, int] = (2, 4), lazy: Share = 0.4, careless: Share = 0.3, test_size: PositiveInt = 100,
    size: PositiveInt | None = None,
) -> Task:  # fmt: skip
    """Packings of so many circles, or of (fewest, most).

    lazy: how often the teacher of `demonstrate` repeats what it is shown; else it moves or resizes one circle by 1, careless:
    without a look at whether it still fits.  size: so many training problems, in epochs; None: endless.
    """
    low, high = (circles, circles) if isinstance(circles, int) else circles
    if not 1 <= low <= high <= 9:
        raise RewardlabError(f"packings: circles must be from 1 to 9, or (fewest, most), not {circles}")
    sample, key = partial(_sample, low=low, high=high), ("packings", low, high)
    return Task(
        name="packings",
        train=training(sample, key, size),
        test=test_set(sample, key, test_size),
        verifier="packed",
        max_new=8 * high,
        about="circles to be packed into a square, from a poor packing on",
        demonstrate=partial(_demonstrate, lazy=lazy, careless=careless),
        columns=("prompt", "circles", "start", "solution"),
    )


def read(text: str, count: int) -> list[Circle] | None:
    """The circles of a reply; None unless there are so many lines of three digits."""
    lines = [line.split() for line in text.strip().splitlines()]
    if len(lines) != count or not all(len(x) == 3 and all(len(d) == 1 and d.isdecimal() for d in x) for x in lines):
        return None
    return [(int(x), int(y), int(r)) for x, y, r in lines]


def fits(circles: list[Circle]) -> bool:
    """Whether all are within the square, none overlaps another, and none is empty."""
    inside = all(r > 0 and r <= x <= SIDE - r and r <= y <= SIDE - r for x, y, r in circles)
    pairs = ((a, b) for i, a in enumerate(circles) for b in circles[:i])
    return inside and all((a[0] - b[0]) ** 2 + (a[1] - b[1]) ** 2 >= (a[2] + b[2]) ** 2 for a, b in pairs)


def worth(circles: list[Circle]) -> float:
    """The sum of radii, as a share of what no packing can reach: by their areas it is at most side * sqrt(n / pi)."""
    return sum(r for *_, r in circles) / (SIDE * math.sqrt(len(circles) / math.pi))


def shown(circles: list[Circle]) -> str:
    return "\n".join(f"{x} {y} {r}" for x, y, r in circles)


def _sample(rng: random.Random, *, low: int, high: int) -> Problem:
    count, circles = rng.randint(low, high), list[Circle]()
    while len(circles) < count:
        new = (rng.randint(1, SIDE - 1), rng.randint(1, SIDE - 1), 1)
        if fits([*circles, new]):
            circles.append(new)
    for _ in range(rng.randint(0, 5)):
        circles = _changed(circles, rng, 0.0)
    start = shown(circles)
    question = f"Pack.\n{worth(circles):.3f}\n{start}"
    return ask(question, None, circles=count, start=start, solution=shown(_changed(circles, rng, 0.0)))


def _changed(circles: list[Circle], rng: random.Random, careless: float) -> list[Circle]:
    """One circle moved or resized by 1; the same where nothing that was tried fits."""
    for _ in range(40):
        i, what, by = rng.randrange(len(circles)), rng.randrange(4), rng.choice((-1, 1))
        new = list(circles[i])
        # to grow is tried as often as to move
        new[min(what, 2)] += 1 if what > 1 else by
        made = [*circles[:i], (new[0], new[1], new[2]), *circles[i + 1 :]]
        if all(0 <= x <= 9 for x in new) and (fits(made) or rng.random() < careless):
            return made
    return circles


def _demonstrate(problem: Problem, rng: random.Random, *, lazy: float, careless: float) -> str:
    circles = read(problem.meta["start"], problem.meta["circles"]) or []
    return shown(circles if rng.random() < lazy else _changed(circles, rng, careless))


# ---- How good a packing is -------------------------------------------------------------------------------------------


@reward
def packed(trajectory: Trajectory) -> Score:
    """The sum of radii as a share of an area bound, from 0 to 1; 0 for an invalid packing."""
    count = trajectory.problem.meta.get("circles")
    if not isinstance(count, int):
        return Score(None, why="the problem does not say how many circles")
    circles = read(trajectory.reply, count)
    if circles is None:
        return Score(0.0, why=f"no {count} lines of three digits")
    return Score(worth(circles), extracted=trajectory.reply.strip()) if fits(circles) else Score(0.0, why="it does not fit")
