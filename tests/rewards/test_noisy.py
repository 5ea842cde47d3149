"""Verdicts through a noisy channel: how often they are flipped, and what corrects them."""

from __future__ import annotations

import numpy as np
import pytest

from rewardlab.core import Run, Score, Trajectory, Turn, ask
from rewardlab.errors import RewardlabError
from rewardlab.methods.objectives.noisy_verifier_correction import corrected, noisy_verdict
from rewardlab.rewards.reward import reward


def reply(text: str, i: int = 0, kind: str = "a") -> Trajectory:
    return Trajectory(ask(f"Q{i}", "right", kind=kind), (Turn("policy", np.arange(2), text=text),))


@reward
def verify(trajectory):
    """The reply says what it is worth: "right 3" is right."""
    return Score(None, why="none") if trajectory.reply.startswith("?") else float(trajectory.reply.startswith("right"))


@reward
def said(trajectory):
    """1 where the reply says that the verifier accepts it."""
    return Score(None, why="none") if trajectory.reply.startswith("?") else float("accepted" in trajectory.reply)


@reward
def appeal(trajectory):
    assert "accepted" not in trajectory.reply, "accepted replies are not judged again"
    return 0.8 if trajectory.reply.startswith("right") else 0.2


def run(**more) -> Run:
    return Run(policy=None, verify=verify(), **more)


def values(part, groups, state) -> list[list[float | None]]:
    return [[s.total for s in row] for row in part(groups, state)]


@pytest.mark.slow
def test_right_replies_are_rejected_and_wrong_ones_accepted_at_their_rates():
    groups = [[reply(f"right {i}", i), reply(f"wrong {i}", i)] for i in range(4000)]
    right, wrong = np.array(values(noisy_verdict(false_positive=0.1, false_negative=0.3, spread=0.0), groups, run())).T
    assert 1 - right.mean() == pytest.approx(0.3, abs=0.03)
    assert wrong.mean() == pytest.approx(0.1, abs=0.02)
    again = np.array(values(noisy_verdict(false_positive=0.1, false_negative=0.3, spread=0.0), groups, run())).T
    assert (again == [right, wrong]).all()


@pytest.mark.slow
def test_rates_are_those_of_the_kind_of_prompt():
    part = noisy_verdict(false_negative=0.4, spread=1.0, by="kind")
    rates = {}
    for kind in "abcdef":
        rows = [[reply(f"right {i}", i, kind)] for i in range(1500)]
        rates[kind] = 1 - np.mean(values(part, rows, run()))
    assert max(rates.values()) - min(rates.values()) > 0.2
    assert all(0 <= rate <= 0.8 for rate in rates.values())


def test_no_verdict_stays_none():
    assert values(noisy_verdict(), [[reply("?")]], run()) == [[None]]
    for way in ("backward", "forward"):
        assert values(corrected(inner=said(), way=way), [[reply("?")]], run()) == [[None]]


# f = .1, g = .3: backward (1 - .1)/.6 = 1.5 and (0 - .1)/.6 = -1/6;  forward .3 and -.7
@pytest.mark.parametrize(("way", "expected"), [("backward", [1.5, -1 / 6]), ("forward", [0.3, -0.7])])
def test_what_a_verdict_is_worth(way, expected):
    part = corrected(inner=said(), way=way, false_positive=0.1, false_negative=0.3)
    assert values(part, [[reply("right accepted"), reply("wrong")]], run()) == [pytest.approx(expected)]
    # over right replies, .7 of which are accepted, backward is worth 1 and forward 0; over wrong ones 0 and -(1 - f - g) = -.6
    accepted, rejected = expected
    assert 0.7 * accepted + 0.3 * rejected == pytest.approx(1.0 if way == "backward" else 0.0)
    assert 0.1 * accepted + 0.9 * rejected == pytest.approx(0.0 if way == "backward" else -0.6)


def test_appeals_estimate_the_rate_of_each_kind_and_rates_of_the_steps_before_count_then():
    part = corrected(inner=said(), way="forward", appeals=appeal(), by="kind", false_negative=0.1, decay=0.5)
    a = [reply("right accepted", kind="a"), reply("right 2", kind="a"), reply("right 3", kind="a"), reply("wrong", kind="a")]
    b = [reply("right accepted", 1, "b"), reply("wrong", 1, "b")]
    state = run()
    # a: 1 accepted, 2 on appeal: g = 2/3.  b: g = 0
    assert values(part, [a, b], state) == [pytest.approx([2 / 3, -1 / 3, -1 / 3, -1 / 3]), [0.0, -1.0]]
    # the same step again: from the same memory
    assert values(part, [a, b], state)[0][0] == pytest.approx(2 / 3)
    # the next step reads the step before: 2/3, though its own replies are all accepted
    state.step = 1
    assert values(part, [[reply("right accepted", kind="a")]], state) == [pytest.approx([2 / 3])]
    # then 1 + 1/2 accepted, 2/2 on appeal: g = 1 / 2.5
    state.step = 2
    assert values(part, [[reply("right accepted", kind="a")]], state) == [pytest.approx([0.4])]
    # a kind of which nothing was ever accepted has the rate that was given
    assert values(part, [[reply("wrong", kind="c")]], state) == [pytest.approx([-0.9])]


def test_rates_that_leave_nothing_are_refused_and_a_hopeless_estimate_is_bounded():
    with pytest.raises(RewardlabError, match="less than 1"):
        corrected(inner=said(), false_positive=0.5, false_negative=0.5)([[reply("wrong")]], run())
    part = corrected(inner=said(), false_positive=0.5, appeals=appeal())
    # everything right is rejected: g = 1, and 1 - f - g = -1/2 is taken as .05
    assert values(part, [[reply("right 1"), reply("right 2")]], run()) == [pytest.approx([-10.0, -10.0])]
