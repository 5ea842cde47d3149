"""What stands beside an answer and is none: how it was computed, what it is not, the same in another unit. Other forms of it."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewardlab.text.asides import without_asides
from rewardlab.text.objects import told
from rewardlab.text.spelled import in_digits
from rewardlab.verifiers.match import final_answer, final_number
from rewardlab.verifiers.math.verifier import math

DAYS, WEEKS = "How many days will it take?", "How many weeks will it take?"


@pytest.mark.parametrize(
    ("reply", "gold", "question"),
    [
        ("So the final count is **13 apples** (8 + 5).", "13", ""), ("So there are **13** (8 + 5).", "13", ""),
        ("It is 6 (2 * 7 - 8).", "6", ""),
        ("It will take 7 days, or 1 week.", "7", DAYS), ("It will take 7 days, or 1 week.", "1", WEEKS),
        ("The answer is 7 days, or 1 week.", "7", DAYS),
        ("It is 7, not 8.", "7", ""), ("The answer is 7, not 8.", "7", ""),
        ("The answer is 7. If you got 6, that is wrong.", "7", ""),
        ("<|begin_of_box|>13<|end_of_box|>", "13", ""), ("The count is <|begin_of_box|>13<|end_of_box|>.", "13", ""),
        ("The answer is forty-two.", "42", ""), (r"\boxed{forty-two}", "42", ""),
        ("The answer is one hundred and five apples.", "105", ""),
        ('{"answer": 42}', "42", ""), ('```json\n{"answer": 42}\n```', "42", ""),
        ('Done.\n```json\n{"steps": "6*7", "answer": "42"}\n```', "42", ""),
        ("| Item | Cost |\n|---|---|\n| Pens | 8 |\n| **Total** | **13** |", "13", ""),
    ],
)  # fmt: skip
@pytest.mark.parametrize("verifier", [math, final_answer])
def test_it_is_read(verifier, reply, gold, question):
    assert verifier().check(reply, gold, prompt=question).correct is True


@pytest.mark.parametrize(
    ("reply", "gold", "question"),
    [
        ("So the final count is **13 apples** (8 + 5).", "8", ""), ("So the final count is **13 apples** (8 + 5).", "5", ""),
        ("The count is 13 (8 + 6).", "13", ""), ("It is -13 (8 + 5).", "-13", ""), ("It is 13 (8 + 5), or 14.", "13", ""),
        ("It will take 7 days, or 1 week.", "1", DAYS), ("It will take 7 days, or 1 week.", "7", WEEKS),
        ("It will take 7 days, or 8 days.", "7", DAYS),
        ("It will take 7 days, or 2 weeks.", "7", DAYS), ("It will take 7 days, or 1 week.", "7", ""),
        ("It is 7, not 8.", "8", ""), ("It is not 7, not 8.", "7", ""), ("It is 7, not 8 but 9.", "7", ""),
        ("<|begin_of_box|>13<|end_of_box|><|begin_of_box|>14<|end_of_box|>", "13", ""), ("<|begin_of_box|>13", "13", ""),
        ("The answer is forty-two or forty-three.", "42", ""), ("The answer is forty-two.", "40", ""),
        ("The answer is twenty to thirty.", "20", ""),
        ("The answer is not forty-two.", "42", ""), ('{"answer": 42, "final_answer": 43}', "42", ""),
        ('{"answer": [42, 43]}', "42", ""),
        ('{"answer": 42, "answer": 43}', "42", ""), ('{"answer": 42, "answer": 43}', "43", ""),
    ],
)  # fmt: skip
@pytest.mark.parametrize("verifier", [math, final_answer])
def test_no_second_answer_is_paid(verifier, reply, gold, question):
    assert verifier().check(reply, gold, prompt=question).correct is False


def test_final_number_reads_words_and_what_stands_beside_them():
    check = final_number().check
    assert [check(reply, "7").correct for reply in ("The answer is seven.", "The answer is 7, not 8.", "It is 7 (3 + 4).")] == [
        True
    ] * 3
    assert [check("The answer is seven.", gold).correct for gold in ("8", "70")] == [False] * 2


@pytest.mark.parametrize(
    ("words", "digits"),
    [
        ("forty-two", "42"), ("one hundred and five", "105"),
        ("three thousand four hundred and seventy-six apples", "3476 apples"),
        ("five hundred thousand", "500000"), ("minus three", "-3"), ("a hundred", "100"), ("one two three", None),
        ("twenty-twelve", None),
        ("three hundred hundred", None), ("one of two", None), ("six thirty", None), ("one third", None), ("two dozen", None),
    ],
)  # fmt: skip
def test_numbers_in_words(words, digits):
    assert in_digits(words) == (digits or words)


@pytest.mark.parametrize(
    "part", ["1 + ", "7, not ", "7 a a a (8 + 5", "7 days or ", "(", "1,", "{", '{"a": ', "'", "forty ", " and "]
)
def test_long_texts_take_no_time(part):
    text = "It is 7 (" + part * (100_000 // len(part))
    start = time.process_time()
    without_asides(text, DAYS), told(text + "}"), in_digits(text)
    assert time.process_time() - start < 3


@given(st.text(alphabet="{}\"': answer147+-*/()not,.x\\\n"))
def test_nothing_raises(text):
    assert isinstance(without_asides(told(text), DAYS), str)
    assert isinstance(in_digits(text), str)
