"""What the guide says of engines: which of a section's methods also run in TRL, or as a recipe of verl."""

from __future__ import annotations

import re
from collections.abc import Iterator

from rewardlab import registry
from rewardlab.api.engine_support import carried
from rewardlab.comparisons.league import League

NAMED = re.compile(r"`(?:rewardlab train )?([a-z_][a-z_0-9]*)")


def engines(found: League, chapter: str) -> str:
    """Where the methods of a league and of its chapter's tables run beside here, as a paragraph; "" where nothing is trained."""
    if not found.learns:
        return ""
    known = {method: carried(method) for method in methods_of(found, chapter)}
    by_trl, by_verl = ([method for method in known if not known[method][engine]] for engine in ("TRL", "verl"))
    here = [method for method in known if method not in by_trl]
    if not (by_trl or by_verl):
        return "**Engines.** All of these train here; neither TRL nor verl carries them."
    alone = f"; {named(here)} train{'' if len(here) > 1 else 's'} here alone" if here else ""
    verl = f"`rewardlab export-recipe METHOD --engine verl` writes {named(by_verl)}" if by_verl else "verl carries none of them"
    return (
        f"**Engines.** `--engine trl` carries {named(by_trl)}{alone}. {verl} ([why not the others](ENGINES.md#methods-by-engine))."
    )


def methods_of(found: League, chapter: str) -> list[str]:
    """The methods of its members, then those in the tables of a chapter, each once."""
    return [method for method in dict.fromkeys(_mentioned(found, chapter)) if method in registry.methods()]


def _mentioned(found: League, chapter: str) -> Iterator[str]:
    for member in found.members:
        yield from member.stack.split("+")
    for line in chapter.splitlines():
        if line.startswith("|"):
            yield from NAMED.findall(line)


def named(methods: list[str]) -> str:
    return ", ".join(f"`{method}`" for method in methods)
