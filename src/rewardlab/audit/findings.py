"""Replies with their results, gathered into findings with examples that can be replayed."""

from __future__ import annotations

import hashlib
import json
import re
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from rewardlab.audit.problems import Item
from rewardlab.audit.replies import AnswerFormat, Reply
from rewardlab.audit.rules import ORDER, Severity, kept, rule
from rewardlab.audit.target import RewardResult, Row

EXAMPLES = 3
"""Examples that a finding keeps."""
LONGEST = 4_000
"""Characters of a reply that a report holds; longer ones are kept as pieces, and rebuilt for a replay."""


HIDDEN = re.compile("[\\x00-\\x08\\x0b-\\x1f\\x7f\\u200b-\\u200f\\u202a-\\u202e\\u2066-\\u2069\\ud800-\\udfff]")


@dataclass(frozen=True)
class Level:
    """The rewards of a wrong and a right answer to one question, in one answer format."""

    wrong: float
    right: float

    @property
    def gap(self) -> float:
        return self.right - self.wrong


@dataclass
class Trial:
    """A reply and its result, which is None where the time did not suffice."""

    probe: str
    item: Item
    fmt: AnswerFormat
    reply: Reply
    level: Level | None = None
    result: RewardResult | None = None

    @property
    def row(self) -> Row:
        return Row(self.item.prompt, self.item.answer, self.reply.text, self.item.meta)

    @property
    def share(self) -> float | None:
        """Where the reward lies between a wrong answer's (0) and the right one's (1)."""
        if self.result is None or self.result.value is None or self.level is None or self.level.gap <= 0:
            return None
        # on this scale rewards of any range compare
        return (self.result.value - self.level.wrong) / self.level.gap


@dataclass
class Finding:
    """One check.

    severity: fault, warning, note, or ok.  failed: how many of `of` replies got a wrong reward.  mean: their mean reward.
    says: the message.
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


def example(trial: Trial, how: str = "each", **more: Any) -> dict[str, Any]:
    """A reply that failed a check, as plain data. how: the way it was called, so that a replay can call it in the same way."""
    row, result, text = trial.row, trial.result, trial.reply.text
    long = len(text) > LONGEST
    record = {
        "id": identity(trial.probe, trial.reply.name, row.prompt, text, how),
        "how": how,
        "prompt": row.prompt,
        "answer": row.answer,
        "response": f"{text[: LONGEST // 4]} … ({len(text):,} characters)" if long else text,
        "reward": result and result.value,
        "came": result and result.kind,
        "why": result.why if result else "",
        "extracted": result.extracted if result else "",
        "right_pays": trial.level and trial.level.right,
        "wrong_pays": trial.level and trial.level.wrong,
        "fmt": trial.fmt.name,
    }
    record |= {"pieces": trial.reply.pieces} if long else {}
    # JSON with ASCII escapes keeps lone surrogates and control characters, which UTF-8 files do not
    if not printable(text):
        record |= {"response": visible(record["response"]), "ascii": json.dumps(text)}
        record.pop("pieces", None)
    return record | ({"meta": dict(row.meta)} if row.meta else {}) | more


def row_of(record: Mapping[str, Any]) -> Row:
    """The row of an example."""
    text = record["response"]
    if "ascii" in record:
        text = json.loads(record["ascii"])
    elif "pieces" in record:
        text = "".join(piece * times for piece, times in record["pieces"])
    return Row(record.get("prompt", ""), record.get("answer"), text, record.get("meta", {}))


def printable(text: str) -> bool:
    """Whether a text can be written as UTF-8 and has no invisible or misleading characters."""
    return not HIDDEN.search(text)


def visible(text: str) -> str:
    """A text with invisible and misleading characters written as escapes."""
    return HIDDEN.sub(lambda m: m[0].encode("ascii", "backslashreplace").decode() if ord(m[0]) > 127 else repr(m[0])[1:-1], text)


def identity(*parts: object) -> str:
    return hashlib.blake2b("\x1f".join(map(str, parts)).encode(errors="replace"), digest_size=4).hexdigest()


def judged(trials: Iterable[Trial]) -> list[Finding]:
    """A finding for each kind of reply, by its rule."""
    groups: dict[tuple[str, str], list[Trial]] = {}
    for trial in trials:
        if trial.result is not None:
            # one name for all hostile texts, whose fault is the same
            name = "accepted" if trial.probe == "hostile" else trial.reply.name
            groups.setdefault((trial.probe, name), []).append(trial)
    return [_finding(probe, name, group) for (probe, name), group in groups.items()]


def _finding(probe: str, name: str, group: Sequence[Trial]) -> Finding:
    applied = rule(probe, name)
    broken: list[Trial] = []
    half_broken = 0
    for trial in group:
        passed, by_half = _kept(applied.expects, trial)
        if not passed:
            broken.append(trial)
            half_broken += by_half
    severity: Severity | str = applied.severity if broken else "ok"
    says = applied.says
    if broken and half_broken == len(broken):
        severity = "warning" if severity == "fault" else severity
        says = f"{says} (it earns a good part of the reward)"
    values = [trial.result.value for trial in group if trial.result and trial.result.value is not None]
    mean = statistics.fmean(values) if values else None
    return Finding(probe, name, severity, says, len(broken), len(group), mean, [example(trial) for trial in broken[:EXAMPLES]])


def _kept(expects: str, trial: Trial) -> tuple[bool, bool]:
    """As `kept`; a reply without a number (a hang, an exception) is not accepted, and is reported by `health`."""
    if trial.level is None or expects == "answer":
        return True, False
    if trial.share is None:
        lost = expects == "accept" and trial.result is not None and trial.result.kind in ("none", "error", "nan")
        return not lost, False
    return kept(expects, trial.share)


def in_order(findings: Iterable[Finding]) -> list[Finding]:
    """The worst first."""
    rank = {severity: i for i, severity in enumerate((*ORDER, "ok"))}
    return sorted(findings, key=lambda f: rank[f.severity])
