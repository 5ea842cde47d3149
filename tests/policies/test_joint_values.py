"""A model with a value head that decides along: its values of the likeliest next tokens move their logits."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from rewardlab.core import Sampling, Trajectory, ask
from rewardlab.errors import RewardlabError
from rewardlab.models.embedded import untrained
from rewardlab.policies.hf.policy import HFPolicy
from rewardlab.policies.joint import plus_values
from rewardlab.util.outputs import forward_batch

QUESTIONS = ["1 + 2 = ?", "what is 12 * 3, and then 7 more?"]


def shaken(policy, seed):
    noise = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for w in policy.parameters():
            w += 0.1 * torch.randn(w.shape, generator=noise)
    return policy


@pytest.fixture(scope="module")
def pairs(tmp_path_factory):
    """A policy and a model with a value head, run by the lean policy and by transformers."""
    policy, judge = shaken(untrained(layers=2), 0), shaken(untrained(layers=2).copy("value", value_head=True), 1)
    policy.save(folder := tmp_path_factory.mktemp("policy"))
    judge.save(other := tmp_path_factory.mktemp("value"))
    return (policy, judge), (HFPolicy.load(folder, "cpu", "float32"), HFPolicy.load(other, "cpu", "float32"))


def prompts(policy, n=3):
    asked = [ask(q) for q in QUESTIONS for _ in range(n)]
    return policy.read([Trajectory(p) for p in asked], [p.prompt for p in asked])


def sampled(policy, temperature=1.0, max_new=8):
    return policy.extend(prompts(policy), Sampling(max_new, temperature), torch.Generator().manual_seed(5))


def value_at_end(model, ids):
    row = Trajectory(ask("?")).plus(prompts(model)[0].turns[0].__class__("policy", np.asarray(ids, np.int64)))
    with torch.no_grad():
        return float(model.evaluate(forward_batch([row], model.device), ("value",)).value[0, -1])


def test_values_move_the_candidates_alone_and_by_what_they_differ():
    logits = torch.tensor([[3.0, 2.0, 1.0, 0.0]])
    worth = torch.tensor([1.0, 3.0, 100.0, 100.0])
    # candidates 0 and 1 have the values 1 and 3, whose mean is 2: weight 0.5 moves them by -0.5 and +0.5
    found = plus_values(logits, 2, [(0.5, lambda ids: worth[ids])])
    torch.testing.assert_close(found, torch.tensor([[2.5, 2.5, 1.0, 0.0]]))
    # two models compose: the second moves by weight -1 what differs by 2
    both = plus_values(logits, 2, [(0.5, lambda ids: worth[ids]), (-1.0, lambda ids: worth[ids])])
    torch.testing.assert_close(both, torch.tensor([[3.5, 1.5, 1.0, 0.0]]))


@pytest.mark.parametrize("kind", [0, 1])
def test_what_is_sampled_has_the_log_probs_of_logits_plus_values(pairs, kind):
    policy, judge = pairs[kind]
    before = judge.token_count.scored
    with policy.joined([(5.0, judge)], candidates=3):
        rows = sampled(policy)
    written = sum(int(t.mask.sum()) for t in rows)
    # the text so far and three candidates, for every token
    assert judge.token_count.scored - before == 4 * written
    row = rows[-1]
    start = len(prompts(policy)[-1])
    for at in range(start, len(row)):
        with torch.no_grad():
            batch = forward_batch([row], policy.device)
            hidden = policy.evaluate(batch, ("hidden",)).hidden[0, at - 1]
            logits = hidden @ policy.vocabulary_head().T
        top = logits.topk(3).indices.tolist()
        worth = np.array([value_at_end(judge, [*row.ids[:at], token]) for token in top])
        logits[top] += torch.tensor(5.0 * (worth - worth.mean()), dtype=torch.float32)
        assert float(row.column("logprobs")[at]) == pytest.approx(float(logits.log_softmax(0)[int(row.ids[at])]), abs=3e-3)


def test_both_kinds_sample_the_same_and_values_change_it(pairs):
    texts, plain = [], []
    for policy, judge in pairs:
        plain.append([t.reply for t in sampled(policy, temperature=0.0)])
        with policy.joined([(20.0, judge)], candidates=4):
            texts.append([t.reply for t in sampled(policy, temperature=0.0)])
    assert texts[0] == texts[1] != plain[0]


def test_a_reader_of_surprise_is_refused(pairs):
    policy = pairs[0][0]
    reader = policy.copy("value", value_head=True).read_surprise(policy)
    with pytest.raises(RewardlabError, match="reads surprise"), policy.joined([(1.0, reader)]):
        sampled(policy)


def test_a_narrower_vocabulary_of_the_same_tokenizer_may_join(pairs):
    policy = pairs[0][0]
    wide = policy.copy("wide")
    with torch.no_grad():
        wide.model.embed = torch.nn.Parameter(torch.cat((wide.model.embed, torch.full((8, wide.model.shape.hidden), 9.0))))
    with policy.joined([(1.0, policy.copy("other"))]):
        alike = [t.reply for t in sampled(policy, temperature=0.0)]
    with policy.joined([(1.0, wide)]):
        assert [t.reply for t in sampled(policy, temperature=0.0)] == alike
