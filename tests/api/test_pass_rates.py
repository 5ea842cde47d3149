"""Pass rates of a file's problems: what is measured, and that a process that was killed goes on where it stopped."""

import json
import os
import signal
from pathlib import Path

import pytest

from rewardlab.api import pass_rate_file, pass_rates
from rewardlab.commands import cli
from rewardlab.core import Trajectory
from rewardlab.data.files import read, write
from rewardlab.data.work import work_file
from rewardlab.errors import RewardlabError
from rewardlab.models.embedded import untrained
from rewardlab.rewards.reward import reward

SMALL = {"samples": 3, "batch": 2, "max_new": 6, "device": "cpu"}
PROBLEMS = [{"prompt": f"Start with {i}. Add 2.", "answer": str(i + 2), "id": i} for i in range(7)]
JUDGED: list[str] = []
OUTAGE: set[str] = set()


@reward
def even(trajectory: Trajectory) -> float | None:
    """1 for a reply of an even number of characters, 0.5 for others; it may be down, or be killed."""
    JUDGED.append(trajectory.problem.question)
    if trajectory.problem.question in OUTAGE:
        return None
    return 1.0 if len(trajectory.reply) % 2 == 0 else 0.5


@reward
def deadly(trajectory: Trajectory) -> float | None:
    if trajectory.problem.meta["id"] == 5:
        os.kill(os.getpid(), signal.SIGKILL)
    return 1.0 if len(trajectory.reply) % 2 == 0 else 0.5


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    JUDGED.clear()
    OUTAGE.clear()
    write("d.jsonl", PROBLEMS)


@pytest.fixture(scope="module")
def policy():
    return untrained()


def rows(path: str) -> list[dict]:
    return [entry.row for entry in read(path) if entry.row]


def test_a_row_gets_its_pass_rate_its_scores_and_its_replies(policy):
    document = pass_rate_file("d.jsonl", "o.jsonl", model=policy, reward=even(), keep_replies=True, **SMALL)
    found = rows("o.jsonl")
    assert [{name: row[name] for name in ("prompt", "answer", "id")} for row in found] == PROBLEMS
    for row in found:
        assert row["scores"] == [1.0 if len(reply) % 2 == 0 else 0.5 for reply in row["replies"]]
        assert row["pass_rate"] == sum(score == 1 for score in row["scores"]) / 3
        assert 3 <= row["tokens"] <= 3 * 7
    assert 0 < document["pass_rate"] < 1
    assert document["pass_rate"] == pytest.approx(sum(row["pass_rate"] for row in found) / 7)
    assert document["tokens"] == sum(row["tokens"] for row in found)
    # random numbers follow from the seed
    pass_rate_file("d.jsonl", "again.jsonl", model=policy, reward=even(), keep_replies=True, **SMALL)
    pass_rate_file("d.jsonl", "other.jsonl", model=policy, reward=even(), keep_replies=True, seed=1, **SMALL)
    assert rows("again.jsonl") == found != rows("other.jsonl")
    assert sorted(os.listdir()) == sorted(
        ["d.jsonl", *(f"{name}{end}" for name in ("o", "again", "other") for end in (".jsonl", ".dropped.jsonl"))]
    )


def test_less_may_be_accepted_and_no_verdict_is_none(policy):
    OUTAGE.add(PROBLEMS[2]["prompt"])
    document = pass_rate_file("d.jsonl", "o.jsonl", model=policy, reward=even(), accept=0.5, **SMALL)
    assert [row["pass_rate"] for row in rows("o.jsonl")] == [1, 1, None, 1, 1, 1, 1]
    assert rows("o.jsonl")[2]["scores"] == [None] * 3
    assert (document["no_verdict"], document["pass_rate"], document["always"]) == (3, 1.0, 6)


def test_killed_it_goes_on_where_it_stopped_and_asks_nothing_anew(policy):
    pass_rate_file("d.jsonl", "whole.jsonl", model=policy, reward=even(), keep_replies=True, **SMALL)
    child = os.fork()
    if not child:
        # the third batch holds the problem at which it is killed
        pass_rate_file("d.jsonl", "d.jsonl", model=policy, reward=deadly().named("even"), keep_replies=True, **SMALL)
        os._exit(0)
    assert os.WTERMSIG(os.waitpid(child, 0)[1]) == signal.SIGKILL
    assert rows("d.jsonl") == PROBLEMS
    work = Path("d.jsonl.work")
    assert len(work.read_bytes().splitlines()) == 3
    # the settings name the reward: here it is another one, which scores the same
    text = work.read_text()
    first = json.loads(text.splitlines()[0])
    work.write_text(text.replace(json.dumps(first), json.dumps({**first, "reward": "even()"})) + '{"key": "half a li')
    JUDGED.clear()
    document = pass_rate_file("d.jsonl", "d.jsonl", model=policy, reward=even(), keep_replies=True, **SMALL)
    assert document["resumed_batches"] == 2
    assert set(JUDGED) == {row["prompt"] for row in PROBLEMS[4:]}
    assert rows("d.jsonl") == rows("whole.jsonl")
    assert not work.exists()


def test_work_that_was_begun_otherwise_is_not_mixed(policy):
    Path("o.jsonl.work").write_text('{"samples": 9}\n')
    with pytest.raises(RewardlabError, match=r"was begun with other settings \(samples 9, now 3, .*remove it to begin anew"):
        pass_rate_file("d.jsonl", "o.jsonl", model=policy, reward=even(), **SMALL)
    Path("o.jsonl.work").unlink()
    # it is locked as long as it is open
    with work_file(Path("o.jsonl.work"), {}), pytest.raises(RewardlabError, match="another process is writing"):
        pass_rate_file("d.jsonl", "o.jsonl", model=policy, reward=even(), **SMALL)


def test_a_problem_that_changed_is_asked_again_and_no_other(policy, monkeypatch):
    with monkeypatch.context() as patched:
        # all is sampled, and then the disk is full
        patched.setattr("rewardlab.data.tables.write", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError) as failed:
            pass_rate_file("d.jsonl", "o.jsonl", model=policy, reward=even(), **SMALL)
    assert "the same command resumes from there" in failed.value.__notes__[0]
    assert set(JUDGED) == {row["prompt"] for row in PROBLEMS}
    JUDGED.clear()
    changed = {**PROBLEMS[6], "prompt": "Start with 60."}
    write("d.jsonl", [*PROBLEMS[:6], changed])
    assert pass_rate_file("d.jsonl", "o.jsonl", model=policy, reward=even(), **SMALL)["resumed_batches"] == 4
    assert set(JUDGED) == {"Start with 60."}


def test_rows_that_are_no_problems_go_with_their_reason(policy):
    long = {"prompt": "Start with 1. " + "Add 2. " * 200, "answer": "1"}
    lines = [PROBLEMS[0], {"prompt": "", "answer": "1"}, {"prompt": "Start with 3.", "answer": None}, long, PROBLEMS[1]]
    Path("d.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines) + "broken\n")
    with pytest.raises(RewardlabError, match=r"1 of 3 file's prompts are too long.*--overlong drop"):
        pass_rate_file("d.jsonl", "o.jsonl", model=policy, reward=even(), **SMALL)
    document = pass_rate_file("d.jsonl", "o.jsonl", model=policy, reward=even(), overlong="drop", **SMALL)
    assert [row["prompt"] for row in rows("o.jsonl")] == [row["prompt"] for row in PROBLEMS[:2]]
    assert [(row["place"], row["reason"]) for row in rows("o.dropped.jsonl")] == [
        ("line 6", "broken"), ("line 2", "no problem"), ("line 3", "no problem"), ("line 4", "too long"),
    ]  # fmt: skip
    assert document["dropped"] == {"no problem": 2, "broken": 1, "too long": 1}


def test_rows_without_answers_are_refused_before_anything_is_sampled(policy, monkeypatch):
    write("d.jsonl", [{"prompt": row["prompt"], "gold": row["answer"]} for row in PROBLEMS])
    with monkeypatch.context() as patched:
        patched.setattr(pass_rates, "policy_of", None)
        told = "needs answers, and the problems of d.jsonl have none.*columns besides the prompt: gold.*did you mean gold"
        for reward in (None, "math", "0.5 * exact_match()"):
            with pytest.raises(RewardlabError, match=told):
                pass_rate_file("d.jsonl", "o.jsonl", model=policy, reward=reward, **SMALL)
        # whether there are answers, the first row says
        write("e.jsonl", [{"prompt": "What is 1+1?"}, {"prompt": "What is 1+2?", "answer": "3"}])
        with pytest.raises(RewardlabError, match="needs answers"):
            pass_rate_file("e.jsonl", "o.jsonl", model=policy, **SMALL)
    assert sorted(os.listdir()) == ["d.jsonl", "e.jsonl"]
    # what compares no answer needs none, and a column may be named
    assert pass_rate_file("d.jsonl", "o.jsonl", model=policy, reward=even(), **SMALL)["written"] == 7
    assert pass_rate_file("d.jsonl", "p.jsonl", model=policy, answer_column="gold", **SMALL)["written"] == 7


def test_columns_of_ones_own_are_not_overwritten(policy):
    write("d.jsonl", [{**row, "tokens": 5} for row in PROBLEMS])
    with pytest.raises(RewardlabError, match="have a column tokens, which would be overwritten; rename that column"):
        pass_rate_file("d.jsonl", "d.jsonl", model=policy, reward=even(), **SMALL)
    assert sorted(os.listdir()) == ["d.jsonl"]


def test_from_the_command_line_to_pairs_and_an_order(capsys):
    Path("mine.py").write_text("def even(completion):\n    return float(len(completion) % 2 == 0)\n")
    flags = "--model untrained --samples 6 --max-new 6 --reward mine.py:even --keep-replies"
    assert cli.main(f"data pass-rate d.jsonl --out r.parquet {flags}".split()) == 0
    printed = capsys.readouterr().out
    # of an untrained policy's replies hardly one ends by itself
    assert "pass_rate" in printed
    assert "of the replies were cut off at the length limit" in printed
    assert cli.main(["data", "pairs", "r.parquet", "--out", "p.jsonl"]) == 0
    assert all((row["chosen_score"], row["rejected_score"]) == (1.0, 0.0) for row in rows("p.jsonl"))
    assert rows("p.jsonl")
    assert cli.main(["data", "curriculum", "r.parquet", "--out", "o.jsonl"]) == 0
    rates = [row["pass_rate"] for row in rows("o.jsonl")]
    assert rates == sorted(rates, reverse=True)
    assert len(set(rates)) > 1
