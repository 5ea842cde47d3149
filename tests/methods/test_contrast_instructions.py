"""Contrast Instructions: both sides by hand, raters blind to the instruction, judges of pairs, rows that are left out."""

from __future__ import annotations

import pytest

from rewardlab.methods.benchmarks.contrast_instructions import benchmark, figures, marks, read
from rewardlab.scoreboard.figures import Marks, resamples
from rewardlab.scoreboard.items import Verdict


def row(name: str = "a", **other: str):
    texts = {"query": f"do {name}", "retrieval": f"undo {name}", "query_response_k": "did", "retrieval_response_k": "undid"}
    return texts | {"query_response_j": "dud", "retrieval_response_j": "undud"} | other


def told(own, scores):
    return figures(Marks.of(own, [marks(i, Verdict(s)) for i, s in zip(own, scores, strict=True)]))


def test_both_sides_by_hand():
    own = list(read(row(), "stack_contrast"))
    assert [(i.question, i.replies) for i in own] == [(f"Question: {a}\n\nAnswer: ", b) for a, b in
        (("do a", ("did", "undid")), ("undo a", ("undid", "did")))]  # fmt: skip
    # r(do, did) 3, r(do, undid) 1, r(undo, undid) 2, r(undo, did) 4: by response right and wrong; did 3 < 4, undid 2 > 1
    found = told(own, [(3.0, 1.0), (2.0, 4.0)])
    assert (found["response"], found["instruction"], found["both"]) == (0.5, 0.5, 0.0)
    assert told(own, [(3.0, 1.0), (2.0, 0.0)])["both"] == 1.0


def test_a_rater_that_scores_replies_by_themselves_gets_half_and_nothing():
    own = [item for k in range(6) for item in read(row(str(k)), "stack_contrast")]
    found = told(own, [tuple(float(len(reply)) for reply in item.replies) for item in own])
    assert (found["response"], found["instruction"], found["both"]) == (0.5, 0.0, 0.0)


def test_judges_of_pairs_have_the_response_side_alone():
    own = list(read(row(), "stack_contrast"))
    verdict = Verdict(orders={(0, 1): 1.0, (1, 0): 0.0})
    assert figures(Marks.of(own, [marks(item, verdict) for item in own])) == {"response": 1.0}


def test_an_item_without_its_partner_has_no_instruction_side():
    own = list(read(row(), "stack_contrast"))[:1]
    assert told(own, [(1.0, 0.0)]) == {"response": 1.0}


def test_tasks_have_their_own_words_in_front_and_figures():
    own = [*read(row(), "wmt_contrast"), *read(row("b"), "para_contrast")]
    assert own[0].question == "Please translate the sentences to English: do a"
    assert own[2].question == "Paraphrase the following sentence: do b\n\nAnswer: "
    assert next(read(row(query="a {b}"), "sum_contrast")).question == "Summarize the paragraph: a {b}\n\nAnswer: "
    found = told(own, [(1.0, 0.0), (1.0, 0.0), (0.0, 1.0), (0.0, 1.0)])
    assert (found["response wmt"], found["response para"], found["instruction para"]) == (1.0, 0.0, 0.0)


@pytest.mark.parametrize("same", [{"retrieval_response_k": "did"}, {"retrieval": "do a"}])
def test_rows_without_a_contrast_are_left_out(same):
    assert list(read(row(**same), "stack_contrast")) == []


def test_both_items_of_a_row_are_resampled_together():
    own = [item for k in range(5) for item in read(row(str(k)), "stack_contrast")]
    whole = Marks.of(own, [marks(i, Verdict((1.0, 0.0))) for i in own])
    assert all(figures(whole.take(index)) == figures(whole) for index in resamples(own, n=10))
    assert benchmark.headline == "response"
