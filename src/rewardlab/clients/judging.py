"""Model-written judgements: the prompt, parsing of the mark [[...]], and its expectation over log-probs."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Literal

from rewardlab.clients.messages import Failure, Reply
from rewardlab.errors import RewardlabError
from rewardlab.text.filled import filled

Kind = Literal["scale", "verdict", "pairwise"]
LIKELY = 10
"""Likeliest tokens that are asked for in the place of a mark."""
_QUESTION = "[Question]\n{prompt}\n\n[Right answer]\n{answer}\n\n"
_ANSWER = "[Right answer]\n{answer}\n\n"
_ONE = _QUESTION + "[Reply]\n{reply}\n\n[End of the reply]\n"
TEMPLATES: Mapping[Kind, str] = {
    "scale": "Judge the reply to a question.\n\n" + _ONE
    + "How good is the reply, from {low} (worst) to {high} (best)? Say only its score, in the form [[score]].",
    "verdict": "Judge the reply to a question.\n\n" + _ONE + "Is the reply right? Say only [[yes]] or [[no]].",
    "pairwise": "Compare two replies to a question.\n\n" + _QUESTION
    + "[Reply A]\n{first}\n\n[Reply B]\n{second}\n\n[End of the replies]\n"
    "Which reply is better? The order in which they stand says nothing. Say only [[A]], [[B]], or [[C]] if neither is.",
}  # fmt: skip
PLACES: Mapping[Kind, tuple[str, ...]] = {"scale": ("{reply}",), "verdict": ("{reply}",), "pairwise": ("{first}", "{second}")}
VERDICTS = {"yes": 1.0, "no": 0.0}
PREFERENCES = {"A": 1.0, "B": 0.0, "C": 0.5}
"""What each mark of a comparison is worth to the reply that stands first."""
_MARK = re.compile(r"\[\[\s{0,3}([^\s\[\]]{1,12})\s{0,3}\]\]")
_NUMBER = re.compile(r"\d{1,4}(?:\.\d{1,4})?")


def template_of(template: str, kind: Kind) -> str:
    """The template: a text with the places of its kind, a file that holds one, or, if it is empty, that of the kind."""
    if not template:
        return TEMPLATES[kind]
    text, of = template, "the judge's template"
    # a text with a place in it is no path
    if "{" not in template:
        of = f"the judge's template {template}"
        try:
            text = Path(template).expanduser().read_text("utf-8")
        except (OSError, ValueError) as problem:
            raise RewardlabError(f"{of} is neither a text with {' and '.join(PLACES[kind])} in it nor a file: {problem}") from None
    if missing := [place for place in PLACES[kind] if place not in text]:
        raise RewardlabError(f"{of} has no {' and no '.join(missing)} in it, which a judge of kind {kind!r} needs")
    return text


def asked(template: str, answer: object, **texts: str) -> str:
    """The judge's prompt. Where there is no right answer, the paragraph that tells it in our own templates is left out."""
    if answer is None:
        template = template.replace(_ANSWER, "")
    return filled(template, answer="" if answer is None else str(answer), **texts)


def only_mark(text: str) -> str | None:
    """The mark that a judgement gives, in small letters; None where it gives none, or several that differ."""
    found = {mark.casefold() for mark in _MARK.findall(text)}
    return found.pop() if len(found) == 1 else None


class Marks:
    """The marks that a judge may give, and the value of each.

    values: of marks that are words.  low, high: of a scale instead, whose values are from 0 to 1.  texts: as they are written.
    """

    def __init__(self, values: Mapping[str, float] | None = None, low: int = 0, high: int = 0):
        self.low, self.high = low, high
        self.scale = values is None
        whole = {str(i): (i - low) / (high - low) for i in range(low, high + 1)} if values is None else values
        self.values = {name.casefold(): value for name, value in whole.items()}
        self.texts = tuple(f"[[{name}]]" for name in whole)

    def value(self, reply: Reply | Failure) -> tuple[float | None, str]:
        """The value of a judgement, and the mark or why there is none; by its chances where they are known.

        The last mark counts, since a judge reasons first; one that is not of these gives no value.
        """
        if isinstance(reply, Failure):
            return None, f"the judge failed: {reply.why}"
        found = list(_MARK.finditer(reply.text))
        mark = found[-1][1] if found else ""
        value = self._stated(mark)
        if value is None:
            return None, f"no mark that can be read in the judgement {reply.text[-200:]!r}"
        expected = self._expected(reply, found[-1].start(1)) if mark.casefold() in self.values else None
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
        """The mark that a token begins, which may have something before and behind it, such as the brackets."""
        if not text.startswith(before):
            return None
        said = text[len(before) :].split("]")[0].strip().casefold()
        return next((name for name in self.values if said and name.startswith(said)), None)


def both_orders(pairs: Sequence[tuple[int, int]], ask: Callable[[int, int], str]) -> list[str]:
    """The prompts of comparisons, each pair in both orders, one after the other."""
    return [prompt for a, b in pairs for prompt in (ask(a, b), ask(b, a))]
