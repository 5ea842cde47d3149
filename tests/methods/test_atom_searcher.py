"""Atom-Searcher: atoms of thoughts, a schedule, and the form."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from rewardlab import registry
from rewardlab.core import Run, Score, Trajectory, Turn, ask
from rewardlab.engine.collate import collate
from rewardlab.methods.shaping.atom_searcher import atom_searcher
from rewardlab.rewards.reward import reward
from rewardlab.rewards.turns import atomic_thoughts, thoughts


def episode(*replies: str) -> Trajectory:
    turns = [Turn(None, np.zeros(3, np.int64), text="Who?")]
    for i, text in enumerate(replies):
        turns += [Turn(None, np.zeros(1, np.int64), text="Bob")] if i else []
        turns.append(Turn("policy", np.zeros(2, np.int64), np.zeros(2, np.float32), np.zeros(2, np.float32), text))
    return Trajectory(ask("Who?", "Bob"), tuple(turns), "end")


@reward
def told(trajectory):
    """The number that a thought begins with."""
    first = trajectory.reply.split()[0]
    return Score(None, why="the judge is down") if first == "?" else float(first)


@reward
def verify(trajectory):
    return float(trajectory.reply.endswith("Bob"))


RUN = Run(policy=None, verify=verify(), steps=10)
GOOD = episode("<think><plan>1 look</plan><risk>.5 none</risk></think>\nSearch: x", "<think><seen>0 it</seen></think>Answer: Bob")
BAD = episode("<think><plan>1 look</plan></think>\nSearch: x", "<think><seen>1 it</seen></think>\nAnswer: Dee")


def totals(*rows, step: int = 0, **settings) -> list[float | None]:
    return [s.total for s in atom_searcher(judge=told(), **settings).reward([list(rows)], replace(RUN, step=step))[0]]


def test_thoughts_count_less_and_less():
    # thoughts: (1 + 1/2 + 0) / 3 = 1/2, and 1.   a = 1/2, 1/4, 0
    assert totals(GOOD, BAD) == pytest.approx([0.75, 0.5])
    assert totals(GOOD, BAD, step=5) == pytest.approx([0.25 * 0.5 + 0.75, 0.25])
    assert totals(GOOD, BAD, step=10) == pytest.approx([1, 0])
    assert totals(GOOD, BAD, alpha=1.0) == pytest.approx([0.5, 1])


@pytest.mark.parametrize(
    "reply",
    ["", "Answer: Bob", "<think>so</think>Answer: Bob", "<think><plan>1</plan></think>", "Hm <think><a>1</a></think>Answer: Bob"],
)
def test_a_violated_form_costs(reply):
    assert totals(episode(reply), episode("<think><plan>1 x</plan></think>Search: x", reply)) == [-1, -1]


def test_no_verdict_on_a_thought_is_none_of_the_episode():
    assert totals(episode("<think><plan>? x</plan><plan>1 x</plan></think>Answer: Bob"), GOOD) == [None, pytest.approx(0.75)]


def test_atoms_are_judged_apart_and_thoughts_as_a_whole_together():
    assert thoughts("<think><a>x y</a> and <b> z </b><c></c></think><d>no</d>") == ["x y", "z"]
    assert thoughts("<think><a>x</a> and <b>z</b></think>", whole=True) == ["x  and  z"]
    assert thoughts("<think>no atoms</think>", whole=True) == []
    assert thoughts("<think><a>x</a>") == thoughts("</think><a>x</a><think>") == thoughts("<think></think>" * 2) == []
    assert thoughts("<think>" + "<a>" * 5000 + "</think>") == []
    assert [s.value for s in atomic_thoughts(inner=told(), whole=True)([[GOOD, BAD]], RUN)[0]] == pytest.approx([0.5, 1])


def test_a_thought_is_judged_in_what_came_before_it():
    texts = []

    @reward
    def spy(trajectory):
        texts.append(([turn.text for turn in trajectory.turns if turn.author is None], trajectory.reply))
        return 1.0

    atomic_thoughts(inner=spy())([[GOOD]], RUN)
    assert texts == [(["Who?"], "1 look"), (["Who?"], ".5 none"), (["Who?", "Bob"], "0 it")]


def test_the_credit():
    recipe = atom_searcher(judge=told())
    batch = collate([[GOOD, BAD]], recipe.reward([[GOOD, BAD]], RUN), torch.device("cpu"))
    # .75 and .5: +-1/8 over .17678
    assert recipe.credit(batch.reward, batch, RUN)[:, 3].tolist() == pytest.approx([0.7067, -0.7067], abs=1e-3)
    assert registry.build("igpo+atom_searcher").rollout == registry.build("igpo").rollout
