"""Labels by tool and outcome, by hand."""

from __future__ import annotations

import numpy as np
import pytest

from rewardlab.core import Run, Trajectory, Turn, ask
from rewardlab.errors import RewardlabError
from rewardlab.methods.process.groundedprm import branch_worth, fused_steps
from rewardlab.rewards.reward import reward

PROBLEM = ask("?")
SAID = {"t": 1.0, "f": 0.0}


@reward(steps=True)
def tool(trajectory):
    """Steps are single letters: t is true, f is false, of others nothing is said."""
    text = trajectory.reply
    return [(at, SAID[c]) for at, c in enumerate(text) if c in SAID]


@reward
def ends_right(trajectory):
    return {"R": 1.0, "W": 0.0}.get(trajectory.reply[-1])


def group(*texts):
    def row(text):
        ids = np.array([ord(c) for c in text])
        return Trajectory(PROBLEM, (Turn("policy", ids, text=text),), "end", steps=tuple(range(len(text))))

    return [row(text) for text in texts]


def labels(*texts, **settings):
    (scores,) = fused_steps(check=tool(), **settings)([group(*texts)], Run(None, verify=ends_right()))
    return [None if s.missing else dict(s.steps) for s in scores]


def test_the_worth_of_a_branch_as_the_released_code_has_it():
    def released(path_value):
        path_value = list(path_value)
        final = path_value[-1]
        path_value.pop(-1)
        if path_value:
            path_value.pop(0)
        n, worth = len(path_value), 0.0
        factor = 1 / n if n >= 1 else 1
        for i in range(n):
            worth += factor * path_value[i] * (n - i) / n
        return worth + factor * final

    for checked, outcome in (([1.0], -1.0), ([1.0, -1.0], 1.0), ([1.0, 1.0, -1.0], -1.0), ([1, 1, -1, 1, 0, 1], 1.0)):
        # there the outcome takes the place of the last value
        assert branch_worth(checked, outcome) == pytest.approx(released([*checked[:-1], outcome]))


def test_a_true_step_of_a_wrong_reply_by_hand():
    # one branch of four steps, two between: V = (-1 + 1 v_1 + 1/2 v_2) / 2
    # v = 1, 1, -1, 0: V = (-1 + 1 - 1/2) / 2 = -1/4, the first step is worth 3/4; of the last nothing is known
    assert labels("ttfW") == [{0: 1.0, 1: 1.0, 2: 0.0}]
    # outcomes alone: V = -1/2 at the first step, and nothing is said of the others
    assert labels("ttfW", tool=0.0) == [{0: 0.0}]


def test_branches_that_share_a_step_add_up_with_decay():
    # first reply: V = F / 1 + v_1 = -1 - 1 = -2 at its first step, whose own v is 1: value -1, wrong
    assert labels("tfW") == [{0: 0.0, 1: 0.0}]
    # the second one branches off one step later, N = 0, V = 1: the shared step is worth 1 - 2 + 0.9 = -0.1
    assert labels("tfW", "tR") == [{0: 0.0, 1: 0.0}, {0: 0.0, 1: 1.0}]
    # without decay it is worth 0, and of that nothing is said
    assert labels("tfW", "tR", decay=1.0)[1] == {1: 1.0}
    # another branch: V = (1 + 1) / 1, and -0.1 + 0.9 * 2 is above 0
    assert labels("tfW", "tR", "tttR")[0] == {0: 1.0, 1: 0.0}
    # a reply that shares nothing, and one that is there already, change nothing
    assert labels("tfW", "tR", "xR", "tR") == [{0: 0.0, 1: 0.0}, {0: 0.0, 1: 1.0}, {0: 1.0}, {0: 0.0, 1: 1.0}]


def test_labels_of_a_wrong_reply_end_where_a_right_step_follows_a_wrong_one():
    assert labels("ftttW") == [{0: 0.0}]
    assert labels("ftttW", cut=False) == [{0: 0.0, 1: 1.0, 2: 1.0, 3: 1.0}]
    # right replies are not cut: V = (1 - 1) / 1 = 0
    assert labels("tfR") == [{0: 1.0, 1: 0.0}]


def test_replies_without_verdict_and_without_steps():
    assert labels("tt?", "tR") == [None, {0: 1.0}]
    bare = Trajectory(PROBLEM, (Turn("policy", np.array([1]), text="t"),), "end")
    with pytest.raises(RewardlabError, match='steps="newline"'):
        fused_steps(check=tool())([[bare]], Run(None, verify=ends_right()))
