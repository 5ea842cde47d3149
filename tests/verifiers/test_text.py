"""Measures of likeness: numbers worked out by hand, laws that hold for all texts, and texts that are too long."""

from __future__ import annotations

import math
import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewardlab.core import Trajectory, Turn, ask
from rewardlab.text import words
from rewardlab.verifiers.match import exact_match, final_answer, final_number
from rewardlab.verifiers.text import bleu, edit_similarity, repetition_penalty, rouge, token_f1

MEASURES = [token_f1(), rouge(variant="1"), rouge(variant="2"), rouge(), rouge(variant="Lsum"), bleu(), edit_similarity()]
CAT, POLICE = "the cat sat on the mat", "police killed the gunman"


@pytest.mark.parametrize(
    ("measure", "said", "gold", "value"),
    [
        # Lin 2004, section 3: both have two of four words in sequence with the reference, or three
        (rouge(), "police kill the gunman", POLICE, 3 / 4),
        (rouge(), "the gunman kill police", POLICE, 2 / 4),
        (rouge(variant="2"), "police kill the gunman", POLICE, 1 / 3),
        (rouge(variant="1"), "the cat was found under the bed", "the cat was under the bed", 2 * 6 / 13),
        (rouge(variant="2"), "the cat was found under the bed", "the cat was under the bed", 2 * 4 / 11),
        (rouge(), "the cat was found under the bed", "the cat was under the bed", 2 * 6 / 13),
        (rouge(variant="1"), "the the the the", CAT, 2 * 2 / 10),
        # Lin 2004, section 3.2: w1 w2 w3 w4 w5 against w1 w2 w6 w7 w8 and w1 w3 w8 w9 w5; the union has four words
        (rouge(variant="Lsum"), "w1 w2 w6 w7 w8\nw1 w3 w8 w9 w5", "w1 w2 w3 w4 w5", 2 * 4 / 15),
        (token_f1(), "the big cat", "A cat!", 2 / 3),
        (token_f1(), "cat cat", "cat", 2 / 3),
        (token_f1(), "on the mat sat the cat", CAT, 1.0),
        (bleu(order=1), "the the the the the the the", CAT, 2 / 7),
        (bleu(order=2), "the cat sat", CAT, math.exp(1 - 6 / 3)),
        (bleu(order=2), "a cat sat on the mat", CAT, math.sqrt(5 / 6 * 5 / 6)),
        (edit_similarity(), "kitten", "sitting", 1 - 3 / 7),
        (edit_similarity(), "flaw", "lawn", 1 / 2),
        (edit_similarity(), "abc", "xyz", 0.0),
    ],
)
def test_values_worked_out_by_hand(measure, said, gold, value):
    found = measure.check(said, gold)
    assert found.value == pytest.approx(value)
    assert found.correct is (value == 1)


@pytest.mark.parametrize("measure", MEASURES, ids=str)
def test_gold_is_worth_one_and_what_shares_nothing_is_worth_nothing(measure):
    for gold in (CAT, "42", "Zürich", "two\nlines here"):
        assert measure.check(gold, gold).correct is True
        assert measure.check(gold, gold).pays == 1.0
        assert measure.check(gold, ["something else", gold]).pays == 1.0
        assert measure.check("qqqvvv", gold).pays == 0.0
        assert measure.check("", gold).pays == 0.0
        assert measure.check(gold + " qqq", gold).correct is False
    assert [measure.check("x", gold).correct for gold in (None, "", " ", [])] == [None] * 4


def test_a_threshold_says_from_where_on_a_reply_is_right():
    assert rouge(at=0.75).check("police kill the gunman", POLICE).correct is True
    assert rouge(at=0.76).check("police kill the gunman", POLICE).correct is False
    assert rouge(at=0.75).check("police kill the gunman", POLICE).pays == 0.75


def test_thinking_is_left_out_and_the_answer_may_be_measured_alone():
    assert edit_similarity().check("<think>some thought</think>\nyes", "yes").correct is True
    assert edit_similarity().check("<think>yes", "yes").pays == 0.0
    assert token_f1(of="answer").check("I looked it up. The answer is: Paris", "Paris").correct is True
    assert token_f1().check("I looked it up. The answer is: Paris", "Paris").correct is False


@pytest.mark.parametrize("measure", MEASURES, ids=str)
def test_texts_that_are_too_long_are_the_fault_of_who_wrote_them(measure):
    for text in ("ab " * 20_000, "a\n" * 2000):
        assert measure.check(text, CAT).correct is False
        assert measure.check(CAT, text).correct is None


def test_the_longest_texts_take_no_time():
    text, other = "ab cd " * 3333, "cd ef " * 3333
    start = time.perf_counter()
    for measure in MEASURES:
        assert measure.check(text, other).correct is False
    assert time.perf_counter() - start < 10


@given(st.text(alphabet="abc", max_size=12), st.text(alphabet="abc", max_size=12))
def test_distance_and_subsequence_are_those_of_dynamic_programming(a, b):
    before = list(range(len(b) + 1))
    longest = [0] * (len(b) + 1)
    for i, x in enumerate(a, 1):
        row, common = [i], [0]
        for j, y in enumerate(b, 1):
            row.append(min(before[j] + 1, row[-1] + 1, before[j - 1] + (x != y)))
            common.append(longest[j - 1] + 1 if x == y else max(longest[j], common[-1]))
        before, longest = row, common
    assert words.distance(a, b) == before[-1]
    found = words.common(a, b)
    assert len(found) == longest[-1]
    rest = iter(b)
    assert all(a[i] in rest for i in found)
    assert found == sorted(set(found))


@given(st.text(alphabet="abc d\n.", max_size=30), st.text(alphabet="abc d\n.", min_size=1, max_size=30))
def test_measures_stay_between_0_and_1_and_are_1_for_equal_texts(said, gold):
    for measure in MEASURES:
        found = measure.check(said, gold)
        if found.correct is not None:
            assert 0 <= found.pays <= 1
            assert measure.check(gold, gold).pays == 1.0


@given(st.lists(st.sampled_from("abc"), max_size=8), st.lists(st.sampled_from("abc"), max_size=8))
def test_f1_measures_do_not_care_which_text_is_which(a, b):
    assert words.overlap(a, b) == words.overlap(b, a)
    assert words.overlap(a, b, 2) == words.overlap(b, a, 2)
    assert words.rouge_l(a, b) == words.rouge_l(b, a)
    assert words.rouge_l(a, b) <= words.overlap(a, b) + 1e-12


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("", 0), ("One", 1), ("One. Two! Three?", 3), ("Dr. Smith met J. Doe at 3.5 p.m. today.", 1),
        ("He said: \"Go.\" She went.", 2), ("Wait... what?", 2), ("One\ntwo", 1), ("One.\n\nTwo.", 2),
        ("See e.g. this one. It is I. Really.", 3), ("第一。第二。", 2),
    ],
)  # fmt: skip
def test_sentences(text, count):
    assert len(words.sentences(text)) == count


def test_repetition_costs_its_share_of_ngrams():
    def value(text: str, **given) -> float:
        turn = Turn("policy", np.zeros(1, np.int64), text=text)
        return repetition_penalty(**given)([[Trajectory(ask("?"), (turn,))]])[0][0].value

    assert value("a b c a b c a b c") == pytest.approx(-4 / 7)
    assert value("a b c d e") == 0.0
    assert value("a b") == value("") == 0.0
    assert value("a a a a a", n=1, max_penalty=0.5) == pytest.approx(-0.5 * 4 / 5)


@pytest.mark.parametrize(
    ("said", "gold", "plain", "normalised"),
    [
        (" The Cat! ", "cat", False, True),
        ("cat", "cat", True, True),
        ("-5", "5", False, False),
        ("1.5", "15", False, False),
        ("$5", "5", False, True),
        ("dog", ["cat", "a dog"], False, True),
        ("x", "the", False, None),
        ("", "cat", False, False),
    ],
)
def test_exact_match_may_forgive_what_squad_does(said, gold, plain, normalised):
    assert exact_match().check(said, gold).correct is plain
    assert exact_match(normalised=True).check(said, gold).correct is normalised


def test_an_answer_that_was_only_thought_is_none():
    for check, gold in ((final_number(), "12"), (final_answer(), "12"), (final_answer(), "blue")):
        assert check.check(f"<think>hm</think>Answer: {gold}", gold).correct is True
        assert check.check(f"<think>Answer: {gold}</think>", gold).correct is False
        assert check.check(f"<think>Answer: {gold}", gold).correct is False


def test_a_match_says_what_it_took_for_the_answer():
    assert final_number().check("so 7+5=12\nAnswer: 12 apples", "12").extracted == "12"
    assert final_answer().check(r"\boxed{Blue}", ["red", "blue"]).correct is True
    assert final_answer().check(r"\boxed{Green}", ["red", "blue"]).why == "said 'Green', the answer is 'red, blue'"
    assert final_number().trl()(completions=["12", "13"], answer=["12", None]) == [1.0, None]
