"""What a run's policy is handed over as: in the format of the model it began from, a reward model, or refused in words."""

from __future__ import annotations

import copy
import json

import pytest
import torch
import transformers

import rewardlab
from rewardlab import RewardlabError, Trajectory, ask, registry
from rewardlab.commands.cli import main
from rewardlab.models.embedded import untrained
from rewardlab.models.formats import stored_dtype
from rewardlab.models.load import load_policy
from rewardlab.models.reward_model import load_reward_model
from rewardlab.util.outputs import last_values

SMALL = {"steps": 1, "max_new": 4, "eval_problems": 0, "device": "cpu", "dtype": "float32"}


def run_with(folder, policy):
    """A run folder whose last model is this policy."""
    (folder / "model").mkdir(parents=True)
    policy.save(folder / "model")
    (folder / "config.json").write_text(json.dumps({"recipe": {}, "loaded_dtype": "float32"}))
    return folder


def test_a_run_computes_and_keeps_float32_and_exports_the_format_it_began_from(tmp_path):
    untrained().save(tmp_path / "base")
    transformers.AutoModelForCausalLM.from_pretrained(tmp_path / "base", dtype=torch.bfloat16).save_pretrained(tmp_path / "base")
    assert stored_dtype(tmp_path / "base") == "bfloat16"
    recipe = rewardlab.build("grpo", {"n": 2, "problems": 1})
    run = rewardlab.train(recipe, str(tmp_path / "base"), "arithmetic:difficulty=1,test_size=4", out=tmp_path / "run", **SMALL)
    for folder, dtype in (
        (run.out / "model", "float32"),
        *(_exported(run.out, tmp_path, d) for d in ("auto", "float16", "float32")),
    ):
        config = json.loads((folder / "config.json").read_text())
        assert (stored_dtype(folder), config["dtype"], config.get("torch_dtype")) == (dtype, dtype, None)
        assert str(transformers.AutoModelForCausalLM.from_pretrained(folder).dtype) == f"torch.{dtype}"
    with pytest.raises(RewardlabError, match="dtype must be auto, float32, bfloat16 or float16, not 'int8'"):
        rewardlab.export(run.out, tmp_path / "no", dtype="int8")
    with pytest.raises(RewardlabError, match="holds whole weights, no adapter"):
        rewardlab.export(run.out, tmp_path / "no", adapter=True)
    assert not (tmp_path / "no").exists()


def _exported(run, place, dtype):
    told = rewardlab.export(run, place / dtype, dtype=dtype)
    assert told["dtype"] == ("bfloat16" if dtype == "auto" else dtype)
    return place / dtype, told["dtype"]


def test_a_policy_that_exploits_its_reward_is_not_handed_over_without_a_word(tmp_path):
    run = run_with(tmp_path / "run", untrained())
    rows = [{"step": s, "reward": s / 20, "truth": 0.8 - s / 20} for s in range(14)]
    (run / "metrics.jsonl").write_text("\n".join(map(json.dumps, rows)))
    assert "while the truth falls" in rewardlab.export(run, tmp_path / "out", last=True)["warning"]


def test_a_run_of_an_older_version_exports_what_it_holds(tmp_path):
    run = run_with(tmp_path / "run", untrained())
    (run / "config.json").write_text(json.dumps({"recipe": {}}))
    rewardlab.export(run, tmp_path / "out")
    assert (tmp_path / "out" / "model.safetensors").read_bytes() == (run / "model" / "model.safetensors").read_bytes()


def test_the_command_has_the_same_choices(tmp_path, capsys):
    run = run_with(tmp_path / "run", untrained())
    assert main(["export", str(run), str(tmp_path / "out"), "--dtype", "float16", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["dtype"] == stored_dtype(tmp_path / "out") == "float16"
    assert main(["export", str(run), str(tmp_path / "no"), "--adapter"]) == 2
    assert "holds whole weights, no adapter" in capsys.readouterr().err


def test_a_reward_model_is_a_sequence_classifier_that_transformers_reads(tmp_path):
    critic = untrained().copy("critic", value_head=True)
    with torch.no_grad():
        critic.model.value_head += torch.arange(32) / 32
    told = rewardlab.export(run_with(tmp_path / "run", critic), tmp_path / "out")
    assert told["kind"] == "reward model: a sequence classifier with one label"
    model = transformers.AutoModelForSequenceClassification.from_pretrained(tmp_path / "out").eval()
    (row,) = critic.read([Trajectory(ask("1 + 2"))], [ask("1 + 2").prompt])
    with torch.no_grad():
        logits = model(input_ids=torch.from_numpy(row.ids)[None]).logits
    assert float(logits) == pytest.approx(last_values(critic, [row])[0], abs=1e-4)


CHATML = "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}{% if add_generation_prompt %}"
CHATML += "<|im_start|>assistant\n{% endif %}\n"


@pytest.mark.parametrize("pad", ["<|im_end|>", "<|pad|>", None])
def test_what_others_render_and_pad_is_scored_as_the_run_scores_it(pad, tmp_path):
    """As TRL and plain transformers do it: conversations through the chat template, padded on the right, the head as it is."""
    critic = untrained().copy("critic", value_head=True)
    critic.tokenizer = copy.deepcopy(critic.tokenizer)
    critic.tokenizer.chat_template, critic.tokenizer.pad_token = CHATML, pad
    with torch.no_grad():
        critic.model.value_head += torch.arange(32) / 32
    run = run_with(tmp_path / "run", critic)
    rewardlab.export(run, tmp_path / "out")
    said = [
        (ask("1 + 2").prompt, "3"),
        (ask("1 + 2").prompt, "I think that it is 4"),
        (ask("7 less 2, and then 9 more?").prompt, "1"),
    ]
    words = transformers.AutoTokenizer.from_pretrained(tmp_path / "out")
    turns = [[{"role": "user", "content": p[0].text}, {"role": "assistant", "content": reply}] for p, reply in said]
    texts = [words.apply_chat_template(x, tokenize=False) for x in turns]
    model = transformers.AutoModelForSequenceClassification.from_pretrained(tmp_path / "out").eval()
    with torch.no_grad():
        logits = model(**words(texts, padding=True, padding_side="right", return_tensors="pt", add_special_tokens=False)).logits
    expected = load_reward_model(str(run), dtype="float32").score(said)
    assert logits.squeeze(1).tolist() == pytest.approx(expected, abs=1e-4)
    assert load_reward_model(str(tmp_path / "out"), dtype="float32").score(said) == pytest.approx(expected, abs=1e-4)
    # a prompt is written as before
    asked = words.apply_chat_template(turns[0][:1], tokenize=False, add_generation_prompt=True)
    assert asked == "<|im_start|>user\n1 + 2<|im_end|>\n<|im_start|>assistant\n"


@pytest.mark.parametrize("task", ["pointmass", "flows"])
def test_a_policy_that_only_rewardlab_reads_is_refused_in_words(task, tmp_path):
    run = run_with(tmp_path / "run", load_policy("untrained", task=registry.task(task)))
    with pytest.raises(RewardlabError, match=r"no ordinary language model \(rewardlab_.*, and only rewardlab reads it"):
        rewardlab.export(run, tmp_path / "out")
    assert not (tmp_path / "out").exists()
    assert load_policy(str(run / "model"))
