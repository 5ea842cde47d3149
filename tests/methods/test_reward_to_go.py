"""Rewards to go less one number a reply: how many steps a reply has changes no advantage."""

from __future__ import annotations

import pytest
from rows import batch_of, outcome, steps

from rewardlab import registry
from rewardlab.core import Run

RUN = Run(policy=None, max_new=4)


def first_tokens(recipe, *rows):
    batch = batch_of([list(rows)])
    credit = recipe.credit(batch.reward, batch, RUN)
    return [float(credit[i, 1]) for i in range(len(rows))]


def test_equal_returns_earn_the_same_whatever_the_number_of_steps():
    # four tokens each, in 2, 3 and 4 steps, of which the last one alone is paid
    rows = [("rdddd", {"a": steps({**dict.fromkeys(range(1, n), 0.0), 4: -0.4})}) for n in (2, 3, 4)]
    assert first_tokens(registry.build("reward_to_go"), *rows) == pytest.approx([0.0, 0.0, 0.0], abs=1e-5)
    # GRPO's own: the mean of nine rewards is -.4 / 3, their deviation .2; 1, 2 and 3 times .4 / 3 are earned by steps paid nothing
    assert first_tokens(registry.build("grpo"), *rows) == pytest.approx([-2 / 3, 0.0, 2 / 3], abs=1e-3)


def test_the_baseline_is_the_mean_return_of_the_others_over_the_most_tokens():
    # 2, 3 and 4 tokens; G is -.4 at all of them, the sums over L = 4 are -.2, -.3, -.4, and -.4 less the mean of the others' is
    # -.05, -.1, -.15; over the nine tokens the mean is -1/9 and the variance 1/576
    rows = [("r" + "d" * n, {"a": steps({**dict.fromkeys(range(1, n), 0.0), n: -0.4})}) for n in (2, 3, 4)]
    expected = [24 * (x + 1 / 9) for x in (-0.05, -0.1, -0.15)]
    assert first_tokens(registry.build("reward_to_go"), *rows) == pytest.approx(expected, abs=1e-4)


def test_it_is_the_credit_of_the_whole_reward_at_once_on_any_loss():
    own, on_dapo = registry.build("reward_to_go"), registry.build("dapo+reward_to_go")
    assert str(own.credit) == str(on_dapo.credit) == "to_go() >> subtract_mean_return() >> whiten()"
    grpo = registry.build("grpo", {"problems": 8})
    assert registry.build("reward_to_go", {"problems": 8}).objective == grpo.objective
    # right, wrong: G 1 and 0 at two tokens each; less (0 and 1) * 2 / 4: 1 and -.5, whitened over 2 + 2: (.75, variance .75)
    assert first_tokens(own, ("rdd", {"a": outcome(1.0)}), ("rdd", {"a": outcome(0.0)})) == pytest.approx([0.866, -0.866], abs=1e-3)
