"""HERO: scores within what the verifier finds alike, and prompts weighed by their spread."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from rows import batch_of, outcome

from rewardlab import registry
from rewardlab.core import Run, Score, Trajectory, Turn, ask
from rewardlab.engine.collate import collate
from rewardlab.errors import RewardlabError
from rewardlab.methods.shaping.hero_hybrid_reward import MEMORY, stratified, weigh_by_spread
from rewardlab.rewards.reward import reward


@reward
def verify(trajectory):
    """A reply is "r" (right), "w" (wrong) or "?" (no verdict), and then its score."""
    return Score(None, why="no verdict") if trajectory.reply[0] == "?" else float(trajectory.reply[0] == "r")


@reward
def said(trajectory):
    return None if trajectory.reply[1:] == "?" else float(trajectory.reply[1:])


def group(*replies: str, question: str = "1+1?") -> list[Trajectory]:
    def row(text: str) -> Trajectory:
        ids, logprobs = np.zeros(2, np.int64), np.zeros(2, np.float32)
        return Trajectory(ask(question), (Turn(None, ids), Turn("policy", ids, logprobs, logprobs, text)), "end")

    return [row(text) for text in replies]


def run_at(step: int = 0, memory: dict | None = None) -> Run:
    return Run(policy=None, step=step, verify=verify(), memory={} if memory is None else memory)


def recipe(**settings):
    """HERO on GRPO with `said` as the scores."""
    base = registry.build("rlhf", {"score": said()})
    grpo = registry.build("grpo").but(reward=base.reward)
    return registry.method("hero_hybrid_reward")(grpo, **settings)


def totals(*groups, **settings) -> list[list[float | None]]:
    return [[s.total for s in row] for row in recipe(**settings).reward(list(groups), run_at())]


def test_the_best_wrong_reply_stays_below_the_worst_right_one():
    # right: scores 2, 4, 8 to u = 0, 1/3, 1;  wrong: 0, 90 to u = 0, 1
    found = totals(group("r2", "r4", "r8", "w0", "w90"), alpha=0.1, beta=0.2)
    assert found == [pytest.approx([0.8, 0.8 + 0.4 / 3, 1.2, -0.1, 0.1], abs=1e-5)]


def test_a_group_with_one_verdict_still_tells_its_replies_apart():
    assert totals(group("w1", "w3", "w2"))[0] == pytest.approx([-0.05, 0.05, 0.0], abs=1e-5)
    assert totals(group("r1", "r3"))[0] == pytest.approx([0.95, 1.05], abs=1e-5)


def test_who_is_alone_or_has_an_equal_score_gets_the_lower_end():
    assert totals(group("w7", "r7"), group("w1", "w1", "r0", "r0")) == [
        pytest.approx([-0.05, 0.95]), pytest.approx([-0.05, -0.05, 0.95, 0.95])
    ]  # fmt: skip


def test_replies_without_a_verdict_or_a_score_do_not_stretch_the_others():
    assert totals(group("w1", "w2", "?99", "w?"))[0] == [
        pytest.approx(-0.05, abs=1e-5), pytest.approx(0.05, abs=1e-5), None, None
    ]  # fmt: skip


def weights(spreads: list[float], memory: dict | None = None, step: int = 0, **settings) -> list[float]:
    """The weights of groups of two replies whose scores have these standard deviations (not unbiased)."""
    rows = [[("rd", {"dense": outcome(s)}), ("rdd", {"dense": outcome(-s)})] for s in spreads]
    batch, run = batch_of(rows), run_at(step, memory)
    a = torch.ones_like(batch.reward)
    found = weigh_by_spread(**settings)(a, batch, run)
    assert torch.equal(found[::2, 0], found[1::2, 0])
    return found[::2, 0].tolist()


def sigmoid(x: float) -> float:
    return 1 / (1 + math.exp(-x))


def test_prompts_whose_scores_differ_more_than_usual_weigh_more():
    # the mean spread is 1/2: w = .4 + 2.6 sigmoid(6 (sigma - 1/2))
    assert weights([0.0, 0.5, 1.0]) == pytest.approx([0.4 + 2.6 * sigmoid(x) for x in (-3, 0, 3)], abs=1e-5)
    # a huge spread reaches w_max, none w_min
    assert weights([100.0, 0.0]) == pytest.approx([3.0, 0.4], abs=1e-5)


def test_usual_is_a_moving_average_that_a_second_look_at_a_step_does_not_move():
    memory: dict = {}
    weights([1.0, 1.0], memory)
    assert memory[MEMORY] == [0, None, 1.0]
    # 0.9 * 1 + 0.1 * 2
    first = weights([2.0, 2.0], memory, step=1)
    assert memory[MEMORY] == [1, 1.0, pytest.approx(1.1)]
    assert weights([2.0, 2.0], memory, step=1) == first
    assert first == pytest.approx([0.4 + 2.6 * sigmoid(6 * 0.9)] * 2)


def test_rows_without_a_score_count_for_no_spread():
    rows = [[("rd", {"dense": outcome(1.0)}), ("rd", {"dense": outcome(3.0)}), ("rd", {"dense": outcome(None)})]]
    batch, run = batch_of(rows), run_at()
    weigh_by_spread()(batch.reward, batch, run)
    assert run.memory[MEMORY][2] == pytest.approx(1.0)


def test_a_group_without_any_score_lowers_no_average():
    unscored = [("rd", {"dense": outcome(None)}), ("rd", {"dense": outcome(None)})]
    batch, run = batch_of([[("rd", {"dense": outcome(1.0)}), ("rd", {"dense": outcome(3.0)})], unscored]), run_at()
    weigh_by_spread()(batch.reward, batch, run)
    assert run.memory[MEMORY][2] == pytest.approx(1.0)


def test_the_weight_is_not_cancelled_by_the_division_by_the_standard_deviation():
    groups = [group("w0", "w2"), group("w0", "w4", question="2+2?")]
    run, hero = run_at(), recipe()
    batch = collate(groups, hero.reward(groups, run), torch.device("cpu"))
    credit = hero.credit(batch.reward, batch, run)[:, 2]
    # both groups earn -.05 and .05: +-.05 / (.070711 + .0001) = .706108, times .4 + 2.6 sigmoid(6 (1 - 1.5)) and (2 - 1.5)
    low, high = (0.4 + 2.6 * sigmoid(6 * x) for x in (-0.5, 0.5))
    assert credit.tolist() == pytest.approx([0.706108 * w for w in (-low, low, -high, high)], abs=1e-4)


def test_scores_that_are_no_reward_term_are_refused():
    batch = batch_of([[("rd", {"other": outcome(1.0)})]])
    with pytest.raises(RewardlabError, match="dense"):
        weigh_by_spread()(batch.reward, batch, run_at())


def test_alone_its_scores_are_a_reward_models_and_the_measure_is_the_verifiers():
    alone = registry.build("hero_hybrid_reward")
    assert str(alone.reward) == "stratified(model_score().named('dense'), correct())"
    assert [learner.name for learner in alone.also] == ["reward_model"]
    assert stratified(said(), verify()).over == "group"
