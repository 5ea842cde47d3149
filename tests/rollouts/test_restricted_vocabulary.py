"""Replies of tokens that another model finds likely enough."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from rewardlab.core import Run, Sampling, ask
from rewardlab.errors import RewardlabError
from rewardlab.methods.objectives.nlpo import restricted_vocabulary
from rewardlab.models.embedded import untrained
from rewardlab.policies.head import nucleus_logprobs
from rewardlab.policies.sampler import warp
from rewardlab.rollouts.independent import independent
from rewardlab.util.outputs import forward_batch

PROBLEMS = [ask(f"{i}+{i}=?", str(2 * i)) for i in range(4)]


def run_of(seed: int = 0, **fields) -> Run:
    policy = untrained(hidden=32, layers=1)
    return Run(policy, models={"mask": untrained(1, hidden=32, layers=1)}, max_new=6, seed=seed, **fields)


def test_the_restricted_log_probs_by_hand():
    # of the other model .5, .3, .1, .1: two tokens have .8, and the last one ends replies
    other = torch.tensor([[0.5, 0.3, 0.1, 0.1]]).log()
    own = torch.tensor([[0.2, 0.4, 0.3, 0.1]]).log()
    eye = torch.eye(4)
    found, inside = nucleus_logprobs(own.repeat(4, 1), eye, other.repeat(4, 1), eye, torch.arange(4), 0.75, (3,))
    assert inside.tolist() == [True, True, False, True]
    assert found.exp().tolist() == pytest.approx([0.2 / 0.7, 0.4 / 0.7, 0.3 / 0.7, 0.1 / 0.7])
    whole, inside = nucleus_logprobs(own.repeat(4, 1), eye, other.repeat(4, 1), eye, torch.arange(4), 1.0)
    assert inside.all()
    assert whole.exp().tolist() == pytest.approx([0.2, 0.4, 0.3, 0.1])


def test_it_has_the_gradient_of_the_restricted_softmax():
    own = torch.randn(3, 5, generator=torch.Generator().manual_seed(0), dtype=torch.float64).requires_grad_()
    other, ids = torch.zeros(3, 5), torch.tensor([0, 1, 2])
    other[:, :3] = 5.0
    nucleus_logprobs(own, torch.eye(5, dtype=torch.float64), other, torch.eye(5), ids, 0.9)[0].sum().backward()
    p = own.detach()[:, :3].softmax(1)
    assert own.grad[:, 3:].abs().max() == 0
    assert torch.allclose(own.grad[:, :3], F.one_hot(ids, 3) - p, atol=1e-6)


def logits_before(model, row):
    """(n, V) of the decisions of a row."""
    with torch.no_grad():
        hidden = model.evaluate(forward_batch([row], model.device), ("hidden",)).hidden[0, :-1]
    return hidden[row.mask[1:]] @ model.vocabulary_head().T


def test_no_token_is_outside_and_what_was_sampled_from_is_recorded():
    run = run_of()
    groups = restricted_vocabulary(model="mask", n=3, top_p=0.6)(PROBLEMS, run)
    assert [len(g) for g in groups] == [3] * 4
    assert run.metrics["outside"] == 0
    for row in (t for group in groups for t in group):
        assert row.stop is not None
        ids = torch.from_numpy(row.ids[row.mask])
        assert 0 < len(ids) <= 6
        allowed = warp(logits_before(run.model("mask"), row), Sampling(top_p=0.6)) > -torch.inf
        allowed[:, sorted(run.policy.ends)] = True
        assert allowed.gather(1, ids[:, None]).all()
        own = logits_before(run.policy, row)
        expected = own.masked_fill(~allowed, -torch.inf).log_softmax(1).gather(1, ids[:, None]).squeeze(1)
        assert row.column("sampled")[row.mask] == pytest.approx(expected.detach().numpy(), abs=1e-4)
        raw = own.log_softmax(1).gather(1, ids[:, None]).squeeze(1)
        assert row.column("logprobs")[row.mask] == pytest.approx(raw.detach().numpy(), abs=1e-4)


@pytest.mark.slow
def test_tokens_come_as_often_as_the_restricted_policy_says():
    run = run_of()
    run.max_new = 1
    (group,) = restricted_vocabulary(model="mask", n=3000, top_p=0.5)(PROBLEMS[:1], run)
    ids = np.array([t.ids[t.mask][0] for t in group])
    some = {int(t.ids[t.mask][0]): float(np.exp(t.column("sampled")[t.mask][0])) for t in group}
    for token, chance in sorted(some.items(), key=lambda item: -item[1])[:5]:
        assert (ids == token).mean() == pytest.approx(chance, abs=5 * (chance / 3000) ** 0.5)
    assert sum(some.values()) == pytest.approx(1, abs=0.02)


def test_with_all_of_the_probability_it_is_the_policy_itself():
    free, own = (part(PROBLEMS, run_of()) for part in (restricted_vocabulary(model="mask", n=2, top_p=1.0), independent(n=2)))
    for a, b in zip((t for g in free for t in g), (t for g in own for t in g), strict=True):
        assert a.ids.tolist() == b.ids.tolist()
        assert a.column("sampled")[a.mask] == pytest.approx(b.column("sampled")[b.mask], abs=1e-4)


def test_long_replies_are_inside_too_and_no_token_is_sampled_in_vain():
    run = run_of()
    run.max_new = 60
    groups = restricted_vocabulary(model="mask", n=2, top_p=0.3)(PROBLEMS, run)
    assert run.metrics["outside"] == 0
    decided = [int(t.mask.sum()) for g in groups for t in g]
    assert max(decided) == 60
    assert run.policy.token_count.generated == sum(decided)
    for t in (t for g in groups for t in g):
        assert t.reply == run.policy.decode(t.ids[t.mask])
        assert len(t.turns) == 2


def test_a_temperature_is_of_the_policy_alone():
    run = run_of()
    groups = restricted_vocabulary(model="mask", n=3, top_p=0.6, temperature=0.5)(PROBLEMS, run)
    assert run.metrics["outside"] == 0
    for row in (t for group in groups for t in group):
        allowed = warp(logits_before(run.model("mask"), row), Sampling(top_p=0.6)) > -torch.inf
        allowed[:, sorted(run.policy.ends)] = True
        ids = torch.from_numpy(row.ids[row.mask])[:, None]
        own = logits_before(run.policy, row)
        raw = own.log_softmax(1).gather(1, ids).squeeze(1)
        expected = (own / 0.5).masked_fill(~allowed, -torch.inf).log_softmax(1).gather(1, ids).squeeze(1)
        assert row.column("sampled")[row.mask] == pytest.approx(expected.detach().numpy(), abs=1e-4)
        assert row.column("logprobs")[row.mask] == pytest.approx(raw.detach().numpy(), abs=1e-4)


def test_a_prompt_that_leaves_no_room_is_refused():
    with pytest.raises(RewardlabError, match="lower --max-new"):
        restricted_vocabulary(model="mask")([ask("1+1 " * 200)], run_of())
