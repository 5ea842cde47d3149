"""Checklists of rows: demands on a reply, some with a program that decides them exactly."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from rewardlab.core import Problem
from rewardlab.data.values import list_of
from rewardlab.errors import RewardlabError
from rewardlab.sandbox import Limits, ProgramRun, Sandbox

MOST = 12
"""Items of a checklist, at most."""
_ITEM = re.compile(r"^[ \t]{0,8}[-*] (.{4,400}?)[ \t]{0,4}\((\d{1,3})\)[ \t]{0,8}$", re.MULTILINE)
_RUN = """
import json, sys
def _verdict(text):
    try:
        return bool(verify_requirement(text))
    except Exception:
        return None
print("\\n" + json.dumps([_verdict(text) for text in json.load(sys.stdin)]))
"""


class Item(NamedTuple):
    """A demand on replies to one instruction. program: source of verify_requirement(text), where one decides it exactly."""

    text: str
    weight: float = 100.0
    program: str = ""


def items_of(said: Any) -> list[Item]:
    """A checklist as items: lines "- question? (weight)", or a list of texts, of [text, weight], or of objects with `item`,
    `weight` and `program`. Items without weight are left out, and the same text twice is one item."""
    if isinstance(said, str) and _ITEM.search(said):
        found = [Item(text.strip(), float(weight)) for text, weight in _ITEM.findall(said)]
    else:
        found = [_item(x) for x in list_of(said) or []]
    return list({item.text: item for item in found if item.weight > 0 and item.text}.values())[:MOST]


def _item(said: Any) -> Item:
    if isinstance(said, Mapping):
        return Item(str(said.get("item", "")), float(said.get("weight", 100.0)), str(said.get("program") or ""))
    text, weight = said if isinstance(said, list | tuple) else (said, 100.0)
    return Item(str(text), float(weight))


def check_programs(problems: Sequence[Problem], column: str, programs: bool, **_: object) -> None:
    """Refuse rows of whose demands none has a program, where nothing else checks one.  programs: they alone check."""
    if programs and not any(item.program for p in problems for item in items_of(p.meta.get(column))):
        raise RewardlabError(
            f"where no model checks demands, programs do, and no item of {column!r} of {len(problems)} rows has one: give items as "
            "objects with `item` and `program`, or a model that checks (--validator copy:policy, or openai:URL#NAME)"
        )


def program_verdicts(program: str, replies: Sequence[str]) -> list[float | None]:
    """1 or 0 for each reply, by a program in the sandbox; None where it fails, and for all if it does not run."""
    (ran,) = Sandbox(Limits(seconds=5.0)).run_programs([ProgramRun(program + _RUN, json.dumps(list(replies)))])
    try:
        found = json.loads(ran.stdout.strip().splitlines()[-1])
        return [None if found[i] is None else float(bool(found[i])) for i in range(len(replies))]
    except (ValueError, IndexError, TypeError, KeyError):
        return [None] * len(replies)
