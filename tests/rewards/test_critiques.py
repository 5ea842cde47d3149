"""Which steps of a reply are wrong, by the vote of several critiques."""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np
import pytest
from rows import Replies

from rewardlab.core import Run, Score, Trajectory, Turn, ask
from rewardlab.errors import RewardlabError
from rewardlab.rewards.critiques import listed, noisy_critiques, voted, wrong_steps
from rewardlab.rewards.reward import reward


def solution(text: str = "1+1=2\n2+2=5\nAnswer: 5") -> Trajectory:
    row = Trajectory(ask("Q", "4"), (Turn(None, np.arange(2)), Turn("policy", np.arange(6), text=text)), "end")
    return replace(row, steps=(3, 5, 7))


class Critic(Replies):
    context = 10_000

    def read(self, trajectories, messages):
        self.asked = [m[-1].text for m in messages]
        return list(trajectories)


def scores(*critiques: str, agree: str = "all", votes: int = 2):
    critic = Critic(critiques)
    run = Run(policy=None, models={"critic": critic})
    groups = [[solution() for _ in range(len(critiques) // votes)]]
    return wrong_steps(votes=votes, agree=agree)(groups, run)[0], critic


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Fine.\nWrong steps: none", set()), ("Wrong steps: 2, 5", {2, 5}), ("wrong step: 3", {3}), ("**Wrong steps:** 2", {2}),
        ("Wrong steps: []", set()), ("Wrong steps: 1\nWrong steps: 2", {2}), ("all is well", None), ("Wrong steps:", None),
        ("Wrong steps: perhaps", None), ("", None), ("Wrong steps: None. All 4 steps are right.", set()),
        ("Wrong steps: none of the 5 steps is wrong", set()), ("Wrong steps: 2 (7+5 is 12, not 13)", {2}),
        ("Wrong steps: 2-4", {2, 3, 4}), ("**Wrong step(s):**\n- 2\n- 5\n\nThe answer is 3.", {2, 5}),
    ],
)  # fmt: skip
def test_what_a_critique_lists(text, expected):
    assert listed(text) == expected


def test_a_hostile_critique_is_read_at_once():
    start = time.process_time()
    listed("Wrong steps:" * 50_000)
    listed("wrong steps" + " " * 200_000)
    assert time.process_time() - start < 1


def test_the_vote():
    critiques = [{1, 2}, {2}, {2, 3}, {3}]
    assert [voted(critiques, i, "majority") for i in (1, 2, 3)] == [False, True, False]  # 1, 3 and 2 of 4
    assert [voted(critiques[:3], i, "all") for i in (1, 2, 3)] == [False, True, False]


def test_steps_that_all_critiques_list_are_wrong_and_the_critic_reads_numbered_steps():
    (first, second), critic = scores("Wrong steps: 2, 3", "Wrong steps: 2", "Wrong steps: none", "Wrong steps: 1")
    assert first.steps == ((3, 0.0), (5, 1.0), (7, 0.0))
    assert second.steps == ((3, 0.0), (5, 0.0), (7, 0.0))
    assert "1: 1+1=2\n2: 2+2=5\n3: Answer: 5" in critic.asked[0]


def test_unreadable_critiques_do_not_vote_and_none_at_all_is_no_verdict():
    (first, second), _ = scores("Wrong steps: 2", "well", "hm", "")
    assert dict(first.steps)[5] == 1.0
    assert second.missing


def test_replies_that_do_not_fit_or_whose_steps_were_not_marked():
    run = Run(policy=None, models={"critic": Critic([])})
    run.models["critic"].context = 10
    assert wrong_steps()([[solution()]], run)[0][0].missing
    with pytest.raises(RewardlabError, match="splitter='newline'"):
        wrong_steps()([[replace(solution(), steps=())]], run)


@reward(steps=True)
def truth(trajectory):
    return Score(None, why="none") if trajectory.reply == "?" else [(3, 1.0), (5, 0.0), (7, 1.0)]


@pytest.mark.slow
def test_a_noisy_critic_errs_at_its_rates_and_the_vote_of_several_less():
    # errors belong to what is written, so each reply has ids of its own
    asked = Turn(None, np.arange(2))
    rows = [[replace(solution(), turns=(asked, Turn("policy", np.arange(6) + i, text=f"{i}\nb\nc"))) for i in range(3000)]]
    run = Run(policy=None)

    def rates(**more):
        found = np.array(
            [[x for _, x in s.steps] for s in noisy_critiques(inner=truth(), miss=0.3, alarm=0.2, **more)(rows, run)[0]]
        )
        return found.mean(0)

    assert rates(votes=1) == pytest.approx([0.2, 0.7, 0.2], abs=0.03)
    # two or three of three: 3 * .04 * .8 + .008 = .104;  3 * .49 * .3 + .343 = .784
    assert rates(votes=3, agree="majority") == pytest.approx([0.104, 0.784, 0.104], abs=0.03)
    # both of two: .04 and .49
    assert rates(votes=2, agree="all") == pytest.approx([0.04, 0.49, 0.04], abs=0.03)
    assert noisy_critiques(inner=truth())([[solution("?")]], run)[0][0].missing
