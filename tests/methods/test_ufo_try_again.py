"""UFO: several tries at a question, after each wrong one "try again"."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from rewardlab import registry
from rewardlab.core import Run, Score, Trajectory, Turn, ask, rollout
from rewardlab.engine.collate import collate
from rewardlab.envs.try_again import TOLD, try_again
from rewardlab.errors import RewardlabError
from rewardlab.methods.agents.ufo_try_again import (
    COPIES,
    answers_in,
    chances,
    exactly,
    most_spread,
    repeated_answers,
    tries,
    ufo_try_again,
    without_answer,
)
from rewardlab.rewards.reward import reward
from rewardlab.rollouts.interactive import interactive
from tests.helpers.scripted import ScriptedPolicy

PROMPT = ask("How many?", "6")


@reward
def verify(trajectory):
    text = trajectory.reply
    return Score(None, why="no verdict") if "?" in text else float("6" in text)


def episode(*replies: str) -> Trajectory:
    turns = [Turn(None, np.zeros(2, np.int64))]
    for i, text in enumerate(replies):
        turns += [Turn(None, np.zeros(1, np.int64), text=TOLD)] if i else []
        zeros = np.zeros(2, np.float32)
        turns.append(Turn("policy", np.zeros(2, np.int64), zeros, zeros, text))
    return Trajectory(PROMPT, tuple(turns), "end")


def totals(group, **settings):
    run = Run(policy=None, verify=verify())
    return [s.total for s in ufo_try_again(**settings).reward([group], run)[0]]


def test_rewards_by_hand():
    group = [
        episode("Answer: 6"),  # 1
        episode("Answer: 4", "Answer: 5", "Answer: 6"),  # 1/4
        episode("Answer: 4", "answer:  4", "Answer: 6"),  # 1/4 - (1 - 2/3)
        episode("Answer: 4", "Answer: 4", "Answer: 4"),  # 0 - (1 - 1/3)
        episode("<answer></answer>", "Answer: 6"),  # 1/2 - 1/10: one answer of one is different
        episode("Answer: 4", "?"),  # no verdict
    ]
    assert totals(group) == [1, 0.25, pytest.approx(0.25 - 1 / 3), pytest.approx(-2 / 3), pytest.approx(0.4), None]
    assert totals(group[1:4], gamma=1.0, repetition=0.0) == [1, 1, 0]
    assert totals(group[1:4], gamma=0.5, repetition=0.3) == [0.25, pytest.approx(0.15), pytest.approx(-0.2)]


def test_answers_are_read_in_replies_of_real_models():
    reply = "<think>2 more than 4, is that 6?</think>Let me see.\n\nThe answer is \\boxed{ 1 / 2 }."
    said = answers_in(episode(reply, "We try again. <answer> 1/2 </answer>", "```sql\nSELECT A\n```", "So:\n```sql\nselect a\n```"))
    assert said == ["1/2", "1/2", "selecta", "selecta"]
    ((score,),) = repeated_answers()([[episode("Answer: 1", "Answer: 1", "Answer: 2", "Answer: 1")]])
    assert score.value == 0.5
    # words around it would make every answer another one: without a mark there is none, which costs `eta`
    free = episode("Counting gives 5 primes.", "Counting again, I get 5 primes.")
    assert [r([[free]])[0][0].value for r in (repeated_answers(), without_answer())] == [0.0, 2.0]
    assert repeated_answers()([[Trajectory(PROMPT)]])[0][0].value == 0.0


def test_the_credit_of_all_tries_is_what_the_episode_earns():
    recipe, run = ufo_try_again(), Run(policy=None, verify=verify())
    group = [episode("Answer: 6"), episode("Answer: 4", "Answer: 6")]
    batch = collate([group], recipe.reward([group], run), torch.device("cpu"))
    batch.columns["value"], batch.columns["ref"] = torch.zeros_like(batch.reward), batch.old.clone()
    credit = recipe.credit(batch.reward, batch, run)
    # returns 1 at 2 tokens and 1/2 at 4: mean 2/3, variance (2 * 1/9 + 4 * 1/36) / 5 unbiased or / 6
    assert batch.reward.sum(1).tolist() == [1, 0.5]
    assert credit[0, 2] > 0 > credit[1, 2]
    assert torch.allclose(credit[1][batch.mask[1]], credit[1, 2].expand(4))
    assert credit[0, 2] == pytest.approx(-2 * float(credit[1, 2]), rel=1e-3)


def test_the_environment_says_only_that_it_was_wrong_and_ends_when_it_was_right():
    said = {"": ["4", "6", "4", "5?"], "4": ["6", "4"], "44": ["4"]}
    policy = ScriptedPolicy(lambda t: said["".join(t.replies)])
    run = Run(policy, verify=verify(), max_new=10)
    (group,) = interactive(env=try_again(), n=4, turns=3)([PROMPT], run)
    assert [t.replies for t in group] == [["4", "6"], ["6"], ["4", "4", "4"], ["5?"]]
    # the last "try again" is read by nobody
    assert [t.stop for t in group] == ["end", "end", "turns", "end"]
    with pytest.raises(RewardlabError, match="verifier is needed"):
        interactive(env=try_again(), n=1)([PROMPT], Run(policy, max_new=10))


def test_what_it_is_measured_by():
    said = {
        "": ["4", "6", "4", "4"],
        "4": ["6", "4", "4"],
        "44": ["4", "5"],
        "444": ["4"],
        "445": ["4"],
        "4444": ["4"],
        "4454": ["6"],
    }
    policy = ScriptedPolicy(lambda t: [f"Answer: {x}" for x in said["".join(t.replies).replace("Answer: ", "")]])
    found = tries(rollout=interactive(env=try_again(), n=4, turns=5))([PROMPT], Run(policy, verify=verify(), max_new=10))
    # 4 6 | 6 | 4 4 4 4 4 | 4 4 5 4 6: later answers are 6, 4 4 4 4, 4 5 4 6, of which 4 and 2 repeat
    assert found["success"] == 0.75
    assert found["pass@1"] == 0.25
    assert found["repeated"] == pytest.approx(6 / 9)
    assert found["turns"] == 13 / 4


def test_groups_whose_rewards_differ_most_are_kept():
    @reward
    def by_length(trajectory):
        return float(len(trajectory.replies))

    groups = [
        [episode("1"), episode("1")],
        [episode("1"), episode("1", "2")],
        [episode("1"), episode("1", "2", "3")],
        [episode("1")],
    ]

    @rollout
    def given(problems, run):
        return groups

    run = Run(policy=None)
    assert most_spread(inner=given(), by=by_length(), share=0.5)([], run) == [groups[1], groups[2]]
    assert most_spread(inner=given(), by=by_length(), share=0.1)([], run) == [groups[2]]


def test_exact_chances_of_the_policy_of_the_check():
    even = torch.tensor([0.0, 0, 0, 0, -50], dtype=torch.float64)
    # without repeats four tries find each of four answers; 3 of 4 first answers are wrong, 2 of 3 seconds, 1 of 2 thirds
    solved, later, again = exactly(even, 0)
    assert solved == pytest.approx(1)
    assert later == pytest.approx(3 / 4 + 2 / 4 + 1 / 4)
    assert again == pytest.approx(0, abs=1e-9)
    stuck = torch.tensor([0.0, 0, 0, 0, 50], dtype=torch.float64)
    assert exactly(stuck, 0) == pytest.approx((1 / 4, 3, 3))
    copying = torch.tensor([0.0, 0, 0, 0, COPIES], dtype=torch.float64)
    e = float(np.exp(COPIES))
    assert chances(copying, (2,)).exp().tolist() == pytest.approx([1 / (3 + e), 1 / (3 + e), e / (3 + e), 1 / (3 + e)])


def test_it_learns_from_the_groups_that_differ_most_unless_told_otherwise():
    recipe = registry.build("ufo_try_again")
    assert str(recipe.rollout).startswith("most_spread(inner=interactive(env=try_again(), n=16, turns=5)")
    assert recipe.update.problems == 8
    assert str(ufo_try_again(share=1.0).rollout) == "interactive(env=try_again(), n=16, turns=5)"
    assert "correct() * earlier_is_better" in str(ufo_try_again(registry.build("ppo")).reward)
