"""Whether the last sentence of a reply in prose concludes with an answer in words: Navin earns the most; it is an ellipse."""

from __future__ import annotations

import re

from rewardlab.text.others import OTHER

from .text import words

_SENTENCE = re.compile(r"(?<=[.!?])\s+(?=[A-Z*\\$(])|\n+")
_LEAD = r"(?:^|[,;]\s|\b(?:so|thus|hence|therefore|that)\s)(?:(?:the|a|an)\s)?"
_AFTER = (
    r"(?=\s(?!and\b|or\b|nor\b|not\b|never\b|does\s?n|did\s?n|is\s?n|was\s?n|cannot\b|can't\b|also\b)[a-z])"
    r"(?!\s[a-z]{1,9}\s(?:not|never)\b)"
)
_BEFORE = (
    r"(?<!not )\b(?:is|are|was|were|be|equals|means|called|forms|represents|describes)\s(?:now\s)?"
    r"(?:(?:facing|achieved\sby|held\sby)\s)?"
    r"(?:(?:a|an|the|due)\s)?"
)
_PREDICATE = re.compile(r"\s(?P<said>[^,;:.!?]{1,120}?)(?P<rest>$|[,;:.!?].*|\s(?:with|at|since|because|as)\s.*)", re.DOTALL)
_GOES_ON = re.compile(
    r"\b(?:but|however|so|thus|hence|therefore|while|whereas|yet|although|though|until|unless|if|only|and|or|now|instead|is|are|was|were|wrong|incorrect|false"
    r"|untrue|kidding|joking)\b|\bnot\W{0,3}$",
    re.IGNORECASE,
)
"""Words by which the sentence goes on to say something of something else."""
_COMPARES = re.compile(
    r"\b(?:most|least|best|worst|first|last|more|less|fewer|better|worse|than|[a-z]{2,12}est|[a-z]{2,12}er|excluded|eliminated"
    r"|ruled out|loses?|lost|wrong|incorrect|never|no|nor|hardly|scarcely|barely|almost|nearly|distractor|trap)\b",
    re.IGNORECASE,
)
_MAY = re.compile(r"\b(?:could|might|may)\b")
_TURNS = re.compile(
    r"\b(?:but|however|instead|yet|until|now|although|though|or|wrong|incorrect|false|untrue|kidding|joking|(?:which|who)\s(?:is|was|does|did)(?:n['’]t|\snot))\b"
    r"|\bnot\W{0,3}$",
    re.IGNORECASE,
)
_CLAUSE = re.compile(r"[,;:]|\b(?:so|thus|hence|therefore|but)\b", re.IGNORECASE)
_CONCLUSION = re.compile(r"\b(?:so|thus|hence|therefore|but)\b", re.IGNORECASE)
_TOLD = re.compile(
    r"\b(?:doubt\w{0,3}|den(?:y|ies|ied)|wrong|incorrect|false|untrue|nobody|no\sone|some|many|others|people|sa(?:y|ys|id)|claim\w{0,3}|thinks?|thought|believe\w?"
    r"|argue\w?|students?|unless|whether|according|suppos\w{1,3}|assum\w{1,3}|imagine|pretend\w{0,3}|hopes?|wish\w{0,2})\b",
    re.IGNORECASE,
)
"""Words before a statement that make it somebody else's, or one that is doubted."""
_DOUBTED = re.compile(
    r"\b(?:not|never|neither|nor|cannot|hardly|might|may|maybe|perhaps|could|possibly|if|fail\w{0,3}|refuse\w?|cease\w?|stop\w{0,3}|unlikely|far\sfrom|rather\sthan"
    r"|instead\sof|without|nearly|almost|used\sto|initially|first)\b|n['’]t\b",
    re.IGNORECASE,
)
"""The same in the clause of the statement itself."""
_SUBJECT = re.compile(r"(?:^|[,;:.]|\b(?:the|an?|one)\b)\s?((?:[a-z'’-]{1,20}\s){1,8})$", re.IGNORECASE)
_MINOR = re.compile(r"\b(?:loser|runner-up|last|worst|slowest|smallest|lowest|poorest|weakest|shortest)\b", re.IGNORECASE)
_UTMOST = re.compile(
    r"(?:(?:is|was|has|had|will|would|must|does|therefore|thus|clearly|also)\s){0,2}(?:[a-z]{2,15}\s)?(?:the\s(?:one|person|student)\s(?:who|that|with)\s(?:[a-z]{2,15}\s)?)?"
    r"the\s(?:most|best|[a-z]{2,12}est)\b",
    re.IGNORECASE,
)
_WORD, _SPOKEN = re.compile(r"[a-z]{3,30}"), re.compile(r"[a-z][a-z'’-]{0,30}")
_COMMON = words(
    "the and for has have had does did will would can could are was were been being that this there then than with from who whom "
    "what which when where how many much number numbers answer his her its their they she him them one two all any"
)
_NEUTRAL = _COMMON | words(
    "is a an of in to at on by up out it be been ends ended comes came turns must still"
    " actually certainly definitely really therefore thus clearly indeed also"
)
_MARKUP = re.compile(r"[*_`$]|\\(?:text|mathrm|textbf)\s?\{|\\[()\[\]]|[{}]")
LONGEST = 60
"""Characters of the longest answer that is looked for."""


def concludes(reply: str, answer: str, question: str = "") -> bool:
    """Whether the last sentence says of the answer what is asked, or ends on it as what something is said to be.

    "Navin or Luka earns the most" and "it is not an ellipse" conclude nothing, nor does a name that is only mentioned, nor a
    sentence that goes on to something else. Without a question it must be said to be the most, the greatest, ...
    """
    plain = " ".join(_MARKUP.sub(" ", answer).split())
    if not plain or len(plain) > LONGEST or not any(sign.isalpha() for sign in plain):
        return False
    sentences = [part for part in _SENTENCE.split(reply[-2000:].strip()) if any(sign.isalpha() for sign in part)]
    last = " ".join(_MARKUP.sub(" ", sentences[-1]).split()) if sentences else "?"
    if last.endswith("?"):
        return False
    wanted, asked = re.escape(plain), question[-5000:].lower()
    subjects = re.finditer(f"{_LEAD}{wanted}{_AFTER}", last, re.IGNORECASE)
    said = re.search(rf"{_BEFORE}{wanted}(?P<rest>\W*$|\s?,?\s(?:with|at|since|because|as|who|which)\s.*)", last, re.IGNORECASE)
    if said and not _TURNS.search(said["rest"]) and _of_the_asked(before := last[: said.start()], asked):
        return not _doubted(before, asked)
    return any(_is_asked(last[one.end() :], asked) and not _doubted(last[: one.start()] + one.group(), asked) for one in subjects)


def _doubted(before: str, asked: str) -> bool:
    """Whether what stands before a statement denies it, doubts it, or says who else makes it: it is false that Navin earns most."""
    words = [match.group().lower() for match in _TOLD.finditer(_CONCLUSION.split(before)[-1])]
    words += [match.group().lower() for match in _DOUBTED.finditer(_CLAUSE.split(before)[-1])]
    return any(word not in asked for word in words)


def _of_the_asked(before: str, asked: str) -> bool:
    """Whether what something is said to be is not a second, wrong or opposite thing that is not asked for: the loser is Bob."""
    phrase = _SUBJECT.search(before)
    found = {match.group().lower() for match in (*OTHER.finditer(phrase[1]), *_MINOR.finditer(phrase[1]))} if phrase else set()
    return all(word in asked for word in found)


def _is_asked(after: str, asked: str) -> bool:
    """Whether what is said of a subject is what the question asks for, and the sentence says nothing more."""
    predicate = _PREDICATE.match(after)
    if not predicate or _GOES_ON.search(predicate["rest"]) or _GOES_ON.search(predicate["said"].partition(" ")[2]):
        return False
    told = predicate["said"].lower()
    if not asked:
        return bool(_UTMOST.match(told))
    # the least is not the most, and who loses does not win
    if any(match.group().lower() not in asked for match in _MAY.finditer(told.partition(" the ")[0])):
        return False
    if any(match.group().lower() not in asked for match in _COMPARES.finditer(told)):
        return False
    stems = {word[:4] for word in _WORD.findall(asked)}
    spoken = _SPOKEN.findall(told)
    common = [i for i, word in enumerate(spoken) if len(word) > 2 and word not in _COMMON and word[:4] in stems]
    # who fails to earn the most, or wants to, does not: up to what is asked for, the words are those of the question
    last = asked[: asked.rfind("?")] if "?" in asked else asked
    in_question = {word[:4] for word in _SPOKEN.findall(last[max(last.rfind(end) for end in (". ", "? ", "! ", "\n")) + 1 :])}
    return bool(common) and all(word in _NEUTRAL or word[:4] in in_question for word in spoken[: common[-1] + 1])
