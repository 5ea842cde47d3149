"""The allowlist of system calls.

A program in the sandbox needs no sockets, other programs, mounts, namespaces, keys, tracing, memory of other processes,
performance counters, BPF or io_uring, so none of these are listed. A call that is not listed fails with EPERM, and the program
continues. Numbers are of x86_64 and aarch64, as in Linux's asm/unistd_64.h and asm-generic/unistd.h.
"""

from __future__ import annotations

from collections.abc import Sequence

# name = number on x86_64 / on aarch64, which lacks the older ones.
CALLS = """
read=0/63 write=1/64 futex=202/98 close=3/57 openat=257/56 newfstatat=262/79 fstat=5/80 lseek=8/62 mmap=9/222 munmap=11/215
brk=12/214 mprotect=10/226 mremap=25/216 madvise=28/233 rt_sigaction=13/134 rt_sigprocmask=14/135 rt_sigreturn=15/139
pread64=17/67 pwrite64=18/68 readv=19/65 writev=20/66 preadv=295/69 pwritev=296/70 access=21/ faccessat=269/48
faccessat2=439/439 pipe=22/ pipe2=293/59 select=23/ pselect6=270/72 poll=7/ ppoll=271/73 epoll_create=213/
epoll_create1=291/20 epoll_ctl=233/21 epoll_wait=232/ epoll_pwait=281/22 epoll_pwait2=441/441 eventfd2=290/19
timerfd_create=283/85 timerfd_settime=286/86 timerfd_gettime=287/87 sched_yield=24/124 msync=26/227 dup=32/23 dup2=33/
dup3=292/24 pause=34/ nanosleep=35/101 clock_nanosleep=230/115 clock_gettime=228/113 clock_getres=229/114
gettimeofday=96/169 time=201/ times=100/153 alarm=37/ getitimer=36/102 setitimer=38/103 getpid=39/172 getppid=110/173
gettid=186/178 getpgid=121/155 getpgrp=111/ setpgid=109/154 getsid=124/156 setsid=112/157 getuid=102/174 geteuid=107/175
getgid=104/176 getegid=108/177 getresuid=118/148 getresgid=120/150 getgroups=115/158 fork=57/ vfork=58/ exit=60/93
exit_group=231/94 wait4=61/260 waitid=247/95 kill=62/129 tkill=200/130 tgkill=234/131 uname=63/160 fcntl=72/25 flock=73/32
fsync=74/82 fdatasync=75/83 truncate=76/45 ftruncate=77/46 fallocate=285/47 fadvise64=221/223 getdents64=217/61 getcwd=79/17
chdir=80/49 fchdir=81/50 open=2/ creat=85/ stat=4/ lstat=6/ statx=332/291 readlink=89/ readlinkat=267/78 rename=82/
renameat=264/38 renameat2=316/276 mkdir=83/ mkdirat=258/34 rmdir=84/ link=86/ linkat=265/37 unlink=87/ unlinkat=263/35
symlink=88/ symlinkat=266/36 chmod=90/ fchmod=91/52 fchmodat=268/53 umask=95/166 utime=132/ utimes=235/ utimensat=280/88
futimesat=261/ statfs=137/43 fstatfs=138/44 getrlimit=97/163 setrlimit=160/164 prlimit64=302/261 getrusage=98/165
sysinfo=99/179 sigaltstack=131/132 rt_sigpending=127/136 rt_sigsuspend=130/133 rt_sigtimedwait=128/137
sched_getaffinity=204/123 sched_getparam=143/121 sched_getscheduler=145/120 sched_get_priority_max=146/125
sched_get_priority_min=147/126 getpriority=140/141 set_tid_address=218/96 set_robust_list=273/99 get_robust_list=274/100
rseq=334/293 membarrier=324/283 getrandom=318/278 getcpu=309/168 sendfile=40/71 copy_file_range=326/285 shutdown=48/210
recvfrom=45/207 recvmsg=47/212 restart_syscall=219/128 close_range=436/436 futex_waitv=449/449
"""

# What bash and other commands need beside these: to start a program, attributes that ls and cp ask for and copy, timers,
# and whether standard input is a connection, by which bash decides what it reads first.
COMMANDS = """
execve=59/221 getxattr=191/8 lgetxattr=192/9 fgetxattr=193/10 listxattr=194/11 llistxattr=195/12 flistxattr=196/13
setxattr=188/5 lsetxattr=189/6 fsetxattr=190/7 removexattr=197/14 lremovexattr=198/15 fremovexattr=199/16
fchmodat2=452/452 timer_create=222/107 timer_settime=223/110 timer_gettime=224/108 timer_delete=226/111 getpeername=52/205
"""

MACHINES = {"x86_64": (0, 0xC000_003E), "aarch64": (1, 0xC000_00B7)}
"""The column of CALLS, and the kernel's name for the instruction set."""

_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_ALLOW, _KILL, _REFUSE, _UNKNOWN = 0x7FFF_0000, 0x8000_0000, 0x0005_0001, 0x0005_0026
_NUMBER, _MACHINE, _ARGUMENTS = 0, 4, 16
_OTHER_NUMBERS = 0x4000_0000
"""From this number on, x86_64 has the same calls a second time (the x32 ABI)."""
_NAMESPACES = 0x7E02_0080
_UNIX = 1
_ARCH_PRCTL, _SET_THREAD_AREA = 158, 0x1002
"""How a program on x86_64 says where its thread's data lies, which its loader does first of all."""
_HARMLESS_IOCTLS = (0x5401, 0x541B, 0x5421, 0x5450, 0x5451)
"""Ask for a terminal's settings, or how much can be read; do not block; keep or close over exec."""

Row = tuple[int, int, int, int]


def program(machine: str, commands: bool = False) -> list[Row]:
    """The BPF program: rows of (code, rows to skip if true, if false, value).  commands: with what other programs need."""
    column, name = MACHINES[machine]
    listed = CALLS + COMMANDS if commands else CALLS
    numbers = {int(number) for entry in listed.split() if (number := entry.partition("=")[2].split("/")[column])}
    prologue: list[Row] = [
        (_LOAD, 0, 0, _MACHINE), (_EQUAL, 1, 0, name), (_RETURN, 0, 0, _KILL),
        (_LOAD, 0, 0, _NUMBER), (_AT_LEAST, 0, 1, _OTHER_NUMBERS), _REFUSED,
    ]  # fmt: skip
    thread = [(_LOAD, 0, 0, _argument(0)), (_EQUAL, 0, 1, _SET_THREAD_AREA), _ALLOWED, _REFUSED]
    loader = _if_called(_ARCH_PRCTL, thread) if commands and column == 0 else []
    return [*prologue, *loader, *_conditional(column), *_search(_edges(numbers))]


def _edges(numbers: set[int]) -> list[int]:
    """The first numbers of the runs of allowed and of other numbers, in turn."""
    return [number for number in range(max(numbers) + 2) if (number in numbers) != (number - 1 in numbers)]


def _search(edges: Sequence[int], allowed: bool = False) -> list[Row]:
    """A binary search over the edges: the kernel runs it for each possible number whenever a program starts.

    allowed: whether numbers below the first edge are.
    """
    if not edges:
        return [_ALLOWED if allowed else _REFUSED]
    middle = len(edges) // 2
    below = _search(edges[:middle], allowed)
    return [(_AT_LEAST, len(below), 0, edges[middle]), *below, *_search(edges[middle + 1 :], allowed ^ (middle % 2 == 0))]


_ALLOWED: Row = (_RETURN, 0, 0, _ALLOW)
_REFUSED: Row = (_RETURN, 0, 0, _REFUSE)


def _conditional(column: int) -> list[Row]:
    """Calls that are allowed only with some arguments."""
    clone, clone3, ioctl, socketpair, sendto = ((56, 435, 16, 53, 44), (220, 435, 29, 199, 206))[column]
    rows: list[Row] = [(_EQUAL, 0, 1, clone3), (_RETURN, 0, 0, _UNKNOWN)]
    # threads and forks, but no namespaces; clone3 has its flags in memory, which no filter can read
    rows += _if_called(clone, [(_LOAD, 0, 0, _argument(0)), (_ANY_BIT, 0, 1, _NAMESPACES), _REFUSED, _ALLOWED])
    rows += _if_called(socketpair, [(_LOAD, 0, 0, _argument(0)), (_EQUAL, 1, 0, _UNIX), _REFUSED, _ALLOWED])
    # on a connected pair only, never to an address
    no_address = [row for half in (0, 4) for row in ((_LOAD, 0, 0, _argument(4) + half), (_EQUAL, 1, 0, 0), _REFUSED)]
    rows += _if_called(sendto, [*no_address, _ALLOWED])
    allowed_commands: list[Row] = [row for command in _HARMLESS_IOCTLS for row in ((_EQUAL, 0, 1, command), _ALLOWED)]
    return rows + _if_called(ioctl, [(_LOAD, 0, 0, _argument(1)), *allowed_commands, _REFUSED])


def _if_called(number: int, rows: list[Row]) -> list[Row]:
    return [(_EQUAL, 0, len(rows), number), *rows]


def _argument(index: int) -> int:
    """The offset of an argument's lower 32 bits; a filter reads 32 bits at a time."""
    return _ARGUMENTS + 8 * index
