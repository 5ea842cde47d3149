"""Notations of answers: short words, rows with a space below them, letters in a font, decimal commas, mixed numbers."""

from __future__ import annotations

import time

import pytest

from rewardlab.verifiers import match
from rewardlab.verifiers.math.verifier import math

MATRIX = r"\begin{pmatrix}1&2\\3&4\end{pmatrix}"


def said(reply: str, answer: str, prompt: str = "") -> bool | None:
    return math().check(reply, answer, prompt).correct


# ---- short words -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("word", ["Bob", "Tom", "Ed", "May", "Ian", "Max", "red", "one", "ten", "tie", "AB", "Bob Lee", "red dog"])
def test_a_short_word_is_itself_however_it_is_written(word):
    styled = [rf"\text{{{word}}}", rf"\textbf{{{word}}}", rf"\mathrm{{{word}}}"]
    for form in [word, *styled]:
        assert said(rf"\boxed{{{form}}}", word) is True
        assert said(f"The answer is **{form}**.", word) is True
        assert said(rf"\boxed{{\text{{not {word}}}}}", form) is False
        assert said(rf"\boxed{{{word[::-1].lower().replace(' ', '')}}}", form) is (word == "Bob")
    assert said(f"The answer is **{word}**.", styled[0]) is True
    assert said(rf"\boxed{{\text{{{word.lower()}.}}}}", word) is True


@pytest.mark.parametrize(
    ("answer", "reply", "right"),
    [
        ("ten", "net", False), ("cat", "act", False), ("Ian", "Ina", False), ("nk", "kn", True), ("ab", "ba", True),
        ("mgh", "ghm", True), ("xyz", "zyx", True),
        ("mgh", "Mgh", False), ("Bh", "bh", False), ("red", "Red", True), ("Red", "red", True),
        ("ab", r"b \cdot a", True), ("ab", "b a", True), ("2ab", "2ba", True), ("ab+1", "ba+1", True), ("A=ab", "A=ba", True),
        ("x cm", "x", True), ("x cm", r"x\text{ cm}", True),
    ],
)  # fmt: skip
def test_only_a_product_that_is_no_word_may_be_rearranged(answer, reply, right):
    assert said(rf"\boxed{{{reply}}}", answer) is right


@pytest.mark.parametrize(
    ("answer", "reply", "right"),
    [
        ("Alice, Bob", r"\text{Bob and Alice}", True), ("Alice, Bob", "Bob, Alice", True), ("Alice, Bob", "Alice, Tom", False),
        ("Bob, Tom", r"\text{Tom}, \text{Bob}", True), ("red, ten", r"\text{red}, \text{ten}", True),
        ("red, ten", "net, red", False),
        ("red and green", "green, red", True), ("Alice, Bob", "Alice", False),
        ("ab, cd", "cd, ab", True), ("ab, cd", "ba, cd", True), ("ten, cat", "net, cat", False),
    ],
)  # fmt: skip
def test_lists_of_short_words(answer, reply, right):
    assert said(rf"\boxed{{{reply}}}", answer) is right


def test_a_name_of_three_letters_is_the_subject_of_a_conclusion():
    assert said("Therefore, Bob is the winner.", "Bob", "Who is the winner?") is True
    assert said("Therefore, Tom is the winner.", "Bob", "Who is the winner?") is False


# ---- rows ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "end",
    [
        r"\\", r"\\[6pt]", r"\\ [4pt]", r"\\[0.5em]", r"\\[-2pt]", r"\\*", r"\\*[3mm]", r"\\[.5cm]", r"\\[ 6 pt ]", r"\\[\jot]",
        r"\\[0.5\baselineskip]", r"\cr ", r"\newline ",
    ],
)  # fmt: skip
def test_how_a_row_ends_does_not_count(end):
    for rows in (rf"1 & 2 {end} 3 & 4", rf"1 & 2{end}3 & 4{end}"):
        table = rf"\begin{{bmatrix}}{rows}\end{{bmatrix}}"
        assert said(rf"\boxed{{{table}}}", MATRIX) is True
        assert said(rf"\[ A = \boxed{{{table}}} \]", table) is True
        assert said(rf"\boxed{{{MATRIX}}}", table) is True
        assert said(rf"\boxed{{{table.replace('4', '5')}}}", MATRIX) is False
    for system in (r"\begin{cases}x=1%sy=2\end{cases}", r"\left\{\begin{array}{l}x=1%sy=2\end{array}\right."):
        assert said(rf"\boxed{{{system % end}}}", "x=1,y=2") is True
        assert said(rf"\boxed{{{system.replace('2', '3') % end}}}", "x=1,y=2") is False


def test_a_row_may_begin_with_a_bracket():
    column = r"\begin{pmatrix}1\\%s\end{pmatrix}"
    assert said(rf"\boxed{{{column % '(x+1)'}}}", column % "x+1") is True
    assert said(rf"\boxed{{{column % '[2pt](x+1)'}}}", column % "(x+1)") is True
    assert said(rf"\boxed{{{column % '[2pt](x+2)'}}}", column % "(x+1)") is False


# ---- fonts -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("answer", "reply", "right"),
    [
        (r"\pi r^2", r"\pi\mathbf{r}^2", True), (r"\pi r^2", r"\pi\mathbf{R}^2", False), ("xy", r"x\cdot\mathbf{y}", True),
        (r"a\times b", r"\vec{a}\times\vec{b}", True), (r"\alpha x", r"\alpha\bm{x}", True), (r"\sin x", r"\sin\mathit{x}", True),
        (r"\theta+\phi", r"\boldsymbol{\theta}+\boldsymbol{\phi}", True),
        (r"\frac{\pi r}{2}", r"\frac{\pi\mathbf{r}}{\mathbf{2}}", True),
        ("42", r"\mathbf{4}\mathbf{2}", True), ("x_1", r"\mathbf{x}_\mathbf{1}", True), ("abcd", r"ab\mathbf{c}\mathbf{e}", False),
        ("x^{10}", r"x^\mathbf{10}", True), ("x^{10}", r"x^\mathbf{1}0", False),
    ],
)  # fmt: skip
def test_letters_in_a_font_are_letters_of_their_own(answer, reply, right):
    assert said(rf"\boxed{{{reply}}}", answer) is right


# ---- decimal commas --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("answer", "reply", "right"),
    [
        ("5", "Die Antwort ist 5,5.", False), ("5", r"\boxed{5,5}", False), ("5", "Die Antwort ist 5,5 Euro.", False),
        ("12", "Ответ: 12,12", False), ("3", "Die Antwort ist 3,03.", False), ("7", "La respuesta es 7,07", False),
        ("5", r"\boxed{5,5\text{ cm}}", False), ("0", r"\boxed{0,0}", False), ("5", r"\boxed{5,5,5}", False),
        ("5.5", "Die Antwort ist 5,5.", True), ("5.5", r"\boxed{5,5}", True), ("5,5", r"\boxed{5,5}", True),
        ("2,3", r"\boxed{3,2}", True), ("5", r"\boxed{5}, \boxed{5}", True), ("0.5", r"\boxed{0.5, \frac12}", True),
        ("0.5", r"\boxed{\frac12\text{ or }0.5}", True), ("1000", r"\boxed{1,000\text{ or }1000}", True),
    ],
)  # fmt: skip
def test_a_decimal_comma_is_no_list_of_one_value(answer, reply, right):
    assert said(reply, answer) is right
    assert right or match.final_answer().check(reply, answer).correct is False


def test_two_numbers_are_not_the_first_of_them():
    for reply in ("The answer is 5, 6.", "The answer is 5,6", "So the answer is 5, $6."):
        assert match.final_answer().check(reply, "5").correct is False
    assert match.final_answer().check("The answer is 5, because it is prime.", "5").correct is True


# ---- mixed numbers and fractions -------------------------------------------------------------------------------------

VERIFIERS = [match.final_number, match.final_answer, match.two_way_match, math]


@pytest.mark.parametrize("verifier", VERIFIERS)
@pytest.mark.parametrize(
    "mixed",
    [
        r"3\frac{1}{2}", r"3\dfrac{1}{2}", r"3 \frac{1}{2}", r"3\,\frac{1}{2}", r"3\ \frac12", r"3~\frac12", r"3\tfrac 1 2",
        r"3\frac{1}2", r"3\frac1{2}", r"3\;\dfrac{ 1 }{ 2 }", r"3\nicefrac{1}{2}", "3½", "3 ½", "3 1/2",
    ],
)  # fmt: skip
def test_a_mixed_number_is_the_sum_of_its_parts(verifier, mixed):
    verdict = verifier().check
    for reply in (rf"\boxed{{{mixed}}}", f"The answer is ${mixed}$.", rf"So we get \({mixed}\)."):
        assert verdict(reply, "3.5").correct is True
        assert all(verdict(reply, wrong).correct is False for wrong in ("15.5", "31/2", "1/2", "1.5", "-3.5", "3"))
    assert verdict(r"\boxed{3.5}", mixed).correct is True
    assert verdict(r"\boxed{15.5}", mixed).correct is False
    assert verdict(rf"\boxed{{-{mixed}}}", "-3.5").correct is True


@pytest.mark.parametrize("verifier", VERIFIERS)
@pytest.mark.parametrize(
    ("answer", "fraction"),
    [
        ("0.5", r"\frac12"), ("1/3", r"\frac13"), ("0.75", r"\dfrac 34"), ("2.4", r"\frac{12}{5}"), ("0.04", r"\frac1{25}"),
        ("2.375", "2⅜"), ("5/6", "⅚"), ("0.4", "⅖"), ("12.75", r"12\frac{3}{4}"), ("5000.5", r"5,000\frac12"),
    ],
)  # fmt: skip
def test_fractions_without_braces(verifier, answer, fraction):
    assert verifier().check(rf"\boxed{{{fraction}}}", answer).correct is True
    assert verifier().check(f"The answer is ${fraction}$.", answer).correct is True


@pytest.mark.parametrize("verifier", VERIFIERS)
@pytest.mark.parametrize(
    ("answer", "reply"),
    [
        ("1/23", r"\boxed{\frac{1}{2}3}"), ("1/23", r"\boxed{\frac123}"), ("1/23", r"\boxed{½3}"), ("5.5", r"\boxed{3\frac{5}{2}}"),
        ("1.55", r"\boxed{3.\frac12}"), ("2", r"\boxed{1.5\frac12}"), ("0.5", r"\boxed{2^\frac12}"),
        ("0.25", r"\boxed{\sqrt\frac14}"),
        ("0.5", r"\boxed{x\frac{1}{2}}"), ("0.5", r"So we get $(x+1)\frac{1}{2}$"), ("0.5", r"\boxed{(x+1)\frac12}"),
    ],
)  # fmt: skip
def test_digits_beside_a_fraction_are_no_part_of_it(verifier, answer, reply):
    assert verifier().check(reply, answer).correct is False


@pytest.mark.parametrize("part", [r"\\[", r"\frac{1", r"1\,", r"\mathbf{", r"\text{\$1", "]1,", "Bob, ", r"\cr", "1½", "1 to "])
def test_no_text_takes_long(part):
    start = time.process_time()
    for verifier in VERIFIERS:
        assert verifier().check(part * (100_000 // len(part)), "5").correct is False
        assert verifier().check(rf"\boxed{{{part * (1900 // len(part))}}}", "5").correct is False
    assert time.process_time() - start < 3


# ---- functions in pieces ---------------------------------------------------------------------------------------------

ABSOLUTE = r"\begin{cases}x & \text{if } x\ge0\\-x & \text{if } x<0\end{cases}"
STEPS = r"\begin{cases}0 & \text{if }x<0\\ x^2 & \text{if }0\le x<1\\ 1 & \text{if }x\ge 1\end{cases}"
COLLATZ = r"\begin{cases}n/2 & n\text{ even}\\3n+1 & n\text{ odd}\end{cases}"


def cases(*rows: str) -> str:
    return r"\begin{cases}" + r"\\".join(rows) + r"\end{cases}"


@pytest.mark.parametrize(
    ("answer", "reply"),
    [
        (ABSOLUTE, cases(r"x, & \text{if } x\ge0,", r"-x, & \text{if } x<0.")), (ABSOLUTE, cases(r"-x & x<0", r"x & x\geq 0")),
        (ABSOLUTE, cases(r"x & \text{for } 0\le x", r"[6pt]-x & \text{otherwise.}")), (ABSOLUTE, f"f(x) = {ABSOLUTE}"),
        (ABSOLUTE, cases(r"x & \text{if $x\ge0$}", r"-x & \text{else}")),
        (ABSOLUTE, cases(r"x\text{ if }x\ge0", r"-x\text{ if }x<0")),
        (ABSOLUTE, ABSOLUTE.replace(r"\begin{cases}", r"\left\{\begin{array}{ll}").replace(r"\end{cases}", r"\end{array}\right.")),
        (ABSOLUTE, ABSOLUTE.replace("cases", "dcases")),
        (STEPS, cases(r"0, & x<0", r"x^2, & x\in[0,1)", r"1, & \text{otherwise}")), (f"f(x)={STEPS}", STEPS),
        (COLLATZ, cases(r"3n+1, & \text{if } n\text{ is odd,}", r"\frac{n}{2}, & \text{if } n\text{ is even.}")),
        ("x=1,y=2", cases("x &= 1", "y &= 2")), (r"x\ge1, y\ge2", cases(r"x & \ge 1", r"y & \ge 2")),
        (r"2x-3y=5, x+y=1", cases("2x & -3y = 5", "x & +y = 1")),
    ],
)  # fmt: skip
def test_pieces_of_a_function_are_compared_in_any_order_and_punctuation(answer, reply):
    assert said(rf"\boxed{{{reply}}}", answer) is True


@pytest.mark.parametrize(
    ("answer", "reply"),
    [
        (ABSOLUTE, cases(r"x & \text{if } x>0", r"-x & \text{if } x\le0")), (ABSOLUTE, cases(r"-x & x\ge0", "x & x<0")),
        (ABSOLUTE, cases(r"x & \text{if } x\ge0")), (ABSOLUTE, cases(r"x & x\ge0", r"-x & x<0", "5 & x=7")), (ABSOLUTE, "x, -x"),
        (ABSOLUTE, cases(r"x & \text{unless } x\ge0", r"-x & \text{unless } x<0")), (ABSOLUTE, cases(r"x & y\ge0", "-x & y<0")),
        (ABSOLUTE, cases(r"x & \text{if } x>0", r"-x & \text{otherwise}")), (f"f(x)={ABSOLUTE}", f"g(x)={ABSOLUTE}"),
        (STEPS, cases(r"0, & x<0", r"x^2, & x\in[0,1]", r"1, & \text{otherwise}")),
        (COLLATZ, cases(r"\frac n2 & n\text{ odd}", r"3n+1 & n\text{ even}")),
        (COLLATZ, cases(r"\frac n2 & n\text{ not even}", r"3n+1 & n\text{ odd}")),
        ("x=1,y=2", cases("x &= 1", "y &= 3")), (r"x\ge1, y\ge2", cases(r"x & \ge 1", r"y & \ge 3")),
    ],
)  # fmt: skip
def test_other_pieces_make_another_function(answer, reply):
    assert said(rf"\boxed{{{reply}}}", answer) is False


# ---- other notations -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("answer", "reply"),
    [
        ("5", r"\text{Answer: }5"), ("5", r"\text{The answer is }5"), ("$12.50", r"\text{\$12.50}"),
        ("12.50", r"\text{\$12.50}"), ("1250", r"\text{\$1,250}"), ("-5", r"\text{-\$5}"), ("0.5", r"{1 \over 2}"),
        ("0.5", r"1 \over 2"), (r"\frac{\sqrt3}{2}", r"{\sqrt{3} \over 2}"), (r"{\sqrt{3} \over 2}", r"\frac{\sqrt3}{2}"),
        (r"\frac{x+1}{2}", r"{x+1 \over 2}"), ("3/4", r"{1\over{1+{1\over3}}}"), ("2", r"x={4\over 2}"),
        ("120", r"{10 \choose 3}"), (r"{10 \choose 3}", "120"), (r"{10 \choose 3}", r"\binom{10}{3}"),
        (r"{10 \choose 7}", r"{10\choose 3}"), ("1/3", r"0.\dot{3}"), ("1/3", r"0.\dot3"), ("1/6", r"0.1\dot{6}"),
        ("1/7", r"0.\dot{1}4285\dot{7}"), ("4/11", r"0.\dot{3}\dot{6}"), ("1/3", r"0.\bar{3}"), ("1/3", r"0.\overline{3}"),
        (r"0.\dot{3}", "1/3"), ("4/3", r"1.\dot{3}"), ("41/333", r"0.\dot{1}2\dot{3}"), ("1/3", r"0.\dot{33}"), ("3/8", "⅜"),
        ("5/6", "⅚"), ("2", "∛8"), ("2", "∛{8}"), ("2", "∜16"), (r"\sqrt[3]{5}", "∛5"), ("2.875", "2⅞"),
        (r"\emptyset", r"\text{No solution}"), ("no solutions", r"\text{No solution}"),
        ("no solution", r"\text{There are no solutions.}"), ("No solution", r"\emptyset"), ("No solution", r"\varnothing"),
        ("no solution", r"\{\}"), ("no solution", "Therefore, there is no solution."), ("ellipse", r"\text{an ellipse}"),
        ("an ellipse", "ellipse"), ("ellipse", r"\text{the ellipse}"), ("parabola", "The answer is a parabola."),
        ("(2,3)", "P(2,3)"), ("(2,3)", "P = (2,3)"), ("P(2,3)", "(2,3)"), ("3:4", r"3 \text{ to } 4"), ("3:4", "3 to 4"),
        ("6:8", r"3\text{ to }4"), ("(1,5)", "]1,5["), ("[1,5)", "[1,5["), ("(1,5]", "]1,5]"),
        (r"(-\infty,1)\cup(2,\infty)", r"]-\infty,1[\cup]2,\infty["),
        (r"(-\infty,1)\cup(2,\infty)", r"]-\infty;1[ \cup ]2;+\infty["), (r"[0,1)\cup(2,3]", r"[0,1[\cup]2,3]"),
        ("(1,5)", r"\left]1,5\right["), ("(1,5)", r"x \in ]1,5["), ("[1,5]", "[1,5]"), ("]1,5[", "(1,5)"), ("a", "a"),
        ("a", "a cm"), ("a", "a apples"), ("an", "an"), ("a hyperbola", r"\text{hyperbola}"), ("hyperbola", "a hyperbola"),
        ("an ellipse or a circle", "circle or ellipse"), ("(1,5)", r"x\in]1,5["), ("[1,5)", "[1,5[."),
    ],
)  # fmt: skip
def test_notations_of_the_same(answer, reply):
    assert said(reply if reply.endswith(".") and " is " in reply else rf"\boxed{{{reply}}}", answer) is True


@pytest.mark.parametrize(
    ("answer", "reply"),
    [
        ("5", r"\text{Final answer: }6"), ("5", r"\text{not the answer: }5"), ("5", r"\text{Answer: not }5"),
        ("$12.50", r"\text{\$12.05}"), ("1/3", r"{1 \over 2}"), ("x+1/2", r"{x+1 \over 2}"), ("1", r"1 \over 2 \over 2"),
        (r"{10 \choose 3}", r"{10\choose 4}"), ("0.36", r"0.\dot{3}6"), ("1/3", r"0.\dot{4}"), ("0.3", r"0.\dot{3}"),
        (r"0.\dot{3}", "0.3"), ("3", r"\dot{3}"), ("x", r"\dot{x}"), ("1/3", "0.333"), ("2", "∛9"), (r"\emptyset", "0"),
        (r"\emptyset", r"\{0\}"), ("no solution", r"\text{one solution}"), ("no solution", r"\text{no real solutions}"),
        (r"\emptyset", r"\text{infinitely many solutions}"), ("no solutions", r"\text{solutions}"),
        ("ellipse", r"\text{not an ellipse}"), ("ellipse", r"\text{a circle}"), ("P(2,3)", "C(2,3)"), ("(2,3)", "P(3,2)"),
        ("(2,3)", "2P(2,3)"), ("(2,3)", "P[2,3]"), ("5", "P(5)"), ("(2,3)", "f(2,3)"), ("(2,3)", "P(2,3)+1"), ("3:4", "4 to 3"),
        ("3:4", r"3\text{ to }5"), ("3", r"3\text{ to }4"), ("4", "3 to 4"), ("3/4", "3 to 4"), ("[3,4]", "3 to 4"),
        ("34", "3 to 4"), ("(1,5)", "[1,5]"), ("[1,5]", "]1,5["), ("(1,5]", "]1,5["), ("(1,5)", "]5,1["),
        ("circle", "an ellipse"), ("1,5", "]1,5["),
    ],
)  # fmt: skip
def test_notations_of_something_else(answer, reply):
    assert said(rf"\boxed{{{reply}}}", answer) is False


@pytest.mark.parametrize(
    ("reply", "gold"),
    [
        (r"\frac{10!}{3!7!}", "120"), ("3!4!", "144"), (r"\frac{8!}{2!3!}", "3360"), (r"3!\,7!", "30240"), ("10!/(3!7!)", "120"),
        (r"\frac{6!}{2!2!2!}", "90"), ("3!4", "24"), ("4!!3!", "48"), (r"\frac{n!}{k!2!}", r"\frac{n!}{2 \cdot k!}"),
    ],
)  # fmt: skip
def test_a_factorial_ends_a_factor(reply, gold):
    """4!! is 4 * 2."""
    assert math().check(rf"\boxed{{{reply}}}", gold).correct is True


@pytest.mark.parametrize(("reply", "gold"), [("(2+3)4", "20"), ("2 3", "6"), ("50%2", "1"), ("x2", "2x"), ("3!4!", "34")])
def test_a_digit_after_anything_else_is_no_factor(reply, gold):
    assert math().check(rf"\boxed{{{reply}}}", gold).correct is False
