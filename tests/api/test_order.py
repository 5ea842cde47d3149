"""The seed of a run orders the rows it trains on, so that two runs of a method which samples nothing differ.

A resumed run keeps its order, also one that was begun when every seed had the same."""

from __future__ import annotations

import json

import pytest

from rewardlab import registry
from rewardlab.api import resume, train
from rewardlab.api.inputs import task_of
from rewardlab.core import Task, ask
from rewardlab.runs.config import RunConfig


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(json.dumps({"prompt": f"say {i}", "solution": f"{i}", "answer": f"{i}"}) + "\n" for i in range(40)))
    return path


def first(task, n=12):
    return [task.train[i].question for i in range(n)]


def test_rows_of_a_file_and_lists_come_in_an_order_of_the_seed(file):
    made = Task("list", [ask(str(i), i) for i in range(40)], [], "exact_match")
    for task in (None, made):
        by_seed = [first(task_of(task, RunConfig(task=str(file), seed=seed))) for seed in (0, 1, 2, 1)]
        assert by_seed[1] == by_seed[3]
        assert len({tuple(rows) for rows in by_seed}) == 3
    # what was trained under seed 0 before has the same order now
    assert first(task_of(None, RunConfig(task=str(file)))) == first(registry.task(str(file)))


def test_held_out_rows_and_named_tasks_are_the_same_for_every_seed(file):
    one, two = (task_of(None, RunConfig(task=str(file), seed=seed)) for seed in (1, 2))
    assert [p.question for p in one.test] == [p.question for p in two.test]
    named = [first(task_of(None, RunConfig(task="arithmetic", seed=seed))) for seed in (1, 2)]
    assert named[0] == named[1]
    as_it_stands = [first(task_of(None, RunConfig(task=str(file), seed=seed, order="file"))) for seed in (1, 2)]
    assert as_it_stands[0] == as_it_stands[1]


def weights(run):
    return (run / "model" / "model.safetensors").read_bytes()


@pytest.mark.parametrize("made", [False, True])
def test_a_run_that_is_resumed_goes_on_in_its_order(file, tmp_path, made):
    of = task_of(None, RunConfig(task=str(file)))
    task = Task("list", [of.train[i] for i in range(36)], list(of.test), "final_answer", columns=of.columns) if made else str(file)
    how = {"model": "untrained", "settings": {"problems": 2}, "eval_every": 0}
    for name, seed, steps in (("whole", 3, 6), ("parts", 3, 3), ("other", 4, 6)):
        train("sft", task=task, seed=seed, steps=steps, out=str(tmp_path / name), **how)
    resume(tmp_path / "parts", steps=6, **({"task": task} if made else {}))
    assert weights(tmp_path / "parts") == weights(tmp_path / "whole") != weights(tmp_path / "other")


def test_a_run_begun_when_every_seed_had_the_same_order_keeps_that(file, tmp_path):
    task = registry.task(str(file))
    rows = Task("list", [task.train[i] for i in range(12)], list(task.test), "final_answer")
    train("sft", task=rows, seed=3, steps=2, model="untrained", settings={"problems": 2}, eval_every=0, out=str(tmp_path / "run"))
    document = tmp_path / "run" / "config.json"
    told = json.loads(document.read_text())
    assert told.pop("order_seed") == 3
    document.write_text(json.dumps(told))
    asked = []
    seen = Task("list", rows.train, rows.test, "final_answer")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("rewardlab.api.training.fit_prompts", lambda task, *_, **__: (asked.append(task), (task, {}))[1])
        resume(tmp_path / "run", task=seen, steps=3)
    assert first(asked[0]) == first(task_of(rows, RunConfig(seed=0)))
