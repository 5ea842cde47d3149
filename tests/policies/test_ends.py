"""Where a reply ends: by the one token of the chat template, and in sampling by any that the checkpoint names."""

from __future__ import annotations

import copy
import json

import numpy as np
import pytest
import torch
import transformers

from rewardlab.core import Message, Sampling, Trajectory, Turn, ask
from rewardlab.policies.ends import end_ids, turn_end
from rewardlab.policies.hf.policy import HFPolicy
from rewardlab.policies.llama.model import Llama
from rewardlab.policies.llama.policy import LlamaPolicy

SMALL = {
    "model_type": "llama", "vocab_size": 530, "hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2,
    "num_key_value_heads": 2, "head_dim": 8, "intermediate_size": 24, "max_position_embeddings": 256, "rms_norm_eps": 1e-5,
    "rope_parameters": {"rope_type": "default", "rope_theta": 10000.0}, "tie_word_embeddings": False, "bos_token_id": None,
    "eos_token_id": 0,
}  # fmt: skip
CHATML = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
GEMMA = (
    "{% for m in messages %}<start_of_turn>{{ 'model' if m.role == 'assistant' else m.role }}\n{{ m.content | trim }}"
    "<end_of_turn>\n{% endfor %}{% if add_generation_prompt %}<start_of_turn>model\n{% endif %}"
)
PHI = (
    "{% for m in messages %}<|{{ m.role }}|>\n{{ m.content }}<|end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>\n{% else %}<|endoftext|>{% endif %}"
)
LLAMA = (
    "{% for m in messages %}<|start|>{{ m.role }}<|stop|>\n\n{{ m.content | trim }}<|eot_id|>{% endfor %}"
    "{% if add_generation_prompt %}<|start|>assistant<|stop|>\n\n{% endif %}"
)
MISTRAL = (
    "{% for m in messages %}{% if m.role == 'user' %}[INST] {{ m.content }} [/INST]"
    "{% else %} {{ m.content }} </s>{% endif %}{% endfor %}"
)
OPEN = "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}{% if add_generation_prompt %}assistant: {% endif %}"
PICKY = "{% if messages | length > 1 %}{{ raise_exception('one message alone') }}{% endif %}{{ messages[0].content }}\n"
KINDS = {
    # name: template, end of the sequence, end of a turn, other special tokens
    "qwen": (CHATML, "<|endoftext|>", "<|im_end|>", ("<|im_start|>",)),
    "gemma": (GEMMA, "<eos>", "<end_of_turn>", ("<start_of_turn>",)),
    "phi": (PHI, "<|endoftext|>", "<|end|>", ("<|user|>", "<|assistant|>")),
    "llama": (LLAMA, "<|end_of_text|>", "<|eot_id|>", ("<|start|>", "<|stop|>")),
    "own": (CHATML.replace("<|im_end|>", "<|fin|>"), "<|endoftext|>", "<|fin|>", ("<|im_start|>",)),
    "mistral": (MISTRAL, "</s>", "</s>", ()),
    "same": (CHATML, "<|im_end|>", "<|im_end|>", ("<|im_start|>",)),
    "open": (OPEN, "<|endoftext|>", "<|endoftext|>", ()),
    "none": (None, "<|endoftext|>", "<|endoftext|>", ()),
}
CHAT = ("qwen", "gemma", "phi", "llama", "own", "mistral", "same")


@pytest.fixture
def tokenizer(words):
    def of(kind):
        template, eos, end, others = KINDS[kind]
        made = copy.deepcopy(words)
        made.add_special_tokens({"additional_special_tokens": sorted({eos, end, *others} - {*made.get_vocab()})})
        made.eos_token, made.chat_template = eos, template
        return made

    return of


def policy_of(tokenizer):
    model = Llama(SMALL | {"vocab_size": len(tokenizer)})
    with torch.no_grad():
        for p in model.parameters():
            p.normal_(0, 0.1, generator=torch.Generator().manual_seed(0))
    return LlamaPolicy(model, tokenizer, torch.device("cpu"), torch.float32)


def asked(policy, question="1 + 2 = ?"):
    problem = ask(question)
    return policy.read([Trajectory(problem)], [problem.prompt])


@pytest.mark.parametrize("kind", KINDS)
def test_the_end_of_a_turn_is_the_templates(kind, tokenizer):
    made = tokenizer(kind)
    assert made.convert_ids_to_tokens(turn_end(made)) == KINDS[kind][2]
    assert {made.convert_ids_to_tokens(i) for i in end_ids(made)} >= {*KINDS[kind][1:3]}


def test_a_template_that_refuses_to_be_asked_leaves_the_end_of_the_sequence(tokenizer):
    made = tokenizer("qwen")
    made.chat_template = PICKY
    assert turn_end(made) == made.eos_token_id


@pytest.mark.parametrize("kind", KINDS)
def test_a_reply_to_learn_from_has_one_end(kind, tokenizer):
    policy = policy_of(tokenizer(kind))
    (t,) = policy.write(asked(policy), ["2"])
    ends = [i for i in t.turns[-1].ids.tolist() if i in policy.ends]
    assert policy.tokenizer.convert_ids_to_tokens(ends) == [KINDS[kind][2]]
    if kind in CHAT and kind != "mistral":
        turns = [{"role": "user", "content": "1 + 2 = ?"}, {"role": "assistant", "content": "2"}]
        rendered = policy.tokenizer.apply_chat_template(turns, tokenize=False)
        assert rendered.startswith(policy.tokenizer.decode(t.ids))


@pytest.mark.parametrize("kind", CHAT)
@pytest.mark.parametrize("ended", ["turn", "sequence", "length", "recorded"])
def test_a_reply_within_an_episode_has_one_end(kind, ended, tokenizer):
    policy = policy_of(tokenizer(kind))
    end = {"turn": KINDS[kind][2], "sequence": KINDS[kind][1]}.get(ended)
    if ended == "recorded":
        rows = policy.write(asked(policy), ["2"])
    else:
        ids = policy.tokenizer("2", add_special_tokens=False)["input_ids"]
        ids += [policy.tokenizer.convert_tokens_to_ids(end)] if end else []
        rows = [t.plus(Turn(policy.name, np.array(ids), text="2"), "end" if end else "length") for t in asked(policy)]
    before = len(asked(policy)[0])
    (t,) = policy.read(rows, [[Message("user", "and 3?")]])
    after = t.ids[before:].tolist()
    # the reply's end, and that of the user's message, if the template closes those
    closes = policy.tokenizer.decode(asked(policy)[0].ids).count(KINDS[kind][2])
    assert sum(i in policy.ends for i in after) == 1 + closes
    if ended != "sequence" and kind != "mistral":
        turns = [("user", "1 + 2 = ?"), ("assistant", "2"), ("user", "and 3?")]
        told = [{"role": role, "content": text} for role, text in turns]
        rendered = policy.tokenizer.apply_chat_template(told, tokenize=False, add_generation_prompt=True)
        assert policy.tokenizer.decode(t.ids) == rendered


@pytest.mark.parametrize("ids", [[5, 6, 300], 7])
@pytest.mark.parametrize("kind", [LlamaPolicy, HFPolicy])
def test_a_reply_ends_at_every_end_that_the_checkpoint_names(ids, kind, tokenizer, tmp_path):
    made = policy_of(tokenizer("qwen"))
    made.save(tmp_path / "a")
    transformers.GenerationConfig(eos_token_id=ids, repetition_penalty=5.0).save_pretrained(tmp_path / "a")
    policy = kind.load(tmp_path / "a", "cpu", "float32")
    named = {*(ids if isinstance(ids, list) else [ids])}
    assert policy.ends == made.ends | named
    assert policy.copy("critic").ends == policy.ends
    policy.save(tmp_path / "b")
    assert kind.load(tmp_path / "b", "cpu", "float32").ends == policy.ends
    rows = policy.extend(asked(policy) * 64, Sampling(max_new=200), torch.Generator().manual_seed(0))
    last = {int(t.ids[-1]) for t in rows if t.stop == "end"}
    assert last <= policy.ends
    assert last & named
    assert not any({*t.turns[-1].ids[:-1].tolist()} & policy.ends for t in rows)


@pytest.mark.parametrize("text", ["{", "[]", '{"eos_token_id": null}', '{"eos_token_id": "x"}', "{}"])
def test_a_file_that_names_no_end_changes_nothing(text, tokenizer, tmp_path):
    made = policy_of(tokenizer("qwen"))
    made.save(tmp_path)
    (tmp_path / "generation_config.json").write_text(text)
    assert LlamaPolicy.load(tmp_path, "cpu", "float32").ends == made.ends


@pytest.mark.parametrize("run_by", [LlamaPolicy, HFPolicy])
@pytest.mark.parametrize("kind", ["qwen", "gemma", "mistral"])
def test_transformers_ends_a_saved_models_replies_where_they_ended_in_training(kind, run_by, tokenizer, tmp_path):
    """Of base models config.json names the end of the sequence alone."""
    policy_of(tokenizer(kind)).save(tmp_path / "a")
    (tmp_path / "a" / "generation_config.json").unlink()
    policy = run_by.load(tmp_path / "a", "cpu", "float32")
    policy.save(tmp_path / "b")
    said = transformers.AutoModelForCausalLM.from_pretrained(tmp_path / "b").generation_config.eos_token_id
    assert {*(said if isinstance(said, list) else [said])} == policy.ends
    assert tokenizer(kind).convert_tokens_to_ids(KINDS[kind][2]) in policy.ends


@pytest.mark.parametrize("run_by", [LlamaPolicy, HFPolicy])
def test_what_a_checkpoint_says_of_generation_goes_with_what_is_trained(run_by, tokenizer, tmp_path):
    policy_of(tokenizer("qwen")).save(tmp_path / "a")
    own = {"temperature": 0.6, "top_p": 0.95, "do_sample": True, "pad_token_id": 3, "eos_token_id": [5, 6]}
    (tmp_path / "a" / "generation_config.json").write_text(json.dumps(own))
    run_by.load(tmp_path / "a", "cpu", "float32").copy("reference").save(tmp_path / "b")
    said = json.loads((tmp_path / "b" / "generation_config.json").read_text())
    assert {k: said[k] for k in own} == own | {"eos_token_id": sorted({5, 6, *end_ids(tokenizer("qwen"))})}


def test_a_scorer_generates_nothing(tokenizer, tmp_path):
    policy_of(tokenizer("qwen")).copy("critic", value_head=True).save(tmp_path)
    assert not (tmp_path / "generation_config.json").exists()
