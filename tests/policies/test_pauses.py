"""Replies that pause where the next token is uncertain: at the same places in both text policies, and to be gone on with."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from rewardlab.core import Sampling, Trajectory, ask
from rewardlab.models.embedded import untrained
from rewardlab.policies.hf.policy import HFPolicy
from rewardlab.util.outputs import entropies

QUESTIONS = ["1 + 2 = ?", "what is 12 * 3, and then 7 more?"]


@pytest.fixture(scope="module")
def policies(tmp_path_factory):
    lean, noise = untrained(layers=2), torch.Generator().manual_seed(0)
    with torch.no_grad():
        for w in lean.parameters():
            w += 0.3 * torch.randn(w.shape, generator=noise)
    lean.save(folder := tmp_path_factory.mktemp("lean"))
    return lean, HFPolicy.load(folder, "cpu", "float32")


def replies(policy, rows=None, **sampling):
    asked = [ask(q) for q in QUESTIONS for _ in range(4)]
    rows = rows or policy.read([Trajectory(p) for p in asked], [p.prompt for p in asked])
    return policy.extend(rows, Sampling(16, **sampling), torch.Generator().manual_seed(5))


@pytest.mark.parametrize("kind", [0, 1])
def test_a_reply_pauses_before_the_first_uncertain_token(policies, kind):
    policy = policies[kind]
    whole = replies(policy)
    unsure = [e[t.mask] for e, t in zip(entropies(policy, whole), whole, strict=True)]
    limit = float(np.quantile(np.concatenate(unsure), 0.9))
    paused = replies(policy, max_entropy=limit, min_new=2)
    assert len({len(t) for t in paused if t.stop == "entropy"}) > 1
    for before, after, e in zip(whole, paused, unsure, strict=True):
        places = [k for k in range(2, len(e)) if e[k] > limit]
        n = places[0] if places else len(e)
        # the same random numbers: it is the beginning of the reply that goes on
        assert after.turns[-1].ids.tolist() == before.turns[-1].ids.tolist()[:n]
        assert after.stop == ("entropy" if places else before.stop)


def test_what_has_paused_goes_on_and_both_kinds_alike(policies):
    texts = []
    for policy in policies:
        first = replies(policy, temperature=0.0, max_entropy=0.5)
        again = replies(policy, [replace(t, stop=None) for t in first], temperature=0.0)
        whole = replies(policy, temperature=0.0)
        assert all(len(a.turns) == 3 and a.reply.startswith(w.reply) for a, w in zip(again, whole, strict=True))
        texts.append([t.reply for t in first])
    assert texts[0] == texts[1]


def test_without_a_limit_nothing_pauses(policies):
    assert all(t.stop != "entropy" for policy in policies for t in replies(policy))
