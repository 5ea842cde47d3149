"""ACRE: how options are shuffled, what the policy reads when it answers again, and what both answers are paid."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest
import torch

from rewardlab import build
from rewardlab.core import Message, Problem, Run, Trajectory, Turn, ask
from rewardlab.engine.collate import collate
from rewardlab.methods.shaping.acre import answered_again, options_asked, reordered
from rewardlab.verifiers.choice.verifier import choice

PLANETS = "Which is the largest?\nA. Mars\nB. Jupiter\nC. Venus\nThink, then write: Answer: letter"
ROW = ask(PLANETS, "B", options=["Mars", "Jupiter", "Venus"])


class Scripted:
    """A policy that answers what `says` gives it for a question and the beginning of a reply."""

    context = 1000

    def __init__(self, says):
        self.says, self.asked = says, []

    def read(self, trajectories, messages):
        return [t.plus(Turn(None, np.zeros(3, np.int64))) for t in trajectories]

    def write(self, trajectories, texts):
        ids = [np.array([*map(ord, text), 0], np.int64) for text in texts]
        return [t.plus(Turn("policy", x, text=text), "end") for t, x, text in zip(trajectories, ids, texts, strict=True)]

    def decode(self, ids):
        return "".join(map(chr, ids))

    def extend(self, trajectories, sampling, rng):
        self.asked += [(t.problem.question, t.reply) for t in trajectories]
        texts = [self.says(t.problem.question, t.reply) for t in trajectories]
        return [t.plus(Turn("policy", np.zeros(1, np.int64), text=x), "end") for t, x in zip(trajectories, texts, strict=True)]


def by_name(question: str, begun: str) -> str:
    """Where the reasoning names a planet, its letter in this question; else A."""
    name = next((x for x in ("Mars", "Jupiter", "Venus") if x in begun), None)
    return " " + next((line[0] for line in question.splitlines() if name and line[3:] == name), "A")


def replies(problem: Problem, texts) -> list[Trajectory]:
    return [Trajectory(problem, (Turn("policy", np.zeros(len(x), np.int64), text=x),), "end") for x in texts]


def paid(problem: Problem, texts, says=by_name, **settings):
    run = Run(Scripted(says), verify=choice())
    return [s.value for s in answered_again(**settings)([replies(problem, texts)], run)[0]], run


def order(seed: int, problem: Problem = ROW):
    return reordered(problem, random.Random(seed))


@pytest.mark.parametrize("seed", range(8))
def test_every_option_gets_another_letter_and_the_gold_answer_moves_with_it(seed):
    found = order(seed)
    lines = found.problem.question.splitlines()
    assert lines[0] == "Which is the largest?"
    assert lines[4] == "Think, then write: Answer: letter"
    texts = {line[0]: line[3:] for line in lines[1:4]}
    assert sorted(texts.values()) == ["Jupiter", "Mars", "Venus"]
    assert texts == found.problem.meta["options"]
    assert all(texts[letter] != text for letter, text in found.options.items())
    assert texts[found.problem.answer] == "Jupiter"


@pytest.mark.parametrize(
    ("answer", "moved"),
    [("B", "A"), ("(b)", "A"), ("B. Jupiter", "A"), ("Jupiter", "Jupiter"), (1, 0), (["A", "B"], ["B", "A"]), ("AB", "AB")],
)
def test_gold_answers_in_all_forms_move(answer, moved):
    # with two options there is one other order
    row = ask("Which?\nA. Mars\nB. Jupiter", answer)
    assert order(0, row).problem.answer == moved


def test_a_gold_answer_with_its_own_options_moves_too():
    row = ask("Which? (A) Mars (B) Jupiter", {"answer": "A", "options": ["Mars", "Jupiter"]})
    found = order(0, row).problem
    assert found.question == "Which? (A) Jupiter (B) Mars"
    assert found.answer == {"answer": "B", "options": {"A": "Jupiter", "B": "Mars"}}


def test_letters_may_stand_behind_their_options_and_a_text_in_the_question_is_left():
    row = ask("A dog has brin.\nbrin A\ndask B", "A", options=["brin", "dask"])
    assert order(0, row).problem.question == "A dog has brin.\ndask A\nbrin B"
    row = ask("A dog or a cat?\nA. dog\nB. cat", "A")
    assert order(0, row).problem.question == "A dog or a cat?\nA. cat\nB. dog"


def test_pictures_and_other_messages_stay():
    picture = np.zeros((2, 2, 3), np.uint8)
    prompt = (Message("system", "Be brief."), Message("user", f"<image> {PLANETS}", images=(picture,)))
    found = order(0, Problem(prompt, "B")).problem
    assert found.prompt[0] == prompt[0]
    assert found.prompt[1].images[0] is picture
    assert found.prompt[1].text.startswith("<image> Which")
    assert found.prompt[1].text != PLANETS


@pytest.mark.parametrize(
    "row",
    [
        ask("What is 2 + 3?", "5"),
        ask("Which?\nA. x > 0\nB. x < 9\nC. A and B", "C"),
        ask("Which?\nA. Mars\nB. none of the above", "A"),
        ask("Which?\nA. Mars\nB. Jupiter", "Saturn"),
        ask("Which one?", "A", options=["Mars", "Jupiter"]),
        ask("Which one?", "A", options="a text"),
    ],
)
def test_what_cannot_be_shuffled_is_left(row):
    assert order(0, row) is None


def test_where_nothing_can_be_shuffled_the_first_answer_alone_is_paid():
    values, run = paid(ask("Which?\nA. x > 0\nB. x < 9\nC. A and B", "C"), ["Answer: A", "Answer: C"])
    assert values == [0.0, 0.0]
    assert not run.policy.asked


def test_none_of_the_above_keeps_its_place():
    row = ask("Which?\nA. Mars\nB. Jupiter\nC. None of the above", "C")
    found = order(0, row).problem
    assert found.question == "Which?\nA. Jupiter\nB. Mars\nC. None of the above"
    assert found.answer == "C"


def test_options_come_from_their_column_first():
    assert options_asked(ask("Which?\nA. x\nB. y", "A", choices={"A": "p", "B": "q"})) == {"A": "p", "B": "q"}
    assert options_asked(ask("Which?\nA. x\nB. y", "A")) == {"A": "x", "B": "y"}


FOUR = [
    "Jupiter is the largest.\nAnswer: B",  # right, and again: the tier 1
    "Mars is red.\nAnswer: B",  # right, its reasoning leads to Mars: 1/2
    "Jupiter is the largest.\nAnswer: C",  # wrong, its reasoning leads to the right one: 1/2
    "Venus is near.\nAnswer: C",  # wrong both times: 0
]


def test_both_answers_make_the_tier_and_the_advantage():
    recipe, run = build("acre"), Run(Scripted(by_name), verify=choice())
    group = replies(ROW, FOUR)
    scores = recipe.reward([group], run)
    assert [s.value for s in scores[0]] == [1.0, 0.5, 0.5, 0.0]
    assert [s.terms["answered_again"].value for s in scores[0]] == [0.0, -0.5, 0.5, 0.0]
    batch = collate([group], scores, torch.device("cpu"))
    # mean 1/2, and the deviation of 1, 1/2, 1/2, 0 is sqrt(1/6) = .40825; the last decision of each row
    credit = recipe.credit(batch.reward, batch, run)
    assert [round(float(x), 3) for x in credit[:, 0]] == [1.224, 0.0, 0.0, -1.224]
    assert run.metrics["asked_again"] == 1.0
    assert run.metrics["right_again"] == 0.5
    # the first and the last choose the same option both times
    assert run.metrics["same_option"] == 0.5
    unlike = build("acre", {"first": 0.25, "second": 0.0}).reward([group], run)
    assert [s.value for s in unlike[0]] == [1.0, 0.25, 0.0, 0.0]


def test_all_right_and_consistent_is_paid_as_by_grpo_alone():
    assert paid(ROW, [FOUR[0]] * 3)[0] == [0.0] * 3
    # equal reasonings about one problem are asked once
    assert len(paid(ROW, [FOUR[0]] * 3)[1].policy.asked) == 1


def test_the_policy_reads_the_shuffled_question_and_its_reasoning_without_the_answer():
    (question, begun), *_ = paid(ROW, FOUR[:1])[1].policy.asked
    assert begun == "Jupiter is the largest.\nAnswer:"
    assert question != PLANETS
    assert sorted(question) == sorted(PLANETS)
    thinking = "<think>\nJupiter. So (B).\n</think>\nThe answer is **B**."
    assert paid(ROW, [thinking])[1].policy.asked[0][1] == "<think>\nJupiter. So (B).\n</think>\nAnswer:"
    tagged = "<think>Jupiter is the largest.</think> <answer>B</answer>"
    values, run = paid(ROW, [tagged])
    assert run.policy.asked[0][1] == "<think>Jupiter is the largest.</think> <answer>"
    assert values == [0.0]
    assert run.metrics["right_again"] == 1.0


def test_a_letter_in_the_reasoning_is_of_the_first_order_and_does_not_contradict_the_second_answer():
    values, run = paid(ROW, ["Jupiter is the largest. The answer is B, I think.\nAnswer: B"])
    assert values == [0.0]
    assert run.metrics["same_option"] == 1.0


def test_who_copies_the_letter_is_found_out_only_where_options_are_shuffled():
    def copies(question, begun):
        return " B"

    assert paid(ROW, ["Answer: B"], copies)[0] == [-0.5]
    assert paid(ROW, ["Answer: B"], copies, shuffle=False)[0] == [0.0]


def test_without_an_answer_or_a_verdict_nothing_is_asked():
    values, run = paid(ROW, ["Jupiter is the largest, I"])
    assert values == [0.0]
    assert not run.policy.asked
    assert run.metrics["asked_again"] == 0.0
    assert paid(replace(ROW, answer="D. Saturn"), ["Answer: B"])[0] == [None]


def test_a_context_without_room_is_no_fault_of_the_reply():
    run = Run(Scripted(by_name), verify=choice())
    run.policy.context = 10
    assert answered_again()([replies(ROW, FOUR)], run)[0][1].value == 0.0
