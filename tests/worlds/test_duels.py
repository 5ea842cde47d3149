"""Pairs to compare: what they are worth, and what a careless judge says of them."""

import random

from rewardlab.judges.named import form_of
from rewardlab.worlds.duels import FORM, WISHES, duels, fulfilled, quality


def test_wishes_are_whole_words():
    assert fulfilled("we need corn please", "polite")
    assert not fulfilled("we need corn pleased", "polite")
    assert quality("Ann we need corn today", ["signed", "urgent", "polite"]) == 2 / 3


def test_the_chosen_reply_is_better_and_labels_can_be_flipped():
    rows = [duels().train[i] for i in range(60)]
    assert {p.meta["kind"] for p in rows} == {"sums", "wishes"}
    assert all(p.meta["qualities"][0] > p.meta["qualities"][1] for p in rows)
    for p in rows:
        if p.meta["kind"] == "wishes":
            assert quality(p.meta["chosen"], p.meta["wishes"]) == p.meta["qualities"][0]
        else:
            assert p.meta["chosen"] == p.answer == p.meta["steps"][-1].partition("=")[2]
    flipped = [duels(flip=0.5).train[i] for i in range(60)]
    assert 15 < sum(p.meta["qualities"][0] < p.meta["qualities"][1] for p in flipped) < 45


def test_a_careful_judge_is_right_and_a_careless_one_often():
    form, careful, careless = form_of(FORM), duels(judged=True, error=0.0, named=1.0), duels(judged=True)

    def share(task):
        said = [(p, form.read(task.demonstrate(p, random.Random(i)))) for i, p in enumerate(task.test[:200])]
        assert all(reading.values is not None for _, reading in said)
        return sum(list(reading.values) == p.meta["worth"] for p, reading in said) / len(said)

    assert share(careful) == 1.0
    assert 0.6 < share(careless) < 0.9


def test_a_judgement_that_is_direct_is_a_verdict_alone():
    task = duels(judged=True, direct=1.0)
    assert all(task.demonstrate(task.train[i], random.Random(i)) in ("[[A]]", "[[B]]") for i in range(10))


def test_one_small_judge_serves_both_kinds():
    assert duels(kinds="sums").warmed_as == duels(kinds="wishes").warmed_as == duels().warmed_as
    assert len(WISHES) == len(set(WISHES.values())) == 8
