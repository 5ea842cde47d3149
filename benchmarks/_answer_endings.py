"""How right solutions end, as the counts of `rewardlab.audit.endings` say: python benchmarks/_answer_endings.py

A box, or a line that begins with four hashes, counts wherever it stands; all else by the last sentence.
Answers in another base, as 2516_8, are counted too.
"""

from __future__ import annotations

import re
from collections import Counter

from _solutions import solutions

from rewardlab.audit.endings import ASKS, BASED, ENDINGS, RIGHT
from rewardlab.text.boxes import braced, joint
from rewardlab.text.numbers import IN_TEXT, number

SETS = dict(zip(RIGHT, ("gsm8k", "math500"), strict=True))
_NUMBER = re.compile(r"-?[0-9][0-9,.]*")
_SENTENCE = re.compile(r"(?<=[.!?:])\s+(?=[A-Z*\\])|\n+")
_FUNCTION = re.compile(r"[A-Za-z]\([^=]{1,40}\)\s?=\s?(-?[0-9][0-9,.]*)[\s.$\\)\]]*$")
_MARK = re.compile(r"\banswer[\s*_:]{0,5}(?:is\b|:)?[\s*_:]{0,5}(?P<rest>.*)", re.IGNORECASE | re.DOTALL)


def ending(reply: str, gold: str, question: str) -> str:
    """The class of a right reply; "none" where it states its answer in no such way."""
    if "\\boxed" in reply:
        return in_a_box(joint(braced(reply)) or "", gold, question)
    if re.search(r"^####", reply, re.MULTILINE):
        return "a heading of four hashes"
    sentence = [part for part in _SENTENCE.split(reply.strip()) if re.search(r"[0-9]", part)][-1:]
    if not sentence:
        return "none"
    last, wanted = sentence[0].replace("\\$", "$").replace("\\%", "%"), number(gold)
    if mark := _MARK.search(last):
        return "a mark" if number(mark["rest"].strip(" .*")) is not None else "a mark with a sentence"
    if (value := _FUNCTION.search(last)) and number(value[1].rstrip(".,")) == wanted:
        return "the value of a function"
    found = [(match, number(match.group().rstrip(","))) for match in IN_TEXT.finditer(last)]
    own = [match for match, value in found if value == wanted]
    if not own:
        return "none"
    after = last[own[-1].end() :].lstrip(" *")
    if after.startswith("%") and re.search("%|percent", question, re.IGNORECASE):
        return "a percent sign"
    if re.match(r"(?:st|nd|rd|th)\b", after):
        return "an ordinal"
    if len({value for _, value in found}) > 1:
        return f"several numbers ({'the answer' if found[-1][1] == wanted else 'another one'} last)"
    return "a dollar sign" if "$" in own[-1].group() else "one number"


def counted(gold: str) -> bool:
    return bool(_NUMBER.fullmatch(gold) or re.fullmatch(BASED, gold))


def in_a_box(stated: str, gold: str, question: str) -> str:
    if re.fullmatch(BASED, gold):
        return "a box" if "_" in stated else "a number without its base"
    if re.search(r"[0-9]\s?\\?%", stated) and re.search(ASKS["percent"], question, re.IGNORECASE):
        return "a box with a percent sign"
    if re.search(r"[0-9]\s?\^?\{?(?:\\text\{)?(?:st|nd|rd|th)\b", stated):
        return "a box with an ordinal"
    return "a box with a unit" if re.search("[A-Za-z]{3}", stated.replace("\\text", "")) else "a box"


def main() -> None:
    for task, name in SETS.items():
        right = [(reply, gold, question) for reply, gold, question, label in solutions(name) if label and counted(gold)]
        counts = Counter(ending(*one) for one in right)
        print(f"{task}: {len(right):,} right solutions ({RIGHT[task]:,} in the audit)")
        for kind in (*ENDINGS, "none"):
            kept = getattr(ENDINGS.get(kind), "gsm8k" if name == "gsm8k" else "math500", 0)
            print(f"  {kind:40} {counts[kind]:6,}  in the audit {kept:6,}")


if __name__ == "__main__":
    main()
