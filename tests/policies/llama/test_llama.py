"""The lean decoder is transformers' own, on random weights of every family it runs."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file

from rewardlab.core import Trajectory, Turn, ask
from rewardlab.engine.collate import collate
from rewardlab.errors import RewardlabError
from rewardlab.models.embedded import untrained
from rewardlab.policies.llama import attention
from rewardlab.policies.llama.policy import LlamaPolicy
from rewardlab.util.outputs import forward_batch

VOCAB = 512
SMALL = {
    "vocab_size": VOCAB, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
    "intermediate_size": 48, "max_position_embeddings": 64, "rope_theta": 10000.0, "bos_token_id": None, "eos_token_id": 0,
    "tie_word_embeddings": False,
}  # fmt: skip


def rope(kind, **more):
    return {"rope_parameters": {"rope_type": kind, "rope_theta": 10000.0, **more}}


LLAMA3 = rope("llama3", factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0, original_max_position_embeddings=16)
YARN = rope("yarn", factor=4.0, original_max_position_embeddings=16)
KINDS = {
    "llama": ("llama", {}),
    "llama tied": ("llama", {"tie_word_embeddings": True}),
    "llama with one head per key": ("llama", {"num_key_value_heads": 4}),
    "llama with one key head": ("llama", {"num_key_value_heads": 1}),
    "llama with wide heads": ("llama", {"head_dim": 12}),
    "llama of another theta": ("llama", {"rope_parameters": {"rope_type": "default", "rope_theta": 50.0}}),
    "llama3 rope": ("llama", LLAMA3),
    "linear rope": ("llama", rope("linear", factor=2.0)),
    "yarn rope": ("llama", YARN),
    "mistral": ("mistral", {"sliding_window": None}),
    "qwen2": ("qwen2", {}),
    "qwen2 tied": ("qwen2", {"tie_word_embeddings": True}),
    "qwen3": ("qwen3", {"head_dim": 16}),
}


def random_model(family, more):
    """Weights of a size at which attention, rotation and norms all matter; biases and norms random too."""
    torch.manual_seed(0)
    config = transformers.AutoConfig.for_model(family, **SMALL | more)
    model = transformers.AutoModelForCausalLM.from_config(config).eval()
    with torch.no_grad():
        for p in model.parameters():
            p.copy_(torch.randn_like(p) * 0.3 + (p.dim() == 1))
    return model


@pytest.fixture
def folder(tmp_path, words):
    def make(family="llama", **more):
        model = random_model(family, more)
        model.save_pretrained(tmp_path / "peer")
        words.save_pretrained(tmp_path / "peer")
        return model, tmp_path / "peer"

    return make


def load(folder, dtype="float32", **rest):
    return LlamaPolicy.load(folder, "cpu", dtype, **rest)


def rollouts(*lengths, seed=0):
    """Texts of these lengths: a prompt of 3 tokens, then decisions."""
    rng = np.random.default_rng(seed)
    ids = [rng.integers(0, VOCAB, n) for n in lengths]
    return [Trajectory(ask("?"), (Turn(None, x[:3]), Turn("policy", x[3:])), "end") for x in ids]


def batch_of(rows):
    return collate([[t] for t in rows], None, torch.device("cpu"))


def logits_of(policy, rows):
    with torch.no_grad():
        hidden = policy.evaluate(batch_of(rows), ("hidden",)).hidden
        return hidden @ policy.weights().head.T


@torch.no_grad()
def peer_logits(model, trajectory):
    return model(input_ids=torch.from_numpy(trajectory.ids)[None]).logits[0]


def assert_same_logits(policy, model, atol=1e-4):
    """On texts up to the whole context, so that every position's rotation counts."""
    rows = rollouts(64, 40, 7)
    found = logits_of(policy, rows)
    for row, t in enumerate(rows):
        wanted = peer_logits(model, t)
        assert wanted.std() > 0.5
        torch.testing.assert_close(found[row, : len(t)], wanted, atol=atol, rtol=1e-4)


@pytest.mark.parametrize("kind", KINDS)
def test_logits_and_logprobs_are_those_of_transformers(kind, folder):
    family, more = KINDS[kind]
    model, path = folder(family, **more)
    policy = load(path)
    assert_same_logits(policy, model)
    rows = rollouts(64, 9)
    for t, found in zip(rows, policy.score(rows), strict=True):
        wanted = peer_logits(model, t).log_softmax(-1)[:-1].gather(1, torch.from_numpy(t.ids)[1:, None]).squeeze(1)
        assert found[0] == 0
        np.testing.assert_allclose(found[1:], wanted, atol=1e-4)


@pytest.mark.parametrize("fused", [False, True])
@pytest.mark.parametrize("kind", ["llama tied", "qwen3"])
def test_gradients_are_those_of_transformers(kind, fused, folder, monkeypatch):
    monkeypatch.setattr(attention, "SQUARE_ELEMENTS", 0 if fused else 1 << 25)
    family, more = KINDS[kind]
    model, path = folder(family, **more)
    policy, (t,) = load(path), rollouts(20)
    policy.evaluate(batch_of([t])).logprobs.sum().backward()
    ids = torch.from_numpy(t.ids)
    model(input_ids=ids[None]).logits[0].log_softmax(-1)[2:-1].gather(1, ids[3:, None]).sum().backward()
    ours, peer = policy.model.layers[0], model.model.layers[0]
    torch.testing.assert_close(policy.model.embed.grad, model.model.embed_tokens.weight.grad, atol=1e-3, rtol=1e-3)
    torch.testing.assert_close(ours.out.grad, peer.self_attn.o_proj.weight.grad, atol=1e-3, rtol=1e-3)
    q = peer.self_attn.q_proj.weight.grad
    torch.testing.assert_close(ours.qkv.grad[: len(q)], q, atol=1e-3, rtol=1e-3)


@pytest.mark.parametrize("scaled", [False, True])
def test_a_checkpoint_in_the_older_format_of_rope_loads(scaled, folder):
    model, path = folder(**(LLAMA3 if scaled else {}))
    config = json.loads((path / "config.json").read_text())
    parameters = config.pop("rope_parameters")
    config["rope_theta"] = parameters.pop("rope_theta")
    if scaled:
        config["rope_scaling"] = parameters
    (path / "config.json").write_text(json.dumps(config))
    assert_same_logits(load(path), model)


def test_a_checkpoint_in_several_files_loads(folder):
    model, path = folder()
    tensors = load_file(path / "model.safetensors")
    (path / "model.safetensors").unlink()
    names = sorted(tensors)
    for i in range(3):
        save_file({n: tensors[n] for n in names[i::3]}, path / f"model-0000{i + 1}-of-00003.safetensors")
    assert_same_logits(load(path), model)


@pytest.mark.parametrize("index", [False, True])
def test_other_weights_beside_a_checkpoint_are_not_read(index, folder):
    """Of an older checkpoint in more parts, which sort after those that the index names; or the same by other names."""
    model, path = folder()
    tensors = load_file(path / "model.safetensors")
    if index:
        (path / "model.safetensors").rename(path / "model-00001-of-00001.safetensors")
        named = {"weight_map": dict.fromkeys(tensors, "model-00001-of-00001.safetensors")}
        (path / "model.safetensors.index.json").write_text(json.dumps(named))
    save_file({n: x + 1 for n, x in tensors.items()}, path / "model-00002-of-00002.safetensors")
    save_file({"layers.0.attention.wq.weight": torch.zeros(3)}, path / "consolidated.safetensors")
    assert_same_logits(load(path), model)


@pytest.mark.parametrize("kind", KINDS)
def test_what_we_save_is_what_transformers_reads(kind, folder, tmp_path):
    family, more = KINDS[kind]
    model, path = folder(family, **more)
    load(path).save(tmp_path / "ours")
    found, told = transformers.AutoModelForCausalLM.from_pretrained(tmp_path / "ours", output_loading_info=True)
    assert not any(told[k] for k in ("missing_keys", "unexpected_keys", "mismatched_keys"))
    assert type(found) is type(model)
    (t,) = rollouts(40)
    assert torch.equal(peer_logits(found.eval(), t), peer_logits(model, t))
    assert (
        transformers.AutoTokenizer.from_pretrained(tmp_path / "ours")("12 + 3")["input_ids"]
        == load(path).tokenizer("12 + 3")["input_ids"]
    )


@pytest.mark.parametrize("kind", ["llama", "llama tied", "qwen2", "qwen3", "mistral"])
def test_a_value_head_is_a_sequence_classifier_to_transformers(kind, folder, tmp_path):
    family, more = KINDS[kind]
    _, path = folder(family, **more)
    critic = load(path).copy("critic", value_head=True)
    rows = rollouts(30, 12)
    assert critic.evaluate(batch_of(rows), ("value",)).value.abs().max() == 0
    with torch.no_grad():
        critic.model.value_head.normal_(generator=torch.Generator().manual_seed(1))
    critic.save(tmp_path / "critic")
    peer = transformers.AutoModelForSequenceClassification.from_pretrained(tmp_path / "critic").eval()
    with torch.no_grad():
        values = critic.evaluate(batch_of(rows), ("value",)).value
        for row, t in enumerate(rows):
            wanted = peer(input_ids=torch.from_numpy(t.ids)[None]).logits
            assert wanted.shape == (1, 1)
            torch.testing.assert_close(values[row, len(t) - 1], wanted[0, 0], atol=1e-4, rtol=1e-4)
        again = load(tmp_path / "critic").evaluate(batch_of(rows), ("value",)).value
    assert torch.equal(again, values)


def test_a_copy_is_a_model_of_its_own(folder):
    policy = load(folder()[1])
    other, rows = policy.copy("reference"), rollouts(20)
    before = policy.score(rows)[0]
    with torch.no_grad():
        policy.model.embed += 0.1
    assert np.array_equal(other.score(rows)[0], before)
    assert not np.array_equal(policy.score(rows)[0], before)
    policy.load_state(other.state())
    assert np.array_equal(policy.score(rows)[0], before)


def everything(policy, rows):
    with torch.no_grad():
        batch = batch_of(rows)
        return batch, policy.evaluate(batch, ("logprobs", "entropy", "hidden")).tensors()


def test_a_row_among_longer_and_shorter_ones_is_as_if_alone(folder):
    policy, rows = load(folder()[1]), rollouts(9, 40, 4, 64, 23)
    _, together = everything(policy, rows)
    for row, t in enumerate(rows):
        batch, alone = everything(policy, [t])
        for name, value in alone.items():
            torch.testing.assert_close(together[name][row, : len(t)], value[0], atol=1e-4, rtol=1e-4)
            assert together[name][row, len(t) :].abs().sum() == 0
        for name in ("logprobs", "entropy"):
            assert (alone[name][~batch.mask] == 0).all()
            assert (alone[name][batch.mask] != 0).all()


def test_a_row_is_blind_to_the_others_and_to_its_future(folder):
    policy, rows = load(folder()[1]), rollouts(9, 30)
    changed = [rows[0], rollouts(9, 30, seed=1)[1]]
    assert np.array_equal(policy.score(rows)[0], policy.score(changed)[0])
    ids = rows[1].ids.copy()
    ids[20] = (ids[20] + 1) % VOCAB
    later = Trajectory(ask("?"), (Turn(None, ids),))
    before, after = policy.score([rows[1]])[0], policy.score([later])[0]
    assert np.array_equal(before[:20], after[:20])
    assert (before[20:] != after[20:]).all()


def test_bfloat16_is_close(folder):
    _, path = folder()
    rows = rollouts(50, 10)
    exact, rough = load(path).score(rows), load(path, "bfloat16").score(rows)
    for a, b in zip(exact, rough, strict=True):
        assert b.dtype == np.float32
        assert np.abs(a - b).mean() < 0.05 * np.abs(a).mean()
        assert not np.array_equal(a, b)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"model_type": "gpt2"}, "runs llama, mistral, qwen2, qwen3, not 'gpt2'"),
        ({"model_type": "mistral", "sliding_window": 8}, "no sliding-window attention, .*mistral"),
        ({"model_type": "qwen2", "use_sliding_window": True}, "no sliding-window attention, .*qwen2"),
        ({"hidden_act": "gelu"}, "SiLU"),
        ({"mlp_bias": True}, "without bias"),
        (rope("dynamic", factor=2.0), "RoPE of type 'dynamic'"),
        ({"num_hidden_layers": 3}, "lacks the weight model.layers.2"),
        ({"num_hidden_layers": 1}, "no place for the weight model.layers.1"),
    ],
)
def test_what_it_does_not_run_is_refused(change, message, folder):
    _, path = folder()
    config = json.loads((path / "config.json").read_text())
    (path / "config.json").write_text(json.dumps(config | change))
    with pytest.raises(RewardlabError, match=message):
        load(path)


def test_a_bias_that_has_no_place_is_refused(folder):
    """Llama's `attention_bias` also puts one on the output projection."""
    _, path = folder(attention_bias=True)
    with pytest.raises(RewardlabError, match=r"no place for the weight model\.layers\.0\.self_attn\.o_proj\.bias"):
        load(path)


def test_a_folder_without_weights_is_refused(folder):
    _, path = folder()
    (path / "model.safetensors").unlink()
    with pytest.raises(RewardlabError, match=r"holds no \.safetensors file"):
        load(path)


def test_a_text_beyond_the_context_is_refused_in_words():
    """It has no positions there: the table of angles ended in an IndexError."""
    policy = untrained()
    t = policy.write(policy.read([Trajectory(ask("long"))], [ask("long").prompt]), ["1 " * policy.context])[0]
    says = rf"a text of {len(t)} tokens exceeds the model's context of {policy.context}: 'long'"
    with pytest.raises(RewardlabError, match=says):
        policy.score([t])
    with pytest.raises(RewardlabError, match=says):
        policy.evaluate(forward_batch([t], policy.device))


def test_the_lengths_of_no_texts_are_none():
    assert untrained().prompt_lengths([]) == untrained().text_lengths([]) == []
