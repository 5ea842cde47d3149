"""Second models: they learn from rollouts of their own, or from the policy's by rewards of their own, and from nothing else."""

import numpy as np
import torch

from rewardlab import build, registry
from rewardlab.core import Learner, Part, Recipe, Run, Score, Update
from rewardlab.core.part import decorator
from rewardlab.engine.ending import main_model
from rewardlab.engine.step import Ops, standard_loop
from rewardlab.models.embedded import untrained
from rewardlab.objectives.labels import label_cross_entropy
from rewardlab.rewards.reward import reward
from rewardlab.runs.config import RunConfig

problems_part = decorator(Part)


@problems_part
def same_problems(groups, scores, run):
    """The opponent is asked what the policy was asked."""
    return [group[0].problem for group in groups]


@reward
def one(trajectory):
    return 1.0


@reward
def ends_of_thirds(trajectory):
    """One half at every third decision."""
    return Score(None, steps=tuple((int(i), 0.5) for i in np.flatnonzero(trajectory.mask)[::3]))


def test_a_learner_with_problems_of_its_own_learns_from_its_own_rollouts():
    confident = registry.part("reward", "likelihood")
    own = build("grpo", {"n": 4, "lr": 1e-2}).but(reward=confident)
    policy = untrained(0)
    opponent = policy.copy("opponent")
    recipe = build("grpo", {"n": 4, "problems": 3}).but(also=(Learner("opponent", "copy:policy", own, same_problems()),))
    task = registry.task("arithmetic")
    run = Run(policy, models={"opponent": opponent}, steps=1, max_new=12, verify=registry.part("reward", "final_number"))
    ops = Ops(recipe, run, task, RunConfig())
    before = {k: v.clone() for k, v in opponent.state().items()}
    standard_loop(recipe, run, ops)

    assert any(not torch.equal(before[k], v) for k, v in opponent.state().items())
    assert run.metrics["opponent/grad_norm"] > 0
    learner = ops.learners["opponent"]
    rollouts = ops.rollout(task.test[:1], learner)
    assert {turn.author for t in rollouts[0] for turn in t.turns} == {None, "opponent"}
    assert ops.collate(rollouts, ops.score(rollouts, learner), learner).mask.any()


def test_a_learner_with_a_reward_of_its_own_learns_that_of_the_policys_rollouts():
    """One learns what the policy is paid, the other the labels of its own reward: on what the policy wrote."""
    plain = Recipe(objective=label_cross_entropy(), update=Update(lr=1e-2))
    labelled = plain.but(reward=ends_of_thirds())
    also = (Learner("outcome", "value-head", plain), Learner("process", "value-head", labelled))
    recipe = build("grpo", {"n": 4, "problems": 3, "beta": 0.0}).but(reward=one(), also=also)
    policy = untrained(0)
    models = {name: policy.copy(name, value_head=True) for name in ("outcome", "process")}
    run = Run(policy, models=models, steps=1, max_new=12, verify=registry.part("reward", "final_number"))
    ops, seen = Ops(recipe, run, registry.task("arithmetic"), RunConfig()), {}
    ops.update = lambda batch, learner=None: seen.update({(learner or ops.policy).name: batch})
    standard_loop(recipe, run, ops)

    groups = [[t for t, _ in seen["policy"].rows]]
    assert [[t for t, _ in seen[name].rows] for name in models] == groups * 2
    assert torch.equal(seen["outcome"].reward, seen["policy"].reward)
    for (t, score), row in zip(seen["process"].rows, seen["process"].reward, strict=True):
        at = [int(i) for i in torch.from_numpy(t.mask).nonzero().squeeze(1)[::3]]
        assert [i for i, _ in score.steps] == at
        assert row.nonzero().squeeze(1).tolist() == at
        assert row[at].tolist() == [0.5] * len(at)
    assert run.metrics["reward"] == 1.0


def test_the_policy_is_the_first_learner_and_each_has_its_own_optimiser():
    policy = untrained(0)
    run = Run(policy, models={"critic": policy.copy("critic", value_head=True)})
    recipe = build("ppo", {"lr": 1e-3})
    ops = Ops(recipe, run, registry.task("arithmetic"), RunConfig())
    assert list(ops.learners) == ["policy", "critic"]
    assert ops.policy is ops.learners["policy"]
    assert [x.is_policy for x in ops.learners.values()] == [True, False]
    assert ops.learners["critic"].optimiser.param_groups[0]["lr"] == 1e-3
    before = ops.learners["critic"].optimiser
    ops.learners["critic"].reset_optimizer()
    assert ops.learners["critic"].optimiser is not before
    assert ops.learners["critic"].optimiser.param_groups[0]["lr"] == 1e-3


def test_a_policy_without_objective_has_no_optimiser_and_its_second_model_is_what_the_run_trains():
    policy = untrained(0)
    run = Run(policy, models={"reward": policy.copy("reward", value_head=True)})
    ops = Ops(build("bradley_terry"), run, registry.task("preferences"), RunConfig())
    assert ops.policy.optimiser is None
    assert main_model(ops) is run.models["reward"]


def test_evaluation_is_not_billed_and_a_step_is():
    policy, task = untrained(0), registry.task("arithmetic", test_size=2)
    run = Run(policy, max_new=4, verify=registry.part("reward", "final_number"))
    policy.token_count.generated = 1000  # before the run
    ops = Ops(build("grpo", {"n": 2, "problems": 2, "beta": 0.0}), run, task, RunConfig())
    ops.evaluate()
    ops.bill.settle()
    assert run.tokens == 0
    standard_loop(ops.recipe, run, ops)
    ops.bill.settle()
    batch = ops.step_data.batch
    assert run.tokens == int(batch.mask.sum()) + int(batch.length.sum())  # generated, and scored once to learn from
