"""Second models that never learn: a checkpoint names them with a hash, and holds none of their weights."""

import json

import pytest
import torch
from safetensors.torch import load_file, save_file

from rewardlab import RewardlabError, registry
from rewardlab.api.machine import disk_bytes
from rewardlab.core import Learner, Recipe, Run
from rewardlab.engine import checkpoint
from rewardlab.engine.learner import learners_of
from rewardlab.models.embedded import untrained
from rewardlab.runs.config import RunConfig


@pytest.fixture
def made():
    """A recipe with a judge that was loaded from a folder, and a model that is a copy of the policy as it began."""
    frozen = (Learner("judge", "/models/judge", Recipe(), every=0), Learner("first", "copy:policy", Recipe(), every=0))
    return registry.build("grpo", {"n": 2}).but(also=frozen)


def begun(recipe, judge=1, policy=0):
    mine = untrained(policy)
    run = Run(mine, models={"judge": untrained(judge), "first": mine.copy("first")})
    return run, learners_of(recipe, run)


def files(folder):
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())


def test_a_checkpoint_holds_what_is_trained_and_names_what_is_not(made, tmp_path):
    run, learners = begun(made)
    for run.step in (0, 1):
        checkpoint.save(tmp_path, run, learners, position=0)
    names = ("arrays.safetensors", "policy.optimiser.safetensors", "policy.safetensors", "state.json")
    assert files(tmp_path) == ["frozen-first/model.safetensors", *(f"step-{i:06d}/{name}" for i in (0, 1) for name in names)]
    frozen = json.loads((tmp_path / "step-000001" / "state.json").read_text())["frozen"]
    assert {name: of["init"] for name, of in frozen.items()} == {"judge": "/models/judge", "first": "copy:policy"}
    config = RunConfig(eval_problems=0, checkpoint_every=1, steps=3)
    without = disk_bytes(made.but(also=()), run.policy, {}, config)
    once = sum(x.numel() * x.element_size() for x in run.policy.state().values())
    assert disk_bytes(made, run.policy, run.models, config) == without + once


def test_it_is_resumed_with_the_models_that_it_had_and_with_no_others(made, tmp_path):
    run, learners = begun(made)
    run.step = 3
    checkpoint.save(tmp_path, run, learners, position=7)
    # a policy that is given as an object may have been trained since: its first weights are in the run folder
    again, theirs = begun(made, policy=5)
    assert checkpoint.load(tmp_path, again, theirs) == 7
    assert all(torch.equal(x, again.models["first"].state()[name]) for name, x in run.models["first"].state().items())
    other, theirs = begun(made, judge=2)
    with pytest.raises(RewardlabError, match=r"'judge' of this run is /models/judge, which holds other weights now"):
        checkpoint.load(tmp_path, other, theirs)


def test_a_model_that_something_changed_is_kept_whole(made, tmp_path):
    run, learners = begun(made)
    with torch.no_grad():
        # by its data: no version of the parameter tells
        next(iter(run.models["judge"].parameters())).data[0, 0] += 1e-3
    checkpoint.save(tmp_path, run, learners, position=0)
    again, theirs = begun(made)
    checkpoint.load(tmp_path, again, theirs)
    assert (tmp_path / "step-000000" / "judge.safetensors").exists()
    assert all(torch.equal(x, again.models["judge"].state()[name]) for name, x in run.models["judge"].state().items())


def test_a_checkpoint_of_an_older_version_holds_them_and_is_loaded(made, tmp_path):
    run, learners = begun(made)
    folder = checkpoint.save(tmp_path, run, learners, position=4)
    state = json.loads((folder / "state.json").read_text())
    del state["frozen"]
    (folder / "state.json").write_text(json.dumps(state))
    for name in ("judge", "first"):
        save_file({k: v.clone() for k, v in run.models[name].state().items()}, folder / f"{name}.safetensors")
        save_file({}, folder / f"{name}.optimiser.safetensors")
    again, theirs = begun(made, judge=2, policy=5)
    assert checkpoint.load(tmp_path, again, theirs) == 4
    saved = load_file(folder / "judge.safetensors")
    assert all(torch.equal(x, saved[name]) for name, x in again.models["judge"].state().items())
    checkpoint.load_weights(tmp_path, theirs)
