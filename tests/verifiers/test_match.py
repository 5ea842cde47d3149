"""Which numbers a reply states: what changes a number, or is part of an expression, must not be paid as the number."""

import gzip
import json
from collections import defaultdict

import pytest

from rewardlab.audit.built_in import built_in
from rewardlab.audit.replies import FORMATS, changed
from rewardlab.errors import RewardlabError
from rewardlab.tasks.sources import data_file
from rewardlab.verifiers.match import exact_match, final_answer, final_number, two_way_match
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


@pytest.mark.parametrize("verifier", [final_number, final_answer, two_way_match, math])
@pytest.mark.parametrize(
    "reply",
    [
        "42<|im_end|>", "42<|eot_id|>\n", "42</s> </s>", "42<end_of_turn>",
        "The answer is 42.\n\nQ: What is 5+6?\nA: The answer is 11.",
        "The answer is 42.\n\nuser\nWhat is 5+6?\nassistant\nThe answer is 11.",
        "The answer is 42.\nExercise 2. The answer is 11.", r"\fbox{42}", r"\boxed 42",
    ],
)  # fmt: skip
def test_what_stands_after_its_own_turn_is_no_part_of_a_reply(verifier, reply):
    assert verifier().check(reply, "42").correct is True
    assert verifier().check(reply, "11").correct is False
    assert verifier().check(reply, r"hence $\boxed{42}$.").correct is True


def test_an_end_token_is_no_part_of_any_reply_but_html_may_strike_out():
    assert exact_match().check("yes<|im_end|>\n", "yes").correct is True
    assert exact_match().check("<s>no</s> yes", "<s>no</s> yes").correct is True
    assert exact_match().check("yes</s>", "yes").correct is True


def test_what_is_stated_is_found_where_it_is_asked_for():
    stated = exact_match(find="stated")
    assert stated.check("A is True. So the answer is False.", "False").correct is True
    assert stated.check("A is False. So the answer is True.", "False").correct is False
    assert stated.check("So the answer is } ] )", "} ] )").correct is True
    assert stated.check("False.", "False").correct is True
    assert exact_match().check("So the answer is False.", "False").correct is False


def test_all_accuracies_of_big_bench_hard_come_out():
    """The 54 of 27 tasks, as their authors computed them."""

    def rows(name):
        with gzip.open(data_file("bbh", f"{name}.jsonl.gz"), "rt", encoding="utf-8") as file:
            return [row for row in map(json.loads, file) if "canary" not in row]

    try:
        published = {(row["task"], row["kind"]): row["accuracy"] for row in rows("published_metrics")}
    except RewardlabError as problem:
        pytest.skip(str(problem))
    outputs = [row for kind in ("cot", "direct") for row in rows(f"codex_{kind}")]
    verdicts = exact_match(find="stated").check_all([(row["prediction"], row["target"]) for row in outputs])
    right = defaultdict(list)
    for row, verdict in zip(outputs, verdicts, strict=True):
        right[row["task"], row["kind"]].append(verdict.correct)
    assert len(published) == 54
    assert {key: 100 * sum(of) / len(of) for key, of in right.items()} == pytest.approx(published, abs=1e-6)


@pytest.mark.parametrize(
    ("reply", "answer", "right"),
    [
        ("So she needs 42 pens after 5 days.", "42", True),
        ("So she needs 42 pens after 5 days.", "5", False),
        ("It is 42, which is not a prime.", "42", True),
        ("5 x 12 = 60\n\nIn 5 days he earns 60 dollars for 12 hours.", "60", True),
        ("It is now on the 42nd floor.", "42", True),
        ("Final Answer: The total that was asked for is 42.", "42", True),
        ("Answer: 42 (as was asked)", "42", True),
        ("The answer is 42. Check: 6 * 7 = 43.", "43", False),
        ("The answer is **42**.", "42", True),
        (r"Therefore, $t(g(16)) = 42.$", "42", True),
        (r"We get \[ 6 \times 7 = 42 \text{ cubic inches} \]", "42", True),
        ("It is 41 or 42.", "42", False),
        ("It is not 42.", "42", False),
        ("It is 42, which is wrong.", "42", False),
        ("The answer is 42, which is wrong.", "42", False),
        (r"\boxed{41}, \boxed{42}", "42", False),
        (r"The line is $y = 2x$, as was to be shown.", "y=2x", False),
        (r"The line is $y = 2x$.", "y = 2x", True),
        ("Is it 42?", "42", False),
    ],
)
def test_final_answer_reads_what_a_sentence_says(reply, answer, right):
    assert final_answer().check(reply, answer).correct is right


def test_final_number_takes_the_last_number_and_says_so():
    verdict = final_number().check("So she needs 42 pens after 5 days.", "42")
    assert verdict.correct is False
    assert verdict.why == "said '5', the answer is '42': of several numbers the last is taken; `math` reads which one is meant"
    assert final_number().check("So she needs 42 pens after 5 days.", "5").correct
    # where it would not have been right otherwise, or the answer is marked, it says no more than what was said
    for reply in ("So she needs 41 pens after 5 days.", "The answer is 5, since 42 - 37 = 5.", r"\boxed{5} of 42"):
        assert final_number().check(reply, "42").why == "said '5', the answer is '42'"


@pytest.mark.parametrize("verifier", [final_number(), final_answer()])
def test_a_check_after_a_marked_number_is_not_the_answer(verifier):
    assert verifier.check("The answer is 19. Because 9 * 2 = 18.", "19").correct
    assert not verifier.check("The answer is 19. Because 9 * 2 = 18.", "18").correct
    assert verifier.check("The answer is **18**.", "18").correct
    assert not verifier.check("The answer is 18, which is not right.", "18").correct


@pytest.mark.parametrize(
    ("reply", "answer", "correct"),
    [
        ("<answer>Bob</answer>", "Bob", True),
        ("<think>Ann or Bob?</think> I know it now. <answer>\nBob\n</answer>\n", "Bob", True),
        ("<answer>The answer is Bob.</answer>", "Bob", True),
        ("<answer>Bob", "Bob", True),  # cut at the closing tag, as a stop text does
        ("I searched for Bob. <answer>Ann</answer>", "Bob", False),
        ("<answer>Bob</answer> No. <answer>Ann</answer>", "Bob", False),
        ("<answer></answer> Bob", "Bob", False),
        ("I write it between <answer> and </answer>. The answer is Bob.", "Bob", True),
        ("12 pens in 5 days. <answer>12</answer>", "12", True),
        ("<answer>\\boxed{12}</answer> That took 5 steps.", "12", True),
        ("<answer>12 or 5</answer>", "12", False),
        ("<answer>13</answer> since 12 + 1 is 13", "12", False),
    ],
)
def test_an_answer_between_tags_is_found(reply, answer, correct):
    """Environments that search ask for it there, and the reward is that of the task's usual verifier."""
    number = answer.isdigit()
    for verifier in (final_answer, *((final_number, math) if number else (two_way_match,))):
        assert verifier().check(reply, answer).correct is correct, verifier
    if not number:
        assert exact_match(find="stated").check(reply, answer).correct is correct
