"""PPR: scores of turns, moved by the outcome."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from rewardlab import registry
from rewardlab.core import Run, Score, Trajectory, Turn, ask
from rewardlab.engine.collate import collate
from rewardlab.errors import RewardlabError
from rewardlab.methods.shaping.ppr_renorm import ppr_renorm, renorm
from rewardlab.rewards.algebra import rank
from rewardlab.rewards.reward import reward
from rewardlab.rewards.turns import each_turn, grounded


def episode(*replies: str, problem=None) -> Trajectory:
    """Replies of two tokens, each answered by one token; the environment says that it read the last word."""
    turns = [Turn(None, np.zeros(3, np.int64), text="Who is the boss of Ann?")]
    for i, text in enumerate(replies):
        turns += [Turn(None, np.zeros(1, np.int64), text="the boss of Ann is Bob")] if i else []
        turns.append(Turn("policy", np.zeros(2, np.int64), np.zeros(2, np.float32), np.zeros(2, np.float32), text))
    return Trajectory(problem or ask("Who is the boss of Ann?", "Bob"), tuple(turns), "end")


@reward
def told(trajectory):
    """The number that the reply begins with; "?" has none."""
    first = trajectory.reply.split()[0]
    return Score(None, why="the judge is down") if first == "?" else float(first)


@reward
def verify(trajectory):
    last = trajectory.reply.split()[-1]
    return Score(None, why="nobody knows") if last == "nobody" else float(last == trajectory.problem.answer)


def scores(*rows, **settings):
    recipe = ppr_renorm(judge=told(), **settings)
    return recipe.reward([list(rows)], Run(policy=None, verify=verify()))[0]


def test_turns_of_a_failed_episode_earn_nothing_and_those_of_a_right_one_what_they_are_worth():
    # replies end at positions 4, 7 and 10
    right, wrong = scores(episode(".2 x", "1 x", ".5 Bob"), episode("1 x", "1 x", ".5 Dee"))
    assert right.steps == ((4, pytest.approx(0.2)), (7, pytest.approx(1.0)), (10, pytest.approx(0.5)))
    assert wrong.steps == ((4, pytest.approx(0.0)), (7, pytest.approx(0.0)), (10, pytest.approx(-0.5)))
    assert (right.value, wrong.value) == (1, 0)
    # what the judge said is logged as it was: means of .2 1 .5 and 1 1 .5
    logged = [(s.terms["process"].value, s.terms["outcome"].value, s.terms["process"].weight) for s in (right, wrong)]
    assert logged == [(pytest.approx(1.7 / 3), 1, None), (pytest.approx(2.5 / 3), 0, None)]


def test_the_raw_sum_prefers_the_failed_episode_and_renorm_does_not():
    rows = episode(".2 x", ".2 Bob"), episode("1 x", "1 x", "1 Dee")
    assert [s.total for s in scores(*rows)] == pytest.approx([1.4, 0])
    assert [s.total for s in scores(*rows, center="none")] == pytest.approx([1.4, 3])
    # each less .2 and more 1, twice, and 1;   each less 1
    assert [s.total for s in scores(*rows, center="trajectory")] == pytest.approx([3, 0])


def test_by_hand():
    assert renorm([0.5, 1.0], 0.0) == [-0.5, 0.0]
    assert renorm([0.5, 1.0], 1.0, "trajectory") == [0.75, 1.25]
    assert (renorm([], 1.0, "trajectory"), renorm([], 1.0)) == ([], [])


def test_no_verdict_of_the_judge_or_of_the_verifier_is_none_of_the_episode():
    found = scores(episode("? x", "1 Bob"), episode("1 x", "1 nobody"), episode("1 Bob"))
    assert [s.total for s in found] == [None, None, 2]
    assert "the judge is down" in found[0].why


def test_the_credit_of_turns_in_a_group():
    group = [episode("0 x", "1 Bob"), episode("1 x", "1 Dee")]
    recipe, run = registry.build("grpo+ppr_renorm"), Run(policy=None, verify=verify())
    paid = recipe.reward.but(process=each_turn(inner=told()))
    batch = collate([group], paid([group], run), torch.device("cpu"))
    credit = recipe.credit(batch.reward, batch, run)
    # events 0, 1 + 1, 0, 0: mean 1/2, deviation 1; of the first row -1/2 and 3/2, so 1 from the start; of the second -1/2 twice
    assert credit[0, [3, 4, 6, 7]].tolist() == pytest.approx([1, 1, 1.5, 1.5], abs=1e-3)
    assert credit[1, [3, 4, 6, 7]].tolist() == pytest.approx([-1, -1, -0.5, -0.5], abs=1e-3)


def test_a_reward_that_compares_replies_cannot_judge_turns():
    with pytest.raises(RewardlabError, match="compares replies"):
        each_turn(inner=rank(told()))([[episode("1 Bob")]], Run(policy=None))


def test_grounded_names_were_read_before_the_reply():
    seen = episode("Search: Ann boss", "<think><seen>the boss of Ann is Bob</seen></think>\nSearch: Bob boss", "Answer: Bob")
    made_up = episode("Search: Ann boss", "<think><seen>the boss of Ann is Zoe</seen></think>\nSearch: Bob 7")
    found = each_turn(inner=grounded())([[seen, made_up]], Run(policy=None))[0]
    assert [[r for _, r in s.steps] for s in found] == [[1, 1, 1], [1, 0]]
    # what one said oneself was not read
    assert grounded()([[episode("I say Zoe", "it is Zoe")]], None)[0][0].value == 0


def test_it_plays_as_its_base_does():
    assert registry.build("igpo+ppr_renorm").rollout == registry.build("igpo").rollout
    assert registry.build("grpo+ppr_renorm").rows_per_problem == 8
    assert [x.name for x in registry.build("ppr_renorm").also] == ["critic"]
