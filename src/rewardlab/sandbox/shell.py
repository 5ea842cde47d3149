"""Commands of a shell in a folder, and what tests say of the folder after them.

    folder = packed({"a.txt": "1\\n2\\n"})
    run(Session(folder), "wc -l < a.txt > n", tests="assert open('n').read().strip() == '2'")
        ->  Ran(output="", code=0, session=Session(...), passed=True)

A session is plain data: the files, packed, the current folder and the exported variables. Each command is one program in the
sandbox, among workers of its own that may start other programs (`Sandbox(commands=True)`): its first process unpacks the files,
starts bash, kills all that bash has started, packs the files, and only then reads the tests. So a command meets neither the text of
a test, nor the process in which tests run, nor the descriptor of their results; and nothing of it is alive when they run.
"""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
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
    (output,) = Sandbox(limits, commands=True).run_programs([ProgramRun([DRIVER, f"main({json.dumps(asked)!r})"], wanted)])
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


DRIVER = r'''
import base64, json, os, select, signal, stat, subprocess, sys, time, zlib

HOME, RC = "/tmp/home", "/tmp/.rc"
if not os.access("/tmp", os.W_OK) or os.getpid() != 1:
    # without isolation, this program's own folder
    HOME, RC = os.path.abspath("home"), os.path.abspath(".rc")
ENV = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": HOME, "LANG": "C.UTF-8", "TZ": "UTC", "TERM": "dumb", "USER": "user"}
# what is started has neither of these, and nothing for its 0, 1 and 2
REPORTS, TESTS = os.dup(1), os.dup(0)
NOTHING = os.open("/dev/null", os.O_RDWR)
for i in (0, 1, 2):
    os.dup2(NOTHING, i)
# a handler, which what is started does not get, so that no command can interrupt this process
signal.signal(signal.SIGINT, lambda *_: None)


def report(**said):
    data = (json.dumps(said) + "\n").encode()
    while data:
        data = data[os.write(REPORTS, data):]


def unpack(text):
    os.mkdir(HOME, 0o700)
    last = []
    for name, kind, mode, when, data in json.loads(zlib.decompress(base64.b64decode(text))):
        path = os.path.join(HOME, name)
        if kind == "folder":
            os.makedirs(path, exist_ok=True)
            last.append((path, mode, when))
        elif kind == "link":
            os.symlink(base64.b64decode(data), path)
        else:
            with open(path, "wb") as file:
                file.write(base64.b64decode(data))
            os.chmod(path, mode)
            os.utime(path, ns=(when, when))
    for path, mode, when in reversed(last):
        os.utime(path, ns=(when, when))
        os.chmod(path, mode)


def pack(most):
    entries, left = [], most

    def walk(folder, under):
        nonlocal left
        for entry in sorted(os.scandir(folder), key=lambda e: e.name):
            path, name = entry.path, under + entry.name
            about = os.lstat(path)
            mode, when = stat.S_IMODE(about.st_mode), about.st_mtime_ns
            left -= 256 + len(name)
            if stat.S_ISLNK(about.st_mode):
                entries.append([name, "link", mode, when, base64.b64encode(os.fsencode(os.readlink(path))).decode()])
            elif stat.S_ISDIR(about.st_mode):
                entries.append([name, "folder", mode, when, ""])
                os.chmod(path, 0o700)
                walk(path, name + "/")
                os.utime(path, ns=(when, when))
                os.chmod(path, mode)
            elif stat.S_ISREG(about.st_mode):
                left -= about.st_size
                if left < 0:
                    raise OverflowError
                if not mode & 0o400:
                    os.chmod(path, mode | 0o400)
                with open(path, "rb") as file:
                    data = file.read(about.st_size)
                os.chmod(path, mode)
                entries.append([name, "file", mode, when, base64.b64encode(data).decode()])
            if left < 0:
                raise OverflowError

    walk(HOME, "")
    return base64.b64encode(zlib.compress(json.dumps(entries).encode())).decode()


def kill_all(process):
    if os.getpid() == 1:
        # all but this one, at once
        try:
            os.kill(-1, signal.SIGKILL)
        except ProcessLookupError:
            pass
        try:
            while True:
                os.waitpid(-1, 0)
        except ChildProcessError:
            pass
    elif process is not None:
        try:
            os.killpg(process, signal.SIGKILL)
        except OSError:
            pass


class Seen:
    """The beginning and the end of what comes through a pipe."""

    def __init__(self, most):
        self.most, self.head, self.tail, self.all = most // 2, b"", b"", 0

    def add(self, data):
        self.all += len(data)
        room = self.most - len(self.head)
        self.head += data[:room]
        self.tail = (self.tail + data[room:])[-self.most:]

    def text(self):
        left = self.all - len(self.head) - len(self.tail)
        between = f"\n[... {left} bytes ...]\n".encode() if left else b""
        return (self.head + between + self.tail).decode(errors="replace")


TRAP = """unset BASH_ENV
trap '{ printf "%s\\0" "$PWD"; for REPLY in $(compgen -e); do printf "%s=%s\\0" "$REPLY" "${!REPLY}"; done; } >&9 2>/dev/null' EXIT
"""


def shell(command, folder, variables, seconds, seen, ask_state=True):
    """The exit code of a command (None: it was killed), and the state that bash tells at its end."""
    with open(RC, "w") as file:
        file.write(TRAP)
    output, into = os.pipe()
    state, tells = os.pipe()
    env = {**ENV, **variables}
    if ask_state:
        env["BASH_ENV"] = RC
    cwd = os.path.normpath(os.path.join(HOME, folder))
    if not os.path.isdir(cwd):
        cwd = HOME

    def nine():
        os.dup2(tells, 9)

    process = subprocess.Popen(
        ["/bin/bash", "-c", command], stdin=NOTHING, stdout=into, stderr=into, cwd=cwd, env=env, start_new_session=True,
        preexec_fn=nine, pass_fds=(9,),
    )
    os.close(into)
    os.close(tells)
    due, told, open_ends = time.monotonic() + seconds, b"", {output, state}
    code = None
    while time.monotonic() < due:
        code = process.poll()
        wait = 0 if code is not None else min(0.05, max(0, due - time.monotonic()))
        ready = select.select(list(open_ends), [], [], wait)[0] if open_ends else time.sleep(wait) or []
        for end in ready:
            data = os.read(end, 1 << 16)
            if not data:
                open_ends.discard(end)
            elif end == output:
                seen.add(data)
            else:
                told = (told + data)[:1 << 16]
        # what it has started may hold the pipe for ever
        if code is not None and not ready:
            break
    kill_all(process.pid)
    os.close(output)
    os.close(state)
    return code, told


def state_of(told, folder, variables):
    first, *rest = told.decode(errors="replace").split("\0")
    if not rest:
        return folder, variables
    where = os.path.relpath(first, HOME)
    found = dict(line.split("=", 1) for line in rest if "=" in line)
    own = {k: v for k, v in found.items() if ENV.get(k) != v and k not in ("_", "PWD", "OLDPWD", "SHLVL", "BASH_ENV")}
    return where, own if sum(map(len, [*own, *own.values()])) < 1 << 14 else variables


def python_tests(source):
    space = {"__name__": "__tests__"}
    try:
        exec(compile(source, "<tests>", "exec"), space)
        for name, what in list(space.items()):
            if name.startswith("test_") and callable(what):
                what()
    except AssertionError as problem:
        return False, f"a test fails: {problem}"[:500]
    except BaseException as problem:
        return False, f"{type(problem).__name__}: {problem}"[:500]
    return True, ""


def main(asked):
    asked = json.loads(asked)
    unpack(asked["files"])
    os.chdir(HOME)
    seen, code, folder, variables = Seen(asked["seen"]), 0, asked["folder"], asked["variables"]
    if asked["command"] is not None:
        code, told = shell(asked["command"], folder, variables, asked["seconds"], seen)
        folder, variables = state_of(told, folder, variables)
    output = seen.text()
    if code is None:
        output, code = output + f"\n[killed after {asked['seconds']:g} s]", 124
    try:
        files = pack(asked["most"])
    except (OverflowError, RecursionError, OSError):
        report(output=output, files=None, why=f"its files would take more than {asked['most']} bytes, or cannot be read")
        os._exit(0)
    report(output=output, code=code, files=files, folder=folder, variables=variables)
    with open(TESTS) as file:
        tests = json.loads(file.read())
    if tests is None:
        os._exit(0)
    os.environ.clear()
    os.environ.update(ENV)
    os.chdir(HOME)
    passed, why = True, ""
    if isinstance(tests, str):
        passed, why = python_tests(tests)
    else:
        for test in tests:
            code, _ = shell(test, ".", {}, 1000, Seen(1000), ask_state=False)
            if code != 0:
                passed, why = False, f"exit code {code}: {test}"[:500]
                break
    report(passed=passed, why=why)
    os._exit(0)
'''
"""Run in the sandbox: reports what the command did, and then what the tests say, a line of JSON each."""
