"""Sampling and training on a simulated GPU: no tensor of the CPU gets in between, and the device is waited for rarely.

Every operation on tensors of two devices is an error there, as on a GPU, and the numbers must be those of the CPU.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from checkpoints import checkpoint
from ranks import together
from simulated_gpu import Simulated, SimulatedGPU

from rewardlab import registry
from rewardlab.api.inputs import begin_run
from rewardlab.core import Sampling, Trajectory, ask
from rewardlab.engine.step import Ops, standard_loop
from rewardlab.models.embedded import tokenizer, untrained
from rewardlab.policies.hf.policy import HFPolicy
from rewardlab.policies.llama.policy import LlamaPolicy
from rewardlab.rewards.reward import reward
from rewardlab.runs.config import RunConfig

METHODS = {"grpo": "arithmetic", "ppo": "arithmetic", "dpo": "preferences", "reinforce_plus_plus": "arithmetic"}
TOKENS, STEPS = 6, 2
UPDATES = 8
"""The most optimiser steps that one of these methods makes of a batch, its critic's among them."""


def on_the_gpu(rank: int, folder: str) -> None:
    """Everything in a process of its own: a simulated device cannot be taken back."""
    gpu = SimulatedGPU()
    said = {"mixed": mixed(gpu), "sampled": sampled(gpu, Path(folder)), "trained": {}}
    for method, task in METHODS.items():
        said["trained"][method] = trained(gpu, method, task)
    Path(folder, "said.json").write_text(json.dumps(said))


def mixed(gpu) -> dict:
    """What the device makes of a CPU tensor, and of a value that is read."""
    with gpu:
        there = torch.ones(3, device=gpu.device)
        try:
            there + torch.ones(3)
            refused = "nothing"
        except RuntimeError as e:
            refused = str(e)
        total = float((there * 2.0).sum() + torch.tensor(1.0))
        brought = torch.ones(2).to(gpu.device)
        assert isinstance(brought, Simulated)
    return {"refused": refused, "total": total, "waits": gpu.waits.total(), "uploads": gpu.uploads.total()}


def asked(policy, n=3):
    problems = [ask(f"{i}+{i}=") for i in range(n)]
    return policy.read([Trajectory(p) for p in problems], [p.prompt for p in problems])


def sampled(gpu, folder) -> dict:
    """Replies and log-probs of the lean policy and of one of transformers, here and there."""
    found = {}
    for name, make in (
        ("lean", lambda: untrained()),
        ("hf", lambda: HFPolicy.load(folder / "checkpoint", "cpu", "float32")),
    ):
        here, there = make(), make()
        with gpu:
            there = type(here)(there.model, there.tokenizer, gpu.device, torch.float32)
            gpu.waits.clear()
            gpu.uploads.clear()
            replies = there.extend(asked(there), Sampling(TOKENS, top_p=0.9), torch.Generator().manual_seed(0))
            waits, uploads = dict(gpu.waits), dict(gpu.uploads)
            scores = there.score(replies)
        expected = here.extend(asked(here), Sampling(TOKENS, top_p=0.9), torch.Generator().manual_seed(0))
        same = [t.ids.tolist() for t in replies] == [t.ids.tolist() for t in expected]
        off = max(float(abs(a - b).max()) for a, b in zip(scores, here.score(expected), strict=True))
        longest = max(len(t.turns[-1].ids) for t in replies)
        found[name] = {"same": same, "off": off, "waits": waits, "uploads": uploads, "tokens": longest}
    return found


def trained(gpu, method, task) -> dict:
    """The largest share of weights that a method trained differently here and there, and how often it waited in the last step."""
    here, there = untrained(), untrained()
    weights, logged = steps(here, method, task)
    with gpu:
        there = LlamaPolicy(there.model, there.tokenizer, gpu.device, torch.float32)
        others, logged_there = steps(there, method, task, gpu)
    # not the largest difference: Adam makes a whole step of a gradient that is nothing but rounding
    apart = max(float(((weights[k] - others[k].inner).abs() > 1e-5).float().mean()) for k in weights)
    moved = max(float((weights[k] - w).abs().max()) for k, w in untrained().state().items())
    differ = [k for k in logged if logged[k] != pytest.approx(logged_there[k], abs=1e-4)]
    return {
        "apart": apart,
        "moved": moved,
        "differ": differ,
        "waits": dict(gpu.waits),
        "uploads": dict(gpu.uploads),
    }


@reward
def odd(trajectory):
    return float(trajectory.ids[len(trajectory) - TOKENS :].sum() % 7)


def steps(policy, method, task, gpu=None):
    task = registry.task(task, test_size=2)
    recipe = registry.build(method)
    # a reward that differs between the replies of any model
    if method in ("grpo", "ppo", "reinforce_plus_plus"):
        recipe = recipe.scored_by(odd())
    recipe = recipe.but(update=replace(recipe.update, problems=4))
    config = RunConfig(micro_tokens=512, max_new=TOKENS)
    run = begin_run(recipe, policy, task, config)
    ops = Ops(recipe, run, task, config)
    for _ in range(STEPS):
        if gpu:
            gpu.waits.clear()
            gpu.uploads.clear()
        (recipe.loop or standard_loop)(recipe, run, ops)
        run.step += 1
    return {k: w.detach().clone() for k, w in policy.state().items()}, run.metrics


@pytest.fixture(scope="module")
def said(tmp_path_factory):
    folder = tmp_path_factory.mktemp("gpu")
    checkpoint(folder / "checkpoint", tokenizer())
    codes = together(1, folder, on_the_gpu, str(folder))
    assert codes == [0], (folder / "rank0.log").read_text()
    return json.loads((folder / "said.json").read_text())


@pytest.mark.slow
def test_the_simulation_refuses_what_a_gpu_refuses_and_counts_what_it_waits_for(said):
    assert said["mixed"]["refused"].endswith("found at least two, gpu:0 and cpu")
    assert said["mixed"] == said["mixed"] | {"total": 7.0, "waits": 1, "uploads": 1}


@pytest.mark.parametrize("kind", ["lean", "hf"])
def test_samples_are_those_of_the_cpu(kind, said):
    found = said["sampled"][kind]
    assert found["same"]
    assert found["off"] < 1e-4


def test_a_sampled_token_costs_one_wait_and_no_blocking_upload(said):
    found = said["sampled"]["lean"]
    assert found["waits"] == {"util/device.py:fetched to": found["tokens"]}
    assert found["uploads"] == {}


@pytest.mark.parametrize("method", METHODS)
def test_a_method_trains_as_on_the_cpu(method, said):
    found = said["trained"][method]
    assert found["moved"] > 1e-5
    assert found["apart"] < 0.01
    assert found["differ"] == []
    # statistics are read once an update, and batches are brought without waiting, but for the rows of a micro-batch
    assert all(count <= UPDATES for place, count in found["waits"].items() if place.startswith("engine/stats.py"))
    assert set(found["uploads"]) <= {"core/batch.py:__getitem__ _to_copy"}
