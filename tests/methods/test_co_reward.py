"""Co-Reward: groups of replies to a question and to its rewrite, each paid by the other's majority; a world of two wordings."""

from __future__ import annotations

import random

import numpy as np
import pytest
import torch
from rows import Replies

from rewardlab import registry
from rewardlab.core import Run, Trajectory, Turn, ask
from rewardlab.engine.collate import collate
from rewardlab.errors import RewardlabError
from rewardlab.evals.groups import told_apart
from rewardlab.methods.intrinsic.co_reward import with_majority, with_rewrites
from rewardlab.rewards.reward import reward
from rewardlab.rollouts.independent import independent
from rewardlab.worlds.wordings import wordings

PROBLEMS = [ask("Half of 6?", "3", rewrite="6 by 2?"), ask("1+1?", "2", rewrite="Twice 1?")]


def sampled(*replies: str, problems=PROBLEMS, n: int = 3):
    """Groups of n: the first problem, its rewrite, the second problem, its rewrite."""
    return with_rewrites(inner=independent(n=n))(problems, Run(Replies(replies)))


def totals(groups, **settings):
    return [[s.total for s in row] for row in with_majority(**settings)(groups, None)]


def test_each_question_is_asked_in_both_wordings():
    groups = sampled(*"abcdefghijkl")
    assert [{t.problem.question for t in group} for group in groups] == [{"Half of 6?"}, {"6 by 2?"}, {"1+1?"}, {"Twice 1?"}]
    assert [t.reply for t in groups[1]] == ["d", "e", "f"]
    # the answer stays, for reports
    assert [group[0].problem.answer for group in groups] == ["3", "3", "2", "2"]


def test_each_group_is_paid_by_the_majority_of_the_other():
    # to the question 4 4 3, to its rewrite 3 3 4: the labels are 3 and 4
    groups = sampled("4", "4.0", "3", "3", "3", "4", "2", "2", "2", "2", "6", "7")
    assert totals(groups) == [[0, 0, 1], [0, 0, 1], [1, 1, 1], [1, 0, 0]]
    assert totals(groups, voters="own") == [[1, 1, 0], [1, 1, 0], [1, 1, 1], [1, 0, 0]]


def test_of_equally_frequent_answers_the_first_counts_and_silence_does_not_vote():
    groups = sampled("", "9", "3", "3", "9", "", problems=PROBLEMS[:1])
    # to the question 9 and 3 once each: 9 is the label of the rewrite; there 3 and 9: the label of the question is 3
    assert totals(groups) == [[0, 0, 1], [0, 1, 0]]


def test_without_voters_there_is_no_verdict():
    silent = sampled("3", "3", "4", "", "", "", problems=PROBLEMS[:1])
    assert totals(silent) == [[None, None, None], [0, 0, 0]]
    # a group whose other wording was dropped
    assert totals(sampled("3", "3", "4", "3", "3", "3", problems=PROBLEMS[:1])[:1]) == [[None] * 3]
    assert totals([[]]) == [[]]


def test_a_problem_that_comes_twice_is_judged_by_all_replies_to_its_rewrite():
    groups = sampled("3", "4", "3", "4", "4", "3", "4", "4", problems=PROBLEMS[:1] * 2, n=2)
    # to the rewrite 3 4 and 4 4
    assert totals(groups) == [[0, 1], [1, 0], [1, 0], [0, 0]]


def test_a_missing_rewrite_is_said():
    with pytest.raises(RewardlabError, match="no text 'rewrite', its question reworded; it has: rewritten"):
        sampled("1", "2", problems=[ask("1?", "1", rewritten="1!")])


class Tokens(Replies):
    def extend(self, trajectories, sampling, rng):
        turns = [
            Turn("policy", np.zeros(2, np.int64), np.zeros(2, np.float32), np.zeros(2, np.float32), text) for text in self.replies
        ]
        return [t.plus(turn, "end") for t, turn in zip(trajectories, turns, strict=True)]


def test_the_credit_is_normalised_within_each_of_the_two_groups():
    recipe = registry.build("co_reward", {"n": 2})
    run = Run(Tokens(["4", "3", "3", "3"]))
    groups = recipe.rollout(PROBLEMS[:1], run)
    batch = collate(groups, recipe.reward(groups, run), torch.device("cpu"))
    credit = recipe.credit(batch.reward, batch, run)
    # to the question 0 and 1: mean 1/2, deviation .7071; to the rewrite the label is 4, the first of two: all 0
    z = 0.5 / (0.5**0.5 + 1e-4)
    assert credit[:, -1].tolist() == pytest.approx([-z, z, 0, 0], abs=1e-6)


def test_the_kl_is_that_of_the_released_script():
    assert "0.005 * kl_to_reference()" in str(registry.build("co_reward").objective)


# ---- the world -------------------------------------------------------------------------------------------------------

TASK = wordings(test_size=100)


def test_both_wordings_tell_the_same_chain():
    task = wordings(difficulty=2, test_size=1)
    (problem,) = task.test
    said = {problem.question, problem.meta["rewrite"]}
    (chain,), (story,) = ([s for s in said if s.startswith("Begin") is begins] for begins in (True, False))
    numbers = [[word.rstrip(".") for word in text.split() if word.rstrip(".").isdigit()] for text in (chain, story)]
    assert numbers[0] == numbers[1]
    assert len(numbers[0]) == 3
    assert {p.question.startswith("Begin") for p in TASK.test} == {True, False}


def test_the_teacher_makes_other_mistakes_in_each_wording():
    problem = ask("Begin with 12. Subtract 5. Add 4. Multiply by 4.", "44", steps=["12-5=7", "7+4=11", "11*4=44"])
    always = wordings(biased=1.0, error=0.0, test_size=1).demonstrate
    # a list: no borrowing, 12-5=17
    assert always(problem, random.Random(0)) == "12-5=17\n17+4=21\n21*4=84\nAnswer: 84"
    # a story: no carry, 7+4=1, and 4 times as 3 times
    told = problem.reworded("Ann has 12 coins. Loses 5. Finds 4. Makes it 4 times as many.")
    assert always(told, random.Random(0)) == "12-5=7\n7+4=1\n1*4=3\nAnswer: 3"
    assert wordings(biased=0.0, error=0.0, test_size=1).demonstrate(told, random.Random(0)).endswith("Answer: 44")


@pytest.mark.parametrize("options", [{"biased": 2.0}, {"error": -1.0}, {"told": "song"}, {"difficulty": 0}])
def test_settings_outside_their_range_are_refused(options):
    with pytest.raises(RewardlabError):
        wordings(**options)


@reward
def verify(trajectory):
    return float(trajectory.reply == trajectory.problem.answer)


class Careless(Replies):
    """Says what the teacher says in the wording that it reads."""

    def extend(self, trajectories: list[Trajectory], sampling, rng):
        said = [TASK.demonstrate(t.problem, random.Random(i)).rpartition(" ")[2] for i, t in enumerate(trajectories)]
        return [t.plus(Turn("policy", np.zeros(1, np.int64), text=text), "end") for t, text in zip(trajectories, said, strict=True)]


@pytest.mark.slow
def test_in_the_world_the_other_majority_tells_right_from_wrong_better_than_the_own_one():
    paid = with_majority().named("other") + with_majority(voters="own").named("own")
    measured = told_apart(reward=paid, truth=verify(), rollout=with_rewrites(inner=independent(n=8)))
    found = measured(TASK.test, Run(Careless([])))
    assert found["agreement.other"] > found["agreement.own"] + 0.1
    assert found["agreement.own"] < 0.8
