"""The verifier of mathematical answers: numbers, formulas, sets, intervals, tuples, matrices, equations, choices.

Most cases are decided exactly and at once; those that need computer algebra go to worker processes under a time limit. `compare.py`
defines what counts as equal.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import Any, Literal, NamedTuple

from rewardlab.settings.domain import NonNegativeFloat, PositiveFloat
from rewardlab.text.answers import NO_ANSWER, boxed, own_words, statements, states
from rewardlab.text.boxes import braced, by_part, joint
from rewardlab.text.escapes import undoubled
from rewardlab.text.languages import by_convention
from rewardlab.text.numbers import ascii_digits, ungrouped
from rewardlab.text.replies import accepted, data
from rewardlab.text.stacked import stack
from rewardlab.verifiers.contract import Pair, Verdict, differs, no_verdict, right, shorten, verifier, wrong

from .choices import Choice, choice, hedged, in_forms, in_prose, letters, same_choice
from .decimals import with_points
from .judging import Case, Judge
from .kinds import Matrix, Ordered, Parts, Several, Value, Words
from .parts import parts
from .prose import concludes
from .reading import Reading, read
from .relations import value_asked
from .text import BASES, LONGEST

_IN_PARTS, _COMPUTED = (Parts, Several), (Matrix, Value)
_PERCENT = re.compile(r"percent|%|\bpct\b|per cent", re.IGNORECASE)
_BASED = re.compile(r"([0-9A-Z]{1,40})_\{?([0-9]{1,2})\}?")
_OF_NUMBER = re.compile(r"\\(sin|cos|tan|cot|sec|csc|ln|log)\s?[({\\ ]{0,3}[0-9]")
_FUNCTION = re.compile(r"\b(?:sin|cos|tan|cot|sec|csc|ln|log)")
_SEPARATOR = re.compile("[.,'’][0-9]")
_DIGITS = re.compile(r"[0-9A-Z]{1,40}")
_BASE_ASKED = re.compile(r"\bbase[\s$\\({-]{1,4}([0-9]{1,2}|[a-z]{3,7})\b|\b(binary|ternary|octal|hexadecimal)\b", re.IGNORECASE)
_NAMED_BASES = {
    "binary": "2",
    "ternary": "3",
    "octal": "8",
    "hexadecimal": "16",
    **{name: str(base) for name, base in BASES.items()},
}


@verifier(over="pairs", modules=("sympy",))
def math(
    pairs: Sequence[Pair], *, find: Literal["final", "boxed", "last", "whole"] = "final", strict: bool = True,
    tolerance: NonNegativeFloat = 0.0, worked_out: bool = False, decimal_comma: bool = False, seconds: PositiveFloat = 5.0,
) -> list[Verdict]:  # fmt: skip
    r"""1 if the answer of the reply is proven to equal the gold answer exactly.

    find: "final", the last \boxed with the boxes joined to it, else what follows "answer is", else what the last sentence with a
    value says, of several values the one that is meant (`text/claims.py`); "last", the same, and of several values the last;
    "boxed", only the last \boxed; "whole", the whole reply. Thinking before </think> and turns after the reply's own are ignored.
    The gold answer may be plain, $...$, boxed, or follow "####"; of a list of gold answers any is right.
    strict: see `compare.py`.  tolerance: relative, for rational numbers.
    worked_out: if the gold answer is a number, accept 1023 but not "2^10 - 1".
    decimal_comma: read 3,5 as 3.5, in replies and gold answers; without it, only where the gold answer is a decimal fraction.
    seconds: time limit for the computer algebra of one verdict; an answer that takes longer is wrong.
    """
    judge, settings = Judge(strict, tolerance, seconds), Settings(find, worked_out, decimal_comma)
    golds = [_golds(pair.answer) for pair in pairs]
    if all(one is pair.answer for pair, (one, *_) in zip(pairs, golds, strict=True)):
        return judge.verdicts([begin(pair, settings) for pair in pairs])
    cases = [begin(pair._replace(answer=gold), settings) for pair, several in zip(pairs, golds, strict=True) for gold in several]
    verdicts = iter(judge.verdicts(cases))
    return [_best([next(verdicts) for _ in several]) for several in golds]


def _golds(answer: Any) -> list[Any]:
    """The gold answers, any of which is right: the items of a list of texts, also of its JSON text."""
    several = data(answer) if isinstance(answer, str) and answer.lstrip().startswith('["') else answer
    return (accepted(several) or [None]) if isinstance(several, list | tuple) else [answer]


def _best(verdicts: list[Verdict]) -> Verdict:
    """The verdict that is right, else the first that is one."""
    judged = [verdict for verdict in verdicts if verdict.correct is not None]
    return next((verdict for verdict in judged if verdict.correct), (judged or verdicts)[0])


class Settings(NamedTuple):
    """Settings of `math` that decide how a reply is read."""

    find: str
    worked_out: bool
    decimal_comma: bool

    def read(self, text: str) -> Reading:
        return read(with_points(text) if self.decimal_comma else text)


def begin(pair: Pair, settings: Settings) -> Case | Verdict:
    """The verdict, if parsing alone decides; else the two answers to compare."""
    answer = "" if pair.answer is None else str(pair.answer)
    text, chosen, fault = _gold(answer)
    if fault:
        return no_verdict(fault)
    if not isinstance(pair.response, str):
        return wrong(f"the reply is not a text but {type(pair.response).__name__}")
    reply = undoubled(own_words(pair.response, (answer,)))
    # letter for letter the gold answer, it is right whatever it is
    if settings.find != "boxed" and reply.strip() == answer.strip():
        return right(reply.strip())
    reply = ascii_digits(reply)
    forms = _forms(reply, settings.find, pair.prompt)
    if chosen:
        said, why, forms = _choice_and_forms(forms, reply, settings.find, pair.prompt)
        if said or not chosen.rest:
            return same_choice(said, chosen, why)
        text = chosen.rest
    gold = settings.read(text)
    if isinstance(gold.answer, (*_IN_PARTS, Ordered)) and settings.find != "whole":
        forms = [*filter(None, _forms_in_parts(reply, gold.answer, settings.find)), *forms]
    in_words = isinstance(gold.answer, Words) and settings.find in ("final", "last")
    if in_words and not states(reply) and concludes(reply, gold.text, pair.prompt):
        return right(gold.text)
    return _compare_with(forms, gold, pair, settings)


def _compare_with(forms: Iterable[str], gold: Reading, pair: Pair, settings: Settings) -> Case | Verdict:
    stated = _readable(forms, gold, settings, pair)
    if stated is None:
        return wrong(NO_ANSWER)
    # equal text is equal even where the parser understands neither side
    if stated.spelling == gold.spelling and stated.spelling:
        return right(stated.text)
    if stated.answer is None or gold.answer is None:
        why = differs(stated.text, gold.text)
        return wrong(f"{why}: {stated.why}" if stated.why else why, stated.text)
    if "\\" in stated.text and _repeats(stated.text, gold.text, pair.prompt):
        return wrong("it repeats what the question asks to work out", stated.text)
    # the check is on the tree: "2^10 - 1" parses to a sum, not to a number
    computed = isinstance(stated.answer, _COMPUTED) and (not _is_number(stated) or "begin{" in stated.spelling)
    if settings.worked_out and _is_number(gold) and computed:
        return wrong("the answer is not worked out", stated.text)
    in_percent = bool(_PERCENT.search(stated.text)) and bool(_PERCENT.search(pair.prompt))
    return Case(stated, gold, in_percent)


def _repeats(stated: str, gold: str, asked: str) -> bool:
    """Whether an answer still has a function of the question, as tan 80, that is to be worked out: the gold answer has none."""
    functions = set(_OF_NUMBER.findall(stated))
    return bool(functions) and not _FUNCTION.search(gold) and not functions.isdisjoint(_OF_NUMBER.findall(asked[:10_000]))


def _cut_off(text: str) -> bool:
    plain = text.replace("\\\\", "").replace("\\{", "").replace("\\}", "")
    return plain.count("{") != plain.count("}")


class Gold(NamedTuple):
    """text: of the gold answer, without the solution before it.  chosen: the choice that it names.  fault: why it is not read."""

    text: str
    chosen: Choice | None = None
    fault: str = ""


# every reply of a group has the same gold answer
@functools.lru_cache(maxsize=4096)
def _gold(answer: str) -> Gold:
    stated = braced(undoubled(answer.rpartition("####")[2]))
    text = ascii_digits((joint(stated) or stated).strip())
    if not text or len(text) > LONGEST:
        return Gold(text, fault="the gold answer is too long to be read" if text else "there is no gold answer")
    if "{" in text and _cut_off(text):
        return Gold(text, fault=f"the gold answer {shorten(text)} has a brace that does not close")
    return Gold(text, None if parts(text) else choice(text))


def _forms(reply: str, find: str, question: str) -> Iterable[str]:
    if find == "whole":
        return [reply.strip()] if reply.strip() else []
    if find == "boxed":
        return [content] if (content := joint(reply)) else []
    return statements(reply, find == "last", question)


def _forms_in_parts(reply: str, gold: Parts | Several | Ordered, find: str) -> Iterable[str | None]:
    """Readings of a reply that answers the parts of a question in turn: a box for each, or none at all and a short reply."""
    if isinstance(gold, Several | Ordered) and find != "boxed" and not states(reply) and (below := stack(reply)):
        yield below.told()
    boxes = by_part(reply) if not isinstance(gold, Ordered) else None
    if boxes and len(joint(reply) or "") < len(boxes):
        yield boxes
    if isinstance(gold, Parts) and find != "boxed" and "\\boxed" not in reply and len(reply) <= LONGEST:
        yield reply.strip() if parts(reply.strip()) else None


def _readable(forms: Iterable[str], gold: Reading, settings: Settings, pair: Pair) -> Reading | None:
    """The first form that parses as mathematics or equals the gold answer; else the first form; None if there are none."""
    first = None
    for form in forms:
        offered = None if parts(form) else choice(form)
        reading = settings.read(
            _as_gold(offered.rest if offered and offered.rest and not hedged(offered.rest) else form, gold, pair)
        )
        mathematics = reading.answer is not None and not isinstance(reading.answer, Words)
        if mathematics or reading.spelling == gold.spelling or (reading.answer is not None and reading.answer == gold.answer):
            return reading
        first = first or reading
    return first


def _as_gold(form: str, gold: Reading, pair: Pair) -> str:
    """The form in the notation of the gold answer.

    Its decimal comma is a point where the gold answer is one decimal fraction: 3,75 is no list for 3.75. Bare digits are in the
    base of the gold answer where the question asks for that base: 2516 is 2516_8. Its separators of thousands are those of the
    language (`text/languages.py`).
    """
    if gold.spelling == form:
        return form
    if "=" in form and isinstance(gold.answer, Value) and len(form) <= LONGEST:
        form = value_asked(form, pair.prompt)
    if "_" in gold.text and (based := _BASED.fullmatch(gold.text.strip(" $\\()"))) and _DIGITS.fullmatch(form.strip(" $")):
        names = [(match[1] or match[2]).lower() for match in _BASE_ASKED.finditer(pair.prompt[:10_000])]
        return f"{form.strip(' $')}_{{{based[2]}}}" if based[2] in [_NAMED_BASES.get(name, name) for name in names] else form
    if not isinstance(gold.answer, Value) or not _is_number(gold) or not _SEPARATOR.search(form):
        return form
    if "," in form and "." in gold.text and "," not in gold.text:
        form = with_points(form)
    return by_convention(ungrouped(form), Fraction(*gold.answer.tree[1:]), pair.response, pair.prompt)


def _is_number(reading: Reading) -> bool:
    return isinstance(reading.answer, Value) and reading.answer.tree[0] == "num"


def _choice_and_forms(forms: Iterable[str], reply: str, find: str, question: str) -> tuple[Choice | None, str, list[str]]:
    """The choice that a reply states, the reason if it states none, and the forms of its answer."""
    forms, boxes = list(forms), "\\boxed" in reply
    said, why = (in_forms(forms), "") if boxes or find in ("boxed", "whole") else in_prose(reply, question)
    # a value and its letter, each in a box of its own
    if not said and boxes and (last := boxed(reply)) and len(letters(joint(reply) or "")) == 1:
        said = choice(last)
    return said, why, forms
