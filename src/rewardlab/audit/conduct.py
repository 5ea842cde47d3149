"""Whether a reward's results depend on how it is called, and whether every call ends well."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import astuple
from typing import Any

from .findings import EXAMPLES, Finding, Trial, example
from .process import TargetProcess
from .target import RewardResult

CLOSE = 1e-6
"""Differences that floating point may make when rows are computed together, relative to the values."""
SLOW = 1.0
"""Seconds of a call that count as slow."""
FEW = 8
"""Up to so many replies, equal rewards are not reported."""

Call = tuple[str, str, str, Callable[[list[RewardResult | None]], list[RewardResult | None]]]


def conduct(process: TargetProcess, trials: Sequence[Trial], until: float) -> list[Finding]:
    """Call the reward on the same replies again, in a thread, all at once, and in another order, and compare.

    trials: replies that have been scored, one by one, in the main thread.
    """
    concurrent = process.about["concurrent"] > 1
    known = [trial for trial in trials if trial.result is not None and trial.result.kind not in ("hang", "crash")]
    if not known:
        return []
    findings = [_compared("repeat", "each", "The same reply does not get the same reward twice", process, known, until, concurrent)]
    if findings[0].failed or concurrent:
        return findings
    findings.append(_compared("thread", "thread", "In a thread other than the main one, the reward differs", process, known, until))
    says = "Replies get other rewards in a batch than one by one"
    together = _compared("batch", "together", says, process, known, until)
    findings.append(together)
    if not together.failed:
        says = "The reward of a reply depends on the order of the replies"
        findings.append(_compared("order", "together", says, process, known[::-1], until))
    else:
        findings.append(_reordered(process, known, until))
    return findings


def _compared(
    name: str, how: str, says: str, process: TargetProcess, known: Sequence[Trial], until: float, noisy: bool = False
) -> Finding:
    again = process.ask([trial.row for trial in known], how, until)
    pairs = [(trial, result) for trial, result in zip(known, again, strict=True) if result is not None]
    differ = [(trial, result) for trial, result in pairs if trial.result and not same(trial.result, result)]
    severity = "ok" if not differ else "warning" if noisy else "fault"
    finding = Finding("conduct", name, severity, says, len(differ), len(pairs))
    among = [_row(trial) for trial in known] if how == "together" else None
    finding.examples = [_example(name, how, trial, result, among) for trial, result in differ[:EXAMPLES]]
    return finding


def _reordered(process: TargetProcess, known: Sequence[Trial], until: float) -> Finding:
    """Compare a batch with the same batch in reverse order."""
    rows = [trial.row for trial in known]
    forth, back = process.ask(rows, "together", until), process.ask(rows[::-1], "together", until)[::-1]
    pairs = [(t, a, b) for t, a, b in zip(known, forth, back, strict=True) if a is not None and b is not None]
    differ = [(t, b) for t, a, b in pairs if not same(a, b)]
    says = "The reward of a reply depends on the order of the replies"
    finding = Finding("conduct", "order", "fault" if differ else "ok", says, len(differ), len(pairs))
    among = [_row(trial) for trial in known[::-1]]
    finding.examples = [_example("order", "together", trial, result, among) for trial, result in differ[:EXAMPLES]]
    return finding


def _example(name: str, how: str, trial: Trial, result: RewardResult, among: Any) -> dict[str, Any]:
    more = {"then": {"came": result.kind, "reward": result.value, "why": result.why}}
    copy = Trial("conduct", trial.item, trial.fmt, trial.reply._replace(name=name), trial.level, trial.result)
    return example(copy, how, **more, **({"among": among} if among else {}))


def _row(trial: Trial) -> list[Any]:
    return list(astuple(trial.row))


def same(a: RewardResult, b: RewardResult) -> bool:
    if a.kind != b.kind:
        return False
    return a.value is None or b.value is None or math.isclose(a.value, b.value, rel_tol=CLOSE, abs_tol=CLOSE)


HEALTH = {
    "error": ("fault", "It raises, or returns something that is not a number"),
    "hang": ("fault", "It hangs"),
    "crash": ("fault", "It crashes its process"),
    "nan": ("fault", "It returns NaN"),
    "infinite": ("fault", "It returns an infinite number"),
    "none": ("warning", "It gives no verdict (None) on a reply, though the gold answer can be read"),
}


def health(trials: Sequence[Trial]) -> list[Finding]:
    """Whether every call gave a finite number, in time, and not always the same one."""
    done = [trial for trial in trials if trial.result is not None]
    findings = []
    for kind, (severity, says) in HEALTH.items():
        bad = [t for t in done if t.result and t.result.kind == kind and (kind != "none" or _readable(t))]
        shown = list({(t.result.why if t.result else ""): t for t in bad}.values())[:EXAMPLES]
        findings.append(Finding("health", kind, severity if bad else "ok", says, len(bad), len(done), None, _named(shown, kind)))
    slow = sorted((t for t in done if t.result and t.result.seconds > SLOW), key=lambda t: -t.result.seconds if t.result else 0.0)
    says = f"A call takes over {SLOW:g} s"
    findings.append(
        Finding("health", "slow", "warning" if slow else "ok", says, len(slow), len(done), None, _named(slow[:1], "slow"))
    )
    values = [t.result.value for t in done if t.result and t.result.value is not None]
    silent = 0 if values else len(done)
    findings.append(Finding("health", "silent", "fault" if silent else "ok", "It never gives a number", silent, len(done)))
    constant = len(values) > FEW and max(values) == min(values)
    says = f"Every reply gets the same reward: {values[0]:g}" if constant else "Every reply gets the same reward"
    findings.append(Finding("health", "constant", "fault" if constant else "ok", says, len(values) * constant, len(values)))
    if constant:
        findings[-1].examples = _named(done[:2], "constant")
    return findings


def _readable(trial: Trial) -> bool:
    return trial.probe != "gold" and trial.level is not None


def _named(trials: Sequence[Trial], name: str) -> list[dict[str, Any]]:
    return [
        example(Trial("health", t.item, t.fmt, t.reply._replace(name=f"{name}: {t.reply.name}"), t.level, t.result)) for t in trials
    ]


def speed(trials: Sequence[Trial]) -> dict[str, float]:
    """Calls per second, and how long single calls take, in seconds; hangs and crashes apart."""
    ended = [t.result.seconds for t in trials if t.result and t.result.kind not in ("hang", "crash")]
    if len(ended) < 2:
        return {}
    cuts = statistics.quantiles(ended, n=100, method="inclusive")
    total = sum(ended)
    return {
        "calls": len(ended), "per_second": len(ended) / total if total else math.inf,
        "p50": cuts[49], "p95": cuts[94], "p99": cuts[98], "max": max(ended),
    }  # fmt: skip
