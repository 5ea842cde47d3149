"""Tests as pytest and unittest have them: a right program passes, a wrong one fails, and what would test nothing is no verdict."""

from __future__ import annotations

import pytest

from rewardlab.errors import RewardlabError
from rewardlab.sandbox import ProgramRun, ProgramUnderTest, Sandbox

RIGHT, WRONG = "def add(a, b): return a + b", "def add(a, b): return a - b"


@pytest.fixture(scope="module", autouse=True)
def isolation():
    try:
        Sandbox().run_programs([ProgramRun("")])
    except RewardlabError as problem:
        pytest.skip(str(problem))


def outcomes(tests: str, *programs: str):
    return Sandbox().run_tests([ProgramUnderTest(program, tests) for program in programs])


HOLDS = "    assert add(1, 2) == 3\n"
IMPORTED = {
    "KodCode's": f"from solution import add\ndef test_a():\n{HOLDS}",
    "under another name": "from solution import add as f\ndef test_a():\n    assert f(1, 2) == 3\n",
    "all names": f"from your_module import *\ndef test_a():\n{HOLDS}",
    "as a module": "import solution as s\ndef test_a():\n    assert s.add(1, 2) == 3\n",
}
PYTEST = {
    "raises": f"import pytest\ndef test_a():\n{HOLDS}    with pytest.raises(TypeError, match='concat') as e:\n        add('a', 1)\n"
    "    assert 'int' in str(e.value)\n",
    "approx": "import pytest\ndef test_a():\n    assert add(0.1, 0.2) == pytest.approx(0.3)\n"
    "    assert [add(1, 2)] == pytest.approx([3])\n",
    "parametrize": "import pytest\n@pytest.mark.parametrize('a, b', [(1, 2), (2, 3)])\ndef test_a(a, b):\n"
    "    assert add(a, b) == a + b\n",
    "class": "class TestAdd:\n    def setup_method(self, method): self.x = 1\n"
    "    def test_a(self):\n        assert add(self.x, 2) == 3\n",
}
UNITTEST = {
    "case": "import unittest\nclass T(unittest.TestCase):\n    def setUp(self): self.x = 1\n    def test_a(self):\n"
    "        self.assertEqual(add(self.x, 2), 3)\nif __name__ == '__main__':\n    unittest.main()\n",
    "imported": "from unittest import TestCase\nclass T(TestCase):\n    def test_a(self): self.assertEqual(add(1, 2), 3)\n",
}
BY_HAND = {
    "where it is the program": f"def test_a():\n{HOLDS}if __name__ == '__main__':\n    test_a()\n",
    "a test that calls another": f"def run():\n{HOLDS}def main():\n    run()\nmain()\n",
    "within an expression": f"def run():\n{HOLDS}print(run())\n",
    "a method that is called": "class Checker:\n    def go(self):\n        assert add(1, 2) == 3\nChecker().go()\n",
}


@pytest.mark.parametrize("tests", [pytest.param(t, id=k) for of in (IMPORTED, PYTEST, UNITTEST, BY_HAND) for k, t in of.items()])
def test_a_right_program_passes_and_a_wrong_one_fails(tests):
    right, wrong = outcomes(tests, RIGHT, WRONG)
    assert (right.passed, wrong.passed) == (True, False), (right, wrong)


def test_each_test_of_a_class_counts():
    tests = [f"    def test_{x}(self):\n        self.assertEqual(add(0, {x}), {x})\n" for x in (0, 7)]
    (wrong,) = outcomes("import unittest\nclass T(unittest.TestCase):\n" + "".join(tests), WRONG)
    assert (wrong.share, wrong.why) == (0.5, "T_test_7(): does not hold: -7 != 7")


@pytest.mark.parametrize(
    ("tests", "why"),
    [
        (f"async def test_a():\n{HOLDS}", "is asynchronous"),
        (f"def test_a():\n    yield\n{HOLDS}", "yields"),
        (f"def test_a(client):\n{HOLDS}", "takes 'client'"),
        (f"def verify():\n{HOLDS}", "nothing calls verify"),
        ("class Checker:\n    def go(self):\n        assert add(1, 2) == 3\n", "nothing calls Checker"),
        (f"import pytest\n@pytest.mark.slow\ndef test_a():\n{HOLDS}", "No module named 'pytest'"),
    ],
)
def test_tests_that_would_test_nothing_are_to_blame(tests, why):
    for outcome in outcomes(tests, RIGHT, WRONG):
        assert outcome.passed is None
        assert why in outcome.why


def test_what_raises_for_the_tests_own_sake_is_no_case():
    tests = "def double(x):\n    if x < 0: raise ValueError\n    return 2 * x\nwanted = double(2)\nassert add(2, 2) == wanted\n"
    (wrong,) = outcomes(tests, WRONG)
    assert [case.source for case in wrong.cases] == ["assert add(2, 2) == wanted"]


def test_a_program_cannot_stand_in_for_what_its_tests_import():
    cheats = (
        "import sys, types\nclass Any:\n    def __eq__(self, other): return True\nm = types.ModuleType('solution')\n"
        "m.add = lambda a, b: Any()\nsys.modules['solution'] = sys.modules['pytest'] = sys.modules['unittest'] = m\nadd = m.add\n"
    )
    tests = [*IMPORTED.values(), *PYTEST.values(), *UNITTEST.values()]
    assert [outcomes(of, cheats)[0].passed for of in tests] == [False] * len(tests)
    # and one that gives the tests nothing to loop over passes none
    loops = "def run():\n    for x in add(1, 2):\n        assert x\nfor f in [run]: f()\n"
    assert outcomes(loops, "def add(a, b): return []")[0].passed is False
