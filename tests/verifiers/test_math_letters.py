"""Gold letters in the verifier of mathematical answers: a letter that is denied, ruled out or only mentioned is not chosen."""

from __future__ import annotations

import pytest

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
