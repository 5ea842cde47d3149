"""Drafts that are rewritten from their first wrong step on, by hand."""

from __future__ import annotations

from scripted import ScriptedPolicy

from rewardlab.core import Run, ask
from rewardlab.methods.process.glore import refined
from rewardlab.rewards.reward import reward


@reward
def ends_right(trajectory):
    return float(trajectory.reply.endswith("R"))


@reward(steps=True)
def suspects(trajectory):
    """Steps that begin with x are wrong."""
    lines, found = trajectory.reply.split("\n"), []
    for at, line in zip(trajectory.steps, lines, strict=True):
        found.append((at, 0.2 if line.startswith("x") else 0.9))
    return found


@reward
def longer(trajectory):
    return float(len(trajectory.reply))


def measured(says, **settings):
    policy = ScriptedPolicy(says)
    run = Run(policy, verify=ends_right(), max_new=20)
    return policy, refined(where=suspects(), by=longer(), **settings)([ask("?")], run)


def test_the_steps_before_the_first_wrong_one_stay():
    policy, found = measured({"": ["a\nxb\nW"], "a\n": ["c\nd\nlong R"]})
    assert policy.calls == [[""], [""], [""], ["a\n"]]
    # the rewriting is the longest, and right; best of three has three wrong drafts
    assert (found["refined"], found["local"], found["pass@1"], found["best_of_3"]) == (1.0, 1.0, 0.0, 0.0)
    assert (found["flagged"], found["flagged_wrong"]) == (1.0, 1.0)


def test_a_first_step_that_is_wrong_leaves_nothing_and_no_wrong_step_leaves_all():
    policy, _ = measured({"": ["x\nW"]})
    assert policy.calls[3] == [""]
    policy, found = measured({"": ["a\nR"]})
    assert len(policy.calls) == 3
    assert (found["local"], found["refined"], found["flagged"], found["flagged_wrong"]) == (1.0, 1.0, 0.0, 0.0)
    policy, found = measured({"": ["a\nR"], "a\n": ["W"]}, threshold=1.0)
    assert policy.calls[3] == [""]
    assert found["flagged_wrong"] == 0.0
