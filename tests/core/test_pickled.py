"""Recipes and parts in pickles."""

from __future__ import annotations

import copy
import pickle

import pytest

from rewardlab import Result, build, registry, reward
from rewardlab.core import Run
from rewardlab.errors import RewardlabError
from rewardlab.rewards.algebra import clip
from rewardlab.rewards.length import length_penalty
from rewardlab.rewards.task import correct
from rewardlab.verifiers.match import final_number


@reward
def spaces(trajectory, *, worth: float = 1.0):
    return worth * trajectory.reply.count(" ")


def of_a_function():
    @reward
    def local(trajectory):
        return 1.0

    return local()


REWARDS = [
    spaces(worth=2.0),
    final_number(),
    clip(0.5 * (correct() + length_penalty(per_token=0.1)).named("both") >> 1 - spaces(), low=0),
]


@pytest.mark.parametrize("part", REWARDS, ids=str)
def test_a_reward_comes_back_from_a_pickle(part):
    again = pickle.loads(pickle.dumps(part))
    assert (again, str(again), type(again), again.options, again.settings) == (
        part,
        str(part),
        type(part),
        part.options,
        part.settings,
    )
    assert again.to_json() == part.to_json()


@pytest.mark.parametrize("method", ["grpo", "ppo", "dapo", "best_of_n"])
def test_a_recipe_comes_back_from_a_pickle(method):
    recipe = build(method)
    assert pickle.loads(pickle.dumps(recipe)) == recipe
    assert str(copy.deepcopy(recipe)) == str(recipe)


def test_a_part_of_a_function_is_copied_and_not_pickled():
    local = of_a_function()
    assert copy.copy(local) == local == copy.deepcopy(local) == local.but()
    with pytest.raises(RewardlabError, match="Write it at the top level of a file"):
        pickle.dumps(local)


def test_a_result_is_pickled_without_its_live_run(tmp_path):
    result = Result(tmp_path, {"steps": 1}, Run(None))
    again = pickle.loads(pickle.dumps(result))
    assert (again.out, again.summary, again.run) == (tmp_path, {"steps": 1}, None)


def test_every_method_is_pickled():
    for method in ("rloo", "prime", "gspo"):
        assert str(pickle.loads(pickle.dumps(registry.build(method)))) == str(registry.build(method))
