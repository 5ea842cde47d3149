"""Reason-Act GRPO: an episode is paid for its calls and for its answer, and its thoughts are free."""

from __future__ import annotations

import json
from itertools import pairwise

import numpy as np
import pytest
import torch

from rewardlab import registry
from rewardlab.core import Message, Run, Trajectory, Turn, ask, environment
from rewardlab.engine.collate import collate
from rewardlab.evals.episodes import right_by_the_way
from rewardlab.methods.shaping.reason_act_tool_grpo import reason_act_tool_grpo, thinks_first, tool_accuracy

BUS = {"name": "bus", "parameters": {"city": "Rome", "day": 3}}
TAXI = {"name": "taxi", "arguments": {"hour": 4}}
YES, NO = "<think>7 > 5</think>\nAnswer: yes", "<think>7 < 9</think>\nAnswer: no"


def calling(*calls, thought="<think>hm</think>\n") -> str:
    lines = [call if isinstance(call, str) else json.dumps(call) for call in calls]
    return "\n".join([f"{thought}<tool_call>", *lines, "</tool_call>"])


def bus(**changed) -> dict:
    return {"name": "bus", "parameters": BUS["parameters"] | changed}


def episode(*replies: str, length: int = 2, **columns) -> Trajectory:
    """Replies with an answer of the tools between each and the next."""
    turns = [Turn(None, np.zeros(2, np.int64))]
    for reply in replies:
        zeros = np.zeros(length, np.float32)
        turns += [Turn("policy", np.zeros(length, np.int64), zeros, zeros, reply), Turn(None, np.zeros(1, np.int64), text="bus: 7")]
    return Trajectory(ask("Over 5: a bus?", "yes", **({"calls": [BUS]} | columns)), tuple(turns[:-1]), "end")


def accuracy(*replies: str, **columns) -> float | None:
    return tool_accuracy()([[episode(*replies, **columns)]], Run(None))[0][0].total


def run() -> Run:
    return Run(policy=None, verify=registry.part("reward", "final_answer"))


# S = 1 + 3 for one gold call with two arguments: R = J(names of tools) + J(names of arguments) + right values
def test_the_accuracy_of_calls_in_parts():
    assert accuracy(calling(BUS), YES) == 1
    assert accuracy(calling({"name": "bus", "arguments": BUS["parameters"]}), YES) == 1
    assert accuracy(calling(bus(day=4)), YES) == pytest.approx((1 + 1 + 1) / 4)
    # bus without its day: J = 1/2 and one right value
    assert accuracy(calling({"name": "bus", "parameters": {"city": "Rome"}}), YES) == pytest.approx((1 + 0.5 + 1) / 4)
    assert accuracy(calling(bus() | {"name": "train"}), YES) == 0
    # a call too many: J of the tools is 1/2
    assert accuracy(calling(BUS, TAXI), YES) == pytest.approx((0.5 + 3) / 4)
    assert accuracy(YES) == 0


def test_the_calls_of_an_episode_count_together_and_in_any_order():
    both = {"calls": [BUS, TAXI]}
    assert accuracy(calling(BUS), calling(TAXI), YES, **both) == accuracy(calling(BUS, TAXI), YES, **both) == 1
    # S = 1 + 3 + 2; in another order each gold call still finds its own
    assert accuracy(calling(TAXI), calling(BUS), YES, **both) == pytest.approx(1)
    # one of two: J(tools) = 1/2, and all of the bus
    assert accuracy(calling(BUS), YES, **both) == pytest.approx((0.5 + 3) / 6)
    # the same call again: J(tools) of {bus, bus} and {bus} is 1/2
    assert accuracy(calling(BUS), calling(BUS), YES) == pytest.approx((0.5 + 3) / 4)
    # a call in the place of the answer
    assert accuracy(calling(BUS), calling(TAXI)) == pytest.approx((0.5 + 3) / 4)


def test_where_no_call_is_wanted_none_is_accurate():
    assert accuracy(YES, calls=[]) == 1
    assert accuracy(calling(BUS), YES, calls=[]) == 0


def test_what_cannot_be_read_spoils_the_calls_and_a_thought_is_never_read():
    assert accuracy(calling(BUS), calling("{"), YES) == 0
    assert accuracy(f"<tool_call>{json.dumps(BUS)}", YES) == 0
    # the thought tries another call; what is done is right
    assert accuracy(calling(BUS, thought=f"<think>{calling(TAXI, thought='')}</think>"), YES) == 1
    assert accuracy(f"<think>{calling(BUS, thought='')}</think>\nAnswer: yes") == 0


@pytest.mark.parametrize("gold", [None, "none", [3], [{"tool": "bus"}], [{"name": "bus", "arguments": 3}]])
def test_without_gold_calls_there_is_no_verdict(gold):
    assert accuracy(calling(BUS), YES, calls=gold) is None


def test_a_reply_thinks_first_if_one_thought_stands_before_something():
    said = [calling(BUS), calling(BUS, thought=""), YES, "Answer: yes", "<think>hm</think>", "<think>a</think><think>b</think>c"]
    found = [thinks_first()([[episode(reply)]], Run(None))[0][0].total for reply in said]
    assert found == [1, 0, 1, 0, 0, 0]
    assert thinks_first()([[episode(calling(BUS), "Answer: yes")]], Run(None))[0][0].total == 0.5
    assert thinks_first()([[Trajectory(ask("?", "yes"))]], Run(None))[0][0].total == 0


def test_calls_and_answer_are_paid_in_one_number():
    group = [
        episode(calling(BUS), YES),
        episode(calling(BUS), NO),
        episode(calling(bus(day=4)), YES),
        episode(calling(bus() | {"name": "train"}), "Answer: no"),
    ]
    (scores,) = registry.build("reason_act_tool_grpo").reward([group], run())
    assert [s.total for s in scores] == pytest.approx([2.1, 1.1, 1.85, 0.05])
    (alone,) = registry.build("reason_act_tool_grpo", {"calls": 0.0, "form": 0.0}).reward([group], run())
    assert [s.total for s in alone] == [1, 0, 1, 0]


def test_a_lucky_answer_has_less_credit_than_one_that_was_called_for():
    # the first called the train, and was lucky; replies of several lengths, and an episode without a verdict
    rows = [
        episode(calling(bus() | {"name": "train"}), YES),
        episode(calling(BUS), YES, length=3),
        episode(calling(BUS), YES, calls=None),
    ]
    recipe = registry.build("reason_act_tool_grpo", {"form": 0.0})
    batch = collate([rows], recipe.reward([rows], run()), torch.device("cpu"))
    credit = recipe.credit(batch.reward, batch, run())
    # 1 and 2: half from the mean, std .70711, at every decision; nothing without a verdict
    expected = torch.tensor([[-0.70704], [0.70704], [0.0]]).expand(batch.mask.shape) * batch.mask
    assert torch.allclose(credit, expected, atol=1e-4)
    alone = registry.build("reason_act_tool_grpo", {"form": 0.0, "calls": 0.0})
    batch = collate([rows], alone.reward([rows], run()), torch.device("cpu"))
    assert not alone.credit(batch.reward, batch, run()).any()


def test_right_answers_are_told_by_the_way_that_led_there():
    groups = [
        [episode(calling(BUS), YES), episode(calling(TAXI), YES)],
        [episode(calling(BUS), NO), episode(calling(TAXI), YES, calls=None)],
    ]
    found = right_by_the_way(rollout=lambda problems, run: groups, way=tool_accuracy())([], run())
    assert (found["pass@1"], found["the_way"], found["turns"]) == (0.75, 0.5, 2)
    assert (found["right_by_the_way"], found["lucky"]) == pytest.approx((1 / 3, 2 / 3))
    wrong = right_by_the_way(rollout=lambda problems, run: [[episode(calling(BUS), NO)]], way=tool_accuracy())([], run())
    assert np.isnan(wrong["right_by_the_way"])
    assert np.isnan(wrong["lucky"])


@environment(start=lambda problem, seed: (None, {}))
def oracle(state, turn):
    return Message("user", "ask again"), state


def test_it_plays_recorded_tools_or_the_users_own_or_those_of_its_base():
    assert str(registry.build("reason_act_tool_grpo").rollout) == "interactive(env=recorded_tools(), turns=3)"
    own = reason_act_tool_grpo(env=oracle(), turns=2)
    assert own.rollout.settings["env"] == own.measure.settings["rollout"].settings["env"] == oracle()
    stacked, base = registry.build("igpo+reason_act_tool_grpo"), registry.build("igpo")
    assert (stacked.rollout, stacked.measure, stacked.credit) == (base.rollout, base.measure, base.credit)
    assert "information_gain" in str(stacked.reward)
    assert "tool_accuracy" in str(stacked.reward)


def test_sft_on_talks_of_several_turns_may_come_first():
    recipe = registry.build("reason_act_tool_grpo", {"sft_steps": 5})
    assert str(recipe.loop) == "sft_first(steps=5, field='solution')"
    assert all(a != b for a, b in pairwise(registry.task("desk").test[0].meta["solution"]))
