"""Runs of vision-language models through the engine: adapters train on pictures of unlike sizes, resume, and are exported."""

from __future__ import annotations

import pytest
import torch
import transformers

from rewardlab import export, resume, train
from rewardlab.core import Message, Problem, Task, Trajectory
from rewardlab.methods.baselines.grpo import grpo
from rewardlab.models.load import load_policy
from rewardlab.rewards.reward import reward
from tests.policies.hf.seeing import checkpoint, picture

SIZES = ((20, 33), (9, 40), (50, 13), (28, 28))


@reward
def letters(trajectory):
    """What replies of an untrained policy differ in."""
    return sum(c.isalpha() for c in trajectory.reply) / 12


def looks() -> Task:
    asked = [Problem((Message("user", "is <image> red?", images=(picture(i, *SIZES[i % 4]),)),), "yes") for i in range(10)]
    return Task("looks", asked[2:], asked[:2], "exact_match", max_new=6)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["qwen2_5_vl", "gemma3"])
def test_adapters_train_on_pictures_resume_and_are_exported(kind, tmp_path):
    pytest.importorskip("peft")
    checkpoint(kind, tmp_path / "base")
    recipe = grpo().but(reward=letters(), problems=2)
    given = {"model": str(tmp_path / "base"), "lora_rank": 2, "device": "cpu", "dtype": "float32", "eval_every": 0}
    whole = train(recipe, task=looks(), steps=3, out=tmp_path / "whole", **given)
    weights = {name: x.clone() for name, x in whole.run.policy.state().items()}
    assert all("lora" in name for name in weights)
    train(recipe, task=looks(), steps=2, out=tmp_path / "halted", **given)
    resumed = resume(tmp_path / "halted", looks(), steps=3)
    assert all(torch.equal(x, weights[name]) for name, x in resumed.run.policy.state().items())
    export(tmp_path / "whole", tmp_path / "exported", last=True)
    policy, problem = whole.run.policy, looks().train[0]
    (row,) = policy.write(policy.read([Trajectory(problem)], [problem.prompt]), ["yes"])
    exported = load_policy(str(tmp_path / "exported"), "cpu", "float32")
    assert exported.score([row])[0] == pytest.approx(policy.score([row])[0], abs=1e-4)
    transformers.AutoModelForImageTextToText.from_pretrained(tmp_path / "exported")
