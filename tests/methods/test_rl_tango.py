"""RL Tango: how step and outcome credit mix, how classes are weighed, and what the verifier is asked."""

import math
from dataclasses import replace

import pytest
import torch

from rewardlab import build, registry
from rewardlab.core import Batch, Events, Run, Score, Trajectory, ask
from rewardlab.credit.group import center
from rewardlab.engine.step import Ops, standard_loop
from rewardlab.methods.judges.rl_tango import balance_verdicts, fading_steps, solutions
from rewardlab.models.embedded import untrained
from rewardlab.rewards.reward import reward
from rewardlab.runs.config import RunConfig


def batch_of(reward, **columns):
    reward = torch.tensor(reward)
    yes = torch.ones_like(reward, dtype=torch.bool)
    zero = torch.zeros(len(reward), dtype=torch.long)
    return Batch(yes.long(), yes, zero + reward.shape[1], reward, reward, yes, zero, **columns)


def test_step_credit_fades_exponentially():
    outcome = torch.tensor([[0.0, 1.0], [0.0, 0.0]])
    step = torch.tensor([[0.5, 0.5], [-0.5, 0.5]])
    terms = {
        "correct": Events(outcome, torch.tensor([[False, True]] * 2)),
        "step_verdicts": Events(step, torch.ones(2, 2, dtype=torch.bool)),
    }
    batch = batch_of([[0.0, 1.0], [0.0, 0.0]], terms=terms)
    run = Run(None, step=0, steps=4)
    mix = fading_steps(chain=center(), start=0.4, end=0.1)
    # centred: outcome +-1/2 at the ends; steps have mean 1/4: 1/4 1/4 / -3/4 1/4.  a = 0.4
    want = torch.tensor([[0.1, 0.6 * 0.5 + 0.1], [-0.3, -0.6 * 0.5 + 0.1]])
    assert torch.allclose(mix(batch.reward, batch, run), want)
    # half-way a = 0.4 sqrt(1/4) = 0.2, at the end 0.1
    mix(batch.reward, batch, replace(run, step=2, metrics=(seen := {})))
    assert seen["step_share"] == pytest.approx(0.2)
    mix(batch.reward, batch, replace(run, step=4, metrics=(seen := {})))
    assert seen["step_share"] == pytest.approx(0.1)


def test_the_rarer_class_weighs_more_and_the_mean_weight_is_one():
    batch = batch_of([[1.0]] * 5)
    answers = ["right", "right", "right", "right", "wrong"]
    batch.rows = [(Trajectory(ask("?", a)), Score(1.0)) for a in answers]
    run = Run(None)
    got = balance_verdicts(decay=0.5)(batch.reward, batch, run).squeeze(1)
    # 1/sqrt(4) = 1/2 four times and 1 once: sum 3, scaled to 5
    assert got.tolist() == pytest.approx([5 / 6] * 4 + [5 / 3])
    batch.rows = batch.rows[::-1][:1] * 5
    balance_verdicts(decay=0.5)(batch.reward, batch, run)
    # counts were (4, 1), now (0, 5): half of each
    assert run.memory["rl_tango.counts"] == [2.0, 3.0]


@reward
def known_answers(trajectory) -> float | None:
    """No verdict on "?"."""
    return None if trajectory.reply == "?" else float(trajectory.reply.endswith("12"))


def test_the_verifier_is_asked_about_the_generators_solutions_and_told_whether_answers_were_right():
    policy = untrained(0)
    problem = ask("Start with 7.", "12")
    prompt = policy.read([Trajectory(problem)], [problem.prompt])
    right, wrong, none = (policy.write(prompt, [text])[0] for text in ("7+5=12\nAnswer: 12", "Answer: 13", "?"))
    run = Run(policy, models={"verifier": untrained(1)}, verify=known_answers())
    # whatever the generator is paid: these scores say nothing of what is right
    scores = [[Score(0.5)] * 3]
    found = solutions(each=3, told="")([[right, wrong, none]], scores, run)
    assert [p.answer for p in found] == ["right", "wrong"]
    assert found[0].question == "Start with 7.\n1: 7+5=12\n2: Answer: 12"
    run.models["verifier"].context = 100
    assert solutions(each=3, told="")([[right, wrong, none]], scores, run) == []
    run.models["verifier"].context = 512
    assert len(solutions(each=1)([[right, wrong, none]], scores, run)) == 1


@pytest.mark.parametrize(
    ("settings", "want"),
    # which of generator and verifier change in three steps
    [
        ({"every": 2}, [[True, True], [True, False], [True, True]]),
        ({"every": 2, "alone": 2}, [[False, True], [False, True], [True, True]]),
    ],
)
def test_generator_and_verifier_learn_by_turns(settings, want):
    policy = untrained(0)
    verifier = untrained(1, task=registry.task("verdicts"))
    verifier.name = "verifier"
    recipe = build("rl_tango", {"n": 4, "problems": 2, "n_verdicts": 3, **settings})
    letters = registry.part("reward", "likelihood")
    (learner,) = recipe.also
    learner = replace(learner, recipe=learner.recipe.but(reward=letters + learner.recipe.reward))
    recipe = recipe.but(reward=recipe.reward + letters, also=(learner,))
    run = Run(policy, models={"verifier": verifier}, steps=3, max_new=8, verify=registry.part("reward", "final_number"))
    ops = Ops(recipe, run, registry.task("arithmetic"), RunConfig())
    changed = []
    for _ in range(3):
        before = [{k: v.clone() for k, v in m.state().items()} for m in (policy, verifier)]
        (recipe.loop or standard_loop)(recipe, run, ops)
        run.step += 1
        changed.append(
            [any(not torch.equal(b[k], v) for k, v in m.state().items()) for b, m in zip(before, (policy, verifier), strict=True)]
        )
    assert changed == want
    assert math.isfinite(run.metrics["loss"])
    assert run.metrics["step_share"] == pytest.approx(0.1 * (1e-3 / 0.1) ** (2 / 3))
