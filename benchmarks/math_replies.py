"""False accepts and false rejects of the verifiers on replies as models write them, by class of what makes them hard to read.

The labelled pairs are those of tests/helpers/math_replies.jsonl. `python benchmarks/math_replies.py --json` keeps both verdicts on
every pair that either side gets wrong.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from _math import Triple, by_math_verify, by_rewardlab, errors, measured
from _sides import Rows, in_own_process, main, row

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "helpers"))

PEER = "math-verify 0.9.0"


def run() -> Rows:
    """The throughput on all pairs; then, for each class, both kinds of errors, of which there should be none."""
    from math_replies import replies

    labelled = replies()
    ours, peer = (in_own_process(__file__, side, {}) for side in ("ours", "peer"))
    mistaken = [
        {**pair._asdict(), "ours": a, "peer": b}
        for pair, a, b in zip(labelled, ours["verdicts"], peer["verdicts"], strict=True)
        if (a, b) != (pair.correct, pair.correct)
    ]
    about = {"pairs": len(labelled), "cores": 1, "peer": PEER, "mistaken": mistaken}
    rows = [row("math-replies", ours["rate"], peer["rate"], "pairs/s", about)]
    for held_out in (False, True):
        part = [i for i, pair in enumerate(labelled) if pair.held_out == held_out]
        for kind in dict.fromkeys(labelled[i].kind for i in part):
            rows += _errors(f"{'held out: ' * held_out}{kind}", [i for i in part if labelled[i].kind == kind], ours, peer)
        rows += _errors(f"{'held out: ' * held_out}all classes", part, ours, peer) if part else []
    return rows


def _errors(name: str, chosen: list[int], ours: dict[str, Any], peer: dict[str, Any]) -> Rows:
    """Two rows: how many wrong replies each side accepts, and how many right ones it refuses or gives no verdict."""
    labels = [ours["labels"][i] for i in chosen]
    said, peer_said = (errors([side["verdicts"][i] for i in chosen], labels) for side in (ours, peer))
    return [
        {
            "name": name, "ratio": None, "ours": said[error], "peer": peer_said[error],
            "unit": f"{error.replace('_', ' ')} of {sum(label is right for label in labels)}",
            "settings": {"our_no_verdict": said["no_verdict"], "peer_no_verdict": peer_said["no_verdict"], "peer": PEER},
        }
        for error, right in (("false_accepts", False), ("false_rejects", True))
    ]  # fmt: skip


def pairs() -> list[Triple]:
    from math_replies import replies

    return [(pair.response, pair.answer, pair.correct) for pair in replies()]


def ours() -> dict[str, Any]:
    return measured(by_rewardlab, pairs())


def peer() -> dict[str, Any]:
    return measured(by_math_verify, pairs())


if __name__ == "__main__":
    main(run, {"ours": ours, "peer": peer})
