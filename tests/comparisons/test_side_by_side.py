"""How many runs go side by side: by the cores for small policies, by GPUs and memory for real models."""

import os

import pytest
import torch

from rewardlab import registry
from rewardlab.checks.workers import Crew, crew_of, run_all
from rewardlab.comparisons import side_by_side
from rewardlab.comparisons.side_by_side import OVERHEAD, ROOM, bytes_of_run, crew
from rewardlab.models.embedded import tokenizer
from rewardlab.registry.formula import read_reward
from rewardlab.runs.config import RunConfig
from rewardlab.util.device import SHARED_BY, free_memory, memory_of
from tests.helpers.checkpoints import checkpoint

CPU = torch.device("cpu")


@pytest.fixture
def machine(monkeypatch):
    """A machine with so many cores, so many bytes of free memory, and so many GPUs."""

    def of(cores=16, memory=2**37, gpus=0):
        monkeypatch.setattr(side_by_side, "cores", lambda: cores)
        monkeypatch.setattr(side_by_side, "free_memory", lambda device: memory)
        monkeypatch.setattr(torch.cuda, "is_available", lambda: gpus > 0)
        monkeypatch.setattr(torch.cuda, "device_count", lambda: gpus)
        monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda **_: True)

    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    return of


@pytest.fixture
def large(monkeypatch):
    """A run whose models take 4 GiB."""
    monkeypatch.setattr(side_by_side, "bytes_of_run", lambda *_: 2**32)


RECIPES = [registry.build("grpo"), registry.build("rloo")]
TASK = registry.task("arithmetic")


def of_real(jobs=None, **changes):
    return crew(jobs, RunConfig(task="arithmetic", model="org/model").but(**changes), RECIPES, TASK)


def test_small_policies_take_a_core_each_whatever_else_there_is(machine):
    machine(cores=16, memory=2**30, gpus=1)
    config = RunConfig(task="arithmetic")
    assert crew(None, config, RECIPES, TASK) == Crew(16)
    assert crew(3, config, RECIPES, TASK) == Crew(3)
    assert crew_of(3) == crew_of(Crew(3))


def test_on_gpus_each_run_has_one_to_itself(machine, large):
    machine(cores=16, gpus=1)
    assert of_real() == Crew(1, threads=16, gpus=("0",), share=1)
    machine(cores=16, gpus=4)
    assert of_real() == Crew(4, threads=4, gpus=("0", "1", "2", "3"), share=1)
    # asked for more than there are, they divide the memory of each
    assert of_real(jobs=6) == Crew(6, threads=2, gpus=("0", "1", "2", "3"), share=2)
    assert of_real(jobs=2) == Crew(2, threads=8, gpus=("0", "1", "2", "3"), share=1)
    # of a device that is named, all use that one
    assert of_real(device="cuda:2") == Crew(1, threads=16, share=1)
    assert of_real(jobs=3, device="cuda:2") == Crew(3, threads=5, share=3)


def test_gpus_that_are_hidden_stay_so(machine, large, monkeypatch):
    machine(gpus=2)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "5,GPU-8a")
    assert of_real().gpus == ("5", "GPU-8a")


def test_on_a_cpu_there_are_as_many_as_memory_holds(machine, large):
    machine(cores=16, memory=int(3.5 * (2**32 + OVERHEAD) / ROOM))
    assert of_real() == Crew(3, threads=5, share=3)
    machine(cores=2, memory=2**40)
    assert of_real() == Crew(2, threads=1, share=2)
    # a model that does not fit is told of where it is trained
    machine(cores=16, memory=2**30)
    assert of_real() == Crew(1, threads=16, share=1)
    assert of_real(jobs=4) == Crew(4, threads=4, share=4)


def test_what_a_run_needs_is_what_its_models_take(tmp_path):
    from rewardlab.models.planned import planned

    checkpoint(tmp_path / "model", tokenizer(), "Qwen2ForCausalLM")
    name = str(tmp_path / "model")
    config = RunConfig(task="arithmetic", model=name, device="cpu", dtype="float32")
    numbers = sum(p.numel() for p in planned(name, "cpu", torch.float32).parameters())
    plain, _ = RECIPES
    # weights, gradients and two moments of Adam, and a pass
    needed = bytes_of_run(plain, config, TASK)
    assert needed > 16 * numbers
    # a reference beside it
    held = registry.build("grpo", {"beta": 0.1})
    assert bytes_of_run(held, config, TASK) == pytest.approx(needed + 4 * numbers, rel=1e-6)
    # what scores replies, as its file is large; small policies, and scorers made here, count as nothing
    scored = plain.scored_by(read_reward(f"model:{name}"))
    size = (tmp_path / "model" / "model.safetensors").stat().st_size
    assert bytes_of_run(scored, config, TASK) == needed + size
    assert bytes_of_run(scored, RunConfig(task="arithmetic"), TASK) == size
    assert bytes_of_run(plain, RunConfig(task="arithmetic"), TASK) == 0


def what_it_sees(_):
    return {name: os.environ.get(name) for name in ("CUDA_VISIBLE_DEVICES", "OMP_NUM_THREADS", SHARED_BY)} | {
        "threads": torch.get_num_threads(), "memory": memory_of(CPU), "free": free_memory(CPU),
    }  # fmt: skip


def test_a_process_has_its_threads_its_gpu_and_its_share_of_the_memory():
    found = [result for _, result in run_all(what_it_sees, [0], Crew(1, threads=2, gpus=("3",), share=4))]
    (seen,) = found
    assert (seen["CUDA_VISIBLE_DEVICES"], seen["OMP_NUM_THREADS"], seen["threads"]) == ("3", "2", 2)
    assert seen["memory"] == memory_of(CPU) // 4
    assert seen["free"] < memory_of(CPU) / 4
