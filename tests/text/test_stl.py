"""Signal temporal logic: what is read and written, robustness by hand, equivalence, slips, and the verifier."""

from __future__ import annotations

import random

import numpy as np
import pytest

from rewardlab.text.stl import Atom, Node, agreement, atoms, horizon, parse, robustness, size
from rewardlab.text.stl_edits import KINDS, slipped
from rewardlab.verifiers.stl import aspects, stated_formula, stl_equivalent

X, Y = Atom("x", ">", 3.0), Atom("y", "<", 1.0)


@pytest.mark.parametrize(
    ("text", "formula"),
    [
        ("x > 3", X),
        ("G[2,9] x > 3", Node("G", (X,), (2.0, 9.0))),
        ("always [ 2, 9 ] (x > 3.0)", Node("G", (X,), (2.0, 9.0))),
        ("F[0,1]!x>3", Node("F", (Node("not", (X,)),), (0.0, 1.0))),
        ("x > 3 U[0,4] y < 1", Node("U", (X, Y), (0.0, 4.0))),
        # -> binds least, then or, then and
        ("x > 3 & y < 1 | x > 3 => y < 1", Node("->", (Node("or", (Node("and", (X, Y)), X)), Y))),
        ("x > 3 -> y < 1 -> x > 3", Node("->", (X, Node("->", (Y, X))))),
        # a signal may have the name of an operator
        ("G > 2", Atom("G", ">", 2.0)),
    ],
)
def test_formulas_are_read(text, formula):
    assert parse(text) == formula
    assert parse(str(formula)) == formula


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "ends too early"),
        ("x > ", "ends too early"),
        ("(x > 3", "ends too early"),
        ("x > 3)", "'\\)' is left over"),
        ("G[9,2] x > 3", r"\[9,2\] is no interval of time with a sample in it"),
        ("G[0.2,0.8] x > 3", "no interval of time with a sample"),
        ("G[0,1e9] x > 3", "there is 'e9' where"),
        ("G[0,5000] x > 3", "more than 1000 samples ahead"),
        ("x = 3", "'= 3' is no symbol"),
        ("not " * 100 + "x > 3", "more than 40 operators deep"),
        ("(" * 100 + "x > 3", "more than 40 operators deep"),
        ("x > 3 and " * 300 + "x > 3", "at most 2000 characters"),
    ],
)
def test_what_is_no_formula_is_said(text, why):
    with pytest.raises(ValueError, match=why):
        parse(text)


def of(text: str, **signals: list[float]) -> list[float]:
    return robustness(parse(text), {name: np.array([row], float) for name, row in signals.items()})[0].tolist()


def test_robustness_by_hand():
    x = [1, 5, 4, 2, 7]
    assert of("x > 3", x=x) == [-2, 2, 1, -1, 4]
    assert of("x < 3", x=x) == [2, -2, -1, 1, -4]
    # min and max over the next one and the one after it
    assert of("G[1,2] x > 3", x=x) == [1, -1, -1]
    assert of("F[1,2] x > 3", x=x) == [2, 1, 4]
    assert of("G[0,1] F[0,1] x > 3", x=x) == [2, 1, 1]
    assert of("not x > 3 or x > 4", x=x) == [2, 1, 0, 1, 3]
    y = [9, 9, 0, 9, 9]
    # y < 1 has -8, -8, 1, -8, -8; until then x > 3 must hold, which at the first sample it does not
    assert of("x > 3 U[0,2] y < 1", x=x, y=y) == [-2, 1, 1]
    assert of("x > 3 U[1,2] y < 1", x=x, y=y) == [-2, 1, -8]
    # operands that look ahead by unlike distances begin at the same time
    assert of("x > 3 and F[0,2] y < 1", x=x, y=y) == [-2, 1, 1]


def test_parts_of_a_formula():
    formula = parse("G[0,20] (v >= 9 -> F[0,6] p < 4)")
    assert atoms(formula) == {Atom("v", ">", 9.0), Atom("p", "<", 4.0)}
    assert (size(formula), horizon(formula)) == (5, 26)


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("not F[2,9] x > 3", "G[2,9] x <= 3", True),
        ("x > 3 -> y < 1", "not x > 3 or y < 1", True),
        ("G[0,4] G[1,3] x > 3", "G[1,7] x > 3", True),
        ("F[0,5] (x > 3 or y < 1)", "F[0,5] x > 3 or F[0,5] y < 1", True),
        ("F[0,5] (x > 3 and y < 1)", "F[0,5] x > 3 and F[0,5] y < 1", False),
        ("G[0,20] (v > 12 -> F[0,5] b > 3)", "G[1,20] (v > 12 -> F[0,5] b > 3)", False),
        ("G[0,20] (v > 12 -> F[0,5] b > 3)", "G[0,20] (v > 12 -> F[0,6] b > 3)", False),
        ("G[2,9] x > 3", "G[2,10] x > 3", False),
        ("x > 3 U[0,6] y < 1", "F[0,6] y < 1", False),
        ("G[2,9] x > 30", "G[2,9] x > 31", False),
        ("G[2,9] x > 3", "G[2,9] z > 3", False),
    ],
)
def test_formulas_are_compared_by_signals(one, other, same):
    for seed in range(5):
        assert (agreement(parse(one), parse(other), 512, np.random.default_rng(seed)) == 1.0) == same


def test_slips_change_a_formula_in_their_kind():
    formula, rng = parse("G[0,20] (v > 9 -> F[0,6] p < 4)"), random.Random(0)
    made = {kind: [slipped(formula, kind, rng) for _ in range(20)] for kind in KINDS}
    assert all(of != formula for row in made.values() for of in row)
    assert all(atoms(of) != atoms(formula) and size(of) == size(formula) for of in made["atoms"])
    assert all(atoms(of) == atoms(formula) and size(of) == size(formula) for of in made["times"])
    assert all(aspects(str(of), formula)["semantics"] == 1.0 and size(of) > size(formula) for of in made["longer"])
    assert slipped(parse("x > 3"), "times", rng) is None


def test_the_verifier_reads_the_last_line():
    gold = "G[2,9] temp > 30"
    check = stl_equivalent().check
    for reply in ("G[2,9] (temp > 30)", "So it is\n\n`not F[2,9] temp <= 30`\n", "Formula: $globally[2,9] temp > 30$.", gold):
        assert check(reply, gold).correct, reply
    assert stated_formula("Formula: `x > 3`.") == "x > 3"
    wrong = check("G[2,9] temp > 31", gold)
    assert not wrong.correct
    assert wrong.parts["atoms"] == 0.0
    assert 0 < wrong.parts["semantics"] < 1
    unread = check("The temperature is always above 30.", gold)
    assert not unread.correct
    assert "cannot be read" in unread.why
    assert unread.parts["semantics"] == 0.0
    assert check("", gold).correct is False
    assert check(gold, "hot").correct is None


def test_aspects_by_hand():
    gold = parse("G[0,5] (x > 3 and y < 1)")
    # one of three atomic propositions of either is in both; 4 parts against 4
    found = aspects("G[0,5] (x > 3 and y < 2)", gold)
    assert (found["atoms"], found["succinct"]) == (pytest.approx(1 / 3), 1.0)
    # 6 parts against 4
    assert aspects("not not G[0,5] (x > 3 and y < 1)", gold)["succinct"] == pytest.approx(4 / 6)
    # shorter is not better than the gold one
    assert aspects("x > 3", gold)["succinct"] == 1.0
    # 6 + 9 symbols with brackets: G [ 0 , 5 ] ( x > 3 and y < 1 ), of which all but one are the same
    assert found["symbols"] == pytest.approx(2 * 14 / 30)
