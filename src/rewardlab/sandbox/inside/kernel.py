"""System calls of Linux that Python's library lacks. Each raises OSError where the kernel refuses."""

from __future__ import annotations

import ctypes
import os
import platform
import signal
from collections.abc import Sequence

NEW_MOUNTS, NEW_HOST, NEW_IPC, NEW_USER, NEW_PIDS, NEW_NET, NEW_CGROUP = (
    0x0002_0000, 0x0400_0000, 0x0800_0000, 0x1000_0000, 0x2000_0000, 0x4000_0000, 0x0200_0000,
)  # fmt: skip
READ_ONLY, NO_SUID, NO_DEVICES, NO_EXEC, REMOUNT, BIND, RECURSIVE, PRIVATE = (
    1, 2, 4, 8, 32, 0x1000, 0x4000, 0x4_0000,
)  # fmt: skip
DETACH = 2
_PARENT_DEATH, _SET_SECCOMP, _DROP_BOUND, _NO_NEW_PRIVILEGES, _FILTER = 1, 22, 24, 38, 2
_CAPABILITIES_V3 = 0x2008_0522
_CURRENT_FOLDER, _RECURSIVE_PATH = -100, 0x8000
_NUMBERS = {"x86_64": {"clone": 56, "pivot_root": 155}, "aarch64": {"clone": 220, "pivot_root": 41}}
_MOUNT_SETATTR = 442

machine = platform.machine()
_numbers = _NUMBERS.get(machine, {})
_libc = ctypes.CDLL(None, use_errno=True)
# looked up once here, and not in each program after the fork
_syscall, _unshare, _mount, _umount2, _sethostname, _prctl_, _capset = (
    getattr(_libc, name) for name in ("syscall", "unshare", "mount", "umount2", "sethostname", "prctl", "capset")
)
_before_fork, _after_fork_child, _after_fork_parent = (
    getattr(ctypes.pythonapi, f"PyOS_{name}") for name in ("BeforeFork", "AfterFork_Child", "AfterFork_Parent")
)


class _Instruction(ctypes.Structure):
    _fields_ = (("code", ctypes.c_uint16), ("if_true", ctypes.c_uint8), ("if_false", ctypes.c_uint8), ("value", ctypes.c_uint32))


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_uint16), ("instructions", ctypes.POINTER(_Instruction)))


class _MountAttributes(ctypes.Structure):
    _fields_ = tuple((name, ctypes.c_uint64) for name in ("set", "clear", "propagation", "user_namespace"))


def unshare(namespaces: int) -> None:
    _done(_unshare(namespaces))


def clone(namespaces: int) -> int:
    """fork() into new namespaces: 0 in the child, its process id in the parent. For processes with one thread."""
    _before_fork()
    process = _syscall(_numbers["clone"], namespaces | int(signal.SIGCHLD), 0, 0, 0, 0)
    error = ctypes.get_errno()
    if process == 0:
        _after_fork_child()
    else:
        _after_fork_parent()
    if process < 0:
        raise OSError(error, os.strerror(error))
    return process


def mount(source: str, target: str, kind: str = "", flags: int = 0, options: str = "") -> None:
    _done(_mount(source.encode(), target.encode(), kind.encode() or None, ctypes.c_ulong(flags), options.encode() or None))


def read_only(target: str, flags: int) -> None:
    """Set flags on a mount and on all below it."""
    attributes = _MountAttributes(set=flags)
    path = ctypes.c_char_p(target.encode())
    here, below = ctypes.c_int(_CURRENT_FOLDER), ctypes.c_uint(_RECURSIVE_PATH)
    _done(_syscall(_MOUNT_SETATTR, here, path, below, ctypes.byref(attributes), ctypes.c_size_t(ctypes.sizeof(attributes))))


def pivot_root(new: str, old: str) -> None:
    _done(_syscall(_numbers["pivot_root"], ctypes.c_char_p(new.encode()), ctypes.c_char_p(old.encode())))


def unmount(target: str) -> None:
    _done(_umount2(target.encode(), DETACH))


def set_host_name(name: str) -> None:
    _done(_sethostname(name.encode(), ctypes.c_size_t(len(name))))


def die_with_parent() -> None:
    _prctl(_PARENT_DEATH, int(signal.SIGKILL))


def gain_no_privileges() -> None:
    """Neither this process nor its children can gain a capability that they do not have now."""
    capability = 0
    while _prctl_(_DROP_BOUND, ctypes.c_ulong(capability), 0, 0, 0) == 0:
        capability += 1
    _prctl(_NO_NEW_PRIVILEGES, 1)


def drop_capabilities() -> None:
    header, none = (ctypes.c_uint32 * 2)(_CAPABILITIES_V3, 0), (ctypes.c_uint32 * 6)()
    _done(_capset(header, none))


class Filter:
    """A BPF program of rows (code, rows to skip if true, if false, value), which filters further system calls."""

    def __init__(self, rows: Sequence[tuple[int, int, int, int]]):
        self._rows = (_Instruction * len(rows))(*(_Instruction(*row) for row in rows))
        self.program = _Program(len(rows), self._rows)


def filter_calls(by: Filter) -> None:
    _prctl(_SET_SECCOMP, _FILTER, ctypes.addressof(by.program))


def _prctl(option: int, *values: int) -> None:
    padded = [ctypes.c_ulong(value) for value in (*values, *[0] * (4 - len(values)))]
    _done(_prctl_(option, *padded))


def _done(result: int) -> None:
    if result < 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))
