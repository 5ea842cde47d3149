"""One of two processes that train together is killed: the other ends with an error, and resuming gives the undisturbed run."""

from __future__ import annotations

import os
import shutil
import signal

import pyarrow.parquet as pq
import pytest
from ranks import together

from rewardlab import resume
from rewardlab.engine import distributed
from rewardlab.engine.step import Ops
from rewardlab.errors import RewardlabError
from rewardlab.models.embedded import untrained
from rewardlab.runs.metrics import read_metrics
from rewardlab.util.ranks import started_together

STEPS, KILLED = 6, 4
SPACES = "def spaces(completion): return completion.count(' ') - 0.1 * len(completion)\n"


def command(rank: int, argv: list[str], killed: int | None) -> int:
    """A command line; the process whose rank is `killed` kills itself when it has sampled its share of the fifth step."""
    if rank == killed:
        rollout = Ops.rollout

        def to_the_death(ops, problems, learner=None):
            if ops.run.step == KILLED:
                ops.policy.recipe.rollout(problems, ops.run)
                os.kill(os.getpid(), signal.SIGKILL)
            return rollout(ops, problems, learner)

        Ops.rollout = to_the_death

    from rewardlab.commands.cli import main

    return main(argv)


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("killed")
    untrained().save(folder / "model")
    (folder / "mine.py").write_text(SPACES)
    assert together(2, folder, command, argv(folder, folder / "whole"), None) == [0, 0]
    return folder


def argv(place, out):
    flags = (
        f"--task arithmetic --model {place / 'model'} --reward {place / 'mine.py'}:spaces --n 4 --problems 4 --lr 0.01 --max-new 8"
    )
    often = f"--steps {STEPS} --eval-every 3 --eval-problems 8 --checkpoint-every 3 --device cpu"
    return f"train grpo {flags} {often} --out {out}".split()


@pytest.mark.parametrize("killed", [0, 1])
def test_the_other_ends_with_an_error_and_the_resumed_run_is_bit_equal(killed, place, tmp_path):
    out = tmp_path / "run"
    codes = together(2, tmp_path, command, argv(place, out), killed, seconds=30)
    assert codes[killed] == -signal.SIGKILL
    assert codes[1 - killed] == 2
    said = (tmp_path / f"rank{1 - killed}.log").read_text()
    assert "another process of this run has ended" in said
    # the second alone writes nothing; the first saves what is done
    saved = {0: "step-000003", 1: "step-000004"}[killed]
    assert max(path.name for path in (out / "checkpoints").iterdir()) == saved
    assert ("the run is saved up to step 4; resume with: rewardlab train --resume" in said) == (killed == 1)

    assert together(2, tmp_path, command, ["train", "--resume", str(out)], None) == [0, 0]
    assert [timeless(line) for line in read_metrics(out)] == [timeless(line) for line in read_metrics(place / "whole")]
    files = [path.relative_to(out) for path in out.glob("**/*.safetensors")]
    assert len(files) >= 5
    assert all((out / file).read_bytes() == (place / "whole" / file).read_bytes() for file in files if last(file))
    for file in (out / "rollouts").iterdir():
        assert pq.read_table(file).equals(pq.read_table(place / "whole" / "rollouts" / file.name))
    assert not list(out.glob("**/.*"))


def test_another_number_of_processes_may_go_on_and_is_told(place, tmp_path, capsys):
    shutil.copytree(place / "whole", tmp_path / "run")
    resume(tmp_path / "run", steps=STEPS + 1)
    assert "the run was begun by 2 processes, and goes on with 1" in " ".join(capsys.readouterr().err.split())
    assert [line["step"] for line in read_metrics(tmp_path / "run")] == [*range(STEPS + 2)]


def last(file):
    """Whether both runs have this file: the one that was killed may have a checkpoint that the other has not."""
    return file.parts[0] != "checkpoints" or file.parts[1] == f"step-{STEPS:06d}"


def timeless(row):
    return {k: v for k, v in row.items() if not k.startswith("seconds")}


@pytest.mark.parametrize(
    ("environment", "told"),
    [
        ({"WORLD_SIZE": "2"}, "WORLD_SIZE is 2, but RANK, MASTER_ADDR, MASTER_PORT are not set: start the processes with torchrun"),
        ({"WORLD_SIZE": "two"}, "WORLD_SIZE='two' is not a number of processes"),
        ({"OMPI_COMM_WORLD_SIZE": "2", "OMPI_COMM_WORLD_RANK": "0"}, "WORLD_SIZE is 2, but MASTER_ADDR, MASTER_PORT are not set"),
    ],
)
def test_an_environment_that_does_not_say_where_processes_meet_is_refused(environment, told, monkeypatch):
    for name in ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT", "LOCAL_RANK"):
        monkeypatch.delenv(name, raising=False)
    # adopted variables are put back with the others
    monkeypatch.setattr(os, "environ", {**os.environ, **environment})
    with pytest.raises(RewardlabError) as refused:
        started_together()
    assert told in str(refused.value)


def test_what_accelerate_leaves_of_several_processes_on_a_cpu_is_told(monkeypatch, capsys):
    """`accelerate launch --cpu --num_processes 2` starts one process, whose environment says no more than this."""
    accelerate = {
        "ACCELERATE_USE_CPU": "True",
        "ACCELERATE_MIXED_PRECISION": "no",
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": "29500",
    }
    alone = {name: value for name, value in os.environ.items() if name not in ("RANK", "WORLD_SIZE")}
    monkeypatch.setattr(os, "environ", alone | accelerate)
    distributed.init()
    assert "has started one process, which trains alone" in " ".join(capsys.readouterr().err.split())
    # with one process asked for, it names no place to meet
    del os.environ["MASTER_ADDR"]
    distributed.init()
    assert capsys.readouterr().err == ""
