"""ReST-MCTS*: what it learns from a tree, and that both models learn."""

import math

import pytest
import torch

from rewardlab import build, registry
from rewardlab.core import Run
from rewardlab.engine.step import Ops, standard_loop
from rewardlab.models.embedded import untrained
from rewardlab.rewards.intrinsic import likelihood
from rewardlab.runs.config import RunConfig


def test_one_round_teaches_policy_and_value_model():
    policy = untrained(0)
    value = policy.copy("value", value_head=True)
    recipe = build("rest_mcts_star", {"problems": 3, "iterations": 4})
    # of an untrained policy no answer is right: rows that surprise it stand in for those that are
    recipe = recipe.but(reward=-1.0 * likelihood())
    run = Run(policy, models={"value": value}, steps=1, max_new=8, verify=registry.part("reward", "final_number"))
    ops = Ops(recipe, run, registry.task("arithmetic"), RunConfig())
    before = [{k: v.clone() for k, v in m.state().items()} for m in (policy, value)]
    standard_loop(recipe, run, ops)
    assert run.metrics["loss"] > 0
    assert run.metrics["value/loss"] > 0
    assert not torch.equal(before[0]["embed"], policy.state()["embed"])
    assert not torch.equal(before[1]["value_head"], value.state()["value_head"])


def test_search_and_best_of_n_are_given_as_many_tokens_of_both_models():
    policy = untrained(0)
    value = policy.copy("value", value_head=True)
    run = Run(policy, models={"value": value}, max_new=8, verify=registry.part("reward", "final_number"))
    recipe, problems = build("rest_mcts_star", {"iterations": 3}), registry.task("arithmetic").test[:4]
    found = recipe.measure(problems, run.detached())
    before = policy.token_count.generated, value.token_count.scored
    trees = recipe.rollout(problems, run.detached())
    # the leaves are valued once more, to choose the answer
    drawn, read = (
        policy.token_count.generated - before[0],
        value.token_count.scored - before[1] + sum(len(t) for g in trees for t in g),
    )
    prompts = sum(policy.prompt_lengths([p.prompt for p in problems]))
    # replies of an untrained policy run to max_new, nearly all; valuing one reads its prompt and itself
    assert found["draws"] == pytest.approx((drawn + read) / (2 * 4 * 8 + prompts), rel=0.1, abs=1)
    assert found["value_share"] == pytest.approx(read / (drawn + read))
    # the value model reads more than the policy writes: without it, best-of-n had as many draws as the policy's tokens alone give
    assert found["draws"] > 1.5 * drawn / (4 * 8)
    # replies that only vote are not read
    assert found["votes"] == pytest.approx((drawn + read) / (4 * 8), rel=0.1, abs=1)
    assert 0 <= found["majority"] <= 1
    assert found["pass@1"] == found["search"] == found["best_of_n"] == 0
    # nothing is right, so that there is nothing to rank
    assert math.isnan(found["value_auc"])
