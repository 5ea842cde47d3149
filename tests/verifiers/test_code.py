"""Programs that must pass tests: how a reply is read, what the verdict says, and HumanEval as its own executor sees it."""

from __future__ import annotations

import ast
import gzip
import importlib
import json
from pathlib import Path

import pytest

from rewardlab.errors import RewardlabError
from rewardlab.sandbox import ProgramRun, Sandbox
from rewardlab.tasks.sources import data_file
from rewardlab.text.blocks import program_of
from rewardlab.verifiers.code import code, completed
from rewardlab.verifiers.contract import Pair

ADD = {"tests": "assert add(1, 2) == 3\nassert add(2, 2) == 4"}
DOUBLE = {"io": [["1\n", "2\n"], ["4", "8"]]}
GOOD = "Here it is:\n```python\ndef add(a, b):\n    return a + b\n```\n"


@pytest.fixture(scope="module", autouse=True)
def isolation():
    try:
        Sandbox().run_programs([ProgramRun("")])
    except RewardlabError as problem:
        pytest.skip(str(problem))


# ---- replies ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("reply", "program"),
    [
        ("x = 1", "x = 1"),
        ("    return 1", "    return 1"),
        ("a\n```python\nx = 1\n```\nb\n```py\nx = 2\n```\nc", "x = 2\n"),
        ("```python\nx = 1\n```\nIt prints\n```\n1\n```", "x = 1\n"),
        ("```\nx = 1\n```", "x = 1\n"),
        ("```python\nx = 1", "x = 1\n"),
        ("```Python title=a\n    x = '```'\n```", "    x = '```'\n"),
        ("", ""),
        ("Here it is: ```python\nx = 1\n```\nDone.", "x = 1\n"),
        ("\ufeffx = 1", "x = 1"),
        # what a model thinks is no program, however it thinks
        ("<think>\n```python\nx = 1\n```\nLet me", ""),
        ("<think>```python\nx = 1\n```</think>I don't know.", "I don't know."),
        ("<think>Try ```python ... no</think>\n```python\nx = 2\n```", "x = 2\n"),
        ("<think>```python\nx = 1\n</think>\n```python\nx = 2\n```", "x = 2\n"),
        ("a ```python\nx = 1\n```\n</think>```python\nx = 2\n```", "x = 2\n"),
        # tags in a program are its own
        ("```python\nx = '<think>a</think>'\n```", "x = '<think>a</think>'\n"),
        ("<think>a</think>```python\nx = '<think>a</think>'\n```", "x = '<think>a</think>'\n"),
    ],
)
def test_the_program_of_a_reply(reply, program):
    assert program_of(reply) == program


@pytest.mark.parametrize(
    "behind",
    ["```python\nprint(add(1, 2))\n```", "```python\n>>> add(1, 2)\n3\n```", "```py\nresult = add(1, 2)\nassert result == 3\n```"],
)
@pytest.mark.parametrize("gold", [ADD, {"tests": "def check(f):\n    assert f(1, 2) == 3\n", "entry_point": "add"}])
def test_an_example_of_its_use_is_not_the_program(gold, behind):
    assert code().check(f"{GOOD}\n### Example usage\n\n{behind}\n", gold).correct is True


def test_the_last_block_that_defines_what_is_tested_is_the_program():
    draft, names = "```python\ndef add(a, b): return 0\n```\n", lambda: {"add"}
    assert "a + b" in program_of(draft + GOOD + "```python\nprint(1)\n```", names)
    # where none does, the last one counts
    assert program_of("```python\nx = 1\n```\n```python\ny = 2\n```", names) == "y = 2\n"
    assert program_of("```python\nadd = lambda a, b: a\n```\n```python\nadd == 2\n```", names) == "add = lambda a, b: a\n"
    assert code().check(draft + GOOD, ADD).correct is True
    assert code().check(GOOD + draft, ADD).correct is False


def test_a_prompt_is_completed_or_its_function_written_anew():
    prompt = 'from math import pi\n\ndef f(x):\n    """Doc."""\n'
    assert completed(prompt, "    return x", "f") == (prompt + "    return x",)
    assert completed(prompt, "def f(x): return x", "f") == (prompt, "def f(x): return x")
    assert completed("def f(x):\n", "def f(x): return x", "f") == ("def f(x):\n    pass\n", "def f(x): return x")
    assert completed("", "def f(x): return x", "f") == ("def f(x): return x",)


# ---- verdicts --------------------------------------------------------------------------------------------------------


def test_functions_are_tested():
    verdict = code().check(GOOD, ADD)
    assert verdict.correct is True
    assert verdict.parts["passed"] == 1.0
    assert 0 < verdict.parts["seconds"] < 5
    assert 5 < verdict.parts["memory"] < 200
    assert code().check(GOOD, json.dumps(ADD)).correct is True
    assert code().check(GOOD, ADD["tests"]).correct is True


@pytest.mark.parametrize(
    ("body", "tests", "ran"),
    [
        ("return a + b", (True, True), 1.0),
        ("return 3", (True, False), 1.0),
        ("return a + b if b == 2 and a == 1 else 1 / 0", (True, False), 0.0),
        ("return a + ", (False, False), 0.0),
        # an assertion of the program's own is no error, and earns no more than a wrong value
        ("assert False", (False, False), 1.0),
    ],
)
def test_each_test_has_its_result_and_errors_are_told_from_wrong_values(body, tests, ran):
    verdict = code().check(f"def add(a, b): {body}", ADD)
    assert (verdict.tests, verdict.parts["ran"]) == (tests, ran)
    outputs = code().check(f"def add(a, b): {body}\nprint(add(int(input()), 0))", {"io": [["1", "1"], ["3", "3"]]})
    assert (len(outputs.tests), outputs.parts["ran"]) == (2, ran if body != "assert False" and "1 / 0" not in body else 0.0)
    assert verdict.parts["compiled"] == outputs.parts["compiled"] == float(body != "return a + ")


@pytest.mark.parametrize(("partial", "pays"), [(False, 0.0), (True, 0.5)])
def test_some_tests_passed_pay_if_asked_for(partial, pays):
    verdict = code(partial=partial).check("def add(a, b): return 3", ADD)
    assert (verdict.correct, verdict.pays, verdict.parts["passed"]) == (False, pays, 0.5)
    assert verdict.why == "assert add(2, 2) == 4: does not hold"


@pytest.mark.parametrize(
    ("reply", "correct", "passed", "why"),
    [
        ("print(int(input()) * 2)", True, 1.0, "passes"),
        ("print(2, ' ')\nprint()", False, 0.5, "input 2: prints something else"),
        ("print(2 if int(input()) == 1 else 1 / 0)", False, 0.5, "division by zero"),
        ("", False, 0.0, "no program"),
    ],
)
def test_what_is_printed_is_compared(reply, correct, passed, why):
    verdict = code().check(reply, DOUBLE)
    assert (verdict.correct, verdict.parts.get("passed")) == (correct, passed)
    assert why in verdict.why


def test_what_python_cannot_read_is_told_from_what_raises():
    unread = ("def f(", "\tx = 1\n        y", "x = '\x00'", "")
    assert [code().check(text, gold).parts["compiled"] for text in unread for gold in (ADD, DOUBLE)] == [0.0] * 8
    assert [code().check(text, gold).parts["compiled"] for text in ("raise ValueError", "1 / 0") for gold in (ADD, DOUBLE)] == [
        1.0
    ] * 4


@pytest.mark.parametrize(
    "answer",
    [
        None, 3, {}, {"tests": ""}, {"tests": 3}, {"io": "ab"}, {"io": [["1"]]}, {"io": [[1, 2]]}, {"tests": "assert ("},
        {"tests": "add(1, 2)"},
        {"tests": "import not_there\nassert add(1, 2) == 3"}, {"tests": "def check(f): assert f(1, 2) == 3"},
    ],
)  # fmt: skip
def test_an_answer_that_cannot_judge_gives_no_verdict(answer):
    verdict = code().check(GOOD, answer)
    assert verdict.correct is None, verdict
    assert verdict.why


def test_one_bad_pair_leaves_the_others_alone():
    pairs = [
        Pair(GOOD, ADD),
        Pair(GOOD, None),
        Pair("while True: pass", ADD),
        Pair("print(2 * int(input()))", DOUBLE),
        Pair(None, ADD),
    ]
    verdicts = code(seconds=1.0).check_all([*pairs, Pair("\ud800", ADD), Pair("\0" * 10, ADD), Pair(GOOD, ADD)])
    assert [verdict.correct for verdict in verdicts] == [True, None, False, True, False, False, False, True]


# ---- HumanEval -------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def problems():
    try:
        path = data_file("humaneval", "HumanEval.jsonl.gz")
    except RewardlabError as problem:
        pytest.skip(str(problem))
    with gzip.open(path, "rt") as file:
        return [json.loads(line) for line in file]


COMPARISONS = {ast.Lt: ast.GtE, ast.GtE: ast.Lt, ast.Gt: ast.LtE, ast.LtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq}
OPERATORS = {ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Add, ast.Mod: ast.Mult}


class OneChange(ast.NodeTransformer):
    """Changes the first operator, comparison or number of a program, or what it returns."""

    done = False

    def first(self):
        before, self.done = self.done, True
        return not before

    def visit_While(self, node):
        # a changed condition could loop for ever
        return node

    def visit_Compare(self, node):
        kind = COMPARISONS.get(type(node.ops[0]))
        if kind and self.first():
            node.ops[0] = kind()
        return self.generic_visit(node)

    def visit_BinOp(self, node):
        kind = OPERATORS.get(type(node.op))
        if kind and self.first():
            node.op = kind()
        return self.generic_visit(node)

    def visit_Constant(self, node):
        return ast.Constant(node.value + 1) if type(node.value) is int and self.first() else node

    def visit_Return(self, node):
        changed = self.generic_visit(node)
        return ast.Return(ast.Constant(None)) if self.first() else changed


class NothingReturned(ast.NodeTransformer):
    """By the function itself; those within it could then loop for ever."""

    inside = False

    def visit_FunctionDef(self, node):
        if self.inside:
            return node
        self.inside = True
        return self.generic_visit(node)

    def visit_Return(self, node):
        return ast.Return(ast.Constant(None))


def changed(problem, change):
    tree = ast.parse(problem["prompt"] + problem["canonical_solution"])
    for node in tree.body:
        if getattr(node, "name", "") == problem["entry_point"]:
            change.visit(node)
    return ast.unparse(ast.fix_missing_locations(tree)) + "\n"


def answer(problem):
    return {"tests": problem["test"], "entry_point": problem["entry_point"], "prompt": problem["prompt"]}


def test_all_solutions_of_humaneval_pass(problems):
    verdicts = code(seconds=30).check_all([Pair(p["canonical_solution"], answer(p)) for p in problems])
    assert [(p["task_id"], v.why) for p, v in zip(problems, verdicts, strict=True) if not v.correct] == []
    assert len(verdicts) == 164


def judged(problems, texts):
    pairs = [Pair(f"```python\n{text}```", answer(p)) for p, text in zip(problems, texts, strict=True)]
    return code(seconds=30).check_all(pairs)


def test_solutions_that_return_nothing_fail(problems):
    verdicts = judged(problems, [changed(p, NothingReturned()) for p in problems])
    assert [(p["task_id"], v.why) for p, v in zip(problems, verdicts, strict=True) if v.correct is not False] == []


@pytest.mark.slow
def test_changed_solutions_are_judged_as_by_humanevals_own_executor(problems, tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2] / "benchmarks"))
    bench = importlib.import_module("sandbox")
    texts = [changed(p, OneChange()) for p in problems]
    file = tmp_path / "texts.json"
    file.write_text(json.dumps([bench.executable(p | {"prompt": ""}, text) for p, text in zip(problems, texts, strict=True)]))
    theirs = bench.in_own_process(bench.__file__, "verdicts", {"texts": str(file), "seconds": 30.0})
    ours = judged(problems, texts)
    assert [(p["task_id"], v) for p, v, t in zip(problems, ours, theirs, strict=True) if v.correct is not t] == []
    assert 100 < theirs.count(False) < 164


@pytest.mark.slow
def test_the_benchmark_runs(problems, monkeypatch):
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2] / "benchmarks"))
    monkeypatch.setenv("REWARDLAB_BENCH_THREADS", "1")
    (row,) = importlib.import_module("sandbox").run(programs=2, repeats=1)
    assert row["settings"]["passed"] == {"ours": 2, "peer": 2}
    assert row["ratio"] > 0
