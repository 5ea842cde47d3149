"""The verifier of multiple choice: it reads what is chosen, however it is written, and refuses to read a choice into a hedge."""

from __future__ import annotations

import threading
import time
from string import ascii_uppercase

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewardlab.core import Trajectory, Turn, ask
from rewardlab.verifiers.choice.verifier import choice

CITIES = {"answer": "B", "options": ["Rome", "Paris", "Oslo", "Bern"]}

BY_LETTER = [
    "B", "(B)", "B.", "B)", "b", "(b)", "**B**", "B) Paris", "B. Paris", "B: Paris", "(B) Paris", r"\boxed{B}",
    r"$\boxed{\text{B}}$", "The answer is B.", "The answer is (B).", "The answer is **B**.", "Answer: B", "**Answer:** B",
    "Answer:\nB", "#### B", "the answer is b", "Final answer: **B**", "The correct answer is **B) Paris**.",
    "<answer>B</answer>", "<answer> (B) Paris </answer>", "Option B", "I choose B", "I'd go with B", "B is correct", "So B.",
    "The answer to the question is B", "Therefore, the answer is $\\boxed{B}$.", "The best answer is B: Paris.",
    "So the correct option is B because Rome is no capital of France", "The answer is B, not A.",
    "The answer is B rather than C", "The answer is B because A and C are not in France.", "<think>A or C?</think>B",
    "The final answer is B. This is because A is wrong.", "Both A and C are out. The answer is B",
    "A is wrong.\nC is wrong.\nSo B.", "The answer is A. Wait, no, that is Italy. The answer is B.",
    "A) Rome\nB) Paris\nC) Oslo\nD) Bern\n\nB", "I think B is the answer", "Choice (b) is right", "A is wrong, so B.",
    "A and C are wrong. So B.", "I think the answer is A, which is wrong. So B.",
]  # fmt: skip
BY_TEXT = [
    "Paris",
    "paris.",
    "**Paris**",
    "It is Paris",
    "The answer is Paris.",
    "Answer: Paris because of the Seine",
    r"\boxed{\text{Paris}}",
]
REFUSED = [
    "", " ", "A", "E", "Bern", "A or B", "B or A", "A and B", "A, B", "B, C", "B / C", "B&C", "(A) (B) (C) (D)", "A B C D",
    "ABCD", "A\nB\nC\nD", "B\n\nC", "A) Rome\nC) Oslo\nD) Bern\nB) Paris", "Answer: A\nAnswer: B",
    "Answer: B\nAnswer: B\nAnswer: A", r"\boxed{A} \boxed{B}", r"\boxed{B, C}",
    "The final answer is A. Actually, the answer is B.", "The final answer is B. Wait, actually C.", "The answer is B or C",
    "The answer is either B or D", "The answer is B, or maybe C", "The answer is B. Or maybe C.",
    "The answer is B. Alternatively, A.", "The answer is B, but it could also be C.", "The answer is B, and also C", "not B",
    "The answer is not B", "The answer isn't B", "Answer: Not Paris", "B is wrong", "Answer: B is incorrect", "Neither",
    "None of B", "anything but B", "all of the above", "Answer: B? No, C.", "I think a boy did it", "A Boy", "Paris or Rome",
    "Rome or Paris", "Paris, Rome, Oslo, Bern", "Answer: Paris or Oslo", "<think>B</think>", "<think>The answer is B",
    "<think>The answer is B</think> I do not know.", "It could be B, it could be C", "Answer: A\nB\nC", "Answer: B\nC",
    "Answer: Paris\nRome", "Answer: B. C. D.", "B) C) D)", "Answer: (B) (C)", "B.C.D.", "Answer: В", "Answer: Ｂ",
    "The answer is", "The answer is B? No.", "The answer is B, which is wrong", "The answer is B. That is wrong.",
    "I think the answer is B, which is wrong. So C.", "B is not the answer", "Is the answer B?", "A is wrong, so B?",
]  # fmt: skip


@pytest.mark.parametrize("reply", BY_LETTER)
def test_a_letter_is_read_however_it_is_written(reply):
    assert choice().check(reply, CITIES).correct is True
    assert choice().check(reply, "B").correct is True
    assert choice().check(reply, CITIES | {"answer": "C"}).correct is False


@pytest.mark.parametrize("reply", BY_TEXT)
def test_the_options_text_chooses_it(reply):
    found = choice().check(reply, CITIES)
    assert (found.correct, found.extracted) == (True, "B")
    assert choice().check(reply, "B").correct is False


@pytest.mark.parametrize("reply", REFUSED)
def test_hedges_lists_and_changes_of_mind_are_no_choice(reply):
    for answer in (CITIES, "B"):
        found = choice().check(reply, answer)
        assert found.correct is False
        assert found.why


def test_a_letter_with_the_text_of_another_option_is_no_choice():
    assert choice().check("B) Rome", CITIES).correct is False
    assert choice().check("The answer is (B), Oslo", CITIES).correct is False


@pytest.mark.parametrize(
    ("gold", "reply", "correct"),
    [
        ("(B)", "B", True),
        ("b", "B", True),
        (1, "Paris", True),
        ("Paris", "B", True),
        ("Bern", "B", False),
        ("E", "B", None),
        ("", "B", None),
        (None, "B", None),
        (True, "B", None),
        (7, "B", None),
        ([], "B", None),
        (2.5, "B", None),
    ],
)
def test_gold_may_be_a_letter_a_text_or_an_index(gold, reply, correct):
    assert choice().check(reply, CITIES | {"answer": gold}).correct is correct


@pytest.mark.parametrize(
    ("options", "gold", "reply", "correct"),
    [
        (["2", "-2"], "B", "The answer is -2 because", True),
        (["2", "3"], "A", "The answer is -2 because", False),
        (["2", "3"], "A", "2.5", False),
        (["2", "3"], "A", "2%", False),
        (["23", "2*3"], "A", "2*3", False),
        (["a dog", "a cat"], "A", "A cat", False),
        (["a dog", "a cat"], "A", "A dog", True),
        (["a dog", "a cat"], "B", "I think a dog", False),
        (["x", "y", "z", "Both B and C"], "D", "Both B and C", True),
        (["x", "y", "z", "Both B and C"], "D", "D) Both B and C", True),
        (["x", "y", "z", "vitamin C"], "D", "D. Vitamin C", True),
        (["New York", "York"], "B", "York", True),
        (["New York", "York"], "B", "The answer is New York", False),
        (["x", "x", "y"], "A", "B", True),
        (["B", "A"], "A", "B", None),
        ({"A": "x", "B": "y"}, "B", "y", True),
        ({"text": ["x", "y"], "label": ["A", "B"]}, "y", "B", True),
        (["only one"], "A", "A", None),
        (["x"] * 27, "A", "A", None),
        ([f"option {i}" for i in range(10)], "I", "I think it is the first", False),
        ([f"option {i}" for i in range(10)], "I", "I", True),
        ([f"option {i}" for i in range(10)], "I", "Answer: I", True),
    ],
)
def test_options_that_are_easily_mistaken(options, gold, reply, correct):
    assert choice().check(reply, {"answer": gold, "options": options}).correct is correct
    assert choice().check(reply, gold, options=options).correct is correct


@pytest.mark.parametrize("gold", [["A", "C"], "A, C", "AC", "A and C", ("C", "A")])
@pytest.mark.parametrize(
    ("reply", "value"),
    [
        ("A and C", 1), ("AC", 1), ("(A), (C)", 1), (r"\boxed{A, C}", 1), ("Answer: C, A", 1), ("Both A and C", 1), ("A", 1 / 2),
        ("A, B, C", 2 / 3), ("A or C", 0), ("either A or C", 0), ("A\nC", 0), ("B", 0), ("A, B, C, D", 1 / 2), ("", 0),
    ],
)  # fmt: skip
def test_several_right_options_must_all_be_chosen(gold, reply, value):
    assert choice().check(reply, gold).correct is (value == 1)
    assert (choice(share=True).check(reply, gold).pays or 0.0) == pytest.approx(value)


@pytest.mark.parametrize(
    ("reply", "correct"), [("Rome and Paris", True), ("Paris, Rome", True), ("Rome or Paris", False), ("Rome", False)]
)
def test_several_right_options_may_be_chosen_by_their_texts(reply, correct):
    assert choice().check(reply, CITIES | {"answer": ["A", "B"]}).correct is correct


def test_options_come_from_the_problem_in_a_recipe():
    ids = np.zeros(1, np.int64)
    problem = ask("Capital of France?", "Paris", options=["Rome", "Paris"])
    scores = choice()([[Trajectory(problem, (Turn("policy", ids, text=text),)) for text in ("B", "A", "Paris")]])
    assert [score.value for score in scores[0]] == [1.0, 0.0, 1.0]
    assert scores[0][0].extracted == "B"


@given(
    st.sampled_from(ascii_uppercase[:10]),
    st.sampled_from(["{}", "({})", "Answer: {}", r"\boxed{{{}}}", "**{}**", "The answer is {}."]),
)
def test_gold_is_right_and_every_other_letter_wrong(letter, form):
    for said in ascii_uppercase[:10]:
        assert choice().check(form.format(said), letter).correct is (said == letter)


@given(st.text() | st.text(alphabet="ABCD ().,:*\n\\boxed{}<answer>/or and is not the"))
def test_no_reply_raises_or_goes_without_a_verdict(reply):
    assert choice().check(reply, CITIES).correct in (True, False)


HOSTILE = [
    "answer is ", "A or ", "(", "or A", " ", "\\boxed{", "<answer>", "so ", "A) ", "\n", "A\n", "Paris ", "maybe ", "a.",
    "wait B or C. ", "\\boxed{B}", "**", "the ", "$", ". ",
]  # fmt: skip


def test_hostile_text_is_judged_in_linear_time_from_any_thread():
    found = []

    def judge():
        found.extend(choice().check_all([(piece * (30_000 // len(piece)), CITIES) for piece in HOSTILE]))

    start = time.perf_counter()
    thread = threading.Thread(target=judge)
    thread.start()
    thread.join()
    assert time.perf_counter() - start < 10
    assert [one.correct for one in found] == [piece in ("\\boxed{B}",) for piece in HOSTILE]
