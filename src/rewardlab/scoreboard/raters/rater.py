"""What says which replies are better: the contract of raters."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from rewardlab.scoreboard.items import Item, Verdict

if TYPE_CHECKING:
    from rewardlab.scoreboard.benchmark import Benchmark


UNSEEN = "cannot see images"


class Rater:
    """name: as the user wrote it, and as tables show it.  asks: what it can be asked about: "replies", "steps".

    sees: whether it is shown the images of a prompt.  blind: whether one that is not is asked all the same, about the text alone: a
    baseline that tells what can be known without looking.
    places: whether its verdict may depend on which reply is shown first.  scale: whether its scores are log-odds, so that
    sigmoid(difference) is a chance.
    """

    asks: tuple[str, ...] = ("replies",)
    places: bool = False
    scale: bool = False
    sees: bool = False
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
        """A verdict on each item."""
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


def verdicts(
    items: Sequence[Item], scores: Sequence[float | None], why: Sequence[str] = (), cut: Sequence[int] = (),
    tokens: Sequence[int] = (),
) -> list[Verdict]:  # fmt: skip
    """Numbers of all replies, item by item, as a verdict on each item. What is not finite is no verdict."""
    found, at = [], 0
    for item in items:
        part = slice(at, at + len(item.replies))
        own = [None if s is None or not math.isfinite(s) else float(s) for s in scores[part]]
        found.append(Verdict(tuple(own), why=next(filter(None, why[part]), ""), cut=sum(cut[part]), tokens=sum(tokens[part])))
        at += len(item.replies)
    return found
