"""Held-out labelled solutions: which of several to a question is chosen, and what a solution is worth."""

from __future__ import annotations

import pytest

from rewardlab.core import ask
from rewardlab.evals.labelled import chosen_among, labelled_steps
from rewardlab.models.embedded import untrained
from rewardlab.rollouts.labelled import labelled


def test_the_chosen_of_each_question_and_what_a_random_choice_gets():
    told = (("a", True), ("b", False), ("a", False), ("b", True), ("a", False), ("c", True), ("d", None))
    # a: the right one is worth most; b: the wrong one; c has one solution, d none that is known
    found = chosen_among(told, [0.9, 0.8, 0.1, 0.2, 0.3, 0.0, 0.0])
    assert (found["chosen"], found["questions"], found["best"]) == (0.5, 2, 1.0)
    assert found["random"] == pytest.approx((1 / 3 + 1 / 2) / 2)
    assert found["by_auc"] == pytest.approx((1.0 + 0.0) / 2)


def test_solutions_that_are_worth_the_same_are_chosen_alike():
    told = [("a", True), ("a", False), ("a", False), ("a", False)]
    assert chosen_among(told, [0.5, 0.5, 0.5, 0.1])["chosen"] == pytest.approx(1 / 3)


def test_questions_that_are_all_right_have_no_order():
    found = chosen_among([("a", True), ("a", True)], [0.1, 0.9])
    assert found["chosen"] == 1.0
    assert "by_auc" not in found


def test_nothing_is_said_of_single_solutions():
    assert chosen_among([("a", True), ("b", False)], [0.1, 0.9]) == {}


class Run:
    """A policy, its own start as the reference, and a head that has learnt nothing."""

    def __init__(self):
        self.policy = untrained()

    def model(self, name):
        return self.policy if name == "reference" else self.policy.copy("prm", value_head=True)


@pytest.mark.parametrize("kind", ["head", "implicit", "outcome-ratio"])
def test_what_has_learnt_nothing_is_at_chance(kind):
    problems = [
        ask("Start with 7. Add 5.", "12", steps=["7+5=12", "Answer: 12"], labels=[1, 1], right=True),
        ask("Start with 7. Add 5.", "12", steps=["7+5=13", "Answer: 13"], labels=[0, 0], right=False),
    ]
    found = labelled_steps(rollout=labelled(), kind=kind)(problems, Run())
    assert (found["chosen"], found["random"], found["by_auc"], found["step_auc"]) == (0.5, 0.5, 0.5, 0.5)


def test_rows_with_verdicts_alone_are_measured_by_them():
    rows = [
        ask("Start with 7. Add 5.", "12", steps=["7+5=12", "Answer: 12"], right="true"),
        ask("Start with 7. Add 5.", "12", steps=["7+5=13", "Answer: 13"], right="false"),
    ]
    found = labelled_steps(rollout=labelled())(rows, Run())
    # the last step of each, a right and a wrong one, by a head that has learnt nothing; texts are read as what they say
    assert (found["n"], found["step_auc"], found["random"]) == (2, 0.5, 0.5)
    assert "first_error_f1" not in found
