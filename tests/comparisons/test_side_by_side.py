"""How many runs go side by side: by the cores for small policies, by GPUs and memory for real models."""

import os
import shutil

import pytest
import torch

from rewardlab import registry
from rewardlab.api.dry_run import policy_before_runs
from rewardlab.checks.workers import Crew, crew_of, run_all
from rewardlab.comparisons import side_by_side
from rewardlab.comparisons.side_by_side import OVERHEAD, ROOM, bytes_of_runs, crew, visible_gpus
from rewardlab.errors import RewardlabError
from rewardlab.models.embedded import tokenizer
from rewardlab.models.planned import planned
from rewardlab.registry.formula import read_reward
from rewardlab.runs.config import RunConfig
from rewardlab.util.device import SHARED_BY, free_memory, memory_of
from tests.helpers.checkpoints import checkpoint

CPU = torch.device("cpu")
TASK = registry.task("arithmetic")
RECIPES = [registry.build("grpo"), registry.build("rloo")]


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
    """Runs whose models take 4 GiB."""
    monkeypatch.setattr(side_by_side, "bytes_of_runs", lambda *_: 2**32)


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("checkpoint") / "model"
    checkpoint(folder, tokenizer(), "Qwen2ForCausalLM")
    return folder


def of_real(jobs=None, runs=None, **changes):
    return crew(jobs, RunConfig(task="arithmetic", model="org/model").but(**changes), RECIPES, TASK, runs)


def test_small_policies_take_a_core_each_whatever_else_there_is(machine):
    machine(cores=16, memory=2**30, gpus=1)
    config = RunConfig(task="arithmetic")
    assert crew(None, config, RECIPES, TASK) == Crew(16)
    assert crew(3, config, RECIPES, TASK) == Crew(3)
    assert crew(None, config, RECIPES, TASK, runs=6) == Crew(6)
    assert crew_of(3) == crew_of(Crew(3))


def test_on_gpus_each_run_has_one_to_itself(machine, large):
    machine(cores=16, gpus=1)
    assert of_real() == Crew(1, threads=16, gpus=("0",), together=1)
    machine(cores=16, gpus=4)
    assert of_real() == Crew(4, threads=4, gpus=("0", "1", "2", "3"), together=1)
    assert of_real(runs=2) == Crew(2, threads=8, gpus=("0", "1", "2", "3"), together=1)
    # asked for more than there are, they divide the memory of each
    assert of_real(jobs=6) == Crew(6, threads=2, gpus=("0", "1", "2", "3"), together=2)
    # of a device that is named, all use that one
    assert of_real(device="cuda:2") == Crew(1, threads=16, together=1)
    assert of_real(jobs=3, device="cuda:2") == Crew(3, threads=5, together=3)


@pytest.mark.parametrize(
    ("named", "seen"),
    [("5,GPU-8a", ("5", "GPU-8a")), (" 1, 0,", ("1", "0")), ("0,1,2,3", ("0", "1")), ("", ("0", "1"))],
)
def test_gpus_are_those_that_this_process_sees(machine, monkeypatch, named, seen):
    machine(gpus=2)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", named)
    assert visible_gpus() == seen


def test_on_a_cpu_there_are_as_many_as_memory_holds(machine, large):
    machine(cores=16, memory=int(3.5 * (2**32 + OVERHEAD) / ROOM))
    assert of_real() == Crew(3, threads=5, together=3)
    assert of_real(runs=2) == Crew(2, threads=8, together=2)
    machine(cores=2, memory=2**40)
    assert of_real() == Crew(2, threads=1, together=2)
    # a model that does not fit is told of where it is trained
    machine(cores=16, memory=2**30)
    assert of_real() == Crew(1, threads=16, together=1)
    assert of_real(jobs=4) == Crew(4, threads=4, together=4)


def test_what_runs_need_is_what_their_models_take(model):
    config = RunConfig(task="arithmetic", model=str(model), device="cpu", dtype="float32")
    numbers = sum(p.numel() for p in planned(str(model), "cpu", torch.float32).parameters())
    plain, small = RECIPES[0], RunConfig(task="arithmetic")
    # weights, gradients and two moments of Adam, and a pass
    needed = bytes_of_runs([plain], config, TASK)
    assert needed > 16 * numbers
    held = registry.build("grpo", {"beta": 0.1})
    assert bytes_of_runs([plain, held], config, TASK) == pytest.approx(needed + 4 * numbers, rel=1e-6)
    # what scores replies, and what a learner starts from, is as large as its file; small policies count as nothing
    size = (model / "model.safetensors").stat().st_size
    scored = plain.scored_by(read_reward(f"model:{model}"))
    assert bytes_of_runs([scored], config, TASK) == needed + size
    assert bytes_of_runs([scored], small, TASK) == size
    assert bytes_of_runs([registry.build("bradley_terry", {"init": str(model)})], small, TASK) == size
    assert bytes_of_runs([plain], small, TASK) == 0


def test_runs_of_every_method_with_models_beside_the_policy_can_be_planned(model):
    config = RunConfig(task="arithmetic", model=str(model), device="cpu", dtype="float32")
    beside = [recipe for name in registry.methods() if (recipe := _built(name)) is not None and recipe.also]
    assert len(beside) > 20
    assert bytes_of_runs(beside, config, TASK) > bytes_of_runs(RECIPES, config, TASK)


def _built(name):
    try:
        return registry.build(name)
    except RewardlabError:
        # it needs data, or a model, that is not here
        return None


@pytest.mark.parametrize("dry", [False, True])
def test_a_model_that_no_run_could_train_is_refused_before_the_first(model, tmp_path, dry):
    for name, says in ((f"nf4:{model}", "what is kept in 4 bits cannot train"), (str(model), "")):
        config = RunConfig(task="arithmetic", model=name, device="cpu")
        if says:
            with pytest.raises(RewardlabError, match=says):
                policy_before_runs(config, TASK, dry)
        else:
            # of its shapes alone
            assert policy_before_runs(config, TASK, dry).device.type == "meta"
    bare = tmp_path / "bare"
    shutil.copytree(model, bare)
    (bare / "model.safetensors").unlink()
    with pytest.raises(RewardlabError, match="bare lacks weights"):
        policy_before_runs(RunConfig(task="arithmetic", model=str(bare), device="cpu"), TASK, dry)
    (bare / "config.json").write_text(
        (bare / "config.json").read_text().replace('"num_attention_heads": 2', '"num_attention_heads": 0')
    )
    (bare / "model.safetensors").write_bytes(b"")
    with pytest.raises(RewardlabError, match="bare cannot be loaded"):
        policy_before_runs(RunConfig(task="arithmetic", model=str(bare), device="cpu"), TASK, dry)


def what_it_sees(_):
    return {name: os.environ.get(name) for name in ("CUDA_VISIBLE_DEVICES", "OMP_NUM_THREADS", SHARED_BY)} | {
        "threads": torch.get_num_threads(), "memory": memory_of(CPU), "free": free_memory(CPU),
    }  # fmt: skip


def test_a_process_has_its_threads_its_gpu_and_its_part_of_the_memory():
    found = [seen for _, seen in run_all(what_it_sees, [0, 1], Crew(2, threads=2, gpus=("3", "GPU-8a"), together=4))]
    assert sorted(seen["CUDA_VISIBLE_DEVICES"] for seen in found) == ["3", "GPU-8a"]
    for seen in found:
        assert (seen["OMP_NUM_THREADS"], seen["threads"]) == ("2", 2)
        assert seen["memory"] == memory_of(CPU) // 4
        assert seen["free"] < memory_of(CPU) / 4
