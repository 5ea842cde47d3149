"""A greedy search that goes back, worked out by hand on a policy that follows a table; the last digit times ten is the score."""

from __future__ import annotations

import pytest

from rewardlab.core import Run, ask
from rewardlab.errors import RewardlabError
from rewardlab.methods.process.hgs_prm import backtracking
from tests.helpers.scripted import ScriptedPolicy, last_digit


def found(turns, iterations=20, tries=2, **settings):
    """The reply, and the rows from which steps were sampled. turns: what follows a reply, one after another over the calls."""
    left = {reply: list(said) for reply, said in turns.items()}

    def says(t):
        said = left[t.reply]
        return [said.pop(0) if len(said) > 1 else said[0]]

    policy = ScriptedPolicy(says)
    search = backtracking(score=last_digit(), accept=0.7, refuse=0.3, tries=tries, iterations=iterations, **settings)
    ((row,),) = search([ask("?")], Run(policy, max_new=100))
    return row.reply, [call[0] for call in policy.calls], row


def test_a_positive_step_is_gone_on_from_at_once_and_a_negative_one_is_sampled_anew():
    reply, rows, row = found({"": ["b2\n", "a9\n"], "a9\n": ["c7"]})
    assert reply == "a9\nc7"
    assert rows == ["", "", "a9\n"]
    assert (row.stop, row.path, row.steps) == ("end", (1, 0), (3, 6))


def test_without_a_positive_step_the_best_neutral_one_is_taken_and_a_negative_one_never():
    # neutral .4, positive enough for nobody; .5 is better; .1 is refused
    reply, rows, _ = found({"": ["a4\n", "b5\n", "c1\n"], "b5\n": ["d8"]}, tries=3)
    assert reply == "b5\nd8"
    assert rows == ["", "", "", "b5\n"]


def test_where_all_steps_are_refused_it_goes_back_and_has_the_tries_that_were_left():
    # a9 leads nowhere (two refused); at the prompt one try is left, and gives b8
    reply, rows, _ = found({"": ["a9\n", "b8\n"], "a9\n": ["x1\n", "y2\n"], "b8\n": ["z9"]})
    assert reply == "b8\nz9"
    assert rows == ["", "a9\n", "a9\n", "", "b8\n"]


def test_a_step_that_led_nowhere_is_not_taken_again_and_a_neutral_one_only_once():
    # a9 fails; sampled again it is no step; then the neutral n5 of the prompt is taken, fails, and the tries begin anew with b8
    turns = {"": ["a9\n", "n5\n", "a9\n", "b8\n"], "a9\n": ["x1\n"], "n5\n": ["y1\n"], "b8\n": ["z9"]}
    reply, rows, _ = found(turns, tries=3)
    assert rows == [*("", "a9\n", "a9\n", "a9\n"), "", "", *("n5\n",) * 3, "", "b8\n"]
    assert reply == "b8\nz9"


def test_no_verdict_is_negative():
    assert found({"": ["a9?\n", "b7\n"], "b7\n": ["c9"]})[0] == "b7\nc9"


def test_when_the_steps_are_used_up_the_reply_is_ended_from_the_best_place():
    # the second step is neutral: better than what stands at the prompt
    reply, rows, _ = found({"": ["a1\n", "b5\n"], "b5\n": ["c1\nd1"]}, iterations=2, tries=9)
    assert reply == "b5\nc1\nd1"
    assert rows == ["", "", "b5\n"]


def test_problems_are_searched_side_by_side():
    policy = ScriptedPolicy({"": ["a9\n"], "a9\n": ["b9"]})
    groups = backtracking(score=last_digit())([ask("1?"), ask("2?")], Run(policy, max_new=100))
    assert [[t.reply for t in g] for g in groups] == [["a9\nb9"], ["a9\nb9"]]
    assert [len(call) for call in policy.calls] == [2, 2]


def test_thresholds_in_the_wrong_order_are_refused():
    with pytest.raises(RewardlabError, match="refuse them below"):
        backtracking(score=last_digit(), accept=0.2, refuse=0.3)([ask("?")], Run(ScriptedPolicy({}), max_new=9))
