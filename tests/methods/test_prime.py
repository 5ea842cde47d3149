"""PRIME: token rewards from a second model that learns from outcomes."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch
from rows import batch_of, outcome, row_of

from rewardlab import registry
from rewardlab.api import train
from rewardlab.core import Outputs, Run, rollout
from rewardlab.errors import RewardlabError
from rewardlab.methods.process.prime import outcome_cross_entropy, plus_implicit_rewards, prime
from rewardlab.models.embedded import untrained
from rewardlab.rewards.reward import reward
from rewardlab.rollouts.filtered import solved_between

RUN = Run(policy=None)

# log prm/ref at the decided positions:  row 0: 2, -1 | row 1: 4 | row 2: 1, 1, 1;  beta 1/2: 1, -1/2 | 2 | 1/2, 1/2, 1/2
# means of rows 1/4 | 2 | 1/2
GROUP = [
    ("rdd", {"correct": outcome(1.0)}),
    ("rd", {"correct": outcome(0.0)}),
    ("rddd", {"correct": outcome(0.0)}),
]
COLUMNS = {"prm.logprobs": [[0, 1, -2], [0, 3], [0, 0, 0, 0]], "ref": [[0, -1, -1], [0, -1], [0, -1, -1, -1]]}


def test_what_follows_a_token_in_the_models_eyes_is_added_to_its_credit():
    # less the mean of the others' means:
    #   row 0 less (2 + 1/2)/2 = 5/4:    -1/4, -7/4               to go at gamma 1/2: -1/4 - 7/8 = -9/8, -7/4
    #   row 1 less (1/4 + 1/2)/2 = 3/8:  13/8                     13/8
    #   row 2 less (1/4 + 2)/2 = 9/8:    -5/8, -5/8, -5/8         -5/8 (1 + 1/2 + 1/4) = -35/32, -15/16, -5/8
    batch = batch_of([GROUP], COLUMNS)
    found = plus_implicit_rewards(beta=0.5, gamma=0.5, weight=2.0, bounded=False)(torch.where(batch.mask, 10.0, 0.0), batch, RUN)
    expected = [[0, 10 - 9 / 4, 10 - 7 / 2, 0], [0, 10 + 13 / 4, 0, 0], [0, 10 - 35 / 16, 10 - 15 / 8, 10 - 5 / 4]]
    assert found.tolist() == [pytest.approx(row) for row in expected]


def released(rewards: list[list[float]]) -> list[list[float]]:
    """Returns of the released code (`compute_rloo_returns`): r n / (n - 1) - (sum of the rows' means) / (n - 1), to go."""
    n, means = len(rewards), [sum(r) / len(r) for r in rewards]
    centred = [[x * n / (n - 1) - sum(means) / (n - 1) for x in r] for r in rewards]
    return [[sum(r[t:]) for t in range(len(r))] for r in centred]


def test_unequal_replies_are_compared_by_the_mean_of_a_token():
    zeros = {"prm.logprobs": [[0, -1, -1, -1, -1], [0, -1, -1]], "ref": [[0.0], [0.0]]}
    batch = batch_of([[("rdddd", {"correct": outcome(0.0)}), ("rdd", {"correct": outcome(0.0)})]], zeros)
    # tokens that are all worth the same: length alone earns nothing
    assert not plus_implicit_rewards()(torch.zeros(2, 5), batch, RUN).any()
    # whole replies get what the released code gives them, though single tokens differ by a factor of n / (n - 1)
    batch = batch_of([GROUP], COLUMNS)
    found = plus_implicit_rewards(beta=0.5, bounded=False)(torch.zeros(3, 4), batch, RUN)
    theirs = released([[1, -0.5], [2], [0.5, 0.5, 0.5]])
    assert found[:, 1].tolist() == pytest.approx([row[0] for row in theirs])


def test_what_is_said_of_the_rest_of_a_reply_is_bounded_in_the_batch():
    # sums to go at beta 1/2: 1/2, -1/2 | 2 | 3/2, 1, 1/2; the largest is 2, whatever beta
    batch = batch_of([GROUP], COLUMNS)
    plain = plus_implicit_rewards(beta=0.5, bounded=False)(torch.zeros(3, 4), batch, RUN)
    for beta in (0.5, 50.0):
        found = plus_implicit_rewards(beta=beta)(torch.zeros(3, 4), batch, RUN)
        torch.testing.assert_close(found, plain / 2)
    # the second column, by hand: row 1 gets (2 - 3/8) / 2 at its one token
    assert found[1, 1].item() == pytest.approx(13 / 16)


def test_the_model_learns_the_log_odds_of_being_right():
    # sums of beta (log prm - log ref): 1/2 | 2 | 3/2;  right, wrong, and one that nobody judged
    rows = [*GROUP[:2], ("rddd", {"correct": outcome(None)})]
    batch = batch_of([rows], COLUMNS)
    loss = outcome_cross_entropy(beta=0.5)(Outputs(logprobs=batch.columns["prm.logprobs"]), batch, RUN)
    assert loss.tolist() == pytest.approx([math.log(1 + math.exp(-0.5)), math.log(1 + math.exp(2)), 0.0])


def test_a_reward_without_outcomes_cannot_teach_it():
    batch = batch_of([[("rd", {"length": outcome(1.0)})]], {"ref": [[0, 0]]})
    with pytest.raises(RewardlabError, match="'correct'"):
        outcome_cross_entropy()(Outputs(logprobs=torch.zeros(1, 2)), batch, RUN)


@rollout
def as_they_are(problems, run):
    return problems


@reward
def first_length(trajectory):
    return {2: 0.0, 3: 1.0, 4: None}[len(trajectory)]


def group(*lengths: int):
    return [row_of("r" + "d" * (n - 1)) for n in lengths]


def test_only_problems_that_are_sometimes_solved_go_on():
    # right of judged: 0/2, 1/2, 2/2, 1/1 (the other has no verdict), 1/5
    groups = [group(2, 2), group(2, 3), group(3, 3), group(3, 4), group(2, 2, 2, 2, 3)]
    part = solved_between(inner=as_they_are())
    assert part(groups, replace(RUN, verify=first_length())) == [groups[1], groups[4]]
    assert part([groups[0], groups[2]], replace(RUN, verify=first_length())) == [groups[0], groups[2]]


def test_frozen_it_stays_the_reference_and_only_outcomes_count(tmp_path):
    recipe = prime(online=False).but(problems=2)
    done = train(recipe, untrained(), registry.task("arithmetic", test_size=4), steps=1, out=tmp_path, max_new=6, eval_problems=2)
    prm, reference = done.run.models["prm"].state(), done.run.reference.state()
    assert all(torch.equal(prm[k], reference[k]) for k in reference)
    batch = batch_of([GROUP], {"prm.logprobs": COLUMNS["ref"], "ref": COLUMNS["ref"]})
    a = torch.ones(3, 4)
    assert torch.equal(plus_implicit_rewards()(a, batch, RUN), a)
