"""Whether someone is told that a method does nothing on rows that do not come again."""

from __future__ import annotations

import json

import pytest

from rewardlab import registry
from rewardlab.api.inputs import task_of
from rewardlab.api.visits import few_visits
from rewardlab.registry.catalogue import data_of
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
