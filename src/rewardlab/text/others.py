"""Whose answer a text states: its own, or one that it calls wrong or somebody else's. Linear time; nothing raises."""

from __future__ import annotations

import re

from .turns import has

OTHER = re.compile(
    r"\b(?:not|no|never|nor|neither|none|cannot|nothing|unlikely|unrelated|incorrect|wrong|false|least|less|worst|except|mistake\w{0,3}"
    r"|errors?|trap|distractor|decoy|misconception|tempting|second|third|next (?:most|best|likely)|others?|another|alternative"
    r"|differential|opposite|contrary|previous|user|students?|friends?|eliminated|excluded|rejected|discarded)\b|n['’]t\b",
    re.IGNORECASE,
)
"""Words that make what a noun phrase names something else than the answer: the wrong option, the student's answer."""
_PHRASE = re.compile(
    r"(?:^|[.!?:;,\n]|\b(?:the|an?|my|our|this|that|one|another)\b)[\s*_]{0,3}(?:[a-z'’-]{1,20}\s){0,4}$", re.IGNORECASE
)
"""The noun phrase that a mark ends: "a common wrong answer"."""
_ATTRIBUTED = re.compile(
    r"\b(?:many|some|others|people|students|you|one|they|he|she)\s(?:(?:would|might|may|could|will)\s)?(?:[a-z]{1,12}ly\s)?"
    r"(?:say|think|argue|claim|believe|answer|guess|conclude)s?(?:\sthat)?\s(?:the|its|their)\s(?:[a-z]{1,20}\s){0,3}$",
    re.IGNORECASE,
)
_WRONG = re.compile(
    r"\b(?:wrong|incorrect|false|mistaken|erroneous|tempting|trap|naive)[\s*_]{1,3}(?:(?:final|numerical)\s)?"
    r"(?:answer|result|value|solution)\s(?:is|was|would\sbe|equals)\b",
    re.IGNORECASE,
)
_WRONG_SIGNS = ("wrong", "incorrect", "false", "mistaken", "erroneous", "tempting", "trap", "naive")
_STATES = re.compile(r"\\boxed|\b(?:right|correct|true|but|so|while|answer)\b", re.IGNORECASE)
_FOREIGN = re.compile(
    r"(?:\bfalsche[nrs]?|\bmauvaise?|\bincorrect[ao]s?|\bequivocad[ao]|\bнеправильн\w{2,3}|\bневерн\w{2,3}|\bis wrong)\s{0,3}"
    r"(?:the\s)?(?:answer:?\s{0,3})?$",
    re.IGNORECASE,
)
"""The same in other languages, some of which have been put in English by now: 错误答案是."""
_MOST = 20
_BREAK = re.compile(r"[.!?](?=\s|$)|\n")


def of_another(text: str, mark: int) -> bool:
    """Whether the mark of an answer at this place belongs to another answer than the reply's own, as in "the wrong option is"."""
    start = max(0, mark - 60)
    phrase = _PHRASE.search(text, start, mark)
    other = (phrase and OTHER.search(phrase.group())) or _ATTRIBUTED.search(text, start, mark) or _FOREIGN.search(text, start, mark)
    return bool(other)


def without_wrong(text: str) -> str:
    """The text without its last sentences that tell a wrong answer: "A common wrong answer is 5." """
    # most replies tell none, and finding that out takes less time than the pattern
    if not has(text, _WRONG_SIGNS):
        return text
    for match in reversed(list(_WRONG.finditer(text))[-_MOST:]):
        start = max(text.rfind(end, 0, match.start()) for end in (". ", "! ", "? ", "\n")) + 1
        stop = end.end() if (end := _BREAK.search(text, match.end())) else len(text)
        # a sentence that goes on to state the right answer is kept
        if not _STATES.search(text, match.end(), stop):
            text = text[:start] + text[stop:]
    return text
