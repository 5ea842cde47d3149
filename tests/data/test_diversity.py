"""Rows that are central and differ from one another."""

from __future__ import annotations

import json

import numpy as np
import pytest

from rewardlab import data
from rewardlab.data.diversity import diverse, pagerank, similarities
from rewardlab.errors import RewardlabError


def test_similarities_are_of_words_and_rare_ones_count_more():
    found = similarities(["add two apples", "Two apples, add!", "add two pears", "prove it", ""])
    assert found[0, 0] == pytest.approx(1.0)
    assert found[0, 1] > found[0, 2] > found[0, 3] == 0.0
    assert found[4].tolist() == [0, 0, 0, 0, 1]
    # scripts without spaces are compared by their characters
    found = similarities(["二つの林檎を足す", "二つの林檎を足せ", "証明せよ"])
    assert found[0, 1] > 0.5 > found[0, 2]


def test_the_centre_of_a_star_is_visited_most():
    star = np.array([[1.0, 1, 1, 1], [1, 1, 0, 0], [1, 0, 1, 0], [1, 0, 0, 1]])
    share = pagerank(star)
    # c = .15/4 + .85 (3 l),  l = .15/4 + .85 c / 3,  so c = .06937 * ... = .4797, l = .1734
    centre = (0.0375 + 3 * 0.85 * 0.0375) / (1 - 0.85**2)
    assert share == pytest.approx([centre, *[0.0375 + 0.85 * centre / 3] * 3], abs=1e-6)
    assert share.sum() == pytest.approx(1.0)


def test_what_is_chosen_next_differs_from_what_was_chosen():
    similarity = np.array([[1.0, 0.9, 0.0], [0.9, 1.0, 0.0], [0.0, 0.0, 1.0]])
    weights = np.array([3.0, 2.9, 1.0])
    # after the first (9), the second is worth 8.41 (1 - .81) = 1.60, the third 1
    assert diverse(similarity, weights, 3) == [0, 1, 2]
    # of exact copies one is enough, however central they are
    similarity[0, 1] = similarity[1, 0] = 1.0
    assert diverse(similarity, weights, 3) == [0, 2]


def test_rows_that_repeat_others_are_left_out_with_the_reason(tmp_path):
    prompts = ["Add 3 and 4.", "add 3 and 4.", "ADD 3 and 4.", "Prove that primes never end.", "What is the capital of Peru?"]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps({"prompt": p}) + "\n" for p in prompts))
    told = data.diverse_file(tmp_path / "a.jsonl", tmp_path / "b.jsonl", 3)
    rows = [json.loads(line) for line in (tmp_path / "b.jsonl").read_text().splitlines()]
    assert {row["prompt"][:3].lower() for row in rows} == {"add", "pro", "wha"}
    assert told["dropped"] == {"not chosen": 2}
    assert rows[0]["influence"] > 1 > rows[-1]["influence"]
    with pytest.raises(RewardlabError, match="from 1 up"):
        data.diverse_file(tmp_path / "a.jsonl", tmp_path / "b.jsonl", 0)


def test_a_file_without_rows_gives_one(tmp_path):
    (tmp_path / "a.jsonl").write_text("")
    told = data.diverse_file(tmp_path / "a.jsonl", tmp_path / "b.jsonl", 3)
    assert (told["rows"], told["written"], (tmp_path / "b.jsonl").read_text()) == (0, 0, "")
