"""A run is measured and asked as it was trained: on its task, columns, system message and held-out file."""

import json

import pytest

import rewardlab
from rewardlab import RewardlabError
from rewardlab.commands import cli
from rewardlab.core import Task, ask
from rewardlab.policies.text import TextPolicy
from rewardlab.tasks.sources import Shuffled

SMALL = {"settings": {"n": 2, "problems": 2}, "steps": 1, "eval_problems": 2, "max_new": 6, "checkpoint_every": 0}


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """The folder of a run on a file with columns of its own, a held-out file, and a system message."""
    folder = tmp_path_factory.mktemp("mine")
    for name, rows in (("train.jsonl", range(9)), ("held.jsonl", range(10, 17)), ("more.jsonl", range(20, 23))):
        (folder / name).write_text("".join(json.dumps({"q": f"{i}+1?", "a": i + 1}) + "\n" for i in rows))
    data = {"task": str(folder / "train.jsonl"), "test": str(folder / "held.jsonl"), "prompt_column": "q", "answer_column": "a"}
    rewardlab.train("grpo", "untrained", out=folder / "run", system="Be brief.", **data, **SMALL)
    return folder / "run"


@pytest.fixture
def read(monkeypatch):
    """The prompts that policies read, as (system message, question)."""
    seen, plain = [], TextPolicy.read

    def spy(self, trajectories, messages):
        seen.extend((m[0].text if m[0].role == "system" else None, m[-1].text) for m in messages)
        return plain(self, trajectories, messages)

    monkeypatch.setattr(TextPolicy, "read", spy)
    return seen


HELD = {("Be brief.", f"{i}+1?") for i in range(10, 17)}


def test_eval_of_a_run_needs_no_flags(run, read, capsys):
    assert cli.main(["eval", str(run), "--k", "1"]) == 0
    assert set(read) == HELD
    said = capsys.readouterr()
    assert f"as in {run}: task {run.parent / 'train.jsonl'}" in said.err
    assert "prompt_column q" in said.err
    # what goes without saying is not said
    assert "overlong" not in said.err


def test_flags_come_before_what_the_run_says(run, read):
    assert rewardlab.evaluate(str(run), k=(1,), system="Be kind.", problems=3)["n"] == 3
    assert {system for system, _ in read} == {"Be kind."}
    read.clear()
    assert rewardlab.evaluate(str(run), "arithmetic:test_size=5", k=(1,))["task"] == "arithmetic"
    assert {system for system, _ in read} == {None}
    read.clear()
    assert rewardlab.evaluate(str(run), k=(1,), test=str(run.parent / "more.jsonl"))["n"] == 3
    assert {system for system, _ in read} == {"Be brief."}
    read.clear()
    rewardlab.evaluate(str(run), str(run.parent / "held.jsonl"), k=(1,))
    assert {system for system, _ in read} == {"Be brief."}


def test_answer_by_a_run_answers_its_task_or_a_prompt_in_its_words(run, read):
    assert rewardlab.answer("majority_vote", str(run))["n"] == 7
    assert set(read) == HELD
    read.clear()
    assert cli.main(["answer", "majority_vote", "--model", str(run), "--prompt", "1+1?"]) == 0
    assert set(read) == {("Be brief.", "1+1?")}


def test_where_nothing_says_what_the_task_is_it_is_asked_for(run, tmp_path, capsys):
    with pytest.raises(RewardlabError, match="which task"):
        rewardlab.evaluate("untrained")
    assert cli.main(["eval", "untrained"]) == 2
    assert cli.main(["answer", "majority_vote"]) == 2
    made = Task("made", Shuffled([ask("1?", 1), ask("2?", 2)]), [ask("3?", 3)], "exact_match")
    out = rewardlab.train("grpo", "untrained", made, out=tmp_path / "run", **SMALL).out
    with pytest.raises(RewardlabError, match="was made in Python; give a task"):
        rewardlab.evaluate(str(out))
    # a checkpoint is no run
    assert cli.main(["eval", str(run / "model")]) == 2


@pytest.mark.parametrize(
    "command", ["eval untrained --k 1", "answer best_of_n --model untrained", "search best_of_n --model untrained"]
)
def test_a_held_out_file_alone_is_measured_whole(command, run, read):
    file = str(run.parent / "held.jsonl")
    columns = ["--prompt-column", "q", "--answer-column", "a", "--max-new", "6", "--device", "cpu"]
    assert cli.main([*command.split(), "--test", file, *columns]) == 0
    assert {question for _, question in read} == {question for _, question in HELD}
