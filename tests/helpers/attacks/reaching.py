"""To reach what lies outside. What a program gets hold of it prints, after the word GOT."""

START = """
import ctypes, os, socket, sys
libc = ctypes.CDLL(None, use_errno=True)
def got(what): return f"GOT {what}"
def worked(result): return got(result) if result >= 0 else "refused"
def reads(*paths):
    for path in paths:
        try:
            if os.path.isdir(path): return got(os.listdir(path))
            with open(path, errors="replace") as file: return got(file.read(10000))
        except OSError: pass
    return "refused"
"""
END = """
def solve(x):
    try: return str(attempt())
    except Exception as problem: return type(problem).__name__
if __name__ == "__main__": print(solve(1))
"""
X86 = {
    "ptrace": 101, "add_key": 248, "keyctl": 250, "bpf": 321, "perf_event_open": 298, "io_uring_setup": 425, "unshare": 272,
    "setns": 308, "process_vm_readv": 310, "memfd_create": 319, "userfaultfd": 323, "open_by_handle_at": 304, "personality": 135,
    "mq_open": 240, "shmget": 29, "mount": 165, "chroot": 161, "pivot_root": 155, "mknod": 133, "clone3": 435, "fsopen": 430,
    "socket": 41, "inotify_init1": 294, "seccomp": 317, "syslog": 103, "sethostname": 170, "modify_ldt": 154,
}  # fmt: skip


def call(name: str, *arguments: str) -> str:
    """A call to the kernel by its number, with nothing between."""
    return f"def attempt(): return worked(libc.syscall({', '.join([str(X86[name]), *arguments])}))"


BODIES = {
    "secret file": "def attempt(): return reads(SECRET, os.path.dirname(SECRET))",
    "environment": "def attempt(): return got(dict(os.environ)) if os.environ else 'refused'",
    "environment in memory": """
def attempt():
    environ = ctypes.POINTER(ctypes.c_char_p).in_dll(libc, "environ")
    found = []
    while environ and environ[len(found)]: found.append(environ[len(found)])
    return found
""",
    "etc": "def attempt(): return reads('/etc/passwd', '/etc/shadow', '/etc/hosts', '/etc')",
    "proc": "def attempt(): return reads('/proc/self/environ', '/proc/1/environ', '/proc/self/mem', '/proc/self/maps', '/proc')",
    "sys": "def attempt(): return reads('/sys/class/net', '/sys')",
    "home": "def attempt(): return reads('/home', '/root/.ssh', os.path.expanduser('~/.bashrc'))",
    "project": "def attempt(): return reads(PROJECT, PROJECT + '/pyproject.toml')",
    "packages": "def attempt():\n    import rewardlab\n    return got(rewardlab.__file__)",
    "kernel's devices": "def attempt(): return reads('/dev/mem', '/dev/kmsg', '/dev/sda', '/dev/vda', '/dev/tty')",
    "host's root": "def attempt(): return reads('/host', '/old', '/new_root', '/../../../etc', '/tmp/../etc')",
    "write outside": """
def attempt():
    for folder in ("/", "/dev", "/usr/lib", os.path.dirname(os.__file__), os.path.dirname(SECRET), PROJECT):
        try: os.close(os.open(os.path.join(folder, "found"), os.O_CREAT | os.O_WRONLY)); return got(folder)
        except OSError: pass
""",
    "change Python": "def attempt():\n    open(os.__file__, 'a').write('#')\n    return got(os.__file__)",
    "link out": "def attempt():\n    os.symlink(SECRET, 'a')\n    return reads('a')",
    "link to the root": "def attempt():\n    os.symlink('/proc/1/root', 'a')\n    return reads('a/etc/passwd', 'a')",
    "hard link": "def attempt():\n    os.link(SECRET, 'a')\n    return reads('a')",
    "IPv4": "def attempt():\n    socket.create_connection(('127.0.0.1', PORT), 1).send(b'x')\n    return got('IPv4')",
    "IPv6": "def attempt():\n    s = socket.socket(socket.AF_INET6)\n    s.connect(('::1', PORT))\n    return got('IPv6')",
    "UDP": """
def attempt():
    socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'x', ('127.0.0.1', PORT))
    return got('UDP')
""",
    "unix socket": "def attempt():\n    s = socket.socket(socket.AF_UNIX)\n    s.connect(UNIX)\n    return got('unix')",
    "abstract socket": """
def attempt():
    s = socket.socket(socket.AF_UNIX)
    s.connect(ABSTRACT)
    return got('abstract')
""",
    "abstract socket from a pair": """
def attempt():
    a, b = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    a.sendto(b"x", ABSTRACT)
    return got("abstract")
""",
    "listens": "def attempt():\n    s = socket.socket()\n    s.bind(('', 0))\n    s.listen()\n    return got(s.getsockname())",
    "netlink": """
def attempt():
    s = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW)
    s.bind((0, 0))
    return got('netlink')
""",
    "raw packets": "def attempt(): return got(socket.socket(socket.AF_PACKET, socket.SOCK_RAW))",
    "names of hosts": "def attempt(): return got(socket.getaddrinfo('localhost', 80))",
    "pair of another family": "def attempt(): return got(socket.socketpair(socket.AF_INET))",
    "shell": "def attempt(): return got(os.system('id')) if os.system('id') == 0 else 'refused'",
    "subprocess": """
def attempt():
    import subprocess
    return got(subprocess.check_output([sys.executable, '-c', 'print(1)']))
""",
    "execve": "def attempt(): os.execv('/bin/sh', ['sh', '-c', 'echo GOT'])",
    "loader": "def attempt(): os.execv('/lib64/ld-linux-x86-64.so.2', ['ld', '/bin/echo', 'GOT'])",
    "library in its folder": """
def attempt():
    import _ctypes
    open("a.so", "wb").write(open(_ctypes.__file__, "rb").read())
    return got(ctypes.CDLL("./a.so"))
""",
    "become root": "def attempt():\n    os.setuid(0); os.setgid(0)\n    os.chroot('.')\n    return got(os.getuid())",
    "parent's memory": "def attempt(): return worked(libc.ptrace(16, os.getppid() or 1, 0, 0))",
    "trace itself": "def attempt(): return worked(libc.ptrace(0, 0, 0, 0))",
    "new user namespace by clone": "def attempt(): return worked(libc.syscall(56, 0x10000000 | 17, 0, 0, 0, 0))",
    "capabilities": """
def attempt(): return worked(libc.capset((ctypes.c_uint32 * 2)(0x20080522, 0), (ctypes.c_uint32 * 6)(*[-1] * 6)))
""",
    "descriptors from others": """
def attempt():
    a, b = socket.socketpair()
    socket.send_fds(a, [b'x'], [0])
    return got('sent')
""",
    "ioctl": "def attempt():\n    import fcntl, termios\n    fcntl.ioctl(0, termios.TIOCSTI, b'a')\n    return got('typed')",
    "calls of 32 bits": """
import mmap
def attempt():
    code = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    code.write(bytes.fromhex("b814000000cd80c3"))
    return worked(ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(code)))())
""",
    "calls of x32": "def attempt(): return worked(libc.syscall(0x40000000 + 39))",
    "unshare": call("unshare", "0x10000000"),
    "unshare mounts": call("unshare", "0x20000"),
    "setns": call("setns", "0", "0"),
    "mount": call("mount", "b'none'", "b'/tmp'", "b'tmpfs'", "0", "0"),
    "mount anew": call("mount", "b'none'", "b'/'", "0", "4128", "0"),
    "new mount calls": call("fsopen", "b'tmpfs'", "0"),
    "chroot": call("chroot", "b'/tmp'"),
    "pivot_root": call("pivot_root", "b'.'", "b'.'"),
    "file handles": call("open_by_handle_at", "3", "0", "0"),
    "bpf": call("bpf", "0", "0", "0"),
    "keys": call("add_key", "b'user'", "b'a'", "b'b'", "1", "-2"),
    "keyrings": call("keyctl", "0", "-3", "1"),
    "performance counters": call("perf_event_open", "(ctypes.c_uint64 * 16)(1, 128)", "0", "-1", "-1", "0"),
    "io_uring": call("io_uring_setup", "1", "(ctypes.c_char * 120)()"),
    "other's memory": call("process_vm_readv", "1", "0", "0", "0", "0", "0"),
    "page faults": call("userfaultfd", "1"),
    "personality": call("personality", "0x0040000"),
    "message queues": call("mq_open", "b'a'", "66", "384", "0"),
    "shared memory": call("shmget", "1", "4096", "0o1600"),
    "file in memory": call("memfd_create", "b'a'", "0"),
    "watch of files": call("inotify_init1", "0"),
    "filter of its own": call("seccomp", "0", "0", "0"),
    "device": call("mknod", "b'a'", "0o20666", "0x0101"),
    "kernel's log": call("syslog", "10", "0", "0"),
    "name of the host": call("sethostname", "b'a'", "1"),
    "descriptor tables": call("modify_ldt", "0", "(ctypes.c_char * 16)()", "16"),
    "socket by number": call("socket", "2", "1", "0"),
    "clone3": call("clone3", "(ctypes.c_uint64 * 11)(0x10000000, 0, 0, 0, 17)", "88"),
}

PROGRAMS = {name: START + body + END for name, body in BODIES.items()}
