"""Pairs whose sides are whole conversations: `chosen` and `rejected` hold the prompt, and rows have no column of it.

    chosen:   user q, assistant a               the prompt is what both begin with, up to a reply of the assistant:
    rejected: user q, assistant b               user q,  and the replies are a and b

A side is a list of messages, as TRL's `extract_prompt` reads them (its "implicit prompt"), or a text of turns, "\n\nHuman: ...
\n\nAssistant: ...", as Anthropic's hh-rlhf writes them (Bai et al. 2022, arXiv:2204.05862). What differs need not be the last reply
alone: then the replies are what comes after the prompt on either side, with what the user says in between.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from rewardlab.errors import RewardlabError
from rewardlab.util.progress import console

from .conversations import WHO, decoded, first_of, is_conversation, no_message, role_of, text_in
from .values import is_missing

SIDES = ("chosen", "rejected")
ASKED = ("prompt", "messages", "conversations")
"""Columns that hold a prompt."""
MARK = re.compile(r"(?:\A\s*|\n\n)(Human|Assistant|System):")
"""What begins a turn in a text; a text of turns begins with one."""
Form = Literal["messages", "text"]
HOW = {"messages": "lists of messages", "text": 'text of "Human:" and "Assistant:" turns'}
WHOLE = (
    'chosen and rejected may hold it: as lists of {"role", "content"}, or as text of turns that begin with "\\n\\nHuman:" and '
    '"\\n\\nAssistant:"'
)
"""How a pair may hold its prompt, for rows that do not."""

Said = tuple[str, str]
"""Role and text of a message."""


class Parted(NamedTuple):
    """A pair in its parts: what both sides begin with, and how each goes on, which begins and ends with the assistant."""

    prompt: tuple[Said, ...]
    chosen: tuple[Said, ...]
    rejected: tuple[Said, ...]
    form: Form

    @property
    def several(self) -> bool:
        """Whether they differ in more than one reply each."""
        return len(self.chosen) > 1 or len(self.rejected) > 1

    @property
    def whole(self) -> dict[str, list[dict[str, str]]]:
        """The columns of the row: the prompt, and both sides whole."""
        sides = zip(("prompt", *SIDES), ((), self.chosen, self.rejected), strict=True)
        return {name: [{"role": role, "content": text} for role, text in (*self.prompt, *rest)] for name, rest in sides}


@dataclass
class Told:
    """What was read of pairs that hold their prompts, which is told in one line.  several: pairs that differ in several turns."""

    forms: Counter[Form] = field(default_factory=Counter)
    several: int = 0

    def add(self, pair: Parted) -> None:
        self.forms[pair.form] += 1
        self.several += pair.several

    def tell(self, more: str = "") -> None:
        """Print it, if there is anything; more: what becomes of those that differ in several turns."""
        if not self.forms:
            return
        rows = " and ".join(f"{n:,} row{'s' * (n != 1)} ({HOW[form]})" for form, n in self.forms.items())
        several = f"; {self.several:,} of them differ in more than the last reply{more}" if self.several else ""
        text = f"read from chosen and rejected, which both begin with it: the prompt of {rows}{several}"
        console.print(text, markup=False, highlight=False, soft_wrap=True)


def parted(row: Mapping[str, Any], place: str) -> Parted | None:
    """The parts of a pair whose sides are whole conversations; None for a row that is none, or that has its prompt in a column.

    A text of turns is read although a column holds the prompt, where both sides begin with it.
    Raises RewardlabError, with the place, where the two begin with no prompt in common, or one side alone is a conversation.
    """
    values = [decoded(row.get(name)) for name in SIDES]
    form: Form = "messages" if any(isinstance(value, list) for value in values) else "text"
    asked = next((name for name in ASKED if name in row), None)
    if asked and (form == "messages" or any(map(is_missing, values))):
        return None
    chosen, rejected = (turns_of(name, value, place) for name, value in zip(SIDES, values, strict=True))
    if asked:
        # a reply may be a dialogue, too: it is one that goes on from the prompt only where it begins with it
        known = chosen and rejected and _begin(chosen, rejected, decoded(row[asked]), place)
        return _divided(chosen, rejected, form, place) if known and chosen and rejected else None
    if chosen and rejected:
        return _divided(chosen, rejected, form, place)
    if chosen or rejected:
        whole, other = SIDES if chosen else SIDES[::-1]
        raise RewardlabError(
            f"{place}: {whole} is a whole conversation, and {other} is {row.get(other)!r:.40}: both are to hold the prompt, or none"
        )
    return None


def _divided(chosen: Sequence[Said], rejected: Sequence[Said], form: Form, place: str) -> Parted:
    most = min(len(chosen), len(rejected)) - 1
    shared = next((i for i, (a, b) in enumerate(zip(chosen, rejected, strict=False)) if a != b), most)
    shared = min(shared, most)
    # a prompt ends where the assistant replies on both sides
    while shared and not chosen[shared][0] == rejected[shared][0] == "assistant":
        shared -= 1
    if not any(role != "system" for role, _ in chosen[:shared]):
        raise RewardlabError(
            f"{place}: chosen and rejected have no prompt in common: one begins with {_shown(chosen)}, the other with "
            f"{_shown(rejected)}. Give the prompt in a column 'prompt', or leave the row out"
        )
    for name, turns in zip(SIDES, (chosen, rejected), strict=True):
        if turns[-1][0] != "assistant":
            raise RewardlabError(f"{place}: {name} ends with a message of {turns[-1][0]}, and not with a reply: leave the row out")
    return Parted(tuple(chosen[:shared]), tuple(chosen[shared:]), tuple(rejected[shared:]), form)


def _shown(turns: Sequence[Said]) -> str:
    role, text = turns[0]
    return f"{role}: {text[:40]!r}"


def turns_of(name: str, value: Any, place: str) -> list[Said] | None:
    """The messages of a side; None where it is no conversation."""
    if is_conversation(value):
        return [(role_of(first_of(m, WHO), f"{place}, {name}"), text_in(m)) for m in value]
    if isinstance(value, list) and any(isinstance(m, Mapping) for m in value):
        number, bad = next((k, m) for k, m in enumerate(value, 1) if not is_conversation([m]))
        raise RewardlabError(f"{place}: {name} is a list of {{'role', 'content'}}; {no_message(number, bad)}")
    return in_turns(value) if isinstance(value, str) else None


def in_turns(text: str) -> list[Said] | None:
    """A text of turns as messages; None where it is none. What one speaker says in several turns in a row is one message."""
    _, *parts = MARK.split(text)
    if not MARK.match(text) or "Assistant" not in parts[::2] or len(parts) < 4:
        return None
    found: list[Said] = []
    for speaker, said in zip(parts[::2], parts[1::2], strict=True):
        role = {"Human": "user", "Assistant": "assistant", "System": "system"}[speaker]
        before = found.pop()[1] + "\n\n" if found and found[-1][0] == role else ""
        found.append((role, before + said.strip()))
    return found


def _begin(chosen: Sequence[Said], rejected: Sequence[Said], prompt: Any, place: str) -> bool:
    """Whether both conversations begin with a prompt, in whatever form it is written."""
    asked = turns_of("prompt", prompt, place) or [("user", str(prompt).strip())]
    # a prompt as text of turns ends with "\n\nAssistant:", to which the reply is the rest
    asked = asked[:-1] if asked[-1] == ("assistant", "") else asked
    return all(list(side[: len(asked)]) == asked and len(side) > len(asked) for side in (chosen, rejected))
