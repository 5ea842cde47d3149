"""Noise on the scales of the norms: the same in both text policies, in all that they do, and gone without a trace."""

from __future__ import annotations

import copy

import pytest
import torch

from rewardlab.core import Sampling, Trajectory, ask
from rewardlab.errors import RewardlabError
from rewardlab.models.embedded import untrained
from rewardlab.policies.hf.policy import HFPolicy
from rewardlab.util.outputs import forward_batch

QUESTIONS = ["1 + 2 = ?", "what is 12 * 3, and then 7 more?"]


@pytest.fixture(scope="module")
def policies(tmp_path_factory):
    lean = untrained(layers=2)
    lean.save(folder := tmp_path_factory.mktemp("lean"))
    return lean, HFPolicy.load(folder, "cpu", "float32")


def prompts(policy):
    problems = [ask(q, "3") for q in QUESTIONS]
    return policy.read([Trajectory(p) for p in problems], [p.prompt for p in problems])


def logprobs(policy):
    rows = policy.write(prompts(policy), ["3", "43"])
    return policy.evaluate(forward_batch(rows, policy.device)).logprobs.detach()


def rng(seed=0):
    return torch.Generator().manual_seed(seed)


@pytest.mark.parametrize("threads", [1, 2])  # the lean policy has two ways to run
def test_both_policies_have_the_same_noise(policies, threads):
    before, found = torch.get_num_threads(), []
    torch.set_num_threads(threads)
    try:
        for policy in policies:
            with policy.noised(0.5, rng()):
                found.append(logprobs(policy))
            assert (found[-1] - logprobs(policy)).abs().max() > 0.01
    finally:
        torch.set_num_threads(before)
    torch.testing.assert_close(found[0], found[1], atol=1e-4, rtol=1e-4)


def test_it_is_added_to_the_scales_of_layers_and_to_nothing_else():
    policy = untrained(layers=2)
    before = {k: v.clone() for k, v in policy.model.named_parameters()}
    with policy.noised(0.1, rng()):
        moved = {k: v - before[k] for k, v in policy.model.named_parameters() if not torch.equal(v, before[k])}
    assert set(moved) == {f"layers.{i}.{name}" for i in (0, 1) for name in ("attn_norm", "mlp_norm")}
    # the same numbers, sampled in the order of the layers
    wanted = rng()
    for i in (0, 1):
        for name in ("attn_norm", "mlp_norm"):
            torch.testing.assert_close(moved[f"layers.{i}.{name}"], 0.1 * torch.randn(32, generator=wanted), atol=1e-6, rtol=0)


def test_replies_are_sampled_with_it_and_their_log_probs_say_so(policies):
    for policy in policies:
        with policy.noised(0.5, rng()):
            rows = policy.extend(prompts(policy), Sampling(max_new=6), rng(1))
            scored = policy.score(rows)
        clean = policy.score(rows)
        for t, with_noise, without in zip(rows, scored, clean, strict=True):
            at = t.mask
            assert abs(t.column("logprobs")[at] - with_noise[at]).max() < 1e-4
            assert abs(t.column("logprobs")[at] - without[at]).max() > 1e-3


def test_afterwards_the_policy_is_what_it_was_bit_for_bit(policies):
    for policy in policies:
        weights, values, plain = list(policy.parameters()), copy.deepcopy(policy.state()), logprobs(policy)
        with pytest.raises(ZeroDivisionError), policy.noised(0.5, rng()):
            _ = 1 / 0
        # the very same objects: an optimiser holds them
        assert all(a is b for a, b in zip(weights, policy.parameters(), strict=True))
        assert all(torch.equal(v, policy.state()[k]) for k, v in values.items())
        assert torch.equal(logprobs(policy), plain)


def test_a_copy_that_shares_frozen_weights_has_none_of_it():
    policy = untrained(layers=2).adapt(2)
    reference = policy.copy("reference")
    assert reference.model.layers[0].attn_norm is policy.model.layers[0].attn_norm
    plain = logprobs(reference)
    with policy.noised(0.5, rng()):
        assert torch.equal(logprobs(reference), plain)
        assert not torch.equal(logprobs(policy), plain)


def test_a_model_without_norms_of_its_layers_is_refused(policies):
    model = copy.deepcopy(policies[1])
    for layer in model.model.model.layers:
        layer.input_layernorm = layer.post_attention_layernorm = torch.nn.Identity()
    with pytest.raises(RewardlabError, match="no norms with scales"):
        model.noised(0.1, rng())
