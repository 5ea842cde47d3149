"""Pages of a shop, and what a person does next: leaves in half of the cases, else clicks on an item or searches for another.

    Shop: red shoes; blue hat. Searched: shoes. Page 1.
    {"rationale":"They look for shoes.","action":{"type":"click","name":"red shoes"}}

Nobody knows what a person does next. A careful simulator goes by the page; a lazy one says that the person leaves, always.
"""

from __future__ import annotations

import json
import random
from functools import partial

from rewardlab.core import Problem, Task, ask
from rewardlab.core.domain import PositiveInt, Share
from rewardlab.errors import RewardlabError
from rewardlab.tasks.pairs import Paired, Reply, all_paired, with_pair
from rewardlab.tasks.sources import test_set, training

COLOURS, GOODS = ("red", "blue", "green", "black", "white", "brown"), ("shoes", "hat", "bag", "coat", "boots", "scarf")
SIZES, USES = ("small", "large", "wide"), ("work", "rain", "sport", "travel")
LAST_PAGE = 3
LEAVE = {"type": "terminate"}


def shopping(
    *, leaves: Share = 0.5, follows: Share = 0.4, test_size: PositiveInt = 1000, size: PositiveInt | None = None
) -> Task:  # fmt: skip
    """Pages with two items after a search.

    leaves: share of people who leave.  follows: how often what a person does is what the page says: on page 3 they leave, on
    page 2 they search on, on page 1 they click.  size: so many training problems, in epochs; None: endless.
    """
    for name, share in (("leaves", leaves), ("follows", follows)):
        if not 0 <= share <= 1:
            raise RewardlabError(f"shopping: {name} is a share between 0 and 1, not {share}")
    key, sample = ("shopping", leaves, follows), partial(_sample, leaves=leaves, follows=follows)
    return Task(
        name="shopping",
        train=Paired(training(sample, key, size), _pair),
        test=all_paired(test_set(sample, key, test_size), _pair),
        verifier="action_right",
        max_new=72,
        about="what a person does next in a shop on the web",
        demonstrate=_careful,
        columns=("prompt", "answer", "solution", "items", "searched", "page", "chosen", "rejected", "qualities"),
        warmup_steps=300,
        window=(0.2, 0.7),
    )


def _sample(rng: random.Random, *, leaves: float, follows: float) -> Problem:
    kinds = ("click", "type_and_submit", "terminate")
    kind = rng.choices(kinds, ((1 - leaves) / 2, (1 - leaves) / 2, leaves))[0]
    page = kinds.index(kind) + 1 if rng.random() < follows else rng.randint(1, LAST_PAGE)
    goods, colours = rng.sample(GOODS, 2), rng.sample(COLOURS, 2)
    items, budget = [f"{c} {g}" for c, g in zip(colours, goods, strict=True)], rng.randint(10, 99)
    actions = {
        # most click on what they searched for
        "click": {"type": "click", "name": items[rng.random() < 0.25]},
        "type_and_submit": {"type": "type_and_submit", "name": "search", "text": _query(goods[0], rng)},
        "terminate": LEAVE,
    }
    question = f"Shop: {items[0]}; {items[1]}. Searched: {goods[0]}, up to {budget}. Page {page}."
    action = actions[kind]
    return ask(question, action, solution=write("They go on.", action), items=items, searched=goods[0], page=page)


def _query(good: str, rng: random.Random) -> str:
    return f"{rng.choice(SIZES)} {rng.choice(COLOURS)} {good} for {rng.choice(USES)}"


def write(rationale: str, action: dict[str, str]) -> str:
    return json.dumps({"rationale": rationale, "action": action}, separators=(",", ":"))


def _careful(problem: Problem, rng: random.Random) -> str:
    """What a simulator says that goes by the page, and guesses the rest."""
    meta = problem.meta
    if meta["page"] == LAST_PAGE:
        return write("Nothing fits.", LEAVE)
    if meta["page"] == 1:
        return write(f"They look for {meta['searched']}.", {"type": "click", "name": meta["items"][0]})
    query = _query(meta["searched"], rng)
    return write("They look on.", {"type": "type_and_submit", "name": "search", "text": query})


def _pair(problem: Problem, rng: random.Random) -> Problem:
    """chosen: of the careful simulator.  rejected: of the lazy one."""
    return with_pair(problem, Reply(_careful(problem, rng), 1.0), Reply(write("They leave.", LEAVE), 0.0))
