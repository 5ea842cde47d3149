"""Lists as sets and as rankings: how they are read, and measures worked out by hand."""

from __future__ import annotations

import math
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewardlab.verifiers.sets.items import items
from rewardlab.verifiers.sets.measures import MEASURES
from rewardlab.verifiers.sets.verifier import ranking, same_set


@pytest.mark.parametrize(
    "reply",
    [
        "a, b, c", "c; b; a", "Answer: B, A, C.", '["A", "b", "c"]', '```json\n["a", "b", "c"]\n```', 'Answer: ["c", "a", "b"]',
        "- a\n- b\n- c", "1. a\n2. b\n3. c", "a\nb\nc", "The answer is: a, b, and c.", r"\boxed{a, b, c}",
        r"\boxed{\{a, b, c\}}", "Answer:\n* **a**\n* b\n* c", "Here they are:\n\n- a\n- b\n- c", "a, b, c, a",
        "<think>d</think> a, b, c", "<answer>a, b, c</answer>",
    ],
)  # fmt: skip
def test_lists_are_read_however_they_are_written(reply):
    found = same_set().check(reply, ["a", "b", "c"])
    assert (found.correct, found.pays) == (True, 1.0)
    assert same_set().check(reply, "c, b, a").correct is True
    assert same_set().check(reply, '["a", "b"]').correct is False


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("[1, 2.0", ["1", "2"]),
        ("1, 2.0, 1/2, 0.5", ["1", "2", "1/2", "1/2"]),
        ("[1, 2.0]", ["1", "2"]),
        ("[[1, 2], [3]]", ["[1, 2]", "[3]"]),
        ("5 apples, 5 pears", ["5 apples", "5 pears"]),
        ("-5, 5", ["-5", "5"]),
        ("Smith, J.; Doe, A.", ["smith, j", "doe, a"]),
        ("", []),
        (",;,", []),
    ],
)
def test_what_an_item_is(text, found):
    assert items(text) == found


def test_overlap_worked_out_by_hand():
    found = same_set().check("a, b, x, y", ["a", "b", "c"])
    assert found.correct is False
    assert found.parts == pytest.approx({"f1": 4 / 7, "jaccard": 2 / 5, "precision": 1 / 2, "recall": 2 / 3})
    for measure, value in found.parts.items():
        assert same_set(measure=measure).check("a, b, x, y", ["a", "b", "c"]).pays == value
        assert same_set(measure=measure, at=value).check("a, b, x, y", ["a", "b", "c"]).correct is True
    assert "misses c; has too many: x, y" in found.why


@pytest.mark.parametrize(("check", "gold"), [(same_set(), ["a"]), (ranking(), ["a"])])
def test_no_list_is_worth_nothing_and_no_gold_gives_no_verdict(check, gold):
    assert check.check("", gold).pays == 0.0
    assert check.check("a, " * 20_000, gold).pays == 0.0
    for unusable in (None, [], "", 5, {}):
        assert check.check("a", unusable).correct is None


def dcg(*gains: float) -> float:
    return sum(gain / math.log2(i + 2) for i, gain in enumerate(gains))


RANKED, GRADES = "d2, d9, d1, d1, d3, d8", {"d1": 3, "d2": 2, "d3": 1, "d4": 1, "d9": 0}


@pytest.mark.parametrize(
    ("k", "values"),
    [
        # the second d1 is no hit, and takes a rank
        (
            10,
            {
                "ndcg": dcg(2, 0, 3, 0, 1) / dcg(3, 2, 1, 1),
                "recall": 3 / 4,
                "precision": 3 / 10,
                "mrr": 1,
                "map": (1 + 2 / 3 + 3 / 5) / 4,
            },
        ),
        (3, {"ndcg": dcg(2, 0, 3) / dcg(3, 2, 1), "recall": 2 / 4, "precision": 2 / 3, "mrr": 1, "map": (1 + 2 / 3) / 4}),
        (1, {"ndcg": 2 / 3, "recall": 1 / 4, "precision": 1, "mrr": 1, "map": 1 / 4}),
    ],
)
def test_rankings_worked_out_by_hand(k, values):
    assert ranking(k=k).check(RANKED, GRADES).parts == pytest.approx(values)


def test_a_value_is_the_share_of_what_the_best_ranking_gets():
    best = "d1, d2, d3, d4"
    for measure in MEASURES:
        for k in (1, 3, 10):
            assert ranking(measure=measure, k=k).check(best, GRADES).pays == 1.0
            assert ranking(measure=measure, k=k).check("x, y", GRADES).pays == 0.0
    assert ranking(measure="precision").check("d1, x", GRADES).pays == pytest.approx((1 / 10) / (4 / 10))
    assert ranking(measure="mrr").check("x, y, d3", GRADES).pays == pytest.approx(1 / 3)
    assert ranking(measure="mrr").check("x, y, d3", '{"d3": 1}').pays == pytest.approx(1 / 3)
    assert ranking().check("d2, d1", ["d1", "d2"]).correct is True


@given(
    st.lists(st.sampled_from("abcdef"), min_size=1, max_size=12),
    st.dictionaries(st.sampled_from("abcdef"), st.integers(1, 3), min_size=1),
)
def test_repeating_an_item_never_pays(ranked, grades):
    text, once = ", ".join(ranked), ", ".join(dict.fromkeys(ranked))
    for measure in MEASURES:
        value = ranking(measure=measure).check(text, grades).pays
        assert 0 <= value <= ranking(measure=measure).check(once, grades).pays <= 1


@given(st.sets(st.sampled_from("abcdef"), min_size=1), st.sets(st.sampled_from("abcdef"), min_size=1))
def test_only_the_same_set_is_right(said, gold):
    found = same_set().check("; ".join(sorted(said)), sorted(gold))
    assert found.correct is (said == gold)
    assert found.parts["jaccard"] == pytest.approx(found.pays / (2 - found.pays))


@given(st.text() | st.text(alphabet='ab,;[]{}"1.\n-* '))
def test_no_reply_raises_or_goes_without_a_verdict(reply):
    assert same_set().check(reply, ["a"]).correct in (True, False)
    assert ranking().check(reply, ["a"]).correct in (True, False)


def test_hostile_lists_are_read_in_linear_time():
    start = time.perf_counter()
    for piece in ("[", "[1,", '{"a":', ",", "- \n", "answer: ", "1. ", "and ", "\n\n", "((", "a;b,"):
        same_set().check(piece * (50_000 // len(piece)), ["a"])
    assert time.perf_counter() - start < 10
