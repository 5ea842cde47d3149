"""How far a reward is from the truth on average."""

from __future__ import annotations

import numpy as np
import pytest

from rewardlab.core import Run, Trajectory, Turn, ask
from rewardlab.methods.objectives.noisy_verifier_correction import reward_bias
from rewardlab.rewards.reward import reward
from rewardlab.rollouts.independent import independent


def reply(text: str, kind: str) -> Trajectory:
    return Trajectory(ask("Q", "right", kind=kind), (Turn("policy", np.arange(2), text=text),))


@reward
def verify(trajectory):
    return float(trajectory.reply.startswith("right"))


@reward
def said(trajectory):
    return float("accepted" in trajectory.reply)


def test_bias_is_over_cells_of_kind_and_verdict(monkeypatch):
    rows = [[reply("right accepted", "a"), reply("right", "a"), reply("wrong", "a"), reply("right", "b")]]
    measure = reward_bias(reward=said().named("x"), rollout=independent(n=4), by="kind")
    monkeypatch.setitem(measure.bound, "rollout", lambda problems, run: rows)
    # cells: (a, right) 1/2 for 1, (a, wrong) 0 for 0, (b, right) 0 for 1: sqrt((1/4 + 0 + 1) / 3)
    found = measure([], Run(policy=None, verify=verify()))
    assert found["bias.x"] == pytest.approx((1.25 / 3) ** 0.5)
    # around the means: +-1/2, 0, 0 over four replies
    assert found["deviation.x"] == pytest.approx((0.5 / 4) ** 0.5)
    assert found["n"] == 4


def test_what_a_reward_remembers_is_put_aside(monkeypatch):
    @reward(over="groups")
    def counting(groups, run):
        run.memory["seen"] = run.memory.get("seen", 0) + 1
        return [[1.0] * len(group) for group in groups]

    measure = reward_bias(reward=counting(), rollout=independent(n=1))
    monkeypatch.setitem(measure.bound, "rollout", lambda problems, run: [[reply("right", "a")]])
    run = Run(policy=None, verify=verify(), memory={"seen": 5})
    assert measure([], run)["bias.counting"] == 0
    assert run.memory == {"seen": 5}
