"""Ranks of processes started by torchrun, accelerate or mpirun, before they know of each other."""

from __future__ import annotations

import os

from rewardlab.errors import RewardlabError

MPI = {
    "RANK": ("OMPI_COMM_WORLD_RANK", "PMI_RANK"),
    "WORLD_SIZE": ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE"),
    "LOCAL_RANK": ("OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID"),
    "LOCAL_WORLD_SIZE": ("OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS"),
}
"""What Open MPI, MPICH and Intel MPI call the variables of torchrun. `accelerate launch --cpu` starts processes through mpirun."""
ALONE = (
    "accelerate launch --cpu has started one process, which trains alone; for several on CPUs: "
    "torchrun --nproc-per-node N -m -- rewardlab train ..., or accelerate launch --multi_gpu --num_processes N, which needs no GPU"
)


def is_first() -> bool:
    """Whether this process is the first of those started together, or the only one. `engine.distributed` asks the process group."""
    adopt_mpi()
    return os.environ.get("RANK", "0") == "0" or "WORLD_SIZE" not in os.environ


def started_together() -> int:
    """How many processes were started together: 1 without a launcher.

    Raises RewardlabError where the launcher says how many there are, but not which one this is or where they meet.
    """
    adopt_mpi()
    size = os.environ.get("WORLD_SIZE", "1")
    if not size.isdecimal() or int(size) < 1:
        raise RewardlabError(f"WORLD_SIZE={size!r} is not a number of processes")
    # alone, a process meets nobody, whatever a scheduler has left in the environment
    lacking = [name for name in ("RANK", "MASTER_ADDR", "MASTER_PORT") if name not in os.environ]
    if int(size) > 1 and lacking:
        raise RewardlabError(
            f"WORLD_SIZE is {size}, but {', '.join(lacking)} {'is' if len(lacking) == 1 else 'are'} not set: start the processes "
            f"with torchrun --nproc-per-node {size} -m -- rewardlab train ..., or unset WORLD_SIZE to train in this process alone"
        )
    return int(size)


def refuse_together(command: str) -> None:
    """Raise RewardlabError where a launcher has started several processes with a command that is the work of one."""
    adopt_mpi()
    ours = os.environ
    several = ours.get("WORLD_SIZE", "1") not in ("0", "1") and {"RANK", "MASTER_ADDR", "MASTER_PORT"} <= ours.keys()
    if several:
        raise RewardlabError(
            f"rewardlab {command} is the work of one process, and {ours['WORLD_SIZE']} were started together, each of which would "
            "do all of it: start it without torchrun, or unset WORLD_SIZE. Processes share the work of rewardlab train alone"
        )


def for_children() -> dict[str, str]:
    """What the environment of a child process says besides: it is none of the processes that a launcher has started.

    One that began a run of its own would wait for the others, which do not come.
    """
    adopt_mpi()
    return {"WORLD_SIZE": "1", "RANK": "0"} if os.environ.get("WORLD_SIZE", "1") != "1" else {}


def local_rank() -> int:
    """Which of the processes on this machine this one is, from 0: the number of its GPU."""
    adopt_mpi()
    return int(os.environ.get("LOCAL_RANK", "0"))


def adopt_mpi() -> None:
    """Give the variables of mpirun the names that torchrun and PyTorch use."""
    if "WORLD_SIZE" not in os.environ:
        for name, theirs in MPI.items():
            if found := [os.environ[other] for other in theirs if other in os.environ]:
                os.environ[name] = found[0]


def left_alone() -> bool:
    """Whether accelerate was asked for several processes and has started this one only.

    `accelerate launch --cpu --num_processes 2` without MPI does (accelerate 1.15, `simple_launcher`): it says where they would
    meet, and nothing more.
    """
    ours = os.environ
    return "ACCELERATE_MIXED_PRECISION" in ours and "MASTER_ADDR" in ours and "WORLD_SIZE" not in ours
