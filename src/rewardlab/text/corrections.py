r"""Read what a reply corrects its answer to: The answer is 42. Wait, no, it's 43. Linear time; nothing raises.

What follows a stated answer is cut at its cues. Some take the answer back ("oops", "I forgot one"), some look at it again ("wait",
"let me recheck", "let me verify"), and some are plain words unless a value follows at once ("actually, 43"; "no, 43"). What is said
to be the answer behind a cue replaces the one before it; a check that confirms leaves it; where neither is clear there is none.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from fractions import Fraction

from .boxes import boxes
from .claims import claim
from .cues import (
    ASKED,
    ASSERTED,
    AT_END,
    BARE,
    CONDITION,
    CONFIRMS,
    CUE,
    CUES,
    DIRECT,
    ENDS_THERE,
    LAST,
    LATER,
    LOOSE,
    NAMED,
    OPTION,
    OPTION_ASSERTED,
    STRUCK,
    TURNED,
    opens_clause,
)  # fmt: skip
from .marks import marks_of
from .numbers import exclaimed, number, numbers_of
from .turns import has, of_others, retracted, without_courtesies

MOST = 30
"""Most cues that are looked at, from the end."""
_LONGEST = 400
_CONFIRMED = "confirmed"
_ANSWER = "The answer is "
_DIGIT = re.compile("[0-9]")
_NUMERAL = re.compile(r"[0-9][0-9,]{0,30}(?:\.[0-9]{1,20})?")
_NEAR = 120
"""Characters between a name and a cue that corrects it."""
_JUDGED = re.compile(r"\b(?:correct|incorrect|right|wrong|only|partially|clearly)\b", re.IGNORECASE)
_LETTER = re.compile(r"(?<!\\)(?<!\\text)(?<!\\textbf)(?<!\\mathrm)(?<![^\W_])[^\W\d_](?![a-z]{1,8}\{)")
_SENTENCE = re.compile(r"[.!?](?=\s|$)")
_SAYS = re.compile(r"\w")
_OPTION = re.compile(r"[\s*_:$(]{0,6}(?:\\text\s?\{)?[\s(]?(?:[B-J](?![\w'’])|A(?=[\s*_$})]{0,4}(?:[.,;:!)]|$|because|as|since)))")


def corrected(text: str, arrows: bool = True) -> str:
    """The text; "The answer is 43." where it corrects its answer to that; "" where it takes it back and no other is clear.

    arrows: one arrow between two numbers corrects the first; an answer may have arrows of its own.
    """
    if "~~" in text or "<del>" in text:
        text = STRUCK.sub(" ", text)
    # most replies end in their box, and finding that out takes less time than finding all boxes
    if (box := text.rfind("\\boxed")) >= 0 and not has(text[box:], CUES):
        return text
    found = _stated(text)
    if not found:
        return text
    stated, start = found
    cued = has(text[start:], CUES)
    cues = [*_cues(text, start)][-MOST:] if cued else []
    if cues:
        text = without_courtesies(text)
        cues = [cue for cue in cues if cue.end() <= len(text)]
    stated = stated or text[start : cues[0].start() if cues else len(text)].lstrip(" *_:\n").partition("\n")[0][:_LONGEST]
    said = _heard(text, stated, start, cues, arrows)
    if said == _CONFIRMED and retracted(text[start:]):
        return text[: _sentence_end(text, start, cues[0].start())]
    return _without_cue(text, stated, start) if said in (None, _CONFIRMED) else said


def _heard(text: str, stated: str, start: int, cues: list[re.Match[str]], arrows: bool) -> str | None:
    """What is said behind the cues, one after the other, as `_said` tells it of one."""
    # A -> C -> B is no correction
    arrows = arrows and sum(bool(cue["arrow"]) for cue in cues) == 1
    outcome: str | None = None
    for cue, end in zip(cues, [*(later.start() for later in cues[1:]), len(text)][: len(cues)], strict=True):
        said = _said(cue, stated, text[cue.end() : end]) if arrows or not cue["arrow"] else None
        if said == _CONFIRMED:
            outcome = outcome or said
        # what is said far from a name, of options say, is about something else
        elif said or (said is not None and (_DIGIT.search(stated) or (_names(stated) and cue.start() - start <= _NEAR))):
            stated = outcome = said
    return outcome


def _names(stated: str) -> bool:
    """Whether it names an answer that can be taken back: "the answer is only partially right" names none."""
    return bool(_SAYS.search(stated)) and not _JUDGED.search(stated)


def _without_cue(text: str, stated: str, start: int) -> str:
    """The same where a later sentence states another number and no word says that it corrects the one before."""
    if len(text) - start < 6 or not _DIGIT.search(text, start) or not _DIGIT.search(stated):
        return text
    first = (stated if "\\boxed" in text else _SENTENCE.split(stated)[0]).strip(" $*")
    own = number(first)
    # 42 says of 6 * 7 what it is, and 120 of 2 hours
    if own is None:
        return text
    for pattern in (LATER, LAST) if first[-1:].isdigit() else (LATER,):
        found = [
            match
            for match in pattern.finditer(text, start)
            if not CONDITION.search(text, max(start, match.start() - 60), match.end())
        ]
        if found and own not in numbers_of(found[-1]["value"]):
            return f"{_ANSWER}{found[-1]['value']}." if pattern is LATER else ""
    return text


def _sentence_end(text: str, start: int, end: int) -> int:
    """Where the last whole sentence between two places ends; the second place if there is none."""
    ends = [at + 1 for sign in (". ", "! ", "? ", "\n") if (at := text.rfind(sign, start, end)) >= 0]
    return max(ends, default=end)


def _stated(text: str) -> tuple[str, int] | None:
    """What a text states as its answer, in a box, in tags or behind a mark, and where that ends; of a mark what follows it."""
    tag = text.rfind("</answer>")
    if "\\boxed" in text:
        found = boxes(text)
        return (found[-1].content, max(found[-1].end, tag + 9)) if found else None
    marks = marks_of(text)
    if tag >= 0 and not (marks and marks[-1].start() > tag):
        return text[max(0, text.rfind("<answer>", 0, tag), tag - _LONGEST) : tag].removeprefix("<answer>"), tag + 9
    return ("", marks[-1].end()) if marks else None


def _cues(text: str, start: int) -> Iterator[re.Match[str]]:
    """The cues behind a stated answer. "Wait, but actually" is one cue, and "but" goes on from no other one."""
    last = None
    for cue in CUE.finditer(text, start):
        if not (cue["strong"] or cue["arrow"] or cue["refused"] or opens_clause(text, cue.start())):
            continue
        if (cue["denial"] and of_others(text, cue.start())) or (cue["turn"] and last is not None):
            continue
        if last is not None and not cue["strong"] and not cue["weak"] and not _SAYS.search(text, last, cue.start()):
            continue
        last = cue.end()
        yield cue


def _said(cue: re.Match[str], stated: str, rest: str) -> str | None:
    """What stands behind a cue: "The answer is 43.", that the answer is confirmed, "" for none that is clear, None for nothing."""
    own = numbers_of(stated[:_LONGEST])
    if cue["refused"] and not own & numbers_of(cue.group()):
        return None
    same = bool(own & _numerals(rest))
    if (at := _direct(cue, stated, rest, same)) is not None:
        return _ANSWER + exclaimed(rest[at:].lstrip(" :"))
    if not _DIGIT.search(stated) and (name := _named(cue, stated, rest)):
        return name
    withdrawn = bool(cue["strong"]) or retracted(rest[:_LONGEST])
    if CONFIRMS.search(rest) and not cue["word"] and (same or not withdrawn):
        # is it 43? Yes. And 6 * 7 = 43, correct
        doubtful = not same and not cue["check"] and (ASKED.search(rest) or "=" in rest)
        return "" if doubtful else _CONFIRMED
    return _computed(cue, rest, withdrawn, own)


def _direct(cue: re.Match[str], stated: str, rest: str, same: bool) -> int | None:
    """Where a value or an option begins that is said to be the answer: at once behind the cue, or at last."""
    option = bool(_OPTION.match(stated)) and not cue["arrow"]
    at_once = DIRECT.match(rest) or (option and OPTION.match(rest))
    places = [at_once.end()] if at_once else []
    if not places and (bare := BARE.match(rest)):
        places = [bare.start("value")]
    if not places and not (cue["check"] and "=" in rest and same and CONFIRMS.search(rest)):
        places = [found.end() for found in (*ASSERTED.finditer(rest), *(OPTION_ASSERTED.finditer(rest) if option else ()))]
        places += [found.start() for found in TURNED.finditer(rest) if found["value"][-1].isdigit() or option]
    # "but" may go on to something else
    if places and cue["turn"] and (CONDITION.search(rest) or not ENDS_THERE.match(rest, max(places))):
        return None
    return max(places, default=None)


def _computed(cue: re.Match[str], rest: str, withdrawn: bool, own: set[Fraction]) -> str | None:
    """What a text behind a cue comes to that says of nothing that it is the answer."""
    said = claim(rest) if _DIGIT.search(rest) else None
    same = bool(own & _numerals(rest))
    if withdrawn:
        return f"{_ANSWER}{said}." if said else ""
    if cue["check"] or cue["word"]:
        goes_on = cue["word"] and not cue["turn"] and not same and ("=" in rest or AT_END.search(rest))
        return f"{_ANSWER}{said}." if said and goes_on else None
    if not said:
        return "" if _DIGIT.search(rest) and not same else None
    if same:
        # 42 + 1 = 43 may check the answer or go on from it
        return None if numbers_of(said) <= own else ""
    return f"{_ANSWER}{said}." if "=" in rest or LOOSE.search(rest) else ""


def _numerals(text: str) -> set[Fraction]:
    """The numbers in the end of a text, and those that they consist of: 7 and 14 as well as 1/2 of 7/14."""
    text = text[-2 * _LONGEST :]
    return numbers_of(text) | {Fraction(found.replace(",", "")) for found in _NUMERAL.findall(text)}


def _named(cue: re.Match[str], stated: str, rest: str) -> str | None:
    """The name that the answer is said to be: it's Lyon. It begins as the one before it does, in a capital or not."""
    words, first = cue.group(), _LETTER.search(stated)
    if cue["check"] or not first or len(stated) > _NEAR or _OPTION.match(stated):
        return None
    found = NAMED.match(words + rest, len(words))
    if (
        not found
        or first[0].isupper() != found["said"][0].isupper()
        or len(found["said"].split()) > 4
        or _JUDGED.search(found["said"])
    ):
        return None
    return f"{_ANSWER}{found['said'].strip(' *_')}."
