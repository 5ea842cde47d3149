"""Words by which a text offers a second answer, or guesses it: or, maybe; oder, ou bien, или, 或. Linear time; nothing raises."""

from __future__ import annotations

import re

_OR = (
    r"or|nor|x?or|and\s?/\s?or|alternatively|alternately|otherwise|else|oder|beziehungsweise|bzw|ou(?!\s(?:seja|plutôt))"
    r"|oppure|y/o|o\sbien|o\stal\svez|o\squizás?|или(?!\s(?:точнее|вернее))|либо"
    r"|або|чи|albo|lub|atau|hoặc|veya|yahut|vagy|eller|nebo|anebo|of\s(?:misschien|wel)|या|अथवा|أو|או|یا"
)
_MAYBE = (
    r"maybe|perhaps|possibly|probably|potentially|presumably|conceivably|either|unless|if|depending|vs|versus|could|might|may|unsure|not\ssure"
    r"|another\s(?:possibility|option|candidate)"
    r"|vielleicht|möglicherweise|entweder|peut[-\s]être|sinon|quizás?|tal\svez|talvez|acaso|forse|magari|altrimenti|misschien"
    r"|может(?:\sбыть)?|возможно|иначе|mungkin|belki|kanskje|ehkä|có\sthể|शायद"
)
_UNSPACED = (
    "或|還是|还是|可能|也许|也許|要么|要麼|または|又は|もしくは|あるいは|それとも|たぶん|かもしれ"
    "|또는|혹은|아니면|아마|หรือ|อาจ|অথবা|কিংবা|হয়তো|లేదా|అథవా|లేక"
)
_START, _END = r"(?<![^\W_])", r"(?![^\W_])"
OFFERING = re.compile(rf"{_START}(?:{_OR}|{_MAYBE}){_END}|{_UNSPACED}", re.IGNORECASE)
"""What stands between two answers of which either may hold: in other cases, by another reading, or as a second guess."""
OPENING = re.compile(
    rf"[\W_]{{0,12}}(?:(?:{_OR}|maybe|perhaps|possibly|vielleicht|peut[-\s]être|quizás?|tal\svez|talvez|forse|возможно){_END}|{_UNSPACED})",
    re.IGNORECASE,
)
"""How a sentence begins that offers another answer than the one before it."""
ALONE = re.compile(r"[\W_]{0,9}(?:o|u|ó|of|au|hay|ama|tai|czy|sau|বা|ή)[\W_]{0,9}", re.IGNORECASE)
"""Short words for "or" that are other words too: all that stands between two answers."""
GUESSING = re.compile(
    rf"{_START}(?:maybe|perhaps|possibly|probably|alternatively|could|might|vielleicht|peut[-\s]être|quizás?|talvez|forse|возможно){_END}",
    re.IGNORECASE,
)
"""What makes a guess of the second answer."""
CORRECTING = re.compile(
    r"\b(?:rather|better|wait|precisely|exactly)\b|plutôt|vielmehr|besser|genauer|más\sbien|mejor\sdicho"
    r"|piuttosto|точнее|вернее|或者说|或者說",
    re.IGNORECASE,
)
"""What makes of an "or" a correction of the answer before it."""
_GUESS = re.compile(
    r"[\s*_(>-]{0,6}(?:or(?!,?\s(?:in\sother|equivalent|simply|rather|more|about|approximat|rough|just|else|to\b|as\b|if\b))|maybe|perhaps|possibly|alternatively"
    r"|(?:or\s)?(?:it|this|that|(?:the|my)\sanswer)\s(?:could|might|may)\s(?:also\s|as\swell\s|even\s)?be)\b",
    re.IGNORECASE,
)
_SECOND = re.compile(r"[,;(]\s{0,2}(?:or\s|but\s|and\s)?(?:maybe|perhaps|possibly)\b[^.\n]{0,60}[0-9]", re.IGNORECASE)


def guesses(sentence: str, before: str) -> bool:
    """Whether a sentence offers another answer than the one before it: "Or 6." """
    return bool(_GUESS.match(sentence)) and any(sign.isdigit() for sign in before)


def adds(line: str, end: int) -> bool:
    """Whether a line guesses a second answer, behind its first sentence, which ends at this place, or within it."""
    return bool(_SECOND.search(line, 0, end) or (_GUESS.match(line, end) and any(sign.isdigit() for sign in line[end : end + 80])))
