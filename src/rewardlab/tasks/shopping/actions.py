"""Actions as records, and how near one comes to what a person did.

{"rationale":"I want red shoes.","action":{"type":"click","name":"red shoes"}}
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

from rewardlab.text import strict_json
from rewardlab.text.answers import after_thinking
from rewardlab.text.words import rouge_l, words

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
