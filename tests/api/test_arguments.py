"""Arguments of the wrong kind are refused in words, before anything is loaded or written."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

import rewardlab
from rewardlab import RewardlabError, RunConfig, Task, ask, build
from rewardlab.api import search

SMALL = {"model": "untrained", "steps": 1, "eval_problems": 2, "max_new": 4, "device": "cpu"}


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def recipe():
    return build("grpo", {"n": 2, "problems": 2})


def mine(name="mine", word="say", n=4):
    return Task(
        name, [ask(f"{word} {i}", str(i)) for i in range(n)], [ask(f"{word} {i}", str(i)) for i in range(n, n + 2)], "exact_match"
    )


NO_ROWS = {
    "[]": ([], "rows holds no problems"),
    "a problem": ([ask("1+1", "2")], "row 1: expected an object with columns, found Problem; problems .* are given in a Task"),
    "texts": (["1+1", "1+2"], "row 1: expected an object with columns, found str .2 of 2 rows are bad"),
    "{}": ({}, "rows are given in a list"),
    "a row": ({"prompt": "1+1", "answer": "2"}, "rows are given in a list, .*not as the dict"),
}


@pytest.mark.parametrize(("rows", "says"), NO_ROWS.values(), ids=NO_ROWS)
def test_what_holds_no_rows_is_refused_as_a_bad_file_is(rows, says):
    for call in (
        rewardlab.task,
        lambda task: rewardlab.train(recipe(), task=task, **SMALL),
        lambda task: rewardlab.evaluate("untrained", task),
    ):
        with pytest.raises(RewardlabError, match=says):
            call(rows)


@pytest.mark.parametrize("task", [0, 3.5, object], ids=str)
def test_what_is_no_task_is_refused_and_not_taken_for_arithmetic(task):
    calls = (
        lambda: rewardlab.train(recipe(), task=task, **SMALL),
        lambda: rewardlab.plan(recipe(), task=task, **SMALL),
        lambda: rewardlab.evaluate("untrained", task),
        lambda: rewardlab.answer("best_of_n", "untrained", task),
        lambda: rewardlab.resume("run", task),
    )
    Path("run").mkdir()
    for call in calls:
        with pytest.raises(
            RewardlabError,
            match=r"task must be a name, a file of problems, rows \(a list of dicts, a DataFrame, a Dataset\), or a Task, not the ",
        ):
            call()
    with pytest.raises(RewardlabError, match="task must be a text that is not empty"):
        rewardlab.compare(["grpo", "rloo"], task=task)
    assert not Path("runs").exists()


WRONG = [
    (lambda: rewardlab.train(recipe(), settings={"n": 4}, **SMALL), r"settings \(n\) are for a method given by its name"),
    (lambda: rewardlab.plan(recipe(), settings={"n": 4}, **SMALL), r"settings \(n\) are for a method given by its name"),
    (lambda: rewardlab.train("grpo", settings="n=2"), 'settings must be a dict, such as {"n": 8}, not the str'),
    (lambda: rewardlab.train("grpo", config={"steps": 2}), "config must be a RunConfig, not the dict"),
    (lambda: rewardlab.train("grpo", model=3), "model must be a name, a folder, or a policy"),
    (lambda: rewardlab.train("grpo", n=2), r"n is a setting of grpo: settings=\{'n': 2\}"),
    (lambda: rewardlab.train(["grpo"]), "a recipe is the name of a method"),
    (lambda: rewardlab.answer("best_of_n", "untrained", prompt=["a"]), "prompt must be a text that is not empty"),
    (lambda: rewardlab.evaluate("untrained", "arithmetic", k=1), r"such as k=\(1, 8\), not 1"),
    (lambda: rewardlab.evaluate("untrained", "arithmetic", k=()), r"such as k=\(1, 8\), not \(\)"),
    (lambda: rewardlab.evaluate(None, "arithmetic"), "which model"),
    (lambda: rewardlab.export(3, "out"), "a run is given by its folder"),
    (lambda: build(None), 'build takes the name of a method, build\\("grpo"\\), not None'),
    (lambda: build("grpo", n=4), r"build\('grpo', \{'n': 4\}\)"),
    (lambda: build("grpo", "n=4"), "settings must be a dict"),
    (lambda: rewardlab.compare("grpo"), r"methods are given in a list: compare\(\['grpo', ...\]\)"),
    (lambda: rewardlab.compare(["grpo", "rloo"], config={"steps": 1}), "config must be a RunConfig"),
]


@pytest.mark.parametrize(("call", "says"), WRONG, ids=[says for _, says in WRONG])
def test_wrong_arguments_are_refused_in_words(call, says):
    with pytest.raises(RewardlabError, match=says):
        call()
    assert not Path("runs").exists()


def test_a_device_that_is_not_there_is_refused_at_once():
    absent = f"cuda:{torch.cuda.device_count()}"
    for call in (
        lambda: rewardlab.train(recipe(), task="arithmetic", **SMALL | {"device": absent}),
        lambda: rewardlab.evaluate("untrained", "arithmetic", device=absent),
        lambda: rewardlab.load_policy("untrained", absent),
    ):
        with pytest.raises(RewardlabError, match=f"--device {absent}: this machine has no such device"):
            call()
    if not torch.cuda.is_available():
        with pytest.raises(RewardlabError, match="--device cuda: this machine has no usable CUDA device"):
            rewardlab.plan("grpo", "untrained", "arithmetic", device="cuda")


def test_a_run_is_resumed_on_its_own_problems_alone(capsys):
    policy = rewardlab.load_policy("untrained", "cpu")
    settings = {name: value for name, value in SMALL.items() if name != "model"}
    run = rewardlab.train(recipe(), policy, mine(), out="made", **settings)
    again = policy.copy("policy")
    for task, says in (
        (mine("other"), "was trained on the task mine, not other"),
        (mine(word="shout"), "was trained on other problems"),
        ("mine", "give the Task that it was trained on, mine"),
    ):
        with pytest.raises(RewardlabError, match=says):
            rewardlab.resume("made", task, again, steps=2)
    # a finished run is given as its Result, or as a Path
    assert rewardlab.resume(run, mine(), again, steps=2).summary["steps"] == 2
    assert rewardlab.evaluate(run, mine(), k=(1,), problems=2)["n"] == 2
    assert rewardlab.export(Path("made"), "exported")["out"] == "exported"
    named = rewardlab.train(recipe(), task="arithmetic:test_size=4", out="named", **SMALL)
    for task, says in ((mine(), "is resumed on its own task, arithmetic"), ("arithmetic", "the run knows its task: leave it out")):
        with pytest.raises(RewardlabError, match=says):
            rewardlab.resume(named, task, steps=2)


def test_held_out_problems_that_are_trained_on_are_told(capsys):
    task = Task("mine", [ask(f"say {i}", str(i)) for i in range(4)], [ask("say 3", "3"), ask("say 9", "9")], "exact_match")
    rewardlab.plan(recipe(), task=task, **SMALL)
    captured = capsys.readouterr()
    assert "1 of 2 held-out problems of mine are trained on too" in captured.out + captured.err


def test_a_configuration_is_taken_as_it_is():
    assert rewardlab.plan(recipe(), task="arithmetic", config=RunConfig(model="untrained", max_new=4))["rows_per_step"] == 4


def test_what_an_environment_is_written_with_is_at_the_top():
    assert rewardlab.Message("user", "hello").text == "hello"
    assert (rewardlab.operator.__name__, rewardlab.environment.__name__) == ("operator", "environment")


@pytest.mark.slow
def test_policies_are_loaded_by_several_threads_of_a_fresh_process(tmp_path):
    code = (
        "import threading, rewardlab\n"
        "failed = []\n"
        "def load(start):\n"
        "    start.wait()\n"
        "    try: rewardlab.load_policy('untrained', 'cpu')\n"
        "    except BaseException as e: failed.append(repr(e))\n"
        "start = threading.Barrier(4)\n"
        "threads = [threading.Thread(target=load, args=(start,)) for _ in range(4)]\n"
        "[t.start() for t in threads], [t.join() for t in threads]\n"
        "print(failed)\n"
    )
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert printed.splitlines()[-1] == "[]"


ONE = [ask("1+1", "2")]
TASKS = [
    (lambda: rewardlab.Problem("1+1", "2"), "the prompt of a problem is a tuple of Messages, not '1\\+1'"),
    (lambda: Task("mine", ["1+1"], ONE, "exact_match"), r"train\[0\] of the task mine must be a Problem, not '1\+1'"),
    (lambda: Task("mine", ONE, "1+1", "exact_match"), "test of the task mine must be a list of problems"),
    (lambda: Task("mine", iter(ONE), ONE, "exact_match"), "train of the task mine must be a list of problems"),
    (lambda: Task("mine", ONE, ONE, len), "the verifier of the task mine is given by its name"),
    (lambda: rewardlab.part("reward", "clip", rewardlab.part("reward", "correct"), low=2, high=1), "clip: low=2 is above high=1"),
    (lambda: rewardlab.part("reward", "clip", 3, low=0), r"clip\(3\) pays every rollout the same"),
    (lambda: rewardlab.part("reward", "minimum", 1, 2), r"minimum\(1, 2\) pays every rollout the same"),
]


@pytest.mark.parametrize(("make", "says"), TASKS, ids=[says for _, says in TASKS])
def test_problems_tasks_and_operators_are_checked_where_they_are_written(make, says):
    with pytest.raises(RewardlabError, match=says):
        make()


class Elsewhere(os.PathLike):
    """A path that is not pathlib's."""

    def __init__(self, path):
        self.path = str(path)

    def __fspath__(self):
        return self.path


@pytest.mark.parametrize("kind", [Path, Elsewhere])
def test_paths_are_taken_wherever_a_name_may_be_one(kind, tmp_path):
    rows = [{"prompt": f"What is {i} + 2?", "answer": str(i + 2)} for i in range(20)]
    (file := tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    at, held, small = kind(file), kind(tmp_path / "held.jsonl"), {"device": "cpu", "max_new": 4}
    (tmp_path / "held.jsonl").write_text('{"prompt": "What is 90 + 2?", "answer": "92"}\n')
    found = rewardlab.train("grpo", "untrained", at, out=kind(tmp_path / "run"), settings={"n": 2, "problems": 2}, **SMALL_RUN)
    assert found.summary["steps"] == 1
    assert rewardlab.plan("grpo", "untrained", at, test=held, **small)["columns"] == ["prompt", "answer"]
    assert rewardlab.evaluate(kind(tmp_path / "run"), at, k=(1,), problems=1, **small)["n"] == 1
    assert rewardlab.evaluate("untrained", test=held, k=(1,), problems=1, **small)["n"] == 1
    assert rewardlab.answer("majority_vote", "untrained", at, problems=1, **small)["n"] == 1
    assert search("majority_vote", at, model="untrained", problems=1, **small)["n"] == 1
    assert RunConfig(task=at, test=held, model=kind("runs/a")).but(task=at) == RunConfig(
        task=str(file), test=held.__fspath__(), model="runs/a"
    )
    assert rewardlab.compare(["grpo", "rloo"], task=at, model="untrained", dry_run=True, steps=1, seeds=range(2), **small)
    with pytest.raises(RewardlabError, match="the run knows its task"):
        rewardlab.resume(kind(tmp_path / "run"), at, steps=2)
    assert rewardlab.resume(kind(tmp_path / "run"), steps=2).summary["steps"] == 2


SMALL_RUN = {"steps": 1, "eval_problems": 2, "max_new": 4, "device": "cpu"}
