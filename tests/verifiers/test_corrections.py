"""Replies that correct the answer they have stated: the later value is the answer, and a check that confirms changes nothing."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewardlab.text.corrections import corrected
from rewardlab.verifiers.choice.verifier import choice
from rewardlab.verifiers.match import final_answer, final_number
from rewardlab.verifiers.math.verifier import math

VERIFIERS = [math, final_answer, final_number]
NUMBERS = (
    "\\boxed{42}\n\nHold on, I mis-added. The answer should be 43.",
    "Answer: 42\n\nWait, let me re-check. The correct total is 43.",
    "The answer is 42. Wait, actually it's 43.", "The answer is 42. Sorry, I meant 43.",
    "The answer is 42. On second thought, it's 43.",
    "The answer is 42, no, 43.", "The answer is 42, no 43.", "The answer is 42. Oops, I forgot to add 1, so the total is 43.",
    "The answer is 42. Hmm, let me recheck: 6*7 = 43. So it's 43.", "The answer is 42. Correction: 43.",
    "The answer is 42. Scratch that, 43.",
    "The answer is 42. I made a mistake. It is 43.", "The answer is 42. Let me correct that: 43",
    "The answer is 42, or rather 43.",
    "The answer is 42. Make that 43.", "The answer is 42.\n\nEDIT: 43", "The answer is 42.\n\n*43", "The answer is 42 -> 43",
    "The answer is ~~42~~ 43.", "\\boxed{42}. Wait, the answer is 43.", "\\boxed{42}\n\nWait, no. \\(43\\).",
    "<answer>42</answer> Wait, actually it's 43.", "#### 42\n\nOops, 43.", "The answer is 42. That should have been 43.",
    "The answer is 42. Wait, I miscounted: there are 43.", "The answer is 42 wait no 43", "The answer is 42 (actually 43).",
    "The answer is **42**. Wait, that's not right. 42 + 1 = 43. So **43**.", "The answer is 42. Well, 43 actually.",
    "\\boxed{42}\n\nI apologize for the mistake. The correct answer is \\(43\\).", "The answer is 42. Wait, 43 is correct.",
    "The answer is 42. Let me double-check: 6*7 = 43. Yes, 43.", "The answer is 42. But we must add 1, so it's 43.",
    "The answer is 42. Wait, let me double-check: 6*7 = 42. Wait, no, it's 43.", "The answer is 42. It's not 42 but 43.",
    "The answer is 42. Upon rechecking, it is 43.", "The answer is 42. It's actually 43.",
    "The answer is 42. The right value is 43.",
    "The answer is 42. Change that to 43.", "The answer is 42. I changed my mind: 43.", "The answer is 42. Wait wait wait, 43.",
    "\\boxed{42}\n\nNote: the correct answer is 43.", "The answer is 42. This can't be right. It must be 43.",
    "The answer is 42. No, 43 (42 + 1).", "\\boxed{42} Actually, #### 43",
    "The answer is 42. Typo: 43.", "The answer is 42. That's wrong; it is 43.", "The answer is 42. I take that back: 43.",
    "Die Antwort ist 42. Moment, nein, es sind 43.", "Die Antwort ist 42. Korrektur: 43.",
    "Die Antwort ist 42. Entschuldigung, ich meinte 43.",
    "Die Antwort ist 42. Ich habe mich verrechnet: Es sind 43.", "La réponse est 42. Attends, non, c'est 43.",
    "La réponse est 42. Pardon, je voulais dire 43.", "La respuesta es 42. Espera, no, son 43.",
    "La respuesta es 42. Perdón, quise decir 43.",
    "La respuesta es 42. Me equivoqué: son 43.", "答案是42。等等，不对，应该是43。",
    "答案是42。更正：43。", "答案是42。我算错了，是43。",
)  # fmt: skip


@pytest.mark.parametrize("reply", NUMBERS)
@pytest.mark.parametrize("verifier", VERIFIERS)
def test_the_later_value_is_the_answer(verifier, reply):
    assert verifier().check(reply, "43").correct is True
    assert verifier().check(reply, "42").correct is False


@pytest.mark.parametrize(
    "reply",
    [
        "The answer is 42. Wait, is it 43? Yes.", "The answer is 42. Wait, it could be 43 or 44.",
        "The answer is 42. Wait, 43 or 44.",
        "The answer is 42. Oops.", "The answer is 42. Scratch that.", "\\boxed{42} I made a mistake.",
        "The answer is 42. Never mind.",
        "The answer is 42. Wait, 6 * 7 = 43, correct.", "The answer is 42. (It is 43.)", "Svar: 42. Vänta, 43.",
    ],
)  # fmt: skip
@pytest.mark.parametrize("verifier", VERIFIERS)
def test_where_none_is_clear_there_is_none(verifier, reply):
    assert verifier().check(reply, "42").correct is verifier().check(reply, "43").correct is False


@pytest.mark.parametrize(
    "reply",
    [
        "The answer is 42. Wait, let me double-check: 6*7 = 42. Yes.", "The answer is 42. Wait, that is 6*7 = 42. Yes.",
        "The answer is 42. Wait, let me double-check: 40 + 2 = 42, so it is right.",
        "The answer is 42. Wait, let me double-check: 42/7 = 6. Yes, that's correct.",
        "The answer is 42. Let me verify: 42/7 = 6.",
        "\\boxed{42}\n\nLet me double-check by substituting: 2*42 + 1 = 85. Correct!",
        "The answer is 42. Hmm, that is a nice number.",
        "The answer is 42. Actually, this is a well-known product.",
        "The answer is 42. Sorry for the long explanation with 3 steps.",
        "The answer is 42. Note that 43 would be wrong.", "The answer is 42, no more and no less.",
        "The answer is 42. There are 6 rows.",
        "\\boxed{42}\n\nI forgot to mention that the unit is cm.", "\\boxed{42}\n\nNo, 43 is not possible.",
        "The answer is 42. If you got 43, you made a mistake.", "The answer is 42. If you got 43, that is wrong.",
        "The answer is 42. At first I made a mistake, but 42 is correct.", "The answer is 42. So you have to wait 42 minutes.",
        "The answer is 42. But if he had 8 rows, it would be 48.", "The answer is 42. However, only 5 of them are red.",
        "The answer is 42. I hope this helps! Let me know if I made a mistake.", "The answer is 42.\n\n* 6 rows\n* 7 seats",
        "#### 42\n\nWait, let me verify that: 6 * 7 = 42. Great.", "The answer is 42. Correction factors of 3 were not needed.",
        "The answer is 42. Check: 42 / 6 is 7.", "Answer: 42\nConfidence: 95%", "The answer is 42. If he had one more, it is 43.",
    ],
)  # fmt: skip
@pytest.mark.parametrize("verifier", VERIFIERS)
def test_a_check_that_confirms_and_other_numbers_change_nothing(verifier, reply):
    assert verifier().check(reply, "42").correct is True
    assert verifier().check(reply, "43").correct is False


@pytest.mark.parametrize(
    "reply",
    [
        "The answer is Paris. Wait, no, it's Lyon.", r"\boxed{Paris}. Scratch that, it's Lyon.",
        "The answer is Paris. Sorry, I meant Lyon.",
        "The answer is Paris. Hold on, it should be Lyon.", "The answer is Paris, or rather Lyon.",
    ],
)  # fmt: skip
@pytest.mark.parametrize("verifier", [math, final_answer])
def test_names_are_corrected_too(verifier, reply):
    assert verifier().check(reply, "Lyon").correct is True
    assert verifier().check(reply, "Paris").correct is False
    assert verifier().check("The answer is Paris. Actually, it's easy to see.", "Paris").correct is True


@pytest.mark.parametrize(
    "reply",
    [
        r"The answer is $\frac{1}{2}$. Wait, actually it's $\frac{3}{2}$.", r"\boxed{\frac{1}{2}}. Oops, $\frac{3}{2}$.",
        r"The answer is \frac{1}{2}, no, \frac{3}{2}", r"The answer is $x = \frac12$. Sorry, I meant $x = \frac32$.",
    ],
)  # fmt: skip
def test_so_are_formulas(reply):
    assert math().check(reply, r"\frac{3}{2}").correct is True
    assert math().check(reply, r"\frac{1}{2}").correct is False


@pytest.mark.parametrize(
    "reply",
    [
        "The answer is A. Wait, no, it's B.", "The answer is (A). Actually, it's (B).", "The answer is A. Sorry, I meant B.",
        "Answer: A\n\nOops, B.", "Die Antwort ist A. Moment, nein, es ist B.",
        "The answer is B. Wait, A is also tempting, but B is right.",
    ],
)  # fmt: skip
@pytest.mark.parametrize("verifier", [math, choice])
def test_so_are_choices(verifier, reply):
    assert verifier().check(reply, "B").correct is True
    assert verifier().check(reply, "A").correct is False


@pytest.mark.parametrize("verifier", [math, choice])
def test_what_is_said_of_other_options_corrects_nothing(verifier):
    options = "(A) X. So this answer is only partially correct.\n(B) **No, because of Y.**\n- This is incorrect.\n(C) **No.**\n"
    assert (
        verifier().check(f"{options}- Yes.\n\nTherefore, the best choice is: **(D) Yes, because it is enough**.", "D").correct
        is True
    )


@pytest.mark.parametrize("gold", ["A -> B", "3 -> 5", "3 -> 5 -> 7", "A → C → B"])
def test_an_answer_may_have_arrows(gold):
    assert final_answer().check(f"The answer is {gold}.", gold).correct is True
    assert final_answer().check(f"The answer is {gold}.", gold[0]).correct is False


@pytest.mark.parametrize(
    "reply", [r"\boxed{6 \cdot 7}. It is 42.", "The answer is 6*7. That is 42.", "The answer is $6*7$. It is 42."]
)
def test_a_value_of_the_stated_expression_is_no_other_answer(reply):
    assert math().check(reply, "42").correct is True


_PARTS = [
    "wait, ",
    "no, ",
    "not 42 ",
    "42 -> ",
    "\n*4",
    "the correct total of a ",
    "it is ",
    "oops 4 ",
    "~~",
    "等等",
    "let me ",
    "$",
    "43. ",
    "(",
]


@pytest.mark.parametrize("part", _PARTS)
def test_long_replies_are_read_in_time(part):
    text = "The answer is 42. Wait, " + part * (100_000 // len(part))
    start = time.process_time()
    corrected(text)
    # linear patterns take half a second, one that backtracks hours
    assert time.process_time() - start < 5


@given(
    st.lists(st.sampled_from([*_PARTS, "The answer is 42. ", "\\boxed{42} ", "Yes. ", "it's 43. ", "</answer>", "\\boxed{"])).map(
        "".join
    )
)
def test_no_reply_raises_or_is_paid_for_two_answers(text):
    assert not (math().check(text, "42").correct and math().check(text, "43").correct)
