"""Robustness of a reward's calls: results independent of batching and order, and a clean end of every call."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import astuple
from typing import Any

from rewardlab.audit.findings import EXAMPLES, Finding, Trial, example
from rewardlab.audit.process import TargetProcess
from rewardlab.audit.target import RewardResult

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
    scored = [trial for trial in trials if trial.result is not None and trial.result.kind not in ("hang", "crash")]
    if not scored:
        return []
    findings = [
        _compared("repeat", "each", "The same reply does not get the same reward twice", process, scored, until, concurrent)
    ]
    # a reward that differs between equal calls would differ in every comparison below
    if findings[0].failed or concurrent:
        return findings
    findings.append(
        _compared("thread", "thread", "In a thread other than the main one, the reward differs", process, scored, until)
    )
    says = "Replies get other rewards in a batch than one by one"
    together = _compared("batch", "together", says, process, scored, until)
    findings.append(together)
    # the batch equals the single calls, so its reverse may be compared with them too
    if not together.failed:
        says = "The reward of a reply depends on the order of the replies"
        findings.append(_compared("order", "together", says, process, scored[::-1], until))
    else:
        findings.append(_reordered(process, scored, until))
    return findings


def _compared(
    name: str, how: str, says: str, process: TargetProcess, scored: Sequence[Trial], until: float, noisy: bool = False
) -> Finding:
    results = process.ask([trial.row for trial in scored], how, until)
    pairs = [(trial, result) for trial, result in zip(scored, results, strict=True) if result is not None]
    differing = [(trial, result) for trial, result in pairs if trial.result and not same(trial.result, result)]
    severity = "ok" if not differing else "warning" if noisy else "fault"
    finding = Finding("conduct", name, severity, says, len(differing), len(pairs))
    batch = [_row(trial) for trial in scored] if how == "together" else None
    finding.examples = [_example(name, how, trial, result, batch) for trial, result in differing[:EXAMPLES]]
    return finding


def _reordered(process: TargetProcess, scored: Sequence[Trial], until: float) -> Finding:
    """Compare a batch with the same batch in reverse order."""
    rows = [trial.row for trial in scored]
    forward, backward = process.ask(rows, "together", until), process.ask(rows[::-1], "together", until)[::-1]
    pairs = [(t, a, b) for t, a, b in zip(scored, forward, backward, strict=True) if a is not None and b is not None]
    differing = [(t, b) for t, a, b in pairs if not same(a, b)]
    says = "The reward of a reply depends on the order of the replies"
    finding = Finding("conduct", "order", "fault" if differing else "ok", says, len(differing), len(pairs))
    batch = [_row(trial) for trial in scored[::-1]]
    finding.examples = [_example("order", "together", trial, result, batch) for trial, result in differing[:EXAMPLES]]
    return finding


def _example(name: str, how: str, trial: Trial, result: RewardResult, batch: Any) -> dict[str, Any]:
    second_result = {"then": {"came": result.kind, "reward": result.value, "why": result.why}}
    named_trial = Trial("conduct", trial.item, trial.fmt, trial.reply._replace(name=name), trial.level, trial.result)
    return example(named_trial, how, **second_result, **({"among": batch} if batch else {}))


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
    finished = [trial for trial in trials if trial.result is not None]
    findings = []
    for kind, (severity, says) in HEALTH.items():
        failing = [t for t in finished if t.result and t.result.kind == kind and (kind != "none" or _readable(t))]
        examples = list({(t.result.why if t.result else ""): t for t in failing}.values())[:EXAMPLES]
        findings.append(
            Finding("health", kind, severity if failing else "ok", says, len(failing), len(finished), None, _named(examples, kind))
        )
    slow = sorted(
        (t for t in finished if t.result and t.result.seconds > SLOW), key=lambda t: -t.result.seconds if t.result else 0.0
    )
    says = f"A call takes over {SLOW:g} s"
    findings.append(
        Finding("health", "slow", "warning" if slow else "ok", says, len(slow), len(finished), None, _named(slow[:1], "slow"))
    )
    values = [t.result.value for t in finished if t.result and t.result.value is not None]
    silent = 0 if values else len(finished)
    findings.append(Finding("health", "silent", "fault" if silent else "ok", "It never gives a number", silent, len(finished)))
    # a few replies may well deserve the same reward
    constant = len(values) > FEW and max(values) == min(values)
    says = f"Every reply gets the same reward: {values[0]:g}" if constant else "Every reply gets the same reward"
    findings.append(Finding("health", "constant", "fault" if constant else "ok", says, len(values) * constant, len(values)))
    if constant:
        findings[-1].examples = _named(finished[:2], "constant")
    return findings


def _readable(trial: Trial) -> bool:
    return trial.probe != "gold" and trial.level is not None


def _named(trials: Sequence[Trial], name: str) -> list[dict[str, Any]]:
    return [
        example(Trial("health", t.item, t.fmt, t.reply._replace(name=f"{name}: {t.reply.name}"), t.level, t.result)) for t in trials
    ]


def speed(trials: Sequence[Trial]) -> dict[str, float]:
    """Calls per second, and how long single calls take, in seconds; hangs and crashes apart."""
    seconds = [t.result.seconds for t in trials if t.result and t.result.kind not in ("hang", "crash")]
    if len(seconds) < 2:
        return {}
    percentiles = statistics.quantiles(seconds, n=100, method="inclusive")
    total = sum(seconds)
    return {
        "calls": len(seconds), "per_second": len(seconds) / total if total else math.inf,
        "p50": percentiles[49], "p95": percentiles[94], "p99": percentiles[98], "max": max(seconds),
    }  # fmt: skip
