"""Gold answers of programs in the forms of published data: asserts, pairs of input and output, and calls with their results.

Own form          {"tests", "entry_point"?, "prompt"?}, {"io": [[stdin, stdout], ...]}
HumanEval, MBPP   {"test", "entry_point"}, {"test_list": [assert, ...], "test_setup_code"?}, a list of asserts
APPS, TACO        {"inputs": [...], "outputs": [...], "fn_name"?}; with fn_name the inputs are lists of arguments
verl's PRIME      the same, with fn_name inputs and outputs are texts of JSON, an argument a line (Eurus-2-RL-Data)
KodCode           tests of pytest as text, which import the program from `solution`
LiveCodeBench     [{"input", "output", "testtype": "stdin" or "functional"}, ...]; the function is `func_name` in `metadata`
PrimeIntellect    {"test_cases": [{"type": "stdin_stdout" or "function_call", "fn_name"?, "input", "output"}, ...]}
CodeContests      {"public_tests": {"input": [...], "output": [...]}, "private_tests"?, "generated_tests"?}
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

ENTRY = re.compile(r"[A-Za-z_]\w*(?:\(\))?(?:\.[A-Za-z_]\w*(?:\(\))?)*")
"""What may name the function that tests call: add, Solution().add, module.add."""
INPUT, OUTPUT = ("input", "stdin", "in", "inputs"), ("output", "stdout", "expected_output", "expected", "out", "outputs", "answer")
PARTS_OF_TESTS = (
    "io", "input_output", "tests", "test_cases", "public_tests", "private_tests", "generated_tests", "public_test_cases",
    "private_test_cases",
)  # fmt: skip
FUNCTION = ("entry_point", "fn_name", "func_name")
FORMS = "`tests`, `io`, `inputs` and `outputs`, or a list of tests"

NEAR = """\
def near(said, wanted):
    said = list(said) if isinstance(said, tuple) else said
    if isinstance(wanted, list):
        return isinstance(said, list) and len(said) == len(wanted) and all(map(near, said, wanted))
    if isinstance(wanted, float) and isinstance(said, (int, float)):
        return abs(said - wanted) <= {tolerance!r} * max(1.0, abs(wanted))
    return said == wanted


def check(candidate):
"""
"""How results of calls are compared, as APPS and LiveCodeBench do: tuples are lists, and decimals may differ slightly."""


class Unusable(ValueError):
    """A gold answer cannot judge a program; the message says why, after "the gold answer"."""


class GoldProgram(NamedTuple):
    """What a program is judged by: the source of tests, or pairs of standard input and output.

    entry_point: the function that `check(candidate)` of the tests gets, a name or `Solution().add`; where `either` it is a
    function of the program or a method of its class Solution.  prompt: how the program begins.
    """

    tests: str = ""
    io: Sequence[tuple[str, str]] = ()
    entry_point: str = ""
    prompt: str = ""
    in_place: bool = False
    either: bool = False


def gold_program(answer: Any, meta: Mapping[str, Any], tolerance: float) -> GoldProgram:
    """A gold answer in any of the forms. Raises Unusable.  meta: the row's other columns, which may name the function."""
    if isinstance(answer, str):
        try:
            answer = json.loads(answer)
        except ValueError:
            # a text that is not JSON is the tests themselves
            answer = {"tests": answer}
    if isinstance(answer, list | tuple):
        answer = {"tests" if answer and all(isinstance(test, str) for test in answer) else "io": answer}
    if not isinstance(answer, Mapping):
        raise Unusable(f"has neither {FORMS}")
    function = _function(answer, meta) or _function_of_a_pair(answer)
    if (tests := _tests(answer, meta)) and not answer.get("io"):
        return GoldProgram(tests, (), function, _text(answer, "prompt"), bool(answer.get("in_place")))
    cases = list(_cases(answer))
    if not cases:
        raise Unusable(f"has neither {FORMS}")
    if any(kind in CALLED for _, _, kind in cases) or (answer.get("fn_name") or answer.get("func_name")):
        return GoldProgram(_calls(cases, function, tolerance), (), function, either=True)
    return GoldProgram(io=[(_stdio(given), _stdio(wanted)) for given, wanted, _ in cases])


def _function(answer: Mapping[str, Any], meta: Mapping[str, Any]) -> str:
    """The function that is tested, from the answer or another column; "" if none is named."""
    within = meta.get("metadata")
    if isinstance(within, str):
        try:
            within = json.loads(within)
        except ValueError:
            within = None
    beside = (meta, within if isinstance(within, Mapping) else {})
    columns = (place.get(key) for place in beside for key in FUNCTION)
    name = next((answer[key] for key in FUNCTION if answer.get(key)), None)
    if name is None:
        # another column of that name may hold something else
        return next((x for x in columns if isinstance(x, str) and ENTRY.fullmatch(x)), "")
    if not isinstance(name, str) or not ENTRY.fullmatch(name):
        raise Unusable(f"names the function to test as {name!r:.60}; write add, or Solution().add")
    return name


def _function_of_a_pair(answer: Mapping[str, Any]) -> str:
    """The function that the first of several pairs names, itself or in its `metadata`."""
    pairs = next((answer[name] for name in PARTS_OF_TESTS if isinstance(answer.get(name), list | tuple)), ())
    first = pairs[0] if pairs and isinstance(pairs[0], Mapping) else {}
    return _function({key: first[key] for key in FUNCTION if key in first}, {"metadata": first.get("metadata")})


def _tests(answer: Mapping[str, Any], meta: Mapping[str, Any]) -> str:
    """The source of tests; "" if there are none.  meta: MBPP's asserts have what they need before them in other columns."""
    tests = next((answer[key] for key in ("tests", "test", "test_list", "assert_case") if answer.get(key)), "")
    if isinstance(tests, list | tuple) and not any(isinstance(line, str) for line in tests):
        return ""
    if isinstance(tests, list | tuple) and all(isinstance(line, str) for line in tests):
        before = {name: answer.get(name) or meta.get(name) for name in ("test_setup_code", "test_imports")}
        imports = before["test_imports"] if isinstance(before["test_imports"], list | tuple) else ()
        tests = "\n".join([str(before["test_setup_code"] or ""), *map(str, imports), *tests])
    if not isinstance(tests, str):
        raise Unusable("must have text as `tests`, `entry_point` and `prompt`")
    return tests


def _text(answer: Mapping[str, Any], name: str) -> str:
    value = answer.get(name) or ""
    if not isinstance(value, str):
        raise Unusable("must have text as `tests`, `entry_point` and `prompt`")
    return value


Case = tuple[Any, Any, str]
"""Input, output, and the kind of test."""
CALLED = ("functional", "function_call")
"""Kinds whose input is the arguments of a call: as a text, one a line, or as a list."""


def _cases(answer: Mapping[str, Any]) -> Iterable[Case]:
    """The pairs of input and output, however they are written."""
    parts = [answer[name] for name in PARTS_OF_TESTS if answer.get(name)]
    for part in parts or [answer]:
        if isinstance(part, str):
            try:
                part = json.loads(part)
            except ValueError:
                raise Unusable("must have pairs of texts, input and output, as `io`; it has a text that is not JSON") from None
        yield from _columns(part) if isinstance(part, Mapping) else map(_pair, _listed(part))


def _columns(part: Mapping[str, Any]) -> Iterable[Case]:
    """Pairs from one list of inputs and one of outputs."""
    if not {*INPUT, *OUTPUT} & part.keys():
        return ()
    given, wanted = (_named(part, names) for names in (INPUT, OUTPUT))
    if isinstance(given, str) and isinstance(wanted, str):
        return [(given, wanted, "")]
    given, wanted = _listed(given), _listed(wanted)
    if len(given) != len(wanted):
        raise Unusable(f"has {len(given)} inputs and {len(wanted)} outputs")
    return ((x, y, "") for x, y in zip(given, wanted, strict=True))


def _pair(pair: Any) -> Case:
    if isinstance(pair, Mapping):
        return _named(pair, INPUT), _named(pair, OUTPUT), str(pair.get("testtype") or pair.get("type") or "")
    if isinstance(pair, str) or not isinstance(pair, Sequence) or len(pair) != 2 or not all(isinstance(x, str) for x in pair):
        raise Unusable("must have pairs of texts, input and output, as `io`")
    return pair[0], pair[1], ""


def _listed(value: Any) -> Sequence[Any]:
    if not isinstance(value, list | tuple):
        raise Unusable(f"must have lists of inputs and outputs, or of pairs of them, as `io`, not {value!r:.60}")
    return value


def _named(part: Mapping[str, Any], names: Sequence[str]) -> Any:
    """The value under the first of these names that there is."""
    for name in names:
        if name in part:
            return part[name]
    raise Unusable(f"must have `{names[0]}` in each pair of `io`; it has {', '.join(map(str, part)) or 'nothing'}")


def _stdio(value: Any) -> str:
    """What a program reads or prints: a text, or its lines."""
    if isinstance(value, list | tuple) and all(isinstance(line, str) for line in value):
        return "\n".join(value)
    if not isinstance(value, str):
        raise Unusable(f"must have pairs of texts, input and output, as `io`, not {value!r:.60}")
    return value


def _calls(cases: Sequence[Case], function: str, tolerance: float) -> str:
    """Tests that call a function with the inputs, and compare what it returns with the outputs."""
    if not function:
        raise Unusable("has inputs that are arguments, and no `fn_name` or `entry_point` names the function")
    lines = []
    for given, wanted, kind in cases:
        # a result as text is that of LiveCodeBench, whatever the kind is called: one argument a line, all in JSON
        if kind == "functional" or (isinstance(given, str) and isinstance(wanted, str)):
            arguments, results = _parsed(given.splitlines() if isinstance(given, str) else given), _parsed([wanted])
        else:
            # APPS writes a result as it is, or as a list of it
            arguments = _parsed([given])[0]
            results = [wanted, *(wanted if isinstance(wanted, list) and len(wanted) == 1 else ())]
        if not isinstance(arguments, list):
            raise Unusable(f"must have lists of arguments as inputs of {function}, not {arguments!r:.60}")
        called = ", ".join(map(repr, arguments))
        lines.append(f"    assert any(near(x, y) for x in [candidate({called})] for y in {results!r})")
    return NEAR.format(tolerance=tolerance) + "\n".join(lines) + "\n"


def _parsed(values: Iterable[Any]) -> list[Any]:
    """Values, those that are texts read as JSON. Blank lines are none."""
    try:
        return [json.loads(value) if isinstance(value, str) else value for value in values if value != ""]
    except ValueError:
        raise Unusable("must have JSON as the arguments and results of calls") from None
