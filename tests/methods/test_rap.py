"""RAP: what states are foreseen, what a path is worth, and which one is taken."""

from __future__ import annotations

import math

import numpy as np
import pytest

from rewardlab.core import Run, Score, Trajectory, Turn, ask
from rewardlab.methods.search.rap import Plan, action_probability, choose, first, rap, world_model_mcts
from rewardlab.models.embedded import untrained
from rewardlab.rewards.reward import reward
from tests.helpers.scripted import searched

SAYS = {
    "": ["a=1\n", "b=2\n"], "a=": ["5\n", "6\n", "7\n", "6\n"], "b=": ["8\n", "8\n", "8\n", "9\n"],
    "a=6\n": ["X"], "b=8\n": ["Y"],
}  # fmt: skip


@reward
def by_letter(trajectory: Trajectory) -> Score:
    """What the last action is worth."""
    return Score({"a": 0.81, "b": 0.09, "X": 0.25, "Y": 1.0}[trajectory.turns[-1].text[0]])


def plan(iterations, **settings):
    return searched(world_model_mcts(score=by_letter(), iterations=iterations, branch=2, states=4, **settings), SAYS)


def test_the_policy_goes_on_from_the_state_that_most_samples_foresee():
    replies, (group,), policy = plan(1)
    # of two actions a= is liked more; of 5, 6, 7, 6 the state is 6; its last step has no state
    assert policy.calls == [[""] * 2, ["a="] * 4, ["a=6\n"] * 2]
    assert replies == [["a=6\nX"]]
    # an action and its state are one step
    assert [(t.path, len(t.spans), len(t.replies)) for t in group] == [((0, 0), 2, 1)]
    assert group[0].mask.sum() == len("a=6\nX") + 1


def test_the_best_path_comes_first_and_unlikely_actions_are_tried_where_they_lead_on():
    # r of a: .81^.5 * (2/4)^.5 = .636; of X: .25^.5 = .5; mean .568.  of b: .3 * .866 = .26; of Y: 1; mean .63
    assert plan(2, explore=0.0)[0] == [["a=6\nX"]]
    # after one visit UCT is .568 + 0 (ln 1 = 0) against r of b before its state, .3; after two, with w = 2: .568 + 2 sqrt(ln 2 / 2)
    # = 1.745 against .3 + 2 sqrt(ln 2) = 1.965
    assert plan(2, explore=2.0)[0] == [["a=6\nX"]]
    assert plan(3, explore=2.0)[0] == [["b=8\nY", "a=6\nX"]]
    # alpha = 1 counts the actions alone: (.81 + .25) / 2 against (.09 + 1) / 2; alpha = 0 the states: (.5 + 1) / 2, (.75 + 1) / 2
    assert plan(9, explore=2.0, alpha=1.0)[0] == [["b=8\nY", "a=6\nX"]]
    assert plan(9, explore=2.0, alpha=0.0)[0] == [["b=8\nY", "a=6\nX"]]


def walked(*path):
    for node in path:
        node.visits += 1


def test_a_node_remembers_its_best_path():
    root = Plan(Trajectory(ask("?")))
    a = Plan(root.row, root, liked=0.64, agree=1.0)
    good, bad = Plan(root.row, a, 1.0, 0.36), Plan(root.row, a, 0.04, 1.0)
    root.children, a.children = [a], [good, bad]
    walked(root, a, bad)
    # .2; (.2 + .8) / 2
    assert (bad.best(0.5), a.best(0.5)) == pytest.approx((0.2, 0.5))
    walked(root, a, good)
    assert (good.best(0.5), a.best(0.5)) == pytest.approx((0.6, 0.7))
    walked(root, a, bad)
    assert (a.best(0.5), a.visits) == (pytest.approx(0.7), 3)
    # .6 + w sqrt(ln 3 / 1) against .2 + w sqrt(ln 3 / 2): bad was visited twice
    assert choose(a, 1.0, 0.5) is good


def test_states_agree_by_what_they_say():
    says = {"": ["a=1\n"], "a=": [" 6\n", "6\n", "7\n", "6.0\n"], "a= 6\n": ["X"]}
    replies, _, policy = searched(world_model_mcts(score=by_letter(), iterations=1, branch=1, states=4), says)
    # three of four say six, as the first of them writes it
    assert replies == [["a= 6\nX"]]
    assert policy.calls[1] == ["a="] * 4


def test_a_step_that_foresees_nothing_is_no_surer_than_those_beside_it():
    root = Plan(Trajectory(ask("?")), visits=1)
    prose, sums, other = (Plan(root.row, root, 0.5) for _ in range(3))
    root.children = [prose, sums, other]
    # before a first visit all are sure
    assert prose.reward(0.5) == sums.reward(0.5) == pytest.approx(math.sqrt(0.5))
    prose.visits = sums.visits = other.visits = 1
    sums.agree, other.agree = 3 / 8, 5 / 8
    assert prose.sure == 3 / 8
    assert prose.reward(0.5) == sums.reward(0.5) < other.reward(0.5)
    # an end beside which nothing is foreseen is as sure as what led to it
    end = Plan(root.row, other, 1.0, visits=1)
    other.children = [end]
    assert end.sure == 5 / 8


def test_prose_is_not_preferred_to_a_sum():
    says = {
        "": ["b=2\n", "Let us see.\n"], "b=": ["8\n", "8\n", "8\n", "9\n"], "b=8\n": ["Y"], "Let us see.\n": ["Y"],
    }  # fmt: skip

    @reward
    def alike(trajectory: Trajectory) -> Score:
        return Score(0.5)

    replies, _, _ = searched(world_model_mcts(score=alike(), iterations=4, branch=2, states=4, explore=2.0), says)
    # both paths are as likely, and as sure: the first one is that of the sum
    assert replies == [["b=8\nY", "Let us see.\nY"]]


def test_an_action_is_worth_the_mean_probability_of_its_own_tokens():
    turns = [Turn("policy", np.zeros(2, np.int64), np.log([p, q])) for p, q in ((0.01, 0.01), (0.9, 0.4))]
    row = Trajectory(ask("?"), (Turn(None, np.zeros(1, np.int64)), *turns))
    assert action_probability()([[row]], None)[0][0].value == pytest.approx(math.sqrt(0.36))
    assert action_probability()([[Trajectory(ask("?"), row.turns[:1])]], None)[0][0].value is None


def test_a_real_policy_plans():
    found = [
        rap(iterations=3, branch=2, states=2, step_tokens=3).rollout([ask("1+1=?")], Run(untrained(1), max_new=8)) for _ in "ab"
    ]
    assert [t.reply for t in found[0][0]] == [t.reply for t in found[1][0]]
    assert all(t.stop is not None and t.mask.sum() <= 8 and len(t.spans) == len(t.path) for t in found[0][0])


def test_the_recipe_takes_the_first():
    recipe = rap(states=3, action_end=":")
    assert (recipe.rollout.settings["states"], recipe.rollout.settings["action_end"]) == (3, ":")
    assert recipe.select == first()
