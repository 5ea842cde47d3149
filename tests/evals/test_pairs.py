"""What a policy's own probabilities say of pairs, and what rewards do, by hand."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from rewardlab import registry
from rewardlab.core import Learner, Recipe, Run, Turn, ask
from rewardlab.engine.collate import add_columns, collate
from rewardlab.engine.step import Ops
from rewardlab.errors import RewardlabError
from rewardlab.evals.pairs import pair_accuracy, pair_agreement, pairs_preferred, preference_margins, ranked_pairs
from rewardlab.models.embedded import untrained
from rewardlab.models.learners import learner_model
from rewardlab.objectives.pairs import margin, preference_loss, row_sum
from rewardlab.policies.energy import WithEnergy
from rewardlab.runs.config import RunConfig
from rewardlab.verifiers.match import exact_match
from rewardlab.verifiers.text import bleu


class Tabled:
    """A policy with a set log-prob for each token of a reply, by its text."""

    def __init__(self, table: dict[str, list[float]]):
        self.table = table

    def read(self, trajectories, messages):
        return [t.plus(Turn(None, np.zeros(2, np.int64))) for t in trajectories]

    def write(self, trajectories, replies):
        turns = [Turn("policy", np.zeros(len(self.table[r]), np.int64), text=r) for r in replies]
        return [t.plus(turn, "end") for t, turn in zip(trajectories, turns, strict=True)]

    def check_fits(self, trajectory, max_new):
        assert len(trajectory) + max_new < 9

    def score(self, rows):
        # what is read has a log-prob too, which must not count
        return [np.array([-50.0, -50.0, *self.table[t.reply]], np.float32) for t in rows]


PAIRS = [ask("a", chosen="good", rejected="bad"), ask("b", chosen="fine", rejected="poor")]
POLICY = Tabled({"good": [-1.0, -1.0], "bad": [-3.0], "fine": [-2.0, -1.0, -3.0], "poor": [-2.0, -3.0]})
REFERENCE = Tabled({"good": [-2.0, -2.0], "bad": [-2.5], "fine": [-2.0, -2.0, -1.0], "poor": [-2.0, -2.0]})


def test_margins_by_hand():
    # log pi: -2, -3 | -6, -5.  log ref: -4, -2.5 | -5, -4.  log ratios: 2, -1/2 | -1, -1.  margins 5/2, 0
    found = preference_margins()(PAIRS, Run(POLICY, reference=REFERENCE))
    assert found["margin"] == pytest.approx(1.25)
    assert found["preferred"] == 0.75  # one clearly, one a tie
    assert found["likelier"] == 0.5  # -2 > -3, -6 < -5
    assert (found["chosen_logprob"], found["rejected_logprob"]) == pytest.approx((-4.0, -4.0))
    assert found["chosen_per_token"] == pytest.approx((-1.0 - 2.0) / 2)
    assert found["kl"] == pytest.approx((-2 + 0.5 + 1 + 1) / 4)
    assert next(iter(found)) == "margin"  # what a run is judged by


def test_a_policy_is_its_own_reference_until_it_moves():
    found = preference_margins()(PAIRS, Run(POLICY, reference=POLICY))
    assert (found["margin"], found["preferred"], found["kl"]) == (0.0, 0.5, 0.0)


def test_without_a_reference_there_is_no_ratio():
    found = preference_margins()(PAIRS, Run(POLICY))
    assert not {"margin", "preferred", "kl"} & {*found}
    assert next(iter(found)) == "likelier"


def test_the_columns_are_named():
    swapped = preference_margins(chosen="rejected", rejected="chosen")(PAIRS, Run(POLICY, reference=REFERENCE))
    assert swapped["margin"] == pytest.approx(-1.25)


def log_sigmoid(x: float) -> float:
    return -math.log1p(math.exp(-x))


def test_pairs_are_preferred_by_what_their_replies_have_gained():
    # log ratios: 2, -1/2 | -1, -1.  margins 5/2, 0
    found = pairs_preferred(beta=0.4)(PAIRS, Run(POLICY, reference=REFERENCE))
    assert next(iter(found)) == "pair_likelihood"  # what a run is judged by
    assert found["pair_likelihood"] == pytest.approx((log_sigmoid(1.0) + math.log(0.5)) / 2)
    assert (found["preferred"], found["margin"]) == pytest.approx((0.75, 1.25))
    assert (found["chosen_gain"], found["rejected_gain"]) == pytest.approx((0.5, -0.75))
    half = 1.959964 * abs(log_sigmoid(1.0) - math.log(0.5)) / 2  # of two numbers
    assert found["ci95_high"] - found["pair_likelihood"] == pytest.approx(half)


def test_without_a_reference_they_are_preferred_by_their_mean_log_prob():
    # -1, -3 | -2, -5/2
    found = pairs_preferred()(PAIRS, Run(POLICY))
    assert (found["preferred"], found["margin"]) == pytest.approx((1.0, (2.0 + 0.5) / 2))
    assert found["pair_likelihood"] == pytest.approx((log_sigmoid(2 * 2.0) + log_sigmoid(2 * 0.5)) / 2)
    assert "chosen_gain" not in found


def test_it_agrees_with_what_the_loss_reads():
    """On a real policy: the margin is the one in DPO's loss."""
    policy, task = untrained(0), registry.task("preferences", test_size=3)
    run = Run(policy, reference=untrained(1).copy("reference"))
    groups = Ops(registry.build("dpo"), run, task, RunConfig()).rollout(task.test)
    batch = add_columns(collate(groups, None, torch.device("cpu")), ("old", "ref"), run, 512)
    in_loss = margin(row_sum(batch.old - batch.ref, batch), batch)
    found = preference_margins()(task.test, run)
    assert found["margin"] == pytest.approx(float(in_loss.mean()), rel=1e-4, abs=1e-3)
    assert abs(found["margin"]) > 0.01


def test_pairs_count_ties_half_and_terms_in_the_direction_of_their_weight():
    problems = [ask("?", "a b", chosen=c, rejected=r) for c, r in (("a b", "a"), ("a", "a"), ("", "a b"))]
    reward = exact_match().named("exact") - 2 * bleu(order=1).named("likeness")
    found = pair_agreement(reward=reward)(problems, Run(untrained()))
    assert found["pair_accuracy.exact"] == pytest.approx(1.5 / 3)
    # minus the likeness: 1 against e^-1, equal, 0 against 1
    assert found["pair_accuracy.likeness"] == pytest.approx(1.5 / 3)
    # 1 - 2 against -2/e; equal; 0 against 1 - 2
    assert found["pair_accuracy"] == pytest.approx(1.5 / 3)
    with pytest.raises(RewardlabError, match="no verdict on both replies"):
        pair_agreement(reward=exact_match())([replace(p, answer=None) for p in problems], Run(untrained()))


def test_pairs_are_ranked_by_the_score_in_use_and_apart_from_length():
    policy = untrained()
    run = Run(policy)
    plain = learner_model(Learner("reward", "value-head", Recipe(objective=preference_loss())), policy)
    generator = torch.Generator().manual_seed(0)
    plain.model.value_head.data.copy_(torch.randn(plain.model.value_head.shape, generator=generator))
    pairs = [
        ask(f"{i}+1=?", chosen=chosen, rejected=rejected)
        for i, (chosen, rejected) in enumerate([("1", "2, 3"), ("5", "6, 7, 8"), ("4, 5", "6"), ("7, 8, 9", "1"), ("3, 2", "9")])
    ]
    run.models["reward"] = plain
    found, parts = ranked_pairs()(pairs, run), pair_accuracy()(pairs, run)
    assert found["pair_accuracy"] == parts["pair_accuracy"]
    assert found["decorrelated"] == pytest.approx((parts["pair_accuracy.longer"] + parts["pair_accuracy.shorter"]) / 2)
    # an energy that rises with the score and an own score that is turned round: what is refined decides
    run.models["reward"] = WithEnergy(plain)
    run.models["reward"].energy.refined = lambda states, own: -own
    turned = ranked_pairs()(pairs, run)
    assert turned["pair_accuracy"] == pytest.approx(1 - found["pair_accuracy"])
