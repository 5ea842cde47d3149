"""Pairwise-RL: both orders of a pair, the chance of winning against an anchor, and a model that learns to compare."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import numpy as np
import pytest
from rows import Replies

from rewardlab import registry
from rewardlab.api import train
from rewardlab.core import Run, TokenCount, Trajectory, ask
from rewardlab.errors import RewardlabError
from rewardlab.methods.reward_models.pairwise_rl import (
    MODEL,
    both_orders_told,
    chances,
    comparison,
    first_wins,
    held_out,
    win_probability,
)
from rewardlab.models.embedded import untrained

PAIR = ask("2 + 2?", chosen="4", rejected="5")


class Comparer(Replies):
    """Prefers texts by their number, and whatever stands first by `bias`: log P(A) - log P(B) = first - second + bias."""

    def __init__(self, bias=0.0):
        super().__init__([])
        self.bias, self.token_count = bias, TokenCount()

    def score(self, rows):
        return [np.array([self._of(t), 99.0]) for t in rows]

    def _of(self, t):
        lines = t.problem.question.split("\n\n")
        a, b = (float(line.removeprefix(f"{letter}: ")) for letter, line in zip("AB", lines[1:3], strict=True))
        return (a - b + self.bias) / 2 * (1 if t.reply == "A" else -1)


def sigmoid(x):
    return 1 / (1 + math.exp(-x))


def test_each_pair_is_taught_in_both_orders_with_the_right_letter():
    ((first, second),) = both_orders_told()([PAIR], Run(Replies([])))
    assert first.problem.question == "2 + 2?\n\nA: 4\n\nB: 5\n\nWhich reply is better, A or B?"
    assert second.problem.question == "2 + 2?\n\nA: 5\n\nB: 4\n\nWhich reply is better, A or B?"
    assert (first.reply, second.reply) == ("A", "B")
    with pytest.raises(RewardlabError, match="rejected"):
        both_orders_told()([ask("2 + 2?", chosen="4")], Run(Replies([])))


def test_texts_in_braces_stay_as_they_are():
    assert "A: {second} {x}\n" in comparison(PAIR, "{second} {x}", "b").question


def test_what_stands_first_wins_in_one_order_and_loses_by_it_in_the_other():
    # by 2 the better one, and 3 for standing first: 5 and, the other way round, 1
    won, first = chances(Comparer(3.0), [PAIR], [("6", "4")])
    assert won[0] == pytest.approx((sigmoid(5) + 1 - sigmoid(1)) / 2)
    assert first[0] == pytest.approx((sigmoid(5) + sigmoid(1)) / 2)
    # the anchor against itself is a tie, whatever the bias
    assert chances(Comparer(3.0), [PAIR], [("4", "4")])[0][0] == 0.5
    # far apart, nothing overflows
    assert chances(Comparer(), [PAIR], [("9999", "0")])[0][0] == 1.0


def test_the_reward_is_the_chance_against_the_anchor_and_there_is_none_without_one():
    run = Run(Replies([]), models={MODEL: Comparer(1.0)})
    rows = [ask("2 + 2?", chosen="4", mine="7"), ask("3 + 3?")]
    groups = [Replies([]).write([Trajectory(p)] * 2, ["4", "6"]) for p in rows]
    values = [[s.value for s in row] for row in win_probability()(groups, run)]
    better = (sigmoid(3) + 1 - sigmoid(-1)) / 2
    assert values == [[0.5, pytest.approx(better)], [None, None]]
    assert run.metrics["prefers_first"] > 0.5
    assert win_probability(anchor="mine")(groups, run)[0][1].value < 0.5


def test_held_out_pairs_are_counted_and_the_order_is_told():
    rows = [ask("?", chosen="5", rejected="1"), ask("?", chosen="1", rejected="3"), ask("?", chosen="2", rejected="2"), ask("?")]
    comparer = Comparer(9.0)
    found = held_out(rows, Run(comparer, models={MODEL: comparer}))
    assert found["pair_accuracy"] == 0.5
    assert found["order"] > 0.99


def test_the_chance_is_that_of_the_two_letters_by_the_models_own_log_probs():
    policy = untrained()
    asked = [comparison(PAIR, "4", "5"), comparison(PAIR, "a much longer reply", "5")]
    for problem, found in zip(asked, first_wins(policy, asked), strict=True):
        (read,) = policy.read([Trajectory(problem)], [problem.prompt])
        a, b = (policy.score(policy.write([read], [letter]))[0][len(read)] for letter in "AB")
        assert abs(a - b) > 1e-4
        assert found == pytest.approx(sigmoid(a - b), abs=1e-5)


def test_the_model_learns_to_compare_a_users_rows_before_the_policy_learns(tmp_path):
    rows = tmp_path / "rows.jsonl"
    rows.write_text("".join(json.dumps({"prompt": f"{i}?", "chosen": f"{i} yes", "rejected": f"{i} no"}) + "\n" for i in range(8)))
    task = registry.task(str(rows))
    task = replace(task, test=[task.train[i] for i in range(len(task.train))], max_new=4)
    given = {"eval_problems": 4, "device": "cpu", "checkpoint_every": 0}
    settings = {"pairs": 320, "rm_lr": 1e-2, "n": 2, "problems": 2}
    done = train("pairwise_rl", "untrained", task, steps=1, out=tmp_path / "run", settings=settings, **given)
    step = next(
        json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines() if "pair_accuracy" in line
    )
    assert step["pair_accuracy"] > 0.75
    assert 0 <= done.summary["after"]["reward"] <= 1
    with pytest.raises(RewardlabError, match="no words"):
        registry.build("pairwise_rl", {"init": "value-head"})
