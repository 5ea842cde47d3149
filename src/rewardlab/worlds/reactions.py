"""User feedback: wishes that a reply may meet or not, and the user's follow-up.

    Ann and Ben want a red fruit, but no cherry.     ->  A strawberry.     ->  Thanks, that is right.
                                                     ->  A lemon.          ->  No, that is wrong.

The small policy has read both: wishes with the replies of a careless teacher, and conversations in which it is the one who wishes,
with a person's reaction to a reply. What people react to is what the teacher often gets wrong.
"""

from __future__ import annotations

import random
from functools import partial
from typing import Literal

from rewardlab.core import Message, Problem, Task, ask
from rewardlab.errors import RewardlabError
from rewardlab.settings.domain import PositiveInt, Share
from rewardlab.tasks.sources import test_set, training
from rewardlab.text.followups import FRONT

NAMES = (
    "Ann", "Bob", "Cal", "Dee", "Eve", "Fay", "Gus", "Hal", "Ida", "Jon", "Kim", "Lea", "Max", "Ned", "Ola", "Pam",
)  # fmt: skip
ITEMS = {
    ("red", "fruit"): ("cherry", "strawberry", "raspberry"), ("red", "bird"): ("cardinal", "bullfinch", "redpoll"),
    ("red", "stone"): ("ruby", "garnet", "jasper"), ("yellow", "fruit"): ("banana", "lemon", "quince"),
    ("yellow", "bird"): ("canary", "goldfinch", "weaver"), ("yellow", "stone"): ("topaz", "citrine", "sulphur"),
    ("green", "fruit"): ("kiwi", "lime", "gooseberry"), ("green", "bird"): ("parakeet", "greenfinch", "touraco"),
    ("green", "stone"): ("jade", "beryl", "malachite"), ("blue", "fruit"): ("plum", "blueberry", "sloe"),
    ("blue", "bird"): ("jay", "kingfisher", "roller"), ("blue", "stone"): ("sapphire", "lazurite", "kyanite"),
    ("white", "fruit"): ("lychee", "coconut", "longan"), ("white", "bird"): ("swan", "dove", "gannet"),
    ("white", "stone"): ("marble", "quartz", "pearl"),
}  # fmt: skip
COLOURS, KINDS = (tuple(dict.fromkeys(names)) for names in zip(*ITEMS, strict=True))
CONFUSED = {"red": "yellow", "blue": "green"}
"""The wrong rule of a biased teacher: colours that it takes for others; of other colours it names what was ruled out."""
PLEASED = ("Thanks, that is right.", "Great, just what we want.")
DISPLEASED = ("No, that is wrong.", "No, not what we want.")
NEUTRAL = "What else is there?"


def reactions(
    *, shown: Literal["wishes", "reactions", "both"] = "wishes", biased: Share = 0.6, error: Share = 0.1, neutral: Share = 0.2,
    mistaken: Share = 0.05, test_size: PositiveInt = 1000, size: PositiveInt | None = None,
) -> Task:  # fmt: skip
    """Wishes for a thing of a kind and a colour, one of which is ruled out; right is each of the others.

    shown: the problems: "wishes"; "reactions", to a reply; or, as the small policy has read them, "both".
    The teacher's replies. biased: how often it follows a wrong rule, so that what a policy says most often is wrong.  error: names
    any thing.  People's reactions. neutral: how often they say neither yes nor no.  mistaken: how often they say the opposite.
    size: so many training problems, in epochs; None: endless.
    """
    shares = {"biased": biased, "error": error, "neutral": neutral, "mistaken": mistaken}
    for name, share in shares.items():
        if not 0 <= share <= 1:
            raise RewardlabError(f"reactions: {name} is a probability between 0 and 1, not {share}")
    if shown not in ("wishes", "reactions", "both"):
        raise RewardlabError(f"reactions: shown is wishes, reactions or both, not {shown!r}")
    sample = partial(_sample, shown=shown, biased=biased, error=error, neutral=neutral, mistaken=mistaken)
    key = ("reactions", shown, *shares.values())
    said = ",".join(f"{name}={share}" for name, share in shares.items())
    return Task(
        name="reactions",
        train=training(sample, key, size),
        test=test_set(sample, key, test_size),
        verifier="final_answer",
        max_new=16,
        about="wishes for a thing of a kind and a colour, and what people say to a reply",
        demonstrate=partial(_demonstrate, biased=biased, error=error),
        columns=("prompt", "answer", "wish", "solution"),
        warmed_as=None if shown == "both" else f"reactions:shown=both,{said}",
    )


def _sample(rng: random.Random, *, shown: str, biased: float, error: float, neutral: float, mistaken: float) -> Problem:
    names, colour, kind = rng.sample(NAMES, 2), rng.choice(COLOURS), rng.choice(KINDS)
    without = rng.choice(ITEMS[colour, kind])
    wish = {"colour": colour, "kind": kind, "without": without}
    question = f"{names[0]} and {names[1]} want a {colour} {kind}, but no {without}."
    right = [item for item in ITEMS[colour, kind] if item != without]
    if shown == "wishes" or (shown == "both" and rng.random() < 0.5):
        return ask(question, [_reply(item) for item in right], wish=wish, solution=_reply(right[0]))
    # every other reply is right, so that both reactions are often read
    item = rng.choice(right) if rng.random() < 0.5 else _careless(wish, rng, biased, error)
    pleased = (item in right) != (rng.random() < mistaken)
    said = rng.choice(PLEASED if pleased else DISPLEASED) if rng.random() >= neutral else NEUTRAL
    prompt = (Message("user", FRONT), Message("assistant", question), Message("user", _reply(item)))
    return Problem(prompt, [said], {"wish": wish, "solution": said})


def _reply(item: str) -> str:
    return f"A {item}."


def _careless(wish: dict[str, str], rng: random.Random, biased: float, error: float) -> str:
    """What the teacher names."""
    colour, kind, without = wish["colour"], wish["kind"], wish["without"]
    if rng.random() < error:
        return rng.choice(ITEMS[rng.choice(COLOURS), kind])
    if rng.random() < biased:
        return rng.choice(ITEMS[CONFUSED[colour], kind]) if colour in CONFUSED else without
    return rng.choice([item for item in ITEMS[colour, kind] if item != without])


def _demonstrate(problem: Problem, rng: random.Random, *, biased: float, error: float) -> str:
    """A reply of the careless teacher; a reaction is as it is."""
    if len(problem.prompt) > 1:
        return problem.meta["solution"]
    return _reply(_careless(problem.meta["wish"], rng, biased, error))
