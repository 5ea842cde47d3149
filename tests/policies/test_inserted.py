"""What is put between the layers: the same in the lean policy and in transformers, for real tokens alone, and only while asked."""

from __future__ import annotations

import pytest
import torch

from rewardlab.core import Sampling, Trajectory, ask
from rewardlab.engine.collate import collate
from rewardlab.errors import RewardlabError
from rewardlab.models.embedded import untrained
from rewardlab.policies.hf.policy import HFPolicy

QUESTIONS = ["1 + 2 = ?", "what is 12 * 3, and then 7 more?"]


@pytest.fixture(scope="module")
def policies(tmp_path_factory):
    lean = untrained(layers=3)
    lean.save(folder := tmp_path_factory.mktemp("lean"))
    return lean, HFPolicy.load(folder, "cpu", "float32")


def batch_for(policy):
    problems = [ask(q, "3") for q in QUESTIONS]
    rows = policy.write(policy.read([Trajectory(p) for p in problems], [p.prompt for p in problems]), ["3", "43"])
    return collate([[row] for row in rows], None, policy.device)


def test_both_policies_pass_the_same_activations_on(policies):
    lean, hf = policies
    for layer in range(lean.depth):
        batch = batch_for(lean)
        one, two = lean.activations(batch, layer), hf.activations(batch_for(hf), layer)
        assert one.shape == (int(batch.length.sum()), one.shape[1])
        torch.testing.assert_close(one, two, atol=1e-4, rtol=1e-4)


def test_activations_as_a_table_have_every_token_at_its_place(policies):
    tables = []
    for policy in policies:
        batch = batch_for(policy)
        tables.append(policy.activation_table(batch, 1))
        assert tables[-1].shape[:2] == batch.ids.shape
        real = torch.arange(batch.ids.shape[1]) < batch.length[:, None]
        assert not tables[-1][~real].any()
    torch.testing.assert_close(*tables, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("threads", [1, 2])
def test_what_is_inserted_changes_both_policies_alike(policies, threads):
    before, found = torch.get_num_threads(), []
    torch.set_num_threads(threads)
    try:
        for policy in policies:
            batch = batch_for(policy)
            plain = policy.evaluate(batch).logprobs
            with policy.inserted(1, lambda x: x):
                torch.testing.assert_close(policy.evaluate(batch).logprobs, plain, atol=1e-4, rtol=1e-4)
            with policy.inserted(1, lambda x: 0.5 * x.flip(1)):
                found.append(policy.evaluate(batch).logprobs)
            assert (found[-1] - plain).abs().max() > 0.01
            assert torch.equal(policy.evaluate(batch).logprobs, plain)
    finally:
        torch.set_num_threads(before)
    torch.testing.assert_close(found[0], found[1], atol=1e-4, rtol=1e-4)


def test_layers_below_a_cut_get_no_gradient(policies):
    for policy in policies:
        with policy.inserted(1, lambda x: x.detach()):
            policy.evaluate(batch_for(policy)).logprobs.sum().backward()
        layers = policy.model.layers if hasattr(policy.model, "layers") else policy.model.model.layers
        grads = [any(p.grad is not None and p.grad.any() for p in layer.parameters()) for layer in layers]
        assert grads == [False, False, *[True] * (policy.depth - 2)]
        policy.model.zero_grad(set_to_none=True)


def test_sampling_is_not_changed(policies):
    for policy in policies:
        prompts = policy.read([Trajectory(ask(QUESTIONS[0]))], [ask(QUESTIONS[0]).prompt])
        plain = policy.extend(prompts, Sampling(max_new=4, temperature=0.0), torch.Generator())
        with policy.inserted(0, torch.zeros_like):
            assert policy.extend(prompts, Sampling(max_new=4, temperature=0.0), torch.Generator())[0].reply == plain[0].reply


def test_a_layer_that_is_not_there_is_refused(policies):
    for policy in policies:
        with pytest.raises(RewardlabError, match=f"there is no layer {policy.depth}"), policy.inserted(policy.depth, lambda x: x):
            pass
