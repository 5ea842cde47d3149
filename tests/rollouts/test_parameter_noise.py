"""Replies sampled with noise on the policy's norms: how wide it is, when it is fresh, and which log-probs are recorded."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from lengths import verify

from rewardlab.core import Run, ask
from rewardlab.errors import RewardlabError
from rewardlab.methods.sampling.qerl import parameter_noise, sigma_at
from rewardlab.models.embedded import untrained
from rewardlab.rollouts.independent import independent

PROBLEMS = [ask("1 + 2 = ?", "3"), ask("2 + 2 = ?", "4")]


def test_the_noise_by_hand():
    # four stages: none, 1e-2, then geometric: 1e-3 halfway (in logarithms), 1e-4
    assert [sigma_at(p, 1e-2, 1e-4, 4) for p in (0.0, 0.2499, 0.25, 0.5, 0.75, 1.0)] == pytest.approx(
        [0, 0, 1e-2, 1e-3, 1e-4, 1e-4]
    )
    # ten stages of 100 steps: numbers of the released code, sigma_0 (sigma_1 / sigma_0) ** (i / 8)
    by_code = [0.0, *(1e-2 * (1e-4 / 1e-2) ** (np.arange(9) / 8))]
    assert [sigma_at(step / 100, 1e-2, 1e-4, 10) for step in range(100)] == pytest.approx([by_code[s // 10] for s in range(100)])
    # stage borders that floating point misses: 0.29 * 100 < 29
    assert sigma_at(0.29, 1.0, 0.5, 100) == pytest.approx(0.5 ** (28 / 98))
    assert [sigma_at(p, 0.3, 0.1, 2) for p in (0.4, 0.5, 1.0)] == [0.0, 0.3, 0.3]
    assert sigma_at(1.0, 0.3, 0.1, 1) == 0.0


def sampled(step=5, policy=None, **settings):
    run = Run(policy or untrained(layers=2), step=step, steps=10, max_new=6, verify=verify())
    run.policy.step = step
    of = settings.pop("inner", independent(n=3))
    return parameter_noise(inner=of, **{"first": 0.5, "last": 0.5, "stages": 2} | settings)(PROBLEMS, run), run


def rows(groups):
    return [t for group in groups for t in group]


def recorded(groups):
    return np.concatenate([t.column("logprobs")[t.mask] for t in rows(groups)])


def scored(policy, groups):
    found = policy.score(rows(groups))
    return np.concatenate([own[t.mask] for t, own in zip(rows(groups), found, strict=True)])


def test_in_the_first_stage_replies_are_those_without_noise():
    groups, run = sampled(step=4)
    plain = independent(n=3)(PROBLEMS, Run(untrained(layers=2), step=4, steps=10, max_new=6))
    assert [t.reply for t in rows(groups)] == [t.reply for t in rows(plain)]
    assert run.metrics == {"sigma": 0.0}


def test_a_step_that_is_sampled_again_has_the_same_noise_and_another_step_other_noise():
    ids = [np.concatenate([t.ids for t in rows(sampled(step)[0])]) for step in (5, 5, 6)]
    assert np.array_equal(ids[0], ids[1])
    assert not np.array_equal(ids[0], ids[2])


def test_recorded_log_probs_are_without_the_noise_or_with_it():
    plain, run = sampled()
    assert recorded(plain) == pytest.approx(scored(run.policy, plain), abs=1e-5)
    assert {t.turns[-1].step for t in rows(plain)} == {5}
    corrected, run = sampled(corrected=True)
    assert [t.reply for t in rows(plain)] == [t.reply for t in rows(corrected)]
    gap = recorded(corrected) - scored(run.policy, corrected)
    assert abs(gap).max() > 1e-3
    assert run.metrics["noise_gap"] == pytest.approx(float(gap.mean()), abs=1e-5)
    # bfloat16 would have the trainer's own log-probs put in place of these
    assert {t.turns[-1].step for t in rows(corrected)} == {-1}


def test_no_noise_on_held_out_problems_and_none_is_left():
    policy = untrained(layers=2)
    before = {k: v.clone() for k, v in policy.state().items()}
    run = Run(policy, step=9, steps=10, max_new=6)
    held = parameter_noise(inner=independent(n=3), first=0.5, last=0.5, stages=2)(PROBLEMS, run.for_evaluation())
    plain = independent(n=3)(PROBLEMS, run.for_evaluation())
    assert [t.reply for t in rows(held)] == [t.reply for t in rows(plain)]
    sampled(step=9, policy=policy)
    assert all(torch.equal(v, policy.state()[k]) for k, v in before.items())


def test_no_tokens_are_billed_for_the_log_probs_without_noise():
    groups, run = sampled()
    assert run.policy.token_count.scored == 0
    assert run.policy.token_count.generated == sum(int(t.mask.sum()) for t in rows(groups))


def test_a_policy_without_norms_is_refused():
    class Hand:
        name = "hand"

    with pytest.raises(RewardlabError, match="'hand' is none"):
        sampled(policy=Hand())
