"""Step labels of sampled solutions and of a file's: what is written, and that a process that was killed goes on with its file."""

import json
import os
import shlex
import signal
from pathlib import Path

import pytest
from served_model import serving

from rewardlab.api import label_file
from rewardlab.commands import cli, prm
from rewardlab.commands.prm import convert, label
from rewardlab.core import Task, ask
from rewardlab.data.solutions import Solution
from rewardlab.data.step_formats import read_solutions, write_solutions
from rewardlab.errors import RewardlabError
from rewardlab.models.embedded import untrained
from rewardlab.prm.labels import BY
from rewardlab.prm.training import problems_by_question, written
from rewardlab.rewards import monte_carlo
from rewardlab.tasks.sources import Listed

PROBLEMS = [ask(f"Start with {i}. Add 2.", str(i + 2), steps=[f"{i}+2={i + 2}"]) for i in range(7)]
TASK = Task("sums", Listed(PROBLEMS), PROBLEMS[:1], "final_answer", max_new=6)
SMALL = {"samples": 2, "rollouts": 2, "problems": 7, "batch": 2, "max_new": 6, "device": "cpu"}
SOLUTIONS = [
    Solution("Start with 1. Add 2.", ("1+2=3", "Answer: 3"), (None, None)),
    Solution("Start with 2. Add 2.", ("2+2=5\nI think", "Answer: 5"), (None, None), meta={"id": 7}),
    Solution("Who is it?", ("Me.",), (None,)),
]

STEPPED = [Solution(p.question, ("Well.", f"{p.answer}+1", "So."), (None,) * 3, answer=p.answer) for p in PROBLEMS]


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.fixture(scope="module")
def policy():
    return untrained()


def lines(path: str) -> list[dict]:
    return [json.loads(line) for line in Path(path).read_text().splitlines()]


def test_sampled_solutions_are_labelled_and_counted(policy):
    document = label_file("o.jsonl", task=TASK, model=policy, **SMALL)
    found = list(read_solutions("o.jsonl"))
    assert [x.prompt for x in found] == [p.question for p in PROBLEMS for _ in range(2)]
    assert [x.answer for x in found] == [p.answer for p in PROBLEMS for _ in range(2)]
    # a random policy gets nothing right, and the last label is that of the reply
    assert {x.labels[-1] for x in found} == {0.0}
    assert {x.right for x in found} == {False}
    steps = sum(len(x.steps) for x in found)
    assert (document["rows"], document["steps"], document["labelled_steps"], document["right_answers"]) == (14, steps, steps, 0.0)
    assert document["completions"] <= 2 * sum(len(x.steps) - 1 for x in found)
    assert document["tokens_generated"] > 0
    assert sorted(os.listdir()) == ["o.jsonl", "o.jsonl.request.json"]
    # asked again, nothing is done; asked for something else, nothing is lost
    was = Path("o.jsonl").stat().st_mtime_ns
    assert label_file("o.jsonl", task=TASK, model=policy, **SMALL) == document
    assert Path("o.jsonl").stat().st_mtime_ns == was
    with pytest.raises(RewardlabError, match=r"made with other settings \(rollouts 2, now 3\)"):
        label_file("o.jsonl", task=TASK, model=policy, **{**SMALL, "rollouts": 3})
    Path("o.jsonl.request.json").unlink()
    with pytest.raises(RewardlabError, match=r"o\.jsonl exists, and nothing beside it"):
        label_file("o.jsonl", task=TASK, model=policy, **SMALL)


@pytest.mark.parametrize("half", [b"", b'{"prompt": "half a li'])
def test_killed_it_goes_on_where_it_stopped_and_no_row_is_lost_or_doubled(policy, monkeypatch, half):
    write_solutions("s.jsonl", STEPPED)
    request = {"solutions": "s.jsonl", "model": policy, **SMALL}
    share, asked = monte_carlo._share, []

    def deadly(scores):
        if os.getpid() != parent and len(asked) >= 11:
            os.kill(os.getpid(), signal.SIGKILL)
        asked.append(scores)
        return share(scores)

    monkeypatch.setattr(monte_carlo, "_share", deadly)
    parent = os.getpid()
    label_file("all.jsonl", **request)
    asked.clear()
    child = os.fork()
    if not child:
        label_file("o.jsonl", **request)
        os._exit(0)
    assert os.WTERMSIG(os.waitpid(child, 0)[1]) == signal.SIGKILL
    # a header and two batches of two solutions, each with two steps to go on from; the third was under way
    assert len(Path("o.jsonl.work").read_text().splitlines()) == 3
    before = Path("o.jsonl").read_bytes()
    assert Path("all.jsonl").read_bytes().startswith(before)
    # what a batch had written before it was noted as done
    Path("o.jsonl").write_bytes(before + (b'{"prompt": "x"}\n' if half else b"") + half)
    with pytest.raises(RewardlabError, match=r"other settings \(seed 0, now 1\)"):
        label_file("o.jsonl", seed=1, **request)
    resumed = label_file("o.jsonl", **request)
    assert Path("o.jsonl").read_bytes() == Path("all.jsonl").read_bytes()
    assert {**resumed, "out": ""} == {**json.loads(Path("all.jsonl.request.json").read_text())["summary"], "out": ""}
    assert not Path("o.jsonl.work").exists()
    assert (resumed["rows"], resumed["completions"]) == (7, 7 * 2 * 2)


def test_a_file_that_lost_rows_is_not_gone_on_with(policy):
    label_file("o.jsonl", task=TASK, model=policy, **SMALL)
    document = json.loads(Path("o.jsonl.request.json").read_text())
    size = Path("o.jsonl").stat().st_size
    done = {"key": "x", "result": {"end": size + 1, "facts": {}}}
    Path("o.jsonl.work").write_text(f"{json.dumps(document['request'])}\n{json.dumps(done)}\n")
    with pytest.raises(RewardlabError, match=r"o\.jsonl is shorter than"):
        label_file("o.jsonl", task=TASK, model=policy, **SMALL)
    assert Path("o.jsonl").stat().st_size == size


def test_solutions_of_a_file_are_labelled_by_a_tool_without_a_model():
    write_solutions("s.jsonl", SOLUTIONS)
    document = label_file("o.jsonl", solutions="s.jsonl", by="tool")
    first, second, third = read_solutions("o.jsonl")
    assert (first.labels, second.labels) == ((1.0, None), (0.0, None))
    # a step keeps its line breaks, and a row its columns
    assert second.steps == SOLUTIONS[1].steps
    assert second.meta == {"id": 7}
    assert third.labels == (None,)
    assert third.meta == {"why": "no step states an equation between numbers"}
    assert (document["labelled_steps"], document["without_labels"], document["tokens_generated"]) == (2, 1, 0)


def test_problems_of_a_file_are_found_in_the_task_by_their_text():
    write_solutions("s.jsonl", SOLUTIONS)
    label_file("o.jsonl", solutions="s.jsonl", task=TASK, by="reference")
    first, second, third = read_solutions("o.jsonl")
    assert (first.labels, first.right, first.answer) == ((1.0, 1.0), True, "3")
    assert (second.labels, second.right, second.answer) == ((0.0, 0.0), False, "4")
    assert (third.labels, third.right, third.answer) == ((None,), None, None)


def test_problems_with_a_system_message_are_found_with_it_and_without():
    problem = ask("Start with 1. Add 2.", "3", system="Count.", steps=["1+2=3"])
    task = Task("sums", Listed([problem]), (problem,), "final_answer", max_new=6)
    for text in ("Start with 1. Add 2.", "Count.\n\nStart with 1. Add 2."):
        assert problems_by_question(task, 1)[text] is problem


def test_continuations_need_answers_and_go_on_from_exact_steps(policy):
    write_solutions("s.jsonl", SOLUTIONS)
    document = label_file("o.jsonl", solutions="s.jsonl", task=TASK, model=policy, by="binary-search", **SMALL)
    first, second = read_solutions("o.jsonl")
    # a right reply needs no continuation; those of a policy that knows nothing are wrong
    assert (first.labels, second.labels) == ((1.0, 1.0), (0.0, 0.0))
    assert (document["no_answer"], document["completions"]) == (1, 2)
    problem = ask(SOLUTIONS[1].prompt)
    (row,) = written(SOLUTIONS[1:2], [problem], policy)
    assert row.reply == "2+2=5\nI think\n\nAnswer: 5"
    begun = row.cut(row.steps[0] + 1, policy.decode)
    assert begun.reply == policy.decode(begun.ids[begun.mask]) == "2+2=5\nI think\n\n"
    assert (row.steps[-1], len(row)) == (len(row) - 1, len(begun) + len(row.turns[-1].ids))
    with pytest.raises(RewardlabError, match="no solution has one: name the task"):
        label_file("x.jsonl", solutions="s.jsonl", model=policy, by="monte-carlo")
    assert not Path("x.jsonl").exists()


def test_a_judge_reads_the_solutions_of_a_file(policy):
    write_solutions("s.jsonl", SOLUTIONS)
    document = label_file("o.jsonl", solutions="s.jsonl", by="judge", judge=policy, judge_tokens=8, device="cpu")
    # it says nothing that can be read
    assert document["without_labels"] == 3
    assert document["tokens_generated"] > 0
    assert "the judge gave no verdict" in lines("o.jsonl")[0]["why"]


def test_labels_in_a_published_format_leave_out_what_it_cannot_hold():
    write_solutions("s.jsonl", SOLUTIONS)
    document = label_file("o.jsonl", solutions="s.jsonl", task=TASK, by="reference", format="math-shepherd")
    assert (document["rows"], document["unfit"]) == (2, 1)
    assert lines("o.jsonl")[0]["label"] == "Start with 1. Add 2. Step 1: 1+2=3 +\nStep 2: Answer: 3 +"


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"by": "guess"}, "'guess'"), ({"samples": 0}, "samples"), ({"format": "prm"}, "'prm'"), ({"splitter": "word"}, "'word'"),
        ({"temperature": 0}, "rollouts 1"), ({"judge": "embedded"}, "no effect on labels by monte-carlo"),
        ({"temperature": 0, "by": "consensus"}, "rollouts 1"), ({"splitter": "token"}, "'token'"),
        ({"task": None}, "nothing to label"),
        ({"task": Task("bare", Listed([ask("1?", "1")]), (), "final_answer"), "by": "reference"}, "those of bare have none"),
    ],
)  # fmt: skip
def test_wrong_requests_are_refused_before_anything_is_written(policy, changes, says):
    with pytest.raises(RewardlabError) as error:
        label_file("o.jsonl", **{"task": TASK, "model": policy, **SMALL, **changes})
    assert says in str(error.value)
    assert os.listdir() == []


def test_an_error_before_the_first_batch_leaves_nothing_behind(policy, monkeypatch):
    write_solutions("s.jsonl", STEPPED)
    monkeypatch.setattr(monte_carlo, "_share", lambda scores: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        label_file("o.jsonl", solutions="s.jsonl", model=policy, **SMALL)
    assert os.listdir() == ["s.jsonl"]


def test_the_command_labels_and_converts(capsys):
    assert tuple(BY) == label.BY
    write_solutions("s.jsonl", SOLUTIONS[:2])
    Path("s.jsonl").write_text(Path("s.jsonl").read_text() + "{broken\n")
    assert cli.main(["prm", "label", "--solutions", "s.jsonl", "--by", "tool", "--out", "o.jsonl", "--json"]) == 1
    document = json.loads(capsys.readouterr().out)
    assert (document["labelled_steps"], document["broken_lines"][0][:7]) == (2, "line 3:")
    assert cli.main(["prm", "convert", "o.jsonl", "p.jsonl", "--format", "processbench"]) == 0
    # of the first row's last step nothing is known
    assert "unfit" in capsys.readouterr().out
    assert [row["label"] for row in lines("p.jsonl")] == [0]
    assert cli.main(["prm", "label", "--out", "x.jsonl"]) == 2
    assert cli.main(["prm", "label", "--solutions", "s.jsonl", "--samples", "3", "--out", "x.jsonl"]) == 2
    assert "--samples has no effect" in capsys.readouterr().err


@pytest.mark.parametrize("command", [label, convert])
def test_the_examples_of_help_are_command_lines_that_the_command_takes(command):
    name = command.__name__.rpartition(".")[2]
    assert name in prm.SUBCOMMANDS
    examples = [line for line in command.__doc__.splitlines() if line.startswith(f"rewardlab prm {name} ")]
    assert len(examples) >= 2
    for example in examples:
        cli.parse(command, f"prm {name}", shlex.split(example)[3:])


def test_a_served_model_solves_and_continues(tmp_path, monkeypatch):
    monkeypatch.setenv("REWARDLAB_CACHE", str(tmp_path))
    with serving(lambda body: "1+2=3\nAnswer: 3") as server:
        found = label_file("o.jsonl", task=TASK, model=f"{server.name},prefill=true", samples=1, rollouts=2, problems=3, max_new=6)
        continued = [body for body in server.asked if body["messages"][-1]["role"] == "assistant"]
    assert (found["rows"], found["steps"], found["labelled_steps"]) == (3, 6, 6)
    assert {body["messages"][-1]["content"] for body in continued} == {"1+2=3\n"}
    assert [row["labels"][-1] for row in lines("o.jsonl")] == [float(p.answer == "3") for p in PROBLEMS[:3]]


# ---- by a served judge -----------------------------------------------------------------------------------------------


def test_a_served_judge_labels_within_its_budget_and_resumes_with_a_higher_one(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("REWARDLAB_CACHE", str(tmp_path / "cache"))
    write_solutions("in.jsonl", STEPPED)
    argv = ["prm", "label", "--solutions", "in.jsonl", "--by", "judge", "--judge-tokens", "64", "--batch", "3", "--json"]

    def wrong_in_the_second(body: dict) -> str:
        return "The second one is off: \\boxed{1}"

    with serving(wrong_in_the_second) as server:
        name = f"openai:{server.url}#small,backoff=0.01,concurrency=1"
        # a budget for some of the seven: the most that a request may take is what counts
        code = cli.main([*argv, "--judge", f"{name},budget=850", "--out", "o.jsonl"])
        assert code == 2
        assert "the budget is used up" in capsys.readouterr().err
        before, asked = lines("o.jsonl"), len(server.asked)
        assert 3 == len(before) < asked < 7
        # a judge that fails for a while, and more at a time
        server.troubles = ["500", "429"]
        assert cli.main([*argv, "--judge", f"{name},budget=100000,concurrency=2", "--out", "o.jsonl"]) == 0
        document = json.loads(capsys.readouterr().out)
        # what was answered is not asked again: in the file, or on disk
        assert len(server.asked) == 7 + 2
        assert (document["rows"], document["labelled_steps"], document["right_steps"]) == (7, 14, 0.5)
        assert any(usage["retried"] == 2 for usage in document["served"])
        found = lines("o.jsonl")
        assert found[: len(before)] == before
        assert {tuple(row["labels"]) for row in found} == {(1.0, 0.0, None)}
        # at once, and by other options that change no label: the same file
        assert cli.main([*argv, "--judge", f"openai:{server.url}#small,cache=false", "--out", "p.jsonl"]) == 0
        assert lines("p.jsonl") == found
        with pytest.raises(RewardlabError, match="made with other settings"):
            label_file("o.jsonl", solutions="in.jsonl", by="judge", judge=f"openai:{server.url}#other", judge_tokens=64, batch=3)


def test_by_consensus_solutions_have_labels_only_where_judge_and_continuations_agree(policy, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("REWARDLAB_CACHE", str(tmp_path / "cache"))
    write_solutions("s.jsonl", STEPPED)

    # a random policy comes out right from no step, so that by its continuations the first step is wrong
    def says(body: dict) -> str:
        question = str(body["messages"])
        return "I cannot say" if "Start with 6." in question else f"\\boxed{{{1 if 'Start with 3.' in question else 0}}}"

    with serving(says) as server:
        asked = {"solutions": "s.jsonl", "model": policy, "by": "consensus", "judge": server.name, "judge_tokens": 64, **SMALL}
        document = label_file("o.jsonl", **asked)
    found = lines("o.jsonl")
    assert [row["labels"] for row in found] == [[0.0, None, None]] * 3 + [[None] * 3] + [[0.0, None, None]] * 2 + [[None] * 3]
    assert found[3]["why"] == "the annotators disagree on the first wrong step: step 1, step 2"
    assert "annotator 2 of 2 does not say" in found[6]["why"]
    assert document["kept"] == pytest.approx(5 / 7)
    assert (document["rows"], document["without_labels"], document["labelled_steps"]) == (7, 2, 5)
    # two continuations of two steps of each, and a reply of the judge
    assert document["completions"] == 7 * 2 * 2 + 7
    label.show(document)
    assert "kept" in capsys.readouterr().out
    # what is not kept has no row in a format that cannot hold it
    with serving(says) as server:
        other = label_file("p.jsonl", **{**asked, "judge": server.name}, format="math-shepherd")
    assert (other["rows"], other["unfit"], other["kept"]) == (5, 2, document["kept"])


def test_rows_in_python_are_labelled():
    rows = [{"prompt": s.prompt, "steps": list(s.steps)} for s in SOLUTIONS]
    document = label_file("o.jsonl", solutions=rows, by="tool")
    assert document["rows"] == 3
    assert [x.labels for x in read_solutions("o.jsonl")] == [(1.0, None), (0.0, None), (None,)]
    # the same rows are known again, and others are not
    assert label_file("o.jsonl", solutions=iter(rows), by="tool") == document
    with pytest.raises(RewardlabError, match="digest"):
        label_file("o.jsonl", solutions=rows[:2], by="tool")
