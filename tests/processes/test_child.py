"""What a child process finds in its environment."""

from __future__ import annotations

import time

import pytest

from rewardlab.processes.child import Child

SAYS = "import os; print(os.environ.get('WORLD_SIZE'), os.environ.get('RANK'))"


@pytest.mark.parametrize(
    ("launcher", "said"),
    [
        ({"WORLD_SIZE": "2", "RANK": "1"}, b"1 0"),
        # mpirun's names, which would be taken for torchrun's in the child again
        ({"OMPI_COMM_WORLD_SIZE": "2", "OMPI_COMM_WORLD_RANK": "1"}, b"1 0"),
        ({}, b"None None"),
    ],
)
def test_a_child_is_none_of_the_processes_that_a_launcher_started(launcher, said, monkeypatch):
    for name in ("WORLD_SIZE", "RANK"):
        # set first, so that what is adopted is taken back too
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)
    for name, value in launcher.items():
        monkeypatch.setenv(name, value)
    child = Child("-c", SAYS)
    assert child.receive(time.monotonic() + 60) == said
    child.end()
