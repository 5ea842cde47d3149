"""Replies that gain by what a rule leaves out: each was accepted once, or is a plain reply that a stricter rule refused."""

from __future__ import annotations

import pytest

from rewardlab.verifiers.choice.verifier import choice
from rewardlab.verifiers.match import final_answer, final_number
from rewardlab.verifiers.math.verifier import math


def said(gold: str, reply: str, prompt: str = "", verifier=math) -> bool | None:
    return verifier().check(reply, gold, prompt=prompt).correct


@pytest.mark.parametrize(
    ("gold", "reply", "prompt"),
    [
        ("24", r"\boxed{x+y=24}", "The value of $x+y$ is 10 and $x-y$ is 2. Find $xy$."),
        ("25", r"\boxed{x+y=25}", "If $x+y=5$, find $(x+y)^2$."),
        ("42", r"\boxed{a+b=42}", "Find $(a+b)(a-b)$."),
        ("42", r"\boxed{a+b=42}", "Find $(a+b)/2$."),
        ("1/2", r"\boxed{\sin x=\frac12}", r"Compute $\sin x \cos x$."),
        ("7", r"\boxed{\frac{a}{b}=7}", r"Compute $\frac{a}{b}\cdot\frac{b}{c}$."),
        ("12", r"\boxed{n^2=12}", r"What is $n^2\pmod{13}$?"),
        ("42", r"\boxed{a+b=42}", "Find $a+b$ modulo 5."),
        ("42", r"\boxed{A+B=42}", "Find $a+b$ given A+B=42."),
        ("42", r"\boxed{a+b=42}", "Compute $a+b$ and $a-b$."),
        ("42", r"\boxed{a+b=42}", "Do not find $a+b$; find a."),
    ],
)
def test_an_equation_about_something_else_than_what_is_asked_states_no_value(gold, reply, prompt):
    assert said(gold, reply, prompt) is False


@pytest.mark.parametrize(
    "prompt", ["Find $a+b$.", "What is $a+b$?", "Find $a+b$ if $a-b=2$.", "We know a. What is the value of $a+b$?"]
)
def test_an_equation_that_states_what_is_asked_does(prompt):
    assert said("42", r"\boxed{a+b=42}", prompt) is True


@pytest.mark.parametrize(
    ("gold", "reply"),
    [
        *(("5", rf"\boxed{{5 ({word})}}") for word in ("million", "tenths", "at least", "binary", "reciprocal", "negated")),
        *(("5,7", f"{head}:\n- 5\n- 7") for head in ("The wrong solutions are", "These values are excluded", "Values tried")),
        ("1,2", "The roots of the derivative are:\n- 1\n- 2"),
        ("3,4", "The roots of the other equation are:\n- 3\n- 4"),
        ("ten", r"\boxed{net}"),
        ("B", r"\boxed{B. A or not}"),
        ("5", "Die Antwort ist 5,5 Euro."),
        (
            r"\begin{cases} 1 & \text{if } N > n \text{ is odd} \\ 0 & \text{otherwise} \end{cases}",
            r"\boxed{\begin{cases} 1 & \text{if } n > N \text{ is odd} \\ 0 & \text{otherwise} \end{cases}}",
        ),
    ],
)
def test_what_changes_the_answer_is_no_unit_no_list_and_no_spelling_of_it(gold, reply):
    assert said(gold, reply) is False


@pytest.mark.parametrize(
    "reply",
    [
        "I ruled out BBBBB", "AAAAA BBBBB", "It is AAAAA\nBBBBB", "not\nBBBBB", "Bad choice: BBBBB", "My roommate put BBBBB",
        "Forgetting the factor 2 corresponds to option B.", "Dropping the minus sign matches option B.",
        "The old value equals option B.", "The junk value 7 is option B.", "This corresponds to option B, which fails.",
        "That is option B, a classic error.", "This matches option B. That reading ignores friction, so it fails.",
        "This corresponds to option B. Therefore it is excluded.", "42 is option B. Our value is 41, so we pick another.",
        "Option C is the correct answer.\n\nThis is option B.", "C is correct.\n\nThis is option B.",
        "My guess is (C).\n\nMy guess is (B).",
        "The answer is B–D", "错误答案是B。", "错误的选项是B", "Compare with (B).", "The answer is anything but (B).",
    ],
)  # fmt: skip
@pytest.mark.parametrize("verifier", [math, choice])
def test_a_letter_that_is_told_of_something_else_is_not_chosen(verifier, reply):
    assert said("B", reply, verifier=verifier) is False


def test_a_letter_with_the_text_of_another_option_is_not_chosen():
    gold = {"answer": "B", "options": ["London", "Paris", "New York"]}
    for reply in (
        "The best guess is London (B).",
        "Our answer is therefore London (B).",
        "The most accurate answer is New York (B).",
    ):
        assert choice().check(reply, gold).correct is False
    assert choice().check("The best guess is Paris (B).", gold).correct is True


@pytest.mark.parametrize(
    "reply",
    [
        r"Thus the area is 6, which is $\textbf{(B)}$.", r"Thus $x=6$, or $\textbf{(B) }6$.",
        r"Therefore $x=6\Rightarrow\textbf{(B)}$.",
        "So the area is 6, choice (B).", "Hence, $6$ (B).", "The total is 6, giving us (B).", "It has to be (B).",
        "By elimination, (B).",
        "We conclude that (B) is correct.", "The value 6 corresponds to (B).", "The evidence points to (B).",
        "Let's check the options.\n(A) 4 is too small.\n(B) 6 works.\n(C) 8 is too large.\n\nTherefore, (B) is correct.",
        "The answer is (B): if the rate doubles, so does the speed.", "The answer is B, if we assume that x > 0.",
    ],
)  # fmt: skip
def test_the_letter_in_brackets_at_the_end_is_chosen_where_the_line_says_so(reply):
    assert said("B", reply) is True
    assert said("C", reply) is False


@pytest.mark.parametrize(
    ("gold", "reply"),
    [
        ("180", r"The trip takes $\boxed{3}$ hours, for a distance of $\boxed{180}$ km."),
        ("10", r"At $t=\boxed{2}$ when the ball lands, the height is $\boxed{10}$"),
        ("6", r"From $\boxed{12}$ we compute the value for the problem: $\boxed{6}$"),
        ("12", "The answer is 12, 2 more than 10."),
        ("12", "The answer is 12, 5 from Ann and 7 from Bob."),
        ("1200", "The answer is 1,200, 300 more than 900."),
        ("50", "Answer: 50, 25% of 200."),
    ],
)
@pytest.mark.parametrize("verifier", [math, final_answer])
def test_plain_replies_stay_right(verifier, gold, reply):
    assert said(gold, reply, verifier=verifier) is True


def test_boxes_in_two_cases_state_no_one_answer():
    for verifier in (math, final_number, final_answer):
        assert said("5", r"\boxed{6} for even n, \boxed{5} for odd n", verifier=verifier) is False


@pytest.mark.parametrize(("gold", "reply"), [("mgh", r"\boxed{ghm}"), ("xyz", "The product is $zyx$."), ("xy", r"\boxed{yx}")])
def test_products_may_be_rearranged(gold, reply):
    assert said(gold, reply) is True
