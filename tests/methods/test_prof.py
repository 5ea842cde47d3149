"""PROF: replies are kept whose steps and outcome agree, as many right as wrong ones."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from rewardlab import registry
from rewardlab.core import Run, Score, Trajectory, Turn, ask, rollout
from rewardlab.engine.collate import collate
from rewardlab.methods.sampling.prof import consistent
from rewardlab.rewards.reward import reward

PROMPT = ask("Q", "+")


def reply(text: str) -> Trajectory:
    """ "+.5,.7": right, with two steps of these process values; "?": no verdict; "+": no process value."""
    values = [x for x in text[1:].split(",") if x]
    row = Trajectory(
        PROMPT, (Turn(None, np.zeros(1, np.int64)), Turn("policy", np.zeros(9, np.int64), np.zeros(9), text=text)), "end"
    )
    return replace(row, steps=tuple(range(1, len(values) + 1)))


@reward
def verify(trajectory):
    return Score(None, why="none") if trajectory.reply[0] == "?" else float(trajectory.reply[0] == "+")


@reward(steps=True)
def said(trajectory):
    values = [float(x) for x in trajectory.reply[1:].split(",") if x]
    return list(zip(trajectory.steps, values, strict=True)) if values else Score(None, why="not scored")


def kept(*texts: str, keep: int = 4, **more) -> list[str]:
    @rollout
    def given(problems, run):
        return [[reply(text) for text in texts]]

    run = Run(policy=None, verify=verify())
    (group,) = consistent(inner=given(), process=said(), keep=keep, **more)([PROMPT], run)
    return [t.reply for t in group]


def test_right_replies_with_good_steps_and_wrong_ones_with_bad_steps_are_kept():
    # means: .9 .4 .6; wrong .1 .8 .3.  The longer reply does not win by its sum
    found = kept("+.9", "+.4,.4,.4", "+.6", "-.1", "-.8", "-.3")
    assert found == ["+.9", "+.6", "-.1", "-.3"]


@pytest.mark.parametrize(
    ("right", "wrong", "expected"),
    [(6, 2, (2, 2)), (7, 1, (3, 1)), (1, 7, (1, 3)), (8, 0, (4, 0)), (0, 8, (0, 4)), (2, 1, (2, 1)), (4, 4, (2, 2))],
)
def test_as_many_right_as_wrong_ones_as_far_as_there_are(right, wrong, expected):
    found = kept(*[f"+.{i}" for i in range(right)], *[f"-.{i}" for i in range(wrong)])
    assert (sum(x[0] == "+" for x in found), sum(x[0] == "-" for x in found)) == expected


def test_the_first_of_equal_replies_are_kept_and_those_without_a_value_last():
    assert kept("+.5", "+.5", "+.5", "-.5", "-.5", "-.5", keep=2) == ["+.5", "-.5"]
    assert kept("+", "+.1", "-", "-.9", keep=2) == ["+.1", "-.9"]


def test_without_a_verdict_a_reply_is_dropped_unless_too_few_have_one():
    assert kept("?.9", "+.5", "-.5", keep=2) == ["+.5", "-.5"]
    assert kept("?.9", "+.5", "-.5", keep=3) == ["?.9", "+.5", "-.5"]


def test_one_step_alone_or_too_many_cost_the_penalty():
    # means .6 and .6 - .2 for one step; five steps of .6 are too many
    assert kept("+.6", "+.5,.5", "-.1,.1", "-.2", keep=2, penalty=0.2) == ["+.5,.5", "-.2"]
    assert kept("+.6,.6,.6,.6,.6", "+.5,.5", "-.1,.1", keep=2, penalty=0.2, max_steps=5) == ["+.5,.5", "-.1,.1"]


@pytest.mark.parametrize("penalty", [0.0, 0.3])
def test_steps_after_the_first_wrong_one_are_steps_of_the_reply(penalty):
    @reward(steps=True)
    def until_wrong(trajectory):
        values = [float(x) for x in trajectory.reply[1:].split(",")]
        until = values.index(0.0) + 1 if 0.0 in values else len(values)
        return list(zip(trajectory.steps[:until], values[:until], strict=True))

    @rollout
    def given(problems, run):
        # right for three steps of nine, for two of three; and wrong from the first step on, though not of one step
        return [[reply(text) for text in ("+1,1,1,0,1,1,1,1,1", "+1,1,0", "-0,1,1", "-1,0,1,1,1,1")]]

    part = consistent(inner=given(), process=until_wrong(), keep=2, penalty=penalty, max_steps=5)
    ((right, wrong),) = part([PROMPT], Run(policy=None, verify=verify()))
    # 3/9 and 2/3; of the steps with a label it would be 3/4 and 2/3
    assert right.reply == "+1,1,0"
    # 0 against 1/6, of which too many steps cost the penalty: -.13
    assert wrong.reply == ("-1,0,1,1,1,1" if penalty else "-0,1,1")


def test_the_outcome_alone_is_paid_over_what_is_kept():
    @rollout
    def given(problems, run):
        return [[reply(x) for x in ("+.9", "+.2", "+.1", "-.9", "-.2")]]

    run = Run(policy=None, verify=verify())
    recipe = registry.build("prof", {"process": said(), "keep": 2})
    groups = consistent(inner=given(), process=said(), keep=2)([PROMPT], run)
    batch = collate(groups, recipe.reward(groups, run), torch.device("cpu"))
    # 1 and 0: +-1/2 over sqrt(1/2)
    assert recipe.credit(batch.reward, batch, run)[:, 1].tolist() == pytest.approx([0.7071, -0.7071], abs=1e-3)
    assert run.metrics == {"kept_right": 1.0, "kept_wrong": 1.0}


def test_how_long_the_judge_may_be_is_said():
    assert "max_new=64" in str(registry.build("prof", {"longest": 64}).rollout)
    assert registry.build("prof", {"longest": 1024}).rollout == registry.build("prof").rollout
