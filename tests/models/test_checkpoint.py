"""A model's name is a folder, a run, an adapter or a hub's model; what it is not is said with the nearest names."""

from __future__ import annotations

import json
import re

import pytest
import torch
import transformers

from rewardlab.errors import RewardlabError
from rewardlab.models.checkpoint import absolute_name, find
from rewardlab.models.embedded import untrained
from rewardlab.models.load import load_policy


@pytest.fixture(autouse=True)
def model(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    untrained().save(tmp_path / "models" / "tiny")
    return tmp_path / "models" / "tiny"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("./nowhere", "there is no folder nowhere$"),
        ("./models/tyni", "there is no folder models/tyni; did you mean models/tiny?"),
        (
            "models/tyni",
            "there is no folder models/tyni; did you mean models/tiny\\? For the model of that name on the hub: hf:models",
        ),
        ("/no/such/place", "there is no folder /no/such/place$"),
        ("modles", "unknown model 'modles'; did you mean models?"),
        (
            "embeded",
            r"unknown model 'embeded'; did you mean embedded or recorded\? \(or a folder, or ORG/NAME on the Hugging Face hub\)",
        ),
        ("models", "has no config.json: it is neither a Hugging Face checkpoint nor a run"),
        ("models/tiny/config.json", "is a file; a model is a folder"),
    ],
)
def test_what_is_no_model_is_said(name, message):
    with pytest.raises(RewardlabError, match=message):
        load_policy(name)


def test_training_refuses_a_missing_folder_before_anything_is_written(tmp_path):
    with pytest.raises(RewardlabError, match="there is no folder nowhere"):
        absolute_name("./nowhere")
    assert absolute_name("models/tiny") == str(tmp_path / "models" / "tiny")
    assert absolute_name("hf:models/tiny") == f"hf:{tmp_path / 'models' / 'tiny'}"
    assert absolute_name("embedded") == "embedded"


def test_a_run_stands_for_its_best_model_and_for_its_last_without_one(model):
    run = model.parent.parent / "run"
    (run / "model").mkdir(parents=True)
    (run / "config.json").write_text(json.dumps({"recipe": {}}))
    with pytest.raises(RewardlabError, match=r"has saved no model yet: rewardlab train --resume .*run goes on$"):
        find("run")
    for step in (20, 7):
        (run / "checkpoints" / f"step-{step:06d}").mkdir(parents=True)
    with pytest.raises(RewardlabError, match="or, with --steps 20, ends after the steps that are done"):
        find("run")
    for which in ("model", "best"):
        (run / which).mkdir(exist_ok=True)
        (run / which / "config.json").write_text("{}")
        assert find("run").folder == run / which


def a_run(model, rows):
    run = model.parent.parent / "run"
    for which in ("model", "best"):
        (run / which).mkdir(parents=True)
        (run / which / "config.json").write_text("{}")
    (run / "config.json").write_text(json.dumps({"recipe": {}}))
    (run / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return run


@pytest.mark.parametrize(
    ("rows", "says"),
    [
        (
            [{"step": 0, "eval/pass@1": 0.2}, {"step": 1}],
            r"before training \(step 0\): nothing was measured since; the last one is",
        ),
        ([{"step": 0, "eval/pass@1": 0.2}, {"step": 1, "eval/pass@1": 0.1}], r"no later evaluation was above it"),
        ([{"step": 0, "eval/pass@1": 0.2}, {"step": 1, "eval/pass@1": 0.3}], None),
        ([{"step": 0, "eval/pass@1": 0.2}], None),
        ([{"step": 1, "loss": 1.0}], None),
    ],
)
def test_a_best_model_that_has_learnt_nothing_yet_is_told(rows, says, model, capsys):
    run = a_run(model, rows)
    assert find("run").folder == find("run").folder == run / "best"
    told = said(capsys)
    assert told.count("note:") == (says is not None)
    assert says is None or re.search(says, told)


@pytest.mark.parametrize(("step", "notes"), [(0, 1), (1, 0)])
def test_of_equal_evaluations_the_folder_says_which_model_it_holds(step, notes, model, capsys):
    run = a_run(model, [{"step": 0, "eval/pair_accuracy": 0.5}, {"step": 1, "eval/pair_accuracy": 0.5}])
    (run / "best" / "step.json").write_text(json.dumps({"step": step}))
    assert find("run").folder == run / "best"
    assert said(capsys).count("note:") == notes


def test_transformers_runs_what_the_lean_policy_cannot_and_why_is_said(words, capsys):
    config = transformers.GPT2Config(vocab_size=512, n_embd=8, n_layer=1, n_head=1, n_positions=64, eos_token_id=0)
    transformers.GPT2LMHeadModel(config).save_pretrained("gpt2")
    words.save_pretrained("gpt2")
    assert type(load_policy("gpt2", "cpu", "float32")).__name__ == "HFPolicy"
    assert "gpt2: gpt2, run by transformers (the lean policy runs llama, mistral, qwen2, qwen3, not 'gpt2')" in said(capsys)
    assert type(load_policy("models/tiny", "cpu", "float32")).__name__ == "LlamaPolicy"
    assert "models/tiny: llama, run by the lean policy" in said(capsys)
    assert type(load_policy("hf:models/tiny", "cpu", "float32")).__name__ == "HFPolicy"
    assert "hf:models/tiny: llama, run by transformers (as hf: asks)" in said(capsys)


def said(capsys) -> str:
    return " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"model_type": "newfangled", "architectures": ["NewForCausalLM"]}, "transformers .* cannot load .*: NewForCausalLM:"),
        ({"model_type": "vit", "architectures": ["ViTModel"]}, "cannot load .* as a language model: ViTModel:"),
        (
            {"model_type": "own", "architectures": ["OwnForCausalLM"], "auto_map": {"AutoConfig": "own.OwnConfig"}},
            "OwnForCausalLM .its code comes with the checkpoint, and is not run.",
        ),
    ],
)
def test_an_architecture_that_nothing_runs_is_named(config, message, words, tmp_path):
    words.save_pretrained("other")
    (tmp_path / "other" / "config.json").write_text(json.dumps(config))
    with pytest.raises(RewardlabError, match=message):
        load_policy("other")


@pytest.mark.parametrize("prefix", ["", "hf:"])
def test_a_tokenizers_own_code_is_not_run_and_nobody_is_asked(prefix, model, monkeypatch):
    asked = []
    monkeypatch.setattr("builtins.input", lambda *text: asked.append(text) or "y")
    (model / "own.py").write_text("raise SystemExit('this code ran')")
    about = json.loads((model / "tokenizer_config.json").read_text())
    own = {"tokenizer_class": "Own", "auto_map": {"AutoTokenizer": ["own.Own", "own.Own"]}}
    (model / "tokenizer_config.json").write_text(json.dumps(about | own))
    with pytest.raises(RewardlabError, match="its tokenizer is code that comes with the checkpoint, and is not run"):
        load_policy(f"{prefix}models/tiny", "cpu", "float32")
    assert asked == []


def test_a_checkpoint_that_lacks_weights_does_not_start_from_random_ones(model):
    config = json.loads((model / "config.json").read_text())
    (model / "config.json").write_text(json.dumps(config | {"num_hidden_layers": 2}))
    with pytest.raises(RewardlabError, match=r"lacks the weight model.layers.1"):
        load_policy("hf:models/tiny")


def test_a_checkpoint_in_bfloat16_says_float32_once_it_holds_that(model):
    """Also where it called the format by its old name."""
    config = json.loads((model / "config.json").read_text()) | {"torch_dtype": "bfloat16", "dtype": "bfloat16"}
    (model / "config.json").write_text(json.dumps(config))
    load_policy("models/tiny", "cpu", "float32").save("again")
    saved = json.loads((model.parent.parent / "again" / "config.json").read_text())
    assert (saved["dtype"], saved.get("torch_dtype")) == ("float32", None)
    assert transformers.AutoModelForCausalLM.from_pretrained("again").dtype == torch.float32
