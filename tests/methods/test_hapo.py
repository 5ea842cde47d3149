"""HAPO: a length reward against the shortest right reply to the same prompt so far."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
import torch

from rewardlab import registry
from rewardlab.core import Run, Score, Trajectory, Turn, ask
from rewardlab.engine.collate import collate
from rewardlab.methods.shaping.hapo import MEMORY, length_term
from rewardlab.rewards.reward import reward

PROMPT = ask("2+2?", "4")


def reply(length: int, text: str, problem=PROMPT) -> Trajectory:
    """`length` sampled tokens after two tokens of prompt; the text is "4" (right), "5" (wrong) or "?" (no verdict)."""
    read = Turn(None, np.zeros(2, np.int64))
    ids, logprobs = np.zeros(length, np.int64), np.zeros(length, np.float32)
    return Trajectory(problem, (read, Turn("policy", ids, logprobs, logprobs, text)), "end")


@reward
def verify(trajectory):
    return Score(None, why="no verdict") if trajectory.reply == "?" else float(trajectory.reply == trajectory.problem.answer)


def run_at(step: int, memory: dict | None = None) -> Run:
    return Run(policy=None, step=step, verify=verify(), memory={} if memory is None else memory)


def totals(groups, run: Run, **settings) -> list[list[float | None]]:
    return [[s.total for s in row] for row in registry.build("hapo", settings).reward(groups, run)]


# f = cos(pi/2 * len / h), with h = 10:
#   len  5: cos(pi/4) = .7071    len 10: cos(pi/2) = 0    len 15: cos(3 pi/4) = -.7071    len 20, 40: cos(pi) = -1
@pytest.mark.parametrize(
    ("length", "right", "wrong"), [(5, 0.7071, 0.0), (10, 0.0, 0.0), (15, -0.7, -0.7071), (20, -0.7, -1.0), (40, -0.7, -1.0)]
)
def test_the_length_term_by_hand(length, right, wrong):
    assert length_term(length, 10, True, -0.7) == pytest.approx(right, abs=1e-4)
    assert length_term(length, 10, False, -0.7) == pytest.approx(wrong, abs=1e-4)
    assert length_term(length, None, True, -0.7) == length_term(length, None, False, -0.7) == 0.0


def test_the_first_visit_pays_the_outcome_alone_and_the_next_one_compares_with_its_shortest_right_reply():
    run = run_at(0)
    group = [reply(12, "4"), reply(10, "4"), reply(4, "5"), reply(3, "?")]
    # the two shortest are wrong and without a verdict: neither is h
    assert totals([group], run) == [[1.0, 1.0, 0.0, None]]
    assert run.memory[MEMORY] == {PROMPT.key: [0, None, 10]}
    second = [reply(5, "4"), reply(10, "4"), reply(20, "4"), reply(5, "5"), reply(20, "5"), reply(1, "?")]
    expected = [1 + math.sqrt(0.5), 1.0, 0.3, 0.0, -1.0, None]
    assert totals([second], run_at(1, run.memory))[0] == pytest.approx(expected)
    # h is 5 from the next step on
    assert run.memory[MEMORY] == {PROMPT.key: [1, 10, 5]}
    assert totals([[reply(5, "4")]], run_at(2, run.memory)) == [[pytest.approx(1.0)]]


def test_all_wrong_leaves_no_history_and_prompts_do_not_share_one():
    run, other = run_at(0), ask("3+3?", "6")
    assert totals([[reply(3, "5"), reply(9, "5")], [reply(7, "6", other)]], run) == [[0.0, 0.0], [1.0]]
    assert run.memory[MEMORY][PROMPT.key] == [0, None, None]
    assert totals([[reply(14, "4")], [reply(14, "6", other)]], run_at(1, run.memory)) == [[1.0], [pytest.approx(0.3)]]


def test_scoring_a_step_again_changes_nothing_and_the_memory_survives_json():
    run = run_at(0)
    group = [reply(10, "4"), reply(8, "4")]
    first = totals([group], run)
    assert totals([group], run) == first == [[1.0, 1.0]]
    # a prompt that comes twice in a step is compared with what was known before the step
    assert totals([group, group], run) == [[1.0, 1.0], [1.0, 1.0]]
    memory = json.loads(json.dumps(run.memory))
    assert totals([[reply(4, "4")]], run_at(1, memory)) == [[pytest.approx(1 + math.sqrt(0.5))]]


def test_the_credit_of_a_group_in_which_all_are_right():
    """Where GRPO's credit is 0, the shorter reply gets the credit; a row without a verdict gets none."""
    memory = {MEMORY: {PROMPT.key: [0, None, 10]}}
    group = [reply(5, "4"), reply(20, "4"), reply(9, "?")]
    run, recipe = run_at(1, memory), registry.build("hapo")
    batch = collate([group], recipe.reward([group], run), torch.device("cpu"))
    credit = recipe.credit(batch.reward, batch, run)
    # rewards 1.7071 and 0.3: deviations +-.70355 from the mean, unbiased std .70355 * sqrt(2) = .99497; / (std + 1e-4)
    expected = torch.tensor([[0.70703], [-0.70703], [0.0]]).expand(batch.mask.shape) * batch.mask
    assert torch.allclose(credit, expected, atol=1e-4)
    plain = registry.build("grpo")
    batch = collate([group], plain.reward([group], run), torch.device("cpu"))
    assert not plain.credit(batch.reward, batch, run).any()


def test_the_weight_scales_the_length_term_and_a_base_keeps_its_rewards():
    memory = {MEMORY: {PROMPT.key: [0, None, 10]}}
    assert totals([[reply(5, "4")]], run_at(1, memory), weight=0.5) == [[pytest.approx(1 + 0.5 * math.sqrt(0.5))]]
    assert str(registry.build("gdpo+hapo").reward).startswith("correct() + 1 * format_ok(")
