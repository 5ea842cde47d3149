"""What was tried and what came of it, gathered into findings with examples that can be replayed."""

from __future__ import annotations

import hashlib
import json
import re
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from .problems import Item
from .replies import Dress, Reply
from .rules import ORDER, Severity, kept, rule
from .target import Paid, Row

EXAMPLES = 3
"""Examples that a finding keeps."""
LONGEST = 4_000
"""Characters of a reply that a report holds; what is longer is kept as pieces, and built again for a replay."""


HIDDEN = re.compile("[\\x00-\\x08\\x0b-\\x1f\\x7f\\u200b-\\u200f\\u202a-\\u202e\\u2066-\\u2069\\ud800-\\udfff]")


@dataclass(frozen=True)
class Level:
    """What a wrong and a right answer to one question are paid, in one dress."""

    wrong: float
    right: float

    @property
    def gap(self) -> float:
        return self.right - self.wrong


@dataclass
class Tried:
    """A reply and what it was paid; paid is None where the time did not suffice."""

    probe: str
    item: Item
    dress: Dress
    reply: Reply
    level: Level | None = None
    paid: Paid | None = None

    @property
    def row(self) -> Row:
        return Row(self.item.prompt, self.item.answer, self.reply.text, self.item.meta)

    @property
    def share(self) -> float | None:
        """How far the pay lies on the way from a wrong answer's to the right one's."""
        if self.paid is None or self.paid.value is None or self.level is None or self.level.gap <= 0:
            return None
        return (self.paid.value - self.level.wrong) / self.level.gap


@dataclass
class Finding:
    """One thing that was looked for.

    severity: fault, warning, note, or ok.  failed: how many of `of` replies were not paid as they should be.  mean: what they
    were paid on average.
    """

    probe: str
    name: str
    severity: Severity | str
    says: str
    failed: int
    of: int
    mean: float | None = None
    examples: list[dict[str, Any]] = field(default_factory=list)

    def document(self) -> dict[str, Any]:
        return asdict(self)


def example(tried: Tried, how: str = "each", **more: Any) -> dict[str, Any]:
    """A reply that was not paid as it should be, as plain data. `how` it was called, so that it can be called so again."""
    row, paid, text = tried.row, tried.paid, tried.reply.text
    long = len(text) > LONGEST
    record = {
        "id": identity(tried.probe, tried.reply.name, row.prompt, text, how),
        "how": how,
        "prompt": row.prompt,
        "answer": row.answer,
        "response": f"{text[: LONGEST // 4]} … ({len(text):,} characters)" if long else text,
        "reward": paid and paid.value,
        "came": paid and paid.kind,
        "why": paid.why if paid else "",
        "extracted": paid.extracted if paid else "",
        "right_pays": tried.level and tried.level.right,
        "wrong_pays": tried.level and tried.level.wrong,
        "dress": tried.dress.name,
    }
    record |= {"pieces": tried.reply.pieces} if long else {}
    if not printable(text):
        record |= {"response": visible(record["response"]), "ascii": json.dumps(text)}
        record.pop("pieces", None)
    return record | ({"meta": dict(row.meta)} if row.meta else {}) | more


def row_of(record: Mapping[str, Any]) -> Row:
    """The row that an example was made of."""
    text = record["response"]
    if "ascii" in record:
        text = json.loads(record["ascii"])
    elif "pieces" in record:
        text = "".join(piece * times for piece, times in record["pieces"])
    return Row(record.get("prompt", ""), record.get("answer"), text, record.get("meta", {}))


def printable(text: str) -> bool:
    """Whether a text can be written as UTF-8 and looks like what it is."""
    return not HIDDEN.search(text)


def visible(text: str) -> str:
    """A text with what cannot be seen, or would mislead the eye, written as escapes."""
    return HIDDEN.sub(lambda m: m[0].encode("ascii", "backslashreplace").decode() if ord(m[0]) > 127 else repr(m[0])[1:-1], text)


def identity(*of: object) -> str:
    return hashlib.blake2b("\x1f".join(map(str, of)).encode(errors="replace"), digest_size=4).hexdigest()


def judged(tries: Iterable[Tried]) -> list[Finding]:
    """A finding for each kind of reply, kept or not, by the rules."""
    groups: dict[tuple[str, str], list[Tried]] = {}
    for tried in tries:
        if tried.paid is not None:
            # one word for all hostile texts: what is wrong with them is the same
            name = "accepted" if tried.probe == "hostile" else tried.reply.name
            groups.setdefault((tried.probe, name), []).append(tried)
    return [_judged(probe, name, group) for (probe, name), group in groups.items()]


def _judged(probe: str, name: str, group: Sequence[Tried]) -> Finding:
    ask = rule(probe, name)
    broken: list[Tried] = []
    halves = 0
    for tried in group:
        good, half = _kept(ask.expects, tried)
        if not good:
            broken.append(tried)
            halves += half
    severity: Severity | str = ask.severity if broken else "ok"
    says = ask.says
    if broken and halves == len(broken):
        severity = "warning" if severity == "fault" else severity
        says = f"{says} (it earns a good part of the pay)"
    values = [tried.paid.value for tried in group if tried.paid and tried.paid.value is not None]
    mean = statistics.fmean(values) if values else None
    return Finding(probe, name, severity, says, len(broken), len(group), mean, [example(tried) for tried in broken[:EXAMPLES]])


def _kept(expects: str, tried: Tried) -> tuple[bool, bool]:
    """As `kept`; what has no number is a matter of its own (a hang, an exception), and nothing that was paid."""
    if tried.level is None or expects == "answer":
        return True, False
    if tried.share is None:
        lost = expects == "accept" and tried.paid is not None and tried.paid.kind in ("none", "error", "nan")
        return not lost, False
    return kept(expects, tried.share)


def in_order(findings: Iterable[Finding]) -> list[Finding]:
    """The worst first."""
    rank = {severity: i for i, severity in enumerate((*ORDER, "ok"))}
    return sorted(findings, key=lambda f: rank[f.severity])
