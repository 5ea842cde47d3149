"""Labels of steps against those of a reward that knows."""

import math

import numpy as np
import pytest

from rewardlab.core import Run, Trajectory, Turn, ask, rollout
from rewardlab.errors import RewardlabError
from rewardlab.evals.step_labels import label_quality
from rewardlab.models.embedded import untrained
from rewardlab.rewards.monte_carlo import binary_search_steps, monte_carlo_steps
from rewardlab.rewards.reward import reward
from rewardlab.rollouts.independent import independent

TRUE = [[1.0, 0.0, 0.0], [1.0, 1.0, 1.0], [0.0, 0.0, 0.0]]


@rollout
def three(problems, run):
    ids = np.zeros(3, np.int64)
    return [[Trajectory(problems[0], (Turn("policy", ids),), steps=(0, 1, 2), tag=str(k)) for k in range(3)]]


def says(*rows):
    """A reward that labels the three rows like this; None: it says nothing of a step."""

    @reward(steps=True)
    def said(t):
        return [(at, x) for at, x in enumerate(rows[int(t.tag)]) if x is not None]

    return said()


@reward(over="groups")
def expensive(groups, run):
    run.log("completions", run.metrics.get("completions", 0) + 7)
    run.policy.token_count.generated += 21
    return says(*TRUE)(groups, run)


def measured(**annotators):
    run = Run(untrained(0))
    return label_quality(truth=says(*TRUE), annotators=annotators, rollout=three())([ask("?")], run)


def test_wrong_steps_that_are_found_and_right_ones_that_are_suspected():
    found = measured(x=says([1.0, 0.25, None], [0.5, 0.25, 1.0], [0.0, 0.75, 0.0]))
    # of five wrong steps three are labelled below a half, and one right one
    assert (found["steps"], found["wrong"]) == (9, 5)
    assert (found["recall.x"], found["precision.x"]) == (3 / 5, 3 / 4)
    assert (found["none_right.recall.x"], found["none_right.precision.x"]) == (2 / 5, 1.0)
    assert found["first_error.x"] == 1.0
    # the only reply without an error has a step that is said to be wrong: all of its labels are noise, and one reply's of three
    assert (found["f1.x"], found["noise.x"], found["labelled.x"]) == (0.0, 1 / 3, 1.0)
    # of eight labelled steps, four are right (1, .5, .25, 1) and four wrong (.25, 0, .75, 0)
    assert found["auc.x"] == (4 + 3 + 2.5 + 4) / 16
    assert (found["completions.x"], found["tokens.x"]) == (0, 0)


def test_a_reply_without_labels_is_no_noise_but_not_found_either():
    found = measured(x=says([1.0, 0.0, None], [1.0, 1.0, 1.0], [None, None, None]), y=says([None] * 3, [1.0] * 3, [1.0] * 3))
    assert (found["labelled.x"], found["noise.x"], found["first_error.x"]) == (2 / 3, 0.0, 1 / 2)
    assert found["f1.x"] == pytest.approx(2 / 3)
    assert (found["labelled.y"], found["noise.y"], found["f1.y"]) == (2 / 3, 1 / 2, 0.0)


def test_each_annotator_pays_for_itself_and_the_truth_is_perfect():
    found = measured(a=expensive(), b=expensive(), never=says([1.0] * 3, [1.0] * 3, [1.0] * 3))
    assert {found[f"{name}.{x}"] for x in "ab" for name in ("precision", "recall", "first_error")} == {1.0}
    assert [found[f"completions.{x}"] for x in "ab"] == [7, 7]
    assert [found[f"tokens.{x}"] for x in "ab"] == [21, 21]
    assert (found["recall.never"], found["first_error.never"]) == (0.0, 0.0)
    assert math.isnan(found["precision.never"])


def test_bisection_asks_less_than_all_continuations():
    @reward
    def wrong(t):
        return 0.0

    run = Run(untrained(0), verify=wrong(), max_new=12)
    annotators = {"all": monte_carlo_steps(n=2), "bisection": binary_search_steps(n=2)}
    rows = independent(n=2, steps="token")
    truth = says([0.0])

    @reward(steps=True)
    def all_wrong(t):
        return [(at, 0.0) for at in t.steps]

    found = label_quality(truth=all_wrong(), annotators=annotators, rollout=rows)([ask("Start with 7."), ask("Start with 8.")], run)
    assert found["recall.all"] == found["recall.bisection"] == 1.0
    assert 0 < 2 * found["completions.bisection"] < found["completions.all"]
    assert 0 < found["tokens.bisection"] < found["tokens.all"]
    with pytest.raises(RewardlabError, match="speaks of no step"):
        label_quality(truth=says([], [], []), annotators={"x": truth}, rollout=three())([ask("?")], run)
