"""To bring down the sandbox or the machine, to leave something behind, or to hang."""

PROGRAMS = {
    "loop": "def solve(x):\n    while True: pass",
    "loop when loaded": "while True: pass",
    "loop that ignores signals": """
import signal
for number in range(1, 65):
    try: signal.signal(number, signal.SIG_IGN)
    except (OSError, ValueError): pass
def solve(x):
    while True: pass
""",
    "sleep": "import time\ndef solve(x): time.sleep(10 ** 6)",
    "stop itself": "import os, signal\ndef solve(x):\n    os.kill(os.getpid(), signal.SIGSTOP)\n    signal.pause()",
    "fork bomb": "import os\nwhile True:\n    try: os.fork()\n    except OSError: pass",
    "fork bomb when called": "import os\ndef solve(x):\n    while True:\n        try: os.fork()\n        except OSError: pass",
    "thread bomb": """
import threading, time
def solve(x):
    while True:
        try: threading.Thread(target=time.sleep, args=(1000,)).start()
        except RuntimeError: pass
""",
    "memory bomb": "def solve(x):\n    a = []\n    while True: a.append(bytearray(1 << 24))",
    "memory bomb of many": """
import os
def solve(x):
    for _ in range(4):
        if os.fork() == 0: break
    a = []
    while True:
        try: a.append(bytearray(1 << 22))
        except MemoryError: pass
""",
    "memory bomb at once": "def solve(x): return len(bytearray(1 << 40))",
    "memory that is mapped": "import mmap\ndef solve(x): return [mmap.mmap(-1, 1 << 28) for _ in range(64)] and 1",
    "disk bomb": "def solve(x):\n    i = 0\n    while True:\n        i += 1\n        open(str(i), 'wb').write(bytes(1 << 20))",
    "one large file": "def solve(x):\n    with open('a', 'wb') as f:\n        while True: f.write(bytes(1 << 20))",
    "sparse file": "import os\ndef solve(x): os.truncate(os.open('a', os.O_CREAT | os.O_RDWR), 1 << 50)",
    "many files": "def solve(x):\n    i = 0\n    while True:\n        i += 1\n        open(str(i), 'w').close()",
    "deep folders": "import os\ndef solve(x):\n    while True:\n        os.mkdir('a'); os.chdir('a')",
    "many descriptors": "import os\ndef solve(x): return [os.dup(0) for _ in range(10 ** 6)]",
    "many pipes": "import os\ndef solve(x): return [os.pipe() for _ in range(10 ** 6)]",
    "flood of output": "def solve(x):\n    while True: print('a' * 10000)",
    "flood of errors": "import os\ndef solve(x):\n    while True: os.write(2, b'a' * 10000)",
    "recursion": "import sys\nsys.setrecursionlimit(10 ** 9)\ndef solve(x): return solve(x)",
    "segmentation fault": "import ctypes\ndef solve(x): return ctypes.string_at(0)",
    "abort": "import os\ndef solve(x): os.abort()",
    "kill all": "import os, signal\ndef solve(x):\n    os.kill(-1, signal.SIGKILL)\n    return True",
    "kill its parent": "import os, signal\ndef solve(x):\n    os.kill(os.getppid(), signal.SIGKILL)\n    return True",
    "kill by number": """
import os, signal
def solve(x):
    for i in range(0, 40000):
        if i != os.getpid():
            try: os.kill(i, signal.SIGKILL)
            except OSError: pass
    return True
""",
    "kill its group": "import os, signal\ndef solve(x):\n    os.killpg(0, signal.SIGKILL)\n    return True",
    "raise its limits": """
import resource
def solve(x):
    for name in dir(resource):
        if name.startswith("RLIMIT_"):
            try: resource.setrlimit(getattr(resource, name), (-1, -1))
            except (ValueError, OSError): pass
    a = []
    while True: a.append(bytearray(1 << 24))
""",
    "surviving child": """
import os, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        while True:
            open("left", "a").write("left")
            time.sleep(0.01)
def solve(x): return True
""",
    "surviving thread": """
import threading, time
threading.Thread(target=time.sleep, args=(1000,)).start()
def solve(x): return True
""",
    "child with the wire": """
import os, time
def solve(x):
    if os.fork() == 0: time.sleep(1000)
    os._exit(0)
""",
    "alarms": "import signal\nsignal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)\ndef solve(x): return True",
    "slow pattern": "import re\ndef solve(x): return re.match('(a+)+$', 'a' * 40 + 'b')",
    "slow number": "def solve(x): return 10 ** 10 ** 9",
    "slow exception": """
class E(Exception):
    def __str__(self):
        while True: pass
    args = property(__str__)
def solve(x): raise E
""",
    "slow encoding": """
class L(list):
    def __iter__(self):
        while True: yield 1
def solve(x): return (i for i in L())
""",
    "slow length": "class L:\n    def __len__(self):\n        while True: pass\n    __eq__ = None\ndef solve(x): return L()",
}
