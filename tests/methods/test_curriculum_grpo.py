"""Curriculum GRPO: replies are paid for filling a budget that shrinks while training goes on."""

from __future__ import annotations

import pytest
from lengths import credits, group_of, reply, run_at, totals

from rewardlab import registry
from rewardlab.core import ask, rollout
from rewardlab.methods.shaping.curriculum_grpo import budget, told_budget, triangle
from rewardlab.registry.describe import entry

SMALL = {"start": 16, "end": 4, "decays": 2}


def test_the_papers_schedule_of_600_steps():
    # 256 * (87/256)^(k/3): 256, 178.6, 124.7, 87, each for 150 steps
    found = [round(budget(step / 600, 256, 87, 3), 1) for step in (0, 149, 150, 299, 300, 449, 450, 599, 600)]
    assert found == [256, 256, 178.6, 178.6, 124.7, 124.7, 87, 87, 87]
    # one abrupt decay halfway, and none
    assert [budget(p, 256, 87, 1) for p in (0.0, 0.49, 0.5, 1.0)] == [256, 256, 87, 87]
    assert budget(0.0, 256, 87, 0) == budget(1.0, 256, 87, 0) == 87


@pytest.mark.parametrize(("length", "pays"), [(0, 0.0), (5, 0.5), (10, 1.0), (15, 0.5), (20, 0.0), (35, 0.0)])
def test_the_triangle_by_hand(length, pays):
    assert triangle(length, 10) == pytest.approx(pays)


def test_the_reward_follows_the_budget_and_pays_length_without_being_right():
    recipe, group = registry.build("curriculum_grpo", SMALL), group_of("rrw?", (4, 8, 16, 4))
    # budgets 16, 8, 4, a third of the 30 steps each: .6 if right, and .3 times 4/16, 8/16, 16/16
    assert totals(recipe, [group], run := run_at(0, 30))[0] == pytest.approx([0.675, 0.75, 0.3, None])
    assert run.metrics["budget"] == 16
    # 4/8, 8/8, and 16 tokens are twice as many as 8
    assert totals(recipe, [group], run_at(10, 30))[0] == pytest.approx([0.75, 0.9, 0.0, None])
    # 4/4, and 8 tokens are twice as many
    assert totals(recipe, [group], run_at(29, 30))[0] == pytest.approx([0.9, 0.6, 0.0, None])
    fixed = registry.build("curriculum_grpo", {**SMALL, "decays": 0})
    assert totals(fixed, [group], run_at(0, 30)) == totals(recipe, [group], run_at(29, 30))


def test_the_policy_is_told_the_budget_of_the_step_after_the_question():
    asked = []

    @rollout
    def sampler(problems, run):
        asked.extend(problems)
        return [[reply(1, "x")] for _ in problems]

    recipe = registry.build("curriculum_grpo", SMALL)
    part = recipe.rollout
    told_budget(**{**part.settings, "inner": sampler()})([ask("2+2?", "4")], run_at(10, 30))
    assert asked[0].question == "2+2? IMPORTANT: You should use exactly 8 tokens in your response."
    assert asked[0].answer == "4"
    assert "told_budget" not in str(registry.build("curriculum_grpo", {"told": ""}).rollout)


def test_tags_earn_their_share():
    group = [reply(16, "<think>2+2</think> <answer>2+2=4"), reply(16, "<think>2+2</think><answer>4</answer>:4")]
    found = totals(registry.build("curriculum_grpo", SMALL), [group], run_at(0, 30))[0]
    assert found == pytest.approx([0.6 + 0.3 + 0.05, 0.6 + 0.3 + 0.1])


def test_the_credit_of_a_group_in_which_all_are_right():
    recipe = registry.build("curriculum_grpo", SMALL)
    # budget 4: rewards .9 and .6: +-.15 from the mean, std .21213;  / (std + 1e-4) = .70677
    found = credits(recipe, [group_of("rr?", (4, 8, 4)), group_of("ww", (8, 20))], run_at(29, 30))
    assert found == pytest.approx([0.70677, -0.70677, 0.0, 0.0, 0.0], abs=1e-4)


def test_it_is_the_published_system():
    assert entry(registry.file_of("curriculum_grpo"))["system"] == "train-long-think-short"
