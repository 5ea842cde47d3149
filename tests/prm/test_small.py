"""The small scorer of a task: what it learns from, and how it is named."""

import pytest

from rewardlab import registry
from rewardlab.errors import RewardlabError
from rewardlab.prm import load_scorer, small


@pytest.fixture
def problem():
    return registry.task("arithmetic").train[0]


def test_a_solution_is_labelled_step_by_step(problem):
    steps, answer = problem.meta["steps"], problem.answer
    right = small._labelled(problem, "\n".join([*steps, f"Answer: {answer}"]), 1.0)
    assert right.steps == (*steps, f"Answer: {answer}")
    assert (right.labels, right.right, right.first_error) == ((1.0,) * len(right.steps), True, None)
    wrong = small._labelled(problem, "\n".join([steps[0], "1+1=3", "Answer: 3"]), 0.0)
    assert (wrong.labels[0], wrong.first_error, wrong.right) == (1.0, 1, False)
    # an empty reply has one step, which says nothing
    assert small._labelled(problem, "", 0.0).labels == (0.0,)


def test_a_task_without_steps_to_check_has_no_small_scorer():
    with pytest.raises(RewardlabError, match="there is no small scorer for the task"):
        load_scorer("prm:embedded:triplets")


@pytest.mark.slow
def test_a_small_scorer_is_trained_once_and_found_by_name(monkeypatch):
    monkeypatch.setattr(small, "SOLUTIONS", 64)
    monkeypatch.setattr(small, "STEPS", 3)
    scorer = load_scorer("prm:embedded:arithmetic", "cpu")
    (chances,) = scorer.score([("Start with 7. Add 5.", ("7+5=12", "Answer: 12"))])
    assert len(chances) == 2
    assert all(0 < chance < 1 for chance in chances)

    def never(*_):
        raise AssertionError("it was trained before")

    monkeypatch.setattr(small, "_make", never)
    assert load_scorer("prm:embedded:arithmetic", "cpu").convention == "implicit"
