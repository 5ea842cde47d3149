"""A verifier for data of several domains: each row names its own."""

from __future__ import annotations

import importlib
import re
from collections import defaultdict
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from rewardlab.clients.endpoint import endpoint_of, is_served
from rewardlab.errors import RewardlabError

from .contract import Pair, Verdict, Verifier, no_verdict, verifier

JUDGE = "judged_answer"
_DEFINED = re.compile(r"^@verifier(?:\([^\n]*\))?\ndef (\w+)\(", re.MULTILINE)


@verifier(over="pairs")
def named_verifier(
    pairs: list[Pair], *, column: str = "verifier", otherwise: str = "final_answer", judge: str = ""
) -> list[Verdict]:  # fmt: skip
    """The verdict of the verifier that the row names: `math`, `code`, `same_set`, or {"name": "same_set", "measure": "jaccard"}.

    column: of the names, a text, or an object with settings beside the name.  otherwise: for rows that name none.  judge: the
    served model, openai:URL#NAME, of rows that name `judged_answer`, or that model: a row alone does not decide who is asked, and
    sent a key. A name that is not a verifier's, or settings that it does not take, give no verdict.
    """
    # rows of one verifier together: some judge a whole batch at once, in processes of their own
    alike: dict[str, list[int]] = defaultdict(list)
    known: dict[str, Verifier | str] = {}
    for i, pair in enumerate(pairs):
        wanted = pair.meta.get(column) or otherwise
        alike[repr(wanted)].append(i)
        if repr(wanted) not in known:
            known[repr(wanted)] = _load(wanted, judge)
    verdicts: dict[int, Verdict] = {}
    for key, rows in alike.items():
        named = known[key]
        found = [no_verdict(named)] * len(rows) if isinstance(named, str) else named.check_all([pairs[i] for i in rows])
        verdicts |= dict(zip(rows, found, strict=True))
    return [verdicts[i] for i in range(len(pairs))]


def _load(wanted: Any, judge: str) -> Verifier | str:
    """The verifier that a row names; or why there is none."""
    settings = dict(wanted) if isinstance(wanted, Mapping) else {"name": wanted}
    if is_served(settings.get("name")):
        settings = {"model": settings["name"], **settings, "name": JUDGE}
    name = settings.pop("name", None)
    if name == JUDGE:
        if not judge:
            return "the row wants a judge, and none is given: judge=openai:URL#NAME"
        if not _same_model(settings.pop("model", judge), judge):
            return f"the row wants another judge than {judge}"
        settings["model"] = judge
    # data may say anything: only the name of a verifier of this folder is looked up, never a module
    if not isinstance(name, str) or name not in _modules():
        return f"{str(name)[:60]!r} is not the name of a verifier that rows can name"
    try:
        return getattr(importlib.import_module(_modules()[name]), name)(**settings)
    except (RewardlabError, TypeError, ValueError, ImportError) as problem:
        return f"the verifier {name} cannot be made: {str(problem)[:200]}"


def _same_model(wanted: Any, judge: str) -> bool:
    try:
        ours, theirs = endpoint_of(judge), endpoint_of(wanted) if is_served(wanted) else None
    except RewardlabError:
        return False
    return theirs is not None and (theirs.url, theirs.model) == (ours.url, ours.model)


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
