"""Model-written unit tests: the prompt, and the one test parsed from the reply."""

from __future__ import annotations

import ast
import json
import sys
from collections.abc import Sequence
from typing import Any

from .blocks import last_block, program_of
from .filled import filled

ASK = (
    "Write a unit test that a right program for this problem passes: one class of Python's unittest, in a block of code, that "
    "calls the program's functions by their names. Do not repeat the program, and do not test which errors it raises.\n\n"
    "### Problem\n{question}{program}"
)
"""What a test writer reads, with {question} and {program}, a section that is left out where no program is shown."""
ASK_PAIR = (
    'Write one test of a program for this problem, as a line of JSON: ["input", "output"], two texts; the output is what a right '
    "program gives.\n\n### Problem\n{question}{program}"
)
"""The same where programs are judged by pairs of input and output."""
UNREADABLE = (SyntaxError, ValueError, RecursionError, MemoryError)
RUNS = "assert unittest.TextTestRunner(verbosity=0).run(unittest.TestLoader().loadTestsFromTestCase({name})).wasSuccessful()"


def asked_for_test(question: str, reply: str, pairs: bool, ask: str = "") -> str:
    """What the writer of a test reads.  reply: one with a program to be shown, which may be wrong; "": none."""
    program = program_of(reply)
    shown = f"\n\n### Program\n{program.strip()}" if program.strip() else ""
    return filled(ask or (ASK_PAIR if pairs else ASK), question=question, program=shown)


def read_test(reply: str, pairs: bool) -> Any:
    """The test that a reply holds, None without one that can be run.

    pairs: the first pair of texts. Else Python with one `assert`, which holds where the reply's class of unittest passes, or all of
    its own asserts hold. A copy of the program, and imports of what is no part of Python, are left out.
    """
    text = last_block(reply) or reply
    return _pair(text) if pairs else _python(text)


def distinct(tests: Sequence[Any]) -> list[Any]:
    """The tests, each once, without None."""
    return list({json.dumps(test): test for test in tests if test is not None}.values())


def _pair(text: str) -> list[str] | None:
    for line in text.splitlines():
        try:
            found = json.loads(line.strip().rstrip(","))
        except (ValueError, RecursionError):
            continue
        if isinstance(found, list) and len(found) == 2:
            return [x if isinstance(x, str) else json.dumps(x) for x in found]
    return None


def _python(text: str) -> str | None:
    try:
        tree = ast.parse(text)
        imports = [node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom) and _of_python(node)]
        cases = [node for node in tree.body if isinstance(node, ast.ClassDef) and _is_case(node)]
        if len(cases) == 1:
            made: list[ast.stmt] = [_Asserted().visit(cases[0]), *ast.parse(RUNS.format(name=cases[0].name)).body]
            return ast.unparse(ast.fix_missing_locations(ast.Module([*ast.parse("import unittest").body, *imports, *made], [])))
        held = [node.test for node in tree.body if isinstance(node, ast.Assert)]
        if cases or not held:
            return None
        whole = ast.Assert(held[0] if len(held) == 1 else ast.BoolOp(ast.And(), held))
        return ast.unparse(ast.fix_missing_locations(ast.Module([*imports, whole], [])))
    except UNREADABLE:
        return None


def _of_python(node: ast.Import | ast.ImportFrom) -> bool:
    names = [node.module or ""] if isinstance(node, ast.ImportFrom) else [alias.name for alias in node.names]
    return all(name.partition(".")[0] in sys.stdlib_module_names for name in names)


def _is_case(node: ast.ClassDef) -> bool:
    based = any(ast.unparse(base).rpartition(".")[2] == "TestCase" for base in node.bases)
    # without a method there is nothing to fail
    return based and any(isinstance(x, ast.FunctionDef) and x.name.startswith("test") for x in node.body)


class _Asserted(ast.NodeTransformer):
    """Asserts within a class as its own checks: a test has one assert."""

    def visit_Assert(self, node: ast.Assert) -> ast.stmt:
        return ast.Expr(ast.Call(ast.Attribute(ast.Name("self", ast.Load()), "assertTrue", ast.Load()), [node.test], []))
