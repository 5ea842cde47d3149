"""QeRL: replies are sampled with noise on the norms, which no weight, checkpoint or held-out reply ever sees."""

from __future__ import annotations

import torch
from safetensors.torch import load_file

from rewardlab.api import resume, train
from rewardlab.methods.baselines.dapo import dapo
from rewardlab.methods.baselines.grpo import grpo
from rewardlab.methods.sampling.qerl import qerl
from rewardlab.rewards.intrinsic import likelihood
from rewardlab.runs.metrics import read_metrics

STEPS = 3


def run(folder, base=None, steps=STEPS, rank=2, **settings):
    base = (base or grpo(n=4)).but(reward=likelihood(), problems=4, lr=0.01)
    recipe = qerl(base, **{"first": 0.5, "last": 0.5, "stages": 2} | settings)
    given = {"max_new": 6, "eval_problems": 2, "eval_every": 0, "device": "cpu", "dtype": "float32", "checkpoint_every": 1}
    return train(recipe, "untrained", "arithmetic:test_size=2", steps=steps, lora_rank=rank, out=folder, **given)


def weights(folder):
    return load_file(folder / "checkpoints" / f"step-00000{STEPS}" / "policy.safetensors")


def test_a_run_that_is_cut_off_goes_on_bit_for_bit_and_its_norms_are_those_it_began_with(tmp_path):
    done = run(tmp_path / "whole")
    run(tmp_path / "cut", steps=1)
    resume(tmp_path / "cut", steps=STEPS)
    whole, cut = weights(tmp_path / "whole"), weights(tmp_path / "cut")
    assert whole.keys() == cut.keys()
    assert all(torch.equal(whole[name], cut[name]) for name in whole)
    assert any(bool(whole[name].any()) for name in whole if name.endswith(".B"))  # it has learnt
    # adapters alone train: a trace of the noise would be seen in the frozen norms
    for layer in done.run.policy.model.layers:
        assert torch.equal(layer.attn_norm, torch.ones(32))
        assert torch.equal(layer.mlp_norm, torch.ones(32))
    # three steps in two stages: 0, 1/3 and 2/3 of the run
    assert [row["sigma"] for row in read_metrics(tmp_path / "whole") if "sigma" in row] == [0.0, 0.0, 0.5]


def test_only_the_noise_of_later_stages_changes_a_run(tmp_path):
    run(tmp_path / "noise")
    run(tmp_path / "none", stages=1)
    noise, none = weights(tmp_path / "noise"), weights(tmp_path / "none")
    assert any(not torch.equal(noise[name], none[name]) for name in none)


def test_it_stands_around_what_samples_again():
    recipe = qerl(dapo(n=4))
    assert recipe.rollout.name == "parameter_noise"
    assert recipe.rollout.settings["inner"].name == "solved_between"
    assert recipe.rollout.rows_per_problem == 4
