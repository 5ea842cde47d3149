"""The verifier of web pages: whether they run, how they look, and whether their controls respond."""

from __future__ import annotations

import base64
import json
import os
import threading
from collections.abc import Mapping
from typing import Any

from rewardlab.errors import RewardlabError
from rewardlab.processes.pool import Done, Failed, Workers
from rewardlab.processes.supervisor import per_process
from rewardlab.settings.domain import NonNegativeInt, PositiveFloat
from rewardlab.text.answers import after_thinking
from rewardlab.text.blocks import last_block
from rewardlab.verifiers.contract import Pair, Verdict, no_verdict, right, verifier, wrong

from . import browser, looks

PARTS = ("runs", "looks", "responds", *looks.NAMES[:-1])
NOTHING = dict.fromkeys(PARTS, 0.0)
KEYS = {"shows", "controls", "theme"}
BROWSERS = 8
"""At most; each takes some 300 MB."""
KEPT = 4096
_kept: dict[str, dict[str, Any]] = {}
_lock = threading.Lock()


@verifier(over="pairs")
def web_page(
    pairs: list[Pair], *, controls: NonNegativeInt = 3, doctype: bool = False, seconds: PositiveFloat = 10.0
) -> list[Verdict]:  # fmt: skip
    """Right if the page runs, shows what was asked for, is readable and orderly throughout, and all its controls respond.

    The page is the reply's last ```html block, else the whole reply; it is shown in Chromium, which must be installed, without a
    network. The answer says what was asked for, {"shows": [texts], "controls": [labels], "theme": "dark" or "light"}, or is None.
    controls: how many are used, those that were asked for first; 0: none.  doctype: <!doctype html> and a title must be there.
    seconds: that a page may take, once; one that takes longer is wrong.

    parts: runs, 1 without a fault of its markup, an error of its scripts, or going elsewhere; if it runs, looks (`looks.py`), and
    asked, readable, apart, within, aligned, of which that is made; responds, the controls that do, divided by `controls`.
    """
    asked = [_asked(pair.answer) for pair in pairs]
    calls = [
        None if want is None else (stated_page(pair.response), want, controls, doctype, float(seconds), False)
        for pair, want in zip(pairs, asked, strict=True)
    ]
    if lacks := browser.missing():
        return [no_verdict(lacks) for _ in pairs]
    found = _audited([call for call in calls if call])
    return [
        no_verdict('the answer is neither None nor {"shows", "controls", "theme"}') if call is None
        else _verdict(call[0], found[_key(call)], call[1], controls)
        for call in calls
    ]  # fmt: skip


def stated_page(response: str) -> str:
    """The page of a reply, after any thinking."""
    text = after_thinking(response)
    block = last_block(text, "html", "")
    return (text if block is None else block).strip()


def page_picture(reply: str, seconds: float = 10.0) -> bytes | None:
    """What the page of a reply looks like, 800 pixels wide, as PNG: for a judge of your own. None if it does not run.

    Raises RewardlabError where there is no browser.
    """
    (found,) = _pool(seconds).map([(stated_page(reply), {}, 0, False, float(seconds), True)])
    if isinstance(found, Failed):
        raise RewardlabError(found.why)
    picture = found.value.get("picture")
    return base64.b64decode(picture) if picture else None


def _asked(answer: Any) -> dict[str, Any] | None:
    """What was asked for; None where it cannot be read."""
    if isinstance(answer, str):
        try:
            answer = json.loads(answer)
        except ValueError:
            return None
    if answer is None:
        return {}
    if not isinstance(answer, Mapping) or not answer.keys() <= KEYS or answer.get("theme") not in (None, "dark", "light"):
        return None
    lists = [answer.get(key, []) for key in ("shows", "controls")]
    return dict(answer) if all(isinstance(x, list) and all(isinstance(y, str) for y in x) for x in lists) else None


def _key(call: tuple[Any, ...]) -> str:
    return json.dumps(call, sort_keys=True)


@per_process
def _pool(seconds: float) -> Workers:
    # twice, each time in a browser that may have to be started; -1: a browser reserves far more addresses than it uses
    limit = 2 * (seconds + browser.STARTING)
    cores = len(os.sched_getaffinity(0))
    return Workers("rewardlab.verifiers.pages.audit:audit", seconds=limit, processes=min(cores, BROWSERS), memory=-1)


def _audited(calls: list[tuple[Any, ...]]) -> dict[str, dict[str, Any]]:
    """What is known of each page, by `_key`. The same page is shown once, since several rewards ask about it."""
    wanted = {_key(call): call for call in calls}
    with _lock:
        found = {key: _kept[key] for key in wanted if key in _kept}
    new = [key for key in wanted if key not in found]
    if new:
        try:
            results = _pool(wanted[new[0]][4]).map([wanted[key] for key in new])
        except RewardlabError as problem:
            results = [Failed("error", f"RewardlabError: {problem}") for _ in new]
        found |= {key: _told(result) for key, result in zip(new, results, strict=True)}
        with _lock:
            _kept.update({key: found[key] for key in new if "failed" not in found[key]})
            for old in list(_kept)[: max(0, len(_kept) - KEPT)]:
                del _kept[old]
    return found


def _told(result: Done | Failed) -> dict[str, Any]:
    if isinstance(result, Done):
        return result.value
    if result.kind == "error" and result.why.startswith("RewardlabError"):
        return {"failed": result.why.removeprefix("RewardlabError: ")}
    # an error of ours that a page brings about must not spare it a verdict
    return {"faults": [f"cannot be judged: {result.why}"]}


def _verdict(page: str, found: Mapping[str, Any], asked: Mapping[str, Any], controls: int) -> Verdict:
    if "failed" in found:
        return no_verdict(found["failed"])
    if found["faults"]:
        return wrong(f"the page {found['faults'][0]}", page[:500], parts=NOTHING)
    used = found["controls"]
    dead = [label or "without a label" for label, responds in used if not responds]
    share = (len(used) - len(dead)) / controls if controls else 0.0
    parts = {"runs": 1.0, "responds": share, **found["looks"]}
    poor = [name for name in looks.NAMES[:-1] if parts[name] < 1]
    # a control that was asked for and is there may lie where none is used
    unused = [label for label in asked.get("controls", [])[:controls] if label not in [name for name, _ in used]]
    if not (poor or dead or unused):
        return right(page[:500], "runs, looks as asked, and responds", parts=parts)
    why = [f"{', '.join(poor)} below 1"] if poor else []
    why += [f"does not respond: {', '.join((dead + unused)[:5])}"] if dead or unused else []
    return wrong("; ".join(why), page[:500], parts=parts)
