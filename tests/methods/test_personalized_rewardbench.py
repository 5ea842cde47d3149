"""Personalized RewardBench: the profile before the question, domains that count alike, ties, odd rows."""

from __future__ import annotations

import pytest

from rewardlab.methods.benchmarks.personalized_rewardbench import figures, marks, read
from rewardlab.scoreboard.figures import Marks
from rewardlab.scoreboard.items import Verdict


def row(index: int, category: str = "Art_and_Entertainment", posts: int = 1):
    profile = [{"id": str(k), "category": "Art", "text": f"post number {k}"} for k in range(1, posts + 1)]
    about = {"narrative": "a secret", "rubric_aspects": [{"aspect": "a secret"}]}
    return {"id": str(index), "category": category, "question": "why?", "profile": profile, "chosen": "a", "rejected": "b", **about}


def test_ten_posts_stand_before_the_question_and_no_rubric_does():
    (item,) = read(row(1, posts=12), "test")
    assert item.question.startswith("Earlier posts of the user:\nPost 1 (Category: Art):\npost number 1\nPost 2")
    assert item.question.endswith("post number 10\n\nQuestion:\nwhy?")
    assert "secret" not in item.question


def test_domains_count_alike_and_a_tie_is_lost():
    own = [i for k, name in enumerate(("Art_x", "Art_x", "Lifestyle_x", "Society_x")) for i in read(row(k, name), "test")]
    scores = [(1.0, 0.0), (1.0, 0.0), (0.5, 0.5), (1.0, 0.0)]
    told = figures(Marks.of(own, [marks(i, Verdict(s)) for i, s in zip(own, scores, strict=True)]))
    assert told["overall"] == pytest.approx((1 + 0 + 1) / 3)
    assert told["all pairs"] == 0.75
    assert (told["art"], told["lifestyle"], told["society"]) == (1.0, 0.0, 1.0)
    assert marks(own[0], Verdict())["right"] == 0.0


def test_the_domain_of_a_row_may_be_its_files():
    (item,) = read(row(1, "cooking"), "Lifestyle_and_Personal_Development_test")
    assert item.subset == "lifestyle"


def test_a_row_without_posts_is_refused():
    with pytest.raises(ValueError, match="no posts"):
        list(read(row(1, posts=0), "test"))
