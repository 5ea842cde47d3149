"""A second model that samples rollouts of its own learns from them, and from nothing else."""

import torch

from rewardlab import build, registry
from rewardlab.core import Learner, Part, Run
from rewardlab.core.part import decorator
from rewardlab.engine.step import Ops, standard_loop
from rewardlab.models.embedded import untrained
from rewardlab.runs.config import RunConfig

problems_part = decorator(Part)


@problems_part
def same_problems(groups, scores, run):
    """The opponent is asked what the policy was asked."""
    return [group[0].problem for group in groups]


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
