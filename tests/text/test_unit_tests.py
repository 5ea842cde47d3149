"""Unit tests read out of what a model wrote."""

import ast

import pytest

from rewardlab.text.unit_tests import ASK, asked_for_test, distinct, read_test

CASE = """Here it is:
```python
import math
import unittest
from your_module import add

def add(a, b):
    return a - b

class TestAdd(unittest.TestCase):
    def test_sum(self):
        total = 2
        assert add(1, 1) == total
        self.assertEqual(add(0, 0), 0)

if __name__ == "__main__":
    unittest.main()
```
"""


def test_a_class_of_unittest_is_one_assert_without_the_program():
    found = read_test(CASE, pairs=False)
    tree = ast.parse(found)
    assert [type(node).__name__ for node in tree.body] == ["Import", "Import", "Import", "ClassDef", "Assert"]
    assert sum(isinstance(node, ast.Assert) for node in ast.walk(tree)) == 1
    assert "your_module" not in found
    assert "a - b" not in found
    assert "self.assertTrue(add(1, 1) == total)" in found


@pytest.mark.parametrize(
    ("reply", "wanted"),
    [
        ("assert add(1, 2) == 3", "assert add(1, 2) == 3"),
        ("```\nassert add(1, 2) == 3, 'no'\nassert add(2, 2) == 4\n```", "assert add(1, 2) == 3 and add(2, 2) == 4"),
        ("import math\nassert root(4) == math.sqrt(4)", "import math\nassert root(4) == math.sqrt(4)"),
        ("print(add(1, 2))", None),
        ("assert add(", None),
        ("It should work.", None),
        # it would pass whatever the program does
        ("import unittest\nclass T(unittest.TestCase):\n    pass", None),
        ("", None),
    ],
)
def test_asserts_hold_together_and_what_tests_nothing_is_none(reply, wanted):
    assert read_test(reply, pairs=False) == wanted


def test_pairs():
    assert read_test('So:\n```json\n["1 2\\n", "3\\n"]\n```', pairs=True) == ["1 2\n", "3\n"]
    assert read_test("[[1, 2], 3]\n[[1], 1]", pairs=True) == ["[1, 2]", "3"]
    assert read_test("[1, 2, 3] gives 6", pairs=True) is None
    assert distinct([["1", "2"], None, "a", ["1", "2"]]) == [["1", "2"], "a"]


def test_the_writer_reads_the_problem_and_the_program_of_a_reply():
    asked = asked_for_test("Add {a} and b.", "So:\n```python\ndef add(a, b): ...\n```", pairs=False)
    assert asked.endswith("### Problem\nAdd {a} and b.\n\n### Program\ndef add(a, b): ...")
    assert asked_for_test("Add.", "", pairs=False) == ASK.replace("{question}{program}", "Add.")
    assert asked_for_test("Add.", "sum", pairs=True, ask="{question}{program}") == "Add.\n\n### Program\nsum"
