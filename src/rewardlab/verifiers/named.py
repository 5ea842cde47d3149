"""A verifier for data of several domains: each row names its own."""

from __future__ import annotations

import importlib
import re
from collections import defaultdict
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from rewardlab.errors import RewardlabError

from .contract import Pair, Verdict, Verifier, no_verdict, verifier

_DEFINED = re.compile(r"^@verifier(?:\([^\n]*\))?\ndef (\w+)\(", re.MULTILINE)


@verifier(over="pairs")
def named_verifier(pairs: list[Pair], *, column: str = "verifier", otherwise: str = "final_answer") -> list[Verdict]:
    """The verdict of the verifier that the row names: `math`, `code`, `same_set`, or {"name": "same_set", "measure": "jaccard"}.

    column: of the names, a text, or an object with settings beside the name.  otherwise: for rows that name none. A name that is
    not a verifier's, or settings that it does not take, give no verdict.
    """
    # rows of one verifier together: some judge a whole batch at once, in processes of their own
    alike: dict[str, list[int]] = defaultdict(list)
    known: dict[str, Verifier | str] = {}
    for i, pair in enumerate(pairs):
        wanted = pair.meta.get(column) or otherwise
        alike[repr(wanted)].append(i)
        if repr(wanted) not in known:
            known[repr(wanted)] = _load(wanted)
    verdicts: dict[int, Verdict] = {}
    for key, rows in alike.items():
        judge = known[key]
        found = [no_verdict(judge)] * len(rows) if isinstance(judge, str) else judge.check_all([pairs[i] for i in rows])
        verdicts |= dict(zip(rows, found, strict=True))
    return [verdicts[i] for i in range(len(pairs))]


def _load(wanted: Any) -> Verifier | str:
    """The verifier that a row names; or why there is none."""
    settings = dict(wanted) if isinstance(wanted, Mapping) else {"name": wanted}
    name = settings.pop("name", None)
    # data may say anything: only the name of a verifier of this folder is looked up, never a module
    if not isinstance(name, str) or name not in _modules():
        return f"{str(name)[:60]!r} is not the name of a verifier that rows can name"
    try:
        return getattr(importlib.import_module(_modules()[name]), name)(**settings)
    except (RewardlabError, TypeError, ValueError, ImportError) as problem:
        return f"the verifier {name} cannot be made: {str(problem)[:200]}"


@cache
def _modules() -> dict[str, str]:
    """The module of each verifier of this folder, by a search in the text: importing all of them would take seconds."""
    here = Path(__file__).parent
    return {
        name: ".".join(("rewardlab.verifiers", *path.relative_to(here).with_suffix("").parts))
        for path in sorted(here.rglob("*.py"))
        for name in _DEFINED.findall(path.read_text("utf-8"))
        # it would ask itself for ever
        if name != "named_verifier"
    }
