"""How a batch is cut never changes what is learned: same gradient, whole units, same run."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from rewardlab import registry
from rewardlab.api import train
from rewardlab.core import Batch, Recipe, Run, Score, Trajectory, ask, objective, weighting
from rewardlab.engine.collate import add_columns, collate, micro_batches, mini_batches
from rewardlab.engine.loss import losses_of, weigh
from rewardlab.engine.update import backward
from rewardlab.models.embedded import untrained
from rewardlab.objectives.pairs import dpo_loss, preference_loss, row_sum
from rewardlab.objectives.ratio import clipped_ratio, imitate, policy_gradient
from rewardlab.objectives.regularise import kl_to_reference, negative_entropy, value_error
from rewardlab.objectives.weighting import constant_length, row_mean, token_mean
from rewardlab.rewards.reward import reward

SIZES = (3, 1, 2, 4)
WORDS = "12+3=15\n15*4=60\nthe answer is 60, which was to be shown"


@pytest.fixture(scope="module")
def policy():
    return untrained()


@pytest.fixture(scope="module")
def critic(policy):
    made = policy.copy("critic", value_head=True)
    torch.nn.init.normal_(made.model.value_head, generator=torch.Generator().manual_seed(1))
    return made


@pytest.fixture(scope="module")
def batch(policy, critic):
    return recorded(policy, critic, SIZES)


@pytest.fixture(scope="module")
def pairs(policy, critic):
    return recorded(policy, critic, (2, 2, 2, 2, 2))


def recorded(policy, critic, sizes: tuple[int, ...]) -> Batch:
    """Groups of these sizes with replies of very unequal length, a reference, old log-probs and a random credit."""
    generator = np.random.default_rng(0)
    groups = []
    for g, n in enumerate(sizes):
        problem = ask(f"{g}+{g}?" * (g + 1), str(2 * g))
        asked = policy.read([Trajectory(problem)] * n, [problem.prompt] * n)
        groups.append(policy.write(asked, [WORDS[: generator.integers(1, len(WORDS))] for _ in range(n)]))
    scores = [[Score(float(generator.normal())) for _ in group] for group in groups]
    made = collate(groups, scores, policy.device)
    run = Run(policy, reference=untrained_like(policy, 0.3, 5), models={"critic": critic})
    add_columns(made, ["ref", "old", "value"], run, 10**9)
    noise = torch.randn(made.mask.shape, generator=torch.Generator().manual_seed(3))
    made.old = torch.where(made.mask, made.old + 0.3 * noise, 0.0)
    made.credit = torch.where(made.mask, noise.roll(1, 0), 0.0)
    return made


def untrained_like(policy, scale: float, seed: int):
    """A copy whose weights were pushed about."""
    other, generator = policy.copy("reference"), torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for p in other.parameters():
            p += scale * p.std() * torch.randn(p.shape, generator=generator)
    return other


# ---- objectives of every unit ----------------------------------------------------------------------------------------


@objective(unit="row")
def squared_length_of_thought(out, batch, run):
    return row_sum(out.logprobs, batch).square() / 1000


@objective(unit="group")
def group_softmax(out, batch, run):
    """-log of the share that the first row of each group has."""
    rows = row_sum(out.logprobs, batch) / 10
    ends = [*batch.first_rows.tolist()[1:], len(batch)]
    return torch.stack([rows[a:b].logsumexp(0) - rows[a] for a, b in zip(batch.first_rows.tolist(), ends, strict=True)])


@objective(unit="batch")
def log_mean_exp(out, batch, run, *, tau=10.0):
    return (row_sum(out.logprobs, batch) / tau).logsumexp(0) - math.log(len(batch))


@objective(unit="batch")
def variance(out, batch, run):
    return (row_sum(out.logprobs, batch) / batch.mask.sum(1)).var()


@objective(unit="batch", wants=("logprobs", "entropy", "hidden"))
def ratio_of_means(out, batch, run):
    """Not linear in what several outputs say together."""
    hidden = out.hidden.norm(dim=-1)[batch.mask].mean()
    return out.entropy[batch.mask].mean() / (1 + hidden) + out.logprobs[batch.mask].square().mean()


def margin_of_best(logits: Tensor, ids: Tensor) -> dict[str, Tensor]:
    """Two things that need the whole vocabulary: the runner-up's distance, and the mass above the mean."""
    p = logits.softmax(-1)
    return {"gap": logits.amax(-1) - logits.gather(1, ids[:, None]).squeeze(1), "mass": p.square().sum(-1)}


@objective(unit="token", per_token=margin_of_best)
def by_vocabulary(out, batch, run):
    return out.extra["gap"].square() - 3 * out.extra["mass"]


@objective(unit="row", per_token=margin_of_best)
def by_vocabulary_of_rows(out, batch, run):
    return row_sum(out.extra["gap"], batch).square() / 100


@objective(unit="batch", per_token=margin_of_best)
def by_vocabulary_of_all(out, batch, run):
    return out.extra["gap"][batch.mask].var() + out.extra["mass"][batch.mask].logsumexp(0)


@objective(unit="row", wants=("value",))
def end_value(out, batch, run):
    return out.value.gather(1, (batch.length - 1)[:, None]).squeeze(1).square()


@objective(unit="batch", wants=("value",))
def value_spread(out, batch, run):
    return out.value[batch.mask].std()


@weighting(unit="group")
def large_groups_first(batch):
    return torch.bincount(batch.group).float() ** 2 / 30


POLICY = {
    "token": Recipe(objective=clipped_ratio() + 0.1 * kl_to_reference(), weighting=row_mean()),
    "token, mean of all": Recipe(objective=policy_gradient() + 0.01 * negative_entropy(), weighting=token_mean()),
    "token, constant": Recipe(objective=imitate(), weighting=constant_length(length=20)),
    "token, whole vocabulary": Recipe(objective=by_vocabulary()),
    "row": Recipe(objective=squared_length_of_thought()),
    "row, whole vocabulary": Recipe(objective=by_vocabulary_of_rows()),
    "group": Recipe(objective=group_softmax()),
    "group, weighted": Recipe(objective=group_softmax(), weighting=large_groups_first()),
    "batch": Recipe(objective=log_mean_exp()),
    "batch, variance": Recipe(objective=variance()),
    "batch, several outputs": Recipe(objective=ratio_of_means()),
    "batch, whole vocabulary": Recipe(objective=by_vocabulary_of_all()),
    "token and row": Recipe(objective=clipped_ratio() + 0.5 * squared_length_of_thought() + by_vocabulary()),
    "token and group": Recipe(objective=imitate() + 0.5 * group_softmax(), weighting=row_mean()),
    "every unit": Recipe(
        objective=clipped_ratio() + 0.1 * (squared_length_of_thought() + group_softmax()) + variance() + by_vocabulary()
    ),
}
CRITIC = {
    "token": Recipe(objective=value_error(clip=0.05), weighting=token_mean()),
    "row": Recipe(objective=end_value()),
    "batch": Recipe(objective=value_spread()),
    "every unit": Recipe(objective=value_error() + end_value() + 2 * value_spread()),
}
BUDGETS = (1, 120, 250, 10**9)


def gradient(model, batch: Batch, recipe: Recipe, tokens: int) -> tuple[Tensor, float]:
    for p in model.parameters():
        p.grad = None
    stats = backward(model, batch, recipe, Run(model), tokens)
    grads = [torch.zeros_like(p) if p.grad is None else p.grad for p in model.parameters()]
    return torch.cat([g.flatten() for g in grads]), stats["loss"]


def direct_gradient(model, batch: Batch, recipe: Recipe) -> tuple[Tensor, float]:
    """By plain autograd through the whole batch at once."""
    part = recipe.objective
    weigh(batch, part, recipe.weighting)
    loss = sum(losses_of(part, model.evaluate(batch, part.wants, part.per_token), batch, Run(model)).values())
    grads = torch.autograd.grad(loss, model.parameters(), allow_unused=True)
    found = [torch.zeros_like(p) if g is None else g for p, g in zip(model.parameters(), grads, strict=True)]
    return torch.cat([g.flatten() for g in found]), loss.item()


def assert_the_cut_does_not_matter(model, batch: Batch, recipe: Recipe) -> None:
    cuts = [len(micro_batches(batch, tokens, "row")) for tokens in BUDGETS]
    assert cuts[0] == len(batch) > cuts[1] > cuts[2] > cuts[3] == 1
    whole, loss = direct_gradient(model, batch, recipe)
    assert float(whole.norm()) > 1e-3
    for tokens in BUDGETS:
        found, found_loss = gradient(model, batch, recipe, tokens)
        # float32 sums in another order; how far apart they come out depends on the processor
        assert float((found - whole).abs().max()) < 3e-6 * max(1.0, float(whole.abs().max()))
        assert found_loss == pytest.approx(loss, rel=1e-5)


@pytest.mark.parametrize("recipe", POLICY.values(), ids=POLICY)
def test_the_gradient_of_a_policy_is_the_same_however_it_is_cut(policy, batch, recipe):
    assert_the_cut_does_not_matter(policy, batch, recipe)


@pytest.mark.parametrize("recipe", CRITIC.values(), ids=CRITIC)
def test_the_gradient_of_a_critic_is_the_same_however_it_is_cut(critic, batch, recipe):
    assert_the_cut_does_not_matter(critic, batch, recipe)


def test_the_gradient_of_pairs_is_the_same_however_they_are_cut(policy, critic, pairs):
    assert_the_cut_does_not_matter(policy, pairs, Recipe(objective=dpo_loss() + 0.1 * imitate()))
    assert_the_cut_does_not_matter(critic, pairs, Recipe(objective=preference_loss()))


# ---- against autograd on the whole, with the loss written out --------------------------------------------------------


def by_hand_log_mean_exp(model, batch: Batch) -> Tensor:
    rows = torch.where(batch.mask, model.evaluate(batch).logprobs, 0.0).sum(1)
    return (rows / 10).exp().mean().log()


def by_hand_variance(model, batch: Batch) -> Tensor:
    rows = torch.where(batch.mask, model.evaluate(batch).logprobs, 0.0).sum(1) / batch.mask.sum(1)
    return (rows - rows.mean()).square().sum() / (len(batch) - 1)


def by_hand_rows_and_tokens(model, batch: Batch) -> Tensor:
    logprobs = model.evaluate(batch).logprobs
    rows = torch.where(batch.mask, logprobs, 0.0).sum(1)
    return -logprobs[batch.mask].mean() + 0.5 * (rows**2).mean() / 1000


def by_hand_groups(model, batch: Batch) -> Tensor:
    rows = torch.where(batch.mask, model.evaluate(batch).logprobs, 0.0).sum(1) / 10
    shares = [group.softmax(0)[0] for group in rows.split(SIZES)]
    return -torch.stack(shares).log().mean()


@pytest.mark.parametrize(
    ("part", "by_hand"),
    [
        (log_mean_exp(), by_hand_log_mean_exp),
        (variance(), by_hand_variance),
        (imitate() + 0.5 * squared_length_of_thought(), by_hand_rows_and_tokens),
        (group_softmax(), by_hand_groups),
    ],
)
@pytest.mark.parametrize("tokens", [1, 250])
def test_the_gradient_is_that_of_the_loss_written_out(policy, batch, part, by_hand, tokens):
    found, loss = gradient(policy, batch, Recipe(objective=part), tokens)
    expected = by_hand(policy, batch)
    grads = torch.autograd.grad(expected, policy.parameters())
    written_out = torch.cat([g.flatten() for g in grads])
    assert loss == pytest.approx(expected.item(), rel=1e-5)
    assert float((found - written_out).abs().max()) < 1e-6 * max(1.0, float(written_out.abs().max()))


def test_a_batch_objective_cut_without_care_would_differ(policy, batch):
    """The checks above have teeth: averaging the statistic over micro-batches gives another gradient."""
    recipe = Recipe(objective=variance())
    whole, _ = gradient(policy, batch, recipe, 10**9)
    halves = [gradient(policy, batch[rows], recipe, 10**9)[0] for rows in torch.arange(10).split(5)]
    assert float((sum(halves) / 2 - whole).norm()) > 1e-2 * float(whole.norm())


# ---- the cuts themselves ---------------------------------------------------------------------------------------------


def lengths_only(lengths: list[int], sizes: list[int]) -> Batch:
    shape = len(lengths), max(lengths)
    nothing = torch.zeros(shape)
    group = torch.repeat_interleave(torch.arange(len(sizes)), torch.tensor(sizes))
    return Batch(nothing.long(), nothing.bool(), torch.tensor(lengths), nothing, nothing, nothing.bool(), group)


@st.composite
def shapes(draw) -> tuple[list[int], list[int]]:
    sizes = draw(st.lists(st.integers(1, 4), min_size=1, max_size=8))
    return draw(st.lists(st.integers(1, 50), min_size=sum(sizes), max_size=sum(sizes))), sizes


@given(shapes(), st.integers(1, 200), st.sampled_from(["row", "group"]))
def test_micro_batches_split_no_unit_and_keep_to_the_budget(shape, tokens, unit):
    batch = lengths_only(*shape)
    parts = micro_batches(batch, tokens, unit)
    assert sorted(i for part in parts for i in part.tolist()) == list(range(len(batch)))
    for part in parts:
        assert part.tolist() == sorted(part.tolist())
        whole = {int(g) for g in batch.group[part]}
        if unit == "group":
            assert all(set((batch.group == g).nonzero().squeeze(1).tolist()) <= set(part.tolist()) for g in whole)
        single = len(part) == 1 if unit == "row" else len(whole) == 1
        assert single or int(batch.length[part].sum()) <= tokens


@given(shapes(), st.integers(1, 10), st.integers(0, 99))
def test_minibatches_deal_out_every_group_whole(shape, n, seed):
    batch = lengths_only(*shape)
    parts = mini_batches(batch, n, torch.Generator().manual_seed(seed))
    assert len(parts) == min(n, batch.groups)
    assert sorted(i for part in parts for i in part.tolist()) == list(range(len(batch)))
    homes = [{int(g) for g in batch.group[part]} for part in parts]
    assert sum(map(len, homes)) == batch.groups
    assert max(map(len, homes)) - min(map(len, homes)) <= 1


def test_minibatches_are_dealt_anew_and_repeatably():
    batch = lengths_only([5] * 16, [2] * 8)

    def deal(seed):
        return [part.tolist() for part in mini_batches(batch, 4, torch.Generator().manual_seed(seed))]

    assert deal(0) == deal(0)
    assert deal(0) != deal(1)


# ---- whole runs ------------------------------------------------------------------------------------------------------


def test_random_streams_depend_on_seed_purpose_and_step_alone():
    def drawn(run: Run, purpose: str) -> list[float]:
        return torch.rand(3, generator=run.rng(purpose)).tolist()

    run = Run(None, seed=1, step=5)
    first, other, second = drawn(run, "rollout"), drawn(run, "eval"), drawn(run, "rollout")
    assert len({*map(tuple, (first, other, second))}) == 3
    fresh = Run(None, seed=1, step=5)
    assert (drawn(fresh, "eval"), drawn(fresh, "rollout"), drawn(fresh, "rollout")) == (other, first, second)
    run.step = 6
    assert drawn(run, "rollout") == drawn(Run(None, seed=1, step=6), "rollout") != first
    assert drawn(Run(None, seed=2, step=5), "rollout") != first


@reward
def share_of_letters(trajectory):
    return sum(c.isalpha() for c in trajectory.reply) / max(1, len(trajectory.reply))


def three_steps(recipe: Recipe, model, seed: int, out) -> dict[str, Tensor]:
    """The parameters of every model after training."""
    done = train(recipe, model, steps=3, seed=seed, out=out, max_new=8, eval_every=0, eval_problems=2)
    return {f"{m.name}.{k}": v.clone() for m in (done.run.policy, *done.run.models.values()) for k, v in m.state().items()}


@pytest.mark.parametrize("method", ["grpo", pytest.param("ppo", marks=pytest.mark.slow)])
def test_two_runs_of_one_seed_are_bit_equal(policy, method, tmp_path):
    recipe = registry.build(method).but(reward=share_of_letters(), problems=4, minibatches=2)
    first = three_steps(recipe, "untrained" if method == "grpo" else policy.copy("policy"), 0, tmp_path / "first")
    second = three_steps(recipe, policy.copy("policy"), 0, tmp_path / "second")
    other = three_steps(recipe, policy.copy("policy"), 1, tmp_path / "other")
    assert first.keys() == second.keys()
    assert all(torch.equal(first[k], second[k]) for k in first)
    assert not any(torch.equal(first[k], other[k]) for k in first)
    assert not any(torch.equal(first[f"policy.{k}"], v) for k, v in policy.state().items())
