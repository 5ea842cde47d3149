"""Gold answers of programs as published data writes them, and how what is printed is compared."""

from __future__ import annotations

import json
import time

import pytest

from rewardlab.errors import RewardlabError
from rewardlab.sandbox import ProgramRun, Sandbox
from rewardlab.text.blocks import program_of
from rewardlab.verifiers.code import code

ECHO, TWICE = "print(input())", "print(int(input()) * 2)"
TWO_SUM = "class Solution:\n    def twoSum(self, nums: List[int], target: int) -> List[int]:\n        {}"
RIGHT = TWO_SUM.format("return next([i, j] for i, x in enumerate(nums) for j, y in enumerate(nums[:i]) if x + y == target)[::-1]")
WRONG = TWO_SUM.format("return [0, 0]")
ADD, SUBTRACT = "def add(a, b): return a + b", "def add(a, b): return a - b"
IN_CLASS = "class Solution:\n    def add(self, a, b): return a {} b"


@pytest.fixture(scope="module", autouse=True)
def isolation():
    try:
        Sandbox().run_programs([ProgramRun("")])
    except RewardlabError as problem:
        pytest.skip(str(problem))


PAIRS = [
    {"io": [{"input": "5\n", "output": "5\n"}, {"input": "7\n", "output": "7\n"}]},
    {"io": [{"stdin": "5\n", "stdout": "5\n"}]},
    {"io": [{"input": "5", "expected_output": "5"}]},
    {"io": {"inputs": ["5\n", "7\n"], "outputs": ["5\n", "7\n"]}},
    {"io": [("5\n", "5\n")]},
    {"inputs": ["5\n", "7"], "outputs": ["5\n", "7"]},
    {"inputs": [["5", "6"]], "outputs": [["5"]], "fn_name": None},
    {"input_output": json.dumps({"inputs": ["5"], "outputs": ["5"]})},
    {
        "public_tests": {"input": ["5"], "output": ["5"]},
        "private_tests": {"input": ["7"], "output": ["7"]},
        "generated_tests": None,
    },
    {"public_tests": {"input": [], "output": []}, "generated_tests": {"input": ["7"], "output": ["7"]}, "private_tests": None},
    [{"input": "5", "output": "5", "testtype": "stdin"}],
    [["5", "5"]],
    {"tests": [{"input": "5", "output": "5"}]},
    {"language": "python", "test_cases": [{"type": "stdin_stdout", "input": "5", "output": "5"}]},
    {"input": "5", "output": "5"},
]


@pytest.mark.parametrize("gold", PAIRS, ids=lambda gold: json.dumps(gold)[:50])
@pytest.mark.parametrize("written", [lambda gold: gold, json.dumps])
def test_pairs_of_input_and_output_in_every_form(gold, written):
    verdicts = [code().check(reply, written(gold)) for reply in (ECHO, TWICE, "print('input')")]
    assert [verdict.correct for verdict in verdicts] == [True, False, False], verdicts


CALLS = [
    {"inputs": [[1, 2], [3, 4]], "outputs": [3, 7], "fn_name": "add"},
    {"inputs": [[1, 2]], "outputs": [[3]], "fn_name": "add"},
    {"inputs": [["a", "b"]], "outputs": ["ab"], "fn_name": "add"},
    {"inputs": [[[1], [2]]], "outputs": [[1, 2]], "fn_name": "add"},
    {"inputs": [[0.1, 0.2]], "outputs": [0.3], "fn_name": "add"},
    {"inputs": ["1\n2", "3\n4\n"], "outputs": ["3", "7"], "fn_name": "add"},
    {"inputs": ["[1]\n[2]"], "outputs": ["[1, 2]"], "fn_name": "add"},
    {"tests": "def check(candidate):\n    assert candidate(1, 2) == 3", "entry_point": "Solution().add"},
    {"test": "def check(candidate):\n    assert candidate(1, 2) == 3", "entry_point": "add"},
    {"test_list": ["assert add(1, 2) == 3", "assert add(2, 2) == 4"], "test_setup_code": "x = 1"},
    ["assert add(1, 2) == 3"],
    {"test_cases": [{"type": "function_call", "fn_name": "add", "input": [1, 2], "output": [3]}]},
    {"test_cases": [{"type": "function_call", "fn_name": "add", "input": [1, 2], "output": 3}]},
    [{"input": "1\n2", "output": "3", "testtype": "functional", "metadata": {"func_name": "add"}}],
]


@pytest.mark.parametrize("gold", CALLS, ids=lambda gold: json.dumps(gold)[:50])
@pytest.mark.parametrize("written", [lambda gold: gold, json.dumps])
def test_calls_of_a_function_in_every_form(gold, written):
    in_class = "Solution()" in str(gold)
    by_name = any(name in str(gold) for name in ("fn_name", "func_name"))
    wanted = [True, False] * (1 + by_name)
    replies = [] if in_class else [ADD, SUBTRACT]
    if in_class or by_name:
        replies += [IN_CLASS.format("+"), IN_CLASS.format("-")]
    verdicts = [code().check(reply, written(gold)) for reply in replies]
    assert [verdict.correct for verdict in verdicts] == wanted[: len(replies)], verdicts


@pytest.mark.parametrize(
    "columns", [{"metadata": '{"func_name": "twoSum"}'}, {"metadata": {"func_name": "twoSum"}}, {"fn_name": "twoSum"}]
)
def test_functions_of_livecodebench(columns):
    gold = [
        {"input": "[2, 7, 11]\n9", "output": "[0, 1]", "testtype": "functional"},
        {"input": "[3, 3]\n6\n", "output": "[0, 1]", "testtype": "functional"},
    ]
    for written in (gold, json.dumps(gold)):
        verdicts = [code().check(reply, written, **columns) for reply in (RIGHT, RIGHT.replace("[i, j]", "(i, j)"), WRONG, "x = 1")]
        assert [verdict.correct for verdict in verdicts] == [True, True, False, False], verdicts
        assert len(verdicts[0].tests) == 2


def test_a_program_in_answer_tags_needs_no_fence():
    gold = {"tests": "assert add(1, 2) == 3"}
    for reply in (
        f"<think>Add.</think><answer>\n{ADD}\n</answer>",
        f"So:\n<answer>{ADD}</answer>",
        f"a sum</think>\n<solution>\n{ADD}",
    ):
        assert code().check(reply, gold).correct, reply
    # a program may print such tags, and a fence counts more
    assert code().check("print('<answer>')\nprint('5</answer>')", {"io": [["", "<answer>\n5</answer>"]]}).correct
    assert code().check(f"<answer>{SUBTRACT}</answer>\n```python\n{ADD}\n```", gold).correct


@pytest.mark.parametrize(
    "columns", [{"test_setup_code": "import math\ntwo = 2", "test_imports": []}, {"test_imports": ["import math", "two = 2"]}]
)
def test_what_the_asserts_of_mbpp_need_may_stand_in_columns_beside_them(columns):
    tests = ["assert math.isclose(add(1, two), 3)"]
    for gold in (tests, json.dumps(tests), {"test_list": tests, **columns}):
        assert [code().check(reply, gold, **columns).correct for reply in (ADD, SUBTRACT)] == [True, False]


def test_a_program_may_begin_with_a_space():
    gold = {"tests": "assert add(1, 2) == 3"}
    block = "def add(a, b):\n    return a + b"
    indented = "\n".join(f"  {line}" for line in block.splitlines())
    for reply in (f" {block}", f"  {block}  ", indented, f"```python\n{indented}\n```"):
        assert code().check(reply, gold).correct, reply
    # what a prompt began goes on where it stopped
    assert code().check("    return a + b", gold | {"prompt": "def add(a, b):\n", "entry_point": "add"}).correct


def test_a_program_that_does_not_end_is_not_tried_on_every_input():
    io = [[f"{i}\n", f"{i}\n"] for i in range(60)]
    slow = "x = int(input())\nwhile x == {}: pass\nprint(x)"
    started = time.monotonic()
    pairs = [(slow.format(at), {"io": io}) for at in (0, 3, 59, 60)] + [("while True: pass", {"io": io[:1]})]
    found = code(seconds=1.0, partial=True).check_all(pairs)
    assert time.monotonic() - started < 30
    # rounds of 1, 4 and 16 inputs: after the one in which it took too long there is none
    assert [sum(verdict.tests) for verdict in found] == [0, 4, 59, 60, 0]
    assert [len(verdict.tests) for verdict in found] == [60, 60, 60, 60, 1]
    assert [verdict.correct for verdict in found] == [False, False, False, True, False]
    assert found[1].why == "input 4: the program took over 1 s"


def test_a_question_may_be_the_beginning_of_the_program():
    question = 'def half(x):\n    return x / 2\n\n\ndef mean(a, b):\n    """The mean."""\n'
    tests = "def check(candidate):\n    assert candidate(1, 2) == 1.5\n    assert candidate(0, 4) == half(4)\n"
    asked = {"prompt": question, "entry_point": "mean"}
    body, whole = "    return half(a + b)", "def mean(a, b):\n    return half(a + b)"
    for reply in (body, whole, f" {whole}", f"```python\n{whole}\n```", f"{question}{body}"):
        assert code().check(reply, tests, **asked).correct, reply
    for reply in ("    return a + b", "I do not know.", ""):
        assert code().check(reply, tests, **asked).correct is False, reply
    # a question in words is none
    assert code().check(body, tests, prompt=f"Complete this:\n{question}", entry_point="mean").correct is False


def test_one_argument_that_is_a_list_written_as_text():
    gold = {"fn_name": "total", "inputs": ["[1, 2, 3]", "[]"], "outputs": ["6", "0"]}
    verdicts = [code().check(f"def total(xs): return {of}", gold) for of in ("sum(xs)", "len(xs)")]
    assert [verdict.correct for verdict in verdicts] == [True, False], verdicts


@pytest.mark.parametrize("entry_point", ["Solution().twoSum", "twoSum"])
def test_a_method_is_tested_by_its_name_and_a_prompt_that_begins_its_class(entry_point):
    tests = "def check(candidate):\n    assert candidate([2, 7], 9) == [0, 1]"
    prompt = "class Solution:\n    def twoSum(self, nums: List[int], target: int) -> List[int]:\n"
    gold = {"tests": tests, "entry_point": entry_point, "prompt": prompt}
    if entry_point == "twoSum":
        assert code().check("def twoSum(nums, target): return [0, 1]", gold | {"prompt": ""}).correct is True
        return
    for of in (gold, gold | {"prompt": ""}):
        assert [code().check(reply, of).correct for reply in (RIGHT, WRONG, "def twoSum(a, b): return [0, 1]")] == [
            True,
            False,
            False,
        ]


@pytest.mark.parametrize(
    ("gold", "why"),
    [
        ({"io": [{"input": "5"}]}, "must have `output` in each pair of `io`; it has input"),
        ({"io": [{"question": "5", "reply": "5"}]}, "must have `input` in each pair"),
        ({"inputs": ["1", "2"], "outputs": ["1"]}, "2 inputs and 1 outputs"),
        ({"inputs": [5], "outputs": [5], "fn_name": "f"}, "lists of arguments as inputs of f"),
        ([{"input": "5", "output": "5", "testtype": "functional"}], "names the function"),
        ([{"input": "a b", "output": "5", "testtype": "functional"}], "names the function"),
        ({"private_test_cases": "eJxrYJmqxgABsVYMUEEQAA"}, "not JSON"),
        ({"tests": "assert f()", "entry_point": "os.system('x')"}, "names the function to test as"),
        ({"io": [{"input": 5, "output": 5}]}, "pairs of texts"),
        ({"solution": "print(5)"}, "has neither"),
    ],
)
def test_a_gold_answer_that_cannot_judge_says_what_it_lacks(gold, why):
    verdict = code().check(ECHO, gold)
    assert verdict.correct is None
    assert why in verdict.why


@pytest.mark.parametrize(
    ("printed", "wanted", "correct"),
    [
        ("print(1/3)", "0.333333333333", True),
        ("print(1/3, 2/3)", "0.33333333 0.66666667", True),
        ("print('Case 1:', 2/3)", "Case 1: 0.666666667", True),
        ("print(1e20 / 3)", "33333333333333300000.0", True),
        ("print(5.0)", "5", True),
        ("print(5)", "5.000", True),
        ("print(-0.0)", "0.0", True),
        ("print('1.5   2')", "1.5 2", True),
        ("print(1/3)", "0.3334", False),
        ("print(round(1/3, 3))", "0.333333333", False),
        ("print(10000001)", "10000000", False),
        ("print(10000000.5)", "10000000", False),
        ("print('007')", "7", False),
        ("print('Case 2:', 2/3)", "Case 1: 0.666666667", False),
        ("print('Case  1:', 2/3)", "Case 1: 0.666666667", False),
        ("print(1/3, 7)", "0.333333333", False),
        ("print('nan')", "0.5", False),
        ("print('inf')", "1e999", False),
        ("print('0.5x')", "0.5", False),
        ("print('a  b')", "a b", False),
    ],
)
def test_decimals_may_differ_by_the_tolerance(printed, wanted, correct):
    assert code().check(printed, {"io": [["", wanted]]}).correct is correct


def test_the_tolerance_is_a_setting():
    gold = {"io": [["", "0.3334"]]}
    assert [code(tolerance=t).check("print(1/3)", gold).correct for t in (1e-3, 1e-6, 0.0)] == [True, False, False]
    assert code(tolerance=0.0).check("print(1/4)", {"io": [["", "0.25"]]}).correct is True
    called = {"inputs": [[1.0, 3.0]], "outputs": [0.3334], "fn_name": "f"}
    assert [code(tolerance=t).check("def f(a, b): return a / b", called).correct for t in (1e-3, 1e-6)] == [True, False]


PROGRAM = "def f(x):\n    return x\n"


@pytest.mark.parametrize(
    "reply",
    [
        "1. First:\n   ```python\n   def f(x):\n       return x\n   ```\n2. Done.",
        "- ```python\n  def f(x):\n      return x\n  ```",
        "2) ```py\n   def f(x):\n       return x\n   ```\nprose",
        "~~~python\ndef f(x):\n    return x\n~~~",
        "~~~\ndef f(x):\n    return x\n~~~\nThat is all.",
        "````python\ndef f(x):\n    return x\n````",
        "\t```python\n\tdef f(x):\n\t    return x\n\t```",
        "~~~python\ndef f(x):\n    return x",
        "```text\nnot this\n```\n~~~python\ndef f(x):\n    return x\n~~~",
    ],
)
def test_fences_of_every_kind(reply):
    assert program_of(reply) == PROGRAM


def test_a_fence_of_another_kind_or_of_less_length_closes_nothing():
    assert program_of("~~~python\nx = '''\n```\n'''\n~~~\n") == "x = '''\n```\n'''\n"
    assert program_of("````python\nx = '''\n```\n'''\n````\n") == "x = '''\n```\n'''\n"
    assert program_of("```python\nx = '''\n- ```\n'''\n```\n") == "x = '''\n- ```\n'''\n"
