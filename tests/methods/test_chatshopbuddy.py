"""ChatShopBuddy: levels of quality behind gates, and rollouts chosen for their contrast."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from rewardlab import registry
from rewardlab.core import Run, Trajectory, Turn, ask, rollout
from rewardlab.methods.shaping.chatshopbuddy import chosen, contrastive, data, hierarchy
from rewardlab.rewards.reward import reward


def episode(right: float | None, style: float, calls: int = 0, tokens: int = 2) -> Trajectory:
    turns = []
    for i in range(calls + 1):
        n = tokens if i == calls else 1
        turns += [Turn("policy", np.zeros(n, np.int64), text="hi"), Turn(None, np.zeros(1, np.int64))]
    return Trajectory(ask("Buy?", right, style=style), tuple(turns[:-1]), "end")


@reward
def right(trajectory):
    return trajectory.problem.answer


@reward
def style(trajectory):
    return trajectory.problem.meta["style"]


ROWS = [episode(1.0, 0.8, 3), episode(1.0, 0.4, 0), episode(0.4, 1.0, 0), episode(None, 1.0)]


def totals(**settings):
    (scores,) = hierarchy(right(), style(), **settings)([ROWS], Run(policy=None))
    return [score.total for score in scores]


def test_each_level_waits_for_the_one_below():
    # right and persuasive: 1 + .8 + .5 (1 - 3/6);   right, not persuasive enough for its economy: 1 + .4;   wrong: .4 alone
    assert totals() == [pytest.approx(2.05), pytest.approx(1.4), pytest.approx(0.4), None]
    assert totals(gated=False) == [pytest.approx(2.05), pytest.approx(1.9), pytest.approx(1.9), None]
    # with lower demands, other weights and dearer calls: 1 + 1.6 + 1 (1 - 3/3), 1 + .8 + 1, .4 + 2 + 1
    loose = totals(at=0.4, style_at=0.4, persuasion=2.0, economy=1.0, max_calls=3)
    assert loose == [pytest.approx(2.6), pytest.approx(2.8), pytest.approx(3.4), None]
    # nothing is paid for what has not the form
    assert totals(form="ho") == [0, 0, 0, 0]
    assert totals(form="hi") == totals()


def test_without_a_judge_of_style_every_right_answer_is_persuasive():
    (scores,) = hierarchy(right())([ROWS], Run(policy=None))
    assert [s.total for s in scores] == [pytest.approx(2.25), pytest.approx(2.5), pytest.approx(0.4), None]


def test_without_a_judge_the_rows_phrases_are_the_level_of_style_and_rows_without_them_are_told_of():
    phrased = ROWS[0].turns[0]
    rows = [
        Trajectory(ask("Buy?", 1.0, persuasive=["Shop A", "save"]), (replace(phrased, text=text),), "end")
        for text in ("shop a: you save $3", "Shop A.", "B.")
    ]
    recipe = registry.build("grpo").but(reward=right())
    paid = registry.method("chatshopbuddy")(recipe).reward
    # 1 + 1 + .5, 1 + 1/2 + .5, 1 + 0
    assert [s.total for s in paid([rows], Run(policy=None))[0]] == pytest.approx([2.5, 2.0, 1.0])
    settings = {"phrases": "persuasive"}
    (says,) = data.idle_on([{"prompt": "Buy?", "answer": "1"}], settings).values()
    assert "choice of rollouts alone" in says
    assert not data.idle_on([{"prompt": "Buy?", "persuasive": ["save"]}], settings)
    # a judge takes the column's place
    judged = registry.method("chatshopbuddy")(recipe, style=style()).reward
    assert not any("phrases" in part.settings for part in judged.walk())


def test_the_best_and_short_against_the_worst_and_long():
    rewards, lengths = [1, 1, 1, 0, 0, 0, None], [9, 3, 5, 2, 8, 6, 1]
    assert chosen(rewards, lengths, 4) == [1, 2, 4, 5]
    assert chosen(rewards, lengths, 3) == [1, 2, 4]
    # all right, all wrong, fewer than are kept
    assert chosen([1, 1, 1, 1], [4, 3, 2, 1], 2) == [0, 3]
    assert chosen([0, 0], [4, 3], 8) == [0, 1]
    assert chosen([None, None, 1], [4, 3, 2], 2) == [0, 2]


@rollout
def given(problems, run):
    return [ROWS for _ in problems]


def test_the_rollouts_that_are_kept_are_those_of_the_reward():
    (group,) = contrastive(inner=given(), reward=right(), keep=2)([ask("Buy?")], Run(policy=None))
    # of the two right ones the one with fewer tokens
    assert group == [ROWS[1], ROWS[2]]
    recipe = registry.build("chatshopbuddy", {"keep": 4})
    assert recipe.rollout.settings["reward"] == recipe.reward
    assert registry.build("chatshopbuddy", {"keep": None}).rollout == registry.build("grpo", {"n": 16}).rollout
    # a base that plays an environment keeps it
    played = registry.build("igpo+chatshopbuddy")
    assert played.rollout.settings["inner"] == registry.build("igpo").rollout
