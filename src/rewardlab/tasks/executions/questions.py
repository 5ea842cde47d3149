"""White-box questions about a run: which line comes next, and the value and type of a variable after a line.

line 4, time 1: next?      the text of the line that is run next, -1 where there is none, or line 4 is not run
line 4, time 1: y?         value; type
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from .tracer import LONGEST

Event = Mapping[str, Any]
END = "-1"
JUMPS = ("if ", "for ", "while ", "elif ")
ASKING = (
    "Follow the call, then answer between <answer> and </answer>, one line each: first what it returns, then the answers in their "
    "order. A next line is answered by its text, or by -1 if there is none or the line is not run; a variable by `value; type`."
)  # fmt: skip


class Question(NamedTuple):
    """kind: "next" or "state".  answer: the right one."""

    kind: str
    text: str
    answer: str


def questions(source: str, events: Sequence[Event]) -> list[Question]:
    """All that can be asked of a run: events as of `tracer.traced`. Next lines only where the order is not that of the text."""
    lines, times = source.split("\n"), Counter[int]()
    found: list[Question] = []
    for event, after in pairwise(events):
        number = event["line"]
        times[number] += 1
        at, text, then = f"line {number}, time {times[number]}", lines[number - 1].strip(), after.get("line")
        jumps = then != number + 1 or text.startswith(JUMPS)
        if jumps and then != number:
            found.append(Question("next", f"{at}: next?", END if then is None else lines[then - 1].strip()))
        # the head of a loop that ends changes nothing
        if then is None or (text.startswith(("for ", "while ")) and then != number + 1):
            continue
        changed = {name: shown for name, shown in after["locals"].items() if event["locals"].get(name) != shown}
        changed = {name: shown for name, shown in changed.items() if can_be_told(shown[0])}
        found += [Question("state", f"{at}: {name}?", f"{value}; {kind}") for name, (value, kind) in changed.items()]
    run = {event["line"] for event in events[:-1]}
    skipped = [n for n in range(min(run, default=1), len(lines) + 1) if n not in run and _asked(lines[n - 1])]
    return found + [Question("next", f"line {n}, time 1: next?", END) for n in skipped]


def can_be_told(shown: str) -> bool:
    """Whether a reply can state this value: it is no longer than what the trace keeps, and names no place in memory."""
    return len(shown) <= LONGEST and " at 0x" not in shown


def _asked(line: str) -> bool:
    """Whether a line that is not run is asked for: no bare `else:`, no empty line or comment."""
    text = line.strip()
    return bool(text) and not text.startswith(("else", "#", "def ", "@", '"""'))


def chosen(found: Sequence[Question], rng: random.Random, most: int) -> list[Question]:
    """At most so many of each kind, next lines first."""
    kinds = {kind: [q for q in found if q.kind == kind] for kind in ("next", "state")}
    return [q for of_kind in kinds.values() for q in rng.sample(of_kind, min(most, len(of_kind)))]


def numbered(source: str) -> str:
    return "\n".join(f"{i} {line}".rstrip() for i, line in enumerate(source.split("\n"), 1))


def asked(source: str, call: str, about: Sequence[Question], instructed: bool) -> str:
    """The prompt. instructed: with a sentence on how to answer, for models that read one."""
    parts = [numbered(source), f"{call}?", *(q.text for q in about), *([ASKING] if instructed else [])]
    return "\n".join(parts)


def answer_of(value: str, about: Sequence[Question]) -> dict[str, Any]:
    """The gold answer, as the verifier `trace_answers` takes it."""
    return {"output": value, "questions": [{"kind": q.kind, "answers": [q.answer]} for q in about]}


def stated(value: str, about: Sequence[Question]) -> str:
    """A reply's last part, with these answers."""
    return "\n".join(["<answer>", value, *(q.answer for q in about), "</answer>"])
