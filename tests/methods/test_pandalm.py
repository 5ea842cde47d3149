"""PandaLM: ties are answers, unread outputs, odd rows, and the published figures of two judges and three annotators."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pytest

from rewardlab.core import Run
from rewardlab.errors import RewardlabError
from rewardlab.methods.benchmarks.pandalm import benchmark, figures, marks, of_labels, published_figures, read
from rewardlab.scoreboard.figures import Marks
from rewardlab.scoreboard.items import Verdict, missing

DATA = Path(os.environ.get("REWARDLAB_DATA") or Path.cwd().parent / "shared" / "data") / "pandalm"


def row(index: int, *votes: int, **other: object) -> dict[str, object]:
    texts = {"instruction": "Say it.", "input": "", "response1": "a", "response2": "b", "cmp_key": "x_y"}
    return {"idx": index, **texts, **{f"annotator{k}": v for k, v in enumerate(votes, 1)}, **other}


def items(*rows):
    return [item for one in rows for item in read(one, "testset")]


def found(labels, verdicts):
    own = items(*[row(i, label, label, label) for i, label in enumerate(labels)])
    return figures(Marks.of(own, [marks(i, v) for i, v in zip(own, verdicts, strict=True)]))


def test_the_majority_is_the_label_and_three_different_votes_count_as_the_first():
    assert [i.meta["label"] for i in items(row(0, 2, 1, 1), row(1, 0, 2, 0), row(2, 2, 0, 1))] == [1, 0, 2]


def test_responses_published_as_truth_values_are_texts_and_the_input_follows_the_instruction():
    (item,) = items(row(0, 1, 1, 1, response1=True, input="now"))
    assert item.replies == ("True", "b")
    assert item.question == "Say it.\n\nnow"


def test_a_vote_outside_the_three_labels_is_refused_with_its_place(tmp_path):
    (tmp_path / "rows.json").write_text(json.dumps([row(0, 1, 3, 1)]))
    with pytest.raises(RewardlabError, match="annotators say 0, 1 or 2"):
        benchmark.items(tmp_path)


def test_a_tie_is_right_where_the_label_is_one_and_a_judge_is_asked_about_it():
    (tie,) = items(row(0, 0, 0, 0))
    assert tie.pairs == ()
    assert tie.shown == ((0, 1),)
    assert missing(tie, Verdict(), "replies")
    both = Verdict(orders={(0, 1): 1.0, (1, 0): 1.0})
    assert marks(tie, both)["right"] == 1.0
    assert marks(tie, Verdict((2.0, 1.0)))["right"] == 0.0


def test_macro_figures_by_hand_and_an_unread_output_is_a_tie_in_them_alone():
    # labels 0 0 1 2 2, said 0 unread 1 1 2; with unread as a tie, label 0 has P 1, R 1; label 1 P 1/2, R 1; label 2 P 1, R 1/2
    verdicts = [Verdict((1.0, 1.0)), Verdict(), Verdict((1.0, 0.0)), Verdict((1.0, 0.0)), Verdict((0.0, 1.0))]
    told = found([0, 0, 1, 2, 2], verdicts)
    assert told["agreement"] == pytest.approx(3 / 5)
    assert told["decided"] == pytest.approx(2 / 3)
    assert told["accuracy"] == pytest.approx(4 / 5)
    assert told["precision"] == pytest.approx((1 + 0.5 + 1) / 3)
    assert told["recall"] == pytest.approx((1 + 1 + 0.5) / 3)
    assert told["f1"] == pytest.approx((1 + 2 / 3 + 2 / 3) / 3)


def test_a_label_that_nobody_says_and_that_is_not_there_scores_nothing():
    told = found([1, 1], [Verdict((1.0, 0.0)), Verdict((1.0, 0.0))])
    assert told["f1"] == pytest.approx(1 / 3)


def test_of_labels_by_hand():
    votes = np.array([[1, 1, 1], [2, 2, 1], [1, 1, 0], [0, 0, 0]])
    told = of_labels(votes, np.array([[3, 2], [2, 2], [1, 5], [1, 9]]))
    assert (told["ties"], told["first"], told["second"]) == (1, 2, 1)
    assert told["kappa_1_2"] == pytest.approx(1.0)
    # 1 and 3 agree on two of four; by chance (1: 2/4 x 2/4) + (0: 1/4 x 2/4) = 3/8
    assert told["kappa_1_3"] == pytest.approx((0.5 - 3 / 8) / (5 / 8))
    # the longer is better in the first pair, the second of equals in the second, not in the third; the tie does not count
    assert told["longer"] == pytest.approx(2 / 3)


@pytest.mark.skipif(not DATA.is_dir(), reason="the shared data is not at hand")
def test_the_published_figures_come_out():
    told = published_figures()(Run(None))
    assert told["met"] == 1.0
    assert told["control"] < 0.2
    assert told["figures"] == 17
