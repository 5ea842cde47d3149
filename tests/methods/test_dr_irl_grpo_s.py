"""DR-IRL: weights of prompts, credit that they multiply, rewards of categories, and that they are learnt from demonstrations."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from rewardlab import registry
from rewardlab.core import Run, Score, Task, Trajectory, Turn, ask
from rewardlab.engine.collate import collate
from rewardlab.engine.step import Ops
from rewardlab.errors import RewardlabError
from rewardlab.methods.shaping.dr_irl_grpo_s import MEMORY, difficulty, distance, rewards_first, weights_of
from rewardlab.models.embedded import untrained
from rewardlab.models.learners import learner_model
from rewardlab.rewards.reward import reward
from rewardlab.runs.config import RunConfig


def row(text: str, length: int = 3, **meta) -> Trajectory:
    zeros = np.zeros(length, np.float32)
    turns = (Turn(None, np.zeros(2, np.int64)), Turn("policy", np.zeros(length, np.int64), zeros, zeros, text))
    return Trajectory(ask("How?", **meta), turns, "end")


def sigmoid(x: float) -> float:
    return 1 / (1 + math.exp(-x))


def test_weights_by_hand():
    # h .2 and .6, mean .4; no gap is an outlier
    weights = [sigmoid(h) / sigmoid(0.4) for h in (0.2, 0.6)]
    assert weights_of([(0.2, 0.0), (0.6, 2.0)]) == pytest.approx(weights)
    assert weights_of([(0.3, 5.0)]) == pytest.approx([1.0])
    assert weights_of([]) == []


def test_a_gap_that_is_an_outlier_weighs_on_all_prompts_of_its_category():
    # gaps 1 (nine times) and 11: mean 2, variance 9; (11 - 2)^2 = 81 > 4 * 9, so that the mean of the others is 1
    found = weights_of([(0.5, 1.0)] * 9 + [(0.5, 11.0)])
    assert found == pytest.approx([sigmoid(1) / sigmoid(2)] * 10)
    # far below 0, where a sigmoid is 0 in floating point: e^-900 / e^-800
    low = weights_of([(0.0, -900.0)] * 9 + [(0.0, 100.0)])
    assert low == pytest.approx([math.exp(-100)] * 10)


def test_the_distance_is_by_sentences():
    assert distance("so so", "so so") == pytest.approx(0, abs=1e-6)
    # one sentence has its like in the demonstration, the other shares no word: (0 + 1) / 2; its order does not count
    assert distance("Call help. No way!", "Not that. Call help.") == pytest.approx(0.5)
    assert distance("call help.\nNo way!", "Not that. Call help.") == pytest.approx(0.5)
    assert distance("", "so so") == distance("x", "so so") == 1.0


@reward
def worth(trajectory):
    """A third of the letters; nothing is said of an empty reply."""
    return Score(len(trajectory.reply) / 3) if trajectory.reply else Score(None)


def test_a_prompt_weighs_what_its_replies_lack_and_one_without_demonstration_weighs_1():
    run = Run(untrained())
    same, far = [row("so so", solution="so so")] * 2, [row("x", solution="so so"), row("", solution="so so")]
    found = difficulty(inner=worth())([same, far, [row("x")]], run)
    # h 0 and 1 (no word is shared; the empty reply shares none either), mean 1/2
    assert [s.value for s in found[0]] == pytest.approx([sigmoid(0) / sigmoid(0.5)] * 2)
    assert [s.value for s in found[1]] == pytest.approx([sigmoid(1) / sigmoid(0.5)] * 2)
    assert [s.value for s in found[2]] == [1.0]


def test_each_category_has_means_of_its_own():
    near, far = [row("so so", solution="so so", kind="a")], [row("x", solution="so so", kind="b")]
    for column, expected in (("kind", [1.0, 1.0]), ("", [sigmoid(0) / sigmoid(0.5), sigmoid(1) / sigmoid(0.5)])):
        found = difficulty(inner=worth(), column=column)([near, far], Run(untrained()))
        assert [group[0].value for group in found] == pytest.approx(expected)


def test_the_weights_multiply_the_advantages_and_not_the_rewards():
    base = registry.build("grpo")
    recipe = base.but(
        reward=worth() + 0.0 * difficulty(inner=worth()),
        credit=base.credit >> registry.part("credit", "scale_by_term", term="difficulty"),
    )
    groups = [[row("so", 2, solution="so it is"), row("no way", 4, solution="so it is")], [row("a", 1), row("bcd", 3), row("", 2)]]
    run = Run(untrained())
    scores = recipe.reward(groups, run)
    assert [s.total for s in scores[0]] == pytest.approx([2 / 3, 2])
    assert scores[1][2].total is None
    weight = scores[0][0].terms["difficulty"].value
    batch = collate(groups, scores, torch.device("cpu"))
    plain, scaled = (part(batch.reward, batch, run) for part in (base.credit, recipe.credit))
    factor = torch.tensor([weight, weight, 1.0, 1.0, 1.0])[:, None]
    assert torch.allclose(scaled, plain * factor, atol=1e-5)
    # (2/3 - 4/3) / (std .9428 + 1e-4)
    assert scaled[0][batch.mask[0]].tolist() == pytest.approx([-0.70703 * weight] * 2, abs=1e-3)


def test_a_term_that_no_reward_reports_is_refused():
    recipe = registry.build("grpo").but(reward=worth())
    group = [row("a"), row("bc")]
    batch = collate([group], recipe.reward([group], Run(None)), torch.device("cpu"))
    with pytest.raises(RewardlabError, match="reward term"):
        registry.part("credit", "scale_by_term", term="dificulty")(batch.reward, batch, Run(None))


def test_each_category_is_scored_by_its_own_model():
    policy, models = untrained(), {"irl_0": untrained(1), "irl_1": untrained(2)}
    for i, model in enumerate(models.values()):
        model.model.value_head = torch.nn.Parameter(torch.full((1, 32), float(i + 1)))
    run = Run(policy, models=models)
    problems = [ask("How?", category=c) for c in ("a", "b", "other")]
    prompts = policy.read([Trajectory(p) for p in problems], [p.prompt for p in problems])
    groups = [[t] for t in policy.write(prompts, ["so"] * 3)]
    by = registry.part("reward", "category_score", models="irl", categories=("a", "b"))
    found = [row[0].value for row in by(groups, run)]
    one = [registry.part("reward", "model_score", model=name)(groups, run)[0][0].value for name in models]
    assert found[:2] == pytest.approx([one[0], registry.part("reward", "model_score", model="irl_1")(groups, run)[1][0].value])
    assert found[2] is None
    everyone = registry.part("reward", "category_score", models="irl")(groups, run)
    assert [row[0].value for row in everyone] == pytest.approx([one[0]] * 3)


def test_the_settings_make_a_model_for_each_category():
    recipe = registry.build("dr_irl_grpo_s", {"categories": "a,b"})
    assert [learner.name for learner in recipe.also] == ["irl_0", "irl_1"]
    assert "difficulty" in str(recipe.reward)
    assert "scale_by_term" in str(recipe.credit)
    plain = registry.build("dr_irl_grpo_s", {"scaled": False})
    assert [learner.name for learner in plain.also] == ["irl_0"]
    assert "difficulty" not in str(plain.reward)


def test_rewards_of_categories_are_learnt_from_demonstrations_before_the_first_step_and_once():
    """Demonstrations of one category are what no policy writes by chance; each is above the policy's own replies in the end."""
    texts = {"a": "5+5=10", "b": "7-5=2"}
    rows = [ask(f"{i}+1?", category="ab"[i % 2], solution=texts["ab"[i % 2]]) for i in range(64)]
    policy, recipe = untrained(), registry.build("dr_irl_grpo_s", {"categories": "a, b", "pairs": 64, "rm_lr": 3e-3})
    run = Run(policy, steps=1, max_new=6)
    run.models |= {learner.name: learner_model(learner, policy) for learner in recipe.also}
    ops, steps = Ops(recipe, run, Task("sums", rows, rows, "final_answer"), RunConfig()), []
    ops.standard_step = steps.append
    settings = {**recipe.loop.settings, "at_once": 8}
    for _ in range(2):
        rewards_first(**settings)(recipe, run, ops)
    # four updates of each, in the first step alone
    assert [ops.learners[f"irl_{i}"].updates for i in range(2)] == [4, 4]
    assert len(steps) == 2
    assert run.memory[MEMORY] >= 0.9
    with pytest.raises(RewardlabError, match="category 'c'"):
        rewards_first(**{**settings, "categories": ("a", "c")})(recipe, Run(policy), ops)
