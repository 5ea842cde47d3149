"""Which numbers a reply states: what changes a number, or is part of an expression, must not be paid as the number."""

import pytest

from rewardlab.audit.built_in import built_in
from rewardlab.audit.replies import FORMATS, changed
from rewardlab.errors import RewardlabError
from rewardlab.verifiers.match import exact_match, final_answer, final_number
from rewardlab.verifiers.math.verifier import math
from rewardlab.verifiers.sets.verifier import ranking, same_set
from rewardlab.verifiers.text import rouge

FORMS = ("The answer is {}.", "So we have {}", r"\boxed{{{}}}", "{}", "#### {}", "<answer>{}</answer>", "Thus the answer is ${}$.")
CHANGED = [
    (".5", "5"), ("-.5", "5"), ("x=.5", "5"), (".25", "25"), ("1e2", "2"), ("1e-3", "-3"), ("1 / 2", "2"), ("minus 5", "5"),
    ("-(5)", "5"), ("5 million", "5"), ("5 thousand", "5"), ("5k", "5"), ("$5M", "5"), (r"\sqrt{2}", "2"), (r"2\pi", "2"),
    ("<5", "5"), ("anything but 5", "5"), ("–5", "5"), ("at least 5", "5"), ("x <= 5", "5"), ("1 005", "5"), ("3 1/2", "1/2"),
    ("5²", "5"), ("2×10^3", "3"), ("5 tenths", "5"), ("negative 5", "5"), ("5x", "5"), ("5 + x", "5"), ("sqrt(2)", "2"),
    ("log 5", "5"), (r"\frac{1}{2}", "2"), ("√2", "2"), ("2^5", "5"), ("5i", "5"), ("1_000", "0"),
]  # fmt: skip
SAME = [
    (".5", "0.5"), ("1e2", "100"), ("1 / 2", "1/2"), ("minus 5", "-5"), ("5 million", "5000000"), ("5k", "5000"), ("１２", "12"),
    ("$5M", "5,000,000"), ("٤٢", "42"), ("উত্তর হল ৪২।", "42"), ("คำตอบคือ ๔๒", "42"),
    ("उत्तर ४२ है।", "42"), ("½", "0.5"), ("3½", "3.5"), ("1 000 000", "1000000"), ("5 times", "5"), ("5 apples", "5"),
    ("x = 5", "5"), ("**5**", "5"), ("*5*", "5"), ("–5", "-5"), ("2 × 10^3", "2000"), ("=> 5", "5"), ("(5)", "5"), ("≈ 5", "5"),
    ("5 m", "5"), ("5 dozen", "60"), ("1 1/2", "1.5"), ("5 - that is all", "5"), ("5 cm²", "5"),
]  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
def test_a_number_is_read_with_all_that_changes_it(form):
    assert [said for said, gold in CHANGED if final_number().check(form.format(said), gold).correct] == []
    assert [said for said, gold in SAME if not final_number().check(form.format(said), gold).correct] == []


def test_an_exclamation_is_no_factorial_but_in_a_box():
    assert final_number().check("The answer is 5!", "5").correct is True
    assert final_number().check(r"\boxed{5!}", "5").correct is False


@pytest.mark.parametrize(
    ("reply", "gold", "correct"),
    [
        ("It is minus 5", "5", False), ("It is minus 5", "-5", True), (r"\boxed{\boxed{5}}", "5", True), ("so .5", "5", False),
        ("so .5", "0.5", True), ("It costs 5 million", "5", False), ("we get 1e2", "2", False), ("we get 1e2", "100", True),
    ],
)  # fmt: skip
def test_mathematics_reads_the_same_numbers(reply, gold, correct):
    assert math().check(reply, gold).correct is correct


def test_accents_written_as_one_or_two_characters_are_equal():
    assert exact_match().check("Cafe\u0301", "Caf\u00e9").correct is True
    assert exact_match(normalised=True).check("cafe\u0301", "Caf\u00e9").correct is True
    assert final_answer().check("The answer is cafe\u0301", "Caf\u00e9").correct is True


@pytest.mark.parametrize(
    "make",
    [lambda: same_set(measure="jacard"), lambda: ranking(measure="f1"), lambda: rouge(variant="3"), lambda: math(find="nowhere")],
)
def test_a_setting_with_few_choices_is_checked(make):
    with pytest.raises(RewardlabError, match="must be"):
        make()


@pytest.mark.parametrize("verifier", [final_number, final_answer, math])
def test_the_audits_near_misses_are_wrong(verifier):
    names, paid = set(), []
    for item in built_in("numbers"):
        for reply in (reply for fmt in FORMATS for reply in changed(item, fmt)):
            names.add(reply.name)
            paid += [reply.text] if verifier().check(reply.text, item.answer).correct else []
    assert {"thousands in words", "leading dot", "exponent", "minus in words", "part of an expression"} <= names
    assert paid == []
