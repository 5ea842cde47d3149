"""OTC-PO: the outcome times how economically tools were called."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from rewardlab import registry
from rewardlab.core import Message, Run, Score, Trajectory, Turn, ask, environment
from rewardlab.engine.collate import collate
from rewardlab.methods.shaping.otc_po import economy, otc_po, tool_calls
from rewardlab.rewards.reward import reward

PROMPT = ask("Who?", "Cal")


def episode(calls: int, text: str, length: int = 3) -> Trajectory:
    """`calls` searches, each answered, and a last reply: "Cal" is right, "?" has no verdict."""
    turns = [Turn(None, np.zeros(2, np.int64))]
    for i in range(calls + 1):
        n = length if i == calls else 2
        turns.append(
            Turn(
                "policy", np.zeros(n, np.int64), np.zeros(n, np.float32), np.zeros(n, np.float32), text if i == calls else "Search"
            )
        )
        turns += [Turn(None, np.zeros(1, np.int64))] if i < calls else []
    return Trajectory(PROMPT, tuple(turns), "end")


@reward
def verify(trajectory):
    return Score(None, why="no verdict") if trajectory.reply == "?" else float(trajectory.reply == trajectory.problem.answer)


def totals(*groups) -> list[list[float | None]]:
    run = Run(policy=None, verify=verify())
    return [[s.total for s in row] for row in registry.build("otc_po").reward(list(groups), run)]


# n = 2: m = 2 sin(pi/2) = 1;  m = 3 sin(3 pi/5) = .9511;  m = 4 sin(2 pi/3) = .8660;  m = 6 sin(3 pi/4) = .7071
# n = 0: m = 0 gives 1;  m = 1 cos(pi/3) = 1/2;  m = 2 cos(2 pi/5) = .3090
@pytest.mark.parametrize(
    ("calls", "fewest", "expected"),
    [(2, 2, 1), (3, 2, 0.9511), (4, 2, 0.8660), (6, 2, 0.7071), (0, 0, 1), (1, 0, 0.5), (2, 0, 0.3090)],
)
def test_the_tool_reward_by_hand(calls, fewest, expected):
    assert economy(calls, fewest, 1.0) == pytest.approx(expected, abs=1e-4)
    if fewest and calls:
        f = 2 * fewest * calls / (fewest + calls)
        assert economy(calls, fewest, 1.0) == pytest.approx(math.sin(f * math.pi / (2 * fewest)))


def test_a_call_is_a_reply_that_was_answered():
    assert [tool_calls(episode(k, "Cal")) for k in range(4)] == [0, 1, 2, 3]
    assert tool_calls(Trajectory(PROMPT)) == 0


def test_the_fewest_calls_are_those_of_the_groups_right_episodes():
    group = [episode(2, "Cal"), episode(4, "Cal"), episode(1, "Bob"), episode(0, "?")]
    # the wrong episode with one call and the one without a verdict do not count for n
    assert totals(group) == [[pytest.approx(1.0), pytest.approx(math.sin(2 * math.pi / 3)), 0.0, None]]
    assert totals([episode(0, "Cal"), episode(1, "Cal")]) == [[1.0, pytest.approx(0.5)]]
    assert totals([episode(3, "Bob"), episode(0, "Bob")]) == [[0.0, 0.0]]
    # n is of each group alone
    assert totals([episode(4, "Cal")], [episode(2, "Cal")]) == [[pytest.approx(1.0)], [pytest.approx(1.0)]]


def test_the_credit_of_a_group_in_which_all_are_right():
    group = [episode(1, "Cal"), episode(3, "Cal", length=5)]
    run, recipe = Run(policy=None, verify=verify()), registry.build("otc_po")
    batch = collate([group], recipe.reward([group], run), torch.device("cpu"))
    credit = recipe.credit(batch.reward, batch, run)
    # rewards 1 and sin(3 pi/4) = .70711: +-.14645 from the mean, std .20711; .14645 / (.20711 + 1e-4) = .70677, at every decision
    expected = torch.tensor([[0.70677], [-0.70677]]).expand(batch.mask.shape) * batch.mask
    assert torch.allclose(credit, expected, atol=1e-4)


@environment(start=lambda problem, seed: (None, {}))
def oracle(state, turn):
    return Message("user", "ask again"), state


def test_it_plays_the_users_own_environment_and_that_of_its_base():
    own = otc_po(env=oracle(), turns=3)
    assert own.rollout.settings["env"] == own.measure.settings["rollout"].settings["env"] == oracle()
    assert str(registry.build("otc_po").rollout) == "interactive(env=search(), turns=6)"
    stacked, base = registry.build("igpo+otc_po"), registry.build("igpo")
    assert (stacked.rollout, stacked.measure, stacked.credit) == (base.rollout, base.measure, base.credit)
    assert str(stacked.reward) == "(correct() + 1 * information_gain()) * tool_economy()"
