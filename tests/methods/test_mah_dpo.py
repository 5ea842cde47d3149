"""MAH-DPO: a head for each objective learns from its own pairs, the trunk from all, and users weigh the heads."""

from __future__ import annotations

import math

import pytest
import torch
from rows import Replies

from rewardlab import registry
from rewardlab.api.inputs import begin_run
from rewardlab.core import Run, Score, Task, ask
from rewardlab.engine import checkpoint
from rewardlab.engine.step import Ops
from rewardlab.errors import RewardlabError
from rewardlab.methods.baselines.grpo import grpo
from rewardlab.methods.objectives.mah_dpo import mah_dpo, rewards_by_head
from rewardlab.models.embedded import untrained
from rewardlab.rewards.reward import reward
from rewardlab.rollouts.ranked import ranked_by_each
from rewardlab.runs.config import RunConfig
from rewardlab.tasks.sources import Listed


def row(i: int, objective: str):
    return ask(f"Add {i}", str(i), chosen="12", rejected="ab cd", objective=objective)


PROBLEMS = [row(0, "a"), row(1, "b"), row(2, "a"), row(3, "a")]
TASK = Task("sums", Listed(PROBLEMS), PROBLEMS[:2], "final_number")


def begun(task=TASK, **settings) -> Ops:
    recipe = registry.build("mah_dpo", {"heads": "a,b", "problems": 4, **settings})
    config = RunConfig(max_new=6, steps=2, eval_problems=2).settled()
    return Ops(recipe, begin_run(recipe, untrained(hidden=32, layers=1).copy("policy"), task, config), task, config)


def weights(model) -> dict[str, torch.Tensor]:
    return {name: w.clone() for name, w in model.state().items()}


def test_the_loss_of_a_pair_is_that_of_its_head():
    ops = begun(beta=0.5)
    heads, policy = ops.run.model("heads"), ops.run.policy
    noise = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for head in heads.parameters():
            head += 0.2 * torch.randn(head.shape, generator=noise)
    batch = ops.collate(ops.rollout(ops.problems()), None)
    found = ops.recipe.objective(policy.evaluate(batch, ("hidden",)), batch, ops.run)
    # the same from whole policies, each of which decides by one head
    wanted = []
    for pair, name in enumerate("abaa"):
        with heads.deciding(policy, {name: 1.0}), torch.no_grad():
            said = policy.evaluate(batch).logprobs
        gains = torch.where(batch.mask, said - batch.ref, 0.0).sum(1)
        gap = 0.5 * float(gains[2 * pair] - gains[2 * pair + 1])
        wanted.append(math.log1p(math.exp(-gap)))
    assert found.tolist() == pytest.approx(wanted, rel=1e-3)
    assert len({round(x, 4) for x in wanted}) == 4
    # and what the heads learn from is the same number
    own = ops.learners["heads"].recipe.objective(heads.evaluate(batch), batch, ops.run)
    assert own.tolist() == pytest.approx(wanted, rel=1e-3)


def test_a_head_learns_from_its_own_pairs_and_the_trunk_from_all():
    only_a = [row(i, "a") for i in range(4)]
    ops = begun(Task("sums", Listed(only_a), only_a[:2], "final_number"), mix=(3.0, 1.0))
    heads, policy = ops.run.model("heads"), ops.run.policy
    before, trunk = weights(heads), weights(policy)
    ops.recipe.loop(ops.recipe, ops.run, ops)
    # both began as the policy's own head, at which the loss is log 2
    assert ops.run.metrics["loss"] == pytest.approx(math.log(2), rel=1e-4)
    assert ops.run.metrics["heads/loss"] == pytest.approx(math.log(2), rel=1e-4)
    after = weights(heads)
    assert not torch.equal(before["0"], after["0"])
    assert torch.equal(before["1"], after["1"])
    moved = {name for name, w in weights(policy).items() if not torch.equal(trunk[name], w)}
    assert {"layers.0.out", "embed", "head"} <= moved
    # from now on it decides by the mixture of its heads
    torch.testing.assert_close(policy.vocabulary_head().detach(), 0.75 * after["0"] + 0.25 * after["1"])


def test_both_move_by_gradients_at_the_same_place():
    """The heads' gradient is that of the loss before the trunk's update, as one optimiser over both would take it."""
    ops = begun()
    heads, policy = ops.run.model("heads"), ops.run.policy
    batch = ops.collate(ops.rollout(ops.problems()), None)
    loss = ops.learners["heads"].recipe.objective
    jointly = heads.logprobs(policy.evaluate(batch, ("hidden",)).hidden, batch)
    together = torch.autograd.grad(
        loss(type(heads.evaluate(batch))(logprobs=jointly), batch, ops.run).mean(), [*heads.parameters()]
    )
    ops.update(batch)
    apart = torch.autograd.grad(loss(heads.evaluate(batch), batch, ops.run).mean(), [*heads.parameters()])
    for a, b in zip(together, apart, strict=True):
        torch.testing.assert_close(a, b)


def test_heads_learn_at_the_rate_of_the_run():
    ops = begun(lr=1e-2, weight_decay=0.5)
    before = weights(ops.run.model("heads"))
    ops.recipe.loop(ops.recipe, ops.run, ops)
    assert ops.run.metrics["heads/lr"] == ops.run.metrics["lr"] == 1e-2
    quick = begun(lr=1e-3, head_lr_scale=5.0)
    quick.recipe.loop(quick.recipe, quick.run, quick)
    assert (quick.run.metrics["heads/lr"], quick.run.metrics["lr"]) == (5e-3, 1e-3)
    # Adam's first step is as long as the rate where there is a gradient
    moved = (weights(ops.run.model("heads"))["0"] - before["0"]).abs().max()
    assert float(moved) == pytest.approx(1e-2, rel=0.1)


def test_a_resumed_run_goes_on_with_its_heads_and_their_mixture(tmp_path):
    first, second = begun(lr=1e-3), begun(lr=1e-3)
    first.recipe.loop(first.recipe, first.run, first)
    first.run.step = 1
    checkpoint.save(tmp_path, first.run, first.learners, first.position)
    second.position = checkpoint.load(tmp_path, second.run, second.learners)
    torch.testing.assert_close(second.run.policy.vocabulary_head(), first.run.policy.vocabulary_head())
    for ops in (first, second):
        ops.recipe.loop(ops.recipe, ops.run, ops)
    for model in ("policy", "heads"):
        a, b = (weights(ops.learners[model].model) for ops in (first, second))
        assert all(torch.equal(a[name], b[name]) for name in a)


def test_a_pair_without_a_known_objective_is_refused():
    ops = begun(heads="a,c")
    with pytest.raises(RewardlabError, match="the heads are: a, c"):
        ops.recipe.loop(ops.recipe, ops.run, ops)


@pytest.mark.parametrize("mix", [(1.0,), (1.0, 2.0, 3.0)])
def test_a_mix_has_a_weight_for_each_head(mix):
    with pytest.raises(RewardlabError, match="give one for each"):
        registry.build("mah_dpo", {"mix": mix})


def test_heads_need_pairs():
    with pytest.raises(RewardlabError, match="does not compare pairs"):
        mah_dpo(grpo())


def test_one_head_for_all_is_dpo_on_the_pairs_of_all():
    recipe = mah_dpo(shared=True)
    assert recipe.also == ()
    assert str(recipe.objective) == "dpo_loss()"
    assert recipe.rollout == mah_dpo().rollout


# ---- pairs by each of several rewards --------------------------------------------------------------------------------


@reward
def first_number(trajectory):
    said = trajectory.reply.split()[0]
    return Score(None, why="?") if said == "?" else float(said)


@reward
def second_number(trajectory):
    return float(trajectory.reply.split()[1])


def paired(replies: list[str], problems: int):
    policy = Replies(replies)
    asked = [ask(f"{i}?", meta_kept=i) for i in range(problems)]
    by = {"a": first_number(), "b": second_number()}
    groups = ranked_by_each(by=by, n=len(replies) // problems)(asked, Run(policy, reference=policy))
    return [(g[0].problem.meta["objective"], g[0].problem.meta["meta_kept"], [t.reply for t in g]) for g in groups]


def test_the_same_replies_are_paired_by_each_reward():
    # of the second problem all are alike by the first reward, and one has no verdict by it
    found = paired(["3 1", "1 2", "2 9", "5 1", "5 0", "? 7"], 2)
    assert found == [("a", 0, ["3 1", "1 2"]), ("b", 0, ["2 9", "3 1"]), ("b", 1, ["? 7", "5 0"])]


def test_where_nothing_can_be_told_apart_nothing_is_taught():
    assert paired(["5 1", "5 1"], 1) == [("a", 0, ["5 1", "5 1"])]


# ---- what users get --------------------------------------------------------------------------------------------------


@reward
def letter_a(trajectory):
    return float("a" in trajectory.reply)


@reward
def letter_b(trajectory):
    return float("b" in trajectory.reply)


def test_each_reward_is_measured_under_each_head():
    ops = begun()
    policy, heads = ops.run.policy, ops.run.model("heads")
    vocabulary = policy.tokenizer.get_vocab()
    with torch.no_grad():
        # a head whose only logit that is not 0 is that of one letter, high where states are like the mean one
        for head, letter in zip(heads.parameters(), "ab", strict=True):
            head.zero_()
            state = policy.evaluate(ops.collate(ops.rollout(ops.problems()), None), ("hidden",)).hidden
            head[vocabulary[letter]] = 100 * state.flatten(0, 1).mean(0)
    measured = rewards_by_head(rewards={"a": letter_a(), "b": letter_b()})(PROBLEMS, ops.run.for_evaluation())
    assert measured["a@a"] > measured["a@b"]
    assert measured["b@b"] > measured["b@a"]
    assert measured["own"] == pytest.approx((measured["a@a"] + measured["b@b"]) / 2)
    assert measured["control"] == pytest.approx(measured["own"] - (measured["a@b"] + measured["b@a"]) / 2)
    assert measured["even"] == pytest.approx((measured["a@even"] + measured["b@even"]) / 2)


def test_without_heads_all_are_the_same():
    run = Run(untrained(hidden=32, layers=1), max_new=4, verify=letter_a())
    measured = rewards_by_head(rewards={"a": letter_a(), "b": letter_b()})(PROBLEMS, run)
    assert measured["a@a"] == measured["a@b"] == measured["a@even"]
    assert measured["control"] == 0
