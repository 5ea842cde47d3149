"""Formulas and derivations, against truth tables and proofs worked out by hand."""

import pytest

from rewardlab.text.derivations import check
from rewardlab.text.logic import Formula, entails, holds, parse

P, Q, R = Formula("p"), Formula("q"), Formula("r")


@pytest.mark.parametrize(
    ("text", "formula"),
    [
        ("~p&q", Formula("&", (Formula("~", (P,)), Q))),
        ("p | q & r", Formula("|", (P, Formula("&", (Q, R))))),
        ("p->q->r", Formula("->", (P, Formula("->", (Q, R))))),
        ("p&q&r", Formula("&", (Formula("&", (P, Q)), R))),
        ("(p -> q) -> r", Formula("->", (Formula("->", (P, Q)), R))),
        ("¬(p ∨ q) → r", Formula("->", (Formula("~", (Formula("|", (P, Q)),)), R))),
    ],
)
def test_signs_bind_as_in_textbooks(text, formula):
    assert parse(text) == formula


@pytest.mark.parametrize("text", ["", "p q", "p->", "(p", "p)", "pq", "P", "->p", "p&&q", "1", "(" * 100, "~" * 500 + "p"])
def test_what_is_no_formula_is_refused_with_a_reason(text):
    with pytest.raises(ValueError, match=r"."):
        parse(text)


def test_the_truth_of_each_sign():
    table = {"p&q": [0, 0, 0, 1], "p|q": [0, 1, 1, 1], "p->q": [1, 1, 0, 1], "~p": [1, 1, 0, 0]}
    rows = [set(), {"q"}, {"p"}, {"p", "q"}]
    assert {text: [int(holds(parse(text), row)) for row in rows] for text in table} == table


@pytest.mark.parametrize(
    ("premises", "conclusion", "follows"),
    [
        (["p->q", "p"], "q", True),
        (["p->q", "~q"], "~p", True),
        (["p->q", "q"], "p", False),
        (["p->q", "~p"], "~q", False),
        (["p|q", "~p"], "q", True),
        (["p", "~p"], "r", True),
        ([], "p|~p", True),
        ([], "p", False),
    ],
)
def test_entailment(premises, conclusion, follows):
    assert entails([parse(p) for p in premises], parse(conclusion)) is follows


def test_a_step_of_many_letters_is_too_large():
    with pytest.raises(ValueError, match="11 letters"):
        entails([parse("&".join("abcdefghij"))], parse("z"))


def test_each_line_is_judged_by_what_it_cites_alone():
    # modus tollens the wrong way round; what goes on rightly from there is right
    lines = ["4 mt 1 2:p", "5 mp 3 4:r", "6 join 5 4:r&p", "7 and 2:q"]
    assert [line.right for line in check(lines, ["p->q", "q", "p->r"])] == [False, True, True, True]


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("4 mp 1 2:q", "numbered 4, and it is line 3"),
        ("3 mp 1:q", "mp takes 2 lines, and not 1"),
        ("3 xx 1 2:q", "xx is not a rule"),
        ("3 mp 1 9:q", "no line 9"),
        ("3 mp 1 3:q", "no line 3"),
        ("3 mp 1 2:q(", "is not expected"),
        ("3:q", "not of the form"),
        ("q", "not of the form"),
        ("", "not of the form"),
        ("3 mp 1 2:~q", "does not follow from 1 and 2"),
    ],
)
def test_wrong_lines_are_wrong_for_a_reason(line, why):
    (found,) = check([line], ["p->q", "p"])
    assert not found.right
    assert why in found.why


def test_a_line_that_cannot_be_read_supports_nothing():
    first, second = check(["3:q", "4 and 3:q"], ["p->q", "p"])
    assert (first.formula, second.why) == (None, "there is no line 3 before it that can be read")
