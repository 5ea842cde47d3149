"""HDPO: tool calls are compared among right episodes alone."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from rewardlab import registry
from rewardlab.core import Run, Score, Trajectory, Turn, ask
from rewardlab.engine.collate import collate
from rewardlab.rewards.reward import reward

PROMPT = ask("Who?", "Cal")


def episode(calls: int, text: str, length: int = 2) -> Trajectory:
    """`calls` searches, each answered, and a last reply: "Cal" is right, "?" has no verdict."""
    turns = [Turn(None, np.zeros(2, np.int64))]
    for i in range(calls + 1):
        n = length if i == calls else 1
        turns.append(Turn("policy", np.zeros(n, np.int64), np.zeros(n, np.float32), np.zeros(n, np.float32), text))
        turns += [Turn(None, np.zeros(1, np.int64))] if i < calls else []
    return Trajectory(PROMPT, tuple(turns), "end")


@reward
def verify(trajectory):
    return Score(None, why="no verdict") if trajectory.reply == "?" else float(trajectory.reply == trajectory.problem.answer)


def credit(*groups: list[Trajectory], **settings) -> list[float]:
    run, recipe = Run(policy=None, verify=verify()), registry.build("hdpo_metis", settings)
    batch = collate(list(groups), recipe.reward(list(groups), run), torch.device("cpu"))
    found = recipe.credit(batch.reward, batch, run)
    last = [int(batch.mask[i].nonzero()[-1]) for i in range(len(batch))]
    # every decision of an episode has the credit of its last one
    assert all(torch.allclose(found[i][batch.mask[i]], found[i, at]) for i, at in enumerate(last))
    return [float(found[i, at]) for i, at in enumerate(last)]


def test_economy_is_normalised_over_the_right_episodes_alone():
    # accuracy 1 1 0 0: mean 1/2, std sqrt(1/3) = .57735: +-.86603.  economy 1/2 and 1/4, among two: +-.70711
    found = credit([episode(1, "Cal"), episode(3, "Cal", 5), episode(0, "Bob"), episode(2, "Bob")], efficiency=1.0)
    assert found == pytest.approx([0.8660 + 0.7071, 0.8660 - 0.7071, -0.8660, -0.8660], abs=2e-3)
    less = credit([episode(1, "Cal"), episode(3, "Cal"), episode(0, "Bob"), episode(2, "Bob")])
    assert less == pytest.approx([0.8660 + 0.1061, 0.8660 - 0.1061, -0.8660, -0.8660], abs=2e-3)


def test_one_right_episode_has_nobody_to_be_compared_with():
    assert credit([episode(4, "Cal"), episode(0, "Bob")]) == pytest.approx([0.7071, -0.7071], abs=2e-3)
    assert credit([episode(0, "Bob"), episode(3, "Bob")]) == [0.0, 0.0]
    assert credit([episode(2, "Cal")]) == [0.0]


def test_all_right_is_decided_by_calls_and_equal_calls_by_nothing():
    # 1, 1/2, 1/2: mean 2/3, std .288675
    expected = [0.5 * 1.1547, -0.5 * 0.5774, -0.5 * 0.5774]
    assert credit([episode(0, "Cal"), episode(1, "Cal"), episode(1, "Cal")], efficiency=0.5) == pytest.approx(expected, abs=1e-3)
    assert credit([episode(1, "Cal"), episode(1, "Cal", 7)]) == [0.0, 0.0]


def test_groups_do_not_mix_and_no_verdict_counts_for_nothing():
    found = credit([episode(0, "Cal"), episode(1, "Cal"), episode(0, "?")], [episode(5, "Cal"), episode(0, "Bob")], efficiency=1.0)
    assert found == pytest.approx([0.7071, -0.7071, 0.0, 0.7071, -0.7071], abs=3e-3)


def test_coupled_the_economy_of_right_episodes_is_lost_in_the_deviation_of_being_right():
    group = [episode(1, "Cal"), episode(3, "Cal"), episode(0, "Bob"), episode(2, "Bob")]
    apart, one = credit(group, efficiency=0.5), credit(group, efficiency=0.5, coupled=True)
    # 1 + .5/2, 1 + .5/4, 0, 0: std .690; the difference of .125 is .181 there, and .707 in a channel of its own
    assert one[0] - one[1] == pytest.approx(0.125 / 0.6903, abs=1e-3)
    assert apart[0] - apart[1] == pytest.approx(0.7071, abs=1e-3)


def test_a_form_is_a_tenth_of_the_accuracy():
    run, recipe = Run(policy=None, verify=verify()), registry.build("hdpo_metis", {"form": "Cal|Bob", "efficiency": 1.0})
    (row,) = recipe.reward([[episode(1, "Cal"), episode(0, "Bob"), episode(0, "Dee")]], run)
    assert [s.terms["accuracy"].value for s in row] == pytest.approx([1.0, 0.1, 0.0])
    assert [s.terms["economy_if_right"].value for s in row] == [0.5, None, None]
