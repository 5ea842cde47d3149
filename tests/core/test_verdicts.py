"""The task's verifier is asked once about each rollout of a step."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
from rows import Replies

from rewardlab import registry
from rewardlab.core import Run, Trajectory, Turn, ask
from rewardlab.engine.term_conflicts import truth_of
from rewardlab.rewards.length import length_penalty
from rewardlab.rewards.reward import reward
from rewardlab.rewards.task import correct

SAID = ["2", "3", "2", "2", "3", "2"]


def counting():
    """A verifier whose verdict is how often it has been asked, so no two are alike; and the replies that it was asked about."""
    asked: list[str] = []

    @reward
    def count(trajectory):
        asked.append(trajectory.reply)
        return float(len(asked))

    return count(), asked


def group_of(n: int) -> list[Trajectory]:
    return [Trajectory(ask("1+1?", "2"), (Turn("policy", np.arange(2), text=str(i)),), "end") for i in range(n)]


def test_a_kept_rollout_of_dapo_is_verified_once_however_many_parts_ask():
    asked: list[str] = []

    @reward
    def right(trajectory):
        asked.append(trajectory.reply)
        return float(trajectory.reply == "2")

    recipe = registry.build("dapo", {"n": 2})
    run = Run(Replies(SAID), verify=right(), max_new=8)
    groups = recipe.rollout([ask(q, "2") for q in "abc"], run)
    assert (len(groups), asked) == (2, SAID)
    scores = (recipe.reward + correct().named("again") * (1 + length_penalty()))(groups, run)
    run.step += 1  # the log is written when the step has been counted
    assert truth_of(groups, scores, run) == truth_of(groups, [], run) == [[1.0, 0.0], [0.0, 1.0]]
    assert asked == SAID


def test_a_verdict_stays_the_same_within_a_step():
    verifier, asked = counting()
    run, groups = Run(None, verify=verifier), [group_of(2), group_of(1)]
    first = correct()(groups, run)
    assert [[s.value for s in row] for row in first] == [[1.0, 2.0], [3.0]]
    assert correct()(groups, run) == correct()(groups, run.detached()) == first
    assert [s.value for s in correct()([[groups[1][0], *group_of(1)]], run)[0]] == [3.0, 4.0]
    assert len(asked) == 4


def test_new_rollouts_of_a_later_step_replace_those_before_and_nothing_is_saved():
    verifier, asked = counting()
    run, groups = Run(None, verify=verifier), [group_of(2)]
    run.verdicts(groups)
    run.step += 1
    assert len(run.verified.known) == 2
    run.verdicts([group_of(3)])
    assert len(run.verified.known) == 3
    assert run.memory == {}
    run.verdicts(groups)
    assert len(asked) == 7


def test_an_evaluation_leaves_the_steps_verdicts_alone():
    verifier, asked = counting()
    run, groups = Run(None, verify=verifier), [group_of(2)]
    run.verdicts(groups)
    run.step = 1
    aside = run.detached()
    assert [s.value for s in correct()([group_of(2)], aside)[0]] == [3.0, 4.0]
    assert [s.value for s in run.verify(groups, aside)[0]] == [5.0, 6.0]
    assert [s.value for s in run.verdicts(groups)[0]] == [1.0, 2.0]
    assert len(asked) == 6


def test_a_verifier_that_compares_rollouts_is_asked_about_whoever_is_there():
    calls = itertools.count(1)

    @reward(over="group")
    def share_of(group):
        next(calls)
        return [1 / len(group) for _ in group]

    run, group = Run(None, verify=share_of()), group_of(4)
    assert run.verdicts([group])[0][0].value == 0.25
    assert run.verdicts([group[:2]])[0][0].value == 0.5
    assert next(calls) == 3


def test_a_learner_shares_the_memory_of_the_run():
    verifier, asked = counting()
    run, groups = Run(None, verify=verifier), [group_of(2)]
    replace(run, policy="another").verdicts(groups)
    run.verdicts(groups)
    assert len(asked) == 2
