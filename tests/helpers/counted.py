"""What processes of a Ray cluster do in tests: they note each call that they begin and end, and some of them die of one."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

DEADLY = -1


def noting(folder: str, seconds: float = 0.02):
    """The square of a number; each process says who it is."""

    def square(i: int) -> int:
        _note(folder, f"begun {i} {os.getpid()}")
        time.sleep(seconds)
        if i == DEADLY:
            os.kill(os.getpid(), signal.SIGKILL)
        if i < DEADLY:
            raise ValueError("below")
        _note(folder, f"done {i} {os.getpid()}")
        return i * i

    return square


def solver_that_dies_once(folder: str, *about):
    """The solver of `prm label`; the first process that has labelled batch 2 is killed before it can say so."""
    from rewardlab.prm.labels import solver_of

    solver = solver_of(*about)

    def solve(number, batch):
        _note(folder, f"begun {number} {os.getpid()}")
        solved = solver(number, batch)
        if number == 2 and _first(Path(folder, "death")):
            os.kill(os.getpid(), signal.SIGKILL)
        _note(folder, f"done {number} {os.getpid()}")
        return solved

    return solve


def notes(folder: Path, kind: str) -> list[list[int]]:
    """[number, process] of each call begun or done, in order."""
    lines = [line.split() for line in (folder / "notes").read_text().splitlines()]
    return [[int(number), int(process)] for what, number, process in lines if what == kind]


def _note(folder: str, line: str) -> None:
    # one write of one line at the end of a file is not torn
    with open(Path(folder, "notes"), "a") as file:
        file.write(line + "\n")


def _first(flag: Path) -> bool:
    try:
        os.close(os.open(flag, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return False
    return True
