"""WRPO: two winners, the sources' and the own one, whose weights shift in training."""

from __future__ import annotations

import math

import pytest
import torch
from rows import batch_of

from rewardlab import registry
from rewardlab.core import Outputs, Run, Task, ask
from rewardlab.engine.step import Ops
from rewardlab.errors import RewardlabError
from rewardlab.methods.baselines.sft import steps_of
from rewardlab.methods.objectives.wrpo import SHARE, wrpo_loss
from rewardlab.models.embedded import untrained
from rewardlab.objectives.pairs import dpo_loss
from rewardlab.rewards.reward import reward
from rewardlab.runs.config import RunConfig
from rewardlab.tasks.sources import Shuffled

NAN = math.nan
# log pi/ref of the sources' winner 1 + 2, of the own winner 1, of the loser -1;   0, -2 and 2 - 3
ROWS = [[("rdd", {}), ("rd", {}), ("rd", {})], [("rd", {}), ("rd", {}), ("rdd", {})]]
LOGPROBS = torch.tensor([[NAN, 1, 2], [NAN, 1, NAN], [NAN, -1, NAN], [NAN, 0, NAN], [NAN, -2, NAN], [NAN, 2, -3]])


def batch():
    return batch_of(ROWS, {"ref": [[0.0] * 3] * 6})


def losses(step: int, **settings) -> list[float]:
    run = Run(policy=None, step=step, steps=10)
    return wrpo_loss(beta=1.0, **settings)(Outputs(logprobs=LOGPROBS), batch(), run).tolist()


def softplus(x: float) -> float:
    return math.log(1 + math.exp(x))


def test_the_weight_of_the_sources_winner_rises_from_nothing():
    # own winner alone: 1 + 1 and -2 + 1
    assert losses(0, alpha=0.5) == pytest.approx([softplus(-2), softplus(1)])
    # half of the run: a = .25:   .75 + .75 + 1 = 2.5;   0 - 1.5 + 1
    assert losses(5, alpha=0.5) == pytest.approx([softplus(-2.5), softplus(0.5)])
    # it begins with step 4: a third of what is left
    assert losses(6, alpha=0.75, start=4) == pytest.approx([softplus(-2.5), softplus(0.5)])
    assert losses(2, alpha=0.75, start=4) == losses(0, alpha=0.5)
    assert losses(0, alpha=1.0, annealed=False) == pytest.approx([softplus(-4), softplus(-1)])


def test_without_sources_it_is_dpo_on_the_own_pair():
    out = Outputs(logprobs=LOGPROBS)
    own = torch.tensor([1, 2, 4, 5])
    plain = dpo_loss(beta=1.0)(Outputs(logprobs=LOGPROBS[own]), batch()[own], Run(None))
    assert wrpo_loss(alpha=0.0, beta=1.0)(out, batch(), Run(None)).tolist() == pytest.approx(plain.tolist())
    with pytest.raises(RewardlabError, match="groups of three rows"):
        wrpo_loss()(Outputs(logprobs=LOGPROBS[own]), batch()[own], Run(None))


PROBLEMS = [ask(f"{i}+{i}=?", str(2 * i), chosen=f"{i}7") for i in range(10, 18)]


@reward
def last_token(trajectory):
    """Something that replies of an untrained policy differ in."""
    return float(trajectory.ids[-1])


def test_imitation_of_the_sources_gives_the_reference_that_writes_the_own_replies():
    recipe = registry.build("wrpo", {"score": last_token(), "problems": 4, "n": 4, "sft_steps": 1, "lr": 1e-3})
    run = Run(untrained().copy("policy"), steps=3, max_new=4, verify=registry.part("reward", "final_number"))
    run.reference = run.policy.copy("reference")
    ops = Ops(recipe, run, Task("pairs", Shuffled(PROBLEMS), PROBLEMS[:2], "final_number", max_new=4), RunConfig())
    start = {name: x.clone() for name, x in run.policy.state().items()}
    recipe.loop(recipe, run, ops)
    assert {len(group) for group in ops.step_data.groups} == {1}
    imitated = {name: x.clone() for name, x in run.policy.state().items()}
    assert any(not torch.equal(x, imitated[name]) for name, x in start.items())
    run.step, run.metrics = 1, {}
    recipe.loop(recipe, run, ops)
    assert all(torch.equal(x, imitated[name]) for name, x in run.reference.state().items())
    # three replies each, the recorded one first; policy and reference agree
    for source, best, worst in ops.step_data.groups:
        assert source.reply == source.problem.meta["chosen"]
        assert best.reply != worst.reply
    assert run.metrics["loss"] == pytest.approx(math.log(2), abs=1e-5)
    assert run.metrics["source_weight"] == 0.0


def test_a_reward_model_ranks_where_no_reward_is_given():
    recipe = registry.build("wrpo")
    assert str(recipe.rollout) == "with_demonstrations(inner=ranked(by=model_score(), n=5), fields=('chosen',))"
    assert "inner=taught_first()" in str(recipe.loop)


def test_without_a_number_sft_has_two_of_fifteen_steps_and_the_weight_rises_from_there():
    recipe = registry.build("wrpo", {"score": last_token()})
    loop, loss = recipe.loop, recipe.objective
    assert (loop.settings["steps"], loop.settings["share"], loss.settings["start"]) == (None, SHARE, None)
    # 8 of 60 steps, 13 of 100
    assert [steps_of(Run(None, steps=n), SHARE, "sft_steps") for n in (60, 100, 7)] == [8, 13, 0]
    run = Run(policy=None, step=34, steps=60)
    wrpo_loss(start=None)(Outputs(logprobs=LOGPROBS), batch(), run)
    # half of the 52 steps after SFT
    assert run.metrics["source_weight"] == pytest.approx(0.05)
    assert registry.build("wrpo", {"score": last_token(), "sft_steps": 0}).loop is None
