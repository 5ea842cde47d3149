"""The small language of programs: what they give, what they cost, and that none of them can do harm."""

import random

import pytest

from rewardlab.tasks.programs import (
    FOLDS,
    LIMIT,
    LONGEST,
    OPERATIONS,
    ProgramError,
    Ran,
    parse,
    read_value,
    run,
    sample_program,
    show,
    show_value,
)


def value(text, x):
    return run(parse(text), x).value


@pytest.mark.parametrize(
    ("text", "x", "y"),
    [
        ("+ 3", [1, -2], [4, 1]), ("- 3", 5, 2), ("* 2", [3], [6]), ("/ 2", [-3, 5], [-2, 2]), ("% 3", [-1, 5], [2, 2]),
        ("/ 0", [4], [0]), ("% 0", 4, 0), ("abs", [-4, 4], [4, 4]), ("keep > 2", [1, 2, 3], [3]), ("keep < 2", [1, 2, 3], [1]),
        ("keep even", [-2, 3, 4], [-2, 4]), ("keep odd", [-1, 2, 3], [-1, 3]), ("sort", [3, 1, 2], [1, 2, 3]),
        ("reverse", [1, 2], [2, 1]), ("unique", [2, 1, 2], [2, 1]), ("take 2", [1, 2, 3], [1, 2]), ("drop 2", [1, 2, 3], [3]),
        ("sums", [1, 2, 3], [1, 3, 6]), ("sum", [1, 2], 3), ("max", [1, 5, 2], 5), ("min", [4, 3], 3), ("len", [7, 7], 2),
        ("head", [4, 5], 4), ("last", [4, 5], 5), ("range", 3, [0, 1, 2]), ("range", -2, []),
        ("sum", [], 0), ("max", [], 0), ("head", [], 0), ("last", [], 0),
        ("repeat 3 (+ 1; * 2)", 1, 22), ("repeat 0 (+ 1)", 1, 1), ("keep > 3; * 2; sum", [1, 4, 5], 18),
    ],
)  # fmt: skip
def test_what_programs_give(text, x, y):
    assert value(text, x) == y


def test_every_operation_is_tried_above_or_here():
    tried = {"+", "-", "*", "/", "%", "abs", "sort", "reverse", "unique", "take", "drop", "sums", *FOLDS, "range"}
    assert set(OPERATIONS) == {*tried, "keep >", "keep <", "keep even", "keep odd"}


@pytest.mark.parametrize(
    ("text", "x", "cost"),
    [
        ("+ 3", [1, 2, 3], 4),  # one, and one for each number
        ("+ 3", 7, 2),
        ("sort", [3, 1, 2, 4], 1 + 4 * 3),  # four numbers of 3 bits
        ("take 2; head", [1, 2, 3], (1 + 2) + (1 + 1)),
        ("drop 2", [1, 2, 3], 1 + 1),
        ("len", [1, 2, 3], 1),
        ("range", 5, 1 + 5),
        ("range", 0, 1),
        ("repeat 2 (+ 1)", 7, 2 * (1 + 2)),
    ],
)
def test_what_programs_cost(text, x, cost):
    assert run(parse(text), x).operations == cost


def test_the_library_is_called_by_name_and_counted_apart():
    library = {"f": parse("+ 1; + 2")}
    # two stages of 1 + 2 in the library, and a sum of 1 + 2
    assert run(parse("f; sum", library), [5, 6], library=library) == Ran(17, 9, 6)
    with pytest.raises(ProgramError, match="no program 'f'"):
        run(parse("f", library), [1])
    nested = {"f": parse("g", ["g"]), "g": parse("f", ["f"])}
    with pytest.raises(ProgramError, match="to call here"):
        run(parse("f", nested), [1], library=nested)


@pytest.mark.parametrize(
    "text",
    ["", ";", "sum;", "keep", "keep 3", "+", "+ x", "+ -3", "sum sum", "repeat 3 + 1", "repeat 2 (sum", "sum)", "map", "+ 1234567",
     "__import__('os')", "é", "+ ²", "repeat 1 (repeat 1 (repeat 1 (repeat 1 (+ 1))))", "; ".join(["sum"] * 65), "(" * 9999],
)  # fmt: skip
def test_what_is_no_program(text):
    with pytest.raises(ProgramError):
        parse(text)


@pytest.mark.parametrize(
    ("text", "x", "why"),
    [
        ("sum", 3, "takes a list"),
        ("range", [1], "takes a number"),
        ("repeat 9 (* 99)", 9, "beyond"),
        ("sums", [10**6, 10**6], "beyond"),
        ("range", LONGEST + 1, "more than 100 numbers"),
        ("range", 10**6, "more than 100 numbers"),
        ("repeat 999999 (repeat 0 (+ 1))", 1, f"more than {LIMIT} operations"),
        ("repeat 9999 (repeat 9999 (repeat 9999 (sort)))", [2, 1], f"more than {LIMIT} operations"),
    ],
)
def test_every_program_ends(text, x, why):
    with pytest.raises(ProgramError, match=why):
        run(parse(text), x)


def test_programs_and_values_come_back_from_their_text():
    rng = random.Random(0)
    for _ in range(300):
        program = sample_program(rng, stages=rng.randint(1, 5))
        assert parse(show(program)) == program
        x = [rng.randint(-9, 20) for _ in range(6)]
        first = run(program, x)
        assert run(program, list(x)) == first
        assert read_value(show_value(first.value)) == first.value
    nested = parse("repeat 2 ( +1 ;repeat 3(sort) );keep  > 4")
    assert show(nested) == "repeat 2 (+ 1; repeat 3 (sort)); keep > 4"


def test_running_leaves_its_input_alone():
    x = [3, 1, 2]
    run(parse("sort; reverse; * 2"), x)
    assert x == [3, 1, 2]


@pytest.mark.parametrize("text", ["[1,]", "[1 2]", "1 2", "x", "", "[[1]]", "12345678", "9999999", "٣", "1e3"])
def test_what_is_no_value(text):
    with pytest.raises(ProgramError):
        read_value(text)
