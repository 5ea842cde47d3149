"""Two verifiers of mathematical answers on the same pairs, and on one core: rewardlab's and Math-Verify 0.9.0."""

from __future__ import annotations

import os
import statistics
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from _sides import Rows, in_own_process, row, timed

Triple = tuple[str, str, bool]
"""A reply, the gold answer, whether it is right."""


def compared(name: str, script: str, about: dict[str, Any], **settings: Any) -> Rows:
    """Throughput and errors of both sides, and how often they agree."""
    ours, peer = (in_own_process(script, side, settings) for side in ("ours", "peer"))
    labels = ours["labels"]
    same = [a == b for a, b in zip(ours["verdicts"], peer["verdicts"], strict=True)]
    about = about | settings | {
        "pairs": len(labels), "right": sum(labels), "cores": 1, "agreement": round(statistics.mean(same), 4),
        "our_errors": errors(ours["verdicts"], labels), "peer_errors": errors(peer["verdicts"], labels),
        "peer": "math-verify 0.9.0",
    }  # fmt: skip
    return [row(name, ours["rate"], peer["rate"], "pairs/s", about)]


def errors(verdicts: Sequence[bool | None], labels: Sequence[bool]) -> dict[str, int]:
    """False accepts, false rejects, and pairs without verdict."""
    return {
        "false_accepts": sum(v is True and not label for v, label in zip(verdicts, labels, strict=True)),
        "false_rejects": sum(v is False and label for v, label in zip(verdicts, labels, strict=True)),
        "no_verdict": sum(v is None for v in verdicts),
    }


def measured(verify: Callable[[list[Triple]], list[bool | None]], pairs: list[Triple]) -> dict[str, Any]:
    """Throughput on one core, not counting the first tenth (warm-up), and the verdicts."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    first = verify(pairs[: len(pairs) // 10])
    seconds, rest = timed(lambda: verify(pairs[len(pairs) // 10 :]))
    return {"rate": len(rest) / seconds, "verdicts": [*first, *rest], "labels": [right for _, _, right in pairs]}


def by_rewardlab(pairs: list[Triple]) -> list[bool | None]:
    """In batches, like the replies of a training step."""
    from rewardlab.verifiers.math.verifier import math

    found: list[bool | None] = []
    for start in range(0, len(pairs), 256):
        batch = [(reply, answer) for reply, answer, _ in pairs[start : start + 256]]
        found += [verdict.correct for verdict in math().check_all(batch)]
    return found


def by_math_verify(pairs: list[Triple]) -> list[bool | None]:
    """Math-Verify without its slow time limits; boxed answers first, and letters as choices if the gold answer is one."""
    return [math_verify_says(reply, answer) for reply, answer, _ in pairs]


def by_math_verify_within(pairs: list[Triple], seconds: float) -> list[bool | None]:
    """The same under a hard time limit, since it computes towers of powers; None if it does not finish."""
    from rewardlab.processes.pool import Done, Workers

    os.environ["PYTHONPATH"] = str(Path(__file__).parent)
    results = Workers("_math:math_verify_says", seconds=seconds).map([(reply, answer) for reply, answer, _ in pairs])
    return [result.value if isinstance(result, Done) else None for result in results]


def math_verify_says(reply: str, answer: str) -> bool | None:
    import logging

    from math_verify import ExprExtractionConfig, LatexExtractionConfig, StringExtractionConfig, parse, verify

    logging.disable(logging.CRITICAL)
    config: list[Any] = [LatexExtractionConfig(boxed_match_priority=0), ExprExtractionConfig()]
    gold_text = answer.rpartition("####")[2].strip()
    if gold_text.strip("()") in ("A", "B", "C", "D"):
        config, gold_text = [StringExtractionConfig(), *config], gold_text.strip("()")
    try:
        gold = parse(gold_text, config, parsing_timeout=None) if gold_text.strip("()") in "ABCD" else None
        gold = gold or parse(f"${gold_text}$", config, parsing_timeout=None)
        return bool(verify(gold, parse(reply, config, parsing_timeout=None), timeout_seconds=None))
    except Exception:
        return None
