"""RAM: agents of several domains, and the policy as their merge."""

from __future__ import annotations

import re
import shlex

import pytest
import torch

from rewardlab import registry
from rewardlab.api.inputs import begin_run
from rewardlab.core import Run, Task, ask
from rewardlab.engine.step import Ops
from rewardlab.errors import RewardlabError
from rewardlab.methods.baselines.grpo import grpo
from rewardlab.methods.imitation.ram import DIFFERENCES, PRODUCTS, beside_other_merges, claim, ram
from rewardlab.models.embedded import untrained
from rewardlab.policies.merging import average, reinforced_agents, task_arithmetic, ties
from rewardlab.rewards.reward import reward
from rewardlab.runs.config import RunConfig
from rewardlab.tasks.sources import Listed


@reward
def letters(trajectory):
    return sum(c.isalpha() for c in trajectory.reply)


PROBLEMS = [ask(f"{word} {i}", str(i)) for i in range(6) for word in ("Add", "Take", "Double")]
TASK = Task("sums", Listed(PROBLEMS), PROBLEMS[:2], "final_number")


def begun(**settings) -> tuple[Run, Ops]:
    # as a user gives a reward and a rate: to the recipe, after it was made
    recipe = ram(grpo(n=4), **settings).but(reward=letters(), lr=1e-2, problems=2, minibatches=1)
    config = RunConfig(max_new=6, steps=2, eval_problems=2).settled()
    run = begin_run(recipe, untrained().copy("policy"), TASK, config)
    return run, Ops(recipe, run, TASK, config)


def state(model) -> dict[str, torch.Tensor]:
    return {name: w.clone() for name, w in model.state().items()}


def step(ops: Ops) -> None:
    ops.recipe.loop(ops.recipe, ops.run, ops)
    ops.run.step += 1


def test_each_agent_learns_its_own_domain_and_the_policy_is_their_merge():
    run, ops = begun(domains=("Add", "Take"), eps=1e-3)
    asked, start = [], state(run.policy)
    rollout = ops.rollout

    def noted(problems, learner):
        asked.append((learner.name, {p.question.split()[0] for p in problems}))
        return rollout(problems, learner)

    ops.rollout = noted
    step(ops)
    step(ops)
    assert asked == [("agent_1", {"Add"}), ("agent_2", {"Take"})] * 2
    agents = [state(run.models[name]) for name in ("agent_1", "agent_2")]
    assert any(not torch.equal(agents[0][name], agents[1][name]) for name in start)
    merged = reinforced_agents(start, agents, eps=1e-3, gain=0.2)
    assert all(torch.equal(run.policy.state()[name], merged[name]) for name in start)
    # the start is kept as it was: the second step merged into it, not into the first merge
    assert all(torch.equal(run.models["start"].state()[name], start[name]) for name in start)
    assert 0 < run.metrics["unique"] < 1
    # Adam's steps are about as long as the rate
    moved = max(float((agents[0][name] - start[name]).abs().max()) for name in start)
    assert 0.01 < moved < 0.03


def test_checkpoints_are_merged_as_they_are(tmp_path):
    start, places, agents = untrained(), [], []
    for i in (1, 2):
        model = start.copy("policy")
        with torch.no_grad():
            for p in model.parameters():
                p.add_(torch.randn(p.shape, generator=torch.Generator().manual_seed(i)))
        model.save(tmp_path / str(i))
        places.append(str(tmp_path / str(i)))
        agents.append(state(model))
    run, ops = begun(agents=tuple(places), how="average")
    step(ops)
    expected = average(state(start), agents)
    assert all(torch.allclose(run.policy.state()[name], expected[name], atol=1e-6) for name in expected)
    assert not any("loss" in name for name in run.metrics)


def test_a_domain_without_problems_is_said():
    _, ops = begun(domains=("Add", "Divide"))
    with pytest.raises(RewardlabError, match="0 match the domain 'Divide'"):
        step(ops)


def test_what_cannot_be_merged_is_refused():
    with pytest.raises(RewardlabError, match="ppo does not"):
        registry.build("ppo+ram")
    run, ops = begun(domains=("Add", "Take"))
    run.policy.adapt(2)
    with pytest.raises(RewardlabError, match="--lora-rank"):
        step(ops)


@pytest.mark.parametrize(
    ("question", "products", "differences"),
    [
        ("Start with 3. Multiply by 2. Add 1.", True, False),
        ("Start with 3. Subtract 2.", False, True),
        ("Start with 3. Subtract 2. Multiply by 2.", False, False),
        ("Start with 3. Add 2.", False, False),
    ],
)
def test_the_domains_of_arithmetic_exclude_each_other(question, products, differences):
    assert bool(re.search(PRODUCTS, question)) is products
    assert bool(re.search(DIFFERENCES, question)) is differences


def test_agents_or_domains_must_be_given():
    _, ops = begun()
    with pytest.raises(RewardlabError, match=r"has 0: give agents=.* or domains="):
        step(ops)
    _, ops = begun(domains=("Add",))
    with pytest.raises(RewardlabError, match="two or more agents, and has 1"):
        step(ops)


def test_a_step_without_any_verdict_logs_no_mean():
    run, ops = begun(domains=("Add", "Take"))

    @reward
    def silent(trajectory):
        return None

    ops.recipe = ops.recipe.but(reward=silent())
    ops.score = lambda groups, learner: silent()(groups, run)
    step(ops)
    assert not any(name.endswith("/reward") for name in run.metrics)


def test_all_merges_of_the_same_agents_are_measured_and_the_policy_stays():
    run, ops = begun(domains=("Add", "Take"), eps=1e-3)
    step(ops)
    before, asked, load = state(run.policy), [], run.policy.load_state
    run.policy.load_state = lambda weights: asked.append({k: w.clone() for k, w in weights.items()}) or load(weights)
    found = beside_other_merges()(PROBLEMS[:4], run)
    start, agents = run.models["start"].state(), [run.models[name].state() for name in ("agent_1", "agent_2")]
    expected = [merge(start, agents) for merge in (average, task_arithmetic, ties)]
    assert all(torch.equal(one[k], other[k]) for one, other in zip(asked, expected, strict=False) for k in before)
    assert all(torch.equal(run.policy.state()[k], w) for k, w in before.items())
    assert found["rival"] == max(found["pass@1/average"], found["pass@1/sum"], found["pass@1/ties"])
    assert (claim.against, claim.by) == ("rival", beside_other_merges())


def test_the_command_that_is_shown_can_be_typed_in_a_shell():
    typed = shlex.split(registry.data_of("ram").command("ram"))
    assert registry.parse_value(typed[typed.index("--domains") + 1]) == ["^Math", "^Trivia"]
