"""Errands: things of a colour to be fetched, one a turn; a shop hands out whatever is asked for, and says at the end what it was.

    Get a red hat, a blue bag, a green coat.       red hat
    Here is a red hat.                             black bag
    Here is a black bag.                           green coat
    Get a red hat, a black bag, a green coat.      (read by nobody: what was done, put as an errand)

The agent takes some colours for others, and slips now and then, so that what it says most often is not always right. What it has
done is the right way to some errand.
"""

from __future__ import annotations

import random
import re
from functools import partial
from typing import Any

from rewardlab.core import Message, Problem, Task, Turn, ask, environment
from rewardlab.errors import RewardlabError
from rewardlab.settings.domain import PositiveInt, Share
from rewardlab.tasks.sources import test_set, training

COLOURS = ("red", "blue", "green", "black", "white", "brown")
GOODS = ("hat", "bag", "coat", "scarf", "lamp", "chair")
CONFUSED = {"red": "brown", "blue": "black"}
"""Which colour a biased teacher takes for which."""
_THING = re.compile(rf"\b({'|'.join(COLOURS)}) ({'|'.join(GOODS)})\b")
State = dict[str, Any]


def errands(
    *, things: PositiveInt = 3, biased: Share = 0.6, error: Share = 0.1, test_size: PositiveInt = 1000,
    size: PositiveInt | None = None,
) -> Task:  # fmt: skip
    """`things` to be fetched in order, each of another kind.

    The teacher of `demonstrate`, per thing: biased: takes the colour for the one that it confuses it with, if there is one; error:
    asks for any other colour.  size: so many training problems, in epochs; None: endless.
    """
    if things > len(GOODS):
        raise RewardlabError(f"errands: there are {len(GOODS)} kinds of things, fewer than {things}")
    sample, key = partial(_sample, things=things), ("errands", things)
    return Task(
        name="errands",
        train=training(sample, key, size),
        test=test_set(sample, key, test_size),
        verifier="earned",
        max_new=8,
        about=f"{things} things to be fetched, one a turn",
        environment="shop",
        turns=things,
        demonstrate=partial(_demonstrate, biased=biased, error=error),
        columns=("prompt", "things", "solution"),
        warmup_steps=300,
        window=(0.2, 0.7),
    )


def told(things: list[str]) -> str:
    """The errand by which these things are fetched."""
    return f"Get {', '.join(f'a {thing}' for thing in things)}."


def _sample(rng: random.Random, *, things: int) -> Problem:
    wanted = [f"{rng.choice(COLOURS)} {good}" for good in rng.sample(GOODS, things)]
    return ask(told(wanted), things=wanted, solution=_talk(wanted))


def _talk(things: list[str]) -> list[str]:
    """What the agent says, and what it is answered, but for the last thing."""
    return [text for thing in things for text in (thing, _handed(thing))][:-1]


def _handed(thing: str) -> str:
    return f"Here is a {thing}."


def _demonstrate(problem: Problem, rng: random.Random, *, biased: float, error: float) -> list[str]:
    return _talk([_asked(thing, rng, biased, error) for thing in problem.meta["things"]])


def _asked(thing: str, rng: random.Random, biased: float, error: float) -> str:
    colour, good = thing.split()
    if colour in CONFUSED and rng.random() < biased:
        return f"{CONFUSED[colour]} {good}"
    return f"{rng.choice([other for other in COLOURS if other != colour])} {good}" if rng.random() < error else thing


# ---- the shop --------------------------------------------------------------------------------------------------------


def _start(problem: Problem, seed: int, **_: Any) -> tuple[Message | None, State]:
    wanted = problem.meta.get("things")
    if not wanted:
        raise RewardlabError(f"shop needs the column things, a list: problem {problem.question[:60]!r} lacks it")
    return None, {"things": list(wanted), "got": []}


@environment(start=_start)
def shop(state: State, turn: Turn) -> tuple[Message | None, State]:
    """Hands out the first thing that a reply names. After as many replies as things are wanted, its last message says what was
    asked for, as an errand, and pays 1 if it is just what was wanted.
    """
    found = _THING.search(turn.text)
    got = [*state["got"], found[0] if found else turn.text.strip()]
    state = {**state, "got": got}
    if len(got) < len(state["things"]):
        return Message("user", _handed(found[0]) if found else "There is no such thing."), state
    return Message("user", told(got), reward=float(got == state["things"]), last=True), state
