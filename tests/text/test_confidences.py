"""Confidences as replies state them."""

from __future__ import annotations

import pytest

from rewardlab.text.confidences import Stated, stated_answers, stated_confidence


@pytest.mark.parametrize(
    ("reply", "stated"),
    [
        ("Answer: 36\nConfidence: 0.7", 0.7),
        ("answer: 36\n**Confidence:** 70%", 0.7),
        ("<answer>36</answer><confidence> .25 </confidence>", 0.25),
        ("Confidence is 1", 1.0),
        ("Confidence: 0", 0.0),
        ("Confidence: 100 %.", 1.0),
        # the last one counts, even where it cannot be read: a second thought takes the first back
        ("Confidence: 0.2\nConfidence: 0.9", 0.9),
        ("Confidence: 0.2\nConfidence: high", None),
        ("Confidence: 1.5", None),
        ("Confidence: -0.5", None),
        ("Confidence: 0.7 or 0.8", None),
        ("<think>Confidence: 0.2</think>Answer: 1", None),
        ("I am confident.", None),
        ("", None),
    ],
)
def test_a_confidence_is_a_number_from_0_to_1(reply, stated):
    assert stated_confidence(reply) == stated


def test_answers_are_listed_each_with_the_confidence_that_follows_it():
    reply = "7+3=10\nAnswer: 10\nConfidence: 0.5\nAnswer: 12\n7+7=14\nAnswer: 14\nConfidence: 30%"
    assert stated_answers(reply) == [Stated("10", 0.5), Stated("12"), Stated("14", 0.3)]
    tagged = "<answer1>Paris</answer1> <confidence1>0.9</confidence1>\n<answer2>Lyon</answer2> <confidence2>2</confidence2>"
    assert stated_answers(tagged) == [Stated("Paris", 0.9), Stated("Lyon")]
    assert stated_answers("Confidence: 0.5\nAnswer:\n") == []
    # on one line, in brackets or after a comma; brackets of the answer itself stay
    assert stated_answers("Answer: f(2) (Confidence: 0.6)\nAnswer: Rubella, confidence: 20%.") == [
        Stated("f(2)", 0.6), Stated("Rubella", 0.2),
    ]  # fmt: skip


def test_answers_are_one_where_they_are_the_same_number_or_the_same_words():
    assert Stated("0.50").key == Stated("1/2").key
    assert Stated("New  York").key == Stated("new york").key
    assert Stated("-5").key != Stated("5").key


def test_long_replies_are_read_in_linear_time():
    assert stated_confidence("Confidence: " * 20_000 + "0.5") == 0.5
    assert len(stated_answers("answer: 1 confidence: 0.5 " * 20_000)) == 20_000
