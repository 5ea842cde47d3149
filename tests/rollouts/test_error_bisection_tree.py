"""Trees of halved replies, worked out by hand on a policy that says what it is told to."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scripted import ScriptedPolicy

from rewardlab.core import Run, Trajectory, Turn, ask
from rewardlab.errors import RewardlabError
from rewardlab.methods.process.omegaprm import Search, error_bisection_tree
from rewardlab.rewards.environment import found_labels
from rewardlab.rewards.reward import reward


@reward
def ends_right(trajectory):
    return float(trajectory.reply.endswith("R"))


def tree_of(says, **settings):
    policy = ScriptedPolicy(says)
    run = Run(policy, verify=ends_right(), max_new=40)
    (group,) = error_bisection_tree(n=2, **settings)([ask("?")], run)
    return policy, run, group


WRONG = "a\nb\nc\nd\nW"
SAYS = {"": ["R", WRONG], "a\nb\n": ["R", "cc\nW"], "a\nb\nc\n": ["R", "W"], "a\nb\nc\nd\n": ["W", "W"], "a\nb\ncc\n": ["W", "W"]}


def test_a_wrong_reply_is_halved_until_its_first_error_is_found():
    policy, run, (row,) = tree_of(SAYS, searches=1)
    # of the steps 0 to 4, of which the last is wrong, 1 is asked for, 2, and 3, where no continuation is right
    assert [call[0] for call in policy.calls] == ["", "a\nb\n", "a\nb\nc\n", "a\nb\nc\nd\n"]
    assert (row.reply, row.steps) == (WRONG, (2, 4, 6, 8, 10))
    ((score,),) = found_labels()([[row]], run)
    assert score.steps == ((4, 0.5), (6, 0.5), (8, 0.0), (10, 0.0))
    assert run.metrics["completions"] == 8
    assert row.ids.tolist() == [1, *(ord(c) for c in WRONG), 0]


def test_what_was_sampled_on_the_way_is_searched_next():
    _, run, group = tree_of(SAYS, searches=2, explore=0.0, length=2.0)
    # all states are right half of the time, so that the shortest rest wins: W after c, a single step, of which nothing is asked
    assert [t.reply for t in group] == [WRONG, "a\nb\nc\nW"]
    _, run, group = tree_of(SAYS, searches=3, explore=0.0, length=2.0)
    assert group[2].reply == "a\nb\ncc\nW"
    _, second, third = found_labels()([group], run)[0]
    assert second.steps == ((8, 0.0),)
    # its one step between is asked for; those up to the state that it goes on from are labelled where they were found
    assert third.steps == ((7, 0.0), (9, 0.0))


def test_the_choice_by_hand():
    prompt = Trajectory(ask("?"), (Turn(None, np.array([1])),))
    long, short = (prompt.plus(Turn("policy", np.zeros(n, np.int64))) for n in (10, 4))
    search = Search(prompt)
    search.add(1, [long, long], [True, False])  # share 1/2, 10 tokens after the state
    search.add(3, [short, short, short, short], [True, False, False, False])  # share 1/4, 2 tokens
    # 0.5^0.5 0.9^(10/5) = 0.573 and 0.5^0.75 0.9^(2/5) = 0.570
    assert 0.5**0.5 * 0.9**2 > 0.5**0.75 * 0.9**0.4
    state, reply = search.next(0.5, 0.9, 5.0, 0.125)
    assert (state.length, state.visits, len(search.pool)) == (1, 1, 3)
    assert reply is long
    # the same state, if it had another candidate, would be held back by U: 0.125 sqrt(1) / 2 and / 1
    search.pool.append((state, long))
    assert 0.573 + 0.0625 < 0.570 + 0.125
    assert search.next(0.5, 0.9, 5.0, 0.125)[0].length == 3
    # no right continuation: nothing to search for
    assert search.add(5, [short], [False]) == 0.0
    assert len(search.pool) == 3
    assert math.isclose(search.add(6, [short, short, short], [None, True, False]), 0.5)


def test_a_problem_without_candidates_has_one_row_without_labels():
    _, run, group = tree_of({"": ["R", "a\nR"]}, searches=3)
    assert [t.reply for t in group] == ["R"]
    assert found_labels()([group], run)[0][0].steps == ((2, 1.0),)
    with pytest.raises(RewardlabError, match="task's verifier"):
        error_bisection_tree()([ask("?")], Run(ScriptedPolicy({})))
