"""Planner-R1: schema, constraints one by one and by category, and passing, by stage."""

from __future__ import annotations

import json
import random
from dataclasses import replace

import numpy as np
import pytest
import torch

from rewardlab import registry
from rewardlab.core import Run, Trajectory, Turn, ask
from rewardlab.engine.collate import collate
from rewardlab.worlds.trips import RULES, read_plan

CONSTRAINTS = [
    {"category": "commonsense", "rule": "count", "value": 2},
    {"category": "commonsense", "rule": "as_listed", "field": "cost", "by": "city", "value": {"Rome": 4, "Oslo": 3}},
    {"category": "hard", "rule": "at_most", "field": "cost", "value": 7},
    {"category": "hard", "rule": "includes", "field": "city", "value": "Oslo"},
    {"category": "hard", "rule": "distinct", "field": "city"},
]
ROME, OSLO = {"city": "Rome", "cost": 4}, {"city": "Oslo", "cost": 3}
META = {"fields": {"city": "text", "cost": "number"}, "constraints": CONSTRAINTS}
PLANS = [[ROME, OSLO], [OSLO], [ROME, ROME], [{"city": "Oslo"}]]


def row(plan, tokens: int = 2, **meta) -> Trajectory:
    zeros = np.zeros(tokens, np.float32)
    turn = Turn("policy", np.zeros(tokens, np.int64), zeros, zeros, plan if isinstance(plan, str) else json.dumps(plan))
    return Trajectory(ask("Plan", **{**META, **meta}), (turn,), "end")


def totals(stages: str, progress: float = 0.0) -> list[float | None]:
    run = replace(Run(policy=None, steps=300), step=int(300 * progress))
    (scores,) = registry.build("planner_r1", {"stages": stages}).reward([[row(plan) for plan in PLANS]], run)
    return [score.total for score in scores]


# passes: 2 + 2 + 1.   one day short: common sense 1/2, 0; hard 1, 1.   Rome twice, 8 in all: common sense 1, 1; hard: none of
# three.   no cost: no plan at all
def test_the_terms_by_stage():
    assert totals("dense") == pytest.approx([5, 2.5, 2, 0])
    assert totals("category") == pytest.approx([3, 1, 1, 0])
    assert totals("sparse") == pytest.approx([1, 0, 0, 0])


def test_a_plan_of_the_schema_that_keeps_nothing_earns_nothing():
    # too short, of no listed price, too dear, and without Oslo
    broken = row([{"city": "Rome", "cost": 9}], constraints=CONSTRAINTS[:4])
    assert [s.total for s in registry.build("planner_r1").reward([[broken]], Run(policy=None))[0]] == [0]


# 100, 300 and 100 of 500 steps
def test_the_curriculum_goes_from_dense_to_category_to_sparse():
    assert [totals("curriculum", p) for p in (0.0, 0.19)] == [pytest.approx([5, 2.5, 2, 0])] * 2
    assert [totals("curriculum", p) for p in (0.21, 0.79)] == [pytest.approx([3, 1, 1, 0])] * 2
    assert [totals("curriculum", p) for p in (0.81, 1.0)] == [pytest.approx([1, 0, 0, 0])] * 2


def test_plans_that_all_fail_are_told_apart_and_a_problem_without_constraints_gets_no_credit():
    recipe, run = registry.build("planner_r1"), Run(policy=None)
    group = [row(PLANS[1]), row(PLANS[2], tokens=3), row(PLANS[1], constraints=[{"category": "hard", "rule": "no such"}])]
    batch = collate([group], recipe.reward([group], run), torch.device("cpu"))
    credit = recipe.credit(batch.reward, batch, run)
    # 2.5 and 2: +-.25 from the mean, std .35355; .25 / (.35355 + 1e-4) = .70691
    assert credit[:, 0].tolist() == pytest.approx([0.70691, -0.70691, 0], abs=1e-4)
    sparse = registry.build("planner_r1", {"stages": "sparse"})
    batch = collate([group[:2]], sparse.reward([group[:2]], run), torch.device("cpu"))
    assert not sparse.credit(batch.reward, batch, run).any()


@pytest.mark.parametrize(
    ("meta", "why"),
    [
        ({"constraints": [{"category": "Hard", "rule": "count", "value": 9}]}, "commonsense, hard, not 'Hard'"),
        ({"constraints": [{"category": "hard", "rule": "no such"}]}, "not 'no such'"),
        ({"constraints": [{"category": "hard", "rule": "at_most", "field": "price", "value": 9}]}, "'price', which is none of the"),
        ({"fields": {"city": "text", "cost": "int"}}, "'cost' is of no known kind"),
        ({"constraints": [{"rule": "count", "value": 9}]}, "cannot be used"),
        ({"fields": None}, "no columns `fields`"),
    ],
)
def test_columns_that_cannot_be_used_give_no_verdict_whatever_the_reply(meta, why):
    # a category that nobody checks would let every plan pass
    rows = [row(PLANS[0], **meta), row("no plan at all", **meta)]
    for part in registry.build("planner_r1").reward.walk():
        if part.name.startswith("plan_"):
            (scores,) = part([rows], Run(policy=None))
            assert [s.total for s in scores] == [None, None]
            assert all(why in s.why for s in scores)


def test_plans_are_read_strictly():
    fields = META["fields"]
    assert read_plan(f"<think>hm</think>```json\n{json.dumps([ROME])}\n```", fields) == [ROME]
    for broken in ([], [{**ROME, "day": 1}], [{"city": "Rome", "cost": "4"}], [{"city": "Rome", "cost": True}], ROME, "Rome"):
        assert read_plan(json.dumps(broken), fields) is None


@pytest.mark.parametrize(
    "reply", ["Enjoy!\n<answer>\n{}\n</answer>", "My plan:\n```\n{}\n```\nEnjoy!", "<answer>```json\n{}\n```</answer>"]
)
def test_plans_are_read_out_of_a_reply_that_says_more(reply):
    assert read_plan(reply.format(json.dumps([ROME])), META["fields"]) == [ROME]


def test_columns_may_be_json_as_tables_hold_them():
    passes = registry.part("reward", "plan_passes")
    columns = {name: json.dumps(column) for name, column in META.items()}
    z = np.zeros(1, np.float32)
    for text, value in ((json.dumps([ROME, OSLO]), 1.0), (json.dumps([OSLO]), 0.0)):
        turns = (Turn(None, np.zeros(1, np.int64)), Turn("policy", np.zeros(1, np.int64), z, z, text))
        assert passes([[Trajectory(ask("Where?", **columns), turns, "end")]], Run(None))[0][0].value == value


def test_rules():
    plan = [{"by": "bus"}, {"by": "ship"}]
    assert RULES["among"](plan, {"field": "by", "value": ["bus", "ship"]})
    assert not RULES["among"](plan, {"field": "by", "value": ["bus"]})
    assert not RULES["excludes"](plan, {"field": "by", "value": "bus"})
    assert RULES["excludes"](plan, {"field": "by", "value": "train"})


def test_the_gold_trips_pass_and_the_teachers_often_do_not():
    task = registry.task("trips", test_size=40, biased=1.0, error=0.0)
    passes = registry.part("reward", "plan_passes")

    def said(problem, text):
        return Trajectory(problem, (Turn("policy", np.zeros(1, np.int64), text=text),), "end")

    rows = [[said(p, p.meta["solution"]), said(p, task.demonstrate(p, random.Random(0)))] for p in task.test]
    scores = passes(rows)
    assert all(gold.value == 1 for gold, _ in scores)
    assert sum(careless.value for _, careless in scores) < 10
