"""docs/parts.md: every part, task and model with its settings. `make docs` writes it."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

from rewardlab.errors import RewardlabError
from rewardlab.registry.browse import Entry, entries
from rewardlab.registry.catalogue import repository
from rewardlab.registry.find import PACKAGE
from rewardlab.util.files import write_text

PATH = Path("docs") / "parts.md"

INTRODUCTION = """# Parts

Generated from the files by `make docs`; do not edit it. `rewardlab parts` shows the same, `rewardlab parts NAME` all about one
part. What a setting may be is written beside it; a part named METHOD/PART is in that method's own file.

    from rewardlab import part

    part("credit", "gae", lam=0.9)        # or, since every part is a function: from rewardlab.credit.value import gae

A verifier or another reward is a reward on the command line too: `--reward "exact_match() + 0.1 * length_penalty()"`.
"""


def document() -> str:
    """The text of docs/parts.md."""
    # methods from outside the package (REWARDLAB_METHODS) are not part of this project's document
    own = [entry for entry in entries() if PACKAGE in Path(entry["path"]).parents]
    sections = ["\n".join(_section(kind, group)) for kind, group in groupby(own, key=lambda entry: entry["kind"])]
    return "\n".join([INTRODUCTION, *sections])


def _section(kind: str, group: Iterator[Entry]) -> Iterator[str]:
    yield f"## {kind}\n"
    yield "| name | idea | settings | used by |"
    yield "| --- | --- | --- | --- |"
    for entry in group:
        where = Path(entry["path"]).relative_to(PACKAGE.parents[1]).as_posix()
        settings = "<br>".join(_setting(setting) for setting in entry["settings"])
        cells = (f"[{_text(entry['name'])}](../{where})", _text(entry["about"]), settings, _text(", ".join(entry["used_by"])))
        yield f"| {' | '.join(cells)} |"
    yield ""


def _setting(setting: Entry) -> str:
    written = setting["name"] if setting["required"] else f"{setting['name']}={setting['default']}"
    return f"`{_cell(written)}` {_text(setting['values'])}"


def _cell(text: str) -> str:
    """Code on one line; a pipe ends a cell even inside backticks, and is escaped."""
    return " ".join(text.split()).replace("|", "\\|")


def _text(text: str) -> str:
    """Text on one line without Markdown markup."""
    # the backslash comes first, or it would escape the escapes of the others
    for mark in "\\|<*_`[":
        text = text.replace(mark, f"\\{mark}")
    return " ".join(text.split())


def write() -> Path:
    """Write the document of this checkout."""
    root = repository()
    if root is None:
        raise RewardlabError("docs/parts.md belongs to a checkout, and this rewardlab was installed without one")
    write_text(root / PATH, document())
    return root / PATH


if __name__ == "__main__":
    print(write())
