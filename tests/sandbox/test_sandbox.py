"""The sandbox: what crosses, what tests see of a program, limits, many at once, and nothing that piles up."""

from __future__ import annotations

import datetime
import json
import os
import shutil
import struct
import subprocess
import sys
import threading
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from rewardlab.errors import RewardlabError
from rewardlab.sandbox import Limits, ProgramRun, ProgramUnderTest, Sandbox, SandboxWorkers
from rewardlab.sandbox.inside import calls, cases, purity
from rewardlab.sandbox.inside.wire import Broken, decode, encode

PROGRAMS = int(os.environ.get("REWARDLAB_SANDBOX_PROGRAMS", "200"))
"""How many the search for leaks runs."""


@pytest.fixture(scope="module")
def sandbox():
    workers = SandboxWorkers(2)
    box = Sandbox(Limits(seconds=30), workers)
    try:
        box.run_programs([ProgramRun("")])
    except RewardlabError as problem:
        pytest.skip(str(problem))
    yield box
    workers.close()


def check(sandbox, program, tests, **rest):
    return sandbox.run_tests([ProgramUnderTest(program, tests, **rest)])[0]


# ---- what crosses ----------------------------------------------------------------------------------------------------

plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.complex_numbers() | st.text(st.characters(exclude_categories=()))
    | st.binary() | st.binary().map(bytearray) | st.builds(range, st.integers(-9, 9), st.integers(-9, 9), st.sampled_from([1, -2])),
    lambda inner: st.lists(inner) | st.lists(inner).map(tuple) | st.dictionaries(st.text() | st.integers(), inner)
    | st.sets(st.integers() | st.text()) | st.frozensets(st.tuples(st.booleans(), st.floats(allow_nan=False))),
    max_leaves=20,
)  # fmt: skip


def crossed(value):
    return decode(json.loads(json.dumps(encode(value, refuse))), refuse)


def refuse(*what):
    raise ValueError(what)


def same(a, b):
    """Equal, with the same types all through; NaN is NaN, and -0.0 is not 0.0."""
    if type(a) is not type(b):
        return False
    if isinstance(a, list | tuple):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict):
        return same(list(a.items()), list(b.items()))
    if isinstance(a, complex):
        return same((a.real, a.imag), (b.real, b.imag))
    return struct.pack("d", a) == struct.pack("d", b) or a != a != b if isinstance(a, float) else a == b


@settings(max_examples=60)
@given(plain)
@example([True, 1, 1.0, -0.0, float("nan"), 10**5000, "\ud83d\ude00", "\U0001f600", b"\0", (), {1: 2, "1": 3}, {(1,): {2}}])
def test_values_cross_exactly(value):
    assert same(crossed(value), value)


STANDARD = [
    Decimal("1.50"), Decimal("-Infinity"), Fraction(-7, 10**30), datetime.date(2020, 2, 29), datetime.time(23, 59, 58, 1),
    datetime.datetime(1999, 1, 2, 3, 4, 5, 6), datetime.timedelta(days=-1, microseconds=7),
    datetime.datetime(1999, 1, 2, tzinfo=datetime.timezone(datetime.timedelta(hours=-3))),
]  # fmt: skip


@pytest.mark.parametrize("value", STANDARD, ids=repr)
def test_numbers_and_times_of_the_standard_library_cross(sandbox, value):
    got = crossed([value, {value: value}])
    assert got == [value, {value: value}]
    assert type(got[0]) is type(value)
    assert str(got[0]) == str(value)
    # both ways, through a program
    imports = "import datetime\nfrom decimal import Decimal\nfrom fractions import Fraction\n"
    tests = f"{imports}x = {value!r}\nassert f(x) == (x, x)\n"
    right, wrong = (check(sandbox, f"{imports}def f(x): return {first}, {value!r}\n", tests) for first in ("x", "None"))
    assert (right.passed, wrong.passed) == (True, False), (right, wrong)


@pytest.mark.parametrize(
    "data",
    [
        {"decimal": "one"}, {"decimal": 1}, {"decimal": [0, 1]}, {"fraction": {"t": [1, 0]}}, {"fraction": {"t": ["1", 2]}},
        {"fraction": "1/2"}, {"date": "2020-13-01"}, {"date": None}, {"datetime": 7}, {"timedelta": {"t": [10**12, 0, 0]}},
        {"timedelta": {"t": [1.5]}}, {"time": {"t": []}},
    ],
    ids=str,
)  # fmt: skip
def test_what_is_no_number_or_time_is_broken(data):
    with pytest.raises(Broken):
        decode(data, refuse)


def test_shared_parts_and_cycles_cross():
    part = [1]
    whole = {"a": part, "b": (part, part)}
    whole["self"] = whole
    got = crossed(whole)
    assert got["a"] is got["b"][0] is got["b"][1]
    assert got["self"] is got


json_text = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["t", "d", "e", "f", "r", "i", "s", "b", "y", "z", "g", "o", "x", "?", "decimal", "fraction", "date"]),
            inner,
            max_size=2,
        )
    ),
    max_leaves=12,
)


@given(json_text)
def test_whatever_is_sent_becomes_a_plain_value_or_is_broken(data):
    try:
        value = decode(data, refuse)
    except Broken:
        return
    assert type(value).__module__ in ("builtins", "decimal", "fractions", "datetime")


# ---- tests as source ------------------------------------------------------------------------------------------------


def test_tests_are_split_into_cases():
    found = cases.split("""
import math
def near(a, b):
    assert abs(a - b) < 1e-6
x = f(1)
assert x == 2, "no"
for i in range(3):
    assert f(i) > LIMIT
near(f(1), 2.0)
try:
    assert g()
except ValueError:
    pass
""")
    assert found.cases == [
        'assert x == 2, "no"',
        "assert f(i) > LIMIT",
        "near(f(1), 2.0)",
        "try: assert g() except ValueError: pass",
    ]
    assert found.names == ["LIMIT", "f", "g"]


@pytest.mark.parametrize(
    ("tests", "why"),
    [("x = ", "SyntaxError"), ("f(1)", "assert nothing"), ("", "assert nothing"), ("def check(f): assert f(1)", "no entry_point")],
)
def test_tests_that_cannot_judge_give_no_verdict(sandbox, tests, why):
    outcome = check(sandbox, "def f(x): return x", tests)
    assert outcome.passed is None
    assert why in outcome.why


@pytest.mark.parametrize(
    "tests", ["import math\nassert f(1) == math.sqrt(4)", "def check(c):\n  for i in c(3): assert i in (1, 2)"]
)
def test_pure_tests_are_known(tests):
    assert purity.pure(cases.split(tests, "f").tree)


@pytest.mark.parametrize(
    "line",
    [
        "import os", "from sys import path", "import math\nmath.pi = 3", "open('a')", "from random import *", "f.__class__",
        "import string\nstring.ascii_letters.x = 1", "import json\njson.encoder.ESCAPE_DCT.clear()", "setattr(f, 'a', 1)",
        "import copy\ncopy.dispatch_table.clear()", "import collections.abc\ncollections.abc.Sequence.register(list)",
    ],
)  # fmt: skip
def test_tests_that_could_leave_something_are_not_pure(line):
    assert not purity.pure(cases.split(f"{line}\nassert f(1)", "f").tree)


def test_impure_tests_leave_nothing(sandbox):
    spoils = "import builtins, math\nmath.pi = 3\nbuiltins.abs = lambda x: 7\nopen('left', 'w').close()\nassert f(1) == 1"
    looks = "import math, os\nassert f(1) == 1\nassert math.pi > 3.1\nassert abs(0) == 0\nassert os.listdir() == []"
    outcomes = sandbox.run_tests([ProgramUnderTest("def f(x): return x", tests) for tests in (spoils, looks) * 4])
    assert all(outcome.passed for outcome in outcomes), outcomes


# ---- what tests see of a program ------------------------------------------------------------------------------------

CLASSES = """
import collections, enum
class Stack:
    limit = 3
    def __init__(self): self.items = []
    def push(self, x):
        if len(self.items) >= self.limit: raise Full("full", x)
        self.items.append(x)
        return self
    def __len__(self): return len(self.items)
    def __iter__(self): return iter(self.items)
    def __getitem__(self, i): return self.items[i]
    def __str__(self): return "Stack"
class Error(ValueError): pass
class Full(Error): pass
Point = collections.namedtuple("Point", "x y")
class Color(enum.IntEnum): RED = 1
def count(n):
    for i in range(n): yield i
def apply(f, xs): return [f(x) for x in xs]
def twice(f): return lambda x: f(f(x))
def reverse(xs): xs.reverse()
def drain(d, s, b): d.clear(); s.add(9); b += b"!"
def sort(xs): xs.sort(); return len(xs)
def same(x): return x
def point(): return Point(1, 2)
def counts(s): return collections.Counter(s)
"""


@pytest.mark.parametrize(
    "tests",
    [
        "s = Stack()\ns.push(1).push(2)\nassert len(s) == 2 and list(s) == [1, 2] and s[1] == 2 and str(s) == 'Stack'\nassert s",
        "assert Stack.limit == 3\ns = Stack()\ns.limit = 0\nassert s.limit == 0 and isinstance(s, Stack) and hasattr(s, 'push')",
        "s = Stack()\nassert s.push(1) is s and same(s) is s",
        "assert list(count(3)) == [0, 1, 2] and sum(count(4)) == 6\ng = count(1)\nassert next(g) == 0\nassert list(g) == []",
        "assert apply(lambda x: x + 1, [1, 2]) == [2, 3] and apply(str, [1]) == ['1'] and apply(len, ['ab']) == [2]",
        "assert twice(lambda x: x * 3)(2) == 18",
        "assert sorted(apply(twice(lambda x: x + 1), (x for x in [1]))) == [3]",
        "x = [1, 2]\nreverse(x)\nassert x == [2, 1]",
        "d, s, b = {1: 2}, {1}, bytearray(b'a')\ndrain(d, s, b)\nassert (d, s, b) == ({}, {1, 9}, b'a!')",
        "x = [2, 1]\nassert sort(x) == 2 and x == [2, 1]",
        "a = [1]\nreverse([a, a])\nx = same([a, a])\nassert x[0] is x[1] and x[0] is not a",
        "assert point() == (1, 2) and counts('aab') == {'a': 2, 'b': 1} and Color.RED == 1",
        "s = Stack()\ns.limit = 0\ntry:\n    s.push(1)\n    assert False\nexcept Error as e:\n    assert e.args[0] == 'full'",
        "try:\n    apply(lambda x: [][0], [1])\nexcept IndexError:\n    pass\nelse:\n    assert False",
    ],
)
def test_a_program_can_be_used_as_if_it_were_there(sandbox, tests):
    outcome = check(sandbox, CLASSES, tests)
    assert outcome.passed, outcome


@pytest.mark.parametrize("tests", ["assert Stack() == Stack()", "assert Stack() != 1", "assert 1 in Stack()", "assert Stack() + 1"])
def test_a_programs_own_objects_are_not_compared(sandbox, tests):
    outcome = check(sandbox, CLASSES, tests)
    assert outcome.passed is False
    assert "only plain values are compared" in outcome.why


def test_in_place_counts_everywhere_if_asked_for(sandbox):
    tests = "x = [2, 1]\nassert sort(x) == 2 and x == [1, 2]"
    assert check(sandbox, CLASSES, tests, in_place=True).passed


def test_tests_that_hand_over_their_own_objects_give_no_verdict(sandbox):
    outcome = check(sandbox, CLASSES, "class Node: pass\nassert same(Node())")
    assert outcome.passed is None
    assert "Node" in outcome.why


def test_helpers_of_the_prompt_are_not_the_programs(sandbox):
    prompt = 'def norm(x):\n    return abs(x)\n\ndef f(x):\n    """The sign."""\n'
    program = "def norm(x): return 0\ndef f(x): return 5"
    tests = "def check(candidate):\n    assert norm(candidate(-2) + 1) == 0\n"
    assert check(sandbox, program, tests, entry_point="f").passed
    assert check(sandbox, program, tests, entry_point="f", prompt=prompt).passed is False


def test_each_case_is_told_apart(sandbox):
    program = "def f(x):\n    if x == 2: raise KeyError(x)\n    return x"
    outcome = check(sandbox, program, "".join(f"assert f({i}) == 1\n" for i in (1, 2, 3)))
    assert [(case.passed, case.why) for case in outcome.cases] == [(True, ""), (False, "KeyError: 2"), (False, "does not hold")]
    assert outcome.share == 1 / 3
    assert outcome.why == "assert f(2) == 1: KeyError: 2"


@pytest.mark.slow
def test_what_was_found_before_time_was_up_counts(sandbox):
    tests = "assert f(0) == 0\nassert f(1) == 1\nassert f(0) == 0"
    (outcome,) = Sandbox(Limits(seconds=1.5), sandbox.workers).run_tests(
        [ProgramUnderTest("def f(x):\n    while x: pass\n    return x", tests)]
    )
    assert [case.passed for case in outcome.cases] == [True, False, False]
    assert "took over 1.5 s" in outcome.why


# ---- programs on their own -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("program", "stdin", "stdout", "ended"),
    [
        ("print(input()[::-1])", "äbc\n", "cbä\n", True),
        ("import sys\nfor line in sys.stdin: print(int(line) * 2)", "1\n2\n", "2\n4\n", True),
        ("import sys\nsys.stdout.buffer.write(b'a')\nexit()", "", "a", True),
        ("print('a')\nraise SystemExit(3)", "", "a\n", False),
        ("print('a')\n1 / 0", "", "a\n", False),
        ("if __name__ == '__main__': print(open('a', 'w').write('b'))", "", "1\n", True),
        ("import threading\nthreading.Thread(target=lambda: print('t')).start()", "", "t\n", True),
        ("import asyncio\nasync def f(): await asyncio.sleep(0); print('a')\nasyncio.run(f())", "", "a\n", True),
        ("import os\nprint(os.getpid(), os.getpgrp(), os.getsid(0), os.getppid())", "", "1 1 1 0\n", True),
        ("import os\nprint(os.getcwd(), os.listdir(), dict(os.environ))", "", "/tmp [] {}\n", True),
        ("import decimal, statistics, hashlib, zoneinfo, sqlite3, zlib; print(1)", "", "1\n", True),
    ],
)
def test_programs_read_and_print(sandbox, program, stdin, stdout, ended):
    (printed,) = sandbox.run_programs([ProgramRun(program, stdin)])
    assert (printed.stdout, printed.ended) == (stdout, ended), printed


def test_reasons_name_what_happened(sandbox):
    programs = ["1 / 0", "import sys; sys.exit(3)", "import ctypes; ctypes.string_at(0)", "print('a' * 1000)", "while True: pass"]
    small = Sandbox(Limits(seconds=1.5, output=300), sandbox.workers)
    whys = [printed.why for printed in small.run_programs([ProgramRun(program) for program in programs])]
    told = ["division by zero", "exit code 3", "signal 11", "printed more than 300 bytes", "took over 1.5 s"]
    for why, part in zip(whys, told, strict=True):
        assert part in why


def test_chance_and_order_come_again(sandbox):
    program = "import random\nprint(random.random(), list({'a', 'b', 'c', 'd'}))"
    assert len({printed.stdout for printed in sandbox.run_programs([ProgramRun(program)] * 6)}) == 1


def test_limits_that_cannot_be_are_refused():
    with pytest.raises(RewardlabError, match=r"limit of memory is 1; it must be at least"):
        Limits(memory=1)


# ---- many at once, and for long -------------------------------------------------------------------------------------


def test_any_thread_can_ask(sandbox):
    found: dict[int, list[str]] = {}

    def ask(number):
        found[number] = [p.stdout for p in sandbox.run_programs([ProgramRun(f"print({number}, {i})") for i in range(6)])]

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {number: [f"{number} {i}\n" for i in range(6)] for number in range(5)}


@pytest.mark.slow
def test_nothing_piles_up(sandbox):
    """Memory, processes and descriptors, of this process and of the workers, over programs good and bad."""
    programs = [
        "def f(x): return x",
        "def f(x): return [0] * 10 ** 5",
        "import os\ndef f(x): os._exit(1)",
        "1 / 0",
        "def g(): pass",
    ]
    tests = ["assert f(1) == 1", "import os\nassert f(2) == 2"]
    wanted = [ProgramUnderTest(programs[i % 5], tests[i % 7 == 0]) for i in range(100)]

    def used():
        pids = [os.getpid(), *map(int, Path(f"/proc/self/task/{os.getpid()}/children").read_text().split())]
        own = len(os.listdir("/proc/self/fd"))
        kib = [int(line.split()[1]) for p in pids for line in Path(f"/proc/{p}/status").read_text().splitlines() if "VmRSS" in line]
        return len(pids), own, kib

    sandbox.run_tests(wanted)
    (processes, files, before) = used()
    for _ in range(PROGRAMS // 100):
        outcomes = sandbox.run_tests(wanted)
    assert [outcome.passed for outcome in outcomes] == [i % 5 == 0 for i in range(100)]
    now = used()
    assert now[:2] == (processes, files)
    assert all(later < 1.1 * earlier + 4096 for earlier, later in zip(before, now[2], strict=True)), (before, now[2])


# ---- machines that cannot isolate ------------------------------------------------------------------------------------

REFUSED = """
import os, warnings
from rewardlab.errors import RewardlabError
from rewardlab.sandbox import *
try: Sandbox().run_programs([ProgramRun("print(1)")])
except RewardlabError as problem: print(problem)
os.environ["REWARDLAB_UNSAFE_SANDBOX"] = "1"
with warnings.catch_warnings(record=True) as heard:
    warnings.simplefilter("always")
    print(Sandbox().run_programs([ProgramRun("print(2)")])[0].stdout.strip())
    print([o.passed for o in Sandbox().run_tests([ProgramUnderTest(p, "assert f(1) == 1") for p in ("def f(x): return x", "")])])
print([str(w.message) for w in heard if "WITHOUT" in str(w.message)])
"""


@pytest.mark.skipif(not shutil.which("unshare"), reason="needs unshare to make a machine without user namespaces")
def test_a_machine_that_cannot_isolate_refuses_unless_the_danger_is_accepted():
    without = 'echo 0 > /proc/sys/user/max_user_namespaces && exec "$0" -c "$1"'
    command = ["unshare", "-U", "-r", "sh", "-c", without, sys.executable, REFUSED]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    if "unshare" in done.stderr or "max_user_namespaces" in done.stderr:
        pytest.skip(done.stderr)
    refused, printed, passed, warned = done.stdout.splitlines()
    assert "refuses to run programs here: cannot make a user namespace" in refused
    assert "REWARDLAB_UNSAFE_SANDBOX=1" in refused
    assert "--unsafe-sandbox" in refused
    assert (printed, passed) == ("2", "[True, False]"), done.stderr
    assert warned.count("WITHOUT isolation") == 1


@pytest.mark.parametrize("machine", calls.MACHINES)
def test_the_filter_allows_what_is_listed_and_nothing_else(machine):
    column, name = calls.MACHINES[machine]
    listed = {int(n) for entry in calls.CALLS.split() if (n := entry.partition("=")[2].split("/")[column])}
    with_arguments = {"x86_64": {44, 56}, "aarch64": {206, 220}}[machine]
    rows = calls.program(machine)
    assert {n for n in range(1000) if run_filter(rows, name, n) == calls._ALLOW} == listed | with_arguments
    assert run_filter(rows, name + 1, 0) == calls._KILL
    clone = max(with_arguments)
    assert run_filter(rows, name, clone, 0x10000011) == run_filter(rows, name, 0x40000000) == calls._REFUSE


def run_filter(rows, machine, number, *arguments):
    """What the kernel does with a BPF program."""
    data = struct.pack("<IIQ6Q", number, machine, 0, *arguments, *[0] * (6 - len(arguments)))
    at = value = 0
    while True:
        code, if_true, if_false, operand = rows[at]
        at += 1
        if code == calls._LOAD:
            (value,) = struct.unpack_from("<I", data, operand)
        elif code == calls._RETURN:
            return operand
        else:
            holds = {calls._EQUAL: value == operand, calls._AT_LEAST: value >= operand, calls._ANY_BIT: value & operand}[code]
            at += if_true if holds else if_false
