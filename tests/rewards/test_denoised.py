"""Monte-Carlo labels without known mistakes, worked out by hand on a policy that says what it is told to."""

from __future__ import annotations

import numpy as np
import pytest
from scripted import ScriptedPolicy

from rewardlab.core import Run, Trajectory, Turn, ask
from rewardlab.errors import RewardlabError
from rewardlab.rewards.denoised import reachable_steps, self_denoised_steps
from rewardlab.rewards.reward import reward
from rewardlab.text.splitters import mark

PROBLEM = ask("?")


@reward
def ends_right(trajectory):
    """Replies that end in R are right, those that end in ? have no verdict."""
    return None if trajectory.reply.endswith("?") else float(trajectory.reply.endswith("R"))


def replies(policy, *texts, problem=PROBLEM):
    (prompt,) = policy.read([Trajectory(problem)], [problem.prompt])
    return [mark(written(prompt, text), "newline", policy.pieces) for text in texts]


def written(prompt, text):
    return prompt.plus(Turn("policy", np.array([ord(c) for c in text]), text=text), "end")


def run_of(policy):
    return Run(policy, verify=ends_right(), max_new=20)


WRONG = "a\nb\nc\nd\nW"
SAYS = {
    "a\n": ["R", "R", "R", "R"],
    "a\nb\n": ["R", "W", "W", "R"],
    "a\nb\nc\n": ["R", "W", "W", "W"],
    "a\nb\nc\nd\n": ["W", "W", "W", "W"],
}


def test_steps_near_the_error_are_relative_to_how_sure_the_policy_is():
    policy = ScriptedPolicy(SAYS)
    (scores,) = self_denoised_steps(n=4)([replies(policy, "R", "x\nR", "y\nR", WRONG)], run_of(policy))
    # three of four are right: the shares 1/2 and 1/4 before the error are divided by 3/4, the first one is out of tolerance
    assert [x for _, x in scores[3].steps] == pytest.approx([1.0, 2 / 3, 1 / 3, 0.0])
    assert [at for at, _ in scores[3].steps] == [2, 4, 6, 8]
    assert [s.steps for s in scores[:2]] == [((1, 1.0),), ((2, 1.0), (3, 1.0))]
    # right replies are not continued, nor is anything after the error
    assert [len(call) for call in policy.calls] == [4, 4, 4, 4]


def test_no_labels_where_few_replies_are_right_and_no_continuation_either():
    policy = ScriptedPolicy(SAYS)
    (scores,) = self_denoised_steps(n=4)([replies(policy, "R", "R", "x\nW", WRONG)], run_of(policy))
    assert all(s.missing for s in scores)
    assert policy.calls == []
    (scores,) = self_denoised_steps(n=4, least=0.5, tolerance=3)([replies(policy, "R", "R", "x?", WRONG)], run_of(policy))
    # the reply without a verdict counts neither way: two of three are right
    assert scores[2].missing
    assert [x for _, x in scores[3].steps] == pytest.approx([1.0, 3 / 4, 3 / 8, 0.0])


def test_an_error_that_no_continuation_shows_is_at_the_last_step():
    policy = ScriptedPolicy({"a\n": ["R"]})
    (scores,) = self_denoised_steps(n=2, tolerance=0)([replies(policy, "R", "R", "R", "a\nW", "W")], run_of(policy))
    assert scores[3].missing  # three of five are too few
    (scores,) = self_denoised_steps(n=2, tolerance=0, least=0.6)([replies(policy, "R", "R", "R", "a\nW", "W")], run_of(policy))
    assert [x for _, x in scores[3].steps] == [1.0, 0.0]
    assert [x for _, x in scores[4].steps] == [0.0]


def test_as_many_right_replies_as_wrong_ones():
    policy = ScriptedPolicy(SAYS)
    group = replies(policy, *["R"] * 6, WRONG, "W")
    (scores,) = self_denoised_steps(n=4, balance=True)([group], run_of(policy))
    assert sum(not s.missing for s in scores[:6]) == 2
    assert not any(s.missing for s in scores[6:])
    (scores,) = self_denoised_steps(n=4, balance=True)([replies(policy, "R", "R")], run_of(policy))
    assert all(s.missing for s in scores)


def test_it_says_what_it_needs():
    policy = ScriptedPolicy({})
    with pytest.raises(RewardlabError, match="task's verifier"):
        self_denoised_steps()([replies(policy, "R")], Run(policy))


STEPS = {
    "=5\n": ["5+1=6\nR", "R"],
    "=5\n=7\n": ["W", "R"],
    "=5\n=7\n=9\n": ["W", "W"],
    "no number\n": ["R", "W"],
}


def reached(*texts, **settings):
    policy = ScriptedPolicy(STEPS)
    (scores,) = reachable_steps(n=2, **settings)([replies(policy, *texts)], run_of(policy))
    return policy, [None if s.missing else [x for _, x in s.steps] for s in scores]


def test_a_step_is_right_if_any_continuation_is_and_has_used_its_result():
    # after =7 one of two is right, but without the 7; after =5 one is right that goes on with the 5
    assert reached("=5\n=7\n=9\nW")[1] == [[1.0, 0.0, 0.0, 0.0]]
    assert reached("=5\n=7\n=9\nW", used=False)[1] == [[1.0, 1.0, 0.0, 0.0]]
    # where there is no number there is nothing to use
    assert reached("no number\nW")[1] == [[1.0, 0.0]]


def test_a_right_reply_makes_all_of_its_steps_right_and_costs_nothing():
    policy, labels = reached("=9\n=8\nR", "x?")
    assert labels == [[1.0, 1.0, 1.0], None]
    assert not any(policy.calls)


def test_a_step_from_which_a_later_one_is_right_is_right_itself():
    says = {"1\n": ["W"], "1\n2\n": ["2R"]}
    policy = ScriptedPolicy(says)
    ((score,),) = reachable_steps(n=1)([replies(policy, "1\n2\nW")], run_of(policy))
    assert [x for _, x in score.steps] == [1.0, 1.0, 0.0]


def test_as_many_labels_of_either_kind_in_every_place():
    _, labels = reached("=5\n=7\n=9\nW", "=9\n=8\nR", "R", used=False, balance=True)
    # first steps: three right ones, no wrong one; second: two right; third: one of either; fourth: one wrong
    assert labels == [[0.0], [1.0], None]
