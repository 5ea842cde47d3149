"""Problems are sampled where their last visits showed something to explore."""

from __future__ import annotations

import json

import numpy as np
import pytest

from rewardlab.core import Run, Trajectory, Turn, ask, rollout
from rewardlab.methods.curricula.depo import MEMORY, choose, explorability, explorability_sampling
from rewardlab.rewards.reward import reward
from rewardlab.rollouts.filtered import solved_between


def test_explorability_by_hand():
    # one of two is right: mean 1/2, std 1/2, advantages 1 and -1
    assert explorability([True, False], [0.4, 0.6], 2.0) == pytest.approx(1.0)
    # one of four: mean .25, std sqrt(.1875) = .4330; advantages .75 / .4330 = 1.7321 and .25 / .4330 = .5774 in size
    assert explorability([True, False, False, False], [0.2, 0.2, 0.4, 0.1], 2.0) == pytest.approx(
        1.7321 * 0.2 + 0.5774 * 0.7, abs=1e-3
    )
    # a wrong reply more than twice as surprising as the right ones on average counts nothing
    assert explorability([True, False, False, False], [0.2, 0.2, 0.41, 0.1], 2.0) == pytest.approx(
        1.7321 * 0.2 + 0.5774 * 0.3, abs=1e-3
    )
    # all right, all wrong, one reply, none
    for right in ([True, True], [False, False], [True], []):
        assert explorability(right, [0.5] * len(right), 2.0) == 0.0


A, B, C, D, E = (ask(name) for name in "ABCDE")


def memory_of(**visits):
    keys = {p.question: p.key for p in (A, B, C, D, E)}
    return {keys[name]: {"seen": len(row), "visits": row} for name, row in visits.items()}


def names(problems) -> str:
    return "".join(p.question for p in problems)


def test_the_most_explorable_are_sampled_and_new_problems_always():
    rest = {"start": 1.0, "least": 0.4, "decay": 0.25, "window": 2, "replay": 0.0}
    # met twice: the share is 1 - .25 * 2 = .5 of four
    memory = memory_of(A=[9.0, 0.0, 0.0], B=[0.0, 3.0], C=[1.0, 1.0], D=[0.2, 0.2])
    memory[A.key]["seen"] = 2
    # of the last two visits: A 0, B 1.5, C 1, D .2; E is new
    assert names(choose([A, B, C, D, E], memory, **rest)) == "BCE"
    assert memory[A.key]["seen"] == 3
    assert memory[E.key] == {"seen": 1, "visits": []}
    # equally explorable: the one that was sampled less often comes first
    memory = memory_of(A=[1.0, 1.0], B=[1.0])
    assert names(choose([A, B], memory, **rest)) == "B"


def test_the_share_falls_to_the_least_and_the_most_neglected_are_replayed():
    memory = memory_of(A=[5.0] * 9, B=[4.0] * 9, C=[0.0] * 9, D=[0.0] * 3, E=[0.1] * 3)
    rest = {"start": 1.0, "least": 0.4, "decay": 0.25, "window": 5}
    assert names(choose([A, B, C, D, E], memory, **rest, replay=0.0)) == "AB"
    # one of the three skipped is replayed: of D and E, sampled three times each, the more explorable
    assert names(choose([A, B, C, D, E], memory, **rest, replay=0.34)) == "ABE"
    assert names(choose([A, B, C, D, E], memory, **rest, replay=0.67)) == "ABDE"


@reward
def verdict(trajectory):
    return {"right": 1.0, "wrong": 0.0}.get(trajectory.reply)


@rollout
def scripted(problems, run):
    """Replies to A: right and wrong, with 1 and 1.5 nats a token; to C no verdict; to any other problem: right and no verdict."""
    said = {"A": (("right", -1.0), ("wrong", -1.5), ("?", -9.0)), "C": (("?", -1.0), ("?", -2.0))}
    return [
        [
            Trajectory(p, (Turn("policy", np.zeros(2, np.int64), np.full(2, x, np.float32), text=text),), "end")
            for text, x in said.get(p.question, (("right", -1.0), ("?", -1.0)))
        ]
        for p in problems
    ]


def test_a_step_samples_what_was_chosen_and_remembers_what_it_showed():
    run = Run(None, verify=verdict(), more_problems=lambda n: [])
    part = explorability_sampling(inner=scripted(), start=0.5, replay=0.0)
    assert len(part([A, B], run)) == 2
    assert run.metrics["rollouts_skipped"] == 0.0
    # A: two verdicts, advantages 1 and -1, 1 + 1.5 nats; B: one verdict, nothing to explore
    assert [run.memory[MEMORY][p.key]["visits"] for p in (A, B)] == [[pytest.approx(2.5)], [0.0]]
    run.memory = json.loads(json.dumps(run.memory))
    assert [g[0].problem.question for g in part([A, B], run)] == ["A"]
    assert run.metrics["rollouts_skipped"] == 0.5
    assert [len(run.memory[MEMORY][p.key]["visits"]) for p in (A, B)] == [2, 1]
    run.more_problems = None
    assert len(part([A, B], run)) == 2


def test_a_problem_that_nobody_judged_is_sampled_again():
    run = Run(None, verify=verdict(), more_problems=lambda n: [])
    part = explorability_sampling(inner=scripted(), start=0.5, decay=0.0, replay=0.0)
    for _ in range(3):
        asked = [g[0].problem.question for g in part([A, B, C], run)]
    assert asked == ["A", "C"]
    assert run.memory[MEMORY][C.key] == {"seen": 3, "visits": []}


def sampled_over(wrap, epochs: int = 3) -> tuple[list[str], dict]:
    """What is asked of the innermost rollout, when 16 problems come in steps of 8: the even ones mixed, the odd ones all right."""
    asked, problems = [], [ask(f"{i}") for i in range(16)]

    @rollout
    def sampler(problems, run):
        asked.append(",".join(p.question for p in problems))
        return [
            [
                Trajectory(p, (Turn("policy", np.zeros(2, np.int64), np.full(2, -1.0, np.float32), text=text),), "end")
                for text in ("right", "right" if int(p.question) % 2 else "wrong")
            ]
            for p in problems
        ]

    run = Run(policy=None, verify=verdict())
    part = explorability_sampling(inner=wrap(sampler()), start=0.6, least=0.2, decay=0.05, replay=0.0)
    for run.step in range(2 * epochs):
        run.more_problems = lambda n: []
        part(problems[8 * (run.step % 2) :][:8], run)
    return asked, run.memory[MEMORY]


def test_over_a_filter_the_same_problems_are_skipped():
    plain, seen = sampled_over(lambda part: part)
    filtered, noted = sampled_over(lambda part: solved_between(inner=part, low=0.001, high=0.999))
    assert filtered == plain
    assert noted == seen
    # the second time .55 of eight, four: the mixed ones
    assert plain[2] == "0,2,4,6"


def test_further_problems_are_met_and_skipped_too():
    asked, known = [], memory_of(B=[0.0], C=[2.0])

    @rollout
    def sampler(problems, run):
        asked.append(names(problems))
        return scripted()(problems, run)

    run = Run(policy=None, verify=verdict(), memory={MEMORY: known})
    run.more_problems = lambda n: [B, C][:n]
    # all replies to D are right: two further problems are asked for, of which B has shown nothing
    explorability_sampling(inner=solved_between(inner=sampler(), low=0.001, high=0.999, attempts=2), start=0.5, replay=0.0)(
        [D, E], run
    )
    assert asked == ["DE", "C"]
    assert known[B.key]["seen"] == 2
    assert known[D.key]["visits"] == [0.0]
    # given back as it was
    assert run.more_problems(2) == [B, C]
