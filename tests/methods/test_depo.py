"""DEPO: what is explored is sampled, over any base; the mechanism is tested in tests/rollouts/test_explorability_sampling.py."""

from __future__ import annotations

from rewardlab import registry
from rewardlab.core import Run
from rewardlab.engine.step import Ops, standard_loop
from rewardlab.methods.curricula.depo import MEMORY
from rewardlab.models.embedded import untrained
from rewardlab.rewards.reward import reward
from rewardlab.runs.config import RunConfig


@reward
def ends_odd(trajectory):
    """A verdict that replies of an untrained policy differ in."""
    return float(trajectory.ids[-1] % 2)


def test_from_the_second_epoch_on_fewer_problems_are_sampled_the_most_explorable_ones():
    recipe = registry.build("grpo+depo", {"n": 4, "problems": 10, "start": 0.6, "replay": 0.1}).but(
        reward=ends_odd().named("correct")
    )
    run = Run(untrained(), max_new=3, verify=ends_odd())
    ops = Ops(recipe, run, registry.task("arithmetic:size=10", test_size=1), RunConfig())
    sampled = []
    for _ in range(2):
        run.metrics = {}
        standard_loop(recipe, run, ops)
        run.step += 1
        assert ops.step_data is not None
        sampled.append([g[0].problem.key for g in ops.step_data.groups])
    # six tenths less 5% for the epoch before: five of ten, and one that is replayed
    assert [len(set(keys)) for keys in sampled] == [10, 6]
    first = {key: known["visits"][0] for key, known in run.memory[MEMORY].items()}
    # no problem that was skipped showed more than the five
    skipped = [first[key] for key in set(sampled[0]) - set(sampled[1])]
    assert sorted((first[key] for key in sampled[1]), reverse=True)[4] >= max(skipped)


def test_it_wraps_the_rollout_of_any_base():
    assert str(registry.build("dapo+depo").rollout).startswith("explorability_sampling(inner=solved_between(")
