"""CompassVerifier: cases made of others, judgements as they are read, and VerifierBench's numbers and file."""

from __future__ import annotations

import json
import random
from collections import Counter

import numpy as np
import pytest
from rows import Replies

from rewardlab import registry
from rewardlab.core import Run, Trajectory, Turn, ask
from rewardlab.errors import RewardlabError
from rewardlab.methods.verifiers.compassverifier import EQUIVALENT, ERRORS, INVALID, augmented, f1_by_class, judgment_f1, varied
from rewardlab.text.judgments import read_judgment
from rewardlab.verifiers.match import final_answer
from rewardlab.verifiers.math import verifier as math_verifier
from rewardlab.worlds.judgments import Case, case_of, judged_right, stated, to_judge

NUMBER = Case("What is 5+7?", "12", "5+7=12\nAnswer: 12", "A")
PARTS = Case("What are they?", "3, 5", "Worked out.\nAnswer: 3, 5", "A")
RNG = random.Random


@pytest.mark.parametrize(
    ("text", "judgment"),
    [
        ("A", "A"),
        (" B\n", "B"),
        (r"1. Valid.\n2. A match.\nFinal Judgment: \boxed{C} - REFUSAL", "C"),
        (r"\boxed{A}, no: \boxed{B}", "B"),
        ("A good reply. Final Judgment: (B)", "B"),
        ("12 | 12.0 | A", "A"),
        # the released reading takes any capital: it finds a C in CORRECT
        ("CORRECT", None),
        ("", None),
    ],
)
def test_judgements_are_read_as_they_are_written(text, judgment):
    assert read_judgment(text) == judgment


# ---- augmentation -----------------------------------------------------------------------------------------------------


def test_equivalent_formulas_are_equal_and_errors_are_not():
    """By a verifier that compares values, and sets where order does not count: the catalogue is checked, not believed."""
    equal = math_verifier.math(find="whole")
    for seed in range(20):
        for name, form in EQUIVALENT.items():
            if (text := form("12", RNG(seed))) is not None:
                assert text != "12"
                assert equal.check(text, "12").correct is True, name
        for name, form in ERRORS.items():
            if (text := form("12", RNG(seed))) is not None:
                assert equal.check(text, "12").correct is False, name
            if (text := form("3, 5", RNG(seed))) is not None:
                assert sorted(text.split(", ")) != ["3", "5"], name
    assert {text for f in EQUIVALENT.values() if (text := f("3, 5", RNG(0)))} == {"5, 3", "3 and 5", "$3, 5$"}


@pytest.mark.parametrize("n", ["0", "5", "11", "-7"])
def test_a_near_miss_is_another_number_whatever_the_number(n):
    assert all(ERRORS["near miss"](n, RNG(seed)) != n for seed in range(50))


def test_forms_that_do_not_fit_an_answer_are_not_made_of_it():
    assert all(form("Paris", RNG(0)) is None for name, form in EQUIVALENT.items() if name != "dollars")
    assert all(form("Paris", RNG(0)) is None for form in ERRORS.values())
    assert ERRORS["wrong part"]("Paris, Rome", RNG(0)) is None


def test_what_is_no_answer_has_none_or_does_not_end():
    cut, refused = (INVALID[name](NUMBER, RNG(1)) for name in ("cut off", "refused"))
    assert NUMBER.response.startswith(cut.response)
    assert "Answer" not in cut.response + refused.response
    repeated = INVALID["repeated"](NUMBER, RNG(1)).response
    assert repeated.count("Answer: 12") >= 4
    assert all(INVALID[name](NUMBER, RNG(1)).judgment == "C" for name in INVALID)


def test_new_cases_keep_question_and_gold_and_are_judged_by_how_they_were_made():
    made = [augmented(case, RNG(seed)) for case in (NUMBER, PARTS) for seed in range(300)]
    assert {(c.question, c.gold) for c in made} == {(NUMBER.question, "12"), (PARTS.question, "3, 5")}
    counts = Counter(c.judgment for c in made)
    assert min(counts[j] for j in "ABC") > 150
    # a wrong case can become another wrong or an invalid one, and never right
    wrong = Case("What is 5+7?", "12", "5+7=13\nAnswer: 13", "B")
    assert {augmented(wrong, RNG(seed)).judgment for seed in range(100)} == {"B", "C"}
    # what is no answer stays as it is, and so does a reply whose answer cannot be found
    assert augmented(Case("?", "12", "I do not know.", "C"), RNG(0)) == Case("?", "12", "I do not know.", "C")
    unmarked = Case("?", "12", "twelve", "A")
    assert all(augmented(unmarked, RNG(s)).judgment in ("A", "C") for s in range(30))


def test_a_share_of_the_training_cases_is_replaced():
    problems = [to_judge(NUMBER)] * 400
    assert varied(problems, RNG(0), 0.0) == problems
    changed = sum(a != b for a, b in zip(varied(problems, RNG(0), 0.5), problems, strict=True))
    assert 150 < changed < 250
    assert varied(problems, RNG(0), 0.5) == varied(problems, RNG(0), 0.5)
    # the verifier's text follows the new case
    for p in varied(problems, RNG(0), 1.0):
        assert p.meta["solution"].endswith(p.meta["gold_judgment"])
        assert case_of(p).judgment == p.answer


# ---- VerifierBench ----------------------------------------------------------------------------------------------------


def test_f1_by_hand():
    gold, said = list("AAAABBBCC"), ["A", "A", "B", None, "B", "A", "C", "C", "B"]
    # A: 2 of 4 found, 3 said: 4/7;  B: 1 of 3, 3 said: 2/6;  C: 1 of 2, 2 said: 2/4
    assert f1_by_class(gold, said) == {"A": pytest.approx(4 / 7), "B": pytest.approx(1 / 3), "C": 0.5}
    assert f1_by_class(["A"], ["A"]) == {"A": 1.0, "B": 0.0, "C": 0.0}
    assert f1_by_class(["B"], [None]) == dict.fromkeys("ABC", 0.0)


def test_a_model_and_a_rule_are_measured_on_the_same_cases():
    cases = [
        NUMBER,
        Case("?", "12", "Answer: 24/2 apples", "A"),
        Case("?", "12", "Answer: 13", "B"),
        Case("?", "12", "Answer: 12\nAnswer: 12\nAnswer: 12", "C"),
    ]
    policy = Replies(["12 | 12 | A", "12 | 24/2 | A", "12 | 13 | B", "A"])
    found = judgment_f1(rule=final_answer())([to_judge(c) for c in cases], Run(policy))
    assert found["accuracy"] == 0.75
    # A: 2 of 2, 3 said: 4/5;  B: 1;  C: 0
    assert found["macro_f1"] == pytest.approx((0.8 + 1 + 0) / 3)
    assert found["unread"] == 0
    # the rule never says C
    assert found["rule.f1_C"] == 0
    assert found["rule.accuracy"] <= 0.75


ROWS = [
    {"question": f"What is {i}+1?", "gold_answer": f"{i + 1}", "llm_response": f"So \\boxed{{{i + 1 + (i % 3)}}}.",
     "gold_judgment": "A" if i % 3 == 0 else "B", "answer_type": "number"}
    for i in range(60)
]  # fmt: skip


def test_a_file_in_its_format_is_a_task(tmp_path):
    path = tmp_path / "bench.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    task = registry.task(f"judgments:path={path}")
    assert len(task.train) + len(task.test) == 60
    problem = task.train[0]
    assert problem.meta["gold_judgment"] == problem.answer
    assert problem.question.startswith(problem.meta["question"] + "\nGold: ")
    # the boxed answer of the reply is repeated beside the gold one
    gold, said, letter = problem.meta["solution"].split(" | ")
    assert (gold == said) == (letter == "A")
    own = registry.task("judgments", path=str(path), test=str(path))
    assert len(own.test) == len(own.train) == 60


@pytest.mark.parametrize(
    ("row", "says"),
    [
        ({**ROWS[0], "gold_judgment": "D"}, r"line 2: gold_judgment is 'D'"),
        ({k: v for k, v in ROWS[0].items() if k != "gold_answer"}, r"line 2: no text in gold_answer"),
    ],
)
def test_a_row_that_is_no_case_is_named(tmp_path, row, says):
    path = tmp_path / "bench.jsonl"
    path.write_text(json.dumps(ROWS[0]) + "\n" + json.dumps(row))
    with pytest.raises(RewardlabError, match=says):
        registry.task(f"judgments:path={path}")


def test_too_few_cases_to_hold_any_out_are_refused(tmp_path):
    path = tmp_path / "bench.jsonl"
    path.write_text(json.dumps(ROWS[0]))
    with pytest.raises(RewardlabError, match="too few"):
        registry.task(f"judgments:path={path}")


# ---- as a reward ------------------------------------------------------------------------------------------------------


class Verifier(Replies):
    context = 1000

    def read(self, trajectories, messages):
        self.asked = [m[0].text for m in messages]
        return list(trajectories)


def test_its_judgement_pays_a_right_reply_alone():
    verifier = Verifier(["12 | 12 | A", "12 | 13 | B", "12 | none | C", "hm"])
    run = Run(None, models={"verifier": verifier})
    turns = [Turn("policy", np.zeros(1, np.int64), text=f"Answer: {x}") for x in ("12", "13", "", "?", "12")]
    group = [Trajectory(ask("What is 5+7?", "12" if i < 4 else None), (t,), "end") for i, t in enumerate(turns)]
    scores = judged_right()([group], run)[0]
    assert [s.value for s in scores] == [1.0, 0.0, 0.0, None, None]
    assert [s.terms["judged_right.invalid"].value for s in scores[:3]] == [0.0, 0.0, 1.0]
    assert verifier.asked[0] == "What is 5+7?\nGold: 12\nReply: Answer: 12"


def test_held_out_cases_are_harder_than_those_of_training():
    task = registry.task("judgments", test_size=300)
    forms = [p.meta["llm_response"].rpartition("Answer: ")[2] for p in task.test if p.answer == "A"]
    assert sum(not form.replace(", ", "").isdigit() for form in forms) > 0.7 * len(forms)
    assert min(Counter(p.answer for p in task.test).values()) > 70
    plain = [task.train[i] for i in range(300)]
    assert all(p.meta["llm_response"].rpartition("Answer: ")[2] == p.meta["gold_answer"] for p in plain if p.answer == "A")


# ---- answers in boxes, and tests that no augmentation makes -----------------------------------------------------------


def test_the_catalogue_fires_on_boxed_answers_and_latex():
    """From one right boxed reply come right, wrong and invalid ones; the box stays, and what is in it is judged by a verifier."""
    equal = math_verifier.math(find="whole")
    for gold in ("12", r"\frac{1}{2}"):
        case = Case("?", gold, rf"Thus $x=\boxed{{{gold}}}$.", "A")
        made = [augmented(case, RNG(seed)) for seed in range(200)]
        assert {c.judgment for c in made} == {"A", "B", "C"}
        forms = {(c.judgment, stated(c.response).strip("$")) for c in made if c.judgment in ("A", "B")}
        assert len({text for _, text in forms}) > 6
        assert all(equal.check(text, gold).correct is (judgment == "A") for judgment, text in forms)
        # no reply without an answer still states it once, and then ends
        assert all(c.response.count("boxed") != 1 for c in made if c.judgment == "C")


def test_a_box_is_found_before_what_follows_a_word():
    reply = r"The answer is below. \boxed{3} is a part, and \boxed{7} the whole; the answer: see above"
    assert stated(reply) == "7"
    assert stated(r"\boxed{ 12 }") == "12"
    assert stated("no") is None


def test_no_held_out_answer_is_of_a_form_that_the_augmentation_writes():
    """Of each held-out case, against all that the augmentation makes of the plain replies to its question, right and wrong."""
    task = registry.task("judgments", test_size=150)
    for problem in task.test:
        case = case_of(problem)
        plain = Case(case.question, case.gold, f"Worked out.\nAnswer: {case.gold}", "A")
        written = {augmented(plain, RNG(seed)).response.splitlines()[-1] for seed in range(60)}
        assert case.response.splitlines()[-1] not in written, case
    assert Counter(p.answer for p in task.test).keys() == {"A", "B", "C"}


def test_held_out_judgements_are_those_of_a_verifier_of_values():
    equal = math_verifier.math(find="whole")
    for problem in registry.task("judgments", test_size=200).test:
        case = case_of(problem)
        if case.judgment != "C" and "," not in case.gold:
            value = stated(case.response).strip("()").lstrip("+0") or "0"
            assert equal.check(value, case.gold).correct is (case.judgment == "A"), case
