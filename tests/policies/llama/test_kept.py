"""Keys and values that outlive a call: the same replies, and no more computed than what is new."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from rewardlab.core import Message, Sampling, Turn
from rewardlab.policies.kept import Kept
from rewardlab.policies.llama import decode
from rewardlab.policies.llama.kept import keep_copy, keep_whole
from rewardlab.policies.llama.model import Llama
from rewardlab.policies.llama.native.library import library
from rewardlab.policies.llama.native_steps import FewRows, NativeSteps
from rewardlab.policies.llama.policy import LlamaPolicy
from rewardlab.policies.llama.steps import Steps
from tests.policies.llama.test_generation import CPU, SMALL, prompts

ANSWERS = ("no: look again, and say more of it", "what else do you know of this?", "so be it")
LONG = [f"question {i}: what is {i} and {i} of all that was said before it, and is it more than {i}?" for i in range(6)]


@pytest.fixture(params=["c++", "pytorch", "few rows"])
def kind(request, monkeypatch):
    """The kind of decoding steps of a model that counts as large."""
    monkeypatch.setattr(decode, "is_small", lambda policy: request.param == "c++")
    monkeypatch.setattr("rewardlab.policies.llama.policy.is_small", lambda policy: False)
    if request.param != "pytorch" and library() is None:
        pytest.skip("no C++ compiler")
    monkeypatch.setattr(decode, "few_in_cpp", lambda policy, rows: request.param == "few rows")
    return {"c++": NativeSteps, "pytorch": Steps, "few rows": FewRows}[request.param]


@pytest.fixture
def policy(words, kind):
    generator = torch.Generator().manual_seed(0)
    model = Llama(SMALL | {"max_position_embeddings": 512, "hidden_size": 32, "intermediate_size": 48})
    with torch.no_grad():
        for p in model.parameters():
            p.copy_(torch.randn(p.shape, generator=generator) * 0.3 + (p.dim() == 1))
    return LlamaPolicy(model, words, CPU, torch.float32)


def talk(policy, rows, turns=4, new=8, **sampling):
    """Episodes of several turns, with some answer after each reply."""
    rng = torch.Generator().manual_seed(1)
    for turn in range(turns):
        rows = policy.extend(rows, Sampling(new, **sampling), rng)
        if turn < turns - 1:
            rows = policy.read(rows, [(Message("user", ANSWERS[(turn + i) % 3]),) for i in range(len(rows))])
    return rows


@pytest.fixture
def computed(monkeypatch):
    """The tokens of prompts that were computed."""
    counts = []
    for kind in (Steps, NativeSteps):
        for name in ("prefill", "prefill_rest"):
            plain = getattr(kind, name)

            def counting(self, texts, *more, plain=plain, name=name, kind=kind):
                # in C++ the one calls the other
                if not (kind is NativeSteps and name == "prefill"):
                    counts.append(sum(map(len, texts)))
                return plain(self, texts, *more)

            monkeypatch.setattr(kind, name, counting)
    return counts


def same(found, wanted):
    assert [t.ids.tolist() for t in found] == [t.ids.tolist() for t in wanted]
    assert [t.stop for t in found] == [t.stop for t in wanted]
    for a, b in zip(found, wanted, strict=True):
        for x, y in zip(a.turns, b.turns, strict=True):
            if x.logprobs is not None:
                np.testing.assert_allclose(x.logprobs, y.logprobs, atol=2e-5)


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_replies_are_those_of_texts_that_are_computed_anew(policy, kind, computed, temperature):
    rows = prompts(policy, LONG)
    wanted = talk(policy, rows, temperature=temperature)
    anew = sum(computed)
    computed.clear()
    with policy.keeping():
        found = talk(policy, rows, temperature=temperature)
    same(found, wanted)
    # every token of a prompt once, but for the last ones of replies
    assert sum(computed) <= sum(len(t.ids) for t in found) < anew / 1.5


def test_rows_that_share_slots_or_a_beginning_are_found_again(policy, computed, monkeypatch):
    # three slots for twelve rows: what an ended row leaves is kept before the next one takes its place
    monkeypatch.setattr(type(policy), "rows_at_once", lambda self, rows, *_: min(rows, 3))
    rows = prompts(policy, [q for q in LONG for _ in range(2)])
    wanted = talk(policy, rows, temperature=1.0)
    anew = sum(computed)
    computed.clear()
    with policy.keeping():
        found = talk(policy, rows, temperature=1.0)
    same(found, wanted)
    # of the first call, which may be the only one, nothing is copied: most of its texts are computed once more
    assert sum(computed) <= sum(len(t.ids) for t in found) + sum(len(t.turns[0].ids) + len(t.turns[1].ids) for t in found)
    assert sum(computed) < anew / 1.3


def test_two_branches_of_a_text_begin_with_what_it_has(policy, computed):
    (trunk,) = policy.extend(prompts(policy, LONG[:1]), Sampling(16, 0.0), torch.Generator().manual_seed(0))
    with policy.keeping():
        policy.extend([trunk], Sampling(4, 0.0), torch.Generator().manual_seed(0))
        computed.clear()
        branches = policy.read([trunk, trunk], [(Message("user", "so be it"),), (Message("user", "no: look again"),)])
        policy.extend(branches, Sampling(4, 0.0), torch.Generator().manual_seed(0))
    assert sum(computed) <= sum(len(t.ids) - len(trunk.ids) for t in branches)


def test_several_replies_go_on_from_a_text_of_which_all_is_kept(policy, computed):
    def replies(rows):
        return policy.extend(rows, Sampling(6, 1.0), torch.Generator().manual_seed(3))

    trunks = policy.extend(prompts(policy, LONG[:2]), Sampling(16, 0.0), torch.Generator().manual_seed(0))
    rows = [t for t in trunks for _ in range(3)]
    wanted = replies(rows)
    with policy.keeping():
        policy.extend(trunks, Sampling(4, 0.0), torch.Generator().manual_seed(0))
        computed.clear()
        same(replies(rows), wanted)
    assert sum(computed) == 0


def test_other_weights_compute_anew(policy, computed):
    rows = prompts(policy, LONG)
    with policy.keeping():
        talk(policy, rows, turns=2)
        with torch.no_grad():
            policy.model.layers[0].qkv.mul_(1.5)
        found = talk(policy, rows, turns=2)
        with policy.noised(0.1, torch.Generator().manual_seed(0)):
            noisy = talk(policy, rows, turns=2)
        again = talk(policy, rows, turns=2)
    same(found, wanted := talk(policy, rows, turns=2))
    same(again, wanted)
    assert [t.ids.tolist() for t in noisy] != [t.ids.tolist() for t in wanted]


def test_nothing_is_kept_afterwards_nor_of_inserted_layers_and_vectors(policy):
    rows = prompts(policy, LONG)
    with policy.keeping():
        with policy.keeping():
            talk(policy, rows, turns=1)
        assert policy._kept is not None
        assert len(policy._kept._added) == 1
        policy._kept.forget()
        with policy.inserted(0, lambda x: x * 1.1):
            talk(policy, rows, turns=1)
        soft = [t.plus(Turn(None, np.array([-1]), text="", vectors=np.ones((1, 32), np.float32))) for t in rows]
        talk(policy, soft, turns=1)
        assert not policy._kept._added
    assert policy._kept is None


def test_where_memory_runs_out_what_is_kept_makes_room_first(policy, monkeypatch, capsys):
    rows, step = prompts(policy, LONG), decode.Decoder._step
    wanted = talk(policy, rows, turns=3)

    def runs_out(decoder):
        # once what earlier calls have computed is there
        if decoder.kept is not None and decoder.kept._blocks:
            raise torch.OutOfMemoryError("CUDA out of memory")
        step(decoder)

    monkeypatch.setattr(decode.Decoder, "_step", runs_out)
    with policy.keeping():
        same(talk(policy, rows, turns=3), wanted)
    assert policy.most_rows > 6
    assert "continuing with" not in capsys.readouterr().err


def test_what_is_kept_takes_no_slots_from_rows(policy, kind, monkeypatch):
    rows, slots, decoder = prompts(policy, LONG), [], decode.Decoder
    wanted = talk(policy, rows, turns=3)
    monkeypatch.setattr(decode, "Decoder", lambda steps, n, *rest: (slots.append(n), decoder(steps, n, *rest))[1])

    def held():
        return sum(block.bytes for block in policy._kept._blocks + policy._kept._added)

    # as much memory as six rows need, and what is kept is a part of it
    needed = 2 * sum(policy.sampling_bytes(6, 200, 8).values())
    monkeypatch.setattr(policy, "free_memory", lambda: needed - 10 * held())
    with policy.keeping():
        same(talk(policy, rows, turns=3), wanted)
    assert slots == [6, 6, 6]


def test_a_small_model_computes_as_its_recorded_results_did(words):
    policy = LlamaPolicy(Llama(SMALL), words, CPU, torch.float32)
    with policy.keeping():
        assert policy._kept is None


SLOT = 2 * 40 * 4 * 4
"""Bytes of forty tokens in the caches below: of one layer with one head of four numbers."""


def cache(*values):
    return [torch.stack([torch.full((2, 1, 40, 4), float(value)) for value in values], 1)]


def test_the_oldest_calls_make_room():
    text, store = np.arange(40), Kept(most_bytes=4 * SLOT)
    store.begin([])
    for value in (1, 2, 3):
        keep_whole(store, cache(value), [text + 100 * value], 0, SLOT)
        store.begin([])
    # half of it for earlier calls
    assert store.find(text + 100) is None
    found = store.find(np.concatenate((text + 300, [7])))
    assert found is not None
    assert found.length == 40
    assert found.block.tables[0].unique().tolist() == [3.0]
    assert [store.drop_oldest(), store.find(text + 200), store.drop_oldest(), store.drop_oldest()] == [True, None, True, False]


def test_a_call_adds_no_more_than_there_is_room_for():
    text, store = np.arange(40), Kept(1 << 30)
    store.begin([])
    # of a cache that is too large two slots, and of another none
    keep_whole(store, cache(1, 2, 3, 4), [text[:0], text, text + 50, text + 100], 0, 2 * SLOT + 1)
    assert keep_copy(store, cache(1, 2), np.array([1]), [text + 150], 0, 2 * SLOT) == SLOT
    assert keep_copy(store, cache(1, 2), np.array([1]), [text + 200], 0, SLOT - 1) == 0
    store.begin([])
    assert [store.find(text + more) is not None for more in (0, 50, 100, 150, 200)] == [True, True, False, True, False]
    found = store.find(text + 50)
    assert found is not None
    assert found.block.tables[0][:, found.row].unique().tolist() == [3.0]


def test_little_that_texts_have_in_common_is_computed_anew():
    store = Kept(1 << 30)
    store.begin([])
    keep_whole(store, cache(1), [np.arange(40)], 0, 1 << 30)
    store.begin([])
    assert store.find(np.arange(150)) is not None
    assert store.find(np.arange(170)) is None


def test_the_longest_beginning_is_found():
    store = Kept(1 << 30)
    store.begin([])
    texts = [np.arange(60), np.r_[np.arange(50), [9, 9]], np.arange(30) + 5, np.arange(100)]
    keep_whole(store, [torch.zeros(2, 4, 1, 128, 4)], texts, 0, 1 << 30)
    store.begin([])
    # by 32 tokens at a time: of those that begin alike so far it is the one that was kept last
    for wanted, row, length in ((np.arange(45), 3, 45), (np.arange(200), 3, 100), (np.r_[np.arange(70), [9]], 3, 70)):
        found = store.find(wanted)
        assert found is not None
        assert (found.row, found.length) == (row, length)
    assert store.find(np.arange(20)) is None
    assert store.find(np.arange(60) + 5) is None
