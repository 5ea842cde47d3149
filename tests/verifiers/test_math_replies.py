"""The verifier of mathematical answers on replies as models write them, class by class, with near misses of each rule."""

from __future__ import annotations

import importlib
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from labelled_replies import replies

from rewardlab.text.answers import NO_ANSWER
from rewardlab.verifiers.math.verifier import math

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
NOT_READ = {("n:2", "2"), ("abc = 123", "123")}
"""Right replies that are refused: a ratio n:2 and an equation abc = 123 say something else than the number, too."""


def said(text: str, answer: str, prompt: str = "", **how):
    return math(**how).check(text, answer, prompt).correct


# ---- the labelled replies --------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def judged():
    labelled = replies()
    return list(zip(labelled, math().check_all([(p.response, p.answer) for p in labelled]), strict=True))


def test_the_labelled_replies_are_many_in_each_class_and_half_are_wrong(judged):
    assert len({(pair.response, pair.answer) for pair, _ in judged}) == len(judged) >= 500
    for kind in {pair.kind for pair, _ in judged}:
        right = [pair.correct for pair, _ in judged if pair.kind == kind]
        assert len(right) >= 25
        assert 0.4 < sum(right) / len(right) < 0.6


def test_no_wrong_reply_is_accepted(judged):
    assert [pair for pair, verdict in judged if verdict.correct and not pair.correct and not pair.held_out] == []


def test_no_right_reply_is_refused(judged):
    refused = {(p.response, p.answer) for p, verdict in judged if p.correct and not verdict.correct and not p.held_out}
    assert refused == NOT_READ


def test_the_benchmark_counts_the_errors_of_each_class(judged, monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    benchmark = importlib.import_module("math_replies")
    rows = benchmark.table([verdict.correct for _, verdict in judged], [True for _ in judged])
    totals = {(row["name"], row["unit"].partition(" of ")[0]): (row["ours"], row["peer"]) for row in rows}
    wrong = sum(not pair.correct and not pair.held_out for pair, _ in judged)
    assert totals["all classes", "false accepts"] == (0, wrong)
    assert totals["all classes", "false rejects"] == (len(NOT_READ), 0)
    assert sum(ours for (name, _), (ours, _) in totals.items() if ":" not in name and name != "all classes") == len(NOT_READ)


# ---- near misses of each rule ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("reply", "answer", "right"),
    [
        (r"\boxed{5}" "\n" r"\boxed{5}", "5", True),
        (r"\boxed{\frac12} or \boxed{0.5}", "0.5", True),
        (r"\boxed{\frac12} or \boxed{0.6}", "0.5", False),
        (r"\boxed{5} \boxed{6}", "6", False),
        ("\\boxed{12}\n\\boxed{B}", "B", True),
        (r"\boxed{A} and \boxed{B}", "B", False),
        (r"\boxed{5}, then \boxed{6}", "6", True),
        (r"$a = \boxed{4}$, $b = \boxed{5}$", "4, 5", True),
        (r"$b = \boxed{4}$, $a = \boxed{5}$", "4, 5", False),
        (r"\boxed{x < 1} or \boxed{x > 5}", r"(-\infty,1) \cup (5,\infty)", True),
        ("(a) \\boxed{1}\n(b) \\boxed{2}", "2", True),
        ("(a) \\boxed{1}\n(b) nothing", "(a) 1 (b) 2", False),
        ("(a) \\boxed{[1, 3)}\n(b) \\boxed{2}", "(a) [1, 3) (b) 2", True),
    ],
)
def test_boxes_that_are_joined_state_one_answer(reply, answer, right):
    assert said(reply, answer) is right


@pytest.mark.parametrize(
    ("reply", "answer", "right"),
    [
        ("The total is 5 dollars and 3 cents.", "5", False),
        ("The number of solutions is 7 if $n$ is even and 8 if $n$ is odd.", "7", False),
        ("The total is 42. No wait, that is wrong.", "42", False),
        ("Of the 30 students, 12 are girls.", "12", True),
        ("The total is 45 dollars in 3 days.", "45", True),
        ("Since $a$ is 3, the area is 9.", "9", True),
        ("The side is 3, so the area is 9.", "9", True),
        ("The ratio is 2:3.", "3", False),
        ("The roots are $1$ and $5$.", "5", False),
        ("The roots are $1$ and $5$.", "1, 5", True),
        ("There are 3 such $n$: $n = 1, 2, 5$.", "3", True),
        ("She will be 12 years old.", "12", True),
        ("Is it 7?", "7", False),
        ("I do not know, 7?", "7", False),
        ("It lies between 6 and 8, so it's 7", "7", True),
        ("It cannot be 7, hence 42.", "42", True),
        ("He earns 60 dollars in 5 days, so 12 dollars a day.", "12", True),
        ("So 3 boxes cost 12 dollars.", "3", False),
        ("Steve takes 40 - 36 = 4 minutes less than Tim.", "4", True),
        ("Steve takes 4 minutes, which is 36 less than Tim.", "36", False),
    ],
)
def test_a_sentence_states_what_something_is_said_to_be(reply, answer, right):
    assert said(reply, answer) is right


def test_the_last_of_several_numbers_counts_whatever_was_computed_if_asked_for():
    reply = "8 x 8 = 64\n\nSo he pays 64 dollars for 16 glasses."
    assert said(reply, "64") is True
    assert said(reply, "16") is False
    assert said(reply, "16", find="last") is True
    assert said(reply, "64", find="last") is False


@pytest.mark.parametrize(
    ("reply", "answer", "right"),
    [
        (r"\boxed{3{,}756}", "3756", True),
        (r"\boxed{3{,}\!756}", "3756", True),
        (r"\boxed{3{,}75}", "375", False),
        (r"\boxed{0,375}", "0.375", True),
        (r"\boxed{0,375}", "375", False),
        (r"\boxed{(1,5)}", "1.5", False),
        (r"\boxed{3,756}", "3.756", False),
        (r"\boxed{x_1 = 3,75}", "3.75", False),
        (r"\boxed{1 23}", "123", False),
        (r"\boxed{12 345 6}", "123456", False),
        (r"\boxed{1 000/3}", r"\frac{1000}{3}", False),
    ],
)
def test_separators(reply, answer, right):
    assert said(reply, answer) is right


def test_decimal_commas_are_read_everywhere_if_asked_for():
    assert said(r"\boxed{3.5}", "3,5") is False
    assert said(r"\boxed{3.5}", "3,5", decimal_comma=True) is True
    assert said(r"\boxed{5, 3}", "3,5", decimal_comma=True) is False
    assert said(r"\boxed{1,250}", "1250", decimal_comma=True) is True


@pytest.mark.parametrize(
    ("reply", "answer", "right"),
    [
        (r"\\boxed{\\begin{pmatrix} 1 \\\\ 2 \\end{pmatrix}}", r"\begin{pmatrix} 1 \\ 2 \end{pmatrix}", True),
        (r"\boxed{\begin{pmatrix} 1 \\pi \end{pmatrix}}", r"\begin{pmatrix} 1 & \pi \end{pmatrix}", False),
        (r"\boxed{5\\6}", "5", False),
        (r"\\boxed{\\sqrt{2}}", r"\sqrt{3}", False),
    ],
)
def test_doubled_backslashes(reply, answer, right):
    assert said(reply, answer) is right


@pytest.mark.parametrize(
    ("reply", "answer", "right"),
    [
        ("<|im_start|>assistant\nThe answer is 42.<|im_end|>", "42", True),
        ("<|channel|>analysis<|message|>4?<|end|><|start|>assistant<|channel|>final<|message|>It is 3.<|return|>", "3", True),
        ("<|begin_of_text|> It is 3.", "3", True),
        ("Question: what is it?\n\nThe answer is 5", "5", True),
        ("#### Step 1\nQuestion: what is it?\n\nThe answer is 5", "5", True),
        ("The answer is not obvious.\nProblem: find it.\nThe answer is 5.", "5", True),
        ("The answer is 5.\nQuestion: and now?\nThe answer is 6", "6", False),
        ("\\boxed{5}. Wait, that is not right.", "5", False),
        ("\\boxed{5}\n\nLet me know if this is wrong.", "5", True),
        ("It is 5.\nI hope the answer is 6.", "5", False),
    ],
)
def test_only_its_own_turn_counts(reply, answer, right):
    assert said(reply, answer) is right


@pytest.mark.parametrize(
    ("reply", "answer", "right"),
    [
        ("a=4, b=5", "4, 5", True),
        ("b=4, a=5", "4, 5", False),
        ("x=1, y=2", "(1,2)", True),
        ("y=1, x=2", "(1,2)", False),
        ("x=1, y=2", "[1,2]", False),
        (r"\angle B = 60^\circ, \angle A = 40^\circ", r"\angle A = 40^\circ, \angle B = 60^\circ", True),
        ("b:a = 3:2", "a:b = 2:3", True),
        ("a:b = 3:2", "a:b = 2:3", False),
        (r"\frac{a}{b} = \frac23", "a:b = 2:3", True),
        (r"\frac{b}{a} = \frac23", "a:b = 2:3", False),
        (r"\frac{b}{a} = \frac32", "a:b = 2:3", True),
        ("12:30", "6:15", False),
        ("x=1, y=2; x=3, y=4", "(3,4), (1,2)", True),
        ("x=1, y=2; x=3, y=4", "(1,3), (2,4)", False),
    ],
)
def test_labels(reply, answer, right):
    assert said(rf"\boxed{{{reply}}}", answer) is right


@pytest.mark.parametrize(
    ("reply", "answer", "right"),
    [
        (r"|2x+1| \le 5", "[-3, 2]", True),
        ("|2x+1| < 5", "[-3, 2]", False),
        (r"|x| < \sqrt{2}", r"(-\sqrt{2}, \sqrt{2})", True),
        ("|x| < -1", "(1, -1)", False),
        ("|x+y| < 1", "(-1, 1)", False),
        ("1 < 3 - x < 5", "(-2, 2)", True),
        ("0 < f(x) < 1", "(0, 1)", True),
        ("0 < f(x) < 1", "0 < g(x) < 1", False),
        ("1 < 2x < y", "(1, y)", False),
        ("all real numbers", r"\mathbb{R}", True),
    ],
)
def test_two_notations_of_one_set(reply, answer, right):
    assert said(rf"\boxed{{{reply}}}", answer) is right


M = r"\begin{pmatrix} 1 & 2 \\ 3 & 4 \end{pmatrix}"
COLUMN = r"\begin{pmatrix} x \\ y \end{pmatrix}"


@pytest.mark.parametrize(
    ("reply", "answer", "right"),
    [
        (M + COLUMN, r"\begin{pmatrix} x + 2y \\ 3x + 4y \end{pmatrix}", True),
        (COLUMN + M, r"\begin{pmatrix} x + 2y \\ 3x + 4y \end{pmatrix}", False),
        (M + M + "^{-1}", r"\begin{pmatrix} 1 & 0 \\ 0 & 1 \end{pmatrix}", True),
        (r"\begin{pmatrix} 1 & 2 \\ 2 & 4 \end{pmatrix}^{-1}", r"\begin{pmatrix} 1 & 2 \\ 2 & 4 \end{pmatrix}", False),
        (rf"({M} - {M}^T) / 2", r"\begin{pmatrix} 0 & -\frac12 \\ \frac12 & 0 \end{pmatrix}", True),
        (rf"2A = {M}", M, False),
        (rf"2A - B = {M}", M, True),
        (rf"{M} + 1", r"\begin{pmatrix} 2 & 3 \\ 4 & 5 \end{pmatrix}", False),
        (rf"\det {M} + 2", "0", True),
        (r"\begin{vmatrix} 1 & 2 \\ 3 & 4 \end{vmatrix}", "2", False),
    ],
)
def test_matrices_are_evaluated(reply, answer, right):
    assert said(rf"\boxed{{{reply}}}", answer) is right


def test_a_determinant_is_not_worked_out():
    for reply in (r"\begin{vmatrix} 1 & 2 \\ 3 & 4 \end{vmatrix}", rf"\det {M}"):
        assert said(rf"\boxed{{{reply}}}", "-2") is True
        assert said(rf"\boxed{{{reply}}}", "-2", worked_out=True) is False


@pytest.mark.parametrize(
    ("reply", "answer", "right"),
    [
        ("28 pct", "28", False),
        ("28 pct", "0.28", True),
        ("2.8 per cent", r"28\%", False),
        ("28‰", "0.028", True),
        ("28 per mille", "28 per cent", False),
    ],
)
def test_percent_in_words(reply, answer, right):
    assert said(rf"\boxed{{{reply}}}", answer) is right
    assert said("28 pct", "28", "What pct of them?") is True


@pytest.mark.parametrize(
    "gold", [r"\int_0^1 f", "Yes, if $a=1$; no, if $a=2$.", "f(a) open", r"\text{The midpoints, in order}", "♠", "1 :"]
)
def test_the_gold_answer_letter_for_letter_is_right(gold):
    assert said(gold, gold) is True
    assert said(f"\n{gold} ", gold) is True
    assert said(gold + " x", gold) is False
    assert said(gold, gold, find="boxed") is False


@pytest.mark.parametrize("reply", ["B12", "H2O", "x12y34", "v_2", "The code is 7F2.", "a1, b2"])
def test_digits_within_a_word_are_no_number(reply):
    for number in ("12", "2", "34", "1"):
        assert said(reply, number) is False


def test_a_currency_before_a_number_is_no_word():
    assert said("It costs USD12.", "12") is True


# ---- what models of today write --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("reply", "answer", "right"),
    [
        # the last sentence has several numbers: the one in bold, else the result of the last equation, else the last
        ("Therefore, the 5 people brought in a total of 14 old records.", "14", True),
        ("Therefore, the 5 people brought in a total of 14 old records.", "5", False),
        ("42 baps are equivalent to 40 daps.", "40", True),
        ("So 8 pens will cost $12.00.", "12", True),
        ("So 8 pens will cost $12.00.", "8", False),
        ("So **14** of the 50 candles explode.", "14", True),
        ("So **14** of the 50 candles explode.", "50", False),
        ("24 + 40 = 64\n\nSo 64 dollars buy 16 glasses.", "64", True),
        ("\\frac{3}{24} = \\frac{1}{8}\n\nSo 3 inches is $\\frac{1}{8}$ of 2 feet.", "1/8", True),
        ("11 - 9 = 2 dollars\n\nSo Box C is $2 more expensive than Box B.", "2", True),
        ("So Box C is $2 more expensive than Box B.", "2", False),
        ("It costs a profit of $125 compared to $96 for the other.", "125", True),
        ("It takes Anna and Ben 8 hours to fill 16 pools.", "8", True),
        ("There are 3 distinct ways to put 5 balls into 2 boxes.", "3", True),
        ("Its speed is $12\\pi$ inches per second, or approximately 37.7 inches per second.", r"12\pi", True),
        ("So there are 3 or 4 of them.", "4", False),
        ("So he has 3 apples and 4 pears.", "4", False),
        ("He pays $10,200 + $255 = $10,455.", "10455", True),
        ("He pays $10,200 + $255 = $10,455.", "255", False),
        # a heading is no answer
        ("#### Height:\n3 x 24 = 72\n\nSo the volume of all 3 boxes is **72 cubic inches**.", "72", True),
        ("#### 4. Solve for S:\n2S = 16\n\nSo the pool has 8 gallons.", "8", True),
        ("#### Step 4: Add both days\n46 + 27 = 73\n\nSo he killed 73 animals.", "73", True),
        ("#### Euros (EUR)\n114 - 92 = 22\n\nSo she has **22 more euros than pounds**.", "22", True),
        ("#### 42\n\nI checked 40 + 2.", "42", True),
        ("The answer is the sum of these:\n\n3 + 4 = 7", "7", True),
        ("The questions that he can answer: $5t$.\n\nSo he left 105 of them.", "105", True),
        ("The answer is unknown.", "5", False),
        # a mark, then a sentence
        ("Final Answer: The largest $n$ is 34.", "34", True),
        ("So the answer is: the number of $k$-subsets is 15", "15", True),
        ("the answer is that the 5 people brought in **14 old records**.", "14", True),
        ("The answer remains 36 miles.", "36", True),
        ("The answer is 40 percent more than 10.", r"40\%", False),
        # ordinals
        ("So Bill is now on the 18th floor.", "18", True),
        ("So Bill is now on the 18th floor.", "8", False),
        (r"\boxed{12th}", "12", True),
        (r"\boxed{12^{\text{th}}}", "12", True),
        (r"\boxed{13^{th}}", "12", False),
        ("the 2nd", "2", True),
        # function values
        (r"$t(g(16)) = 1.$", "1", True),
        (r"$t(g(16)) = 2.$", "1", False),
        (r"$f(2)g(3) = 1$", "1", False),
        # marks and signs in LaTeX and markdown
        (r"\textbf{Answer: } 12 cm^2", "12", True),
        ("Answer: 12 (twelve)", "12", True),
        (r"Answer: the probability is $\tfrac{1}{2}$ (i.e., 50%).", "1/2", True),
        ("Answer: 12 (mod 15)", "12", False),
        (r"\fbox{42}", "42", True),
        (r"\boxed 42", "42", True),
        (r"\boxed{\underline{42}}", "42", True),
        (r"\boxed{\textcolor{red}{42}}", "42", True),
        (r"\boxed{\bf 42}", "42", True),
        (r"\boxed{17\text{, }44}", "17, 44", True),
        (r"\boxed{168,000 \, \text{\$}}", "168000", True),
        (r"\boxed{6:15\text{ PM}}", "6:15 p.m.", True),
        ("6:15 a.m.", "6:15 PM", False),
        (r"\boxed{(2516)_8}", "2516_8", True),
        (r"\boxed{2516_{\text{eight}}}", "2516_8", True),
        (r"\boxed{2516_{\text{nine}}}", "2516_8", False),
        # end tokens, invented questions and whole conversations
        ("42<|im_end|>", "42", True),
        ("42<|eot_id|>\n", "42", True),
        ("42</s></s>", "42", True),
        ("The answer is 42.\n\nuser\nWhat is 5+6?\nassistant\nThe answer is 11.", "42", True),
        ("The answer is 42.\n\nExercise 2. What is 5+6? The answer is 11.", "42", True),
        ("The answer is 42.\n\nNext problem: what is 5+6?\nThe answer is 11.", "11", False),
        ("system\nPut it in \\boxed{}.\nuser\nWhat is 40 + 2?\nassistant\nIt is \\boxed{42}", "42", True),
    ],
)
def test_replies_of_models_of_today(reply, answer, right):
    assert said(reply, answer) is right


@pytest.mark.parametrize(
    ("reply", "answer", "right"),
    [
        ("So Navin earns the most, with 39.52 USD.", r"\text{Navin}", True),
        ("Therefore, after an eight-hour day, Navin would earn the most.", r"\text{Navin}", True),
        ("So Navin or Luka earns the most.", r"\text{Navin}", False),
        ("Unlike Navin, Luka earns the most.", r"\text{Navin}", False),
        ("So Luka earns more than Navin.", r"\text{Navin}", False),
        ("Navin does not earn the most.", r"\text{Navin}", False),
        ("The graph of $x^2 + y^2 = 10$ is an ellipse.", r"\text{ellipse}", True),
        ("The graph of $x^2 + y^2 = 10$ is not an ellipse.", r"\text{ellipse}", False),
        ("The fastest is **Evelyn**, with 3.6 units.", r"\text{Evelyn}", True),
        ("After turning 2250 degrees she is facing east.", r"\text{east}", True),
        ("She is facing southeast.", r"\text{east}", False),
        ("Is it Navin?", r"\text{Navin}", False),
        (r"Navin earns the most: \boxed{\text{Luka}}", r"\text{Navin}", False),
    ],
)
def test_answers_in_words_are_read_from_the_last_sentence(reply, answer, right):
    assert said(reply, answer) is right


def test_digits_are_in_the_base_that_the_question_asks_for():
    for prompt in ("Write 1358 in base 8.", "the octal number", "in base eight", "the base $8$ representation"):
        assert said(r"\boxed{2516}", "2516_8", prompt) is True
    assert said(r"\boxed{2516}", "2516_8", "Write it in base 9.") is False
    assert said(r"\boxed{2516}", "2516_8") is False
    assert said(r"\boxed{2517}", "2516_8", "Write it in base 8.") is False


def test_verl_tells_the_verifier_what_is_asked():
    score = math().verl()
    assert score("gsm8k", r"\boxed{20\%}", "20", {"question": "What percentage of her time?"})["acc"] is True
    assert score("gsm8k", r"\boxed{20\%}", "20", {"question": "How many hours?"})["acc"] is False
    assert score("gsm8k", r"\boxed{20\%}", "20", None)["acc"] is False


def test_repeating_what_is_to_be_worked_out_is_no_answer():
    question = r"Simplify $\tan 80^\circ - 4 \sin 80^\circ.$"
    assert said(r"\boxed{\tan 80^\circ - 4\sin 80^\circ}", r"-\sqrt{3}", question) is False
    assert said(r"\boxed{-\sqrt{3}}", r"-\sqrt{3}", question) is True
    assert said(r"\boxed{\cot 10^\circ}", r"\tan 80^\circ", question) is True


def test_any_of_a_list_of_gold_answers_is_right_and_one_that_is_cut_off_gets_no_verdict():
    for golds in (["5", "6"], '["5","6"]'):
        assert [said(reply, golds) for reply in ("5", "6", "7")] == [True, True, False]
    assert said("5", r"$x=\boxed 5$") is True
    assert said("1", r"\frac{1}{") is None
    assert math().check("1", r"\frac{1}{").why == r"the gold answer '\\frac{1}{' has a brace that does not close"


def test_a_reply_without_an_answer_says_so():
    assert math().check("I am not sure about this one.", "5").why == NO_ANSWER
    assert math().check("I am not sure about this one.", "(B)").why.startswith(NO_ANSWER)


# ---- hostile text ----------------------------------------------------------------------------------------------------

PIECES = [r"\boxed{", "}", "1", "x", " and ", ", ", "\n", "(a) ", "(b) ", "$", r"\begin{pmatrix}", r"\end{pmatrix}", "&", r"\\",
    "^{-1}", "+", " is ", "the ", ". ", "<|im_end|>", "Question: ", "if ", "|", "<", "=", ":", ";",
    r"\text{", "0,5", "{,}", "%", r"\det "]  # fmt: skip


@given(st.lists(st.sampled_from(PIECES), max_size=25).map("".join), st.sampled_from(["1", "x=1, y=2", "(a) 1 (b) x", "0.5"]))
def test_every_reply_gets_a_verdict(text, answer):
    assert said(text, answer) in (True, False)


HOSTILE = [
    "is 5 and " * 20_000, r"\boxed{1}, " * 9_000, "(a) \\boxed{1}\n(b) \\boxed{2}\n" * 4_000, "$x$ is " * 20_000, "1 000" * 20_000,
    "<|im_end|" * 20_000, "\nQuestion:" * 20_000, "\\\\frac" * 20_000, "5:" * 30_000, "[" * 50_000 + "a)", "(a) 1 (b) 2" * 180,
    COLUMN.replace("x", "x+z") * 50, M * 60, f"({M})^12" * 40, "(" * 200 + M,
    r"\begin{vmatrix}" + r"a & b \\ " * 60 + r"\end{vmatrix}", "</s> " * 30_000 + "x", "#### x\n" * 30_000,
    "the answer is x:\n" * 20_000,
    "= 1 " * 20_000 + "so 3 and 4", r"\boxed 1" * 20_000, "(1)_" * 20_000, "12th " * 20_000, "1 or " * 30_000,
]  # fmt: skip


@pytest.mark.parametrize("text", HOSTILE, ids=lambda text: text[:12])
def test_hostile_replies_are_wrong_soon(text):
    start = time.process_time()
    assert [v.correct for v in math().check_all([(text, "7"), (rf"\boxed{{{text}}}", "7, 8")])] == [False, False]
    assert time.process_time() - start < 4.0


SO = "So, Charisma spends a total of 34 hours on yoga in 4 weeks."


@pytest.mark.parametrize(
    "before",
    [
        r"We add: \[14 \text{ hours (meditation)} + 20 \text{ hours (yoga)} = 34 \text{ hours}\] ",
        "Total:\n\\[\n\\text{a}\n= 8.5 \\times 4 = 34\n\\] ",
        "Total:\n$$\n8.5 \\times 4 = 34\n$$ ",
        r"We add: \(14 + 20 = 34\) ",
        "We add: $14 + 20 = 34$ ",
        "Total:\n\\begin{align*}\n8.5 \\times 4 &= 34\n\\end{align*} ",
        # the formula begins before what is read
        "x" * 1200 + " 8.5 \\times 4 = 34\n\\] ",
    ],
)
def test_a_sentence_may_follow_a_formula_on_its_line(before):
    assert said(before + SO, "34") is True
    assert said(before + SO, "4") is False
    # it states what it says, not what the formula says
    assert said(before + SO.replace("34", "30"), "34") is False
    assert said(before + "So, she spends 3 or 34 hours on it.", "34") is False
