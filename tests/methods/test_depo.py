"""DEPO: what is explored is sampled, over any base; the mechanism is tested in tests/rollouts/test_explorability_sampling.py."""

from __future__ import annotations

from rewardlab import registry
from rewardlab.core import Run, ask
from rewardlab.engine.step import Ops, standard_loop
from rewardlab.methods.curricula.depo import MEMORY, choose, depo
from rewardlab.models.embedded import untrained
from rewardlab.rewards.reward import reward
from rewardlab.runs.config import RunConfig


@reward
def ends_odd(trajectory):
    """A verdict that replies of an untrained policy differ in."""
    return float(trajectory.ids[-1] % 2)


def test_from_the_second_epoch_on_fewer_problems_are_sampled_the_most_explorable_ones():
    recipe = registry.build("grpo+depo", {"n": 4, "problems": 10, "start": 0.63, "replay": 0.25}).but(
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
    # .63 less 3% for the epoch before: six of ten, and of the four skipped one that is replayed
    assert [len(set(keys)) for keys in sampled] == [10, 7]
    first = {key: known["visits"][0] for key, known in run.memory[MEMORY].items()}
    # no problem that was skipped showed more than the six
    skipped = [first[key] for key in set(sampled[0]) - set(sampled[1])]
    assert sorted((first[key] for key in sampled[1]), reverse=True)[5] >= max(skipped)


def test_by_default_each_visit_after_the_first_skips_problems():
    problems = [ask(f"{i}") for i in range(16)]
    settings = {k: v for k, v in depo().rollout.settings.items() if k not in ("inner", "limit")}
    assert depo().rollout.settings["limit"] == 1.5
    memory = {p.key: {"seen": 0, "visits": []} for p in problems}
    kept = []
    for _ in range(6):
        kept.append(len(choose(problems, memory, **settings)))
        for i, p in enumerate(problems):
            memory[p.key]["visits"].append(float(i))
    # 16 times 1, .97, .94, .91, .88, .85, rounded down; a tenth of what is skipped rounds to none
    assert kept == [16, 15, 15, 14, 14, 13]


def test_it_wraps_the_rollout_of_any_base():
    assert str(registry.build("dapo+depo").rollout).startswith("explorability_sampling(inner=solved_between(")
