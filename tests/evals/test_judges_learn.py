"""Judges learn to judge, in a world that takes seconds: a reply is right if it repeats the two digits of its prompt."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
import torch

from rewardlab import build, registry
from rewardlab.core import Learner, Recipe, Run, Task, Update, ask, seed_of
from rewardlab.engine.step import Ops, standard_loop
from rewardlab.evals.judges import judge_auc
from rewardlab.evals.pairs import pair_accuracy
from rewardlab.models.embedded import untrained
from rewardlab.models.learners import learner_model
from rewardlab.objectives.labels import label_cross_entropy
from rewardlab.rewards.reward import reward
from rewardlab.rollouts.recorded import recorded
from rewardlab.runs.config import RunConfig


class Echoes:
    """Endless problems: two digits, to be repeated, one a line."""

    def __getitem__(self, i):
        rng = random.Random(seed_of("echo", i))
        digits = [rng.choice("0123456789") for _ in range(2)]
        wrong = list(digits)
        place = rng.randrange(2)
        wrong[place] = rng.choice([d for d in "0123456789" if d != digits[place]])
        right, flawed = "\n".join(digits), "\n".join(wrong)
        return ask("".join(digits), right, solution=right, chosen=right, rejected=flawed)


TASK = Task("echo", Echoes(), [Echoes()[-i] for i in range(1, 101)], "exact_match", max_new=8)


@reward(steps=True)
def repeated(trajectory):
    """1 where a line is the prompt's digit in its place."""
    wanted = trajectory.problem.question
    lines = trajectory.reply.split("\n")
    return [(at, float(line == digit)) for at, line, digit in zip(trajectory.steps, lines, wanted, strict=True)]


def trained(recipe, run, steps):
    ops = Ops(recipe, replace(run, steps=steps), TASK, RunConfig(steps=steps))
    while ops.run.step < steps:
        standard_loop(recipe, ops.run, ops)
        ops.run.step += 1
    return ops.run


@pytest.fixture(scope="module")
def policy():
    """A small policy that can repeat digits."""
    model = untrained(0, hidden=64, layers=2)
    recipe = build("sft", {"lr": 5e-3, "problems": 32}).but(measure=None, warmup=10, lr_end=0.1)
    trained(recipe, Run(model), 150)
    return model


def run_of(recipe, policy):
    torch.manual_seed(0)
    verify = registry.part("reward", TASK.verifier)
    models = {learner.name: learner_model(learner, policy) for learner in recipe.also}
    return Run(policy, reference=policy, models=models, verify=verify)


@pytest.mark.slow
def test_a_reward_model_that_reads_surprise_learns_preferences(policy):
    recipe = build("bradley_terry", {"init": "value-head:surprise", "reward_lr": 3e-3})
    run = run_of(recipe, policy)
    before = pair_accuracy()(TASK.test, run)["pair_accuracy"]
    trained(recipe, run, 25)
    assert before == 0.5
    assert pair_accuracy()(TASK.test, run)["pair_accuracy"] > 0.85


@pytest.mark.slow
def test_a_process_reward_model_learns_which_steps_are_wrong(policy):
    learner = Learner("reward", "value-head:surprise", Recipe(objective=label_cross_entropy(before=1), update=Update(lr=3e-3)))
    both = recorded(fields=("chosen", "rejected"), steps="newline")
    recipe = Recipe(rollout=both, reward=repeated(), also=(learner,)).but(problems=32)
    run = run_of(recipe, policy)
    trained(recipe, run, 30)
    found = judge_auc(rollout=both, steps=repeated(), model="reward")(TASK.test, run)
    assert found["step_auc"] > 0.85


@pytest.mark.slow
def test_an_implicit_process_reward_model_learns_steps_from_outcomes(policy):
    (prm,) = build("prime", {"beta": 0.5, "prm_lr": 1e-3}).also
    both = recorded(fields=("chosen", "rejected"), steps="newline")
    recipe = Recipe(rollout=both, reward=registry.part("reward", "correct"), also=(prm,)).but(problems=32)
    run = run_of(recipe, policy)
    trained(recipe, run, 30)
    found = judge_auc(rollout=both, steps=repeated(), model="prm", implicit=True)(TASK.test, run)
    assert found["outcome_auc"] > 0.85
    assert found["step_auc"] > 0.85
