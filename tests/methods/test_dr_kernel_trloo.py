"""TRLOO on a bandit of two turns whose gradient is known, and what is left out of the loss."""

import itertools
import math
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from rewardlab import registry
from rewardlab.core import Batch, Events, Trajectory, Turn, ask
from rewardlab.credit.leave_one_out import keep_matched_turns, turn_center, turn_leave_one_out
from rewardlab.methods.credit.dr_kernel_trloo import keep_own_work
from rewardlab.rewards.environment import paid
from rewardlab.rollouts.interactive import interactive
from rewardlab.worlds.inspections import table_tool

# tokens of a row: prompt, first decision, what is answered, second decision (if the first was to go on)
GO, WIN = 0.7, 0.4  # chances of going on, and of winning then
OUTCOMES = {"stop": (1 - GO, 0.3, 0.0), "lose": (GO * (1 - WIN), 0.1, 0.2), "win": (GO * WIN, 0.1, 1.0)}


def batch_of(outcomes, groups=1):
    """Rows of the bandit by outcome, in groups of one size."""
    went = torch.tensor([o != "stop" for o in outcomes])
    mask = torch.zeros(len(outcomes), 4, dtype=torch.bool)
    mask[:, 1], mask[:, 3] = True, went
    reward = torch.zeros(len(outcomes), 4, dtype=torch.float64)
    reward[:, 1] = torch.tensor([OUTCOMES[o][1] for o in outcomes], dtype=torch.float64)
    reward[:, 3] = torch.tensor([OUTCOMES[o][2] for o in outcomes], dtype=torch.float64)
    return Batch(
        ids=torch.zeros(len(outcomes), 4, dtype=torch.long), mask=mask, length=torch.where(went, 4, 2), old=torch.zeros(mask.shape),
        reward=reward, rewarded=mask.clone(), group=torch.arange(groups).repeat_interleave(len(outcomes) // groups),
    )  # fmt: skip


def gradient(credit, n):
    """The mean over all joint outcomes of n rows of  1/n sum A grad log pi,  by the logits of going on and of winning."""
    total = np.zeros(2)
    for outcomes in itertools.product(OUTCOMES, repeat=n):
        chance = math.prod(OUTCOMES[o][0] for o in outcomes)
        a = credit(batch_of(outcomes))
        for i, o in enumerate(outcomes):
            total[0] += chance / n * float(a[i, 1]) * ((o != "stop") - GO)
            if o != "stop":
                total[1] += chance / n * float(a[i, 3]) * ((o == "win") - WIN)
    return total


def exact():
    """dJ of  J = (1 - go) 0.3 + go (0.1 + 0.2 (1 - win) + 1.0 win),  by the two logits."""
    after = 0.1 + 0.2 * (1 - WIN) + WIN
    return np.array([GO * (1 - GO) * (after - 0.3), GO * WIN * (1 - WIN) * (1.0 - 0.2)])


@pytest.mark.parametrize("n", [2, 3])
def test_leaving_oneself_out_gives_the_exact_gradient_of_every_turn(n):
    found = gradient(lambda b: turn_leave_one_out()(b.reward, b, None), n)
    assert found == pytest.approx(exact(), rel=1e-9)


def test_a_mean_with_oneself_in_it_shrinks_each_turn_by_another_factor():
    n = 3
    first, second = gradient(lambda b: turn_center()(b.reward, b, None), n) / exact()
    assert first == pytest.approx((n - 1) / n)
    # the second turn: k of n went on with chance C(n, k) go^k (1-go)^(n-k); each of them is scaled by (k - 1) / k
    weights = [math.comb(n, k) * GO**k * (1 - GO) ** (n - k) for k in range(n + 1)]
    expected = sum(w * k / n * (k - 1) / k for k, w in enumerate(weights) if k) / GO
    assert second == pytest.approx(expected)
    assert second < first - 0.05


def test_returns_and_baselines_by_hand():
    # two groups; gamma 1/2. group 0: win, stop, lose: G1 = 0.1 + 0.5, 0.3, 0.1 + 0.1; others: 0.25, 0.4, 0.45; G2 = 1, -, 0.2
    # group 1: stop, stop, win: G1 = 0.3, 0.3, 0.6; the third's second turn stands alone and keeps its return
    batch = batch_of(["win", "stop", "lose", "stop", "stop", "win"], groups=2)
    a = turn_leave_one_out(gamma=0.5)(batch.reward, batch, None)
    assert a[:, 1].tolist() == pytest.approx([0.35, -0.1, -0.25, -0.15, -0.15, 0.3])
    assert a[:, 3].tolist() == pytest.approx([0.8, 0, -0.8, 0, 0, 1.0])
    assert a[:, [0, 2]].abs().max() == 0


def test_the_mean_with_oneself_in_it_by_hand():
    # the same groups: G1 .6, .3, .2, mean 11/30; G2 1, -, .2, mean .6 | G1 .3, .3, .6, mean .4; the only second turn gets nothing
    batch = batch_of(["win", "stop", "lose", "stop", "stop", "win"], groups=2)
    a = turn_center(gamma=0.5)(batch.reward, batch, None)
    assert a[:, 1].tolist() == pytest.approx([7 / 30, -2 / 30, -5 / 30, -0.1, -0.1, 0.2])
    assert a[:, 3].tolist() == pytest.approx([0.4, 0, -0.4, 0, 0, 0])


def test_one_setting_sets_its_baseline_against_grpos():
    ours, theirs = registry.build("dr_kernel_trloo"), registry.build("dr_kernel_trloo", {"leave_one_out": False})
    assert "turn_leave_one_out" in str(ours)
    assert "turn_leave_one_out" not in str(theirs)
    assert ours == theirs.but(credit=ours.credit)  # nothing else differs


def test_a_row_without_verdict_is_nobodys_baseline():
    batch = batch_of(["win", "lose", "win"])
    batch.rewarded[2] = False
    batch.reward[2] = 0.0
    a = turn_leave_one_out()(batch.reward, batch, None)
    assert a[0, 3] == pytest.approx(0.8)
    assert a[2].abs().max() == 0


def drawn(batch, sampled):
    """Put trajectories under the batch's rows: what each token was drawn with."""
    for row in sampled:
        turns = (Turn(None, np.zeros(1)), Turn("policy", np.zeros(1), None, np.array(row[:1])), Turn(None, np.zeros(1)))
        last = Turn("policy", np.zeros(1), None, np.array(row[1:]))
        batch.rows.append((Trajectory(ask("?"), (*turns, last)), None))
    return batch


def test_turns_drawn_with_other_probabilities_are_left_out():
    batch = drawn(batch_of(["win", "win", "win"]), [[-1.0, -2.0], [-1.0, -2.0], [-1.0, -30.0]])
    trained = torch.zeros(3, 4, dtype=torch.float64)
    trained[:, 1] = torch.tensor([-1.0005, -1.002, -1.0])  # ratios exp(-0.0005) within 0.999 .. 1.001, exp(-0.002) below
    trained[:, 3] = torch.tensor([-2.0, -1.9, -40.0])  # exp(0.1) above; exp(-10) < 1e-4
    batch.columns["policy.logprobs"] = trained
    logged = {}
    a = keep_matched_turns()(torch.ones(3, 4), batch, SimpleNamespace(log=logged.__setitem__))
    assert a[:, 1].tolist() == [1, 0, 1]
    assert a[:, 3].tolist() == [1, 0, 0]
    assert logged["mismatched"] == pytest.approx(3 / 6)
    wide = keep_matched_turns(low=0.0, high=9.0)(torch.ones(3, 4), batch, None)
    assert wide[:, 3].tolist() == [1, 1, 0]  # the veto on single tokens still holds


def test_lazy_turns_are_left_out_unless_they_are_wrong():
    rows = 4000
    batch = batch_of(["win"] * rows)
    fast, own = torch.zeros(rows, 4), torch.zeros(rows, 4)
    fast[:, 1], own[:, 1] = 1.2, 0.35  # kept with chance (0.35 - 0.3) / 0.1
    fast[: rows // 2, 3], own[: rows // 2, 3] = 2.0, 0.1  # right and lazy; the other half is wrong
    batch.terms = {"speedup": Events(fast, batch.rewarded), "work_share": Events(own, batch.rewarded)}
    run = SimpleNamespace(rng=lambda purpose: torch.Generator().manual_seed(0))
    a = keep_own_work()(torch.ones(rows, 4), batch, run)
    assert float(a[:, 1].mean()) == pytest.approx(0.5, abs=0.03)
    assert a[: rows // 2, 3].abs().max() == 0
    assert a[rows // 2 :, 3].min() == 1


def test_an_environment_of_ones_own_is_played_and_paid_for():
    recipe = registry.build("dr_kernel_trloo", {"env": table_tool(), "turns": 5, "n": 4})
    assert recipe.rollout == interactive(env=table_tool(), n=4, turns=5)
    assert recipe.measure.settings["rollout"] == interactive(env=table_tool(), n=1, turns=5)
    # what the environment pays is the reward, and no kernel's work is asked for
    assert recipe.reward == paid()
    assert "turn_leave_one_out" in str(recipe.credit)
    assert "keep_matched_turns" in str(recipe.credit)
    assert "keep_own_work" not in str(recipe.credit)


def test_the_lazy_variant_pays_and_rejects_nothing():
    plain = registry.build("dr_kernel_trloo", {"share": 0.0, "least": 0.0})
    assert "keep_own_work" not in str(plain)
    assert "keep_own_work(least=0.5)" in str(registry.build("dr_kernel_trloo", {"least": 0.5}))


def test_a_turn_is_paid_for_being_right_for_its_speed_and_for_its_own_work():
    meta = {"library": {"f": "+ 3; + 4", "g": "sort; last"}, "inputs": [[3, 1, 2]], "outputs": [10], "cost": 17}
    said = [Turn("policy", np.zeros(1), np.zeros(1), text=text) for text in ("f; g", "+ 7; max", "+ 7; min")]
    turns = [turn for reply in said for turn in (Turn(None, np.zeros(1)), reply)]
    group = [Trajectory(ask("Write f; g faster.", **meta), tuple(turns))]
    # all of the 17 operations are the library's: 1/2 + 1/2;  8, all its own: 1/2 + 17/8 / 2 + 1/2;  wrong: nothing
    (score,) = registry.build("dr_kernel_trloo").reward([group], None)[0]
    assert [at for at, _ in score.steps] == [1, 3, 5]
    assert [paid for _, paid in score.steps] == pytest.approx([1.0, 1 + 17 / 16, 0.0])
    (score,) = registry.build("dr_kernel_trloo", {"right": 0.0, "fast": 1.0, "share": 0.25}).reward([group], None)[0]
    assert [paid for _, paid in score.steps] == pytest.approx([1.0, 17 / 8 + 0.25, 0.0])
