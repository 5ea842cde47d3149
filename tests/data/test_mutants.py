"""Programs with one line changed."""

from __future__ import annotations

import random
from collections import Counter

from rewardlab.data.mutants import SWAPS, mutant_of, mutated, syntax_mutants


def found(line: str) -> set[str | None]:
    return {mutated(line, random.Random(seed)) for seed in range(60)}


def test_one_number_or_one_word_is_changed():
    assert found("keep > 3") == {"keep < 3", "keep > 2", "keep > 4"}
    assert found("return x == y[0]") == {"return x != y[0]", "return x == y[1]"}
    # a name that contains a word of the table is another word, and the longer sign is read first
    assert found("summary += maximum") == {"summary -= maximum"}
    assert found("print(x)") == {None}


def test_nothing_becomes_what_it_was_and_no_word_has_two_counterparts():
    assert found("take 0") == {"drop 0", "take 1"}
    assert max(Counter(word for pair in SWAPS for word in pair).values()) == 1


def test_one_of_the_lines_that_can_change():
    program = "def f(x):\n\n    y = x + 1\n    return y"
    made = {mutant_of(program, random.Random(seed)) for seed in range(40)}
    # the blank line is not counted
    assert made == {(program.replace("+", "-"), 1), (program.replace("1", "2"), 1), (program.replace("1", "0"), 1)}
    assert mutant_of("a; b", random.Random(0), ";") is None
    assert {mutant_of("keep even; max", random.Random(s), ";") for s in range(20)} == {("keep odd; max", 0), ("keep even; min", 1)}


def test_changes_of_the_syntax_tree_of_python():
    program = 'def f(x, y):\n\n    s = "a < b"  # 1 + 1\n    return x not in y and True or x[0] // 2'
    changed = syntax_mutants(program)
    last = "    return x not in y and True or x[0] // 2"
    assert [(text.split("\n")[3], line) for text, line in changed] == [
        (last.replace("not in", "in"), 2), (last.replace("and", "or"), 2), (last.replace("True", "False"), 2),
        (last.replace(" or ", " and "), 2), (last.replace("[0]", "[1]"), 2), (last.replace("//", "*"), 2),
        (last.replace("2", "1"), 2), (last.replace("2", "3"), 2),
    ]  # fmt: skip
    # nothing else of the program moves
    assert all(text.split("\n")[:3] == program.split("\n")[:3] for text, _ in changed)
    assert syntax_mutants("not python:") == []
    # between operands that span lines, the operator is what changes
    assert syntax_mutants("a = (b\n     + c)") == [("a = (b\n     - c)", 1)]
