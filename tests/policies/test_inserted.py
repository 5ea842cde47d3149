"""What is put between the layers: the same in the lean policy and in transformers, for real tokens alone, and only while asked."""

from __future__ import annotations

import pytest
import torch

from rewardlab.core import Sampling, Trajectory, ask
from rewardlab.engine.collate import collate
from rewardlab.errors import RewardlabError

QUESTIONS = ["1 + 2 = ?", "what is 12 * 3, and then 7 more?"]


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


def sampled(policy, temperature=1.0):
    asked = [ask(q) for q in QUESTIONS for _ in range(3)]
    rows = policy.read([Trajectory(p) for p in asked], [p.prompt for p in asked])
    return policy.extend(rows, Sampling(max_new=6, temperature=temperature), torch.Generator().manual_seed(2))


@pytest.mark.parametrize("layer", [0, 2])
def test_what_is_sampled_is_changed_as_what_is_evaluated(policies, layer):
    texts = []
    for policy in policies:
        plain, vector = sampled(policy), torch.linspace(-2, 2, 32)
        with policy.inserted(layer, lambda x, v=vector: x + v):
            rows = sampled(policy)
            own = [s[t.mask] for s, t in zip(policy.score(rows), rows, strict=True)]
            said = [t.turns[-1].logprobs for t in rows]
            texts.append([t.reply for t in rows])
        for a, b in zip(own, said, strict=True):
            torch.testing.assert_close(torch.tensor(a), torch.tensor(b), atol=2e-3, rtol=2e-3)
        assert texts[-1] != [t.reply for t in plain] == [t.reply for t in sampled(policy)]
    assert texts[0] == texts[1]


def test_in_sampling_it_sees_prompts_once_and_then_each_token(policies):
    for policy in policies:
        seen = []

        def counted(x, seen=seen):
            seen.append(len(x))
            return x

        with policy.inserted(1, counted):
            (row,) = policy.extend(
                policy.read([Trajectory(ask(QUESTIONS[0]))], [ask(QUESTIONS[0]).prompt]), Sampling(4, 0.0), torch.Generator()
            )
        written = int(row.mask.sum())
        # the last token that is sampled is never read
        assert sum(seen) == len(row) - 1
        assert seen[1:] == [1] * (len(seen) - 1)
        assert len(seen) >= written


def test_a_layer_that_is_not_there_is_refused(policies):
    for policy in policies:
        with pytest.raises(RewardlabError, match=f"there is no layer {policy.depth}"), policy.inserted(policy.depth, lambda x: x):
            pass
