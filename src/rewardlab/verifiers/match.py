"""Verifiers that compare the reply, or the number or answer that it states, with the gold answer.

Any fault of the reply makes it wrong, with the reason; an answer given only in the thinking does not count. A gold answer that
cannot be read is our failure and gives no verdict.
"""

from __future__ import annotations

import unicodedata
from fractions import Fraction
from typing import Any, Literal

from rewardlab.settings.domain import PositiveInt
from rewardlab.text import answers as extraction
from rewardlab.text import words
from rewardlab.text.answers import (
    NO_ANSWER,
    after_answer,
    after_thinking,
    between_tags,
    boxed,
    first_sentence,
    own_words,
    statements,
    tidy,
)
from rewardlab.text.asides import without_asides
from rewardlab.text.boxes import braced
from rewardlab.text.languages import by_convention
from rewardlab.text.marks import taken_back
from rewardlab.text.numbers import ascii_digits, exclaimed, last_number, number, numbers_of, one_number
from rewardlab.text.others import without_wrong
from rewardlab.text.replies import accepted, listed
from rewardlab.text.spelled import in_digits
from rewardlab.text.traces import section

from .contract import Pair, Verdict, differs, no_verdict, right, verifier, wrong

NO_GOLD = "the problem has no gold answer"


@verifier
def final_number(response: str, answer: Any) -> Verdict:
    r"""Right if the number that the reply states equals the gold number exactly.

    It is read from the last \boxed, else from the text after "answer", else it is the last number, whatever the sentence says: 5 of
    "42 pens in 5 days". `math` and `final_answer` read which one is meant. A stated answer must contain exactly one number.
    """
    gold = _gold_number(answer)
    if gold is None:
        return no_verdict(f"the gold answer {answer!r} is not a number")
    text = own_words(response)
    stated = boxed(text) or exclaimed(first_sentence(after_answer(text) or "")) or last_number(without_asides(text))
    # "3 or 4" is not an answer, so a statement with two numbers is wrong
    if extraction.states(text) and taken_back(text):
        return wrong("the answer is taken back", stated or "")
    value = one_number(by_convention(in_digits(without_asides(stated)), gold, response)) if stated else None
    if value is None:
        return wrong(f"no single number in {stated[:60]!r}" if stated else NO_ANSWER, stated or "")
    verdict = _compared(value == gold, str(value), str(gold))
    if verdict.correct or extraction.states(text) or gold not in numbers_of(text.strip()[-2000:].rpartition("\n")[2]):
        return verdict
    return wrong(f"{verdict.why}: of several numbers the last is taken; `math` reads which one is meant", verdict.extracted)


@verifier(over="pairs")
def final_answer(pairs: list[Pair]) -> list[Verdict]:
    """Right if the final answer equals the gold answer, or one of a list: by value if both are numbers, else as normalised text.

    It is what the last box or a mark such as "answer is" says; without them, what the last sentence says, as `math` reads it, else
    the last number or line. In a reply with <answer> tags it is read between these. The question tells whose answer is asked for.
    """
    return [_finally(pair.response, pair.answer, pair.prompt) for pair in pairs]


def _finally(response: str, answer: Any, question: str) -> Verdict:
    golds = _golds(answer)
    if not golds:
        return no_verdict(NO_GOLD)
    text = without_wrong(own_words(response, golds), question)
    stated = extraction.final_answer(text)
    if stated is None:
        return wrong(NO_ANSWER)
    forms = [*statements(ascii_digits(text), question=question)]
    said = [_said(stated, forms, gold, response) for gold in golds]
    right_one = next((form for form, equal in said if equal), None)
    return _compared(right_one is not None, right_one or said[0][0], listed(golds))


def _said(stated: str, forms: list[str], gold: str, response: str) -> tuple[str, bool]:
    """What a reply says, and whether that is the gold answer. forms: the readings of its statement, the fullest first."""
    wanted = _gold_number(gold)
    if wanted is not None:
        # most forms are a number as they stand; of an equation it is what follows the last sign
        values = ((form, read(by_convention(form, wanted, response))) for read in (number, one_number) for form in forms)
        if found := next(((form, value) for form, value in values if value is not None), None):
            return found[0], found[1] == wanted
        # neither "3 or 4" nor "not 4" states a number
        return forms[0] if forms else stated, False
    return next(((form, True) for form in (stated, *forms) if tidy(form) == tidy(gold)), (stated, False))


@verifier
def exact_match(response: str, answer: Any, *, normalised: bool = False, find: Literal["whole", "stated"] = "whole") -> Verdict:
    """Right if the whole reply, without surrounding spaces, is the gold answer, or one of a list.

    normalised: also ignore case, punctuation and articles, as in SQuAD. The sign of a number still counts: -5 is not 5.
    find: "stated" compares what follows the last "answer is" or "answer:", without a full stop, and the whole reply where there is
    none, as the graders of BIG-Bench Hard do: "... So the answer is False." is right for False.
    """
    golds = accepted(answer)
    if not golds or (normalised and not all(words.normalised(gold) for gold in golds)):
        return no_verdict(f"nothing of the gold answer {answer!r} is left to compare" if golds else NO_GOLD)
    same = _same_words if normalised else _same_text
    stated = response.strip()
    if find == "stated":
        stated = (after_answer(own_words(response, golds)) or between_tags(stated)).removesuffix(".").rstrip()
    return _compared(any(same(stated, gold) for gold in golds), stated, listed(golds))


@verifier
def two_way_match(response: str, answer: Any, *, longer: PositiveInt = 128) -> Verdict:
    """Right if the stated answer contains the gold answer, or one of a list, or is contained in it: whole words, as in SQuAD.

    So `Bob Lee of Rome` and `Bob` are right for `Bob Lee`, as is any other word of it, and a short list with it; numbers must be
    equal.  longer: characters by which an answer may be longer than the gold one.  Wang et al. 2025, arXiv:2510.19363
    """
    golds = [gold for gold in _golds(answer) if words.normalised(gold)]
    if not golds:
        return no_verdict(f"nothing of the gold answer {answer!r} is left to compare")
    stated = extraction.final_answer(own_words(response, golds))
    if stated is None or not words.normalised(stated):
        return wrong(NO_ANSWER)
    return _compared(any(_either_in_other(stated, gold, longer) for gold in golds), stated, listed(golds))


def _either_in_other(stated: str, gold: str, longer: int) -> bool:
    value, gold_value = number(stated), _gold_number(gold)
    if value is not None and gold_value is not None:
        return value == gold_value
    # spaces around both: no part of a word counts
    said, wanted = (f" {words.normalised(_nfc(text))} " for text in (stated, gold))
    return len(stated) <= len(gold) + longer and (wanted in said or said in wanted)


@verifier
def stated_after(response: str, answer: Any, *, label: str = "Final") -> Verdict:
    """Right if what follows the last `label`: of the reply, on its line, is the gold answer, or one of a list, in any case."""
    golds = accepted(answer)
    if not golds:
        return no_verdict(NO_GOLD)
    _, found, after = after_thinking(response).rpartition(f"{label}:")
    stated = after.strip().split("\n", 1)[0].strip() if found else ""
    if not stated:
        return wrong(f"nothing follows {label}:")
    return _compared(stated.casefold() in [gold.casefold() for gold in golds], stated, listed(golds))


@verifier
def tagged_answer(response: str, answer: Any, *, tag: str = "answer") -> Verdict:
    """Right if what stands in <answer>...</answer> is the gold answer, or one of a list, up to case, punctuation and articles.

    tag: another name for it. A reply in which it is not opened and closed once is wrong.
    """
    golds = accepted(answer)
    if not golds or not all(words.normalised(gold) for gold in golds):
        return no_verdict(f"nothing of the gold answer {answer!r} is left to compare" if golds else NO_GOLD)
    stated = section(after_thinking(response), tag)
    if not stated:
        return wrong(f"no <{tag}>...</{tag}>")
    return _compared(any(_same_words(stated, gold) for gold in golds), stated, listed(golds))


def _golds(answer: Any) -> list[str]:
    """The texts that a gold answer accepts; of a solution that ends in a box, what the box holds."""
    return [_unboxed(text) for text in accepted(answer)]


def _unboxed(text: str) -> str:
    return boxed(braced(text)) or text


def _gold_number(gold: object) -> Fraction | None:
    """The gold number; as in GSM8K, a worked solution and "####" may precede it."""
    return None if gold is None else number(_unboxed(str(gold).rpartition("####")[2]))


def _nfc(text: str) -> str:
    return unicodedata.normalize("NFC", text)


def _same_text(reply: str, gold: str) -> bool:
    # an accented letter may be written as one character or as two
    return _nfc(reply) == _nfc(gold)


def _same_words(reply: str, gold: str) -> bool:
    return words.normalised(_nfc(reply)) == words.normalised(_nfc(gold)) and number(reply) == number(gold)


def _compared(equal: bool, stated: str, gold: str) -> Verdict:
    return right(stated) if equal else wrong(differs(stated, gold), stated)
