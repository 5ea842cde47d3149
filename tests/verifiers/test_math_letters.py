"""Answers that a reply does not commit itself to: letters and words that are denied or only mentioned, and boxes beside another."""

from __future__ import annotations

import pytest

from rewardlab.verifiers.match import final_answer, final_number
from rewardlab.verifiers.math.verifier import math


def said(text: str, answer: str, prompt: str = ""):
    return math().check(text, answer, prompt).correct


DENIED = [
    "The answer is not (B).",
    "Option (B) is incorrect.",
    "We can eliminate (B).",
    "The wrong option is (B).",
    "Everything except (B) holds.",
    "The answer cannot be (B).",
    "(B) is wrong.",
    "Neither (A) nor (B).",
    "We can rule out (B).",
    "All but (B) are true.",
    "Hence $(B)$ is false.",
    "We can eliminate $(B)$.",
    r"The wrong option is $\textbf{(B)}$.",
    "The incorrect answer is (B).",
    "The answer is (B), which is wrong.",
    "The answer is (B)? No.",
    "(B) fails.",
    "It might be (B).",
    "I am not sure about (B).",
    "Perhaps (B).",
    "Compare with (B).",
    "The answer is anything but (B).",
    r"\boxed{\text{not B}}",
    r"\boxed{\text{(B) is wrong}}",
    r"\boxed{\text{B. is incorrect}}",
    r"\boxed{(B) \text{ cannot be true}}",
    "Answer: (B) is incorrect",
    "The answer is (A). Actually, (C) is better than (B).",
    "None of the above, and (B) least of all.",
    "Look at (B) again.",
    "Answer: (B)\n\nWait. The correct option is (C).",
    "So the answer is (None of the above).\nIn (B), it says so.",
]
CHOSEN = [
    "(B)",
    "B",
    "B.",
    "(B) 42",
    r"\boxed{B}",
    r"\boxed{\text{(B) } 42}",
    "The answer is (B).",
    "Answer: B. 42",
    "**Answer: (B) 42**",
    r"The answer is $\textbf{(B)}\ 42$.",
    "Option (B) is correct.",
    "A is wrong, so the answer is (B).",
    r"\boxed{(B) \text{ false}}",
    "Thus $x = 42$, which is option (B).",
    "We can eliminate (A). So the answer is (B).",
    "The answer is not (A) but rather: answer: (B)",
    "The answer is A. No wait, that is wrong. The answer is (B).",
    r"\boxed{\text{(B) A long and winding road}}",
]


@pytest.mark.parametrize("reply", DENIED)
def test_a_letter_that_is_denied_is_not_chosen(reply):
    assert said(reply, "B") is False
    assert said(reply, "(B)") is False


@pytest.mark.parametrize("reply", CHOSEN)
def test_a_letter_that_is_stated_is_chosen(reply):
    assert said(reply, "(B) false" if "false" in reply else "B") is True
    assert said(reply, "C") is False


@pytest.mark.parametrize(
    ("reply", "right", "wrong"),
    [
        ("The wrong answer is 5.", None, "5"),
        ("A common wrong answer is 5.", None, "5"),
        ("The answer is 6. A common wrong answer is 5.", "6", "5"),
        ("The incorrect result is 5. So the answer is 6.", "6", "5"),
        ("So it is 6.\nThe naive answer would be 5.", "6", "5"),
        ("A wrong answer is 5, while the correct answer is 6.", "6", "5"),
        ("The tempting answer is 5, so the answer is \\boxed{6}", "6", "5"),
    ],
)
def test_a_wrong_answer_that_is_told_is_not_the_replys_own(reply, right, wrong):
    assert said(reply, wrong) is False
    assert right is None or said(reply, right) is True


# ---- two boxes -------------------------------------------------------------------------------------------------------

OFFERED = [
    r"\boxed{6} (or \boxed{5})",
    r"\boxed{6} or maybe \boxed{5}",
    r"\boxed{6}, alternatively \boxed{5}",
    r"\boxed{6} / \boxed{5}",
    r"If x>0 then \boxed{6}, otherwise \boxed{5}",
    r"\boxed{6}, perhaps \boxed{5}",
    r"\boxed{6} or, if $x<0$, \boxed{5}",
    r"\boxed{6} if $x>0$ and \boxed{5} if $x<0$",
    r"The answer is \boxed{6}. Alternatively, \boxed{5}.",
    r"\boxed{6} $\lor$ \boxed{5}",
    r"\boxed{6}? \boxed{5}?",
    r"\boxed{6} for even n, \boxed{5} for odd n",
    r"\boxed{6} | \boxed{5}",
    r"either \boxed{6} or else \boxed{5}",
    r"$\boxed{6}\text{ or maybe }\boxed{5}$",
]
SETTLED = [
    r"\boxed{5} or \boxed{5}",
    r"\boxed{\frac{10}{2}} or \boxed{5}",
    r"\boxed{5} (or equivalently \boxed{5.0})",
    r"\boxed{6}. So we get \boxed{5}",
    r"\boxed{6} is wrong, so \boxed{5}",
    r"Not \boxed{6} but \boxed{5}",
    r"\boxed{10} / 2 = \boxed{5}",
    r"Half of \boxed{10} is \boxed{5}",
    r"\boxed{6} for the sides, so for the area we have \boxed{5}",
    r"\boxed{6} apples. If we take one, we have \boxed{5}",
    r"\boxed{6}, or wait, no, \boxed{5}",
    "\\boxed{6}\n\nFor the second case we have \\boxed{5}",
]


@pytest.mark.parametrize("verifier", [math, final_number, final_answer], ids=lambda verifier: verifier.__name__)
def test_the_second_of_two_boxes_that_are_offered_is_no_answer(verifier):
    assert [reply for reply in OFFERED if verifier().check(reply, "5").correct or verifier().check(reply, "6").correct] == []
    assert [reply for reply in SETTLED if not verifier().check(reply, "5").correct] == []


def test_two_boxes_that_are_offered_are_an_answer_in_two_values():
    assert said(r"$x = \boxed{6}$ or else $x = \boxed{5}$", "5, 6") is True
    assert said(r"\boxed{6} or \boxed{7}, so it is \boxed{5}", "5") is True


# ---- answers in words ------------------------------------------------------------------------------------------------

NOT_ASKED = [
    ("Alice", "Alice does worse than Bob, so the winner is Bob.", "Who is the winner?"),
    ("Alice", "Alice loses, and Bob wins.", "Who wins?"),
    ("Navin", "Navin has the least money, so the richest is Luka.", "Who has the most money?"),
    ("odd", "Thus odd numbers are excluded, and n has to be even.", "Is $n$ odd or even?"),
    ("hyperbola", "The hyperbola was a distractor; the curve is an ellipse.", "What curve is it?"),
    ("Tuesday", "So Tuesday is the day before the meeting, and the meeting falls on Wednesday.", "When is the meeting?"),
    ("Alice", "Alice loses.", "Who wins?"),
    ("Alice", "Alice earns the least.", "Who earns the most?"),
    ("Alice", "Alice earns more, but Bob earns the most.", "Who earns the most?"),
    ("even", "So even numbers cannot occur.", "Is it even or odd?"),
    ("Carla", "The loser is Carla.", "Who wins?"),
    ("Carla", "The second fastest is Carla.", "Who is the fastest?"),
    ("Alice", "Alice almost wins.", "Who wins?"),
    ("Alice", "Alice wins if Bob does not.", "Who wins?"),
    ("Alice", "Alice wins or draws.", "Who wins?"),
    ("Alice", "Alice was leading until Bob won.", "Who won?"),
    ("Carla", "The winner was Carla, but now it is Alice", "Who wins?"),
]
ASKED = [
    ("Navin", "So Navin earns the most, with 39.52 USD.", "Who earns the most?"),
    ("Navin", "Therefore, after an eight-hour day, Navin would earn the most.", "Who earns the most?"),
    ("Evelyn", "Clearly, Evelyn has the greatest average speed.", "Which student has the greatest average speed?"),
    ("Alice", "So Alice wins.", "Who wins?"),
    ("Alice", "Alice finishes first.", "Who finishes first?"),
    ("Alice", "Hence Alice loses.", "Who loses?"),
    ("Alice", "Thus Alice earns more than Bob.", "Who earns more than the other, Alice or Bob?"),
    ("Carla", "The second fastest is Carla.", "Who is the second fastest?"),
    ("ellipse", "The graph is an ellipse.", "What is the graph?"),
    ("ellipse", "So the curve is an ellipse with foci 1 and 2.", ""),
    ("Wednesday", "The day of the meeting is Wednesday.", ""),
]


@pytest.mark.parametrize(("answer", "reply", "prompt"), NOT_ASKED)
def test_the_subject_of_a_sentence_that_says_something_else_is_no_answer(answer, reply, prompt):
    assert [said(reply, answer, asked) for asked in ("", prompt)] == [False, False]


@pytest.mark.parametrize(("answer", "reply", "prompt"), ASKED)
def test_the_subject_of_which_is_said_what_is_asked_is_the_answer(answer, reply, prompt):
    assert said(reply, answer, prompt) is True


# ---- several answers in everyday layout ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "reply",
    [
        "**Final Answer**\n\n$x = 2$ or $x = 3$",
        "## Final Answer\n\n**x = 2** and **x = 3**",
        "**Final Answer**\n\n$2$ and $3$",
        "The answers are **2** and **3**.",
        "So the solutions are **x = 2** and **x = 3**.",
        "The solutions are **$x = 2$** and **$x = 3$**.",
        "The solutions are:\n\n- $x = 2$\n- $x = 3$",
        "The solutions are:\n1. $x = 2$\n2. $x = 3$",
        "The roots are:\n* **2**\n* **3**",
    ],
)
def test_several_answers_may_be_laid_out_in_bold_in_a_list_or_below_a_heading(reply):
    assert said(reply, "2, 3") is True
    assert [said(reply, other) for other in ("2", "3", "2, 4", "2, 3, 1")] == [False] * 4


@pytest.mark.parametrize(
    ("reply", "answer"),
    [
        ("The values are:\n- we add 2 apples\n- so it is 3", "2, 3"),
        ("Steps to check the numbers:\n- 2\n- 3\n\nSo it is 4.", "2, 3"),
        ("**Final Answer**\n\n2 or maybe not", "2"),
        ("Of **5** boys, **3** play.", "5, 3"),
    ],
)
def test_a_list_of_steps_is_no_list_of_answers(reply, answer):
    assert said(reply, answer) is False
