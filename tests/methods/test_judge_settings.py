"""Methods with a judge: what it starts from and what keeps its language are settings, off by default."""

import math

import pytest
import torch
from safetensors.torch import load_file

from rewardlab import build, registry
from rewardlab.api import resume, train
from rewardlab.backends.trl.refusals import cannot_carry
from rewardlab.core import Run
from rewardlab.engine.step import Ops, standard_loop
from rewardlab.errors import RewardlabError
from rewardlab.models.embedded import untrained
from rewardlab.models.learners import learner_model
from rewardlab.rewards.intrinsic import likelihood
from rewardlab.runs.config import RunConfig
from rewardlab.util.outputs import last_values

SURPRISED = {"init": "value-head:surprise", "keep_language": 0.5}


@pytest.mark.parametrize(
    ("method", "init"), [("bradley_terry", "value-head"), ("rest_mcts_star", "value-head"), ("rl_tango", "copy:policy")]
)
def test_by_default_a_judge_is_the_papers(method, init):
    (learner,) = build(method, {}).also
    assert learner.init == init
    assert "language_model" not in str(learner.recipe)
    (other,) = build(method, {"init": "embedded:arithmetic:judge"}).also
    assert other.init == "embedded:arithmetic:judge"


def test_no_method_reads_surprise_unless_it_is_told_to():
    for method in registry.methods():
        assert not [x.init for x in build(method, {}).also if "surprise" in x.init], method
    assert [x.init for x in build("glore", {"surprise": True}).also] == ["value-head:surprise"] * 2
    with pytest.raises(RewardlabError, match=r"surprise is for a value head .* and not for 'embedded:arithmetic:judge'"):
        build("pqm", {"surprise": True, "init": "embedded:arithmetic:judge"})


@pytest.mark.parametrize("name", sorted(registry.methods()))
def test_no_model_beside_the_policy_is_one_of_the_small_ones_by_default(name):
    assert not [x.init for x in build(name, {}).also if x.init.startswith(("embedded", "untrained"))]


@pytest.mark.parametrize(("method", "task"), [("bradley_terry", "preferences"), ("rest_mcts_star", "arithmetic")])
def test_a_judge_that_reads_surprise_and_keeps_its_language_learns_beside_the_method(method, task):
    policy = untrained(0)
    recipe = build(method, {"problems": 2} | SURPRISED | ({"iterations": 3} if method == "rest_mcts_star" else {}))
    if method == "rest_mcts_star":
        # of an untrained policy no answer is right: rows that surprise it stand in for those that are
        recipe = recipe.but(reward=-1.0 * likelihood())
    (learner,) = recipe.also
    assert [leaf.name for leaf in learner.recipe.objective.leaves()][1] == "language_model"
    run = Run(policy, steps=2, max_new=8, verify=registry.part("reward", "final_number"))
    run.models[learner.name] = model = learner_model(learner, policy)
    ops = Ops(recipe, run, registry.task(task, test_size=2), RunConfig())
    before = {name: p.clone() for name, p in model.state().items()}
    for _ in range(2):
        standard_loop(recipe, run, ops)
        run.step += 1
    assert run.metrics[f"{learner.name}/loss/language_model"] > 0
    # the first step moves the head of zeros, the second the vector behind it
    assert not torch.equal(model.state()["surprise.vector"], before["surprise.vector"])


def test_trl_is_told_that_it_cannot_compute_surprise():
    grpo = build("grpo", {})
    learner = build("bradley_terry", {"init": "value-head:surprise"}).also
    assert "reads surprise, which the lean policy alone computes" in cannot_carry(grpo.but(also=learner))
    assert not cannot_carry(grpo.but(also=build("bradley_terry", {}).also))


def test_votes_are_weighed_by_a_saved_judge_that_reads_surprise(tmp_path):
    policy = untrained(0)
    (learner,) = build("bradley_terry", {"init": "value-head:surprise"}).also
    judge = learner_model(learner, policy)
    torch.nn.init.normal_(judge.model.value_head, generator=torch.Generator().manual_seed(1))
    judge.save(tmp_path / "judge")
    recipe = build("weighted_vote", {"scorer": str(tmp_path / "judge"), "n": 3})
    run = Run(policy, max_new=6, models={"verifier": learner_model(recipe.also[0], policy)})
    groups = recipe.rollout(registry.task("arithmetic", test_size=2).test, run)
    odds = last_values(judge, [t for group in groups for t in group])
    found = [s.value for row in recipe.reward(groups, run) for s in row]
    assert found == pytest.approx([1 / (1 + math.exp(-x)) for x in odds], rel=1e-5)
    assert len(set(found)) > 1


def test_a_resumed_run_goes_on_with_what_its_judge_has_learnt(tmp_path):
    given = {"eval_problems": 2, "device": "cpu", "settings": {"problems": 2} | SURPRISED}
    for name, steps in (("whole", 2), ("cut", 1)):
        train("bradley_terry", "untrained", "preferences:test_size=2", steps=steps, out=tmp_path / name, **given)
    resume(tmp_path / "cut", steps=2)
    whole, cut = (load_file(tmp_path / run / "checkpoints" / "step-000002" / "reward.safetensors") for run in ("whole", "cut"))
    assert "surprise.vector" in whole
    assert whole.keys() == cut.keys()
    assert all(torch.equal(whole[name], cut[name]) for name in whole)
