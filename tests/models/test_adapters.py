"""A run with --lora-rank keeps adapters alone, in PEFT's format: PEFT reads them, and so does every door that takes a model."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file

import rewardlab
from rewardlab import RewardlabError, Trajectory, ask, reward
from rewardlab.models.embedded import untrained
from rewardlab.models.formats import stored_dtype
from rewardlab.models.load import load_policy

peft = pytest.importorskip("peft")

RANK = 3
ENGINES = ("", "hf:")
SMALL = {"steps": 2, "max_new": 6, "eval_problems": 4, "eval_every": 1, "checkpoint_every": 1, "device": "cpu", "dtype": "float32"}
TASK = "arithmetic:difficulty=1,test_size=10"


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    """A checkpoint in bfloat16, as on the hub. Every engine reads the same numbers from it."""
    folder = tmp_path_factory.mktemp("base")
    policy = untrained(layers=2)
    policy.save(folder)
    model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.bfloat16)
    model.save_pretrained(folder)
    return folder


@reward
def first_letter(trajectory) -> float:
    return ord(trajectory.reply[0]) % 7 if trajectory.reply else 0.0


def moved(policy):
    """With adapters that add something: fresh ones add nothing."""
    with torch.no_grad():
        for p in policy.state().values():
            p += 0.1 * torch.randn(p.shape, generator=torch.Generator().manual_seed(1))
    return policy


@pytest.fixture
def adapter(base, tmp_path):
    policy = moved(load_policy(str(base), "cpu", "float32", RANK))
    policy.save(tmp_path / "adapter")
    return tmp_path / "adapter"


def replies(policy):
    return policy.write(policy.read([Trajectory(ask("1 + 2 = ?"))], [ask("1 + 2 = ?").prompt]), ["it is 3, surely"])


def logprobs_of(model, row):
    ids = torch.from_numpy(row.ids)
    with torch.no_grad():
        logits = model.eval()(input_ids=ids[None]).logits[0, :-1].float()
    return logits.log_softmax(-1).gather(1, ids[1:, None]).squeeze(1).numpy()


def size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


@pytest.mark.parametrize("engine", ENGINES)
def test_peft_reads_what_we_save(engine, base, tmp_path):
    policy = moved(load_policy(f"{engine}{base}", "cpu", "float32", RANK))
    policy.save(tmp_path / "saved")
    assert {path.name for path in (tmp_path / "saved").iterdir()} == {"adapter_config.json", "adapter_model.safetensors"}
    assert peft.PeftConfig.from_pretrained(tmp_path / "saved").base_model_name_or_path == str(base)
    model = transformers.AutoModelForCausalLM.from_pretrained(base, dtype=torch.float32)
    (row,) = replies(policy)
    plain = logprobs_of(model, row)
    theirs = peft.PeftModel.from_pretrained(model, tmp_path / "saved")
    np.testing.assert_allclose(policy.score([row])[0][1:], logprobs_of(theirs, row), atol=1e-4)
    assert np.abs(plain - logprobs_of(theirs, row)).max() > 0.01


@pytest.mark.parametrize("engine", ENGINES)
def test_either_engine_reads_it_to_use_and_to_train_on(engine, adapter, base):
    first = moved(load_policy(str(base), "cpu", "float32", RANK))
    rows = replies(first)
    merged, training = (load_policy(f"{engine}{adapter}", "cpu", "float32", rank) for rank in (None, RANK))
    for policy in (merged, training):
        np.testing.assert_allclose(policy.score(rows)[0], first.score(rows)[0], atol=1e-4)
    # without a rank all weights train; with it, the adapter does
    assert len(merged.state()) == len(merged.parameters())
    assert sum(p.numel() for p in training.state().values()) == sum(p.numel() for p in first.state().values())


@pytest.mark.parametrize("engine", ENGINES)
def test_a_run_does_not_resume_on_other_weights_below_its_adapters(engine, base, tmp_path):
    copy, recipe = tmp_path / "base", rewardlab.build("grpo", {"n": 2, "problems": 2, "lr": 1e-2}).but(reward=first_letter())
    shutil.copytree(base, copy)
    run = rewardlab.train(recipe, f"{engine}{copy}", TASK, out=tmp_path / "run", lora_rank=RANK, **SMALL).out
    weights = load_file(copy / "model.safetensors")
    save_file({name: value + 0.01 for name, value in weights.items()}, copy / "model.safetensors", {"format": "pt"})
    with pytest.raises(RewardlabError, match="which holds other weights now than when the run began"):
        rewardlab.resume(run, steps=3)
    assert json.loads((run / "summary.json").read_text())["steps"] == 2
    save_file(weights, copy / "model.safetensors", {"format": "pt"})
    assert rewardlab.resume(run, steps=3).summary["steps"] == 3


@pytest.mark.parametrize("change", [{"target_modules": ["q_proj", "v_proj"]}, {"use_rslora": True}, {"lora_alpha": 12}, {"r": 5}])
def test_an_adapter_that_peft_trained_elsewhere_is_a_model(change, base, tmp_path):
    settings = {"r": 4, "lora_alpha": 8, "target_modules": "all-linear", "task_type": "CAUSAL_LM"} | change
    model = transformers.AutoModelForCausalLM.from_pretrained(base, dtype=torch.float32)
    theirs = peft.get_peft_model(model, peft.LoraConfig(**settings))
    with torch.no_grad():
        for p in (p for p in theirs.parameters() if p.requires_grad):
            p += 0.1 * torch.randn(p.shape, generator=torch.Generator().manual_seed(2))
    theirs.save_pretrained(tmp_path / "theirs")
    for rank in (None, settings["r"]):
        policy = load_policy(str(tmp_path / "theirs"), "cpu", "float32", rank)
        (row,) = replies(policy)
        np.testing.assert_allclose(policy.score([row])[0][1:], logprobs_of(theirs, row), atol=1e-4)
        # the lean policy has all linear layers or none
        assert type(policy).__name__ == ("HFPolicy" if "target_modules" in change else "LlamaPolicy")
    policy.save(tmp_path / "again")
    again = load_policy(str(tmp_path / "again"), "cpu", "float32")
    np.testing.assert_allclose(again.score([row])[0], policy.score([row])[0], atol=1e-4)


def test_an_adapter_that_is_more_than_lora_is_refused(base, tmp_path):
    model = transformers.AutoModelForCausalLM.from_pretrained(base, dtype=torch.float32)
    peft.get_peft_model(model, peft.LoraConfig(r=2, use_dora=True, target_modules=["q_proj"])).save_pretrained(tmp_path / "dora")
    with pytest.raises(RewardlabError, match=r"more than LoRA on weights \(use_dora\); merge it with peft"):
        load_policy(str(tmp_path / "dora"))


@pytest.mark.parametrize("target", ["embed_tokens", "lm_head"])
def test_an_adapter_on_the_vocabulary_is_refused(target, base, tmp_path):
    """Log-probs are computed from the head's own matrix, and merging would change a tied head too."""
    model = transformers.AutoModelForCausalLM.from_pretrained(base, dtype=torch.float32)
    theirs = peft.get_peft_model(model, peft.LoraConfig(r=2, target_modules=[target, "q_proj"]))
    theirs.save_pretrained(tmp_path / "theirs", save_embedding_layers=False)
    for rank in (None, 2):
        with pytest.raises(RewardlabError, match="is on the vocabulary too"):
            load_policy(str(tmp_path / "theirs"), lora_rank=rank)


def test_another_rank_is_refused(adapter):
    with pytest.raises(RewardlabError, match="has rank 3: train it on with --lora-rank 3, or export it merged"):
        load_policy(str(adapter), lora_rank=4)


def test_a_base_that_is_gone_or_unnamed_is_named(adapter, tmp_path):
    config = json.loads((adapter / "adapter_config.json").read_text())
    for name, message in (
        (str(tmp_path / "gone"), "needs its base model .*gone: there is no folder"),
        (None, "does not name its base"),
    ):
        (adapter / "adapter_config.json").write_text(json.dumps(config | {"base_model_name_or_path": name}))
        with pytest.raises(RewardlabError, match=f"{message}.*set base_model_name_or_path in .*adapter_config.json"):
            load_policy(str(adapter))


@pytest.mark.parametrize("engine", ENGINES)
def test_a_base_that_holds_other_weights_by_now_is_noticed(engine, tmp_path):
    """A run's best model, say, after the run went on."""
    untrained().save(tmp_path / "base")
    moved(load_policy(f"{engine}{tmp_path / 'base'}", "cpu", "float32", RANK)).save(tmp_path / "adapter")
    load_policy(str(tmp_path / "adapter"))
    untrained(seed=1).save(tmp_path / "base")
    with pytest.raises(RewardlabError, match=r"as it was when the adapter was trained, and .* holds other weights now"):
        load_policy(str(tmp_path / "adapter"))


def test_a_base_of_another_shape_does_not_fit(adapter, tmp_path):
    untrained(hidden=64, layers=2).save(tmp_path / "wide")
    weights = adapter / "adapter_model.safetensors"
    save_file(load_file(weights), weights)  # without the hash of its base, as peft saves it
    config = json.loads((adapter / "adapter_config.json").read_text())
    (adapter / "adapter_config.json").write_text(json.dumps(config | {"base_model_name_or_path": str(tmp_path / "wide")}))
    for engine in ENGINES:
        with pytest.raises(RewardlabError, match="does not fit its base model"):
            load_policy(f"{engine}{adapter}")


def test_policies_without_a_base_on_disk_are_saved_merged(tmp_path):
    policy = moved(untrained().adapt(RANK))
    policy.save(tmp_path / "whole")
    rows = replies(policy)
    np.testing.assert_allclose(
        load_policy(str(tmp_path / "whole"), "cpu", "float32").score(rows)[0], policy.score(rows)[0], atol=1e-4
    )


# ---- runs ------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module", params=ENGINES, ids=["lean", "transformers"])
def run(request, base, tmp_path_factory):
    """A finished run that trained adapters."""
    out = tmp_path_factory.mktemp("runs") / "lora"
    recipe = rewardlab.build("grpo", {"n": 4, "problems": 2}).but(reward=first_letter(), lr=0.05)
    return rewardlab.train(recipe, f"{request.param}{base}", TASK, out=out, lora_rank=RANK, **SMALL)


def test_a_run_keeps_adapters_and_every_door_reads_them(run):
    # of the best, also of which step it is
    for which, beside in (("best", {"step.json"}), ("model", set())):
        names = {path.name for path in (run.out / which).iterdir()}
        assert names == {"adapter_config.json", "adapter_model.safetensors"} | beside
    asked = {"device": "cpu", "dtype": "float32", "max_new": 6}
    assert rewardlab.evaluate(str(run.out), TASK, k=(1,), problems=4, **asked)["n"] == 4
    assert rewardlab.answer("majority_vote", str(run.out), prompt="1 + 1?", **asked)["answer"]
    assert (run.out / "report.html").is_file()
    last = load_policy(str(run.out / "model"), "cpu", "float32")
    rows = replies(last)
    np.testing.assert_allclose(last.score(rows)[0], run.run.policy.score(rows)[0], atol=1e-4)
    assert any(bool(v.any()) for k, v in load_file(run.out / "model" / "adapter_model.safetensors").items() if "lora_B" in k)


def test_a_run_trains_an_adapter_on_and_resumes(run, tmp_path):
    recipe = rewardlab.build("grpo", {"n": 4, "problems": 2}).but(reward=first_letter(), lr=0.05)
    onward = rewardlab.train(recipe, str(run.out / "model"), TASK, out=tmp_path / "on", lora_rank=RANK, **SMALL)
    first, then = (load_file(out / "model" / "adapter_model.safetensors") for out in (run.out, onward.out))
    assert any(not torch.equal(first[k], then[k]) for k in first)
    # as if it had been stopped after its last step
    for file in ("summary.json", "model/adapter_model.safetensors"):
        (onward.out / file).unlink()
    rewardlab.resume(onward.out)
    again = load_file(onward.out / "model" / "adapter_model.safetensors")
    assert all(torch.equal(then[k], again[k]) for k in then)


def test_export_merges_into_the_format_of_the_base_or_copies_the_adapter(run, base, tmp_path):
    told = rewardlab.export(run.out, tmp_path / "whole", last=True)
    assert told["dtype"] == stored_dtype(tmp_path / "whole") == stored_dtype(base) == "bfloat16"
    merged = transformers.AutoModelForCausalLM.from_pretrained(tmp_path / "whole")
    assert merged.dtype == torch.bfloat16
    transformers.AutoTokenizer.from_pretrained(tmp_path / "whole")
    rewardlab.export(run.out, tmp_path / "exact", last=True, dtype="float32")
    exact = transformers.AutoModelForCausalLM.from_pretrained(tmp_path / "exact", dtype=torch.float32)
    (row,) = replies(run.run.policy)
    np.testing.assert_allclose(logprobs_of(exact, row), run.run.policy.score([row])[0][1:], atol=1e-4)
    np.testing.assert_allclose(logprobs_of(merged, row), logprobs_of(exact, row), atol=0.2)

    rewardlab.export(run.out, tmp_path / "adapter", last=True, adapter=True)
    model = transformers.AutoModelForCausalLM.from_pretrained(base, dtype=torch.float32)
    theirs = peft.PeftModel.from_pretrained(model, tmp_path / "adapter")
    np.testing.assert_allclose(logprobs_of(theirs, row), logprobs_of(exact, row), atol=1e-4)
    assert size(tmp_path / "adapter") < size(tmp_path / "whole")
