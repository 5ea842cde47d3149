"""HGS-PRM: the search by any score, and a score of lines that learns from changed programs."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from rows import row_of

from rewardlab import registry
from rewardlab.core import Run, ask
from rewardlab.engine.step import Ops, standard_loop
from rewardlab.errors import RewardlabError
from rewardlab.methods.baselines.best_of_n import best_of_n
from rewardlab.methods.process.hgs_prm import claim, hgs_prm, syntax_changes
from rewardlab.models.embedded import untrained
from rewardlab.rewards.mutated import line_labels
from rewardlab.rewards.steps import leading_steps
from rewardlab.rollouts.recorded import recorded
from rewardlab.rollouts.separated import separated
from rewardlab.runs.config import RunConfig

PROGRAM = "def f(x):\n    y = x + 1\n    return y if y > 0 else 0"
TESTS = {"tests": "assert f(1) == 2\nassert f(-5) == 0"}


def of_problem(problem):
    return [[replace(row_of("rd"), problem=problem)]]


def test_a_given_score_and_that_of_the_base():
    for recipe, score in (
        (hgs_prm(best_of_n().but(reward=leading_steps())), leading_steps()),
        (registry.build("hgs-prm", claim.settings), claim.reward),
    ):
        assert recipe.rollout.settings["score"] == recipe.reward == score
        assert recipe.rollout.settings["stop"] == ("\n",)


def test_changes_of_a_python_program_and_of_another_language():
    run = Run(policy=None, seed=1)
    made = syntax_changes(each=60)(of_problem(ask("?", solution=PROGRAM)), [], run)
    assert {(p.meta["mutant"].split("\n")[p.meta["line"]].strip()) for p in made} == {
        "y = x - 1", "y = x + 0", "y = x + 2", "return y if y <= 0 else 0", "return y if y > 1 else 0", "return y if y > 0 else 1",
    }  # fmt: skip
    other = syntax_changes(separator=";", each=20)(of_problem(ask("?", solution="take 2; sum")), [], run)
    assert {p.meta["mutant"] for p in other} == {"drop 2; sum", "take 1; sum", "take 3; sum", "take 2; len"}
    with pytest.raises(RewardlabError, match="'solution'"):
        syntax_changes()(of_problem(ask("?")), [], run)


def test_labels_of_lines_are_what_the_sandbox_shows():
    run = Run(untrained(0, hidden=32, layers=1), verify=registry.part("reward", "code"))
    # y > 1 gives f(0) = 0 in place of 1, which no test asks for: a right line written in another way, as far as they tell
    changes = [(PROGRAM.replace("x + 1", "x - 1"), 1), (PROGRAM.replace("y > 0", "y > 1"), 2), (PROGRAM.replace("> 0", "<= 0"), 2)]
    problems = [ask("?", TESTS, mutant=text, line=line) for text, line in changes]
    groups = separated(inner=recorded(fields=("mutant",)))(problems, run)
    found = [[label for _, label in row[0].steps] for row in line_labels()(groups, run)]
    assert found == [[1, 0], [1, 1, 1], [1, 1, 0]]


def test_the_model_of_lines_learns_beside_a_policy_that_stays():
    task = registry.task("codes", test_size=2)
    recipe = hgs_prm(column="solution", separator=";", iterations=3, init="value-head").but(problems=2)
    policy = untrained(hidden=32, layers=1)
    before = {k: v.clone() for k, v in policy.state().items()}
    prm = policy.copy("prm", value_head=True)
    start = {k: v.clone() for k, v in prm.state().items()}
    run = Run(policy, models={"prm": prm}, max_new=8, seed=1, verify=registry.part("reward", task.verifier))
    standard_loop(recipe, run, Ops(recipe, run, task, RunConfig(steps=2)))
    assert all(torch.equal(v, before[k]) for k, v in policy.state().items())
    assert any(not torch.equal(v, start[k]) for k, v in prm.state().items())
    measured = recipe.measure(task.test, run)
    assert {"search", "best_of_n", "pass@1"} <= set(measured)
