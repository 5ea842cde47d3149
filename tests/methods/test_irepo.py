"""iREPO: implicit rewards regressed onto the log-odds of votes, in rounds."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch
from rows import batch_of, outcome, row_of

from rewardlab import registry
from rewardlab.core import Outputs, Run, Task, ask
from rewardlab.engine.step import Ops
from rewardlab.methods.objectives.irepo import vote_regression
from rewardlab.models.embedded import untrained
from rewardlab.rewards.imperfect import votes
from rewardlab.rewards.reward import reward
from rewardlab.runs.config import RunConfig
from rewardlab.tasks.sources import Shuffled

NAN = math.nan


def loss_of(*counts: float | None, beta: float = 0.5):
    rows = [(p, {"votes": outcome(c)}) for p, c in zip(("rdd", "rd"), counts, strict=True)]
    batch = batch_of([rows], {"ref": [[0.0, -1.0, -1.0], [0.0, -1.0]]})
    # log-ratios 3 and -1
    logprobs = torch.tensor([[NAN, 0.0, 1.0], [NAN, -2.0, NAN]], requires_grad=True)
    return vote_regression(beta=beta)(Outputs(logprobs=logprobs), batch, Run(None)), logprobs


def test_the_difference_of_implicit_rewards_is_drawn_to_the_log_odds_of_the_votes():
    # (6 + 1/2) to (2 + 1/2);   .5 (3 + 1) = 2
    assert loss_of(6, 2)[0].tolist() == pytest.approx([(math.log(6.5 / 2.5) - 2) ** 2])
    # a split vote draws the pair together, and a unanimous one has a finite target
    assert loss_of(4, 4)[0].tolist() == pytest.approx([4.0])
    assert loss_of(8, 0)[0].tolist() == pytest.approx([(math.log(17) - 2) ** 2])
    # it does not matter which of the two stands first
    assert loss_of(0, 8)[0].tolist() == pytest.approx([(math.log(17) + 2) ** 2])


def test_beyond_its_vote_a_pair_is_pulled_back():
    loss, logprobs = loss_of(6, 2, beta=0.5)
    loss.sum().backward()
    assert logprobs.grad is not None
    pull = 2 * 0.5 * (2 - math.log(2.6))
    assert logprobs.grad[:, 1:].flatten().nan_to_num(0).tolist() == pytest.approx([pull, pull, -pull, 0])


@pytest.mark.parametrize("counts", [(None, 5), (5, None), (None, None)])
def test_a_pair_without_votes_teaches_nothing(counts):
    loss, logprobs = loss_of(*counts)
    loss.sum().backward()
    assert loss.tolist() == [0.0]
    assert logprobs.grad is not None
    assert logprobs.grad.nan_to_num(0).abs().sum() == 0


PROBLEMS = [ask(f"{i}+{i}=?", str(2 * i)) for i in range(10, 18)]


@reward
def length(trajectory):
    return None if trajectory.tag == "silent" else float(trajectory.mask.sum())


def voted(patterns, tags=None, **settings):
    rows = [replace(row_of(p), tag=tag) for p, tag in zip(patterns, tags or [""] * len(patterns), strict=True)]
    rows = [replace(t, turns=(t.turns[0], replace(t.turns[1], text=f"{i}"))) for i, t in enumerate(rows)]
    (scores,) = votes(inner=length(), **settings)([rows], Run(None))
    return [s.value for s in scores]


def test_votes_add_up_and_follow_the_odds_of_the_difference():
    a, b = voted(["rdd", "rd"], voters=4000, noise=2.0)
    assert a + b == 4000
    # a difference of 1 on a scale of 2
    assert a / 4000 == pytest.approx(1 / (1 + math.exp(-0.5)), abs=0.025)
    assert voted(["rdddd", "rd"], voters=9, noise=0.01) == [9, 0]
    # of three, the mean over the two others
    assert voted(["rddd", "rdd", "rd"], voters=4, noise=0.01) == [4, 2, 0]
    assert sum(voted(["rd"] * 3, voters=50, noise=1.0)) == pytest.approx(75)


def test_replies_without_a_verdict_neither_vote_nor_are_voted_on():
    assert voted(["rddd", "rdd", "rd"], tags=["", "silent", ""], voters=4, noise=0.01) == [4, None, 0]
    assert voted(["rd", "rd"], tags=["", "silent"]) == [None, None]


@reward
def last_token(trajectory):
    """Something that replies of an untrained policy differ in."""
    return float(trajectory.ids[-1])


def test_each_round_begins_at_the_policy_that_writes_its_replies():
    recipe = registry.build("irepo", {"score": last_token(), "problems": 4, "n": 4, "round_steps": 2, "lr": 1e-3, "beta": 1.0})
    run = Run(untrained().copy("policy"), steps=4, max_new=4, verify=registry.part("reward", "final_number"))
    run.reference = run.policy.copy("reference")
    ops = Ops(recipe, run, Task("pairs", Shuffled(PROBLEMS), PROBLEMS[:2], "final_number", max_new=4), RunConfig())
    rounds, anew = [], []
    for _ in range(4):
        before = {name: x.clone() for name, x in run.policy.state().items()}
        run.metrics = {}
        recipe.loop(recipe, run, ops)
        rounds.append(run.metrics["round"])
        anew.append(all(torch.equal(x, before[name]) for name, x in run.reference.state().items()))
        assert {len(group) for group in ops.step_data.groups} == {2}
        assert all(a.total + b.total == 8 for a, b in ops.step_data.scores)
        run.step += 1
    assert (rounds, anew) == ([1, 1, 2, 2], [True, False, True, False])


def test_a_reward_model_is_what_annotators_judge_by_where_no_reward_is_given():
    recipe = registry.build("irepo")
    assert str(recipe.reward) == "votes(inner=model_score())"
    assert "inner=taught_first()" in str(recipe.loop)
