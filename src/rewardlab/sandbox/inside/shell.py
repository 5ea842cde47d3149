"""The first process of a shell: unpacks the files, runs a command, packs the files, and only then reads the tests and runs them.

It is sent to the sandbox as text, as a program whose `main` is called. It reports a line of JSON twice: what the command did, and
what the tests say.
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import select
import signal
import stat
import subprocess
import time
import zlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NoReturn

AT_THE_END = """unset BASH_ENV
trap '{ printf "%s\\0" "$PWD"; for REPLY in $(compgen -e); do printf "%s=%s\\0" "$REPLY" "${!REPLY}"; done; } >&9 2>/dev/null' EXIT
"""
"""What bash reads first: at its end it tells its folder and its exported variables."""
TELLS = 9
"""The descriptor on which it tells them."""
TOLD = 1 << 16
"""Bytes of what it tells that are read."""
VARIABLES = 1 << 14
"""The most characters of variables that are kept: if there are more, those before the command stay."""
WHY = 500
"""Characters of a reason."""


def main(asked: str) -> NoReturn:
    """asked: as JSON, the files, folder and variables of a session, the command or null, and its limits."""
    wanted = json.loads(asked)
    shell = Shell()
    unpack(shell.home, wanted["files"])
    os.chdir(shell.home)
    seen, folder, variables = Seen(wanted["seen"]), wanted["folder"], wanted["variables"]
    code: int | None = 0
    if wanted["command"] is not None:
        code, told = shell.run(wanted["command"], folder, variables, wanted["seconds"], seen)
        folder, variables = shell.state(told, folder, variables)
    output = seen.text()
    if code is None:
        output, code = output + f"\n[killed after {wanted['seconds']:g} s]", 124
    try:
        files = packed(shell.home, wanted["most"])
    except (OverflowError, RecursionError, OSError):
        why = f"its files would take more than {wanted['most']} bytes, or cannot be read"
        shell.report(output=output, files=None, why=why)
        os._exit(0)
    shell.report(output=output, code=code, files=files, folder=folder, variables=variables)
    with open(shell.tests) as file:
        tests = json.loads(file.read())
    if tests is not None:
        os.environ.clear()
        os.environ.update(shell.env)
        os.chdir(shell.home)
        passed, why = python_tests(tests) if isinstance(tests, str) else command_tests(shell, tests)
        shell.report(passed=passed, why=why)
    os._exit(0)


class Shell:
    """Where the files are, what every command has, and what none has: where this process reports, and reads the tests."""

    def __init__(self) -> None:
        isolated = os.access("/tmp", os.W_OK) and os.getpid() == 1
        # without isolation, this program's own folder
        folder = "/tmp" if isolated else os.path.abspath(".")
        self.home, self.rc = os.path.join(folder, "home"), os.path.join(folder, ".rc")
        self.env = {
            "PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": self.home, "LANG": "C.UTF-8", "TZ": "UTC", "TERM": "dumb",
            "USER": "user",
        }  # fmt: skip
        # what is started has neither of these, and nothing for its 0, 1 and 2
        self.reports, self.tests = os.dup(1), os.dup(0)
        self.nothing = os.open("/dev/null", os.O_RDWR)
        for standard in (0, 1, 2):
            os.dup2(self.nothing, standard)
        # a handler, which what is started does not get, so that no command can interrupt this process
        signal.signal(signal.SIGINT, lambda *_: None)

    def report(self, **said: Any) -> None:
        data = (json.dumps(said) + "\n").encode()
        while data:
            data = data[os.write(self.reports, data) :]

    def run(
        self, command: str, folder: str, variables: Mapping[str, str], seconds: float, seen: Seen, ask_state: bool = True
    ) -> tuple[int | None, bytes]:
        """The exit code of a command (None: it was killed), and the state that bash tells at its end."""
        with open(self.rc, "w") as file:
            file.write(AT_THE_END)
        env = {**self.env, **variables, **({"BASH_ENV": self.rc} if ask_state else {})}
        cwd = os.path.normpath(os.path.join(self.home, folder))
        if not os.path.isdir(cwd):
            cwd = self.home
        output, into = os.pipe()
        state, tells = os.pipe()
        process = subprocess.Popen(
            ["/bin/bash", "-c", command], stdin=self.nothing, stdout=into, stderr=into, cwd=cwd, env=env,
            start_new_session=True, preexec_fn=lambda: os.dup2(tells, TELLS), pass_fds=(TELLS,),
        )  # fmt: skip
        for end in (into, tells):
            os.close(end)
        told = b""
        for end, data in _until_it_ends(process, (output, state), seconds):
            if end == output:
                seen.add(data)
            else:
                told = (told + data)[:TOLD]
        # known here if it has ended: what is killed below has no code
        code = process.returncode
        kill_all(process.pid)
        for end in (output, state):
            os.close(end)
        return code, told

    def state(self, told: bytes, folder: str, variables: Mapping[str, str]) -> tuple[str, Mapping[str, str]]:
        """The folder and variables after a command, from what bash told; those before it where it told nothing."""
        first, *rest = told.decode(errors="replace").split("\0")
        if not rest:
            return folder, variables
        found = dict(line.split("=", 1) for line in rest if "=" in line)
        of_bash = ("_", "PWD", "OLDPWD", "SHLVL", "BASH_ENV")
        own = {k: v for k, v in found.items() if self.env.get(k) != v and k not in of_bash}
        return os.path.relpath(first, self.home), own if sum(map(len, [*own, *own.values()])) < VARIABLES else variables


def _until_it_ends(process: subprocess.Popen, ends: Sequence[int], seconds: float) -> Iterator[tuple[int, bytes]]:
    """What comes through these pipes until a process has ended and they are empty, or the time is over."""
    due, open_ends = time.monotonic() + seconds, set(ends)
    while time.monotonic() < due:
        ended = process.poll() is not None
        wait = 0 if ended else min(0.05, max(0, due - time.monotonic()))
        # with no pipe left it only waits
        ready = select.select(list(open_ends), [], [], wait)[0]
        for end in ready:
            if data := os.read(end, 1 << 16):
                yield end, data
            else:
                open_ends.discard(end)
        # what it has started may hold the pipe for ever
        if ended and not ready:
            return


def kill_all(process: int) -> None:
    """Kill a process with all that it has started; as the first process of a namespace: all but this one."""
    if os.getpid() != 1:
        with contextlib.suppress(OSError):
            os.killpg(process, signal.SIGKILL)
        return
    # at once, so that none can start another
    with contextlib.suppress(ProcessLookupError):
        os.kill(-1, signal.SIGKILL)
    with contextlib.suppress(ChildProcessError):
        while True:
            os.waitpid(-1, 0)


class Seen:
    """The beginning and the end of what comes through a pipe."""

    def __init__(self, most: int):
        self.most, self.head, self.tail, self.all = most // 2, b"", b"", 0

    def add(self, data: bytes) -> None:
        self.all += len(data)
        room = self.most - len(self.head)
        self.head += data[:room]
        self.tail = (self.tail + data[room:])[-self.most :]

    def text(self) -> str:
        left = self.all - len(self.head) - len(self.tail)
        between = f"\n[... {left} bytes ...]\n".encode() if left else b""
        return (self.head + between + self.tail).decode(errors="replace")


# ---- files -----------------------------------------------------------------------------------------------------------


def unpack(home: str, text: str) -> None:
    """Make the folder `home` of files as `packed` gives them."""
    os.mkdir(home, 0o700)
    last = []
    for name, kind, mode, when, data in json.loads(zlib.decompress(base64.b64decode(text))):
        path = os.path.join(home, name)
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
    # only now: writing into a folder changes its time, and may need a right that it has not
    for path, mode, when in reversed(last):
        os.utime(path, ns=(when, when))
        os.chmod(path, mode)


def packed(home: str, most: int) -> str:
    """The files, folders and links below a folder, as a text. Raises OverflowError if they take more than `most` bytes."""
    entries: list[list[Any]] = []
    left = most
    for path, name, about in _walk(home, ""):
        mode, when, kind, data = stat.S_IMODE(about.st_mode), about.st_mtime_ns, "", b""
        left -= 256 + len(name)
        if stat.S_ISLNK(about.st_mode):
            kind, data = "link", os.fsencode(os.readlink(path))
        elif stat.S_ISDIR(about.st_mode):
            kind = "folder"
        elif stat.S_ISREG(about.st_mode):
            left -= about.st_size
            kind, data = "file", _contents(path, mode, about.st_size) if left >= 0 else b""
        if left < 0:
            raise OverflowError
        if kind:
            entries.append([name, kind, mode, when, base64.b64encode(data).decode()])
    return base64.b64encode(zlib.compress(json.dumps(entries).encode())).decode()


def _walk(folder: str, under: str) -> Iterator[tuple[str, str, os.stat_result]]:
    """Path, name and state of all that is below a folder, each folder before what it holds."""
    for entry in sorted(os.scandir(folder), key=lambda e: e.name):
        about = os.lstat(entry.path)
        yield entry.path, under + entry.name, about
        if stat.S_ISDIR(about.st_mode):
            # a command may have taken the right to read it
            os.chmod(entry.path, 0o700)
            yield from _walk(entry.path, under + entry.name + "/")
            os.utime(entry.path, ns=(about.st_mtime_ns, about.st_mtime_ns))
            os.chmod(entry.path, stat.S_IMODE(about.st_mode))


def _contents(path: str, mode: int, size: int) -> bytes:
    if not mode & 0o400:
        os.chmod(path, mode | 0o400)
    with open(path, "rb") as file:
        data = file.read(size)
    os.chmod(path, mode)
    return data


# ---- tests -----------------------------------------------------------------------------------------------------------


def python_tests(source: str) -> tuple[bool, str]:
    """Whether a program runs to its end, and its functions test_... too; and why not."""
    space: dict[str, Any] = {"__name__": "__tests__"}
    try:
        exec(compile(source, "<tests>", "exec"), space)
        for name, what in list(space.items()):
            if name.startswith("test_") and callable(what):
                what()
    except AssertionError as problem:
        return False, f"a test fails: {problem}"[:WHY]
    except BaseException as problem:
        return False, f"{type(problem).__name__}: {problem}"[:WHY]
    return True, ""


def command_tests(shell: Shell, commands: Sequence[str]) -> tuple[bool, str]:
    """Whether every command ends with code 0, and which does not."""
    for command in commands:
        # the limits of the sandbox end it
        code, _ = shell.run(command, ".", {}, 1000, Seen(1000), ask_state=False)
        if code != 0:
            return False, f"exit code {code}: {command}"[:WHY]
    return True, ""
