"""Reasoning-SQL: what a wrong query earns for being nearly right, and that it is never as much as a right one."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from rewardlab import registry
from rewardlab.core import Run, Trajectory, Turn, ask
from rewardlab.engine.collate import collate
from rewardlab.methods.verifiers.reasoning_sql import of_failures
from rewardlab.rewards.reward import reward

GOLD = {
    "query": "SELECT name FROM pets WHERE age > 3",
    "database": "CREATE TABLE pets (name TEXT, age INTEGER, weight INTEGER); INSERT INTO pets VALUES ('Ada', 2, 9), ('Bo', 5, 1);",
}


def said(text: str, answer=GOLD, length: int = 3) -> Trajectory:
    zeros = np.zeros(length, np.float32)
    turns = (Turn(None, np.zeros(2, np.int64)), Turn("policy", np.zeros(length, np.int64), zeros, zeros, text))
    return Trajectory(ask("Who?", answer), turns, "end")


def run() -> Run:
    return Run(None, verify=registry.part("reward", "sql"))


# the gold query has 8 tokens and 7 bigrams, and names the table pets and the columns name and age
#   weight for age: runs; linking {pets, name} of {pets, name, age, weight} 2/4; bigrams where-weight, weight-> are new:
#     5 shared of 9
#   no such column: does not run; linking {pets, name} of {pets, name, age, size} 2/4; ngrams 5/9
#   a text that is no query: nothing
NEAR, UNKNOWN, NOTHING = 1 + 2 / 4 + 5 / 9, 2 / 4 + 5 / 9, 0.0
GROUP = [GOLD["query"], "SELECT name FROM pets WHERE weight > 3", "SELECT name FROM pets WHERE size > 3", "Ada"]


def test_what_wrong_queries_earn_by_hand():
    totals = [s.total for s in registry.build("reasoning_sql").reward([[said(text) for text in GROUP]], run())[0]]
    assert totals == pytest.approx([3 + 1 + 1 + 1, NEAR, UNKNOWN, NOTHING])


def test_a_right_query_is_worth_more_than_all_that_a_wrong_one_can_earn():
    # wrong, and alike in everything else, with a judge that is content
    @reward
    def content(trajectory):
        return 1.0

    recipe = registry.build("reasoning_sql").but()
    judged = recipe.but(reward=recipe.reward + 2 * of_failures(inner=content()).named("judge")).reward
    right, wrong = (s.total for s in judged([[said(GOLD["query"]), said("SELECT name FROM pets WHERE age < 3")]], run())[0])
    # bigrams "age <" and "< 3" for "age >" and "> 3": 5 of 9
    assert (right, wrong) == pytest.approx((6.0, 1 + 1 + 5 / 9 + 2))
    assert 3 + 1 + 1 + 1 > 1 + 1 + 1 + 2


def test_a_judge_is_asked_about_wrong_queries_alone():
    seen = []

    @reward
    def judge(trajectory):
        seen.append(trajectory.reply)
        return 0.25

    group = [said(GROUP[0]), said(GROUP[1]), said(GROUP[0], {"query": "SELECT nothing", "database": GOLD["database"]})]
    scores = of_failures(inner=judge())([group, [said(GROUP[0])]], run())
    assert [[s.total for s in row] for row in scores] == [[0.0, 0.25, None], [0.0]]
    assert seen == [GROUP[1]]


def test_a_judge_over_groups_is_given_no_group_in_which_nothing_is_wrong():
    @reward(over="groups")
    def judge(groups):
        assert all(groups)
        return [[0.25 for _ in group] for group in groups]

    wrong, right = said(GROUP[1]), said(GROUP[0])
    scores = of_failures(inner=judge())([[right], [wrong, right], [right], [wrong]], run())
    assert [[s.total for s in row] for row in scores] == [[0.0], [0.25, 0.0], [0.0], [0.25]]


def test_the_credit_of_a_group_without_a_right_query():
    recipe, r = registry.build("reasoning_sql"), run()
    group = [said(GROUP[1], length=2), said(GROUP[2], length=5), said("Ada", length=1)]
    batch = collate([group], recipe.reward([group], r), torch.device("cpu"))
    rewards = np.array([NEAR, UNKNOWN, NOTHING])
    expected = torch.tensor((rewards - rewards.mean()) / (rewards.std(ddof=1) + 1e-4))[:, None] * batch.mask
    assert torch.allclose(recipe.credit(batch.reward, batch, r).double(), expected, atol=1e-4)
    # being right alone gives this group nothing
    alone = registry.build("grpo")
    batch = collate([group], alone.reward([group], r), torch.device("cpu"))
    assert not alone.credit(batch.reward, batch, r).any()


def test_without_a_verdict_there_is_no_reward_and_no_credit():
    scores = registry.build("reasoning_sql").reward(
        [[said("SELECT 1", {"query": "SELECT x FROM none", "database": "nowhere"})]], run()
    )
    assert scores[0][0].total is None


def test_a_form_is_asked_for_where_it_is_given():
    reward_of = registry.build("reasoning_sql", {"form": r"```sql.+```"}).reward
    fenced, bare = (s.total for s in reward_of([[said(f"```sql\n{GROUP[0]}\n```"), said(GROUP[0])]], run())[0])
    assert (fenced, bare) == pytest.approx((7.0, 6.0))


def test_the_rewards_of_a_base_stay():
    assert str(registry.build("hapo+reasoning_sql").reward).startswith("3 * (correct() + 1 * shorter_than_before()")
