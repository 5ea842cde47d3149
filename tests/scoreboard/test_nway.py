"""A judge that chooses one of all replies at once, in several orders."""

from __future__ import annotations

import re

import numpy as np
import pytest

from rewardlab.core import Problem, Trajectory
from rewardlab.errors import RewardlabError
from rewardlab.models.embedded import tokenizer
from rewardlab.models.load import load_policy
from rewardlab.scoreboard.asked import benchmark_of
from rewardlab.scoreboard.items import Item, users
from rewardlab.scoreboard.raters import load_rater
from tests.helpers.checkpoints import checkpoint
from tests.helpers.served_model import serving

FOUR = benchmark_of("rewardbench_2")
ITEM = Item("c", users("1+1=?"), ("3", "2", "7+7=14", "5"), (0.0, 1.0, 0.0, 0.0))


def text_of(body: dict) -> str:
    return body["messages"][-1]["content"]


def judged(tmp_path, monkeypatch, said, item: Item = ITEM, orders: int = 4):
    monkeypatch.setenv("REWARDLAB_CACHE", str(tmp_path))
    with serving(said) as server:
        rater = load_rater(f"judge:{server.name}?kind=nway&orders={orders}&by=text")
        (verdict,) = rater.judge([item], FOUR)
        return rater, verdict, list(server.asked)


def test_who_knows_the_right_one_finds_it_in_every_order(tmp_path, monkeypatch):
    def said(body):
        (letter,) = re.findall(r"\[Reply (\w)\]\n2\n", text_of(body))
        return f"Reply A is tempting, [[A]], but no: [[{letter}]]"

    _, verdict, asked = judged(tmp_path, monkeypatch, said)
    assert verdict.scores == (0.0, 1.0, 0.0, 0.0)
    assert verdict.wins(1, [0, 2, 3]) == 1.0
    assert len(asked) == 4


def test_who_takes_the_first_says_nothing_but_how_often_each_stands_first(tmp_path, monkeypatch):
    rater, verdict, _ = judged(tmp_path, monkeypatch, lambda body: "[[A]]")
    first = [order[0] for order in rater.shown(ITEM)]
    assert verdict.scores == pytest.approx([first.count(i) / 4 for i in range(4)])


def test_orders_are_kept_and_are_all_replies_each_once(tmp_path, monkeypatch):
    rater, _, _ = judged(tmp_path, monkeypatch, lambda body: "[[A]]", orders=8)
    assert rater.shown(ITEM) == rater.shown(ITEM)
    assert all(sorted(order) == [0, 1, 2, 3] for order in rater.shown(ITEM))
    assert len({tuple(order) for order in rater.shown(ITEM)}) > 1


@pytest.mark.parametrize("said", ["Both have their merits.", "[[E]]"])
def test_no_letter_of_these_is_no_verdict(said, tmp_path, monkeypatch):
    _, verdict, _ = judged(tmp_path, monkeypatch, lambda body: said)
    assert verdict.scores == (None,) * 4
    assert verdict.prefers(0, 1) is None
    assert said in verdict.why


def test_an_order_without_a_verdict_is_left_out(tmp_path, monkeypatch):
    answers = iter(["[[A]]", "no idea", "no idea", "no idea"])
    rater, verdict, _ = judged(tmp_path, monkeypatch, lambda body: next(answers))
    assert sorted(verdict.scores) == [0, 0, 0, 1]
    assert verdict.scores.index(1.0) in [order[0] for order in rater.shown(ITEM)]


def test_more_replies_than_letters_are_not_asked_about(tmp_path, monkeypatch):
    many = Item("m", users("?"), tuple(map(str, range(27))), (1.0, *[0.0] * 26))
    _, verdict, asked = judged(tmp_path, monkeypatch, lambda body: "[[A]]", many)
    assert verdict.scores == (None,) * 27
    assert "more than 26" in verdict.why
    assert not asked


def test_a_local_one_is_read_by_the_chances_of_the_letters_that_are_shown(tmp_path):
    checkpoint(tmp_path, tokenizer(), max_position_embeddings=1024)
    rater = load_rater(f"judge:{tmp_path}?kind=nway&orders=1&template={{prompt}}!{{replies}}", "cpu", "float32")
    (verdict,) = rater.judge([ITEM], FOUR)
    (order,) = rater.shown(ITEM)
    prompt = "1+1=?!" + "\n\n".join(f"[Reply {x}]\n{ITEM.replies[i]}" for x, i in zip("ABCD", order, strict=True))
    policy = load_policy(str(tmp_path), "cpu", "float32")
    (read,) = policy.read([Trajectory(Problem(users(prompt)))], [users(prompt)])
    start, ids, _ = rater._tokens
    chances = []
    for token in ids[:4]:
        (row,) = policy.write([read], [policy.decode(np.array([*start, token]))])
        chances.append(float(np.exp(policy.score([row])[0][row.mask][len(start)])))
    expected = dict(zip(order, np.array(chances) / sum(chances), strict=True))
    assert verdict.scores == pytest.approx([expected[i] for i in range(4)], abs=1e-4)


def test_what_is_said_is_kept_under_orders_and_template_and_wrong_settings_are_told(tmp_path):
    checkpoint(tmp_path, tokenizer())
    names = ("kind=nway", "kind=nway&orders=1", "kind=nway&template={replies}?", "kind=pairwise")
    prints = [load_rater(f"judge:{tmp_path}?{name}", "cpu", "float32").fingerprint() for name in names]
    assert len(set(prints)) == 4
    with pytest.raises(RewardlabError, match="kind=nway"):
        load_rater(f"judge:{tmp_path}?orders=2", "cpu")
    with pytest.raises(RewardlabError, match=r"\{replies\}"):
        load_rater(f"judge:{tmp_path}?kind=nway&template={{prompt}}", "cpu")
