"""Hostile programs get no credit, get hold of nothing, leave nothing behind, and harm no program that comes after them."""

from __future__ import annotations

import contextlib
import os
import platform
import secrets
import socket
import subprocess
import sys
import threading
from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import pytest
from attacks import breaking, cheating, reaching

from rewardlab.errors import RewardlabError
from rewardlab.sandbox import Limits, ProgramRun, ProgramUnderTest, Sandbox, SandboxWorkers

ANSWERS = {x: "canary-" + secrets.token_hex(8) for x in (1, 2)}
TESTS = "".join(f"assert solve({x}) == {answer!r}\n" for x, answer in ANSWERS.items())
HONEST = ProgramUnderTest(f"def solve(x): return {ANSWERS}[x]", TESTS)
STRICT = Limits(seconds=0.4, memory=96 << 20, folder=1 << 20, output=1 << 20)
GENEROUS = Limits(seconds=30)
PROJECT = str(Path(__file__).parents[2])


@pytest.fixture(scope="module")
def worker():
    """One worker, so that what comes after an attack runs where it ran."""
    workers = SandboxWorkers(1)
    try:
        (outcome,) = Sandbox(GENEROUS, workers).run_tests([HONEST])
    except RewardlabError as problem:
        pytest.skip(str(problem))
    assert outcome.passed, outcome.why
    yield workers
    workers.close()


@pytest.fixture(scope="module")
def outside(tmp_path_factory):
    """Secrets of this machine, and doors that note who knocks."""
    folder = tmp_path_factory.mktemp("outside")
    secret = folder / "secret.txt"
    secret.write_text(canary := "canary-" + secrets.token_hex(8))
    os.environ["CANARY"] = canary
    knocked: list[str] = []
    doors = _doors(folder)
    for name, door in doors.items():
        threading.Thread(target=_wait, args=(door, name, knocked), daemon=True).start()
    names = {"SECRET": str(secret), "PROJECT": PROJECT, "PORT": doors["IPv4"].getsockname()[1]}
    names |= {name: doors[name].getsockname() for name in ("UNIX", "ABSTRACT")}
    yield SimpleNamespace(canary=canary, knocked=knocked, folder=folder, names=names)
    del os.environ["CANARY"]
    for door in doors.values():
        with contextlib.suppress(OSError):
            door.shutdown(socket.SHUT_RDWR)
        door.close()


def _doors(folder: Path) -> dict[str, socket.socket]:
    doors = {"IPv4": socket.create_server(("127.0.0.1", 0)), "UNIX": socket.socket(socket.AF_UNIX)}
    port = doors["IPv4"].getsockname()[1]
    doors["ABSTRACT"] = socket.socket(socket.AF_UNIX)
    doors["UNIX"].bind(str(folder / "door"))
    doors["ABSTRACT"].bind(f"\0rewardlab-{secrets.token_hex(8)}")
    with contextlib.suppress(OSError):
        doors["IPv6"] = socket.create_server(("::1", port), family=socket.AF_INET6)
    for name in ("UNIX", "ABSTRACT"):
        doors[name].listen()
    return doors


def _wait(door: socket.socket, name: str, knocked: list[str]) -> None:
    with contextlib.suppress(OSError):
        while True:
            door.accept()[0].close()
            knocked.append(name)


def traces(workers: SandboxWorkers) -> dict[str, object]:
    """What a worker holds: processes, mounts, descriptors; and what this machine has where programs might have left something."""
    slot = workers._idle.get()
    workers._idle.put(slot)
    pid = slot.connection.process.pid
    folder = Path("/proc", str(pid))
    found: dict[str, object] = {"worker": pid, "of the host": Path("/proc/self/mountinfo").read_text()}
    found["children"] = (folder / "task" / folder.name / "children").read_text().split()
    with contextlib.suppress(PermissionError):
        found["mounts"] = (folder / "mountinfo").read_text()
        found["descriptors"] = Counter(os.readlink(link).split(":")[0] for link in (folder / "fd").iterdir())
    return found


def with_names(program: str, outside: SimpleNamespace) -> str:
    return "".join(f"{name} = {value!r}\n" for name, value in outside.names.items()) + program


@pytest.mark.parametrize("program", [*cheating.PROGRAMS.values(), *breaking.PROGRAMS.values()],
                         ids=[*cheating.PROGRAMS, *breaking.PROGRAMS])  # fmt: skip
def test_an_attack_on_the_verdict_earns_nothing_and_leaves_nothing(program, worker):
    harmless(ProgramUnderTest(program, TESTS), worker)


@pytest.mark.skipif(platform.machine() != "x86_64", reason="calls to the kernel by their numbers on x86_64")
@pytest.mark.parametrize("program", reaching.PROGRAMS.values(), ids=reaching.PROGRAMS)
def test_an_attack_on_what_lies_outside_reaches_nothing(program, worker, outside):
    program = with_names(program, outside)
    (printed,) = Sandbox(STRICT, worker).run_programs([ProgramRun(program)])
    for text in (printed.stdout, printed.stderr, printed.why):
        assert outside.canary not in text
        assert "GOT" not in text
    assert not outside.knocked
    assert not [path for path in outside.folder.iterdir() if path.name not in ("secret.txt", "door")]
    harmless(ProgramUnderTest(program, TESTS), worker)


def harmless(attack: ProgramUnderTest, workers: SandboxWorkers) -> None:
    Sandbox(GENEROUS, workers).run_tests([HONEST])
    before = traces(workers)
    (outcome,) = Sandbox(STRICT, workers).run_tests([attack])
    assert outcome.passed is False
    assert not any(case.passed for case in outcome.cases)
    assert outcome.why
    (after,) = Sandbox(GENEROUS, workers).run_tests([HONEST])
    assert after.passed, after.why
    now = traces(workers)
    # what took its checker's time has cost it its life
    assert len(now.pop("children")) == len(before.pop("children")) == 1
    assert now == before


def test_a_program_finds_nothing_of_those_before_it(worker):
    """Neither files, nor other programs' texts in memory, nor the tests' answers."""
    left = "open('left', 'w').write('canary-left')\nimport random\nrandom.seed(7)\ndef solve(x): return 'canary-left'"
    searching = """
import ctypes, gc, os, re, sys
mark = "".join(["can", "ary-"])
things, new = {}, [sys.modules]
while new:
    new = [part for part in gc.get_referents(*new) if id(part) not in things and not things.update({id(part): part})]
texts = [thing for thing in things.values() if isinstance(thing, (str, bytes))]
pages = {address & ~0xfff for address in things}
print(os.listdir(), os.getcwd(), len(texts) > 3000, len(pages) > 1000)
print([text for text in map(str, texts) if mark in text and text != mark])
print([found for page in pages for found in re.findall(mark.encode() + rb"[0-9a-z]{4,}", ctypes.string_at(page, 4096))])
"""
    for _ in range(3):
        Sandbox(GENEROUS, worker).run_tests([ProgramUnderTest(left, TESTS), HONEST])
        (printed,) = Sandbox(GENEROUS, worker).run_programs([ProgramRun(searching)])
        listed, by_gc, by_memory = printed.stdout.splitlines()
        assert (listed, by_gc, by_memory) == ("[] /tmp True True", "[]", "[]"), printed


@pytest.mark.parametrize("name", ["secret file", "environment", "project", "IPv4", "unix socket", "abstract socket", "subprocess"])
def test_the_traps_are_real(name, outside):
    """The same programs outside of the sandbox get what they are after."""
    program = with_names(reaching.PROGRAMS[name], outside)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert "GOT" in done.stdout
    outside.knocked.clear()


def test_there_are_enough_attacks():
    assert sum(len(module.PROGRAMS) for module in (cheating, breaking, reaching)) >= 150
