"""Extract the answer of a reply from one line or formula. `numbers.py` reads the numbers.

Nothing here raises, whatever the text, and every pattern runs in linear time: replies are untrusted, so a pattern must not
backtrack. Verifiers whose answers may span several lines (lists, graphs, choices) use `replies.py` instead.
"""

from __future__ import annotations

import re
import unicodedata
from collections import deque
from collections.abc import Iterable, Iterator

from .boxes import boxes, braced, joint
from .boxes import last as last_box
from .claims import claim
from .languages import in_english
from .layouts import in_sentence, under_heading
from .numbers import IN_TEXT, LONGEST, alone, denied, last_number
from .others import without_wrong
from .revoked import revoked
from .stacked import stack
from .turns import own_turn, retracted, without_courtesies

NO_ANSWER = "no answer found"
"""The reason of a verdict on a reply in which none was found. Such replies are counted apart: a right answer may be among them."""

_MARK = re.compile(
    r"answer[*_}]{0,3}\s{0,3}(?:(?:is|remains|(?:w|sh)ould\sbe|must\sbe|equals)\b|:|=|(?:—\s?|[–-]\s)(?=[$*]{0,3}-?[0-9]))\s{0,3}:?|####",
    re.IGNORECASE,
)
MARKS = 20
"""Most marks of a reply that are looked at, from its end."""
_DOING = ("can ", "to ", "will ", "could ", "must ")
"""Before these, to answer is something to do: "the questions that he can answer: ..."."""
_OPENED = re.compile(r"\\[a-z]{2,8}\s?\{[^{}]{0,14}$")
_STEP = re.compile(r"(?:step|part|case|method|day|option|[0-9]{1,2}[.)])\s", re.IGNORECASE)
_STATED = re.compile(
    r"[\s*_:]{0,9}(?:\$\$[^$]{1,200}\$\$|\$[^$\n]{1,200}\$|\\\([^\n]{1,200}?\\\)|\\\[[^\n]{1,200}?\\\]"
    r"|\([^()\n]{1,60}\)|(?:[^,;:()\[\n–—.!]|[.,](?=[0-9])){1,60}?(?=\s-|\s?[,;:()\[\n–—.!✗✘❌]|\s(?:but|and|which|though|although|yet|is|was)\b|$))"
)
"""What stands behind a mark, up to what is said of it."""
_CLOSINGS = 8
_OPEN_END = re.compile(r"\b(?:and|or|either|oder|ou)[\s*_$,:]{0,6}$", re.IGNORECASE)
"""The end of a line that goes on in the next one."""
_GOES_ON = re.compile(
    r"\s{0,9}[*_>-]{0,3}\s?(?:and|or|oder|ou)\b,?\s(?:(?:maybe|perhaps|possibly|else|also|even|it|could|might|be|is)\s){0,4}"
    r"[*_$(\\]{0,6}(?:[A-Za-z]\s?=\s?)?[-−]?\s?(?:[0-9]|[dt]?frac|sqrt)",
    re.IGNORECASE,
)
"""How the next line adds a value to the line before."""
_GLOSS = re.compile(r"\s\((?!\s?mod)[^()]{0,60}[A-Za-z]{2}[^()]{0,60}\)[\s.*$]{0,3}$")
_DISPLAYS = (("$$", "$$"), ("\\[", "\\]"))
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


def after_answer(text: str) -> str | None:
    """The rest of the line after the last "answer is", "answer:" or "####"; None if there is none or nothing follows it.

    A heading states nothing: "#### Step 2: Add the costs" and "the answer is the sum of these:", with more to come.
    """
    # headings are few, and each is looked at together with all that follows it
    for mark in reversed(_marks(text)[-MARKS:]):
        stated = _after(text, mark)
        if stated is None or not _heading(mark.group(), *stated):
            return stated and stated[0]
    return None


def _marks(text: str) -> list[re.Match[str]]:
    # most replies have none, and finding that out takes less time than the pattern
    if "####" not in text and "answer" not in text.lower():
        return []
    return [mark for mark in _MARK.finditer(text) if not text.endswith(_DOING, max(0, mark.start() - 8), mark.start())]


def _after(text: str, mark: re.Match[str]) -> tuple[str, str] | None:
    """The line or displayed formula after a mark, and the text after that."""
    after_mark = text[mark.end() :].strip(" \t\r\n*_:")
    if below := stack(after_mark, whole=True):
        return below.told(), ""
    for opened, closed in _DISPLAYS:
        if after_mark.startswith(opened) and (end := after_mark.find(closed, len(opened))) > 0:
            formula = after_mark[len(opened) : end].strip()
            return (formula, "") if formula else None
    line, _, rest = after_mark.partition("\n")
    while rest and len(line) < LONGEST and (_OPEN_END.search(line, max(0, len(line) - 12)) or _GOES_ON.match(rest)):
        more, _, rest = rest.lstrip().partition("\n")
        line = f"{line.rstrip()} {more}"
    line = line.strip(" \t\r*_")
    if line.startswith("}") and _OPENED.search(text, max(0, mark.start() - 24), mark.start()):
        # the brace of \textbf{Answer: } 12
        line = line[1:].lstrip(" *_:")
    return (line, rest) if line else None


def _heading(mark: str, line: str, rest: str) -> bool:
    """Whether what follows a mark is the title of what comes after it."""
    if not rest or not rest.strip():
        return False
    if line.endswith(":"):
        return True
    if mark != "####" or (last_number(line) is not None and not _STEP.match(line) and len(line) <= 40):
        return False
    return any(sign.isdigit() for sign in rest)


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


def own_words(reply: str) -> str:
    r"""What a reply says itself: without thinking, and without turns that it invents after its answer, all boxes as \boxed{...}.

    Of a reply with <answer> tags it is what stands between the last ones. What marks its answer in another language is put in
    English (`languages.py`).
    """
    return between_tags(in_english(braced(own_turn(after_thinking(reply)))))


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
    formula or number). question: whose answer is not somebody else's. Nothing if the last box is not closed or the answer is denied or taken back.
    """
    text = without_wrong(text, question)
    if "\\boxed" in text:
        forms: Iterable[str | None] = (joint(text),) if not _taken_back(text) else ()
    elif line := after_answer(text):
        forms = _of_line(line) if not _taken_back(text) else ()
    else:
        forms = _of_text(in_sentence(without_courtesies(text)), last)
    return (form for form in forms if form)


def states(text: str) -> bool:
    """Whether a reply marks its answer, by a box or by "answer is"."""
    return "\\boxed" in text or after_answer(text) is not None


def _taken_back(text: str) -> bool:
    marks: list[re.Match[str]] = []
    start = text.rfind("\\boxed")
    if start >= 0:
        at_once = any(revoked(text, end + 1) for end in _closings(text, start))
    else:
        marks = _marks(text)
        stated = _STATED.match(text, marks[-1].end()) if marks else None
        at_once = bool(stated and revoked(text, stated.end()))
    # most replies take nothing back, and finding that out takes less time than finding the boxes
    if not at_once and not retracted(text[max(start, 0) :]):
        return False
    found = boxes(text)
    end = found[-1].end if found else marks[-1].end() if marks else 0
    return (at_once and (not found or revoked(text, end))) or retracted(without_courtesies(text[end:]))


def _closings(text: str, start: int) -> Iterator[int]:
    """Where the first braces after a place are closed."""
    for _ in range(_CLOSINGS):
        if (start := text.find("}", start + 1)) < 0:
            return
        yield start


def _of_line(line: str) -> Iterator[str]:
    end = _SENTENCE.search(line)
    # "Is the answer 5?" states nothing
    if end and end.group() == "?":
        return
    yield line
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
    line = under_heading(text).strip()
    if line and len(line) <= LONGEST and "\n" not in line and not _PROSE.search(line := _AROUND.sub("", line)):
        yield line
    said = claim(text, last)
    yield _last_expression(text) if said is None else said


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
