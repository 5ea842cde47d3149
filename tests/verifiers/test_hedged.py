"""Replies that give two answers, or one that is not theirs: none is paid, and plain replies of the same form are."""

from __future__ import annotations

import pytest

from rewardlab.verifiers.choice.verifier import choice
from rewardlab.verifiers.match import final_answer, final_number
from rewardlab.verifiers.math.verifier import math

FIVE, SIX = r"\boxed{5}", r"\boxed{6}"


def said(gold: str, reply: str, prompt: str = "", verifier=math) -> bool | None:
    return verifier().check(reply, gold, prompt=prompt).correct


@pytest.mark.parametrize(
    "words",
    [
        "or maybe", "or perhaps", "; maybe", "or (possibly)", "or 3+3 =", "or if not,", "or then again", "and/or", "oder",
        "oder auch", "bzw.", "ou", "ou bien",
        "o", "o bien", "oppure", "или", "либо", "或", "或者", "还是", "または", "あるいは", "또는", "หรือ", "atau", "hoặc",
        "veya", "lub",
        r"\text{oder}", "/", "|",
    ],
)  # fmt: skip
@pytest.mark.parametrize(
    "form", ["{0} {1} {2}", "**{0}** {1} **{2}**", "${0}$ {1} ${2}$", "{0}\n\n{1}\n\n{2}", "$$\n{0}\n$$\n{1}\n$$\n{2}\n$$"]
)
def test_boxes_with_an_or_between_them_state_no_one_answer(form, words):
    assert said("6", form.format(FIVE, words, SIX)) is False


@pytest.mark.parametrize(
    "reply",
    [
        f"{FIVE}. Maybe {SIX}.", f"- {FIVE}\n- or {SIX}", f"_{FIVE}_ or maybe {SIX}", f"{FIVE} + 0 or maybe {SIX}",
        f"{FIVE} - or maybe {SIX}",
        f"{FIVE} or, as a further possibility that seems to me quite as plausible given what the question says, {SIX}",
    ],
)  # fmt: skip
def test_a_second_box_that_is_guessed_is_not_the_answer(reply):
    assert said("6", reply) is False


@pytest.mark.parametrize(
    "between",
    [
        ", so the total is",
        ". Then",
        "wait, no,",
        "or rather",
        ", donc",
        ", soit",
        "plus 1 is",
        "; therefore",
        "→",
        ", ou plutôt",
    ],
)
def test_a_box_that_a_later_one_replaces_is_not(between):
    assert said("6", f"We get {FIVE} {between} {SIX}") is True


@pytest.mark.parametrize("reply", [f"{FIVE} or {SIX}", f"{FIVE} oder {SIX}", f"**{FIVE}** or **{SIX}**", f"{FIVE}\n\nor\n\n{SIX}"])
def test_two_boxes_are_the_two_solutions(reply):
    assert said("5, 6", reply) is True


TAKEN_BACK = (
    " (wrong).", " (not correct).", " [wrong]", ", which is false.", ", but that is wrong.", " but it is false.", ", wrong.",
    " — wrong.", ": wrong!",
    ". Wrong!", ". No.", ". Just kidding.", ". That's not true!", ", a mistake.", ", which isn't right.", " ✗", ".\nIncorrect.",
    " apples (wrong).", " (a trap)",
)  # fmt: skip


@pytest.mark.parametrize("rest", TAKEN_BACK)
@pytest.mark.parametrize("verifier", [math, final_answer, final_number])
def test_an_answer_that_is_taken_back_at_once_is_none(verifier, rest):
    assert said("7", f"The answer is 7{rest}", verifier=verifier) is False


@pytest.mark.parametrize("rest", TAKEN_BACK)
@pytest.mark.parametrize("form", [r"\boxed{{7}}{}", "It is 7{}", "The answer is $x=7${}"])
def test_so_is_one_in_a_box_a_formula_or_a_sentence(form, rest):
    assert said("7", form.format(rest)) is False


ANOTHERS = (
    "The student's answer is 7.", "Student's answer: **7**", "Their answer is 7.", "A common wrong answer is 7.",
    "Incorrect answer: 7", "A student got 7.",
    "Some people think the answer is 7.", "My friend says that the answer is 7.", "Someone might answer 7.",
    "It is not true that the answer is 7.",
    "I don't think the answer is 7.", "I doubt the answer is 7.", "The student's answer is 7, but mine differs.",
)  # fmt: skip


@pytest.mark.parametrize("reply", ANOTHERS)
def test_what_somebody_else_answers_is_not_the_answer(reply):
    assert said("7", reply) is False
    assert said("7", reply, verifier=final_answer) is False
    assert said("7", reply.replace("**", "").replace("7", r"$\boxed{7}$")) is False


@pytest.mark.parametrize(
    "reply",
    [
        "The answer is 7 (not 8).", "The answer is 7, which is not even.", "A common wrong answer is 6. The answer is 7.",
        "The answer is 7. A common wrong answer is 6.", "My friend says 6, but the answer is 7.",
        "It's wrong that the answer is 6, so the answer is 7.",
        "The student's answer is 6, but the right answer is 7.", "He got 7 wrong.", "He has 7 wrong answers.",
        "She made 7 mistakes.", "Each friend gets 7.",
        "The students have 7 books.", "Tom's answer is 7.", "The answer is 7. Note that 8 would be wrong.",
        "I don't think it is 6, so it is 7.",
    ],
)  # fmt: skip
@pytest.mark.parametrize("verifier", [math, final_answer])
def test_wrong_answers_and_other_people_may_be_mentioned(verifier, reply):
    assert said("7", reply, verifier=verifier) is True


@pytest.mark.parametrize("verifier", [math, final_answer])
def test_who_is_asked_about_is_nobody_else(verifier):
    assert said("7", "The student's answer is 7.", "A student adds 3 and 4. What is the student's answer?", verifier) is True


LINES = [
    ("$$x=2$$", "$$x=3$$"), ("$x=2$, and", "$x=3$"), ("$x=2$", "or $x=3$"), (r"\[x=2\]", r"\[x=3\]"), ("x=2", "x=3"),
    ("- $x=2$", "- $x=3$"),
    ("**x = 2**", "**x = 3**"), ("$$\nx=2\n$$", "$$\nx=3\n$$"), ("$$x=2$$\n\nor\n", "$$x=3$$"),
]  # fmt: skip


@pytest.mark.parametrize(("above", "below"), LINES)
@pytest.mark.parametrize("before", ["", "So we get\n", "The answer is:\n"])
def test_two_values_one_below_the_other_are_two_answers(before, above, below):
    reply = f"{before}{above}\n{below}"
    assert said(r"\{2,3\}", reply) is True
    for gold in ("2", "3"):
        assert said(gold, reply) is False
        assert said(gold, reply, verifier=final_answer) is False


@pytest.mark.parametrize(
    "reply",
    [
        "The answer is 5, or\n6", "The answer is 5\nor 6", "The answer is 5. Or maybe 6.", "The answer is 5. It could also be 6.",
        "The answer is 5, maybe 6.",
        "So x is 5, or\n6.", "It is 5. Or 6.",
    ],
)  # fmt: skip
def test_a_second_answer_in_the_next_line_or_sentence_counts(reply):
    assert said("5", reply) is said("6", reply) is False


@pytest.mark.parametrize(
    ("gold", "reply"),
    [
        ("3", "$$2x=6$$\n$$x=3$$"), ("3", "$$x=6/2$$\n$$x=3$$"), ("3", "$$x=2.97$$\n$$x=3$$"), ("3", "$$x=2+1$$\n$$x=3$$"),
        ("3", "$$y=2$$\n$$x=3$$"),
        ("3", "$x=2$ is rejected.\n$x=3$"), ("3", "The answer is 3\nand this completes the proof."),
        ("3", "The answer is 3. Or equivalently 6/2."),
        ("(2,3)", "$$x=2$$\n$$y=3$$"), ("(2,3)", "The answer is:\n$x=2$\n$y=3$"), (r"\{2,3\}", "x=2 or x=3"),
    ],
)  # fmt: skip
def test_the_last_line_of_a_derivation_is_the_answer(gold, reply):
    assert said(gold, reply) is True


MOST = "Who earns the most?"


@pytest.mark.parametrize(
    "reply",
    [
        "Navin fails to earn the most.", "Navin wants to earn the most.", "Navin is said to earn the most.",
        "Navin could earn the most.",
        "Navin comes close to earning the most.", "Navin nearly earns the most.",
        "It is false that Navin earns the most.", "Some say that Navin earns the most.", "I doubt that Navin earns the most.",
        "Navin earns the most (false).", "The one who earns the most may be Navin.",
    ],
)  # fmt: skip
def test_a_name_that_is_not_said_to_do_what_is_asked_is_not_the_answer(reply):
    assert said("Navin", reply, MOST) is False


@pytest.mark.parametrize(
    "reply",
    [
        "Navin would earn the most.", "Navin ends up earning the most.", "Navin earns the most, not Luka.",
        "Since Bob does not work, Navin earns the most.",
        "Navin is the one who earns the most.",
    ],
)  # fmt: skip
def test_a_name_that_is_said_to_do_it_is(reply):
    assert said("Navin", reply, MOST) is True


@pytest.mark.parametrize("form", [r"\boxed{{\text{{{}}}}}", "The answer is {}."])
def test_one_of_two_names_is_not_both(form):
    assert said("Tom and Sam", form.format("Tom or Sam")) is False
    assert said("Tom and Sam", form.format("Sam and Tom")) is True
    assert said("red, blue", form.format("red or blue")) is False
    assert said("an ellipse or a circle", form.format("circle or ellipse")) is True


INCORRECT = "Which of the following statements is incorrect?"
NOT_PRIME = "Which of these is NOT prime?"


@pytest.mark.parametrize(
    ("question", "reply", "right"),
    [
        (INCORRECT, "The incorrect option is (B)", True), (INCORRECT, "The statement that is incorrect is (B).", True),
        (INCORRECT, "Statement (B) is incorrect.", True), (NOT_PRIME, "The one that is not prime is (B).", True),
        (NOT_PRIME, "(B) is not prime.", True),
        ("Which is the least likely cause?", "The least likely cause is (B).", True),
        ("Select the false statement.", "The false statement is (B).", True),
        ("", "The incorrect option is (B)", False), ("Which is the most likely cause?", "The least likely cause is (B).", False),
        ("Which of the following is correct? Wrong answers lose a point.", "The wrong option is (B)", False),
        ("Choose the right option; do not choose a wrong option.", "The wrong option is (B).", False),
        ("Which best explains why the mouse did not run?", "(B) is not the best.", False),
        (INCORRECT, "(A) is incorrect.\n(B) is incorrect.", False),
        (INCORRECT, "I doubt that (B) is incorrect.", False), (INCORRECT, "It is not true that (B) is incorrect.", False),
        (INCORRECT, "The answer is (A). (B) is incorrect.", False), (INCORRECT, "The incorrect statement is (B) or (C).", False),
    ],
)  # fmt: skip
@pytest.mark.parametrize("verifier", [choice, math])
def test_the_incorrect_option_is_chosen_where_the_question_asks_for_it(verifier, question, reply, right):
    assert said("B", reply, question, verifier) is right
