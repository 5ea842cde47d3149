"""RSD: whose step is taken, by rule, and that the row stays one reply of the policy's."""

from __future__ import annotations

import math

import pytest

from rewardlab.core import Run, ask
from rewardlab.errors import RewardlabError
from rewardlab.methods.search.rsd import accepted, rsd, speculative_steps
from rewardlab.models.embedded import untrained
from rewardlab.rewards.intrinsic import likelihood
from rewardlab.rewards.reward import reward
from tests.helpers.scripted import ScriptedPolicy, last_digit

SMALL = {"": ["d8\n"], "d8\n": ["d3\n"], "d8\nT6\n": ["d9"], "T5\n": ["d?"]}
LARGE = {"": ["T5\n"], "d8\n": ["T6\n"], "d8\nT6\n": ["T0"], "T5\n": ["T1"]}


def searched(**settings):
    policy, small = ScriptedPolicy(LARGE), ScriptedPolicy(SMALL)
    small.name = "draft"
    run = Run(policy, models={"draft": small}, max_new=50)
    (group,) = speculative_steps(score=last_digit(), stop=("\n",), **settings)([ask("?")], run)
    return [t.reply for t in group], group, policy, small, run


def test_the_policy_writes_only_what_the_scorer_refuses():
    # .8 is at least .7; .3 is not, and T6 comes instead, whatever it scores; .9 is
    replies, (row,), policy, small, run = searched(threshold=0.7)
    assert replies == ["d8\nT6\nd9"]
    assert (small.calls, policy.calls) == ([[""], ["d8\n"], ["d8\nT6\n"]], [["d8\n"]])
    assert run.metrics["drafted"] == pytest.approx(2 / 3)
    # one reply of the policy's, each step of which is a turn
    assert row.replies == replies
    assert len(row.spans) == 3
    # 3 + 3 + 3 tokens drafted, 3 written
    assert (small.token_count.generated, policy.token_count.generated) == (9, 3)


def test_a_score_at_the_threshold_is_enough_and_no_verdict_is_refused():
    assert searched(threshold=0.8)[0] == ["d8\nT6\nd9"]
    # d8 is refused here, and d? has no verdict
    assert searched(threshold=0.81)[0] == ["T5\nT1"]


def test_a_constant_asks_no_scorer():
    def refuse(trajectory):
        raise AssertionError("asked")

    for threshold, reply in ((1.0, "d8\nd3\n"), (0.0, "T5\nT1")):
        policy, small = ScriptedPolicy(LARGE | {"d8\nd3\n": ["T2"]}), ScriptedPolicy(SMALL | {"d8\nd3\n": ["d2"]})
        run = Run(policy, models={"draft": small})
        ((row,),) = speculative_steps(score=reward(refuse)(), rule="constant", threshold=threshold, stop=("\n",))([ask("?")], run)
        assert row.reply.startswith(reply)
    with pytest.raises(RewardlabError, match="from 0 to 1, not 2"):
        searched(rule="constant", threshold=2.0)


def test_clipped_scores_are_chances():
    @reward
    def sure(trajectory):
        return 7.0 if "d" in trajectory.reply.splitlines()[-1] else -1.0

    policy, small = ScriptedPolicy(LARGE), ScriptedPolicy(SMALL | {"d8\nd3\n": ["d9"]})
    run = Run(policy, models={"draft": small})
    ((row,),) = speculative_steps(score=sure(), rule="clipped", stop=("\n",))([ask("?")], run)
    assert row.reply == "d8\nd3\nd9"
    ((row,),) = speculative_steps(score=-1 * sure(), rule="clipped", stop=("\n",))([ask("?")], run)
    assert row.reply == "T5\nT1"


def test_chances_by_hand():
    assert [accepted(r, "clipped", 0.7, 10.0) for r in (-1.0, 0.4, 3.0)] == [0.0, 0.4, 1.0]
    # r / (1 + r)
    assert [accepted(r, "sigmoid", 0.7, 10.0) for r in (-3.0, 0.0, 1.0, 3.0)] == [0.0, 0.0, 0.5, 0.75]
    # a half at the threshold; log 3 above it 3 to 1; and no overflow far away
    assert accepted(0.7, "logistic", 0.7, 10.0) == 0.5
    assert accepted(0.7 + math.log(3) / 10, "logistic", 0.7, 10.0) == pytest.approx(0.75)
    assert [accepted(r, "logistic", 0.7, 10.0) for r in (-1e6, 1e6)] == [0.0, 1.0]


def test_a_smooth_rule_refuses_what_has_no_verdict():
    # a steep one is the threshold: d8 is refused, and d? has no verdict
    assert searched(rule="logistic", threshold=0.81, steepness=1e6)[0] == ["T5\nT1"]
    assert searched(rule="logistic", threshold=0.7, steepness=1e6)[0] == ["d8\nT6\nd9"]


def test_real_models_write_one_reply_together():
    policy, small = untrained(1), untrained(2)
    small.name = "draft"
    run = Run(policy, models={"draft": small}, max_new=12, seed=3)
    part = speculative_steps(score=likelihood(), rule="constant", threshold=0.5, n=3, temperature=1.0, step_tokens=2)
    (group,) = part([ask("1+1=?")], run)
    assert all(t.stop is not None and len(t.replies) == 1 and t.mask.sum() <= 12 for t in group)
    assert 0 < run.metrics["drafted"] < 1
    assert small.token_count.generated > 0 < policy.token_count.generated


def test_the_recipe_has_a_frozen_draft_model():
    recipe = rsd(draft="small", threshold=0.4, step_end="\n")
    (learner,) = recipe.also
    assert (learner.name, learner.init, learner.every) == ("draft", "small", 0)
    known = recipe.rollout.settings
    assert (known["threshold"], known["stop"], known["score"]) == (0.4, ("\n",), recipe.reward)
