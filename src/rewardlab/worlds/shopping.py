"""Simulation of shoppers: pages of a shop, and the next action: leave, click on an item, or search again.

    Shop: red shoes; blue hat. Searched: shoes. Page 1.
    {"rationale":"They look for shoes.","action":{"type":"click","name":"red shoes"}}

Nobody knows what a person does next. A careful simulator goes by the page; a lazy one says that the person leaves, always.
"""

from __future__ import annotations

import json
import math
import random
import re
from collections.abc import Mapping
from functools import partial
from typing import Any

from rewardlab.core import Problem, Score, Task, Trajectory, ask
from rewardlab.errors import RewardlabError
from rewardlab.rewards.reward import reward
from rewardlab.settings.domain import NonNegativeFloat, PositiveInt, Share
from rewardlab.tasks.pairs import Paired, Reply, all_paired, with_pair
from rewardlab.tasks.sources import test_set, training
from rewardlab.text import strict_json
from rewardlab.text.answers import after_thinking
from rewardlab.text.words import rouge_l, words

# ---- Actions as records, and how near one comes to what a person did -------------------------------------------------
#
# {"rationale":"I want red shoes.","action":{"type":"click","name":"red shoes"}}

Action = Mapping[str, str]
FORM, TYPE, GIVEN, NAME = 0.5, 0.3, 0.2, 0.1
"""What is paid for the form, the type, all fields that are given together, and a field that says where, not what."""
MEANT = ("text", "name")
"""Fields that say what is meant. The first that an action has counts most: what was typed, else what was clicked on."""
_FENCED = re.compile(r"```(?:json)?\s*(.*?)\s*```", re.DOTALL)


def read_action(reply: str) -> Action | None:
    """The action of a reply {"rationale", "action"}; None where the reply is not of this form."""
    text = after_thinking(reply).strip()
    fenced = _FENCED.fullmatch(text)
    try:
        record: Any = strict_json.parse(fenced[1] if fenced else text)
    except ValueError:
        return None
    if not isinstance(record, dict) or not isinstance(record.get("rationale"), str):
        return None
    return usable(record.get("action"))


def usable(action: Any) -> Action | None:
    """The action, or the one that a text holds as JSON, if it has a type, and texts alone."""
    if isinstance(action, str):
        try:
            action = strict_json.parse(action)
        except ValueError:
            return None
    fits = isinstance(action, dict) and "type" in action and all(isinstance(x, str) for x in action.values())
    return action if fits else None


def value(said: Action, gold: Action, scale: float, at: float) -> float:
    """v(a): for the type; if it is right, for the fields that are given; and for how alike they are to the gold ones.

    The likeness (ROUGE-L, where at least `at`) of the field that says what is meant (`MEANT`) counts `scale` times, that of every
    other field `NAME` times. The order of the fields means nothing.
    """
    if said["type"] != gold["type"]:
        return 0.0
    fields = [name for name in gold if name != "type"]
    meant = next((name for name in MEANT if name in fields), None)
    given = sum(bool(said.get(name)) for name in fields) * GIVEN / max(1, len(fields))
    alike = {name: rouge_l(words(said.get(name, "")), words(gold[name])) for name in fields}
    paid = ((scale if name == meant else NAME) * x for name, x in alike.items() if x >= at)
    # fsum: the same to the last bit in whatever order the fields come
    return TYPE + given + math.fsum(paid)


# ---- the task ---------------------------------------------------------------------------------------------------------

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


# ---- Whether a simulated action is what the person did ---------------------------------------------------------------

NO_GOLD = "the answer is not an action with a type"


@reward
def action_right(trajectory: Trajectory) -> Score:
    """1 for exactly the recorded action."""
    gold, said = usable(trajectory.problem.answer), read_action(trajectory.reply)
    if gold is None:
        return Score(None, why=NO_GOLD)
    return Score(float(said is not None and strict_json.equal(dict(said), dict(gold))), why=f"the person did {dict(gold)}")


@reward
def action_value(trajectory: Trajectory, *, scale: NonNegativeFloat = 1000.0, at: Share = 0.75, form: float = FORM) -> Score:
    """`form` for JSON with a rationale and an action, and what `actions.value` pays for the action; 0 for all else.

    scale: of the likeness of long texts, such as what was searched for.  at: the least likeness that counts.
    """
    gold, said = usable(trajectory.problem.answer), read_action(trajectory.reply)
    if gold is None:
        return Score(None, why=NO_GOLD)
    return Score(0.0, why="not of the form") if said is None else Score(form + value(said, gold, scale, at))
