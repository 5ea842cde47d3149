"""Rows of solutions in steps: read, written, refused with their place."""

import pytest

from rewardlab.data.solutions import Solution, row_of, solution_of
from rewardlab.errors import RewardlabError


def test_a_row_is_read_and_written_back():
    row = {"prompt": "2+3?", "steps": ["2+3=5", "Answer: 6"], "labels": [True, None], "right": False, "answer": 5, "by": "judge"}
    solution = solution_of(row)
    assert solution == Solution("2+3?", ("2+3=5", "Answer: 6"), (1.0, None), False, "5", {"by": "judge"})
    assert row_of(solution) == {**row, "labels": [1.0, None], "answer": "5"}


def test_the_first_error_passes_over_steps_that_nobody_judged():
    assert Solution("", ("a", "b", "c"), (1.0, None, 0.25)).first_error == 2
    assert Solution("", ("a", "b"), (0.5, None)).first_error is None


def test_labels_may_be_missing_altogether():
    assert solution_of({"prompt": "p", "steps": ["a", "b"]}).labels == (None, None)


@pytest.mark.parametrize(
    ("row", "says"),
    [
        ({"steps": ["a"]}, "`prompt`"),
        ({"prompt": "p", "steps": "a"}, "`steps`"),
        ({"prompt": "p", "steps": []}, "`steps`"),
        ({"prompt": "p", "steps": ["a"], "labels": [1, 0]}, "1 steps need as many `labels`"),
        ({"prompt": "p", "steps": ["a"], "labels": [float("nan")]}, "from 0 to 1"),
        ({"prompt": "p", "steps": ["a"], "labels": ["+"]}, "from 0 to 1"),
        ({"prompt": "p", "steps": ["a"], "labels": [1], "right": "yes"}, "`right`"),
    ],
)
def test_a_broken_row_is_refused_with_its_place(row, says):
    with pytest.raises(RewardlabError, match="line 7: ") as error:
        solution_of(row, "line 7")
    assert says in str(error.value)
