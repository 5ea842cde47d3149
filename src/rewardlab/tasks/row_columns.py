"""The columns of a row: which are read, by what names others call them, and values that lie within others, as `a.b`."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rewardlab.data.picture_rows import NO_COLUMN, columns_of
from rewardlab.data.values import is_missing
from rewardlab.data.whole_pairs import SIDES, WHOLE
from rewardlab.errors import RewardlabError

OTHER_NAMES = {
    "prompt": ("question", "problem", "instruction", "query", "input", "text"),
    "answer": ("ground_truth", "gold", "label", "target", "final_answer", "expected", "output", "solution"),
    "completion": ("response", "output", "reply", "solution"),
}
"""What else people call a column: suggested where it is missing."""
SYSTEM = ("system", "system_prompt")
"""Columns that hold a system message, if no other is named: of ShareGPT's, LLaMA-Factory's and OpenOrca's rows."""
ALPACA = "instruction"
"""The column of Alpaca's prompts, whose text goes on in `input`; LLaMA-Factory's have earlier turns in `history`."""


@dataclass(frozen=True)
class Columns:
    """Which columns to read, and the system message to put first.

    image: that of the pictures; None: `image` or `images`.  folder: from which the paths of pictures go.  system_column: that of a
    system message; None: one of SYSTEM, "none": no column is.
    """

    prompt: str
    answer: str
    completion: str | None
    system: str | None
    image: str | None = None
    folder: Path = Path()
    system_column: str | None = None

    def read(self, pictures: bool) -> tuple[str | None, ...]:
        """Those whose values are read into a problem itself, and are none of its further ones.  pictures: whether it shows any."""
        return (self.prompt, self.answer, self.completion, *(columns_of(self.image) if pictures else ()))

    def in_row(self, row: Mapping[str, Any]) -> Columns:
        """With the names of TRL's and verl's formats, where the row has those instead of the default names."""
        unnamed = self.prompt == "prompt" and "prompt" not in row
        conversation = next((name for name in ("messages", "conversations") if unnamed and name in row), self.prompt)
        # its replies stand in `output`, and those of a pair in columns of their own
        alpaca = unnamed and conversation == self.prompt and ALPACA in row and bool({"output", *SIDES} & row.keys())
        verl = self.answer == "answer" and "answer" not in row and has(row, "reward_model.ground_truth")
        # a reply with a label may be a bad one, which nobody is to imitate
        trl = self.completion is None and "completion" in row and not {"solution", "label"} & row.keys()
        taught = alpaca and self.completion is None and "output" in row and not {"solution", "label", *SIDES} & row.keys()
        return replace(
            self,
            prompt=ALPACA if alpaca else conversation,
            answer="reward_model.ground_truth" if verl else self.answer,
            completion="completion" if trl else "output" if taught else self.completion,
        )

    def system_of(self, row: Mapping[str, Any], place: str) -> str | None:
        """The system message that a column of the row holds; None for none, or where another stands for all rows."""
        if self.system is not None or self.system_column == NO_COLUMN:
            return None
        if (named := self.system_column) is not None:
            value = lookup(row, named)
            if not isinstance(value, str) and not is_missing(value):
                raise RewardlabError(f"{place}: a system message is a text, and {named} is {str(value)[:80]!r}")
        else:
            value = next((row[name] for name in SYSTEM if name in row and name not in self.read(False)), None)
        return value if isinstance(value, str) and value.strip() else None


class NoColumn(RewardlabError):
    """A column is missing."""


class NoAnswer(RewardlabError):
    """A row has no answer, where others have one."""


def lookup(row: Mapping[str, Any], name: str) -> Any:
    """The value of a column, or of a.b within the column a; None if there is none."""
    value: Any = row
    for part in [name] if name in row else name.split("."):
        value = value.get(part) if isinstance(value, Mapping) else None
    return value


def has(row: Mapping[str, Any], name: str) -> bool:
    # a column whose value is missing in this row is still a column
    return name in row or lookup(row, name) is not None


def column(row: Mapping[str, Any], name: str, kind: str, place: str) -> Any:
    """The value of a column.  kind: prompt, answer or completion."""
    if has(row, name):
        return lookup(row, name)
    # in whatever case: Question, Answer
    written = {other.lower(): other for other in reversed(list(row))}
    known = [written[other] for other in (name.lower(), *OTHER_NAMES[kind]) if other in written]
    near = difflib.get_close_matches(name, row, n=1) or known
    hint = f"did you mean {near[0]!r} (--{kind}-column {near[0]})? " if near else f"Name yours with --{kind}-column. "
    if not near and kind == "prompt" and {*SIDES} <= row.keys():
        hint = f"Name yours with --prompt-column; {WHOLE}. "
    raise NoColumn(f"{place}: no column {name!r}; {hint}The columns are: {', '.join(row) or 'none'}")
