"""What says which replies are better: the contract of raters."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from rewardlab.errors import Unusable, reason_of
from rewardlab.scoreboard.items import Item, Verdict

if TYPE_CHECKING:
    from rewardlab.scoreboard.benchmark import Benchmark


UNSEEN = "cannot see images"


class Rater:
    """name: as the user wrote it, and as tables show it.  asks: what it can be asked about: "replies", "steps".

    sees: whether it is shown the images of a prompt.  blind: whether one that is not is asked all the same, about the text alone: a
    baseline that tells what can be known without looking.
    places: whether its verdict may depend on which reply is shown first.  scale: whether its scores are log-odds, so that
    sigmoid(difference) is a chance.  writes: whether it is a judge that writes (`Verdict.judged`).
    """

    asks: tuple[str, ...] = ("replies",)
    places: bool = False
    scale: bool = False
    sees: bool = False
    writes: ClassVar[bool] = False
    blind: ClassVar[bool] = False

    def __init__(self, name: str):
        self.name = name

    def fingerprint(self) -> str:
        """A text that changes whenever its verdicts may: they are kept under it."""
        raise NotImplementedError

    def reads(self, item: Item) -> str:
        """What it reads of an item besides its prompt, replies, steps and answer: verdicts are kept under it too."""
        return ""

    def judge(self, items: Sequence[Item], benchmark: Benchmark) -> list[Verdict]:
        """A verdict on each item. Where it raises, the items are asked one by one, and that which fails has no verdict; Unusable
        says that no other would fare better."""
        raise NotImplementedError

    def cost(self) -> dict[str, float]:
        """What it has asked of a served model so far: requests, cached, tokens read and written, cost in money where prices are
        told."""
        return {}


def rated(rater: Any, items: Sequence[Item], benchmark: Benchmark) -> list[Verdict]:
    """A rater's verdict on each item; none where there are images that it would not see."""
    asked = getattr(rater, "sees", False) or getattr(rater, "blind", False)
    shown = [i for i, item in enumerate(items) if asked or not item.pictures]
    known = dict(zip(shown, rater.judge([items[i] for i in shown], benchmark) if shown else (), strict=True))
    return [known.get(i, Verdict(why=UNSEEN)) for i in range(len(items))]


def rated_singly(rater: Any, items: Sequence[Item], benchmark: Benchmark) -> list[Verdict]:
    """As `rated`, but an item on which the rater raises has no verdict, with the reason; the others keep theirs.

    Items that were asked together are asked again by halves. Raises Unusable where no other item would fare better.
    """
    try:
        return rated(rater, items, benchmark)
    except Unusable:
        raise
    except Exception as problem:
        if len(items) < 2:
            return [Verdict(why=reason_of(problem), failed=True) for _ in items]
    half = len(items) // 2
    return [*rated_singly(rater, items[:half], benchmark), *rated_singly(rater, items[half:], benchmark)]


def verdicts(
    items: Sequence[Item], scores: Sequence[float | None], why: Sequence[str] = (), cut: Sequence[int] = (),
    tokens: Sequence[int] = (), failed: Sequence[bool] = (),
) -> list[Verdict]:  # fmt: skip
    """Numbers of all replies, item by item, as a verdict on each item. What is not finite is no verdict, and a failure."""
    found, at = [], 0
    for item in items:
        part = slice(at, at + len(item.replies))
        wild = [f"the score of reply {k} is {s}" for k, s in enumerate(scores[part], 1) if s is not None and not math.isfinite(s)]
        found.append(
            Verdict(
                tuple(None if s is None or not math.isfinite(s) else float(s) for s in scores[part]),
                why=next(filter(None, (*why[part], *wild)), ""), cut=sum(cut[part]), tokens=sum(tokens[part]),
                failed=bool(wild) or any(failed[part]),
            )
        )  # fmt: skip
        at += len(item.replies)
    return found
