"""What rewards pay, what they refuse to judge, and what they say about it."""

from __future__ import annotations

import os
import time
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewardlab.core import Run, Trajectory, Turn, ask
from rewardlab.errors import RewardlabError
from rewardlab.rewards.format import answer_given, format_ok, tagged
from rewardlab.rewards.intrinsic import likelihood
from rewardlab.rewards.length import cut_off, length_penalty, tokens
from rewardlab.rewards.repetition import repetition
from rewardlab.rewards.steps import correct_steps, leading_steps, sound_steps
from rewardlab.rewards.task import correct
from rewardlab.rewards.user.external import from_file
from rewardlab.tasks.countdown.rewards import countdown_equation
from rewardlab.text import answers as extraction
from rewardlab.text.answers import after_answer, boxed
from rewardlab.text.numbers import last_number, number, one_number
from rewardlab.text.splitters import mark
from rewardlab.verifiers.match import exact_match, final_answer, final_number
from rewardlab.verifiers.math.verifier import math


def attempt(reply: str, answer: object = "32", question: str = "What?", **meta) -> Trajectory:
    ids = np.array([ord(c) for c in reply], np.int64)
    asked = Turn(None, np.arange(3), text=question)
    return Trajectory(ask(question, answer, **meta), (asked, Turn("policy", ids, text=reply)))


def judge(part, *args, run=None, **kw):
    return part([[attempt(*args, **kw)]], run)[0][0]


NUMBERS = {
    "32": 32, "-4": -4, "−4": -4, "+7": 7, "1,234": 1234, "$1,234.50": Fraction("1234.5"), "50%": 50, "50\\%": 50,
    "3/4": Fraction(3, 4), "\\frac{3}{4}": Fraction(3, 4), "-\\dfrac{1}{2}": Fraction(-1, 2), "1.5e3": 1500, "32.": 32,
    ".5": Fraction(1, 2), "18 dollars": 18, "5 \\text{ cm}": 5, "\\$18": 18, "1{,}234": 1234, "x = 5": 5, "**7**": 7,
    "90^\\circ": 90, "-$5": -5,
    "2 million": 2_000_000, "5k": 5000, "1e-3": Fraction(1, 1000), "1 / 2": Fraction(1, 2), "minus 5": -5,
    "½": Fraction(1, 2),
    "3½": Fraction(7, 2), "१२": 12, "১,২৩৪": 1234, "౪౨": 42, "๔๒": 42, "١٬٢٣٤": 1234, "٤٢٫٥": Fraction(85, 2),
    "１２": 12, "٤٢": 42, "1 000 000": 10**6, "2 × 10^3": 2000, "–5": -5, "-1 1/2": Fraction(-3, 2),
}  # fmt: skip
NOT_NUMBERS = [
    "", " ", ".", "-", "abc", "3*7", "3+4", "1 2", "1,23", "12:30", "5x", "5\\pi", "5 pi", "2 million x",
    "5!", "5²", "2 tenths", "|5|", "1/0", "0/0",
    "7 or 8", "1e9999", "9" * 300, "$", "1.2.3", "5 - x", "x^2",
]  # fmt: skip


@pytest.mark.parametrize(("text", "value"), NUMBERS.items())
def test_numbers_are_read_exactly(text, value):
    assert number(text) == value


@pytest.mark.parametrize("text", NOT_NUMBERS)
def test_what_is_not_one_number_is_none(text):
    assert number(text) is None


def test_reading_answers():
    assert boxed(r"so \boxed{1} or rather \boxed{\frac{1}{2}}.") == r"\frac{1}{2}"
    assert boxed(r"cut short \boxed{\frac{1}{2") is None
    assert after_answer("Answer: 1\nNo. The answer is **42**.\nBye") == "42**."
    assert after_answer("Answer:\n 42") == "42"
    assert after_answer("#### 72") == "72"
    assert after_answer("The answer isn't 3") is None
    assert last_number("36-4=32, from 1,234") == "1,234"
    assert last_number("36-4") == "4"
    assert extraction.final_answer("Some words\nblue") == "blue"
    assert extraction.final_answer("") is None


@given(st.text() | st.text(alphabet="0123456789.,-+/eE$% \\boxed{}frac*answer:=#\n"))
def test_extraction_never_raises(text):
    for read in (
        boxed,
        after_answer,
        last_number,
        extraction.final_answer,
        number,
        one_number,
        extraction.tidy,
    ):
        read(text)


@pytest.mark.parametrize(
    "text",
    [
        "answer " * 20000,
        "1," * 50000,
        "9" * 100000,
        "\\boxed{" * 20000,
        "(" * 50000,
        "#" * 100000,
        " " * 100000,
        "a=" * 50000,
    ],
)
def test_extraction_is_quick_on_hostile_text(text):
    start = time.perf_counter()
    for read in (boxed, after_answer, last_number, extraction.final_answer, number, one_number):
        read(text)
    assert time.perf_counter() - start < 3.0


@pytest.mark.parametrize(
    "reply",
    [
        "7+5=12\nAnswer: 32",
        "The answer is $32.00.",
        r"\boxed{32}",
        "#### 32",
        "so 36-4=32",
        "Answer: 36 - 4 = 32",
        "Answer: 32 apples",
    ],
)
def test_final_number_tolerates_form(reply):
    assert judge(final_number(), reply).value == 1.0


@pytest.mark.parametrize(
    ("reply", "why"),
    [
        ("Answer: 33", "the answer is '32'"),
        ("", "no answer found"),
        ("no idea", "no answer found"),
        ("Answer: 31 or 32", "no single number"),
        ("32\nAnswer: 31", "the answer is '32'"),
        ("Answer: 1e99999", ""),
        ("Answer: " + "3" * 10000, ""),
    ],
)
def test_what_the_reply_causes_is_zero_with_a_reason(reply, why):
    score = judge(final_number(), reply)
    assert score.value == 0.0
    assert score.why
    assert why in score.why


@pytest.mark.parametrize("part", [final_number(), final_answer(), exact_match()])
@pytest.mark.parametrize("gold", [None, "", "  "])
def test_an_unusable_gold_answer_gives_no_verdict(part, gold):
    score = judge(part, "Answer: 32", gold)
    assert score.value is None
    assert score.why


def test_a_gold_answer_that_is_no_number_gives_no_verdict_on_numbers():
    assert judge(final_number(), "Answer: 32", "blue").value is None
    assert judge(final_number(), "Answer: 72", "He has 48+24=72.\n#### 72").value == 1.0


@pytest.mark.parametrize(
    ("reply", "gold", "value"),
    [
        ("The answer is 0.5", "1/2", 1.0),
        (r"\boxed{\text{Blue}}", "blue", 1.0),
        (r"\boxed{x^2 + 1}", "x^2+1", 0.0),
        ("Answer: $5\\pi$", "5\\pi", 1.0),
        ("Answer: 5", "5\\pi", 0.0),
        ("Answer: Paris.", "Paris", 1.0),
        ("Answer: London", "Paris", 0.0),
        ("I think 7", 7, 1.0),
    ],
)
def test_final_answer_compares_numbers_or_text(reply, gold, value):
    assert judge(final_answer(), reply, gold).value == value


def test_exact_match_wants_the_reply_whole():
    assert judge(exact_match(), " 32\n").value == 1.0
    assert judge(exact_match(), "Answer: 32").value == 0.0


@pytest.mark.parametrize("said", ["3*7+5", "5+(7*3)", "7*3+5=26", "3 * 7 + 5.", "7×3+5", "(3*7)+5"])
def test_countdown_accepts_any_right_expression(said):
    assert judge(countdown_equation(), f"Answer: {said}", numbers=[3, 5, 7], target=26).value == 1.0


@pytest.mark.parametrize(
    "said",
    [
        "26", "3*7+6-1", "3*7+5+0", "3*7", "3*7+5*1", "3**7+5", "7//3+5", "-3+7+5", "3*7+x", "__import__('os')",
        "3/(5-5)", "1/0", "3*7+5; 1", "((((", ")", "3*7+05", "3*7+5 or 26", "9**9**9", "1+" * 5000 + "1", "(" * 5000,
        "3_0", "٣*7+5", "\x00", "3 7 5", "3*7+5*5/5", "7-5+3",
    ],
)  # fmt: skip
def test_countdown_refuses_everything_else_with_a_reason(said):
    score = judge(countdown_equation(), f"Answer: {said}", numbers=[3, 5, 7], target=26)
    assert score.value == 0.0
    assert score.why


def test_countdown_divides_exactly_and_needs_its_numbers():
    assert judge(countdown_equation(), "Answer: 1/3*9/3", numbers=[1, 3, 9, 3], target=1).value == 1.0
    assert judge(countdown_equation(), "Answer: 1/3*3+0", numbers=[0, 1, 3, 3], target=1).value == 1.0
    assert judge(countdown_equation(), "no answer", numbers=[1], target=1).value == 0.0
    assert judge(countdown_equation(), "Answer: 1").value is None


@given(st.text() | st.text(alphabet="0123456789+-*/()=. "))
def test_countdown_never_raises(text):
    assert judge(countdown_equation(), f"Answer: {text}", numbers=[3, 5], target=2).value in (0.0, 1.0)


def test_correct_is_the_verifier_of_the_task():
    run = Run(policy=None, verify=final_number())
    score = judge(correct(), "Answer: 32", run=run)
    assert score.value == 1.0
    assert list(score.terms) == ["correct"]
    both = (correct() + 0.5 * final_number())([[attempt("Answer: 32")]], run)[0][0]
    assert both.value == 1.5
    with pytest.raises(RewardlabError, match="this run has none"):
        judge(correct(), "Answer: 32", run=Run(policy=None))


GOLD = ["7+5=12", "12*3=36", "36-4=32"]


def step_rewards(reply: str, steps: list[str] = GOLD, answer: str = "32", reward=None):
    marked = mark(attempt(reply, answer, steps=steps), "newline", lambda ids: [chr(i) for i in ids])
    score = (reward or correct_steps())([[marked]])[0][0]
    for (position, _), line in zip(score.steps, reply.split("\n"), strict=True):
        assert chr(marked.ids[position]) in ("\n", line[-1])
    return [r for _, r in score.steps]


@pytest.mark.parametrize(
    ("reply", "rewards"),
    [
        ("7+5=12\n12*3=36\n36-4=32\nAnswer: 32", [1, 1, 1, 1]),
        ("7+5=12\n12-5=7\n12*3=36\n36/3=12\n36-4=32\n32+4=36\nAnswer: 32", [1] * 7),
        ("7+5=13\n13*3=39\n39-4=35\nAnswer: 35", [0, 0, 0, 0]),
        ("7+5=12\n12*3=35\n35-4=31\nAnswer: 31", [1, 0, 0, 0]),
        ("Answer: 32", [0]),
        ("7+5=12\n12-5=8\n7*3=21\n12*3=36", [1, 0, 0, 1]),
        ("36/3=12", [0]),
        ("7/0=7\n7+5=12", [0, 1]),
    ],
)
def test_each_step_is_paid_where_it_ends(reply, rewards):
    assert step_rewards(reply) == rewards


@pytest.mark.parametrize(
    ("reply", "rewards"),
    [
        ("7+5=12\n12*3=36\n36-4=32\nAnswer: 32", [1, 1, 1, 1]),
        # the first step goes wrong, and those that only carry its result on do not
        ("7+5=13\n13*3=39\n39-4=35\nAnswer: 35", [0, 1, 1, 1]),
        ("7+5=12\n12+3=15\n15-4=11\nAnswer: 11", [1, 0, 1, 1]),
        ("7+5=12\n11*3=33\n33-4=29\nAnswer: 30", [1, 0, 1, 0]),
        ("7+5=12\n12 * 3 = 36\n36-4=32\nAnswer: 32\nAnswer: 32", [1, 1, 1, 1, 0]),
        ("7+5=12\nso\n-4=3", [1, 0, 0]),
        ("Answer: 32", [0]),
    ],
)
def test_a_sound_step_goes_on_rightly_from_the_line_before_it(reply, rewards):
    assert step_rewards(reply, reward=sound_steps()) == rewards


def test_steps_need_a_splitter_gold_steps_and_one_alignment():
    with pytest.raises(RewardlabError, match="set splitter='newline' in the rollout"):
        judge(correct_steps(), "7+5=12", steps=GOLD)
    assert judge(correct_steps(), "7+5=12").value is None
    other = mark(attempt("7+5=12\nx. y", steps=GOLD), "sentence", lambda ids: [chr(i) for i in ids])
    assert correct_steps()([[other]])[0][0].value is None


def test_form():
    pattern = r"<think>.+</think>\s*<answer>.+</answer>"
    assert judge(format_ok(pattern=pattern), "<think>a\nb</think>\n<answer>3</answer>").value == 1.0
    assert judge(format_ok(pattern=pattern), "<think>a</think> 3").value == 0.0
    assert judge(answer_given(), "Answer: 3").value == 1.0
    assert judge(answer_given(), "Answer: ").value == 0.0
    with pytest.raises(RewardlabError, match="not a regular expression"):
        judge(format_ok(pattern="("), "x")


def test_a_pattern_that_backtracks_without_end_pays_nothing(monkeypatch):
    monkeypatch.setattr("rewardlab.rewards.format.SECONDS", 0.1)
    score = judge(format_ok(pattern="(a+)+b"), "a" * 60)
    assert score.value == 0.0
    assert "took over" in score.why


def test_length_counts_only_what_the_policy_wrote():
    assert judge(length_penalty(per_token=0.5), "abcd").value == -2.0


def test_likelihood_is_the_mean_of_the_policys_own_log_probs():
    one = Turn("policy", np.arange(2), np.array([-1.0, -2.0], np.float32))
    read = Turn(None, np.arange(5))
    two = Turn("policy", np.arange(1), np.array([-6.0], np.float32))
    recorded = Turn("policy", np.arange(2))
    score = likelihood()
    assert score([[Trajectory(ask("?"), (read, one, read, two))]])[0][0].value == pytest.approx(-3.0)
    assert score([[Trajectory(ask("?"), (read, one, recorded))]])[0][0].value is None
    assert score([[Trajectory(ask("?"), (read,))]])[0][0].value is None


@pytest.fixture
def own(tmp_path: Path):
    """Write a reward file, and score one group of two replies with a function of it."""

    def score(code: str, function: str = "mine", run=None, **meta):
        path = tmp_path / f"rewards_{abs(hash(code))}.py"
        path.write_text(code)
        groups = [[attempt("a", "A", "Q?", **meta)], [attempt("bb", "B", "Q?", **meta)]]
        rows = from_file(path=str(path), function=function)(groups, run)
        assert all(list(s.terms) == [function] for row in rows for s in row)
        return [row[0].value for row in rows]

    return score


@pytest.mark.parametrize("name", ["response", "completion", "reply", "text", "solution_str"])
def test_own_reward_gets_the_reply_by_any_of_its_names(own, name):
    assert own(f"def mine({name}): return len({name})") == [1.0, 2.0]
    assert own(f"def mine({name}s): return [len(x) for x in {name}s]".replace("replys", "replies")) == [1.0, 2.0]


@pytest.mark.parametrize("name", ["answer", "solution", "ground_truth", "gold", "label"])
def test_own_reward_gets_the_answer_by_any_of_its_names(own, name):
    assert own(f"def mine({name}, *, weight=2): return weight * ({name} == 'A')") == [2.0, 0.0]


def test_own_reward_gets_columns_and_state(own):
    assert own("def mine(trajectory, level, meta, prompt): return level + meta['level'] + len(prompt)", level=3) == [
        8.0,
        8.0,
    ]
    assert own("def mine(run, question): return run.step", run=SimpleNamespace(step=4)) == [4.0, 4.0]
    assert own("def mine(solution): return solution == 'worked'", solution="worked") == [1.0, 1.0]
    assert own("def mine(reply, /, level): return len(reply) * level", level=3) == [3.0, 6.0]


def test_own_reward_in_the_manner_of_trl_and_verl(own):
    trl = "def mine(completions, answer, **columns): return [len(c) * n for c, n in zip(completions, columns['level'])]"
    assert own(trl, level=10) == [10.0, 20.0]
    verl = "def mine(data_source, solution_str, ground_truth, extra_info=None): return {'score': extra_info['level']}"
    assert own(verl, level=3) == [3.0, 3.0]


def test_own_reward_may_give_bools_and_no_verdict(own):
    assert own("def mine(reply): return True if reply == 'a' else None") == [1.0, None]
    assert own("import numpy as np\ndef mine(replies): return np.array([0.5, 1])") == [0.5, 1.0]


@pytest.mark.parametrize(
    ("code", "says"),
    [
        (
            "def mine(reply):\n    x = 1\n    return {}[reply]",
            r"reward mine of .*\.py, line 3: KeyError: 'a' \(rollout 0 of group 0\)",
        ),
        ("def mine(replies):\n    return 1 / 0", "line 2: ZeroDivisionError.*2 rollouts at once"),
        ("def mine(replies): return [1]", "1 rewards for 2 rollouts"),
        ("def mine(replies): return 1.0", "must return a list"),
        ("def mine(reply): return 'good'", "returned 'good', not a number"),
        ("def mine(reply): return {'points': 1}", "not a number"),
        ("def mine(repli): return 1", "did you mean .*reply"),
        ("def mime(reply): return 1", "did you mean mime"),
        ("def mine(reply) return 1", "cannot import .*line 1: SyntaxError"),
        ("import os\nimport no_such_thing", "cannot import .*line 2: ModuleNotFoundError"),
    ],
)
def test_what_goes_wrong_in_a_reward_of_ones_own_is_placed(own, code, says):
    with pytest.raises(RewardlabError, match=says):
        own(code)


def test_a_missing_reward_file_names_the_nearest(tmp_path):
    (tmp_path / "rewards.py").write_text("def mine(reply): return 1")
    with pytest.raises(RewardlabError, match=r"no reward file .*reward\.py; did you mean rewards\.py"):
        judge(from_file(path=str(tmp_path / "reward.py"), function="mine"), "a")


def test_an_edited_reward_file_is_read_again(tmp_path):
    path = tmp_path / "r.py"
    part = from_file(path=str(path), function="mine")
    for value in (1.0, 2.0):
        path.write_text(f"def mine(reply): return {value}")
        stamp = path.stat().st_mtime_ns + int(value) * 10**9
        os.utime(path, ns=(stamp, stamp))
        assert judge(part, "a").value == value


DENIED = [
    "The answer is not 42.",
    "The answer isn't 42.",
    "It is not 42",
    "42 is not the answer",
    "it is not $42$",
    "$42$ is wrong.",
]
NOT_DENIED = ["3 is not enough, so 42", "It cannot be 7, hence 42.", "The answer is 42, which is not prime."]


@pytest.mark.parametrize("reply", DENIED)
def test_an_answer_that_is_denied_is_none(reply):
    assert [part().check(reply, "42").correct for part in (final_number, math)] == [False, False]


@pytest.mark.parametrize("reply", NOT_DENIED)
def test_a_denial_of_something_else_does_not_count(reply):
    assert [part().check(reply, "42").correct for part in (final_number, math)] == [True, True]


@pytest.mark.parametrize(
    ("said", "share"),
    [
        ("7+5=12\n12*3=36\nAnswer: 36", 1.0),
        ("7+5=12\n12*3=35\nAnswer: 35", 1 / 3),
        # what is right after a wrong line is not reached
        ("7+5=13\n12*3=36\nAnswer: 36", 0.0),
        ("7+5=12\n12-5=7\n12*3=36\nAnswer: 35", 2 / 3),
        ("", 0.0),
    ],
)
def test_leading_steps_are_those_before_the_first_wrong_line(said, share):
    problem = {"steps": ["7+5=12", "12*3=36"]}
    score = judge(leading_steps(), said, answer="36", **problem)
    assert score.value == pytest.approx(share)


@pytest.mark.parametrize(
    ("text", "share"),
    [
        ("<think>a</think> <answer>4</answer>", 1.0),
        ("<think>a</think> 4", 0.5),
        ("<answer>4</answer>", 0.5),
        # out of order, one inside the other, opened twice, empty, not closed
        ("<answer>4</answer><think>a</think>", 0.5),
        ("<think>a<answer>4</answer></think>", 0.5),
        ("<think>a<think>b</think><answer>4</answer>", 0.5),
        ("<think> </think><answer>4</answer>", 0.5),
        ("<think>a<answer>4", 0.0),
        ("", 0.0),
    ],
)
def test_tags_count_where_they_enclose_something_once_and_in_order(text, share):
    assert judge(tagged(), text).value == share


def test_repetition_counts_n_grams_that_come_more_often_than_allowed():
    # 24 tokens, 23 pairs: "ab" 12 times, "ba" 11: 2 frequent of 23, and 12 of the 12 that fit side by side
    assert judge(repetition(n=2), "ab" * 12).value == pytest.approx(-1.0)
    text = "".join(f"xy{chr(1000 + 2 * i)}{chr(1001 + 2 * i)}" for i in range(6))
    # "xy" 6 times of 23 pairs, of 24 tokens: max(1/23, 6 * 2 / 24)
    assert judge(repetition(n=2), text).value == pytest.approx(-0.5)
    assert judge(repetition(n=2, often=6), text).value == 0.0
    # many frequent n-grams weigh more than the most frequent of them: 3 of 17 pairs, against 2 * 2 / 18
    assert judge(repetition(n=2, often=1), "abcdabcd" + "efghijklmn").value == pytest.approx(-max(3 / 17, 4 / 18))
    assert judge(repetition(), "abc").value == judge(repetition(), "").value == 0.0


def test_what_operators_read_of_a_reply():
    whole = attempt("abc")
    cut = Trajectory(whole.problem, whole.turns, "length")
    assert [s.value for s in tokens()([[whole, cut]])[0]] == [3.0, 3.0]
    assert [s.value for s in cut_off()([[whole, cut]])[0]] == [0.0, 1.0]
