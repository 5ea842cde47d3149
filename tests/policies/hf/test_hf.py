"""Any transformers model through the same calls as the lean policy: same numbers, whole or through adapters."""

from __future__ import annotations

import sys

import numpy as np
import pytest
import torch
import transformers
from transformers.generation import TemperatureLogitsWarper, TopKLogitsWarper, TopPLogitsWarper

from rewardlab import registry
from rewardlab.api import train
from rewardlab.core import Message, Sampling, Trajectory, ask
from rewardlab.engine.collate import collate
from rewardlab.errors import RewardlabError
from rewardlab.policies.hf import generating
from rewardlab.policies.hf.adapters import for_sampling
from rewardlab.policies.hf.policy import HFPolicy
from rewardlab.policies.hf.prefill import read_once
from rewardlab.policies.llama.policy import LlamaPolicy
from rewardlab.rewards.reward import reward

QUESTIONS = ["1 + 2 = ?", "what is 12 * 3, and then 7 more?", "a", "use 3, 4 and 9 to make 31", "1 + 2 = ?"]
COMMON = {"vocab_size": 512, "bos_token_id": None, "eos_token_id": 0, "pad_token_id": 2, "tie_word_embeddings": False}
DECODER = {
    "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 8,
    "intermediate_size": 48, "max_position_embeddings": 256,
}  # fmt: skip
CONFIGS = {
    "gpt2": {"n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 256, "tie_word_embeddings": True},
    "llama": DECODER,
    "mistral": DECODER | {"sliding_window": 5},
    "phi": DECODER | {"num_key_value_heads": 4},
    "gemma2": DECODER,
    "cohere": DECODER | {"logit_scale": 0.0625},
}


@pytest.fixture
def folder(tmp_path, words):
    """A checkpoint with random weights, large enough that everything matters: attention, biases, dropout if it were on."""

    def make(family="gpt2", **more):
        torch.manual_seed(0)
        config = transformers.AutoConfig.for_model(family, **COMMON | CONFIGS.get(family, DECODER) | more)
        model = transformers.AutoModelForCausalLM.from_config(config).eval()
        with torch.no_grad():
            for p in model.parameters():
                p.copy_(torch.randn_like(p) * 0.3 + (p.dim() == 1))
        model.save_pretrained(tmp_path / family)
        words.save_pretrained(tmp_path / family)
        return tmp_path / family

    return make


def load(path, **rest):
    return HFPolicy.load(path, "cpu", rest.pop("dtype", "float32"), **rest)


def stirred(policy):
    """With adapters that do something: fresh ones add nothing."""
    with torch.no_grad():
        for p in policy.state().values():
            p += 0.1 * torch.randn(p.shape, generator=torch.Generator().manual_seed(1))
    return policy


def prompts(policy, questions=QUESTIONS):
    asked = [ask(q) for q in questions]
    return policy.read([Trajectory(p) for p in asked], [p.prompt for p in asked])


def extend(policy, rows, seed=0, **sampling):
    return policy.extend(rows, Sampling(**sampling), torch.Generator().manual_seed(seed))


def drawn(rows):
    return [t.turns[-1].ids.tolist() for t in rows]


def recorded(policy):
    """Rows of different lengths with replies to evaluate."""
    return policy.write(prompts(policy), ["3", "the answer is 43", "b, surely", "3 * 9 + 4 = 31", "12"])


def batch_of(rows):
    return collate([[t] for t in rows], None, torch.device("cpu"))


@torch.no_grad()
def own_logits(policy, t):
    return policy.model(input_ids=torch.from_numpy(t.ids)[None]).logits[0]


# ---- the model that draws --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("family", ["gpt2", "llama"])
def test_it_draws_with_adapters_merged(family, dtype, folder):
    policy = stirred(load(folder(family), dtype=dtype, lora_rank=4))
    before = {k: v.clone() for k, v in policy.whole.named_parameters()}
    drawing = for_sampling(policy.whole, policy.dtype)
    products = [m for m in drawing.modules() if isinstance(m, torch.nn.Linear)]
    assert products
    assert all(m.weight.dtype == policy.dtype for m in products)
    assert not any("lora" in name for name, _ in drawing.named_parameters())
    ids = torch.arange(40)[None]
    with torch.no_grad(), policy._autocast():
        merged, beside = drawing(input_ids=ids).logits.float(), policy.model(input_ids=ids).logits.float()
    assert float((merged - beside).abs().mean()) < {"float32": 1e-6, "bfloat16": 0.05}[dtype] * float(beside.std())
    assert all(torch.equal(v, before[k]) for k, v in policy.whole.named_parameters())
    assert any("lora" in name for name, _ in policy.whole.named_parameters())
    whole = load(folder(family), dtype=dtype).model
    assert for_sampling(whole, policy.dtype) is whole


# ---- log-probs -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("lora_rank", [None, 4])
@pytest.mark.parametrize("family", ["gpt2", "llama", "mistral", "phi"])
def test_scores_are_the_models_own_log_softmax(family, lora_rank, folder):
    policy = load(folder(family), lora_rank=lora_rank)
    rows = recorded(stirred(policy) if lora_rank else policy)
    for t, found in zip(rows, policy.score(rows), strict=True):
        wanted = own_logits(policy, t).log_softmax(-1)[:-1].gather(1, torch.from_numpy(t.ids)[1:, None]).squeeze(1)
        assert wanted.std() > 0.3
        assert found[0] == 0
        np.testing.assert_allclose(found[1:], wanted, atol=1e-4)


@pytest.mark.parametrize("family", ["gpt2", "phi"])
def test_evaluating_says_what_scoring_says_and_more(family, folder):
    policy = load(folder(family))
    rows = recorded(policy)
    batch, scores = batch_of(rows), policy.score(rows)

    def mean_logit(logits, ids):
        return {"mean": logits.mean(1)}

    out = policy.evaluate(batch, ("logprobs", "hidden"), (mean_logit,))
    assert out.logprobs.requires_grad
    assert out.hidden.shape == (*batch.mask.shape, 32)
    for row, t in enumerate(rows):
        logits, decided = own_logits(policy, t), t.mask.nonzero()[0]
        logp = logits.log_softmax(-1)[decided - 1]
        np.testing.assert_allclose(out.logprobs[row, decided].detach(), scores[row][decided], atol=1e-5)
        torch.testing.assert_close(out.entropy[row, decided].detach(), -(logp.exp() * logp).sum(1), atol=1e-4, rtol=1e-4)
        torch.testing.assert_close(out.extra["mean"][row, decided].detach(), logits[decided - 1].mean(1), atol=1e-4, rtol=1e-4)
    assert (out.logprobs[~batch.mask] == 0).all()
    assert (out.hidden[torch.arange(batch.width) >= batch.length[:, None]] == 0).all()


@pytest.mark.parametrize("family", ["gpt2", "phi"])
def test_gradients_are_those_of_the_models_own_loss(family, folder):
    policy = load(folder(family))
    rows = recorded(policy)
    out = policy.evaluate(batch_of(rows))
    (out.logprobs.sum() + out.entropy.sum()).backward()
    found = {k: p.grad.clone() for k, p in policy.model.named_parameters()}
    policy.model.zero_grad()
    for t in rows:
        ids, decided = torch.from_numpy(t.ids), torch.from_numpy(t.mask.nonzero()[0])
        logp = policy.model(input_ids=ids[None]).logits[0].log_softmax(-1)[decided - 1]
        (logp.gather(1, ids[decided, None]).sum() - (logp.exp() * logp).sum()).backward()
    for name, p in policy.model.named_parameters():
        torch.testing.assert_close(found[name], p.grad, atol=2e-3, rtol=1e-3)


def test_it_says_what_the_lean_policy_says_of_one_checkpoint(folder):
    path = folder("llama")
    ours, lean = load(path), LlamaPolicy.load(path, "cpu", "float32")
    rows = recorded(ours)
    assert [t.ids.tolist() for t in recorded(lean)] == [t.ids.tolist() for t in rows]
    for a, b in zip(ours.score(rows), lean.score(rows), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-4)
    wants = ("logprobs", "entropy", "hidden")
    a, b = (p.evaluate(batch_of(rows), wants).tensors() for p in (ours, lean))
    assert list(a) == list(b)
    for name in a:
        torch.testing.assert_close(a[name], b[name], atol=1e-4, rtol=1e-4)
    assert drawn(extend(ours, prompts(ours), max_new=12, temperature=0.0)) == drawn(
        extend(lean, prompts(lean), max_new=12, temperature=0.0)
    )
    assert drawn(extend(ours, prompts(ours), max_new=12)) == drawn(extend(lean, prompts(lean), max_new=12))


def test_bfloat16_is_close_and_keeps_float32_weights(folder):
    path = folder("gpt2")
    exact, rough = load(path), load(path, dtype="bfloat16")
    rows = extend(rough, prompts(rough), max_new=12)
    for t, a, b in zip(rows, exact.score(rows), rough.score(rows), strict=True):
        assert not np.array_equal(a, b)
        assert np.abs(a - b).mean() < 0.05 * np.abs(a).mean()
        assert np.abs(t.turns[-1].logprobs - b[-12:]).mean() < 0.05 * np.abs(b).mean()
    rough.evaluate(batch_of(rows)).logprobs.sum().backward()
    assert {(p.dtype, p.grad.dtype) for p in rough.parameters()} == {(torch.float32, torch.float32)}


# ---- drawing ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sampling", [{}, {"temperature": 0.7, "top_p": 0.9, "top_k": 50}, {"temperature": 0.0}])
@pytest.mark.parametrize("lora_rank", [None, 4])
def test_raw_logprobs_are_those_of_a_rescoring(sampling, lora_rank, folder):
    policy = load(folder(), lora_rank=lora_rank)
    rows = extend(stirred(policy) if lora_rank else policy, prompts(policy), max_new=15, **sampling)
    for t, scored in zip(rows, policy.score(rows), strict=True):
        turn = t.turns[-1]
        assert (turn.author, turn.text) == ("policy", policy.decode(turn.ids))
        np.testing.assert_allclose(turn.logprobs, scored[-len(turn.ids) :], atol=1e-4)
        warped = own_logits(policy, t)[-len(turn.ids) - 1 : -1]
        if sampling.get("temperature") == 0.0:
            assert turn.ids.tolist() == warped.argmax(1).tolist()
            assert (turn.sampled == 0).all()
            continue
        if sampling:
            for warper in (TemperatureLogitsWarper(0.7), TopKLogitsWarper(50), TopPLogitsWarper(0.9)):
                warped = warper(None, warped)
        wanted = warped.log_softmax(-1).gather(1, torch.from_numpy(turn.ids)[:, None]).squeeze(1)
        np.testing.assert_allclose(turn.sampled, wanted, atol=1e-4)


def test_a_checkpoints_own_habits_of_generation_do_not_bend_the_draw(folder):
    """Its penalties and limits are put aside while drawing, and are there again afterwards."""
    path = folder()
    plain = load(path)
    wanted = extend(plain, prompts(plain), max_new=12, temperature=0.0)
    habits = transformers.GenerationConfig(repetition_penalty=5.0, suppress_tokens=list(range(3, 200)), eos_token_id=[7, 8])
    habits.save_pretrained(path)
    policy = load(path)
    assert drawn(extend(policy, prompts(policy), max_new=12, temperature=0.0)) == drawn(wanted)
    assert policy.model.generation_config.repetition_penalty == 5.0


def test_a_seed_decides_all_draws_and_the_global_stream_is_left_alone(folder):
    policy = load(folder())
    torch.manual_seed(5)
    before = torch.random.get_rng_state()
    first = drawn(extend(policy, prompts(policy), 1, max_new=10))
    assert torch.equal(torch.random.get_rng_state(), before)
    assert drawn(extend(policy, prompts(policy), 1, max_new=10)) == first
    assert drawn(extend(policy, prompts(policy), 2, max_new=10)) != first


@pytest.mark.parametrize("lora_rank", [None, 4])
@pytest.mark.parametrize("family", ["gpt2", "llama", "mistral", "phi"])
def test_a_static_cache_changes_no_draw(family, lora_rank, folder):
    """What a GPU has; mistral's windows are shorter than the texts, and rows end at different steps."""
    policy = load(folder(family), lora_rank=lora_rank)
    policy.ends, rows = frozenset(range(0, 512, 3)), prompts(policy)
    assert not policy.static_cache
    growing = extend(policy, rows, max_new=12)
    policy.static_cache = True
    static = extend(policy, rows, max_new=12)
    assert drawn(static) == drawn(growing)
    assert {len(reply) for reply in drawn(static)} != {12}
    for a, b in zip(static, growing, strict=True):
        np.testing.assert_allclose(a.turns[-1].logprobs, b.turns[-1].logprobs, atol=1e-4)


def test_rows_drawn_in_several_calls_come_back_in_order_as_if_in_one(folder, monkeypatch):
    policy = load(folder("llama"))
    policy.ends = frozenset(range(0, 512, 8))
    rows = prompts(policy, [f"{q} {i}" for i, q in enumerate(QUESTIONS * 2)])
    wanted = extend(policy, rows, max_new=20, temperature=0.0)
    assert {t.stop for t in wanted} == {"end", "length"}
    monkeypatch.setattr(generating, "ROWS", 3)
    found = extend(policy, rows, max_new=20, temperature=0.0)
    assert drawn(found) == drawn(wanted)
    assert [t.stop for t in found] == [t.stop for t in wanted]
    assert all((t.turns[-1].ids[-1] % 8 == 0) == (t.stop == "end") for t in found)
    part = extend(policy, rows, max_new=20, temperature=0.0, enough=4)
    assert 4 <= sum(t.stop is not None for t in part) < len(rows)
    assert all(p == w[: len(p)] for p, w in zip(drawn(part), drawn(wanted), strict=True))


def test_stop_strings_and_predicates_end_a_reply(folder):
    policy = load(folder())
    rows = prompts(policy)
    whole = extend(policy, rows, max_new=20)
    pieces = policy.pieces(whole[1].turns[-1].ids)
    stop = next(p for p in pieces[3:] if p.strip() and p.isascii())
    for s in (stop, stop[-1]):
        t = extend(policy, rows, max_new=20, stop=(s,))[1]
        assert t.stop == "stop"
        assert s in t.reply
        assert s not in policy.decode(t.turns[-1].ids[:-1])
        assert pieces[: len(t.turns[-1].ids)] == policy.pieces(t.turns[-1].ids)
    policy.all_pieces = lambda: ["\n"] * 512
    t = extend(policy, rows, max_new=20, stop_when=lambda text: len(text) > 10)[1]
    assert t.stop == "predicate"
    assert len(policy.decode(t.turns[-1].ids[:-1])) <= 10 < len(t.reply)


def test_what_cannot_be_drawn_is_refused(folder):
    policy = load(folder())
    with pytest.raises(RewardlabError, match="exceed the model's context of 256: 'much too long"):
        extend(policy, prompts(policy, ["much too long " * 60]), max_new=8)
    with pytest.raises(RewardlabError, match="'critic' has a value head"):
        extend(policy.copy("critic", value_head=True), prompts(policy))
    with pytest.raises(RewardlabError, match="text-only"):
        policy.read([Trajectory(ask("?"))], [[Message("user", "what is this?", images=("x.png",))]])
    assert extend(policy, []) == []


# ---- learning --------------------------------------------------------------------------------------------------------


@reward
def evenness(trajectory):
    """Something every policy gets partly right."""
    return float(np.mean(trajectory.ids[trajectory.mask] % 2 == 0))


@pytest.mark.parametrize("beta", [0.0, 0.1])
@pytest.mark.parametrize("lora_rank", [None, 4])
def test_a_grpo_step_moves_what_trains_and_nothing_else(lora_rank, beta, folder, tmp_path):
    path = folder()
    policy = load(path, lora_rank=lora_rank)
    before = {k: p.detach().clone() for k, p in policy.whole.named_parameters()}
    recipe = registry.build("grpo", {"n": 4, "problems": 2, "lr": 1e-2, "beta": beta}).but(reward=evenness())
    result = train(recipe, policy, "arithmetic", steps=1, out=tmp_path / "run", device="cpu", max_new=10, eval_problems=2)
    after = dict(policy.whole.named_parameters())
    moved = {k for k, p in before.items() if not torch.equal(p, after[k])}
    if lora_rank:
        assert moved == {k for k in before if "lora_B" in k}  # A has no gradient yet while B is zero
        assert all("lora_" in k for k in policy.state())
    else:
        assert moved == set(before)
    assert result.summary["steps"] == 1
    if beta:
        fresh, kept = load(path, lora_rank=lora_rank), result.run.reference
        rows = recorded(policy)
        assert all(np.array_equal(a, b) for a, b in zip(fresh.score(rows), kept.score(rows), strict=True))
    saved = transformers.AutoModelForCausalLM.from_pretrained(tmp_path / "run" / "model").eval()
    (t,) = prompts(policy, ["1 + 2 = ?"])
    with torch.no_grad():
        found = saved(input_ids=torch.from_numpy(t.ids)[None]).logits[0]
    torch.testing.assert_close(found, own_logits(policy, t), atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("lora_rank", [None, 4])
@pytest.mark.parametrize("family", ["gpt2", "llama"])
def test_what_we_save_is_what_transformers_reads(family, lora_rank, folder, tmp_path):
    policy = load(folder(family), lora_rank=lora_rank)
    plain = own_logits(policy, prompts(policy)[1])
    if lora_rank:
        stirred(policy)
    (t,) = prompts(policy)[1:2]
    live = own_logits(policy, t)
    assert torch.allclose(plain, live, atol=0.01) == (lora_rank is None)
    policy.save(tmp_path / "saved")
    assert torch.equal(own_logits(policy, t), live)
    found, told = transformers.AutoModelForCausalLM.from_pretrained(tmp_path / "saved", output_loading_info=True)
    assert not any(told[k] for k in ("missing_keys", "unexpected_keys", "mismatched_keys"))
    with torch.no_grad():
        logits = found.eval()(input_ids=torch.from_numpy(t.ids)[None]).logits[0]
    torch.testing.assert_close(logits, live, atol=1e-4, rtol=1e-4)
    again = load(tmp_path / "saved")
    np.testing.assert_allclose(again.score([t])[0], policy.score([t])[0], atol=1e-4)


@pytest.mark.parametrize("lora_rank", [None, 4])
def test_state_carries_all_that_training_changed(lora_rank, folder):
    path = folder()
    policy = stirred(load(path, lora_rank=lora_rank))
    rows = recorded(policy)
    state = {k: v.clone() for k, v in policy.state().items()}
    fresh = load(path, lora_rank=lora_rank)
    assert not np.array_equal(fresh.score(rows)[0], policy.score(rows)[0])
    fresh.load_state(state)
    assert np.array_equal(fresh.score(rows)[0], policy.score(rows)[0])


def test_loading_twice_gives_the_same_adapters_and_leaves_the_global_stream_alone(folder):
    path = folder()
    torch.manual_seed(5)
    first = load(path, lora_rank=4).state()
    torch.manual_seed(6)
    before = torch.random.get_rng_state()
    second = load(path, lora_rank=4).state()
    assert torch.equal(torch.random.get_rng_state(), before)
    assert list(first) == list(second)
    assert all(torch.equal(first[k], second[k]) for k in first)
    assert any(v.abs().sum() > 0 for v in first.values())


def test_copies_learn_apart_and_share_only_frozen_weights(folder):
    path = folder()
    for lora_rank in (None, 4):
        policy = load(path, lora_rank=lora_rank)
        other, rows = policy.copy("reference"), recorded(policy)
        before = other.score(rows)
        stirred(policy)
        assert all(np.array_equal(a, b) for a, b in zip(before, other.score(rows), strict=True))
        assert not np.array_equal(policy.score(rows)[0], before[0])
        shared = {id(p) for p in policy.parameters()} & {id(p) for p in other.parameters()}
        assert shared == {id(p) for p in policy.parameters() if not p.requires_grad}
        assert bool(shared) == bool(lora_rank)


@pytest.mark.parametrize("lora_rank", [None, 4])
@pytest.mark.parametrize("family", ["gpt2", "llama"])
def test_a_value_head_speaks_of_hidden_states_and_saves_as_a_sequence_classifier(family, lora_rank, folder, tmp_path):
    policy = load(folder(family), lora_rank=lora_rank)
    critic = policy.copy("critic", value_head=True)
    rows = recorded(critic)
    assert critic.evaluate(batch_of(rows), ("value",)).value.abs().max() == 0
    with pytest.raises(RewardlabError, match="'policy' has no value head"):
        policy.evaluate(batch_of(rows), ("value",))
    stirred(critic)
    out = critic.evaluate(batch_of(rows), ("value", "hidden"))
    torch.testing.assert_close(out.value, (out.hidden @ critic.value_head.T).squeeze(-1))
    out.value.sum().backward()
    assert critic.value_head.grad.abs().max() > 0
    critic.save(tmp_path / "critic")
    peer = transformers.AutoModelForSequenceClassification.from_pretrained(tmp_path / "critic").eval()
    again = load(tmp_path / "critic").evaluate(batch_of(rows), ("value",)).value
    torch.testing.assert_close(again, out.value, atol=1e-4, rtol=1e-4)
    for row, t in enumerate(rows):
        with torch.no_grad():
            wanted = peer(input_ids=torch.from_numpy(t.ids)[None]).logits
        torch.testing.assert_close(out.value[row, len(t) - 1], wanted[0, 0], atol=1e-4, rtol=1e-4)


# ---- what is refused -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("family", ["gemma2", "cohere"])
def test_scaled_or_capped_logits_are_refused(family, folder):
    with pytest.raises(RewardlabError, match="scales or soft-caps its logits"):
        load(folder(family))


def test_a_checkpoint_that_is_no_language_model_is_refused(tmp_path, words):
    config = transformers.ViTConfig(hidden_size=8, num_hidden_layers=1, num_attention_heads=1, intermediate_size=8, image_size=32)
    transformers.ViTModel(config).save_pretrained(tmp_path)
    words.save_pretrained(tmp_path)
    with pytest.raises(RewardlabError, match=r"cannot load .* as a language model"):
        load(tmp_path)


def test_without_peft_the_error_names_the_extra(folder, monkeypatch):
    monkeypatch.setitem(sys.modules, "peft", None)
    with pytest.raises(RewardlabError, match=r"pip install 'rewardlab\[lora\]'"):
        load(folder(), lora_rank=4)


# ---- prompts that several rows share -------------------------------------------------------------------------------------


@pytest.mark.parametrize("family", ["llama", "qwen2"])
@pytest.mark.parametrize("rank", [None, 2])
def test_a_prompt_that_several_rows_share_is_read_once_and_the_replies_are_the_same(family, rank, folder, monkeypatch):
    policy, read = load(folder(family), lora_rank=rank), []
    hook = policy.model.base_model.register_forward_pre_hook(
        lambda module, args, given: read.append(tuple(given["input_ids"].shape)), with_kwargs=True
    )
    asked = [ask(q) for q in QUESTIONS for _ in range(3)]
    rows = policy.read([Trajectory(p) for p in asked], [p.prompt for p in asked])

    def sampled():
        read.clear()
        return policy.extend(rows, Sampling(5, 1.0), torch.Generator().manual_seed(1)), list(read)

    once, calls = sampled()
    monkeypatch.setattr(HFPolicy, "_reads_once", lambda self, width: False)
    each, plain = sampled()
    hook.remove()
    width = max(map(len, rows))
    # four different prompts, of which one is asked twice; then the last token of each row
    if not rank:
        assert calls[:2] == [(4, width - 1), (15, 1)]
        assert plain[0] == (15, width)
    for a, b in zip(once, each, strict=True):
        assert a.ids.tolist() == b.ids.tolist()
        assert a.column("logprobs")[a.mask] == pytest.approx(b.column("logprobs")[b.mask], abs=1e-5)


def test_prompts_are_read_in_each_row_where_few_are_shared_or_a_layer_forgets(folder, monkeypatch):
    given = []
    monkeypatch.setattr(generating, "read_once", lambda *args: given.append(read_once(*args)) or given[-1])
    for family, questions in (("llama", QUESTIONS), ("mistral", ["1 + 2 = ?"] * 4), ("gpt2", ["1 + 2 = ?"] * 4)):
        policy = load(folder(family))
        rows = policy.read([Trajectory(ask(q)) for q in questions], [ask(q).prompt for q in questions])
        policy.extend(rows, Sampling(2, 1.0), torch.Generator().manual_seed(1))
    assert given == [None, None, None]
