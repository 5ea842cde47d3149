"""Whether a reward's results depend on how it is called, and whether every call ends well."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import astuple
from typing import Any

from .findings import EXAMPLES, Finding, Tried, example
from .process import Served
from .target import Paid

CLOSE = 1e-6
"""Differences that floating point may make when rows are computed together, relative to the values."""
SLOW = 1.0
"""Seconds of a call that are worth a word."""
FEW = 8
"""Replies of which it is no wonder that all are paid alike."""

Call = tuple[str, str, str, Callable[[list[Paid | None]], list[Paid | None]]]


def conduct(served: Served, tries: Sequence[Tried], until: float) -> list[Finding]:
    """Call the reward on the same replies again, in a thread, all at once, and in another order, and compare.

    tries: replies that have been paid, one by one, in the main thread.
    """
    concurrent = served.about["concurrent"] > 1
    known = [tried for tried in tries if tried.paid is not None and tried.paid.kind not in ("hang", "crash")]
    if not known:
        return []
    found = [_compared("repeat", "each", "The same reply is not paid the same twice", served, known, until, concurrent)]
    if found[0].failed or concurrent:
        return found
    found.append(_compared("thread", "thread", "In a thread other than the main one, the reward differs", served, known, until))
    says = "Scored all at once, replies are paid otherwise than one by one"
    together = _compared("batch", "together", says, served, known, until)
    found.append(together)
    if not together.failed:
        says = "The reward of a reply depends on the order of the replies"
        found.append(_compared("order", "together", says, served, known[::-1], until))
    else:
        found.append(_reordered(served, known, until))
    return found


def _compared(name: str, how: str, says: str, served: Served, known: Sequence[Tried], until: float, noisy: bool = False) -> Finding:
    again = served.ask([tried.row for tried in known], how, until)
    pairs = [(tried, paid) for tried, paid in zip(known, again, strict=True) if paid is not None]
    differ = [(tried, paid) for tried, paid in pairs if tried.paid and not same(tried.paid, paid)]
    severity = "ok" if not differ else "warning" if noisy else "fault"
    finding = Finding("conduct", name, severity, says, len(differ), len(pairs))
    among = [_row(tried) for tried in known] if how == "together" else None
    finding.examples = [_example(name, how, tried, paid, among) for tried, paid in differ[:EXAMPLES]]
    return finding


def _reordered(served: Served, known: Sequence[Tried], until: float) -> Finding:
    """A batch against the same batch backwards."""
    rows = [tried.row for tried in known]
    forth, back = served.ask(rows, "together", until), served.ask(rows[::-1], "together", until)[::-1]
    pairs = [(t, a, b) for t, a, b in zip(known, forth, back, strict=True) if a is not None and b is not None]
    differ = [(t, b) for t, a, b in pairs if not same(a, b)]
    says = "The reward of a reply depends on the order of the replies"
    finding = Finding("conduct", "order", "fault" if differ else "ok", says, len(differ), len(pairs))
    among = [_row(tried) for tried in known[::-1]]
    finding.examples = [_example("order", "together", tried, paid, among) for tried, paid in differ[:EXAMPLES]]
    return finding


def _example(name: str, how: str, tried: Tried, paid: Paid, among: Any) -> dict[str, Any]:
    more = {"then": {"came": paid.kind, "reward": paid.value, "why": paid.why}}
    copy = Tried("conduct", tried.item, tried.dress, tried.reply._replace(name=name), tried.level, tried.paid)
    return example(copy, how, **more, **({"among": among} if among else {}))


def _row(tried: Tried) -> list[Any]:
    return list(astuple(tried.row))


def same(a: Paid, b: Paid) -> bool:
    if a.kind != b.kind:
        return False
    return a.value is None or b.value is None or math.isclose(a.value, b.value, rel_tol=CLOSE, abs_tol=CLOSE)


HEALTH = {
    "error": ("fault", "It raises, or returns what is no number"),
    "hang": ("fault", "It hangs"),
    "crash": ("fault", "It brings its process down"),
    "nan": ("fault", "It returns NaN"),
    "infinite": ("fault", "It returns an infinite number"),
    "none": ("warning", "It gives no verdict (None) on a reply, though the gold answer can be read"),
}


def health(tries: Sequence[Tried]) -> list[Finding]:
    """Whether every call gave a finite number, in time, and not always the same one."""
    paid = [tried for tried in tries if tried.paid is not None]
    found = []
    for kind, (severity, says) in HEALTH.items():
        bad = [t for t in paid if t.paid and t.paid.kind == kind and (kind != "none" or _readable(t))]
        shown = list({(t.paid.why if t.paid else ""): t for t in bad}.values())[:EXAMPLES]
        found.append(Finding("health", kind, severity if bad else "ok", says, len(bad), len(paid), None, _named(shown, kind)))
    slow = sorted((t for t in paid if t.paid and t.paid.seconds > SLOW), key=lambda t: -t.paid.seconds if t.paid else 0.0)
    says = f"A call takes over {SLOW:g} s"
    found.append(Finding("health", "slow", "warning" if slow else "ok", says, len(slow), len(paid), None, _named(slow[:1], "slow")))
    values = [t.paid.value for t in paid if t.paid and t.paid.value is not None]
    silent = 0 if values else len(paid)
    found.append(Finding("health", "silent", "fault" if silent else "ok", "It never gives a number", silent, len(paid)))
    constant = len(values) > FEW and max(values) == min(values)
    says = f"Every reply is paid the same: {values[0]:g}" if constant else "Every reply is paid the same"
    found.append(Finding("health", "constant", "fault" if constant else "ok", says, len(values) * constant, len(values)))
    if constant:
        found[-1].examples = _named(paid[:2], "constant")
    return found


def _readable(tried: Tried) -> bool:
    return tried.probe != "gold" and tried.level is not None


def _named(tries: Sequence[Tried], name: str) -> list[dict[str, Any]]:
    return [
        example(Tried("health", t.item, t.dress, t.reply._replace(name=f"{name}: {t.reply.name}"), t.level, t.paid)) for t in tries
    ]


def speed(tries: Sequence[Tried]) -> dict[str, float]:
    """Calls per second, and how long single calls take, in seconds; hangs and crashes apart."""
    ended = [t.paid.seconds for t in tries if t.paid and t.paid.kind not in ("hang", "crash")]
    if len(ended) < 2:
        return {}
    cuts = statistics.quantiles(ended, n=100, method="inclusive")
    total = sum(ended)
    return {
        "calls": len(ended), "per_second": len(ended) / total if total else math.inf,
        "p50": cuts[49], "p95": cuts[94], "p99": cuts[98], "max": max(ended),
    }  # fmt: skip
