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
_PERSON = (
    r"(?:students?|classmates?|friends?|roommates?|teachers?|users?|textbooks?|chatgpt|calculators?"
    r"|someone|somebody|(?:other|many|most|some)\speople|others)"
)
_ADVERB = r"(?:(?:[a-z]{1,12}ly|often|also|once|first|always|even)\s)?"
_SAYS = (
    r"(?:(?:would|might|may|could|will|must|did|does|has|had)\s)?"
    rf"{_ADVERB}(?:sa(?:y|ys|id)|thinks?|thought|argues?d?|claim(?:s|ed)?|believed?s?|answer(?:s|ed)?|guess(?:es|ed)?|conclude[sd]?|insist(?:s|ed)?"
    r"|(?:got|obtained|wrote|put|computed|found)(?=\s[$*(\\]{0,4}(?:boxed\s?\{)?[-−]?[0-9][0-9.,/]{0,12}[$*)}]{0,4}(?:[.,;!]|\s(?:as|for)\b|$)))"
)
_ANSWER = r"(?:(?:final|numerical|own|last|original|initial)\s)?(?:answer|result|value|solution|guess|response|reply)"
_IS = r"(?:\s(?:is|was|would\sbe|might\sbe|could\sbe|equals)\b|[*_]{0,3}\s?[:=])"
_WRONG = re.compile(
    rf"\b(?:wrong|incorrect|false|mistaken|erroneous|tempting|trap|naive)[\s*_]{{1,3}}{_ANSWER}{_IS}"
    rf"|\b(?P<owner>{_PERSON})(?:['’]s?)?[\s*_]{{1,3}}{_ANSWER}{_IS}"
    rf"|\b(?P<pronoun>his|her|their)\s(?:(?:final|own|original|initial)\s)?answer{_IS}"
    rf"|\b(?<!each )(?<!every )(?P<speaker>{_PERSON})\s{_SAYS}\b"
    r"|\b(?:wrong|incorrect|false|untrue|not\s(?:true|right|correct|the\scase)|doubt|deny|denies|not\s(?:think|believe|say|claim|mean)|(?<=n['’]t\s)(?:think|believe|say|claim|mean)"
    r"|no\s?(?:one|body)\s(?:thinks|says|believes))\s(?:(?:to\s)?(?:say|claim|think|assume|conclude|believe)\s)?(?:that\s)?(?:(?:the|my|our)\s)?"
    rf"(?:{_ANSWER}|it|[a-z]){_IS}",
    re.IGNORECASE,
)
"""A wrong answer, somebody else's, or that it is not so that this is the answer."""
_WRONG_SIGNS = (
    "wrong", "correct", "false", "mistak", "erron", "tempting", "trap", "naive", "true", "think", "liev", "claim", "doubt",
    "deny", "denies", "n't ",
    "n’t ", "not ", "student", "mate", "friend", "teacher", "user", "textbook", "gpt", "calculator", "some", "people", "others",
    "nobody", "no one",
    "is answer", "r answer", "is final answer", "r final answer",
)  # fmt: skip
_STATES = re.compile(r"\\boxed|\b(?:right|correct|true|but|so|while|answer)\b", re.IGNORECASE)
_FOREIGN = re.compile(
    r"(?:\bfalsche[nrs]?|\bmauvaise?|\bincorrect[ao]s?|\bequivocad[ao]|\bнеправильн\w{2,3}|\bневерн\w{2,3}|\bis wrong)\s{0,3}"
    r"(?:the\s)?(?:answer:?\s{0,3})?$",
    re.IGNORECASE,
)
"""The same in other languages, some of which have been put in English by now: 错误答案是."""
_MOST = 20
_BEFORE, _BEHIND, _TAIL = 80, 40, 160
"""Characters that are looked at before and behind the last place which marks an answer, or at the end of a reply without one."""
_OWN_BOX = re.compile(r"\W{0,12}\\boxed\s?\{(?:[^{}]|\{[^{}]{0,100}\}){0,200}\}")
_THEIRS = re.compile(
    rf"(?:[\s,:]{{1,3}}that)?\s(?:the|its|it|their)\s?(?:[a-z]{{1,12}}\s){{0,2}}?(?:{_ANSWER})?{_IS}", re.IGNORECASE
)
"""What somebody says the answer to be."""
_VALUE = re.compile(r"[0-9:=]|\\boxed|\b(?:is|are|was)\b")
_BREAK = re.compile(r"[.!?](?=\s|$)|\n")


def of_another(text: str, mark: int) -> bool:
    """Whether the mark of an answer at this place belongs to another answer than the reply's own, as in "the wrong option is"."""
    start = max(0, mark - 60)
    phrase = _PHRASE.search(text, start, mark)
    other = (phrase and OTHER.search(phrase.group())) or _ATTRIBUTED.search(text, start, mark) or _FOREIGN.search(text, start, mark)
    return bool(other)


def without_wrong(text: str, question: str = "") -> str:
    """The text without its last sentences that tell a wrong answer or somebody else's: "A common wrong answer is 5."

    Who is asked about in the question is nobody else.
    """
    for _ in range(_MOST):
        first, end = _where(text)
        # most replies tell none, and finding that out takes less time than the pattern
        if not has(text[first:end], _WRONG_SIGNS):
            break
        told = [span for match in _WRONG.finditer(text, first, end) if (span := _told_alone(text, match, question))]
        if not told:
            break
        start, stop = told[-1]
        text = text[:start] + text[stop:]
    return text


def _where(text: str) -> tuple[int, int]:
    """Where a text may say whose its answer is: around the last place which marks one, else in its last sentence."""
    marked = max(text.rfind("\\boxed"), text.rfind("nswer"))
    if marked >= 0:
        return max(0, marked - _BEFORE), marked + _BEHIND
    stop = len(text.rstrip(" \n.!*$"))
    return max(0, stop - _TAIL, text.rfind(". ", 0, stop), text.rfind("\n", 0, stop)), len(text)


def _told_alone(text: str, match: re.Match[str], question: str) -> tuple[int, int] | None:
    """Where the sentence of a match is, unless it goes on to state the right answer, or is what the question asks for."""
    if _is_asked(match, question):
        return None
    own = _OWN_BOX.match(text, match.end())
    theirs = _THEIRS.match(text, match.end())
    begin = own.end() if own else theirs.end() if theirs else match.end()
    own = _OWN_BOX.match(text, begin)
    begin = own.end() if own else begin
    start = max(text.rfind(end, 0, match.start()) for end in (". ", "! ", "? ", "\n")) + 1
    stop = end.end() if (end := _BREAK.search(text, begin)) else len(text)
    right = _STATES.search(text, begin, stop)
    return None if right and _VALUE.search(text, right.start(), stop) else (start, stop)


def _is_asked(match: re.Match[str], question: str) -> bool:
    """Whether the question is about the person whose answer it is."""
    asked = question.lower()
    if " ".join(match.group().lower().split()[:2]) in asked:
        # the penalty for a wrong answer is 2 points
        return True
    who = match["owner"] or match["speaker"]
    return bool(who and who.lower().rstrip("s") in asked) or bool(match["pronoun"] and "answer" in asked)
