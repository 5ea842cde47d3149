"""Cheems: the filter of a model of verified pairs, balanced lengths, the prior on scores, and measures of partial orders."""

from __future__ import annotations

import math
import random
from collections import Counter

import pytest
import torch
from rows import batch_of
from safetensors.torch import load_file

from rewardlab import registry
from rewardlab.api import resume, train
from rewardlab.core import Message, Outputs, Run, Task, ask
from rewardlab.engine.loss import losses_of, weigh
from rewardlab.engine.step import Ops
from rewardlab.errors import RewardlabError
from rewardlab.methods.reward_models import cheems as method
from rewardlab.models.embedded import untrained
from rewardlab.models.learners import learner_model
from rewardlab.models.reward_model import load_reward_model
from rewardlab.runs.config import RunConfig
from rewardlab.tasks.sources import Shuffled


def pair(i: int, gold: bool = False, wrong: bool = False):
    """The better reply ends with a 7, the worse one with a 3."""
    texts = (f"{i}3", f"{i}7") if wrong else (f"{i}7", f"{i}3")
    return ask(f"{i}+{i}=?", str(2 * i), chosen=texts[0], rejected=texts[1], gold=gold)


PAIRS = [pair(i, gold=i < 16, wrong=i >= 16 and i % 4 == 0) for i in range(10, 34)]


@pytest.fixture(scope="module")
def policy():
    return untrained()


def begun(policy, pairs=PAIRS, **settings) -> Ops:
    recipe = registry.build("cheems", {"problems": 4, "reward_lr": 1e-2, "gold_passes": 40, **settings})
    task = Task("pairs", Shuffled(pairs), [pair(i) for i in range(40, 50)], "final_number", max_new=4)
    run = Run(policy.copy("policy"), steps=3, max_new=4, verify=registry.part("reward", task.verifier))
    run.models = {learner.name: learner_model(learner, policy) for learner in recipe.also}
    return Ops(recipe, run, task, RunConfig())


def step(ops: Ops) -> dict[str, float]:
    ops.run.metrics = {}
    ops.recipe.loop(ops.recipe, ops.run, ops)
    ops.run.step += 1
    return ops.run.metrics


def test_pairs_that_the_gold_model_rejects_leave(policy):
    ops = begun(policy)
    assert step(ops)["kept"] == pytest.approx(13 / 18)
    learnt = ops.task.train.problems
    assert Counter(p.meta["gold"] for p in learnt) == {True: 6, False: 13}
    assert all(p.meta["chosen"].endswith("7") for p in learnt)


def test_lengths_are_balanced_among_the_others_alone(policy):
    long = [ask(f"{i}?", "1", chosen=f"{i} and more", rejected=f"{i}", gold=i < 3) for i in range(6)]
    short = [ask(f"{i}?", "1", chosen=f"{i}", rejected=f"{i} and more", gold=False) for i in range(6, 8)]
    ops = begun(policy, [*long, *short], supervise=False)
    metrics = step(ops)
    assert (metrics["raw_longer_chosen"], metrics["longer_chosen"]) == (0.6, 0.5)
    assert Counter(p.meta["gold"] for p in ops.task.train.problems) == {True: 3, False: 4}
    ops = begun(policy, [*long, *short], supervise=False, debias=False)
    assert step(ops)["kept"] == 1.0


def test_balancing_samples_the_larger_part_and_keeps_equal_lengths():
    pairs = [(5, 1), (5, 2), (9, 3), (1, 4), (2, 2), (7, 1), (3, 8)]
    kept = method.balanced(pairs, random.Random(0))
    assert [i for i in kept if i in (3, 4, 6)] == [3, 4, 6]
    assert len(kept) == 5
    assert kept == sorted(kept) == method.balanced(pairs, random.Random(0))
    assert len({tuple(method.balanced(pairs, random.Random(seed))) for seed in range(20)}) > 1
    # of one kind alone none stays
    assert method.balanced([(5, 1), (3, 1), (2, 2)], random.Random(0)) == [2]


def test_the_loss_is_the_mean_over_pairs_and_the_prior_the_mean_over_replies():
    recipe = registry.build("cheems", {"prior": 0.1})
    (learner,) = recipe.also
    scores = [3.0, 1.0, 0.0, 2.0]
    out, batch = Outputs(value=torch.tensor([[0.0, s] for s in scores])), batch_of([[("rd", {}), ("rd", {})]] * 2)
    weigh(batch, learner.recipe.objective, None)
    loss = sum(losses_of(learner.recipe.objective, out, batch, Run(None)).values())
    nll = [math.log1p(math.exp(-2)), math.log1p(math.exp(2))]
    assert float(loss) == pytest.approx(sum(nll) / 2 + 0.1 * (9 + 1 + 0 + 4) / 4, abs=1e-5)
    assert str(registry.build("cheems", {"prior": 0.0}).also[0].recipe.objective) == "preference_loss()"


def test_a_prompt_matches_exactly_if_all_its_pairs_are_ranked_right():
    orders = [("aaa", "b"), ("aaa", "cc"), ("b", "cc")]
    right, wrong, tied = {"aaa": 3.0, "b": 2.0, "cc": 1.0}, {"aaa": 3.0, "b": 1.0, "cc": 2.0}, {"aaa": 3.0, "b": 1.0, "cc": 1.0}
    found = method.figures([(right, orders), (wrong, orders), (tied, orders)])
    assert found["exact_match"] == pytest.approx(1 / 3)
    assert found["pair_accuracy"] == pytest.approx(7 / 9)
    assert found["n"] == 9


def test_length_correlation_does_not_depend_on_which_reply_is_the_better_one():
    by_length = {"a": 1.0, "bb": 2.0, "ccc": 3.0}
    for orders in ([("ccc", "a"), ("ccc", "bb")], [("a", "ccc"), ("bb", "ccc")], [("ccc", "a"), ("bb", "ccc")]):
        assert method.figures([(by_length, orders)])["length_correlation"] == pytest.approx(1.0)
        against = {text: -value for text, value in by_length.items()}
        assert method.figures([(against, orders)])["length_correlation"] == pytest.approx(-1.0)
    assert method.figures([(dict.fromkeys("ab", 0.0), [("a", "b")])])["length_correlation"] == 0.0


def test_orders_are_those_of_scores_or_of_pairs_with_the_same_prompt():
    several = ask("Which?", "1", replies=["x", "y", "z", "w"], scores=[1, 3, 1, None])
    rows = [several, ask("Why?", "1", chosen="a", rejected="b"), ask("Why?", "1", chosen="b", rejected="c")]
    found = method.orders_of(rows, "replies", "scores")
    assert [(p.question, pairs) for p, pairs in found] == [
        ("Which?", [("y", "x"), ("y", "z")]),
        ("Why?", [("a", "b"), ("b", "c")]),
    ]
    with pytest.raises(RewardlabError, match="neither different scores"):
        method.orders_of([ask("Which?", "1", replies=["x", "y"], scores=[1, 1])], "replies", "scores")


def test_it_measures_held_out_orders_by_the_reward_model(policy):
    ops = begun(policy)
    for _ in range(2):
        step(ops)
    found = ops.recipe.measure(ops.task.test, ops.run)
    assert found["n"] == 10
    # one pair to a prompt: both measures agree
    assert found["exact_match"] == found["pair_accuracy"] > 0.5


def test_pairs_of_one_kind_alone_are_refused(policy):
    with pytest.raises(RewardlabError, match="cheems needs pairs of both kinds"):
        step(begun(policy, [pair(i) for i in range(10, 14)]))


@pytest.mark.slow
def test_a_run_that_is_resumed_learns_from_the_same_pairs_and_is_a_reward_model(tmp_path):
    given = {"eval_problems": 2, "device": "cpu", "settings": {"problems": 2}, "checkpoint_every": 1}
    task = "verified_notes:gold=0.5,flip=0.25,writers=3,size=8,test_size=4"
    for name, steps in (("whole", 3), ("cut", 1)):
        train("cheems", "untrained", task, steps=steps, out=tmp_path / name, **given)
    resume(tmp_path / "cut", steps=3)
    whole, cut = (load_file(tmp_path / run / "checkpoints" / "step-000003" / "reward.safetensors") for run in ("whole", "cut"))
    assert all(torch.equal(whole[name], cut[name]) for name in whole)
    scored = load_reward_model(str(tmp_path / "whole"), "cpu").score([([Message("user", "2+2=?")], "Send corn.")])
    assert all(map(math.isfinite, scored))
