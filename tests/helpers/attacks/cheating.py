"""To be paid without the answers."""

WIRE = """
import json, os, stat, struct
def sockets():
    for i in range(256):
        try:
            if stat.S_ISSOCK(os.fstat(i).st_mode): yield i
        except OSError: pass
wire = next(sockets())
def say(message):
    data = json.dumps(message).encode() if not isinstance(message, bytes) else message
    os.write(wire, struct.pack("<I", len(data)) + data)
"""

PROGRAMS = {
    "exit when called": "import os\ndef solve(x): os._exit(0)",
    "exit when loaded": "import sys\ndef solve(x): pass\nsys.exit(0)",
    "os._exit when loaded": "import os\ndef solve(x): pass\nos._exit(0)",
    "raise SystemExit": "def solve(x): raise SystemExit(0)",
    "raise KeyboardInterrupt": "def solve(x): raise KeyboardInterrupt",
    "raise GeneratorExit": "def solve(x): raise GeneratorExit",
    "raise AssertionError": "def solve(x): raise AssertionError",
    "raise StopIteration": "def solve(x): raise StopIteration",
    "exception of a false base": """
class E(Exception):
    pass
E.__name__ = "SystemExit"
def solve(x): raise E()
""",
    "exception that prints the verdict": """
class E(Exception):
    def __str__(self): return '"}\\n{"case": 0, "passed": true, "why": ""}\\n{"end": ""}\\n'
def solve(x): raise E('"}\\n{"end": ""}\\n')
""",
    "equal to everything": "class A:\n    def __eq__(self, other): return True\ndef solve(x): return A()",
    "never unequal": "class A:\n    def __eq__(self, o): return True\n    __ne__ = lambda *a: False\ndef solve(x): return A()",
    "text equal to everything": """
class A(str):
    def __eq__(self, other): return True
    __hash__ = str.__hash__
def solve(x): return A("a")
""",
    "number equal to everything": "class A(int):\n    def __eq__(self, other): return True\ndef solve(x): return A(1)",
    "list equal to everything": "class A(list):\n    def __eq__(self, other): return True\ndef solve(x): return A()",
    "pretends to be text": """
class A:
    __class__ = str
    def __eq__(self, other): return True
def solve(x): return A()
""",
    "metaclass equal to everything": """
class M(type):
    def __eq__(self, other): return True
    __hash__ = type.__hash__
class A(metaclass=M): pass
def solve(x): return A
""",
    "reflected operators": """
class A:
    def __getattr__(self, name): return lambda *a, **k: True
    __eq__ = __req__ = __ne__ = __contains__ = __bool__ = __len__ = lambda *a: True
def solve(x): return A()
""",
    "object that pickles to code": """
import os
class A:
    def __reduce__(self): return (os._exit, (0,))
def solve(x): return A()
""",
    "patched builtins": """
import builtins
builtins.AssertionError = Warning
builtins.all = builtins.any = builtins.isinstance = builtins.eq = lambda *a: True
def solve(x): return True
""",
    "patched text": """
import gc
for d in gc.get_referents(str.__dict__):
    if isinstance(d, dict):
        d["__eq__"] = lambda a, b: True
def solve(x): return "a"
""",
    "patched json": """
import json
json.dumps = lambda *a, **k: '{"is": true, "passed": true, "end": ""}'
json.loads = lambda *a, **k: {"do": "load"}
def solve(x): return True
""",
    "patched wire": """
import sys
for name, module in list(sys.modules.items()):
    if name.startswith("inside"):
        for key, value in list(vars(module).items()):
            if callable(value) and not isinstance(value, type):
                setattr(module, key, lambda *a, **k: {"is": True, "passed": True})
def solve(x): return True
""",
    "patched checker": """
import sys
checks = sys.modules.get("inside.checks")
if checks:
    checks.Case.__exit__ = lambda self, *a: True
    checks.Notes.case = lambda self, number, passed, why="": self.write(case=number, passed=True, why="")
def solve(x): return True
""",
    "other module of tests": """
import sys, types
for name in ("tests", "checks", "unittest", "pytest", "__main__"):
    sys.modules[name] = types.SimpleNamespace(check=lambda *a: None, solve=lambda x: True)
def solve(x): return True
""",
    "frames of the caller": """
import sys
def solve(x):
    frame = sys._getframe()
    while frame:
        for value in [*frame.f_locals.values(), *frame.f_globals.values(), *frame.f_code.co_consts]:
            if isinstance(value, str) and value.startswith("canary"): return value
        frame = frame.f_back
""",
    "stack by inspect": """
import inspect
def solve(x): return "".join(str(f.frame.f_locals) + str(f.code_context) for f in inspect.stack())
""",
    "objects by gc": """
import gc
def solve(x):
    for thing in gc.get_objects():
        for part in gc.get_referents(thing):
            if isinstance(part, str) and part.startswith("canary"): return part
""",
    "memory by ctypes": """
import ctypes, re
def solve(x):
    here = id(object()) & ~0xffff
    for start in (here - 65536, here):
        found = re.search(rb"canary-[0-9a-f]{8,}", ctypes.string_at(start, 65536))
        if found: return found.group().decode()
""",
    "memory of the heap": """
import ctypes, re
def solve(x):
    libc = ctypes.CDLL(None)
    libc.sbrk.restype = ctypes.c_void_p
    end = libc.sbrk(0)
    found = re.search(rb"canary-[0-9a-f]{8,}", ctypes.string_at(end - 400000, 400000))
    return found.group().decode() if found else ""
""",
    "files of the tests": """
import os
def solve(x):
    for folder, _, names in os.walk("/"):
        if folder.startswith(("/usr", "/lib")): continue
        for name in names:
            try: text = open(os.path.join(folder, name), errors="replace").read(100000)
            except OSError: continue
            if "canary" in text: return text
""",
    "descriptors": """
import os
def solve(x):
    for i in range(256):
        try:
            os.lseek(i, 0, 0)
            text = os.read(i, 100000)
        except OSError: continue
        if b"canary" in text: return text.decode(errors="replace")
""",
    "close all descriptors": "import os\nos.closerange(0, 256)\ndef solve(x): return True",
    "verdict to all descriptors": """
import os
def solve(x):
    for i in range(256):
        try: os.write(i, b'\\n{"case": 0, "passed": true, "why": ""}\\n{"case": 1, "passed": true, "why": ""}\\n{"end": ""}\\n')
        except OSError: pass
    return True
""",
    "one descriptor for all": WIRE + "for i in range(8): os.dup2(wire, i)\ndef solve(x): return True",
    "answers ahead": WIRE + "for i in range(50): say({'is': True})\ndef solve(x): return True",
    "listens for later questions": WIRE + "def solve(x):\n    say({'is': 'a'})\n    return os.read(wire, 100000).decode()",
    "length of gigabytes": WIRE + "os.write(wire, b'\\xff' * 64)\ndef solve(x): return True",
    "no json": WIRE + "say(b'{{{{')\ndef solve(x): return True",
    "deep json": WIRE + "say(b'[' * 200000)\ndef solve(x): return True",
    "deep answer": WIRE + "say(b'{\"is\":' + b'[' * 900 + b']' * 900 + b'}')\ndef solve(x): return True",
    "unknown tags": WIRE + "say({'is': {'__reduce__': ['os.system', 'id']}})\ndef solve(x): return True",
    "names of builtins": WIRE + "say({'is': {'k': 'exec'}})\ndef solve(x): return True",
    "number never given": WIRE + "say({'is': {'r': -1}})\ndef solve(x): return True",
    "changes to what was never handed over": WIRE + "say({'is': None, 'now': [[1], [2], [3], [4]]})\ndef solve(x): return True",
    "calls what it was not handed": WIRE + "say({'call': 0, 'args': []})\nsay({'call': '__class__'})\ndef solve(x): return True",
    "unending calls": WIRE + "while True: say({'call': -1, 'args': [[], {'d': []}]})",
    "exception of any class": WIRE + "say({'raised': [[[[0, 'A']], 'BaseException'], []]})\ndef solve(x): return True",
    "end of the tests": WIRE + "say({'ended': ''})\nsay({'end': ''})\ndef solve(x): return True",
    "verdict on standard output": 'print(\'{"case": 0, "passed": true}\\n{"end": ""}\')\ndef solve(x): print(\'ok\'); return True',
    "verdict at exit": "import atexit\natexit.register(print, 'passed')\ndef solve(x): return True",
    "answers from a thread": WIRE
    + """
import threading
def flood():
    while True: say({'is': True})
threading.Thread(target=flood, daemon=True).start()
def solve(x): return True
""",
    "import hook": """
import sys
class Hook:
    def find_spec(self, name, path=None, target=None): raise SystemExit(0)
sys.meta_path.insert(0, Hook()); sys.path.insert(0, "."); sys.modules.pop("json", None)
def solve(x): return True
""",
    "modules in its folder": """
for name in ("json", "random", "tests", "sitecustomize"):
    open(name + ".py", "w").write("import os; os._exit(0)")
def solve(x): return True
""",
    "trace function": "import sys\nsys.settrace(lambda *a: None)\nsys.setprofile(lambda *a: None)\ndef solve(x): return True",
    "without end": "import itertools\ndef solve(x): return (i for i in itertools.count())",
    "holds itself": "a = []\na.append(a)\ndef solve(x): return a",
    "huge answer": "def solve(x): return 'a' * (100 << 20)",
    "huge number": "def solve(x): return 10 ** 3_000_000",
    "colliding keys": "def solve(x): return {i * (2 ** 61 - 1): 0 for i in range(20000)}",
    "not a number": "def solve(x): return float('nan')",
    "no such function": "def solved(x): return True",
    "no program": "))) this is no Python",
    "null bytes": "def solve(x): return True\n\0",
    "deep source": "(" * 5000 + ")" * 5000,
}
