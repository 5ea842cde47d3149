"""Several vocabulary heads over one trunk, in both text policies."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from rewardlab.core import Learner, Recipe, Sampling, Trajectory, ask
from rewardlab.errors import RewardlabError
from rewardlab.models.embedded import untrained
from rewardlab.models.learners import learner_model
from rewardlab.policies.heads import Heads
from rewardlab.policies.hf.policy import HFPolicy
from rewardlab.policies.llama.policy import LlamaPolicy
from rewardlab.util.outputs import forward_batch

KINDS = ["lean", "hf"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    policy = untrained(hidden=32, layers=1)
    assert policy.model.shape.tied
    policy.save(where := tmp_path_factory.mktemp("model"))
    return where


def loaded(kind, folder):
    return LlamaPolicy.load(folder, "cpu", "float32") if kind == "lean" else HFPolicy.load(folder, "cpu", "float32")


def replies(policy, temperature=0.0):
    asked = [ask("1 + 2 = ?"), ask("7?")]
    rows = policy.read([Trajectory(p) for p in asked], [p.prompt for p in asked])
    return policy.extend(rows, Sampling(8, temperature), torch.Generator().manual_seed(5))


def made(kind, folder):
    """A policy with two heads that noise has moved apart."""
    policy = loaded(kind, folder)
    heads, noise = Heads(policy, ["a", "b"]), torch.Generator().manual_seed(0)
    with torch.no_grad():
        for head in heads.parameters():
            head += 0.3 * torch.randn(head.shape, generator=noise)
    return policy, heads


def batch_under(policy, names):
    """A batch whose rows name their heads, with the policy's hidden states as its column."""
    rows = [replace(t, problem=replace(t.problem, meta={"objective": n})) for t, n in zip(replies(policy), names, strict=True)]
    batch = forward_batch(rows, policy.device)
    batch.rows = [(t, None) for t in rows]
    batch.columns["policy.hidden"] = policy.evaluate(batch, ("hidden",)).hidden.detach()
    return batch


def by_logits(batch, matrices):
    """(B, T) log-probs from whole matrices of logits, one matrix for each row."""
    logits = torch.stack([h @ w.T for h, w in zip(batch.columns["policy.hidden"], matrices, strict=True)])
    said = logits.log_softmax(2)[:, :-1].gather(2, batch.ids[:, 1:, None]).squeeze(2)
    return torch.where(batch.mask, torch.cat((torch.zeros(len(batch), 1), said), 1), 0.0)


@pytest.mark.parametrize("kind", KINDS)
def test_a_row_is_said_by_the_head_that_its_problem_names(kind, folder):
    policy, heads = made(kind, folder)
    batch = batch_under(policy, ["b", "a"])
    a, b = (w.detach() for w in heads.parameters())
    found = heads.evaluate(batch).logprobs
    torch.testing.assert_close(found.detach(), by_logits(batch, [b, a]), atol=1e-4, rtol=1e-4)
    # each head learns from its own rows alone
    only_b = torch.autograd.grad(found[0].sum(), list(heads.parameters()), allow_unused=True)
    assert only_b[0] is None or not bool(only_b[0].any())
    assert bool(only_b[1].any())


def test_frozen_heads_pass_the_gradient_down(folder):
    policy, heads = made("lean", folder)
    batch = batch_under(policy, ["b", "a"])
    heads.logprobs(policy.evaluate(batch, ("hidden",)).hidden, batch, frozen=True).sum().backward()
    assert all(p.grad is None for p in heads.parameters())
    assert bool(policy.model.layers[0].out.grad.any())
    assert policy.model.head.grad is None


def test_a_row_of_no_head_is_refused(folder):
    policy, heads = made("lean", folder)
    with pytest.raises(RewardlabError, match="has 'c' in the column 'objective', and the heads are: a, b"):
        heads.evaluate(batch_under(policy, ["a", "c"]))


@pytest.mark.parametrize("kind", KINDS)
def test_the_policy_decides_by_the_mean_of_its_heads(kind, folder):
    policy, heads = made(kind, folder)
    plain = [t.reply for t in replies(policy)]
    embeddings = (policy.model.embed if kind == "lean" else policy.model.get_input_embeddings().weight).detach().clone()
    a, b = (w.detach() for w in heads.parameters())
    with heads.deciding(policy, {"a": 3.0, "b": 1.0}):
        # weights are normalised
        torch.testing.assert_close(policy.vocabulary_head().detach(), 0.75 * a + 0.25 * b)
        rows = replies(policy, temperature=1.0)
        batch = batch_under(policy, ["a", "a"])
        mixed = policy.evaluate(batch).logprobs.detach()
        torch.testing.assert_close(mixed, by_logits(batch, [0.75 * a + 0.25 * b] * 2), atol=1e-4, rtol=1e-4)
        assert [t.reply for t in replies(policy)] != plain
    # what is sampled has the log-probs of the mixture, not those of the policy as it is again
    sampled = forward_batch(rows, policy.device)
    said = torch.cat([torch.from_numpy(t.column("logprobs")[t.mask]) for t in rows])
    assert not torch.allclose(policy.evaluate(sampled).logprobs[sampled.mask].detach(), said, atol=1e-2)
    with heads.deciding(policy, {"a": 3.0, "b": 1.0}):
        torch.testing.assert_close(policy.evaluate(sampled).logprobs[sampled.mask].detach(), said, atol=2e-3, rtol=1e-3)
    assert [t.reply for t in replies(policy)] == plain
    # the embeddings, which were its head, are as they were
    after = policy.model.embed if kind == "lean" else policy.model.get_input_embeddings().weight
    assert torch.equal(after, embeddings)


@pytest.mark.parametrize("kind", KINDS)
def test_a_saved_policy_decides_by_the_mixture(kind, folder, tmp_path):
    policy, heads = made(kind, folder)
    heads.decide(policy, {"b": 2.0})
    policy.save(tmp_path)
    for other in KINDS:
        again = loaded(other, tmp_path)
        torch.testing.assert_close(again.vocabulary_head().detach(), list(heads.parameters())[1].detach())
        assert [t.reply for t in replies(again)] == [t.reply for t in replies(policy)]


@pytest.mark.parametrize("kind", KINDS)
def test_the_head_of_adapters_is_saved_with_them(kind, folder, tmp_path):
    lean = kind == "lean"
    policy = loaded(kind, folder).adapt(2, None) if lean else HFPolicy.load(folder, "cpu", "float32", lora_rank=2)
    heads = Heads(policy, ["a"])
    with torch.no_grad():
        next(iter(heads.parameters())).add_(1.0)
    heads.decide(policy, {"a": 1.0})
    # checkpoints hold what trains
    state = {k: v.clone() for k, v in policy.state().items()}
    heads.model[0].data.zero_()
    heads.decide(policy, {"a": 1.0})
    policy.load_state(state)
    policy.save(tmp_path)
    torch.testing.assert_close(
        loaded("lean", tmp_path).vocabulary_head().detach(), loaded("lean", folder).vocabulary_head().detach() + 1.0
    )


def test_weights_and_names_that_make_no_mixture_are_refused(folder):
    policy, heads = made("lean", folder)
    with pytest.raises(RewardlabError, match="sum to 0"):
        heads.mixed({"a": 0.0})
    with pytest.raises(RewardlabError, match="unknown head"):
        heads.mixed({"c": 1.0})
    with pytest.raises(RewardlabError, match="each of its own"):
        Heads(policy, ["a", "a"])


def test_a_learner_may_be_heads(folder):
    policy = loaded("lean", folder)
    heads = learner_model(Learner("style", "heads:a,b", Recipe()), policy)
    assert (heads.name, heads.names) == ("style", ("a", "b"))
    assert not policy.model.shape.tied
