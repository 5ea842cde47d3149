"""Judging notes in two turns: first the wishes to look at, and then, asked to look, a sign for each and the verdict.

    We need corn. Wishes: polite, urgent, signed.          ->  polite signed
    A: we need corn please today                 Look.     ->  polite + - signed - + [[A]]
    B: Ann we need corn

The careless judge names some of the wishes alone, and looks at no others. Rows are those of `duels`, a question and a pair.
"""

from __future__ import annotations

import random
from dataclasses import replace
from functools import partial
from typing import Any

from rewardlab.core import Message, Problem, Task, Turn, environment
from rewardlab.settings.domain import PositiveInt, Share
from rewardlab.worlds.duels import WISHES, duels, fulfilled

LOOK = "Look."
SIGNS = ("-", "+")


@environment(start=lambda problem, seed: (None, 1))
def look_again(state: Any, turn: Turn) -> tuple[Message | None, Any]:
    """Asks to look, once."""
    return (Message("user", LOOK) if state == 1 else None), state + 1


def second_looks(
    *, wishes: PositiveInt = 3, named: Share = 0.6, error: Share = 0.05, judged: bool = False, test_size: PositiveInt = 500,
    size: PositiveInt | None = None,
) -> Task:  # fmt: skip
    """wishes: of a note.  named: the chance that the careless judge names a wish.  error: that it takes a sign for the other.
    judged: the rows are a judge's prompts, as the small policy is taught to answer them."""
    pairs = duels(kinds="wishes", wishes=wishes, judged=judged, test_size=test_size, size=size)
    careless = partial(_demonstrate, named=named, error=error)
    # a judge's rows are played in two turns; pairs are the same judge's
    played = {"demonstrate": careless, "environment": "look_again", "turns": 2, "warmed_as": None}
    kept = {"demonstrate": None, "warmed_as": f"second_looks:judged=true,wishes={wishes},named={named},error={error}"}
    return replace(
        pairs, name="second_looks", columns=tuple(name for name in pairs.columns if name != "answer"),
        about="two notes, judged in two turns", max_new=6 * min(wishes, len(WISHES)) + 8,
        # half of them right is chance
        warmup_steps=600, window=(0.5, 0.8), **(played if judged else kept),
    )  # fmt: skip


def _demonstrate(problem: Problem, rng: random.Random, *, named: float, error: float) -> list[str]:
    first, second = problem.meta["shown"]
    wishes = [w for w in problem.meta["wishes"] if rng.random() < named] or [rng.choice(problem.meta["wishes"])]
    signs = [(w, *(fulfilled(reply, w) != (rng.random() < error) for reply in (first, second))) for w in wishes]
    by = sum(a - b for _, a, b in signs)
    verdict = rng.choice("AB") if by == 0 else "A" if by > 0 else "B"
    looked = [f"{w} {SIGNS[a]} {SIGNS[b]}" for w, a, b in signs]
    return [" ".join(wishes), LOOK, " ".join([*looked, f"[[{verdict}]]"])]
