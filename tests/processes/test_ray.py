"""Calls over a local Ray cluster of two processes, one of which is killed: nothing is lost, and no answer counts twice.

Run where the extra `ray` is installed; the cluster takes some seconds to start, so it is started once.
"""

from __future__ import annotations

import functools
import json
import os
import random
import signal
import sys
from collections import Counter
from itertools import islice
from pathlib import Path

import pytest
from counted import DEADLY, notes

from rewardlab.api import evaluate, label_file
from rewardlab.api.verify import verify_file
from rewardlab.errors import RewardlabError
from rewardlab.models.embedded import untrained
from rewardlab.prm import labelling
from rewardlab.processes.cluster import spread
from rewardlab.processes.pool import Done, Failed
from rewardlab.scoreboard.raters import Rater
from rewardlab.scoreboard.run import scoreboard

ray = pytest.importorskip("ray")

# after the check that Ray is there
from rewardlab.processes.ray import TRIES, RayWorkers, _connect  # noqa: E402


@pytest.fixture(scope="module", autouse=True)
def cluster():
    # the processes of a cluster begin without this one's sys.path, by which pytest finds helpers
    with pytest.MonkeyPatch.context() as changed:
        paths = [path for path in sys.path if path.startswith(str(Path(__file__).parents[1]))]
        changed.setenv("PYTHONPATH", os.pathsep.join([*paths, *filter(None, [os.environ.get("PYTHONPATH")])]))
        _connect(2)
        yield
        ray.shutdown()


def test_a_killed_process_loses_no_call_and_no_answer_counts_twice(tmp_path):
    with RayWorkers("counted:noting", "ray:2", about=(str(tmp_path),)) as workers:
        answers = workers.stream((i,) for i in range(40))
        found = list(islice(answers, 10))
        victim = notes(tmp_path, "begun")[-1][1]
        os.kill(victim, signal.SIGKILL)
        found += answers
    assert found == [Done(i * i) for i in range(40)]
    begun, done = (Counter(number for number, _ in notes(tmp_path, kind)) for kind in ("begun", "done"))
    assert done == dict.fromkeys(range(40), 1)
    # the call that the process was at was begun again, and no other
    assert sum(begun.values()) in (40, 41)
    assert victim not in {process for _, process in notes(tmp_path, "done")[20:]}


def test_a_call_that_kills_every_process_fails_alone_and_an_error_is_told(tmp_path):
    with RayWorkers("counted:noting", "ray:2", about=(str(tmp_path), 0.0)) as workers:
        found = list(workers.stream([(1,), (DEADLY,), (2,), (-5,), (3,)]))
    crash = Failed("crash", f"{TRIES} processes died over it")
    assert found == [Done(1), crash, Done(4), Failed("error", "ValueError: below"), Done(9)]
    assert [number for number, _ in notes(tmp_path, "begun")].count(DEADLY) == TRIES


def test_a_function_that_cannot_begin_is_an_error_of_the_request():
    with RayWorkers("counted:missing", "ray:2") as workers:
        answers = workers.stream([(1,)])
        with pytest.raises(RewardlabError, match="a process of the Ray cluster cannot begin: AttributeError"):
            next(answers)


def test_steps_are_labelled_as_in_one_process_though_one_of_two_is_killed(tmp_path, monkeypatch):
    def dying(what, workers, function, about, *rest, **options):
        return spread(what, workers, "counted:solver_that_dies_once", (str(tmp_path), *about), *rest, **options)

    ask = functools.partial(
        label_file, task="arithmetic", model="untrained", problems=24, samples=2, rollouts=2, batch=4, max_new=12, device="cpu"
    )
    alone = ask(tmp_path / "alone.jsonl")
    monkeypatch.setattr(labelling, "spread", dying)
    over = ask(tmp_path / "over.jsonl", workers="ray:2")
    assert {**alone, "out": ""} == {**over, "out": ""}
    assert (tmp_path / "alone.jsonl").read_bytes() == (tmp_path / "over.jsonl").read_bytes()
    assert Counter(number for number, _ in notes(tmp_path, "done")) == dict.fromkeys(range(6), 1)
    assert Counter(number for number, _ in notes(tmp_path, "begun")) == dict.fromkeys(range(6), 1) | {2: 2}


def test_a_judge_and_a_tool_label_a_file_over_the_cluster(tmp_path):
    file = tmp_path / "solved.jsonl"
    file.write_text(
        "".join(json.dumps({"prompt": f"{i}+1?", "steps": [f"{i}+1={i + 1 + i % 2}", "done"]}) + "\n" for i in range(9))
    )
    for by in ("tool", "judge"):
        ask = functools.partial(label_file, solutions=file, by=by, judge="untrained" if by == "judge" else None, batch=2)
        options = {"judge_tokens": 8, "device": "cpu", "task": "arithmetic"} if by == "judge" else {}
        alone, over = (ask(tmp_path / f"{by}{w}.jsonl", workers=w, **options) for w in (None, "ray:2"))
        assert {**alone, "out": ""} == {**over, "out": ""}
        assert (tmp_path / f"{by}None.jsonl").read_bytes() == (tmp_path / f"{by}ray:2.jsonl").read_bytes()


def test_replies_are_judged_as_by_worker_processes(tmp_path):
    rng, source = random.Random(0), tmp_path / "replies.jsonl"
    said = ["\\boxed{{{0}}}", "The answer is {0}.0", "x^2", "\\frac{{{0}}}{{1}}"]
    rows = [json.dumps({"response": rng.choice(said).format(i % 7), "answer": str(i % 5)}) for i in range(200)]
    source.write_text("\n".join([*rows[:50], "", "{broken", *rows[50:]]))
    alone, over = (verify_file("math", source, tmp_path / f"{w}.jsonl", workers=w) for w in (None, "ray:2"))
    assert (tmp_path / "None.jsonl").read_bytes() == (tmp_path / "ray:2.jsonl").read_bytes()
    assert over["right"] == alone["right"] > 0
    assert over["broken"] == 1


def test_pass_at_k_is_the_same_whatever_the_processes():
    ask = functools.partial(evaluate, "untrained", "arithmetic", k=(1, 2), problems=70, max_new=6, device="cpu")
    one, two = ask(workers="ray:1"), ask(workers="ray:2")
    assert one == two
    assert one["n"] == 70


def test_a_model_object_is_refused():
    with pytest.raises(RewardlabError, match="a model is given by its name"):
        evaluate(untrained(), "arithmetic", problems=4, workers="ray:1")


@pytest.mark.parametrize(
    ("does", "failed"), [("raise ValueError('seven')", 1), ("os.kill(os.getpid(), signal.SIGKILL)", 1), ("raise OSError", 12)]
)
def test_a_rater_that_fails_over_a_cluster_loses_what_it_fails_on_alone(tmp_path, monkeypatch, does, failed):
    monkeypatch.setenv("REWARDLAB_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    where = "True" if failed == 12 else "prompt == 'Question 7'"
    code = f"import os, signal\n\ndef score(prompt, response):\n    if {where}:\n        {does}\n    return len(response)\n"
    (tmp_path / "mine.py").write_text(code)
    rows = [{"prompt": f"Question {i}", "chosen": "long " * (i % 7 + 1), "rejected": "short " * (i % 5)} for i in range(12)]
    (data := tmp_path / "pairs.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    raters, found = ["mine.py:score", "length"], {}
    for workers in ("ray:2", None)[: 1 + ("kill" not in does)]:
        # what was kept of the other would be read again
        monkeypatch.setenv("REWARDLAB_CACHE", str(tmp_path / str(workers)))
        found[workers] = scoreboard(raters, "pairs", data=data, workers=workers, device="cpu")
        if failed < 12:
            entry = found[workers]["raters"]["mine.py:score"]["pairs"]
            assert (entry["items"], entry["failed"], entry["failure_where"]) == (12, failed, "pairs.jsonl, line 8")
        else:
            assert "failed on all 12 items" in found[workers]["failed"][0]["why"]
    for entry in (entry for one in found.values() for row in one["raters"].values() for entry in row.values()):
        entry.pop("seconds", None)
    assert "kill" in does or {**found["ray:2"], "seconds": 0} == {**found[None], "seconds": 0}


def test_a_scoreboard_over_a_cluster_says_what_one_process_says(tmp_path, monkeypatch):
    monkeypatch.setenv("REWARDLAB_CACHE", str(tmp_path / "cache"))
    rows = [{"prompt": f"Question {i}", "chosen": "long " * (i % 7 + 1), "rejected": "short " * (i % 5)} for i in range(150)]
    (data := tmp_path / "pairs.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    over = scoreboard(["length"], ["pairs"], data=data, workers="ray:2", device="cpu")
    # what was kept of it would be read again
    monkeypatch.setenv("REWARDLAB_CACHE", str(tmp_path / "another"))
    here = scoreboard(["length"], ["pairs"], data=data)
    assert over["raters"]["length"]["pairs"]["figures"] == here["raters"]["length"]["pairs"]["figures"]
    with pytest.raises(RewardlabError, match="by its name"):
        scoreboard([Rater("mine")], ["pairs"], data=data, workers="ray:2")
