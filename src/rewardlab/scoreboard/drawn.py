"""Drawn pictures for checks of benchmarks that show some: squares on a grid, pairs of claims about them, raters that look or not.

A pair's claims are alike but for a number or a direction, and a coin decides which one the picture shows: who does not look is
right half of the time. A clip is several pictures of one square that moves.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from rewardlab.scoreboard.items import Item, Verdict
from rewardlab.scoreboard.planted import Rates

SIDE, CELL = 4, 8
"""Cells of a picture in either direction, and the pixels of a cell."""
COLOURS = {"red": (220, 40, 40), "green": (40, 180, 60), "blue": (50, 80, 230)}
MOVES = {"left": (0, -1), "right": (0, 1), "up": (-1, 0), "down": (1, 0)}
COUNT = re.compile(r"(\d+) (red|green|blue) squares")
MOVE = re.compile(r"moves (left|right|up|down)")


class Pair(NamedTuple):
    """A question, the claim that its frames show, and one that they do not."""

    question: str
    better: str
    worse: str
    frames: tuple[np.ndarray, ...]


def draw(cells: np.ndarray) -> np.ndarray:
    """cells: (SIDE, SIDE) numbers of colours, -1 for none -> (height, width, 3) bytes."""
    palette = np.array([*COLOURS.values(), (0, 0, 0)], np.uint8)
    return palette[cells].repeat(CELL, 0).repeat(CELL, 1)


def cells_in(picture: Any) -> np.ndarray:
    """(SIDE, SIDE) numbers of colours, read from the pixels in the middle of each cell."""
    middles = np.asarray(picture).astype(int)[CELL // 2 :: CELL, CELL // 2 :: CELL]
    known = np.array([*COLOURS.values(), (0, 0, 0)])
    nearest = np.abs(middles[:, :, None] - known).sum(-1).argmin(-1)
    return np.where(nearest == len(COLOURS), -1, nearest)


def counted(rng: np.random.Generator) -> Pair:
    """How many squares of a colour there are; the wrong claim is another number that is as likely."""
    names = list(COLOURS)
    colour = int(rng.integers(len(names)))
    there, other = (int(n) for n in rng.permutation(np.arange(1, 6))[:2])
    cells = np.full(SIDE * SIDE, -1)
    places = rng.permutation(SIDE * SIDE)
    cells[places[:there]] = colour
    # squares of other colours, so that the number of squares says nothing
    rest = int(rng.integers(2, 6))
    cells[places[there : there + rest]] = (colour + rng.integers(1, len(names), rest)) % len(names)
    better, worse = (f"There are {n} {names[colour]} squares." for n in (there, other))
    return Pair(f"How many {names[colour]} squares are there?", better, worse, (draw(cells.reshape(SIDE, SIDE)),))


def moved(rng: np.random.Generator, frames: int = 3) -> Pair:
    """Where a square moves, a cell from frame to frame; no frame alone shows it."""
    name, other = (str(x) for x in rng.permutation(list(MOVES))[:2])
    start, pictures = rng.integers(0, SIDE, 2), []
    for k in range(frames):
        cells = np.full((SIDE, SIDE), -1)
        # it leaves the picture on one side and comes back on the other
        cells[tuple((start + k * np.array(MOVES[name])) % SIDE)] = 0
        pictures.append(draw(cells))
    return Pair("Where does the square go?", f"The square moves {name}.", f"The square moves {other}.", tuple(pictures))


def holds(frames: Sequence[Any], claim: str) -> bool | None:
    """Whether the frames show what a text claims; None for a text that claims nothing, or where they are too few to tell."""
    if found := COUNT.search(claim):
        return bool((cells_in(frames[0]) == list(COLOURS).index(found[2])).sum() == int(found[1]))
    if (found := MOVE.search(claim)) and len(frames) > 1:
        first, second = (np.argwhere(cells_in(frame) >= 0)[0] for frame in frames[:2])
        return bool((((second - first - MOVES[found[1]]) % SIDE) == 0).all())
    return None


def looking(noise: float, frames: int | None = None) -> Rates:
    """A rater that looks at the first so many frames of a prompt, and takes a claim for its opposite with the chance `noise`.

    Of texts that claim nothing about them it knows nothing.
    """

    def rates(item: Item, rng: np.random.Generator) -> Verdict:
        scores = []
        for reply in item.replies:
            shown = holds(item.pictures[:frames], reply) if item.pictures else None
            scores.append(0.5 if shown is None else float(shown != (rng.random() < noise)))
        # a coin where both are alike
        return Verdict(tuple(s + 1e-3 * float(rng.normal()) for s in scores))

    return rates


def reading(item: Item, rng: np.random.Generator) -> Verdict:
    """A rater that reads the replies alone: the longer one is better, or a coin decides."""
    return Verdict(tuple(len(reply) + 1e-3 * float(rng.normal()) for reply in item.replies))
