"""Read the option that a reply concludes with in a sentence: the best answer seems to be (B); this corresponds to option B.

Only the last paragraph is read, and it must name one letter and no other. A sentence that denies, doubts, compares, asks, or
tells what somebody else says, concludes nothing.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from rewardlab.text.others import OTHER
from rewardlab.text.replies import Claim

LONGEST = 2_000
"""Longest paragraph that is read, in characters."""
_MARKUP = re.compile(r"\\(?:boxed|text(?:bf|it|rm)?|math(?:rm|bf)|mbox)\s?\{|\\[()\[\]]|[*_`${}\[\]]")
_LISTED = re.compile(r":\s?\n\s{0,3}(?:[-•]\s)?")
_FIVEFOLD = re.compile(r"(?:^|\n|\b(?:answer|is):?\s)[\s*_`$\"“{}\[\]]{0,8}(?:\\text\s?\{)?([A-Z])\1{4}[\s.*_`$\"”{}\[\])\\]{0,8}$")
_FIVE = re.compile(r"\b([A-Z])\1{4}\b")
"""Some exams have the letter written five times."""
_SENTENCE = re.compile(r"(?<=[.!?])\s+(?=[A-Z(\"“])|\n+")
_LETTER = re.compile(
    r"\(([A-Z])\)|(?<![\w'’.])([B-HJ-Z])(?![\w'’+#])|(?:[Oo]ption|[Cc]hoice|[Aa]nswer)\s([AI])(?![\w'’])"
    r"|(?<![\w'’.])([AI])(?=[.:)]|[,;]\s|\s?$|\s(?:is|was|or|and|because|since)\b)"
)
"""A letter that may be an option's: A and I are words as well."""
_NOUN = r"(?:answers?|options?|choices?|guess|match|fit|selection|pick|response|letter|statement|conclusion)"
_SURE = r"(?:\s(?:therefore|thus|hence|then|clearly|indeed|still|likely|most likely|very likely|probably|almost certainly))?"
_IS = (
    rf"(?:is|was|would{_SURE} be|must{_SURE} be|should{_SURE} be|has to be|(?:appears|seems|proves|turns out){_SURE} to be|remains)"
)
_OPTION = r"(?:the\s)?(?:(?:answer|option|multiple)[\s-])?(?:option|choice|answer)\s?"
_NAMED = re.compile(
    rf"\b(?:the|my|our)\s(?:[a-z'’-]{{1,20}}\s){{0,6}}?{_NOUN}\b[^.!?;:]{{0,100}}?\b{_IS}{_SURE}:?\s{{0,3}}(?:{_OPTION})?$",
    re.IGNORECASE,
)
"""my best guess is ..., the best answer from the given options appears to be ..."""
_BEST = re.compile(
    rf"\b(?:the|my|our)\s(?:correct|best|right|closest|most\s[a-z]{{3,20}})\s[^.!?;:]{{1,120}}?\b{_IS}{_SURE}:?\s{{0,3}}$",
    re.IGNORECASE,
)
"""the correct pair is (J), the most accurate of the statements is ..."""
_LINKED = re.compile(
    r"(?:\b(?:this|that|it|which|the (?:correct |right |final )?(?:answer|result)|our (?:answer|result|value))"
    r"|(?:^|,\s|\b(?:that|so|thus|hence)\s)[0-9.%]{1,12})\s(?:(?:also|closely|most closely|best|directly|exactly)\s)?"
    r"(?:corresponds|matches|aligns|agrees|fits|equals|is(?: closest| consistent)?)"
    rf"\s(?:(?:best|well|most closely|closely|exactly|perfectly|directly)\s)?(?:(?:to|with)\s)?{_OPTION}$",
    re.IGNORECASE,
)
"""This corresponds to option ..., which is choice ..."""
_FAILS = re.compile(
    r"\b(?:fails?|errors?|excluded|trap|contradict\w{0,4}|ignor\w{1,3}|another|revers\w{1,2}|overlook\w{0,3}|forg[eo]t\w{0,4}|discard\w{0,2}"
    r"|impossible|invalid|not|wrong|incorrect)\b|n['’]t\b",
    re.IGNORECASE,
)
"""What is said of an option that a wrong way leads to."""
_CORRECT = re.compile(r"^\)?\s(?:[^.;:?!]{1,40}?\s)?is\s(?:the\s)?(?:correct|right)\b", re.IGNORECASE)
_CHOSEN = re.compile(
    r"\b(?:i|we)(?:\s(?:would|will|must|should)|['’](?:d|ll))?\s(?:choose|chose|select|pick|go with|answer with|conclude with)\s"
    rf"(?:{_OPTION})?$",
    re.IGNORECASE,
)
_OPENS = re.compile(rf"(?:^|\bthat\s|\b(?:so|thus|hence|therefore)\b,?\s|,\s)(?:{_OPTION})?$", re.IGNORECASE)
_FITTING = "appropriate|accurate|likely|plausible|suitable|correct|consistent|fitting|logical|reasonable"
_IS_RIGHT = re.compile(
    rf"[):.]{{0,2}}\s(?:[^.;:?!]{{1,80}}?\s)?{_IS}{_SURE}\s(?:the|our)\s(?:(?:correct|best|right|closest|most\s[a-z]{{3,20}})\s(?:{_NOUN}|one)\b"
    rf"|(?:closest|most\s(?:{_FITTING}))(?=[.,]|$|\s(?:to|as|since|because|of|among)\b))",
    re.IGNORECASE,
)
"""(C) 6 is the correct answer"""
_AT_END = re.compile(
    rf"\b(?:the|my|our)\s(?:[a-z'’-]{{1,20}}\s){{0,4}}?{_NOUN}\s{_IS}{_SURE}:?\s(?P<text>[^.!?;:()]{{2,80}}?)\s$", re.IGNORECASE
)
_LINKING = re.compile(
    r"\b(?:of|in|to|than|by|from|with|for|but|except|like|as|and|or|option|choice|answer|on|at|under|see|the|an?)$", re.IGNORECASE
)
_SETTLES = re.compile(
    r"\s*$|[).:,;–—]|\s(?:because|since|as|for|due|given|(?:in|from|among|of)\s(?:the|our|these)\s(?:[a-z]{1,12}\s)?(?:choices|options|list))\b"
)
_ENDS = re.compile(r"\)[\s\"”.!]*$")
UNSURE = re.compile(
    r"\b(?:whether|if|could|might|may|maybe|perhaps|possibly|suppose|assum\w{1,6}|thought|depends?|either|some|many|claim(?:s|ed)?|sa(?:y|ys|id)"
    r"|argues?|believes?|people|popular"
    r"|first (?:guess|thought|answer|choice|impression|instinct)"
    r"|initial(?:ly)?|earlier|original(?:ly)?|eliminat(?:e|ing)|exclud(?:e|ing)|reject(?:ing)?|discard"
    r"|rul(?:e|ing) out|avoid|instead|rather|unlike|unless|na[iï]ve)\b|\?",
    re.IGNORECASE,
)
_TURNS = re.compile(
    r"\b(?:wait|actually|no|not|hmm|correction|however|but|wrong|incorrect|mistake\w*|sorry|recheck|reconsider|instead|or|could|might|may)\b"
    r"|\?|n['’]t\b",
    re.IGNORECASE,
)
_SPOILT = re.compile(
    r"^[)\s.:,;–—(-]{0,4}(?:(?:which|that|this|it|and|but|the|an?|is|was|a common|obviously)\s){0,5}"
    r"(?:trap|distractor|decoy|misconception|mistake|wrong|incorrect|false|not|no|never|out|eliminated|excluded|ruled|rejected)\b|^[^.]{0,3}\?",
    re.IGNORECASE,
)


_ASIDE = re.compile(
    r"^(?:(?:so|thus|hence|therefore),\s)?(?:while|although|(?:even\s)?though|despite|since|because|given|based|considering)\b[^.!?]{1,600},\s"
    rf"(?=(?:the|my|our)\s(?:[a-z'’-]{{1,20}}\s){{0,6}}?{_NOUN}\b)",
    re.IGNORECASE,
)
"""What a sentence concedes or starts from before it concludes: although it is not perfect, ..."""


def concluded(text: str, options: Mapping[str, str]) -> Claim | None:
    """What the last paragraph concludes with, from its letter on; None if it names no option, several, or does not conclude."""
    text = text.rstrip()
    if (same := _FIVEFOLD.search(text, max(0, len(text) - 60))) and same[1] in options:
        before = text[: same.start()].rstrip()
        said = before[before.rfind("\n") + 1 :]
        doubted = len({*_FIVE.findall(text)}) > 1 or OTHER.search(said) or UNSURE.search(said) or _FAILS.search(said)
        return None if doubted else Claim(text.rfind("\n", 0, same.start(1)) + 1, False, same[1])
    start = max(text.rfind("\n\n"), 0)
    if len(text) - start > LONGEST:
        start = text.rfind("\n", len(text) - LONGEST)
    if start < 0:
        return None
    plain = _LISTED.sub(": ", _MARKUP.sub("", text[start:])).strip()
    if len({_of(match) for match in _LETTER.finditer(plain)}.intersection(options)) != 1:
        return None
    sentences = [sentence for sentence in _SENTENCE.split(plain) if sentence.strip()]
    for i in range(len(sentences) - 1, -1, -1):
        named = next((match for match in _LETTER.finditer(sentences[i]) if _of(match) in options), None)
        if named:
            statement, later = _statement(sentences[i], named), " ".join(sentences[i + 1 :])
            sound = (
                statement
                and not (_TURNS.search(later) or _FAILS.search(later))
                and not _names_text(sentences[i], _of(named), options)
            )
            return Claim(start, False, statement) if sound and not _concluded_before(text[:start], _of(named), options) else None
    return None


def _names_text(sentence: str, letter: str, options: Mapping[str, str]) -> bool:
    """Whether a sentence also holds the text of another option: the best guess is London (B)."""
    said = sentence.casefold()
    return any(len(of) > 1 and other != letter and of.casefold() in said for other, of in options.items())


def _concluded_before(text: str, letter: str, options: Mapping[str, str]) -> bool:
    """Whether an earlier sentence concludes with another letter."""
    for sentence in _SENTENCE.split(_MARKUP.sub("", text[-LONGEST:])):
        named = [match for match in _LETTER.finditer(sentence) if _of(match) in options]
        if len({_of(match) for match in named}) == 1 and _of(named[0]) != letter:
            after = sentence[named[0].end(named[0].lastindex or 0) :]
            if _CORRECT.match(after) or _statement(sentence, named[0]):
                return True
    return False


def _of(match: re.Match[str]) -> str:
    return match[1] or match[2] or match[3] or match[4]


def _statement(sentence: str, named: re.Match[str]) -> str:
    """The sentence from its letter on, if it says that this is the answer; else ""."""
    at = named.start(named.lastindex or 0)
    at -= sentence[at - 1 : at] == "("
    before, stated = _ASIDE.sub("", sentence[:at]), sentence[at:]
    if not _concludes(before, stated):
        return ""
    return stated if stated[0] == "(" else f"({stated[0]}){stated[1:].removeprefix(')')}"


def _concludes(before: str, stated: str) -> bool:
    bracketed = stated[0] == "("
    after = stated[2 if bracketed else 1 :]
    if OTHER.search(before) or UNSURE.search(before) or _SPOILT.match(after) or stated.endswith("?"):
        return False
    if _OPENS.search(before) and _IS_RIGHT.match(after):
        return True
    # a lower-case word after a bare letter makes it a word: "my guess is A dog"
    if bracketed or _SETTLES.match(after):
        if _NAMED.search(before) or _CHOSEN.search(before):
            return True
        if _LINKED.search(before):
            return not _FAILS.search(after)
    told = _AT_END.search(before) if _ENDS.match(after) else None
    return bracketed and bool(_BEST.search(before) or (told and not _LINKING.search(told["text"])))
