"""CodeLLM-DPO: pairs of own programs by execution, and the tiers that PPO is paid with instead."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from rows import Replies

from rewardlab import registry
from rewardlab.core import Run, Score, Task, Trajectory, Turn, ask
from rewardlab.engine.step import Ops
from rewardlab.errors import RewardlabError
from rewardlab.methods.objectives.codellm_dpo import codellm_dpo, executed_pairs
from rewardlab.models.embedded import untrained
from rewardlab.rewards.reward import reward
from rewardlab.rewards.task import correct
from rewardlab.rewards.tests import execution_tiers, tier_of
from rewardlab.runs.config import RunConfig
from rewardlab.tasks.sources import Shuffled

IO = {"io": [["[]", "0"], ["[1, 3]", "3"], ["[4, 2]", "4"]]}
LARGEST = ask("Largest?", IO)


def run_of(*texts: str, verifier: str = "list_program") -> Run:
    """The frozen start writes these programs; the policy that learns is another."""
    run = Run(policy=Replies([]), verify=registry.part("reward", verifier))
    run.reference = Replies(texts)
    return run


def pairs_of(*texts: str, problems=(LARGEST,), **settings) -> list[list[str]]:
    n = len(texts) // len(problems)
    groups = executed_pairs(by=correct(), n=n, **settings)(list(problems), run_of(*texts))
    return [[t.reply for t in group] for group in groups]


def test_a_pair_is_the_first_program_that_passes_and_the_first_that_fails():
    # sums fails a test of three, the max cannot be read: how badly a program fails does not matter
    assert pairs_of("the max", "max", "last", "sort; last") == [["max", "the max"]]
    assert pairs_of("last", "sort; last", "max", "the max") == [["sort; last", "last"]]


def test_further_pairs_share_no_program_and_equal_texts_count_once():
    texts = ("max", "last", "max", "sort; last", "last", "the max", "min", "reverse; max")
    assert pairs_of(*texts, pairs=4) == [["max", "last"], ["sort; last", "the max"], ["reverse; max", "min"]]
    assert pairs_of(*texts, pairs=2) == [["max", "last"], ["sort; last", "the max"]]
    # two right ones and one wrong one make one pair
    assert pairs_of("max", "sort; last", "min", "min", pairs=4) == [["max", "min"]]


def test_prompts_without_both_kinds_are_left_out_and_an_empty_step_teaches_nothing():
    other = ask("Largest of all?", IO)
    assert pairs_of("max", "sort; last", "min", "max", problems=(LARGEST, other)) == [["max", "min"]]
    # all right, and all wrong
    assert pairs_of("max", "sort; last", "min", "the max", problems=(LARGEST, other)) == [["max", "max"], ["min", "min"]]
    # without a verdict nothing is told apart
    assert pairs_of("max", "min", problems=(ask("Largest?", None),)) == [["max", "max"]]


def test_the_share_of_prompts_with_a_pair_is_logged_however_many_pairs_they_have():
    run = run_of("max", "min", "sort; last", "last", "max", "max", "max", "max")
    executed_pairs(by=correct(), n=4, pairs=2)([LARGEST, ask("Largest of all?", IO)], run)
    assert run.metrics["paired"] == 0.5


@reward
def odd(trajectory):
    """Something in which replies of an untrained policy differ."""
    return float(len(trajectory.reply) % 2)


def step_of(recipe) -> tuple[Ops, Run]:
    problems = [ask(f"{i}+{i}=?", str(2 * i)) for i in range(10, 18)]
    run = Run(untrained().copy("policy"), steps=2, max_new=4, verify=odd())
    run.reference = run.policy.copy("reference")
    ops = Ops(recipe, run, Task("pairs", Shuffled(problems), problems[:2], "final_number", max_new=4), RunConfig())
    ops.standard_step(recipe)
    return ops, run


def test_the_loss_is_dpos_against_the_start_and_the_same_whatever_a_verdict_is_worth():
    ops, run = step_of(registry.build("codellm_dpo", {"problems": 4, "n": 8, "pairs": 3}))
    rows = [t for group in ops.step_data.groups for t in group]
    assert [len(t.reply) % 2 for t in rows] == [1, 0] * len(ops.step_data.groups)
    assert len(ops.step_data.groups) > 4  # several pairs to a prompt
    # policy and reference are the same at first: -log sigmoid(0)
    assert run.metrics["loss"] == pytest.approx(math.log(2), abs=1e-4)
    # paid with tiers, PPO follows the numbers; pairs ask for the order alone
    base = registry.build("dpo", {"problems": 4}).but(reward=execution_tiers(wrong=0.9))
    assert str(codellm_dpo(base).rollout) == str(codellm_dpo().rollout) == "executed_pairs(by=correct())"


def test_the_reference_is_the_one_who_writes():
    rollout = registry.build("codellm_dpo").rollout
    assert rollout.settings.get("model", "reference") == "reference"
    assert str(registry.build("codellm_dpo", {"beta": 0.3}).objective) == "dpo_loss(beta=0.3)"


def rows(*texts: str, answer=IO) -> list[Trajectory]:
    return [Trajectory(ask("Largest?", answer), (Turn("policy", np.zeros(2, np.int64), text=x),), "end") for x in texts]


def tiers(group: list[Trajectory], verifier: str = "list_program", **settings) -> list[float | None]:
    run = Run(policy=None, verify=registry.part("reward", verifier))
    (scores,) = execution_tiers(**settings)([group], run)
    return [s.total for s in scores]


def test_the_tiers_by_how_far_a_program_comes():
    texts = ("max", "last", "max; sort", "the max", "")
    assert tiers(rows(*texts)) == [1.0, -0.3, -0.6, -1.0, -1.0]
    assert tiers(rows(*texts), wrong=0.9, compile_error=0.0) == [1.0, 0.9, -0.6, 0.0, 0.0]
    assert tiers(rows("max", answer=None)) == [None]
    with pytest.raises(RewardlabError, match="whether a program ran"):
        tiers(rows("max", answer="max"), "exact_match")


def test_the_tiers_of_python_in_the_sandbox():
    programs = ("def f(n): return n * 2", "def f(n): return n", "def f(n): return n.x", "def f(")
    group = rows(*programs, answer={"tests": "assert f(3) == 6"})
    try:
        found = tiers(group, "code")
    except RewardlabError as problem:
        pytest.skip(str(problem))
    assert found == [1.0, -0.3, -0.6, -1.0]


def test_a_verifier_that_does_not_say_has_read_the_program():
    score = Score(0.0, why="?")
    assert tier_of(replace(score)) == "runtime_error"
    assert tier_of(Score(None, why="down")) is None
    assert tier_of(Score(1.0)) == "right"
