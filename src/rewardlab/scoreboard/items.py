"""The questions of a benchmark, and what a rater says of them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from rewardlab.core import Message
from rewardlab.data.pictures import digest_of

Pair = tuple[int, int]


@dataclass(frozen=True)
class Item:
    """A prompt, and replies of known worth.

    id: unique in its benchmark.  worth: of each reply, as the benchmark labels it; higher is better, equal ones are ties.
    subset: by which figures are told apart.  compared: the pairs (better, worse) that count; by default all that differ in worth.
    steps: of each reply, where a benchmark asks about steps.  labels: of each step, 1 right, 0 wrong, None not labelled.
    answer: a reference for judges that read one.  meta: what the benchmark's figures need besides; its "cluster" names what items
    share, such as a video, where neither their pictures nor their prompts say it.  place: the file and the row that it was read
    from, for messages.
    """

    id: str
    prompt: tuple[Message, ...]
    replies: tuple[str, ...]
    worth: tuple[float, ...]
    subset: str = ""
    compared: tuple[Pair, ...] | None = None
    steps: tuple[tuple[str, ...], ...] = ()
    labels: tuple[tuple[float | None, ...], ...] = ()
    answer: str | None = None
    meta: Mapping[str, Any] = field(default_factory=dict)
    place: str = field(default="", compare=False)

    @property
    def pairs(self) -> tuple[Pair, ...]:
        """(better, worse) for each pair of replies that is to be told apart."""
        if self.compared is not None:
            return self.compared
        n = range(len(self.replies))
        return tuple((i, j) for i in n for j in n if self.worth[i] > self.worth[j])

    @property
    def blank(self) -> bool:
        """Whether the texts of its replies are not at hand: it can be asked of published outputs alone."""
        return not any(self.replies) and not any(map(any, self.steps))

    @property
    def shown(self) -> tuple[Pair, ...]:
        """The pairs that are put to a judge: those that count, and of two replies of equal worth these two, which may be a tie."""
        return self.pairs or (((0, 1),) if len(self.replies) == 2 else ())

    @property
    def question(self) -> str:
        """The prompt as one text, for formulas and judges."""
        if len(self.prompt) == 1:
            return self.prompt[0].text
        return "\n\n".join(f"{m.role}: {m.text}" for m in self.prompt)

    @property
    def pictures(self) -> tuple[Any, ...]:
        """The images of its prompt, in their order."""
        return tuple(image for m in self.prompt for image in m.images)

    @property
    def cluster(self) -> str:
        """What it shares with other items, which are resampled together: its pictures, or its prompt where it has none."""
        told = self.meta.get("cluster")
        return str(told) if told is not None else " ".join(map(digest_of, self.pictures)) or self.question

    def key(self, asks: str) -> str:
        """A hash of all that a rater reads of the item, its pictures' pixels included."""
        read = [asks, [asdict(_hashed(m)) for m in self.prompt], self.replies, self.steps, self.pairs, self.answer]
        return hashlib.sha256(json.dumps(read, ensure_ascii=True, default=str).encode()).hexdigest()[:24]


@dataclass(frozen=True)
class Verdict:
    """What a rater says of an item; None where it gives no verdict.

    scores: of each reply, higher is better.  orders: by (i, j), how far reply i, shown before reply j, is preferred to it: 1, 0, or
    0.5 for a tie.  steps: of each reply, the chance that each step is right.  why: there is no verdict.  cut: replies of which the
    rater could not read all.  tokens: read and written.  failed: there is none because something went wrong (an error, NaN, no
    answer), so that the item is asked again next time.  judged: a judge wrote it, whose judgement that cannot be read is a tie to
    benchmarks whose code has it so; a reward model has none.
    """

    scores: tuple[float | None, ...] = ()
    orders: Mapping[Pair, float | None] = field(default_factory=dict)
    steps: tuple[tuple[float, ...] | None, ...] = ()
    why: str = ""
    cut: int = 0
    tokens: int = 0
    failed: bool = False
    judged: bool = False

    def prefers(self, i: int, j: int) -> float | None:
        """Whether reply i is preferred to reply j: 1, 0, or 0.5 for a tie; from comparisons, the mean of both orders."""
        if self.orders:
            both = [self.order(i, j), self.order(j, i)]
            known = [x if k == 0 else 1.0 - x for k, x in enumerate(both) if x is not None]
            return sum(known) / len(known) if known else None
        return self.order(i, j)

    def order(self, i: int, j: int) -> float | None:
        """The verdict where i is shown before j; scores do not look at the order."""
        if self.orders:
            return self.orders.get((i, j))
        a, b = (self.scores[k] if k < len(self.scores) else None for k in (i, j))
        return None if a is None or b is None else 1.0 if a > b else 0.5 if a == b else 0.0

    def wins(self, i: int, others: Sequence[int]) -> float | None:
        """Whether reply i is preferred to every one of the others, a tie being none; None without a verdict on one of them."""
        found = [self.prefers(i, j) for j in others]
        return None if any(x is None for x in found) else float(all(x > 0.5 for x in found if x is not None))

    def to_json(self) -> dict[str, Any]:
        row: dict[str, Any] = {"scores": list(self.scores)} if self.scores else {}
        if self.orders:
            row["orders"] = [[i, j, x] for (i, j), x in self.orders.items()]
        if self.steps:
            row["steps"] = [None if s is None else list(s) for s in self.steps]
        return row | {k: v for k in ("why", "cut", "tokens", "failed", "judged") if (v := getattr(self, k))}

    @classmethod
    def from_json(cls, row: Mapping[str, Any]) -> Verdict:
        return cls(
            tuple(row.get("scores", ())), {(i, j): x for i, j, x in row.get("orders", ())},
            tuple(None if s is None else tuple(s) for s in row.get("steps", ())), row.get("why", ""), row.get("cut", 0),
            row.get("tokens", 0), row.get("failed", False), row.get("judged", False),
        )  # fmt: skip


def missing(item: Item, verdict: Verdict, asks: str) -> bool:
    """Whether the rater gave no verdict on something that the item asks."""
    if asks == "steps":
        return len(verdict.steps) < len(item.replies) or any(s is None for s in verdict.steps)
    return any(verdict.prefers(i, j) is None for i, j in item.shown)


def first_reason(items: Sequence[Item], verdicts: Sequence[Verdict], failed: bool) -> tuple[str, str]:
    """Why there is no verdict on the first item of those that failed, or of the others, and its place; "" where there is none."""
    found = ((item, v.why) for item, v in zip(items, verdicts, strict=True) if v.why and v.failed == failed)
    return next(((why, item.place or item.id) for item, why in found), ("", ""))


def _hashed(message: Message) -> Message:
    """The message with hashes in place of its arrays, which JSON would abbreviate."""
    data = None if message.data is None else digest_of(message.data)
    return replace(message, images=tuple(map(digest_of, message.images)), data=data)


def users(text: str, images: Sequence[Any] = ()) -> tuple[Message, ...]:
    """A prompt of one user's turn, and the pictures that it shows."""
    return (Message("user", text, images=tuple(images)),)


def said(turns: Sequence[Mapping[str, str]]) -> tuple[Message, ...]:
    """A conversation in the form [{"role": ..., "content": ...}, ...]."""
    return tuple(Message(turn["role"], turn["content"]) for turn in turns)


def flat(items: Sequence[Item]) -> Iterator[tuple[Item, int]]:
    """Each reply, as its item and its place."""
    for item in items:
        for k in range(len(item.replies)):
            yield item, k
