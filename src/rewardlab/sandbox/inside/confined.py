"""A program of ours that reads what a model wrote, such as a browser, confined with all processes that it starts.

It sees the shared libraries, the folders that it was given, a /tmp in memory and its own processes; it has a network without even
a loopback, an id without rights, and no way to gain any. Other than code that a model wrote, it may make sockets, threads and
namespaces within these: a browser needs them to confine its own parts. Its first process ends with its caller, and all others
with it.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import signal
import sys
from collections.abc import Mapping, Sequence

from . import isolation, kernel

OPEN = 5
"""Descriptors that the program keeps: the standard three, and two to talk with its caller."""
SAID = 5
"""Where a dot says that the program is about to run, and all else why it does not; closed when it runs."""
_HIGH = 100


def main(command: Sequence[str], folders: Sequence[str], limits: Mapping[str, float]) -> None:
    """Run the command until it ends. limits: of bytes, by resource ("DATA", "FSIZE"), and "folder", of /tmp."""
    os.set_inheritable(SAID, False)
    try:
        _alone(command, folders, limits)
    except Exception as problem:
        os.write(SAID, str(problem)[:1000].encode(errors="replace"))
        os._exit(1)


def _alone(command: Sequence[str], folders: Sequence[str], limits: Mapping[str, float]) -> None:
    isolation.on_this_machine()
    kernel.die_with_parent()
    # if memory runs out, the kernel should kill this before the process that trains
    isolation.write("/proc/self/oom_score_adj", "1000")
    own_ids = isolation.enter_user_namespace()
    spaces = kernel.NEW_PIDS | kernel.NEW_MOUNTS | kernel.NEW_NET | kernel.NEW_IPC | kernel.NEW_HOST
    with isolation.step("make process, mount, network, IPC and host-name namespaces", isolation.FORBIDS):
        first = kernel.clone(spaces)
    if first:
        os.closerange(0, SAID)
        os.close(SAID)
        os._exit(os.waitstatus_to_exitcode(os.waitpid(first, 0)[1]) & 0xFF)
    # of this namespace it is the first process: when it ends, the kernel ends all others
    kernel.die_with_parent()
    _enclose(folders, limits, own_ids)
    program = os.fork()
    if program == 0:
        _become(command)
    os.closerange(0, OPEN)
    os.close(SAID)
    ended = 0
    while ended != program:
        # orphans of the program are this process's to wait for
        ended, _ = os.wait()
    os._exit(0)


def _enclose(folders: Sequence[str], limits: Mapping[str, float], own_ids: bool) -> None:
    kernel.set_host_name("sandbox")
    with isolation.step("build a root of read-only mounts", "mount_setattr needs Linux 5.12"):
        isolation.build_root(isolation.existing_folders([*isolation.LIBRARIES, *folders]), processes=True)
        space = f"size={int(limits['folder'])},mode=0700"
        owner = isolation.PROGRAM if own_ids else 0
        kernel.mount("tmpfs", isolation.FOLDER, "tmpfs", isolation.SAFE | kernel.NO_EXEC, f"{space},uid={owner},gid={owner}")
    os.chdir(isolation.FOLDER)
    isolation.set_limits({name: amount for name, amount in limits.items() if name != "folder"} | {"CORE": 0})
    kernel.gain_no_privileges()
    if own_ids:
        os.setgroups([])
        os.setresgid(owner, owner, owner)
        os.setresuid(owner, owner, owner)
    else:
        # browsers refuse to run as root, be it root of a namespace alone
        _take_id(isolation.PROGRAM)
    kernel.drop_capabilities()
    # a change of ids takes the right to be killed with its parent away
    kernel.die_with_parent()


def _take_id(user: int) -> None:
    with isolation.step("make a user namespace within another"):
        kernel.unshare(kernel.NEW_USER)
        isolation.write("/proc/self/setgroups", "deny")
        isolation.write("/proc/self/uid_map", f"{user} 0 1\n")
        isolation.write("/proc/self/gid_map", f"{user} 0 1\n")


def _become(command: Sequence[str]) -> None:
    kernel.die_with_parent()
    for number in (signal.SIGPIPE, signal.SIGINT):
        signal.signal(number, signal.SIG_DFL)
    with contextlib.suppress(OSError):
        os.setsid()
    os.write(SAID, b".")
    os.execve(command[0], list(command), {"HOME": isolation.FOLDER, "TMPDIR": isolation.FOLDER, "LANG": "C.UTF-8", "TZ": "UTC"})


def run() -> None:
    """As a process: what to run is the last argument, as JSON. pipes: descriptors to become 3, 4 and `SAID`."""
    asked = json.loads(sys.argv[-1])
    # first out of the way, which dup2 would otherwise overwrite before they are copied
    moved = [fcntl.fcntl(pipe, fcntl.F_DUPFD, _HIGH) for pipe in asked["pipes"]]
    for descriptor, pipe in enumerate(moved, 3):
        os.dup2(pipe, descriptor)
    os.closerange(SAID + 1, 1 << 20)
    main(asked["command"], asked["folders"], asked["limits"])
