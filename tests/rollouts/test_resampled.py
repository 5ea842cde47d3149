"""Groups without a signal give way to prompts that are drawn by value."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from rewardlab.core import Run, Trajectory, Turn, ask, rollout
from rewardlab.methods.shaping.prs_vspo import resampled_by_value, value_of
from rewardlab.rewards.reward import reward

SAID: dict[str, list[list[str]]] = {}
"""By question: the replies to it, one list for each time that it is asked; the last one again from then on."""


@rollout
def scripted(problems, run):
    groups = []
    for problem in problems:
        texts = SAID[problem.question].pop(0) if len(SAID[problem.question]) > 1 else SAID[problem.question][0]
        groups.append([Trajectory(problem, (Turn("policy", np.zeros(1, np.int64), text=text),), "end") for text in texts])
    return groups


@reward
def number_said(trajectory):
    return None if trajectory.reply == "?" else float(trajectory.reply)


def sampled(said: dict[str, list[list[str]]], attempts: int = 2, seed: int = 0) -> tuple[list[tuple[str, list[str]]], Run]:
    SAID.clear()
    SAID.update(said)
    run = Run(policy=None, seed=seed)
    part = resampled_by_value(inner=scripted(), reward=number_said(), attempts=attempts)
    groups = part([ask(question) for question in said], run)
    return [(g[0].problem.question, [t.reply for t in g]) for g in groups], run


@pytest.mark.parametrize(
    ("rewards", "value"),
    # (1 - mean) std: of 0 0 0 1: 3/4 * sqrt(3)/4;  of 1 1 1 0: 1/4 * sqrt(3)/4: as undecided, and less hard
    [([0, 0, 0, 1], 0.324760), ([1, 1, 1, 0], 0.108253), ([0.5, 0.5], 0.0), ([1, 1], 0.0), ([0.7], 0.0), ([], 0.0)],
)
def test_value_is_difficulty_times_uncertainty(rewards, value):
    assert value_of(rewards) == pytest.approx(value, abs=1e-6)


def test_any_signal_has_some_value():
    assert value_of([3.0, 5.0]) > 0


def test_groups_without_a_signal_are_replaced_by_new_replies_to_prompts_that_have_one():
    found, run = sampled({"a": [["0", "0"]], "b": [["0", "1"], ["1", "0"]], "c": [["1", "1", "?"]]})
    # two places are free, and b alone has a value: it is asked twice more
    assert found == [("b", ["0", "1"]), ("b", ["1", "0"]), ("b", ["1", "0"])]
    assert run.metrics["without_signal"] == pytest.approx(2 / 3)


def test_prompts_are_drawn_in_proportion_to_their_value():
    said = {"hard": [["0", "0", "0", "1"]], "easy": [["1", "1", "1", "0"]], **{f"nothing {i}": [["0", "0"]] for i in range(400)}}
    found, _ = sampled(said)
    drawn = Counter(question for question, _ in found[2:])
    assert sum(drawn.values()) == 400
    # .324760 to .108253 is 3 to 1
    assert drawn["hard"] / 400 == pytest.approx(0.75, abs=0.07)
    assert sampled(said)[0] == found
    assert sampled(said, seed=1)[0] != found


def test_what_has_no_signal_the_second_time_is_left_out_or_tried_again():
    said = {"a": [["0", "0"]], "b": [["0", "1"], ["0", "0"], ["1", "0"]]}
    assert len(sampled({k: list(v) for k, v in said.items()})[0]) == 1
    assert len(sampled({k: list(v) for k, v in said.items()}, attempts=3)[0]) == 2
    assert len(sampled({k: list(v) for k, v in said.items()}, attempts=1)[0]) == 1


def test_where_nothing_has_a_signal_the_step_has_its_batch_all_the_same():
    found, run = sampled({"a": [["0", "0"]], "b": [["1", "1"]]})
    assert [question for question, _ in found] == ["a", "b"]
    assert run.metrics["without_signal"] == 1.0
