"""The isolation of a worker, and within it that of each program.

A worker enters user, mount, network, IPC and host-name namespaces once: a root of read-only mounts that holds Python's library,
shared libraries and three devices, and a network without even a loopback. No program can leave anything there, as no file there
can be written, and `calls` refuses what could remain in the kernel (sockets, shared memory, keys, message queues). Every program
gets process and mount namespaces of its own, with an empty folder in memory; they end with its first process.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import os
import resource
import socket
import sys
import sysconfig
from collections.abc import Callable, Iterator, Mapping, Sequence

from . import calls, kernel

FOLDER = "/tmp"
"""The working folder of a program, as the program sees it."""
COMMANDS = ("/bin", "/usr/bin", "/etc/alternatives")
"""Folders of programs, and of links to them, which only the workers of shells see."""
LIBRARIES = ("/lib", "/lib64", "/usr/lib", "/usr/lib64", "/usr/share/zoneinfo")
DEVICES = ("null", "zero", "urandom")
PROGRAM, CHECKER = 1, 2
"""User ids within the namespace, where there may be several. 0 is the worker's."""
FILES_IN_FOLDER = 1024
FORBIDS = "a security module may forbid it, such as AppArmor on Ubuntu"
SAFE = kernel.NO_SUID | kernel.NO_DEVICES
_FIRST_IDS = (2_000_000_000, 65_533)


class Missing(Exception):
    """What this machine lacks, as a sentence."""


@contextlib.contextmanager
def step(name: str, hint: str = "") -> Iterator[None]:
    try:
        yield
    except OSError as problem:
        raise Missing(f"cannot {name}: {problem.strerror or problem}{hint and f' ({hint})'}") from None


def enter(commands: bool = False) -> bool:
    """Isolate this process, the worker. Returns whether programs get user ids of their own.

    commands: its programs may run those of this machine's `COMMANDS`, and their own.
    """
    on_this_machine()
    several = enter_user_namespace()
    with step("make mount, network, IPC and host-name namespaces", FORBIDS):
        kernel.unshare(kernel.NEW_MOUNTS | kernel.NEW_NET | kernel.NEW_IPC | kernel.NEW_HOST)
        kernel.set_host_name("sandbox")
    with step("build a root of read-only mounts", "mount_setattr needs Linux 5.12"):
        build_root(existing_folders([*_folders_of_python(), *(COMMANDS if commands else ())]))
    # a filter of system calls needs this where the process has no capabilities
    kernel.gain_no_privileges()
    filter_of_calls(commands)
    return several


def on_this_machine() -> None:
    if not sys.platform.startswith("linux") or kernel.machine not in calls.MACHINES:
        raise Missing(f"the sandbox needs Linux on {' or '.join(calls.MACHINES)}, this is {sys.platform} on {kernel.machine}")


def enter_user_namespace() -> bool:
    """Returns whether there are several user ids in it."""
    user, group = os.geteuid(), os.getegid()
    first_id = _spare_ids()
    ids = {"uid_map": f"0 {user} 1\n", "gid_map": f"0 {group} 1\n"}
    if first_id is not None:
        ids = {name: line + f"{PROGRAM} {first_id} 2\n" for name, line in ids.items()}
    wake_read, wake = os.pipe()
    # ids are mapped from outside: within the new namespace this process lacks the right to
    helper = os.fork()
    if helper == 0:
        os.close(wake)
        os.read(wake_read, 1)
        os._exit(_give_ids(os.getppid(), ids, several=first_id is not None))
    with step("make a user namespace", "see /proc/sys/user/max_user_namespaces, kernel.unprivileged_userns_clone"):
        try:
            kernel.unshare(kernel.NEW_USER)
        finally:
            os.close(wake)
            os.close(wake_read)
            refused = os.waitpid(helper, 0)[1]
    if refused:
        raise Missing("cannot set the user ids of a user namespace (see /proc/sys/kernel/apparmor_restrict_unprivileged_userns)")
    return first_id is not None


def _give_ids(process: int, ids: Mapping[str, str], several: bool) -> int:
    try:
        if not several:
            write(f"/proc/{process}/setgroups", "deny")
        for name, lines in ids.items():
            write(f"/proc/{process}/{name}", lines)
    except OSError:
        return 1
    return 0


def _spare_ids() -> int | None:
    """The first of two unused ids, if this process may map them; programs that root starts must not run as root."""
    # only root may map ids other than its own
    if os.geteuid() != 0:
        return None
    with open("/proc/self/uid_map") as users, open("/proc/self/gid_map") as groups:
        ranges = [[(int(a), int(a) + int(n)) for a, _, n in map(str.split, file)] for file in (users, groups)]
    usable = (
        first
        for first in _FIRST_IDS
        if all(any(a <= first and first + 2 <= b for a, b in ranges_of_file) for ranges_of_file in ranges)
    )
    return next(usable, None)


def build_root(shown: Sequence[tuple[str, str, str]], processes: bool = False) -> None:
    """Mount two tmpfs, one to reach the host's folders from, the other as the new root; then unmount the host.

    processes: with a /proc of this process's namespace.
    """
    # what Python looks for on disk must be found before the host is gone
    packages = _packages()
    kernel.mount("none", "/", "", kernel.RECURSIVE | kernel.PRIVATE)
    kernel.mount("tmpfs", "/tmp", "tmpfs", SAFE, "mode=0755")
    os.mkdir("/tmp/host")
    kernel.pivot_root("/tmp", "/tmp/host")
    os.mkdir("/new_root")
    kernel.mount("tmpfs", "/new_root", "tmpfs", SAFE, "mode=0755")
    for path, link, real in shown:
        _mount_folder(path, link, real)
    for folder in packages:
        if os.path.isdir("/new_root" + folder):
            kernel.mount("tmpfs", "/new_root" + folder, "tmpfs", SAFE, "mode=0755,size=4k")
    os.makedirs("/new_root" + FOLDER, exist_ok=True)
    os.mkdir("/new_root/dev")
    if processes:
        os.mkdir("/new_root/proc")
    kernel.read_only("/new_root", kernel.READ_ONLY | SAFE)
    if processes:
        # while the host's can still be seen: the kernel refuses one that would show more
        kernel.mount("proc", "/new_root/proc", "proc", SAFE | kernel.NO_EXEC)
    kernel.mount("tmpfs", "/new_root/dev", "tmpfs", kernel.NO_SUID, "mode=0755,size=4k")
    for name in DEVICES:
        write(f"/new_root/dev/{name}", "")
        kernel.mount(f"/host/dev/{name}", f"/new_root/dev/{name}", "", kernel.BIND)
    kernel.read_only("/new_root/dev", kernel.READ_ONLY | kernel.NO_SUID)
    os.chdir("/new_root")
    # old and new root are stacked at one place, so that the unmount takes away the host
    kernel.pivot_root(".", ".")
    kernel.unmount(".")
    os.chdir("/")


def _folders_of_python() -> list[str]:
    python = [os.path.join(prefix, sys.platlibdir) for prefix in (sys.base_prefix, sys.base_exec_prefix)]
    return [*LIBRARIES, *python, *(sysconfig.get_path(name) for name in ("stdlib", "platstdlib"))]


def existing_folders(paths: Sequence[str]) -> list[tuple[str, str, str]]:
    """Those of the host's folders that there are: path, link target or "", real path; none lies in another."""
    existing = sorted({path for path in paths if os.path.isdir(path)})
    # a folder inside another comes with it
    outermost = [path for path in existing if not any(path.startswith(other + "/") for other in existing)]
    return [(path, os.readlink(path) if os.path.islink(path) else "", os.path.realpath(path)) for path in outermost]


def _mount_folder(path: str, link: str, real: str) -> None:
    os.makedirs("/new_root" + os.path.dirname(path), exist_ok=True)
    if link:
        os.symlink(link, "/new_root" + path)
        return
    os.mkdir("/new_root" + path)
    kernel.mount("/host" + real, "/new_root" + path, "", kernel.BIND | kernel.RECURSIVE)


def _packages() -> list[str]:
    """Folders of installed packages, which may lead to projects: empty folders are mounted over them."""
    library = os.path.dirname(sysconfig.get_path("stdlib"))
    kinds = ("site-packages", "dist-packages")
    return [os.path.join(folder, kind) for folder in (sysconfig.get_path("stdlib"), f"{library}/python3") for kind in kinds]


def write(path: str, text: str) -> None:
    with open(path, "w") as file:
        file.write(text)


# ---- one program -----------------------------------------------------------------------------------------------------


def confine(user: int, limits: Mapping[str, float], own_ids: bool, commands: bool = False) -> None:
    """Isolate this process, the first of its namespaces. What runs in it next may be hostile.

    own_ids: its user id is its own.  limits: as in `sandbox.Limits`.  commands: it may start programs, also those that it writes,
    which get its limits, rights and filter.
    """
    owner = user if own_ids else 0
    space = f"size={int(limits['folder'])},nr_inodes={FILES_IN_FOLDER},mode=0700,uid={owner},gid={owner}"
    kernel.mount("tmpfs", FOLDER, "tmpfs", SAFE if commands else SAFE | kernel.NO_EXEC, space)
    os.chdir(FOLDER)
    # where ids are shared, the worker and the checker count too
    limit(limits, others=0 if own_ids else 2)
    if own_ids:
        os.setgroups([])
        os.setresgid(owner, owner, owner)
        os.setresuid(owner, owner, owner)
    # not before the mounts and ids above, which need capabilities
    kernel.drop_capabilities()
    kernel.die_with_parent()
    kernel.filter_calls(filter_of_calls(commands))


@functools.cache
def filter_of_calls(commands: bool = False) -> kernel.Filter:
    """Made once, by the worker."""
    return kernel.Filter(calls.program(kernel.machine, commands))


def limit(limits: Mapping[str, float], others: int | None) -> None:
    """others: processes that count towards this one's limit; None: too many to set one."""
    amounts = {
        "AS": limits["memory"], "CPU": limits["cpu_seconds"], "NOFILE": limits["files"],
        "FSIZE": max(limits["folder"], limits["output"]), "CORE": 0, "MEMLOCK": 0, "MSGQUEUE": 0, "NICE": 0, "RTPRIO": 0,
    }  # fmt: skip
    if others is not None:
        amounts["NPROC"] = limits["processes"] + others
    set_limits(amounts)


def set_limits(amounts: Mapping[str, float]) -> None:
    """amounts: by the resource's name."""
    for name, amount in amounts.items():
        which = getattr(resource, f"RLIMIT_{name}", None)
        if which is not None:
            hard_limit = resource.getrlimit(which)[1]
            # a limit may be lowered but not raised above the hard limit
            value = int(amount) if hard_limit == resource.RLIM_INFINITY else min(int(amount), hard_limit)
            resource.setrlimit(which, (value, value))


def probe(commands: bool = False) -> None:
    """Run in isolation: try what must fail and what must work, and print every surprise."""
    forbidden: dict[str, Callable[[], object]] = {
        "start more processes than it may": os.fork,
        "open a socket": socket.socket,
        "write outside of its folder": lambda: os.open("/new", os.O_CREAT | os.O_WRONLY),
        "mount": lambda: kernel.mount("tmpfs", FOLDER, "tmpfs"),
        "see other processes": lambda: os.stat("/proc/self"),
        "see /etc": lambda: os.stat("/etc"),
    }
    needed: dict[str, Callable[[], object]] = {
        "import from Python's library": lambda: importlib.import_module("colorsys"),
        "write": lambda: write("file", ""),
    }
    if commands:
        forbidden["see /etc"] = lambda: os.stat("/etc/passwd")
        needed["find a shell"] = lambda: os.stat("/bin/bash")
    else:
        forbidden["see programs"] = lambda: os.stat("/bin/sh")
    allowed = [name for name, act in forbidden.items() if _works(act)]
    refused = [name for name, act in needed.items() if not _works(act)]
    problems = [f"a program in the sandbox could {name}" for name in allowed] + [f"it could not {name}" for name in refused]
    os.write(1, "; ".join(problems).encode())
    os._exit(0)


def _works(act: Callable[[], object]) -> bool:
    try:
        child = act()
    except (OSError, ImportError):
        return False
    if child == 0 and act is os.fork:
        os._exit(0)
    return True
