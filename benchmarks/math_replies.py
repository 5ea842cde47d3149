"""False accepts and false rejects of the verifiers on replies as models write them, by class of what makes them hard to read.

The labelled pairs are those of tests/helpers/labelled_replies.jsonl; the last rows of each half list the pairs that either side
gets wrong.

Where the shared data is, also on what a model of today writes: StrictPRMBench's 16,000 solutions to GSM8K and 15,264 to MATH-500
(those of its problems whose true answers RewardMATH has). Its labels miss numbers with commas, and many of its gold answers are
cut; where it, we and Math-Verify did not agree the replies were read, and tasks/strictprm/ keeps which are right, by their ids.
The rules were written on these replies; on those of UNSEEN, with their own labels, they were not. Seconds are of the processor,
one process a side.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from _math import Triple, by_math_verify, by_rewardlab, errors, math_verify_says
from _sides import Rows, in_own_process, main, row
from _solutions import SETS, adjudicated, solutions

from rewardlab.errors import RewardlabError

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "helpers"))

PEER = "math-verify 0.9.0"


def run() -> Rows:
    """For each class, both kinds of errors, of which there should be none."""
    rows = table(*(in_own_process(__file__, side, {}) for side in ("ours", "peer")))
    return rows + [row for name in SETS if _there(name) for row in on_solutions(name)]


def on_solutions(name: str) -> Rows:
    """Both kinds of errors on models' solutions, and pairs per second of processor time."""
    sides = ("ours_on_solutions", "peer_on_solutions")
    ours, peer = (in_own_process(__file__, side, {"name": name}) for side in sides)
    labels = [right for _, _, _, right in solutions(name)]
    judged = [(Solution(right), a, b) for right, a, b in zip(labels, ours["verdicts"], peer["verdicts"], strict=True)]
    about = {"replies": len(labels), "adjudicated": len(adjudicated(name)), "peer": PEER}
    rate = row(f"solutions to {name}", ours["rate"], peer["rate"], "pairs/s", about)
    return [*_errors(f"solutions to {name}", judged), rate]


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


class Solution(NamedTuple):
    """A reply by its label alone."""

    correct: bool


def _there(name: str) -> bool:
    try:
        return bool(solutions(name))
    except RewardlabError as missing:
        print(f"math-replies: {missing}; left out", file=sys.stderr)
        return False


def ours_on_solutions(*, name: str) -> dict[str, Any]:
    from rewardlab.verifiers.contract import Pair
    from rewardlab.verifiers.math.verifier import math

    def verify(found: list[tuple[str, str, str, bool]]) -> list[bool | None]:
        batches = [found[start : start + 256] for start in range(0, len(found), 256)]
        return [v.correct for batch in batches for v in math().check_all([Pair(*one[:3]) for one in batch])]

    return by_processor(verify, solutions(name))


def peer_on_solutions(*, name: str) -> dict[str, Any]:
    return by_processor(lambda found: [math_verify_says(reply, gold) for reply, gold, *_ in found], solutions(name))


def by_processor(verify: Callable[[list[Any]], list[bool | None]], found: list[Any]) -> dict[str, Any]:
    """Verdicts, and pairs per second of processor time of this process, not counting the first hundred."""
    first, start = verify(found[:100]), time.process_time()
    rest = verify(found[100:])
    return {"verdicts": first + rest, "rate": len(rest) / (time.process_time() - start)}


def pairs() -> list[Triple]:
    from labelled_replies import replies

    return [(pair.response, pair.answer, pair.correct) for pair in replies()]


def ours() -> list[bool | None]:
    return by_rewardlab(pairs())


def peer() -> list[bool | None]:
    return by_math_verify(pairs())


if __name__ == "__main__":
    sides = (ours, peer, ours_on_solutions, peer_on_solutions)
    main(run, {side.__name__: side for side in sides})
