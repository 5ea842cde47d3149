"""Words by which a text offers a second answer, or guesses it: or, maybe; oder, ou bien, или, 或. Linear time; nothing raises."""

from __future__ import annotations

import re

_OR = (
    r"or|nor|x?or|and\s?/\s?or|alternatively|alternately|otherwise|else|oder|beziehungsweise|bzw|ou(?!\s(?:seja|plutôt))|oppure|y/o|o\sbien|o\stal\svez|o\squizás?|или(?!\s(?:точнее|вернее))|либо"
    r"|або|чи|albo|lub|atau|hoặc|veya|yahut|vagy|eller|nebo|anebo|of\s(?:misschien|wel)|या|अथवा|أو|או|یا"
)
_MAYBE = (
    r"maybe|perhaps|possibly|probably|potentially|presumably|conceivably|either|unless|if|depending|vs|versus|could|might|may|unsure|not\ssure|another\s(?:possibility|option|candidate)"
    r"|vielleicht|möglicherweise|entweder|peut[-\s]être|sinon|quizás?|tal\svez|talvez|acaso|forse|magari|altrimenti|misschien|может(?:\sбыть)?|возможно|иначе|mungkin|belki|kanskje|ehkä|có\sthể|शायद"
)
_UNSPACED = "或|還是|还是|可能|也许|也許|要么|要麼|または|又は|もしくは|あるいは|それとも|たぶん|かもしれ|또는|혹은|아니면|아마|หรือ|อาจ|অথবা|কিংবা|হয়তো|లేదా|అథవా|లేక"
_START, _END = r"(?<![^\W_])", r"(?![^\W_])"
OFFERING = re.compile(rf"{_START}(?:{_OR}|{_MAYBE}){_END}|{_UNSPACED}", re.IGNORECASE)
"""What stands between two answers of which either may hold: in other cases, by another reading, or as a second guess."""
OPENING = re.compile(rf"[\W_]{{0,12}}(?:(?:{_OR}|maybe|perhaps|possibly|vielleicht|peut[-\s]être|quizás?|tal\svez|talvez|forse|возможно){_END}|{_UNSPACED})", re.IGNORECASE)
"""How a sentence begins that offers another answer than the one before it."""
ALONE = re.compile(r"[\W_]{0,9}(?:o|u|ó|of|au|hay|ama|tai|czy|sau|বা|ή)[\W_]{0,9}", re.IGNORECASE)
"""Short words for "or" that are other words too: all that stands between two answers."""
CORRECTING = re.compile(
    r"\b(?:rather|better|wait|precisely|exactly|equivalently?|simply|just|in\sother\swords|i\.e|that\sis)\b|plutôt|vielmehr|besser|genauer|más\sbien|mejor\sdicho"
    r"|piuttosto|точнее|вернее|或者说|或者說",
    re.IGNORECASE,
)
"""What makes of an "or" the correction, or another spelling, of the answer before it."""
