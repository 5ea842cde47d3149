"""Whether someone is told that a method does nothing on rows that lack a column, or do not come again."""

from __future__ import annotations

import json

import pytest

from rewardlab import registry
from rewardlab.api.idle import few_visits, lacking, tell_idle
from rewardlab.api.inputs import task_of
from rewardlab.api.step_rewards import paid_by_number
from rewardlab.data.columns import Column, Data
from rewardlab.errors import RewardlabError
from rewardlab.registry.catalogue import data_of
from rewardlab.registry.formula import read_reward
from rewardlab.runs.config import RunConfig


@pytest.fixture
def rows(tmp_path):
    """A file with a hundred rows, of which ninety are trained on."""
    file, held = tmp_path / "rows.jsonl", tmp_path / "held.jsonl"
    lines = [json.dumps({"prompt": f"{i} + 1 = ?", "answer": str(i + 1)}) + "\n" for i in range(100)]
    file.write_text("".join(lines[:90]))
    held.write_text("".join(lines[90:]))
    return task_of(None, RunConfig(task=str(file), test=str(held)))


def test_rows_that_do_not_come_again_are_told_with_what_is_enough(rows):
    hapo = registry.build("hapo", {"problems": 8})
    told = few_visits(hapo, rows, RunConfig(steps=5))
    assert told == (
        "hapo compares right replies with earlier ones to the same prompt, and 5 updates of 8 prompts visit each of 90 rows "
        "0.44 times, where 2 are needed: take --steps 23 or more, or 20 rows or fewer"
    )
    # where not one row would be visited often enough, none is advised
    assert few_visits(hapo, rows, RunConfig(steps=1)).endswith("take --steps 23 or more, or 4 rows or fewer")
    assert few_visits(registry.build("hapo", {"problems": 1}), rows, RunConfig(steps=1)).endswith("take --steps 180 or more")
    # two visits each, and a little less
    assert few_visits(hapo, rows, RunConfig(steps=23)) == ""
    assert "90 rows 1.95 times" in few_visits(hapo, rows, RunConfig(steps=22))
    # within its first half it needs two epochs to compare
    limr = registry.build("limr", {"problems": 8})
    assert "where 4 are needed: take --steps 45 or more" in few_visits(limr, rows, RunConfig(steps=23))
    # a budget may last for any number of visits
    assert few_visits(hapo, rows, RunConfig(budget=1000)) == ""
    assert few_visits(registry.build("grpo"), rows, RunConfig(steps=5)) == ""


def test_a_task_that_makes_new_problems_is_told():
    task = registry.task("arithmetic")
    assert "arithmetic makes a new problem each time" in few_visits(registry.build("depo"), task, RunConfig(steps=5))


def test_a_stack_tells_of_its_members(rows):
    assert data_of("dapo+hapo").again == data_of("hapo").again
    assert "to the same prompt, and 5 updates" in few_visits(registry.build("dapo+hapo"), rows, RunConfig(steps=5))


def rows_with(folder, **of_the_first):
    file = folder / "own.jsonl"
    rows = [{"prompt": f"{i} + 1 = ?", "answer": str(i + 1)} for i in range(20)]
    file.write_text("".join(json.dumps(row | (of_the_first if i == 0 else {})) + "\n" for i, row in enumerate(rows)))
    # others are held out, so that the first is trained on
    held = folder / "held.jsonl"
    held.write_text(json.dumps({"prompt": "2 + 2 = ?", "answer": "4"}) + "\n")
    return task_of(None, RunConfig(task=str(file), test=str(held)))


def test_columns_without_which_a_method_is_another_are_told(tmp_path):
    guide = registry.build("guide_grpo")
    assert lacking(guide, rows_with(tmp_path)) == [
        "no row of own to train on has hint or solution, so that guide_grpo gives no group a hint"
    ]
    # one of them is enough, in one row; an empty one is none
    assert lacking(guide, rows_with(tmp_path, solution="count on")) == []
    assert lacking(guide, rows_with(tmp_path, hint="  "))
    assert lacking(registry.build("search_r2"), rows_with(tmp_path, supporting=[]))
    assert lacking(registry.build("grpo"), rows_with(tmp_path)) == []
    # a task that makes its problems has them or not, as its method's check knows
    assert lacking(guide, registry.task("arithmetic")) == []


def test_a_column_of_another_name_is_looked_for_and_stacks_tell_of_their_members(tmp_path):
    told = lacking(registry.build("search_r2", {"column": "documents"}), rows_with(tmp_path, supporting=["a text"]))
    assert "has documents, so that search_r2 does not pay" in told[0]
    tips = rows_with(tmp_path, tips="count on", metadata={"type": "bridge"})
    assert lacking(registry.build("guide_grpo", {"column": "tips"}), tips) == []
    assert lacking(registry.build("parallelsearch", {"column": "metadata.type"}), tips) == []
    # what the column is for is switched off
    assert lacking(registry.build("search_r2", {"useful": 0.0}), tips) == []
    assert data_of("dapo+guide_grpo").idle == data_of("guide_grpo").idle
    assert "dapo+guide_grpo gives no group a hint" in lacking(registry.build("dapo+guide_grpo"), rows_with(tmp_path))[0]


def test_it_is_told_in_the_plan(tmp_path, capfd):
    task = rows_with(tmp_path)
    tell_idle(registry.build("guide_grpo"), task, RunConfig(steps=5))
    assert "warning: no row of own to train on has hint or solution" in capfd.readouterr().err


def test_idle_names_columns_that_are_described():
    with pytest.raises(RewardlabError, match="idle names hints, which is no column"):
        Data(answer="gold", hint=Column("a hint", optional=True), idle={"hints": "does nothing"})


CLIPPED = 'correct() + prm_steps(model="prm:x", clip=0.5)'


@pytest.mark.parametrize("method", ["grpo", "rloo", "dr_grpo", "gdpo"])
def test_credit_that_pays_for_the_number_of_steps_is_told_with_the_way_out(method):
    told = paid_by_number(registry.build(method).scored_by(read_reward(CLIPPED)))
    assert told.startswith(f"the reward pays single steps (prm_steps), and the credit of {method} (")
    assert "the method reward_to_go is GRPO with these" in told


@pytest.mark.parametrize("method", ["reward_to_go", "dapo+reward_to_go", "ppo", "reinforce_plus_plus"])
def test_returns_less_one_number_are_not_told(method):
    assert paid_by_number(registry.build(method).scored_by(read_reward(CLIPPED))) == ""


def test_rewards_that_pay_no_step_and_a_methods_own_steps_are_not_told():
    grpo = registry.build("grpo")
    for written in ("correct()", 'prm_score(model="prm:x")', 'aggregate(prm_steps(model="prm:x"), by="min")'):
        assert paid_by_number(grpo.scored_by(read_reward(written))) == ""
    # a gate and a named reward are terms of their own
    assert "(correct>>prm_steps)" in paid_by_number(grpo.scored_by(read_reward('correct() >> prm_steps(model="prm:x")')))
    own = 'signed(prm_steps(model="prm:x")).named("correct_steps") + correct()'
    assert "(correct_steps)" in paid_by_number(grpo.scored_by(read_reward(own)))
    # PURE has a chain for steps of this name, which sums first
    assert paid_by_number(registry.build("pure_min_form").scored_by(read_reward(own))) == ""
    assert paid_by_number(registry.build("orcust")) == ""


def test_it_is_told_before_the_first_step(rows, capsys):
    tell_idle(registry.build("grpo").scored_by(read_reward(CLIPPED)), rows, RunConfig(steps=5))
    assert "warning: the reward pays single steps" in capsys.readouterr().err
