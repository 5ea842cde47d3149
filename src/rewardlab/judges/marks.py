"""Marks of judgements, [[A]] and their like: found in what a judge wrote, and their mean value over log-probs."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping

from rewardlab.clients.messages import Failure, Reply
from rewardlab.text.answers import after_thinking

LIKELY = 10
"""Likeliest tokens that are asked for in the place of a mark."""
FAILED = "the judge failed: "
"""How the reason begins where no judgement came."""
UNDECIDED = "the judgement ends in the judge's thoughts: "
"""How it begins where the judge thought, and said nothing."""
VERDICTS = {"yes": 1.0, "no": 0.0}
PREFERENCES = {"A": 1.0, "B": 0.0, "C": 0.5}
"""What each mark of a comparison is worth to the reply that stands first."""
DOUBLE = r"\[\[\s{0,3}([^\s\[\]]{1,12})\s{0,3}\]\]"
"""[[A]], as most judges are asked to write a mark."""
_DOUBLE = re.compile(DOUBLE)
_CLOSED = re.compile(r"[\])}<]")
_NUMBER = re.compile(r"\d{1,4}(?:\.\d{1,4})?")


def only_mark(text: str) -> str | None:
    """The mark that a judgement gives behind its thoughts, in small letters; None where it gives none, or several that differ."""
    found = {mark.casefold() for mark in _DOUBLE.findall(after_thinking(text))}
    return found.pop() if len(found) == 1 else None


class Marks:
    """The marks that a judge may give, and the value of each.

    values: of marks that are words.  low, high: of a scale instead, whose values are from 0 to 1.  written: how a mark is written,
    with {} in its place; pattern: a regular expression that finds one, whose first group it is.  agreed: whether several marks that
    differ say nothing, in place of the last one.  texts: all, as they are written.
    """

    def __init__(
        self, values: Mapping[str, float] | None = None, low: int = 0, high: int = 0, written: str = "[[{}]]",
        pattern: str = DOUBLE, agreed: bool = False,
    ):  # fmt: skip
        self.low, self.high, self.agreed = low, high, agreed
        self.pattern = re.compile(pattern)
        self.scale = values is None
        whole = {str(i): (i - low) / (high - low) for i in range(low, high + 1)} if values is None else values
        self.values = {name.casefold(): value for name, value in whole.items()}
        self.texts = tuple(written.replace("{}", name) for name in whole)

    def value(self, reply: Reply | Failure) -> tuple[float | None, str]:
        """The value of a judgement, and the mark or why there is none; by its chances where they are known.

        The last mark counts, since a judge reasons first; one that is not of these gives no value. What it thinks, up to </think>,
        is not read: it weighs one mark against another there, and may be cut off before it decides.
        """
        if isinstance(reply, Failure):
            return None, f"{FAILED}{reply.why}"
        said = after_thinking(reply.text)
        if reply.text and not said:
            return None, f"{UNDECIDED}{reply.text[-200:]!r}"
        found = list(self.pattern.finditer(said))
        differ = dict.fromkeys(match[1] for match in found) if self.agreed else ()
        if len(differ) > 1:
            return None, f"the judgement has several marks that differ: {', '.join(differ)[:200]}"
        mark = found[-1][1] if found else ""
        value = self._stated(mark)
        if value is None:
            return None, f"no mark that can be read in the judgement {reply.text[-200:]!r}"
        begun = len(reply.text) - len(said)
        expected = self._expected(reply, begun + found[-1].start(1)) if mark.casefold() in self.values else None
        return (value if expected is None else expected), mark

    def _stated(self, mark: str) -> float | None:
        if not self.scale:
            return self.values.get(mark.casefold())
        number = float(mark) if _NUMBER.fullmatch(mark) else math.nan
        return (number - self.low) / (self.high - self.low) if self.low <= number <= self.high else None

    def _expected(self, reply: Reply, start: int) -> float | None:
        """The mean value over the tokens that might have stood where the mark begins, by their chances; None if not known."""
        # 10 begins like 1: where marks are not told apart by their first character, one token does not tell them
        if len({name[0] for name in self.values}) < len(self.values):
            return None
        at = 0
        for token in reply.chances:
            if at <= start < at + len(token.text) and reply.text.startswith(token.text, at):
                chances = [(self._begun(text, token.text[: start - at]), math.exp(p)) for text, p in token.likely.items()]
                known = [(self.values[name], p) for name, p in chances if name is not None]
                total = sum(p for _, p in known)
                return sum(value * p for value, p in known) / total if total > 0 else None
            at += len(token.text)
        return None

    def _begun(self, text: str, before: str) -> str | None:
        """The mark that a token begins, which may have something before and behind it, such as brackets."""
        if not text.startswith(before):
            return None
        said = _CLOSED.split(text[len(before) :])[0].strip().casefold()
        return next((name for name in self.values if said and name.startswith(said)), None)
