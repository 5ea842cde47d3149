"""ReST-MCTS*: what it learns from a tree, and that both models learn."""

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


def test_search_and_best_of_n_are_given_as_many_tokens():
    policy = untrained(0)
    run = Run(
        policy, models={"value": policy.copy("value", value_head=True)}, max_new=8, verify=registry.part("reward", "final_number")
    )
    recipe, problems = build("rest_mcts_star", {"iterations": 3}), registry.task("arithmetic").test[:4]
    found = recipe.measure(problems, run.detached())
    before = policy.token_count.total
    recipe.rollout(problems, run.detached())
    drawn = policy.token_count.total - before
    # replies of an untrained policy run to max_new, nearly all: n replies are at least as many tokens as the search drew
    assert found["draws"] * 4 * 8 >= drawn
    assert found["pass@1"] == found["search"] == found["best_of_n"] == 0
