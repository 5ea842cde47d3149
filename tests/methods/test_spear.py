"""SPEAR: good episodes are learnt from again, by how much they are above what is usual by now."""

from __future__ import annotations

import math
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from rows import batch_of, outcome, row_of

from rewardlab import registry
from rewardlab.core import Run, Score, Task, ask
from rewardlab.credit.entropy import drop_covarying
from rewardlab.engine.step import Ops
from rewardlab.methods.sampling.spear import remember, spear, then_again
from rewardlab.models.embedded import untrained
from rewardlab.objectives.ratio import clipped_ratio
from rewardlab.rewards.environment import calls_made
from rewardlab.rewards.reward import reward
from rewardlab.runs.config import RunConfig
from rewardlab.tasks.sources import Shuffled

PROBLEMS = [ask(f"{i}+{i}=?", str(2 * i)) for i in range(10, 18)]


# ---- what a call earns -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("pattern", "earned"), [("rd", 0.0), ("rdrdd", 0.1), ("rdrdrd", 0.2), ("rd" * 13, 1.0), ("r", 0.0)])
def test_calls_are_paid_in_right_and_wrong_episodes_up_to_one(pattern, earned):
    # the last reply is no call; the thirteenth is paid no more than the eleventh
    (score,) = calls_made()([[row_of(pattern)]], Run(None))[0]
    assert score.total == pytest.approx(earned)


def test_pay_for_calls_falls_by_a_cosine_while_the_policy_learns():
    recipe, episode = spear(calls=2.0), row_of("rdrd")
    for step, share in ((0, 1.0), (5, 0.5), (10, 0.0)):
        run = Run(None, step=step, steps=10, verify=reward(always_wrong)())
        # 0 for the wrong answer, and 2 * .1 for one call, times (1 + cos(pi p)) / 2
        assert recipe.reward([[episode]], run)[0][0].total == pytest.approx(0.2 * share)


def always_wrong(trajectory):
    return 0.0


# ---- which tokens are left out ---------------------------------------------------------------------------------------


def by_hand(share: float, now: list[list[float]], **settings):
    """Two rows of two decisions with credit 3 and -1."""
    old = [[0.0, -1.0, -1.0], [0.0, -1.0, -5.0]]
    batch = batch_of([[("rdd", {"a": outcome(3.0)}), ("rdd", {"a": outcome(-1.0)})]], {"policy.logprobs": now})
    batch.old = torch.tensor(old)
    run = Run(None)
    a = torch.tensor([[0.0, 3.0, 3.0], [0.0, -1.0, -1.0]])
    return drop_covarying(share=share, **settings)(a, batch, run).tolist(), run.metrics["covarying"]


def test_what_covaries_with_the_advantage_is_not_learnt():
    # mean A is 1, mean log pi -2: covariances (2 * 1, 2 * 1), (-2 * 1, -2 * -3) = 2, 2, -2, 6
    same = [[0.0, -1.0, -1.0], [0.0, -1.0, -5.0]]
    assert by_hand(0.25, same, low=3.0) == ([[0, 3, 3], [0, -1, 0]], 0.25)
    assert by_hand(1.0, same) == ([[0, 0, 0], [0, -1, 0]], 0.75)
    # above the upper bound is an outlier, which stays
    assert by_hand(1.0, same, high=5.0) == ([[0, 0, 0], [0, -1, -1]], 0.5)
    # a share of 1 in 100 of four tokens is none: one is left out still
    left, _ = by_hand(0.01, same)
    assert sum(x == 0 for row in left for x in row[1:]) == 1


def test_what_is_clipped_anyway_is_not_chosen():
    # e^.3 is above 1.28 where A > 0; the mean of log pi is now -1.925, and the covariance there 2 * 1.225
    assert by_hand(1.0, [[0.0, -0.7, -1.0], [0.0, -1.0, -5.0]]) == ([[0, 3, 0], [0, -1, 0]], 0.5)
    # e^-.3 is below .8 where A < 0; the mean of log pi is -2.075, and the covariance there -2 * -3.225
    assert by_hand(1.0, [[0.0, -1.0, -1.0], [0.0, -1.0, -5.3]]) == ([[0, 0, 0], [0, -1, -1]], 0.5)


def test_a_batch_without_a_decision_passes():
    batch = batch_of([[("r", {"a": outcome(None)})]], {"policy.logprobs": [[0.0]]})
    assert drop_covarying()(batch.reward, batch, Run(None)).tolist() == [[0.0]]


# ---- what is kept ----------------------------------------------------------------------------------------------------


def step_of(*groups):
    """A step whose groups have rows of these rewards; their credit is the reward less the group's mean."""
    terms = [[("rd", {"a": outcome(value)}) for value in group] for group in groups]
    batch = batch_of(terms)
    batch.credit = registry.part("credit", "center")(batch.reward, batch, Run(None))
    scores = [[Score(value) for value in group] for group in groups]
    return SimpleNamespace(batch=batch, scores=scores)


def test_kept_are_episodes_better_than_their_group_and_not_older_than_tolerated():
    memory = {"kept": [], "means": []}
    # of the first group one is better than its mean, of the others none is: all are alike, or have no verdict
    remember(memory, step_of([1.0, 0.0, None], [1.0, 1.0], [None, None]), 0, 1, 100)
    assert [(now, earned) for now, _, earned in memory["kept"]] == [(0, 1.0)]
    assert memory["means"] == [[0, [0.5, 1.0]]]
    remember(memory, step_of([0.0, 2.0]), 1, 1, 100)
    assert [now for now, _, _ in memory["kept"]] == [0, 1]
    remember(memory, step_of([0.0, 2.0]), 2, 1, 100)
    # one step behind the newest of those before is tolerated, two are not
    remember(memory, step_of([0.0, 0.0]), 3, 1, 100)
    assert [now for now, _, _ in memory["kept"]] == [1, 2]
    assert [means for _, means in memory["means"]] == [[0.5, 1.0], [1.0], [1.0], [0.0]]


def test_the_oldest_means_of_groups_are_forgotten():
    memory = {"kept": [], "means": []}
    for step in range(3):
        remember(memory, step_of([0.0, 2.0], [0.0, 0.0]), step, 5, 4)
    assert [step for step, _ in memory["means"]] == [1, 2]


# ---- how it is learnt from again -------------------------------------------------------------------------------------


@reward
def last_token(trajectory):
    """Something that replies of an untrained policy differ in."""
    return float(trajectory.ids[-1])


class Spy:
    """An engine that says what it was asked to learn."""

    def __init__(self):
        self.step_data, self.learnt = step_of([0.0, 0.0]), []

    def standard_step(self, recipe):
        pass

    def learn_besides(self, groups, scores, recipe, prefix):
        self.learnt.append(([g[0].tag for g in groups], [row[0].total for row in scores], recipe, prefix))


def replayed(step: int, kept: list[float], means: list[float], **settings):
    run, ops = Run(None, step=step, steps=8), Spy()
    rows = [[0, replace(row_of("rd"), tag=str(i)), earned] for i, earned in enumerate(kept)]
    run.memory["spear"] = {"kept": rows, "means": [[0, means]], "replayed": 6}
    then_again(capacity=2, **settings)(spear(covarying=0.0), run, ops)
    return run, ops.learnt


def test_an_old_episode_earns_what_it_is_above_the_median_now():
    # the median of .2, .5, .9, .6 is .55: two of five are not above it, and three are not more than 1.5 * 2
    assert replayed(4, [1.0, 2.0, 3.0, 0.5, 0.55], [0.2, 0.5, 0.9, 0.6])[1] == []
    run, learnt = replayed(4, [1.0, 1.0, 1.0, 1.0, 0.5, 0.55], [0.2, 0.5, 0.9, 0.6])
    ((tags, advantages, recipe, prefix),) = learnt
    assert len(set(tags)) == 2
    assert set(tags) <= {"0", "1", "2", "3"}
    assert advantages == pytest.approx([0.45, 0.45])
    assert prefix == "replay"
    # half of the steps are the warm-up: at step 4 of 8 the weight is whole
    assert recipe.objective == 1.0 * clipped_ratio(eps_high=0.28)
    assert run.metrics["replayed"] == 8
    assert run.memory["spear"]["kept"] == []


def test_imitation_gets_stronger_by_a_cosine():
    ((_, _, recipe, _),) = replayed(1, [1.0] * 4, [0.0], weight=0.5)[1]
    # a quarter of the warm-up: (1 - cos(pi / 4)) / 2, and half of it
    ((weight, _),) = recipe.objective.terms()
    assert weight == pytest.approx(0.5 * (1 - math.cos(math.pi / 4)) / 2)


def test_at_weight_0_nothing_is_updated():
    run, learnt = replayed(0, [1.0] * 4, [0.0])
    assert learnt == []
    assert run.metrics["replayed"] == 6
    assert run.memory["spear"]["kept"] == []


def ops_of(**settings) -> Ops:
    recipe = registry.build("dr_grpo", {"problems": 4, "lr": 1e-3}).but(reward=last_token())
    recipe = recipe.but(loop=then_again(capacity=4, warmup=0.25, **settings))
    run = Run(untrained(hidden=32, layers=1).copy("policy"), steps=4, max_new=4, verify=reward(always_wrong)())
    return Ops(recipe, run, Task("pairs", Shuffled(PROBLEMS), PROBLEMS[:2], "final_number", max_new=4), RunConfig())


def test_the_engine_learns_from_old_episodes_beside_the_step():
    ops = ops_of()
    for step in range(2):
        ops.run.metrics, before = {}, ops.policy.updates
        ops.recipe.loop(ops.recipe, ops.run, ops)
        assert ops.policy.updates == before + 1 + step
        # what is logged and recorded of the step is what was sampled in it
        assert len(ops.step_data.groups) == 4
        assert ops.policy.recipe is ops.recipe
        ops.run.step += 1
    assert ops.run.metrics["replayed"] == 4
    assert math.isfinite(ops.run.metrics["replay/loss"])
    assert ops.run.metrics["loss"] != ops.run.metrics["replay/loss"]


def test_old_episodes_keep_the_log_probs_they_were_sampled_with():
    """The ratio of the update is that to the policy which wrote them."""
    ops, seen = ops_of(covarying=0.0), []
    ops.recipe.loop(ops.recipe, ops.run, ops)
    rows = [entry[1] for entry in ops.run.memory["spear"]["kept"]]
    old = {t.ids.tobytes(): t.column("logprobs") for t in rows}
    collate = ops.collate

    def spied(groups, scores, learner=None):
        batch = collate(groups, scores, learner)
        seen.append((groups, batch))
        return batch

    ops.collate = spied
    ops.run.step += 1
    ops.recipe.loop(ops.recipe, ops.run, ops)
    groups, batch = seen[-1]
    assert len(groups) == 4
    for i, (t,) in enumerate(groups):
        recorded = np.nan_to_num(old[t.ids.tobytes()])
        assert batch.old[i, : len(t)].tolist() == pytest.approx(recorded.tolist())
        # one advantage for every decision of the episode
        assert len(set(batch.credit[i][batch.mask[i]].tolist())) == 1
        assert float(batch.credit[i].max()) > 0


# ---- the recipe ------------------------------------------------------------------------------------------------------


def test_switches_leave_the_base():
    off = spear(weight=0.0, calls=0.0, covarying=0.0)
    run, ops = Run(None, step=4, steps=8), Spy()
    off.loop(off, run, ops)
    assert (ops.learnt, run.memory, run.metrics) == ([], {}, {"replayed": 0})
    assert "calls_made" not in str(off.reward)
    assert "drop_covarying" not in str(off)
    assert str(off.objective) == "clipped_ratio(eps_high=0.28)"


def test_a_base_that_plays_keeps_its_environment():
    base = registry.build("igpo")
    recipe = spear(base)
    assert recipe.rollout == base.rollout
    assert recipe.measure == base.measure
    assert "information_gain" in str(recipe.reward)
