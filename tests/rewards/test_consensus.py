"""Labels of the replies on which annotators agree where the first error is."""

from __future__ import annotations

from dataclasses import replace

import pytest
from rows import row_of

from rewardlab.core import Run, Score
from rewardlab.errors import RewardlabError
from rewardlab.rewards.consensus import KEPT, consensus_steps
from rewardlab.rewards.reward import reward


def says(*steps, why=""):
    """An annotator of the steps at positions 1, 2, 3; None: it says nothing of that step."""

    @reward(steps=True)
    def told(trajectory):
        known = [(at, x) for at, x in zip((1, 2, 3), steps, strict=False) if x is not None]
        return known or Score(None, why=why)

    return told()


def agreed(*inner, **settings):
    t, run = replace(row_of("rddd"), steps=(1, 2, 3)), Run(None)
    ((score,),) = consensus_steps(inner=inner, **settings)([[t]], run)
    assert run.metrics[KEPT] == float(not score.missing)
    return score


@pytest.mark.parametrize(
    ("first", "second", "labels"),
    [
        # shares of right continuations: any right one is enough; the judge says nothing of the steps after an error
        ((1.0, 0.125, 0.0), (1.0, 1.0, 0.0), [1.0, 1.0, 0.0]),
        ((1.0, 0.0, 0.0), (1.0, 0.0, None), [1.0, 0.0]),
        # a step after the first error may be reached again by luck, and has no label
        ((1.0, 0.0, 0.5), (1.0, 0.0, None), [1.0, 0.0]),
        ((0.0, 0.0, 0.0), (0.0, None, None), [0.0]),
        # neither finds an error
        ((0.5, 0.5, 1.0), (1.0, 1.0, 1.0), [1.0, 1.0, 1.0]),
        # each an error elsewhere; the one none, the other one; the one late
        ((1.0, 0.0, 0.0), (0.0, None, None), None),
        ((1.0, 1.0, 1.0), (1.0, 1.0, 0.0), None),
        ((1.0, 1.0, 0.0), (1.0, 1.0, 1.0), None),
        # silent on a step before the error, where it may be, and after it, which says nothing about it
        ((None, 0.0, 0.0), (1.0, 0.0, None), None),
        ((1.0, 0.0, None), (1.0, 0.0, 1.0), [1.0, 0.0]),
        ((1.0, 1.0, None), (1.0, 1.0, 1.0), None),
        ((None, None, None), (1.0, 1.0, 1.0), None),
    ],
)
def test_labels_are_those_up_to_the_error_that_both_name(first, second, labels):
    for inner in ((says(*first), says(*second)), (says(*second), says(*first))):
        score = agreed(*inner)
        assert score.missing == (labels is None)
        assert score.steps == tuple(zip((1, 2, 3), labels or (), strict=False))


def test_the_share_up_to_which_a_step_is_wrong():
    share = says(0.75, 0.25, 0.0)
    assert agreed(share).steps == ((1, 1.0), (2, 1.0), (3, 0.0))
    assert agreed(share, at=0.25).steps == ((1, 1.0), (2, 0.0))
    assert agreed(share, says(1.0, 0.0), at=0.25, hard=False).steps == ((1, 0.75), (2, 0.25))
    assert agreed(share, says(1.0, 0.0)).missing


def test_all_of_three_must_agree():
    right, wrong = says(1.0, 1.0, 1.0), says(1.0, 0.0)
    assert len(agreed(right, right, right).steps) == 3
    assert agreed(right, right, wrong).missing


def test_why_there_is_no_verdict():
    assert agreed(says(1.0, 0.0), says(1.0, 1.0, 1.0)).why == "the annotators disagree on the first wrong step: step 2, none"
    down = agreed(says(1.0, 1.0, 1.0), says(why="the judge gave no verdict that can be read"))
    assert down.why == "annotator 2 of 2 does not say where the first error is: the judge gave no verdict that can be read"


def test_the_share_kept_is_of_all_replies():
    @reward(steps=True)
    def by_length(trajectory):
        return [(at, float(len(trajectory) < 5 or at < 3)) for at in trajectory.steps]

    rows = [
        replace(row_of("rddd"), steps=(1, 2, 3)),
        replace(row_of("rdddd"), steps=(1, 2, 3, 4)),
        replace(row_of("rd"), steps=(1,)),
    ]

    @reward(steps=True)
    def all_right(trajectory):
        return [(at, 1.0) for at in trajectory.steps]

    run = Run(None)
    # of the reply of four steps the first annotator finds the third one wrong
    found = consensus_steps(inner=(by_length(), all_right()))([rows[:1], rows[1:]], run)
    assert [[len(s.steps) for s in row] for row in found] == [[3], [0, 1]]
    assert run.metrics[KEPT] == pytest.approx(2 / 3)


def test_what_it_needs():
    with pytest.raises(RewardlabError, match="needs annotators"):
        agreed()
    with pytest.raises(RewardlabError, match='steps="newline"'):
        consensus_steps(inner=(says(1.0),))([[row_of("rd")]], Run(None))
