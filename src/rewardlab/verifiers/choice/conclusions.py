"""Read the option that a reply concludes with in a sentence: the best answer seems to be (B); this corresponds to option B.

Only the last paragraph is read, and it must name one letter and no other. A sentence that denies, doubts, compares, asks, or
tells what somebody else says, concludes nothing.
"""

from __future__ import annotations

import re
from collections.abc import Collection

from rewardlab.text.others import OTHER
from rewardlab.text.replies import Claim

LONGEST = 2_000
"""Longest paragraph that is read, in characters."""
_MARKUP = re.compile(r"\\(?:boxed|text(?:bf|it|rm)?|math(?:rm|bf)|mbox)\s?\{|\\[()\[\]]|[*_`${}\[\]]")
_LISTED = re.compile(r":\s?\n\s{0,3}(?:[-•]\s)?")
_FIVEFOLD = re.compile(r"(?<!\w)([A-Z])\1{4}[\s.*\"”)]{0,4}$")
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
    r"\b(?:corresponds?|matche?s?|aligns?|agrees?|fits?|equals|closest|consistent|(?:this|that|it|which|[0-9.%]{1,12}) is)"
    rf"\s(?:(?:best|well|most closely|closely|exactly|perfectly|directly)\s)?(?:(?:to|with)\s)?{_OPTION}$",
    re.IGNORECASE,
)
"""This corresponds to option ..., we see that 8 is choice ..."""
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


def concluded(text: str, options: Collection[str]) -> Claim | None:
    """What the last paragraph concludes with, from its letter on; None if it names no option, several, or does not conclude."""
    text = text.rstrip()
    if (same := _FIVEFOLD.search(text, max(0, len(text) - 10))) and same[1] in options:
        start = text.rfind("\n", 0, same.start()) + 1
        return None if OTHER.search(text, start, same.start()) else Claim(start, False, same[1])
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
            statement = _statement(sentences[i], named)
            return Claim(start, False, statement) if statement and not _TURNS.search(" ".join(sentences[i + 1 :])) else None
    return None


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
    if (bracketed or _SETTLES.match(after)) and any(pattern.search(before) for pattern in (_NAMED, _LINKED, _CHOSEN)):
        return True
    told = _AT_END.search(before) if _ENDS.match(after) else None
    return bracketed and bool(_BEST.search(before) or (told and not _LINKING.search(told["text"])))
