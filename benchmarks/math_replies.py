"""False accepts and false rejects of the verifiers on replies as models write them, by class of what makes them hard to read.

The labelled pairs are those of tests/helpers/labelled_replies.jsonl; the last rows of each half list the pairs that either side
gets wrong.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from _math import Triple, by_math_verify, by_rewardlab, errors
from _sides import Rows, in_own_process, main

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "helpers"))

PEER = "math-verify 0.9.0"


def run() -> Rows:
    """For each class, both kinds of errors, of which there should be none."""
    return table(*(in_own_process(__file__, side, {}) for side in ("ours", "peer")))


def table(ours: list[bool | None], peer: list[bool | None]) -> Rows:
    from labelled_replies import replies

    judged = list(zip(replies(), ours, peer, strict=True))
    rows: Rows = []
    for held_out, prefix in ((False, ""), (True, "held out: ")):
        part = [one for one in judged if one[0].held_out == held_out]
        for kind in dict.fromkeys(pair.kind for pair, _, _ in part):
            rows += _errors(f"{prefix}{kind}", [one for one in part if one[0].kind == kind])
        mistaken = [{**pair._asdict(), "ours": a, "peer": b} for pair, a, b in part if not a == b == pair.correct]
        rows += _errors(f"{prefix}all classes", part, mistaken=mistaken)
    return rows


def _errors(name: str, judged: list[tuple[Any, bool | None, bool | None]], **about: Any) -> Rows:
    """Two rows: how many wrong replies each side accepts, and how many right ones it refuses."""
    labels = [pair.correct for pair, _, _ in judged]
    said, peer_said = (errors(verdicts, labels) for verdicts in ([a for _, a, _ in judged], [b for _, _, b in judged]))
    about |= {"our_no_verdict": said["no_verdict"], "peer_no_verdict": peer_said["no_verdict"], "peer": PEER}
    return [
        {
            "name": name, "ratio": None, "ours": said[error], "peer": peer_said[error],
            "unit": f"{error.replace('_', ' ')} of {sum(label is right for label in labels)}", "settings": about,
        }
        for error, right in (("false_accepts", False), ("false_rejects", True))
    ]  # fmt: skip


def pairs() -> list[Triple]:
    from labelled_replies import replies

    return [(pair.response, pair.answer, pair.correct) for pair in replies()]


def ours() -> list[bool | None]:
    return by_rewardlab(pairs())


def peer() -> list[bool | None]:
    return by_math_verify(pairs())


if __name__ == "__main__":
    main(run, {"ours": ours, "peer": peer})
