"""Critiques of many solutions of one problem."""

from __future__ import annotations

import pytest

from rewardlab import registry
from rewardlab.errors import RewardlabError
from rewardlab.models.embedded import tokenizer
from rewardlab.worlds.critiques import criticised


def test_each_step_is_read_and_a_wrong_one_put_right():
    critique = criticised(["7+5=13", "13*3=39"], ["7+5=12", "13*3=39"], "Answer: 39")
    assert critique.splitlines() == ["7+5=13 no 7+5=12", "13*3=39", "Answer: 39", "Conclusion: wrong"]


def test_of_a_right_solution_nothing_is_corrected():
    steps = ["7+5=12", "12*3=36"]
    assert criticised(steps, steps, "Answer: 36").splitlines() == [*steps, "Answer: 36", "Conclusion: right"]


def test_rows_are_of_one_problem_and_all_different():
    task = registry.task("critiques", solutions=40, test_size=20)
    rows = [task.train[i] for i in range(40)]
    assert len(task.train) == 40
    assert len({p.key for p in rows}) == 1
    assert len({p.meta["candidate"] for p in rows}) == len({p.meta["critique"] for p in rows}) == 40
    right = [p.meta["candidate"] == p.meta["solution"] for p in rows]
    assert right == ["Conclusion: right" in p.meta["critique"] for p in rows]
    assert max(len(tokenizer().encode(p.meta["critique"])) for p in rows) < task.max_new
    assert sum(right) == 1
    assert rows[0].key not in {p.key for p in task.test}
    # an epoch later the same rows, in another order
    assert {task.train[40 + i].meta["candidate"] for i in range(40)} == {p.meta["candidate"] for p in rows}


def test_it_is_played_by_the_policy_of_arithmetic():
    task = registry.task("critiques", test_size=5)
    assert task.warmed_as == "arithmetic:biased=0.75,error=0.1"
    other = registry.task("critiques", problem=1, test_size=5)
    assert other.train[0].question != task.train[0].question
    assert [p.key for p in other.test] == [p.key for p in task.test]


def test_a_problem_that_nobody_gets_wrong_is_refused(monkeypatch):
    monkeypatch.setattr("rewardlab.worlds.critiques.WRITERS", ((0.0, 0.0),))
    with pytest.raises(RewardlabError, match="choose another problem"):
        registry.task("critiques", test_size=5)
