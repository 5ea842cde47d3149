"""Options that a reply concludes with in a sentence, and ones that are only mentioned, doubted or denied: `choice` and `math`."""

from __future__ import annotations

import time

import pytest

from rewardlab.verifiers.choice.verifier import choice
from rewardlab.verifiers.math.verifier import math

CONCLUDED = [
    "Therefore, my best guess is B.",
    "Thus the best answer appears to be B.",
    "This corresponds to option B.",
    "Thus the answer is likely (B).",
    "Therefore, the best answer from the given options is B.",
    "So we choose (B).",
    r"Hence, the correct choice is $\textbf{(B)}$.",
    "Thus, $x = 5$, which is option (B).",
    "I would go with B.",
    "The closest match is (B) 12 cm.",
    "The most likely answer would be B.",
    "The correct answer seems to be B.",
    "Therefore (B) is the best choice.",
    "We see that (B) 6 is the correct answer.",
    "Looking at our options, 9 corresponds to answer choice B.",
    "So the correct statement is (B).",
    "The best match among the choices is option B.",
    "The answer is B (Paris).",
    "The correct answer is Paris (B).",
    "After weighing everything, our final selection is option B.",
    "Although it is not perfect, the best answer is (B).",
    "This agrees with choice B.",
    "That matches option (B): 12 cm.",
    "Given this, option B is the closest to our result.",
    "The right answer turns out to be B.",
    "The correct pair is (B) 10 and 12.",
    "The most accurate description is:\n(B) It rises.",
    "My calculation shows 12.\n\nTherefore, the best answer is (B) a long fall.\n\nI'll repeat the letter five times:\n\nBBBBB",
    "The answer is A? It may be C.\n\nWait, there is more to it.\n\nTherefore, my best guess is option B.",
    "So, the correct answer is:\n\\[ (B) 0.5 \\, \\text{cal/K} \\]",
    "The correct choice is:\n(B) (a) 5.38 Torr, (b) 73.0 mm",
]
NOT_CONCLUDED = [
    "The wrong option is (B).",
    "A tempting answer is (B).",
    "The student's answer is (B).",
    "The second best answer is (B).",
    "Another answer is (B).",
    "Many would say the answer is (B).",
    "My best guess is that it is not B.",
    "My best guess is A or B.",
    "The best answer might be (B).",
    "The best answer would not be B.",
    "Is (B) the best answer?",
    "My first guess was B.",
    "This does not correspond to option (B).",
    "This corresponds to option (B), which is incorrect.",
    "This matches option B, a common distractor.",
    "This matches neither option A nor option B.",
    "The worst choice is (B).",
    "One could think that (B) is the correct answer.",
    "The best answer depends on whether it is (B).",
    "Option B is the most common.",
    "The answer would be (B) if x were even.",
    "The best answer appears to be B? No.",
    "The least likely option is (B).",
    "The best answer is (B). But that is wrong.",
    "The answer is B. No wait, that is wrong.",
    "My best guess is B movies.",
    "The opposite of (B) is the correct answer.",
    "The correct answer is the opposite of (B).",
    "The correct answer is all but (B).",
    "The best answer is anything except (B).",
    "It is unclear whether this corresponds to option B.",
    "(B) contradicts the premise.",
    "The final answer is C.\n\nThis corresponds to option B.",
    "My best guess is B.\n\nCCCCC",
    "It is not BBBBB",
    "BBBB",
    "The false statement is (B).",
    "If we double it, this corresponds to option B.",
    "Unlike option A, this matches option B.",
    "The correct answer is Paris (B) or Rome.",
    "He says the correct answer is (B).",
]


@pytest.mark.parametrize("reply", CONCLUDED)
def test_the_last_sentence_concludes_with_an_option(reply):
    assert [verifier().check(reply, "B").correct for verifier in (choice, math)] == [True, True]
    assert [verifier().check(reply, "C").correct for verifier in (choice, math)] == [False, False]


@pytest.mark.parametrize("reply", NOT_CONCLUDED)
def test_a_letter_that_is_doubted_denied_or_only_mentioned_is_not_chosen(reply):
    assert [verifier().check(reply, "B").correct for verifier in (choice, math)] == [False, False]


def test_the_text_of_another_option_beside_the_letter_is_a_contradiction():
    for reply, right in (
        ("My best guess is B: Paris.", True),
        ("My best guess is B: Oslo.", False),
        ("This corresponds to option (B).", True),
        ("This corresponds to option (B), Rome.", False),
    ):
        assert choice().check(reply, {"answer": "B", "options": ["Rome", "Paris", "Oslo"]}).correct is right


PIECES = [
    "the best answer ",
    "(B) ",
    "so the best answer is (B), ",
    "my ",
    "A common wrong answer is 5. ",
    "although the answer, ",
    "BBBBB ",
    "corresponds to option ",
    "is ",
    "(B) is a b c d ",
]


@pytest.mark.parametrize("piece", PIECES)
def test_hostile_replies_are_judged_soon(piece):
    start = time.process_time()
    for verifier in (choice, math):
        verifier().check(piece * (100_000 // len(piece)) + "x", "A")
    assert time.process_time() - start < 2.0


CAPITAL = "What is the capital of France?\n\nA. Lyon\nB. Paris\nC. Nice\nD. Lille"


@pytest.mark.parametrize(
    "reply",
    [
        '```json\n{"answer": "B"}\n```', 'Here it is:\n```json\n{\n  "answer": "B"\n}\n```', "{'answer': 'B'}",
        "<|begin_of_box|>B<|end_of_box|>", "It's B 😊",
        "**B** ✨",
        "I'd go with B over A.", "I prefer B to A.", "Not A, C or D. So B", "Neither A nor C. It's B.",
        "A is the answer? No. B is the answer.",
        "Is it A? No. It is B.", "Both A and B could be right, but B is best.", "A and B are close, but B is better.",
    ],
)  # fmt: skip
def test_plain_endings_choose(reply):
    assert choice().check(reply, "B", prompt=CAPITAL).correct is True
    assert choice().check(reply, "A", prompt=CAPITAL).correct is False


@pytest.mark.parametrize(
    "reply",
    [
        "B 👎", "It's B 🤷", "I'd go with B or C over A.", "Not A, C or B. So B or D", "Is it B? No. B or A.",
        "Both A and B could be right.",
        'I answered {"answer": "B"} at first.', '{"answer": "A", "choice": "B"}',
        '{"answer": "A", "answer": "B"}', '{"answer": ["A", "B"]}',
        'The answer is A.\n```json\n{"answer": "B"}\n```', "The answer is A. I'd go with B over C.",
        "B over A is what he says, and C.",
    ],
)  # fmt: skip
def test_endings_that_leave_it_open_do_not(reply):
    assert choice().check(reply, "B", prompt=CAPITAL).correct is False


@pytest.mark.parametrize("prompt", [CAPITAL, "What is the capital of France?\n(A) Lyon (B) Paris (C) Nice (D) Lille"])
def test_the_text_of_an_option_of_the_prompt_may_be_the_gold_answer(prompt):
    assert [choice().check(reply, "Paris", prompt=prompt).correct for reply in ("B", "Paris", "A", "Lyon")] == [
        True,
        True,
        False,
        False,
    ]
    assert choice().check("B", "Rome", prompt=prompt).correct is None
    assert choice().check("B", "Paris", prompt="A. Lyon\nB. Paris").correct is True
