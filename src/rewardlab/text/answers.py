"""Extract the answer of a reply from one line or formula. `numbers.py` reads the numbers.

Nothing here raises, whatever the text, and every pattern runs in linear time: replies are untrusted, so a pattern must not
backtrack. Verifiers whose answers may span several lines (lists, graphs, choices) use `replies.py` instead.
"""

from __future__ import annotations

import re
import unicodedata
from collections import deque
from collections.abc import Iterable, Iterator

from .asides import without_asides
from .boxes import braced, joint
from .boxes import last as last_box
from .claims import claim
from .corrections import corrected
from .languages import in_english
from .layouts import in_sentence, under_heading
from .marks import after_answer, marks_of, states, taken_back
from .numbers import IN_TEXT, LONGEST, alone, denied, last_number
from .objects import told
from .offers import adds
from .others import without_wrong
from .revoked import revoked
from .spelled import in_digits
from .stacked import stack
from .turns import own_turn, without_courtesies

NO_ANSWER = "no answer found"
"""The reason of a verdict on a reply in which none was found. Such replies are counted apart: a right answer may be among them."""

_GLOSS = re.compile(r"\s\((?!\s?mod)[^()]{0,60}[A-Za-z]{2}[^()]{0,60}\)[\s.*$]{0,3}$")
_INLINE = (("\\(", "\\)"), ("$$", "$$"), ("$", "$"), ("\\[", "\\]"))
# a comma before a further answer begins no reason, one before "2 more than 10" does
_REASONS = re.compile(
    r"\b(?:because|since|as|so|which|where|when|after)\b|"
    r",(?![0-9])(?!\s?[-−$\\]{0,2}[0-9][0-9.,/]{0,20}%?[\s$]{0,3}(?:$|[.,;)]|(?:and|or)\b))|;"
)
_SENTENCE = re.compile(r"[.!?](?=\s|$)")
_DIGIT = re.compile("[0-9]")
_PROSE = re.compile(r"(?<![\\A-Za-z{])[A-Za-z]{2,}\s[a-z]{2,}")
_CHANGED = re.compile(
    r"\b(?:not|no|never|neither|cannot|least|most|less|more|than|between|minus|plus|negative|half|third|quarter|twice|double|triple|but|"
    r"except|squared|cubed|times|wrong|incorrect|over|under|above|below|or|if|maybe|perhaps)\b|n't|\?",
    re.IGNORECASE,
)
_NEGATION = re.compile(r"\b(?:not|never|neither|nor|cannot)\b|n't\b", re.IGNORECASE)
_AROUND = re.compile(r"^(?:so|thus|hence|therefore|then)\b[,:]?\s{0,3}|[,;.]?\s{0,3}(?:Q\.?E\.?D\.?|∎)$", re.IGNORECASE)
_MINUS = re.compile(r"^(?:minus|negative)\s", re.IGNORECASE)
_TEXT = re.compile(r"\\(?:text|mathrm|textbf)\{([^{}]{0,100})\}")


def boxed(text: str) -> str | None:
    r"""The content of the last \boxed{...}, with balanced braces; None if there is none or it is not closed."""
    return last_box(text)


def first_sentence(stated: str) -> str:
    """The first sentence of what follows a mark, if it has a digit; else all of it: 19 of "19. Check: 9 * 2 = 18." """
    end = _SENTENCE.search(stated)
    sentence = stated[: end.start()] if end else stated
    return sentence if _DIGIT.search(sentence) else stated


def final_answer(text: str) -> str | None:
    r"""The answer of a reply: its last \boxed, else what follows "answer is", else its last number, else its last line.

    Of a reply with <answer> tags it is that of what stands between the last ones.
    """
    text = between_tags(text)
    stated = boxed(text) or after_answer(text) or last_number(text)
    if stated:
        return stated
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else None


def after_thinking(reply: str) -> str:
    """A reply without its thinking: the text after the last </think>; empty if a <think> is not closed."""
    if "think>" not in reply:
        return reply
    visible = reply.rpartition("</think>")[2]
    return "" if "<think>" in visible else visible


def own_words(reply: str, golds: Iterable[str] = ()) -> str:
    r"""What a reply says itself: without thinking, and without turns that it invents after its answer, all boxes as \boxed{...}.

    Of a reply with <answer> tags it is what stands between the last ones. What marks its answer in another language is put in
    English (`languages.py`), and an answer that is corrected is the later one (`corrections.py`). golds: where one of them has an
    arrow, it is a part of answers.
    """
    arrows = not any("->" in gold or "→" in gold for gold in golds)
    return between_tags(corrected(in_english(braced(told(own_turn(after_thinking(reply))))), arrows))


def between_tags(text: str) -> str:
    """What stands between the last <answer> and </answer>, or up to the end if it is not closed; the text itself without a tag.

    Where an answer is marked after the tags, that is the one which counts: they may be those of an instruction that is repeated.
    """
    if "<answer>" not in text:
        return text
    inside, _, rest = text.rpartition("<answer>")[2].partition("</answer>")
    return rest if states(rest) else inside.strip()


def statements(text: str, last: bool = False, question: str = "") -> Iterator[str]:
    r"""Candidate readings of a reply's answer, to be tried in order.

    If the reply has a \boxed, only its content, with that of boxes joined to it. Else, if it says "answer is", what follows: in
    full, then cut shorter. Else the reply itself if it is a single line, then what its last sentence says (last: or its last
    formula or number). Nothing if the last box is not closed or the answer is denied, taken back or somebody else's: of a person
    whom the question does not ask about.
    """
    text = without_wrong(text, question)
    if "\\boxed" in text:
        forms: Iterable[str | None] = (joint(text),) if not taken_back(text) else ()
    elif line := after_answer(text, marks := marks_of(text)):
        forms = _of_line(without_asides(line, question)) if not taken_back(text, marks) else ()
    else:
        forms = _of_text(in_sentence(without_asides(without_courtesies(text), question)), last)
    return _in_digits_too(form for form in forms if form)


def _in_digits_too(forms: Iterable[str]) -> Iterator[str]:
    """The forms, and after them 42 for "forty-two"."""
    spelled = []
    for form in forms:
        yield form
        # most forms are no words
        if form[-1] in ".*_" or form[-1].isalpha():
            spelled.append(form)
    yield from (digits for form in spelled if (digits := in_digits(form)) != form)


def _of_line(line: str) -> Iterator[str]:
    end = _SENTENCE.search(line)
    # "Is the answer 5?" states nothing
    if end and end.group() == "?":
        return
    yield line
    if adds(line[:1000], end.end() if end else len(line)):
        return
    if gloss := _GLOSS.search(line[:1000]):
        yield line[: gloss.start()].rstrip()
    sentence = (line[: end.start()] if end else line)[:1000]
    if _PROSE.search(sentence) and (said := claim(sentence)):
        yield said
    yield from _shorter(sentence)


def _of_text(text: str, last: bool) -> Iterator[str | None]:
    if not last and (below := stack(text)) and below.one_name():
        yield below.told()
        return
    text = _unwrapped(text)
    line = under_heading(text).strip()
    if line and len(line) <= LONGEST and "\n" not in line and not _PROSE.search(line := _AROUND.sub("", line)):
        yield line
    said = claim(text, last)
    yield _last_expression(text) if said is None else said


def _unwrapped(text: str) -> str:
    """The text with its last line behind the one before it, if that ends in "or" or "and"."""
    text = text.rstrip()
    at = text.rfind("\n")
    before = text[max(0, at - 20) : at].rstrip(" \n,") if at > 0 else ""
    return f"{text[:at].rstrip()} {text[at + 1 :].lstrip()}" if before.endswith((" or", " and")) else text


def _shorter(sentence: str) -> Iterator[str]:
    yield sentence
    if formulas := _formulas(sentence):
        before, _, after = sentence.partition(formulas[0])
        # two formulas in one sentence: we cannot tell which is the answer
        denied = _NEGATION.search(before) or revoked(after.lstrip(" $\\)]"), 0)
        yield from formulas if len(formulas) == 1 and not denied else ()
        return
    claim = _REASONS.split(sentence, maxsplit=1)[0].strip()
    yield claim
    number_matches = list(IN_TEXT.finditer(claim))
    # in "twice 5" or "at least 5" the number alone is not the answer
    if (
        len(number_matches) == 1
        and not set("\\{^=(") & set(claim)
        and not _CHANGED.search(claim)
        and alone(claim, *number_matches[0].span())
    ):
        yield _with_percent(claim, *number_matches[0].span())


def _formulas(text: str) -> list[str]:
    """The formulas between maths delimiters."""
    for opened, closed in _INLINE:
        if opened == closed and text.count(opened) % 2 == 0:
            inside = text.split(opened)[1::2]
        else:
            inside = [part.partition(closed)[0] for part in text.split(opened)[1:] if opened != closed and closed in part]
        if inside:
            return [part.strip() for part in inside]
    return []


def _last_expression(text: str) -> str:
    """The last formula between delimiters, or the last number if it comes later; for LaTeX without delimiters, its line's end."""
    formula, end = _last_formula(text)
    last_match = next(iter(deque(IN_TEXT.finditer(text.replace("−", "-")), maxlen=1)), None)
    if formula and (last_match is None or last_match.end() <= end):
        return "" if denied(text, text.rfind(formula, 0, end), end) else formula
    if last_match is None:
        return ""
    if alone(text, *last_match.span()):
        return _with_percent(text, *last_match.span())
    if denied(text, *last_match.span()):
        return ""
    start = text.rfind("\n", 0, last_match.start()) + 1
    line = text[start:].partition("\n")[0][:LONGEST]
    return line.rpartition(" is ")[2].rpartition(": ")[2]


def _last_formula(text: str) -> tuple[str, int]:
    latest = ("", -1)
    for opened, closed in _INLINE:
        end = text.rfind(closed)
        start = text.rfind(opened, 0, end) if end > 0 else -1
        if start >= 0 and end > latest[1]:
            formula = text[start + len(opened) : end].strip()
            if formula and len(formula) <= 1000 and not _PROSE.search(formula):
                latest = (formula, end + len(closed))
    return latest


def _with_percent(text: str, start: int, end: int) -> str:
    sign = next((sign for sign in ("%", "\\%", " %", " percent") if text.startswith(sign, end)), "")
    return _MINUS.sub("-", text[start:end].rstrip(",")) + sign


def tidy(text: str) -> str:
    """A text normalised for comparison: NFC, lower case, single spaces, no maths delimiters, quotes or full stop at its end."""
    text = (
        _TEXT.sub(r"\1", unicodedata.normalize("NFC", text))
        .replace("\\left", "")
        .replace("\\right", "")
        .replace("dfrac", "frac")
        .replace("tfrac", "frac")
    )
    for clutter in ("\\,", "\\!", "\\;", "\\ ", "$", "*", "`", '"'):
        text = text.replace(clutter, "")
    return " ".join(text.lower().split()).rstrip(". ")
