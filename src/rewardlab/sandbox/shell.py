"""Commands of a shell in a folder, and what tests say of the folder after them.

    folder = packed({"a.txt": "1\\n2\\n"})
    run(Session(folder), "wc -l < a.txt > n", tests="assert open('n').read().strip() == '2'")
        ->  Ran(output="", code=0, session=Session(...), passed=True)

A session is plain data: the files, packed, the current folder and the exported variables. Each command is one program in the
sandbox, among workers of its own that may start other programs (`Sandbox(commands=True)`): its first process (`inside/shell.py`)
unpacks the files, starts bash, kills all that bash has started, packs the files, and only then reads the tests. So a command meets
neither the text of a test, nor the process in which tests run, nor the descriptor of their results; and nothing of it is alive when
they run.
"""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from rewardlab.errors import RewardlabError

from .sandbox import Limits, ProgramRun, RunOutput, Sandbox

MIB = 1 << 20
FOLDER = 2 * MIB
"""Bytes that the files of a session may have together."""
TESTING = 10.0
"""Seconds for the tests, beside those of the command."""
SEEN = 100_000
"""Bytes of a command's output that are kept: half of its beginning, half of its end."""
LIMITS = Limits(memory=512 * MIB, processes=32, files=128, folder=3 * FOLDER, output=8 * MIB)

Tests = str | Sequence[str]
"""A Python program, with asserts and with functions test_..., which are called; or commands that must end with code 0."""


@dataclass(frozen=True)
class Session:
    """files: packed.  folder: the current one, from that of the files.  variables: exported ones that the commands have set."""

    files: str
    folder: str = "."
    variables: Mapping[str, str] = field(default_factory=dict)


class Ran(NamedTuple):
    """What a command printed, and its exit code; None where it had none, and `session` is the one before.

    passed: what the tests say; None where there were none, or the sandbox failed.  why: of a failure.  failed: of the sandbox.
    """

    output: str
    code: int | None
    session: Session
    passed: bool | None = None
    why: str = ""
    failed: bool = False


def packed(files: Mapping[str, str]) -> str:
    """Files by name, as a session holds them. Raises RewardlabError for a name that is none within the folder."""
    folders: dict[str, list[Any]] = {}
    entries: list[list[Any]] = []
    for name, text in files.items():
        parts = name.split("/") if isinstance(name, str) else [""]
        if not isinstance(text, str) or any(part in ("", ".", "..") or "\0" in part for part in parts):
            raise RewardlabError(
                f"a file is a name within the folder, such as notes/a.txt, and a text; not {name!r}: {str(text)[:40]!r}"
            )
        for depth in range(1, len(parts)):
            folders.setdefault(path := "/".join(parts[:depth]), [path, "folder", 0o755, 0, ""])
        entries.append([name, "file", 0o644, 0, base64.b64encode(text.encode(errors="surrogateescape")).decode()])
    if twice := folders.keys() & set(files):
        raise RewardlabError(f"{min(twice)!r} is a file and a folder at once")
    if sum(len(text.encode(errors="surrogateescape")) for text in files.values()) > FOLDER:
        raise RewardlabError(f"the files of a shell's folder have more than {FOLDER} bytes")
    return base64.b64encode(zlib.compress(json.dumps([*folders.values(), *entries]).encode())).decode()


def run(session: Session, command: str | None, tests: Tests | None = None, *, seconds: float = 10.0) -> Ran:
    """The session after a command, and what the tests say of it.  command: None leaves it as it is.

    A command that takes longer than `seconds` is killed, with all it has started, and what it did before stays.
    """
    limits = Limits(**{**vars(LIMITS), "seconds": seconds + TESTING + 5.0, "cpu_seconds": seconds + TESTING})
    asked = {"command": command, "seconds": seconds, "most": FOLDER, "seen": SEEN, **vars(session)}
    # the tests come on standard input, from which nothing is read before the command is over
    wanted = json.dumps(tests if tests is None or isinstance(tests, str) else list(tests))
    (output,) = Sandbox(limits, commands=True).run_programs([ProgramRun([_driver(), f"main({json.dumps(asked)!r})"], wanted)])
    return _read(output, session, command, tests)


def _read(output: RunOutput, before: Session, command: str | None, tests: Tests | None) -> Ran:
    if output.ended is None:
        return Ran("", None, before, why=output.why, failed=True)
    reports = [json.loads(line) for line in output.stdout.split("\n")[:-1]]
    if not reports:
        return Ran("", None, before, False if tests is not None else None, output.why or "its first process ended")
    first, *rest = reports
    if first.get("files") is None:
        # too many files or too large ones: as if the command had not been run
        return Ran(first["output"], None, before, False if tests is not None else None, first["why"])
    session = Session(first["files"], first["folder"], first["variables"])
    if tests is None:
        return Ran(first["output"], first["code"], session)
    verdict: dict[str, Any] = rest[0] if rest else {"passed": False, "why": output.why or "the tests broke off"}
    return Ran(first["output"], first["code"], session, verdict["passed"], verdict["why"])


@cache
def _driver() -> str:
    """The program that is run in the sandbox, as text: it starts among packages that are not there."""
    return (Path(__file__).parent / "inside" / "shell.py").read_text("utf-8")
