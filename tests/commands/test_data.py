"""`rewardlab data`: every tool on files, and no row is lost."""

import gzip
import importlib
import io
import json
import os
import random
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

import rewardlab
from rewardlab.commands import cli, data
from rewardlab.data.files import read as entries
from rewardlab.data.files import write

TOOLS = {tool: importlib.import_module(f"rewardlab.commands.data.{tool.replace('-', '_')}") for tool in data.SUBCOMMANDS}


def say(*argv: object) -> int:
    return cli.main(["data", *map(str, argv)])


def rows(path: Path) -> list[dict]:
    return [entry.row for entry in entries(path) if entry.row is not None]


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


# ---- the command line ------------------------------------------------------------------------------------------------


def test_the_help_names_every_tool_and_each_has_its_own(capsys):
    assert say() == 0
    said = capsys.readouterr().out
    assert all(f"\n  {tool} " in said and module.HELP in said for tool, module in TOOLS.items())
    with pytest.raises(SystemExit):
        say("dedupe", "--help")
    assert "usage: rewardlab data dedupe" in capsys.readouterr().out
    assert say("dedup") == 2
    assert "unknown command of data 'dedup'; did you mean dedupe?" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["in.json", "in.tsv", "in.jsonl.gz"])
def test_every_form_of_rows_that_is_read_is_a_tools_input(name, tmp_path):
    text = {"in.json": '[{"prompt": "a"}, {"prompt": "a"}]', "in.tsv": "prompt\tn\na\t1\na\t1\n"}.get(name, '{"prompt": "a"}\n' * 2)
    (tmp_path / name).write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
    assert say("dedupe", str(tmp_path / name), "--out", str(tmp_path / "out.jsonl")) == 0
    assert [json.loads(line)["prompt"] for line in (tmp_path / "out.jsonl").read_text().splitlines()] == ["a"]


@pytest.mark.parametrize("tool", data.SUBCOMMANDS)
def test_the_examples_of_help_are_command_lines_that_the_tool_takes(tool):
    examples = [line for line in TOOLS[tool].__doc__.splitlines() if line.startswith("rewardlab data")]
    assert len(examples) >= 2
    for example in examples:
        words = shlex.split(example)
        assert words[2] == tool
        cli.parse(TOOLS[tool], f"data {tool}", words[3:])


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("filter no.jsonl --out out.jsonl", "there is no file no.jsonl"),
        ("filter . --out out.jsonl", ". is a folder; give one file"),
        ("filter in.zip --out out.jsonl", "in.zip"),
        ("filter in.jsonl --out out.json", "the data tools write JSON lines, .csv and .parquet files, not .json"),
        ("filter in.jsonl --out in.jsonl.gz", "the data tools write JSON lines, .csv and .parquet files, not .gz"),
        ("dedupe in.jsonl --out t.jsonl --against t.jsonl", "t.jsonl is read, and would be replaced"),
        ("mix in.jsonl t.jsonl --out t.jsonl", "t.jsonl is read, and would be replaced"),
        ("filter in.jsonl --out no/out.jsonl", "no to write out.jsonl into"),
        ("filter in.jsonl --out -", "name the file for the rows that are left out: --dropped FILE"),
        ("filter in.jsonl --out - --dropped d.jsonl --json", "would both write to stdout"),
        ("filter in.jsonl --out out.jsonl --dropped in.jsonl", "in.jsonl cannot hold the rows that are left out too"),
        ("filter in.jsonl --out out.jsonl --dropped d.csv", "what is left out is written as JSON lines"),
        (
            "filter in.jsonl --out out.jsonl --between rate=1:2",
            "no row of in.jsonl has a column rate; the columns are: prompt, answer",
        ),
        ("filter in.jsonl --out out.jsonl --between x", "--between is written COLUMN=LOW:HIGH, not 'x'"),
        ("filter in.jsonl --out out.jsonl --between answer=5", "bounds are written LOW:HIGH, LOW: or :HIGH, not '5'"),
        ("filter in.jsonl --out out.jsonl --reply-column x", "--reply-column is for --reward, which is not given"),
        ("pairs in.jsonl --out out.jsonl", "in.jsonl has no column of replies; name it by --reply-column"),
        ("dedupe in.jsonl --out out.jsonl --column question", "no row of in.jsonl has a column question"),
        ("dedupe in.jsonl --out out.jsonl --against broken.jsonl", "broken.jsonl, line 2: not JSON"),
        ("dedupe in.jsonl --out out.jsonl --similarity 2", "similarity must be a number above 0, at most 1, not 2"),
        ("mix in.jsonl=0 --out out.jsonl", "each with a weight above 0"),
        ("mix in.jsonl in.jsonl=2 --out out.jsonl", "in.jsonl is given twice"),
        ("mix in.jsonl --out out.jsonl --source-column answer", "in.jsonl has a column answer already"),
        ("mix in.jsonl --out out.jsonl --rename prompt=answer", "in.jsonl, line 1: it has a column prompt and a column answer"),
        ("curriculum in.jsonl --out out.jsonl", "no row of in.jsonl has a column pass_rate"),
        ("curriculum in.jsonl --out out.jsonl --order easy", "unknown order 'easy'; did you mean easy-first"),
        ("curriculum in.jsonl --out out.jsonl --by answer --order bands", "stages need either their number"),
        (
            "curriculum in.jsonl --out out.jsonl --by answer --target 0.5",
            "--target is for --order target, and the order here is easy",
        ),
        ("curriculum in.jsonl --out out.jsonl --by answer --width 0.2", "--width is for --order target"),
        ("curriculum in.jsonl --out out.jsonl --by answer --cuts 1,2", "--cuts is for --order bands"),
        ("curriculum in.jsonl --out out.jsonl --by answer --order hard-first --stages 2", "--stages is for --order bands"),
        (
            "curriculum in.jsonl --out out.jsonl --by answer --order target --hard low",
            "--hard is for --order easy-first, hard-first or",
        ),
        ("curriculum in.jsonl --out out.jsonl --by answer --order target --target 99", "answer lies between 1 and 1"),
        ("filter in.jsonl --out out.xlsx", "the data tools write JSON lines, .csv and .parquet files, not .xlsx"),
        ("filter in.jsonl --out out.jsonl --dropped d.txt", "the data tools write JSON lines, .csv and .parquet files, not .txt"),
        (
            "filter in.jsonl --out out.jsonl --answer-column nope",
            "no row of in.jsonl has a column nope; the columns are: prompt, answer",
        ),
        (
            "filter in.jsonl --out out.jsonl --reward math --reply-column nope",
            "no row to judge has a column nope of replies; the columns",
        ),
        ("dedupe in.jsonl --out out.jsonl --answer-column nope", "no row of in.jsonl has a column nope"),
        ("mix in.jsonl=nan --out out.jsonl", "the weight of in.jsonl is nan"),
        ("mix in.jsonl=inf --out out.jsonl", "the weight of in.jsonl is inf"),
        (
            "mix in.jsonl --out out.jsonl --rename question=prompt",
            "no file has a column question to rename; the columns are: prompt, answer",
        ),
        ("pass-rate in.jsonl --out -", "--out -: pass rates need a file"),
        ("pass-rate in.jsonl --out out.jsonl --temperature 0", "all replies to a problem are the same"),
    ],
)
def test_a_mistake_is_said_before_anything_is_written(line, message, tmp_path, capsys):
    write("in.jsonl", [{"prompt": "a", "answer": 1}])
    write("t.jsonl", [{"prompt": "t", "answer": 1}])
    Path("in.zip").write_bytes(b"PK")
    Path("broken.jsonl").write_text('{"prompt": "b"}\nbroken\n')
    if "--out -" in line and "pass-rate" in line:
        line += " --dropped d.jsonl"
    assert cli.main(["data", *line.split()]) == 2
    assert message in capsys.readouterr().err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["broken.jsonl", "in.jsonl", "in.zip", "t.jsonl"]


# ---- the tools -------------------------------------------------------------------------------------------------------

MIXED = [
    {"prompt": "What is 2+3?", "answer": "5", "pass_rate": 0.5},
    {"prompt": "what is 2 + 3", "answer": "6", "pass_rate": 0.4},
    {"prompt": "What is 9+9?", "answer": "18", "pass_rate": 1.0},
    {"prompt": "What is 4+4?", "answer": "", "pass_rate": 0.5},
    {"prompt": "What is 7*8?", "answer": "56", "pass_rate": 0.0},
    {"prompt": "What is 1+1?", "answer": "2", "pass_rate": None},
]


@pytest.mark.parametrize("suffix", ["jsonl", "csv", "parquet"])
def test_what_is_left_out_is_in_the_other_file_with_place_and_reason(suffix, capsys):
    write(f"in.{suffix}", MIXED)
    assert say("filter", f"in.{suffix}", "--pass-rate", "0.1:0.9", "--out", f"out.{suffix}", "--json") == 0
    document = json.loads(capsys.readouterr().out)
    assert document["dropped"] == {"pass_rate": 3, "no answer": 1}
    assert (document["rows"], document["written"], document["dropped_rows"]) == (6, 2, "out.dropped.jsonl")
    assert [row["prompt"] for row in rows(Path(f"out.{suffix}"))] == ["What is 2+3?", "what is 2 + 3"]
    left = rows(Path("out.dropped.jsonl"))
    # the first line of a CSV file names its columns
    place, before = {"jsonl": ("line", 0), "csv": ("line", 1), "parquet": ("row", 0)}[suffix]
    assert [(row["place"], row["reason"]) for row in left] == [
        (f"{place} {number + before}", reason)
        for number, reason in ((3, "pass_rate"), (4, "no answer"), (5, "pass_rate"), (6, "pass_rate"))
    ]
    assert left[0]["why"] == "pass_rate: 1 is above 0.9"
    assert left[0]["row"]["prompt"] == "What is 9+9?"


def test_in_place_nothing_is_lost_over_several_tools(capsys):
    Path("d.jsonl").write_text("".join(json.dumps(row) + "\n" for row in MIXED) + "broken line\n")
    assert say("filter", "d.jsonl", "--out", "d.jsonl") == 1
    assert "broken: line 7: not JSON" in capsys.readouterr().out
    assert say("dedupe", "d.jsonl", "--out", "d.jsonl") == 0
    assert say("curriculum", "d.jsonl", "--out", "d.jsonl") == 0
    assert [row["prompt"] for row in rows(Path("d.jsonl"))] == ["What is 9+9?", "What is 2+3?", "What is 7*8?"]
    left = rows(Path("d.dropped.jsonl"))
    assert [(row["tool"], row["place"], row["reason"]) for row in left] == [
        ("filter", "line 7", "broken"), ("filter", "line 4", "no answer"), ("dedupe", "line 2", "duplicate"),
        ("curriculum", "line 4", "pass_rate"),
    ]  # fmt: skip
    assert left[0]["raw"] == "broken line"
    assert left[2]["like"] == "line 1"
    assert left[2]["why"] == "equals line 1; its answer is another: '6', not '5'"
    # elsewhere, the file says what this call left out
    assert say("dedupe", "d.jsonl", "--out", "e.jsonl", "--dropped", "d.dropped.jsonl") == 0
    assert rows(Path("d.dropped.jsonl")) == []


def test_a_stream_in_and_out(monkeypatch, capsys):
    text = '{"prompt": "a b c", "answer": 1}\nbroken\n{"prompt": "A b, c.", "answer": 1}\n'
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    assert say("dedupe", "-", "--out", "-", "--dropped", "left.jsonl") == 1
    said = capsys.readouterr()
    assert json.loads(said.out) == {"prompt": "a b c", "answer": 1}
    assert "broken: line 2: not JSON" in said.err
    assert [row["place"] for row in rows(Path("left.jsonl"))] == ["line 2", "line 3"]


def test_what_cannot_be_written_leaves_everything_as_it_was(monkeypatch, capsys):
    write("d.jsonl", MIXED)
    before = Path("d.jsonl").read_bytes()

    def stopped(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("rewardlab.data.tables.write", stopped)
    assert say("filter", "d.jsonl", "--out", "d.jsonl") == 130
    assert Path("d.jsonl").read_bytes() == before


def test_a_reward_judges_the_rows_own_replies(capsys):
    solved = [("2+3", "5", "2+3 = 5\nAnswer: 5"), ("2+4", "6", "Answer: 7"), ("2+5", "seven", "Answer: 7"), ("2+6", "8", None)]
    write("d.jsonl", [dict(zip(("prompt", "answer", "solution"), row, strict=True)) for row in solved])
    assert say("filter", "d.jsonl", "--reward", "final_number", "--reply-column", "solution", "--out", "e.jsonl") == 0
    assert [row["prompt"] for row in rows(Path("e.jsonl"))] == ["2+3"]
    left = rows(Path("e.dropped.jsonl"))
    assert [row["reason"] for row in left] == ["reward", "no verdict", "no reply"]
    assert left[0]["why"] == "reward 0 is below 1: said '7', the answer is '6'"
    # without a reply column, whether the verifier can read the answers
    assert say("filter", "d.jsonl", "--reward", "final_number", "--out", "e.jsonl") == 0
    assert [row["row"]["answer"] for row in rows(Path("e.dropped.jsonl"))] == ["seven"]


def test_contamination_names_the_test_row(capsys):
    write(
        "d.jsonl", [{"question": "How many eggs are in twelve boxes?", "answer": "#"}, {"question": "What is 7*8?", "answer": "56"}]
    )
    write("t.jsonl", [{"question": "None"}, {"question": "what is 7 * 8"}])
    assert say("dedupe", "d.jsonl", "--column", "question", "--against", "t.jsonl", "--out", "e.jsonl") == 0
    (left,) = rows(Path("e.dropped.jsonl"))
    assert (left["reason"], left["place"], left["like"]) == ("in the test set", "line 2", "t.jsonl, line 2")


def test_pairs_of_lists_and_of_single_replies(capsys):
    lists = [
        {"prompt": "a", "answer": 1, "replies": ["x", "y", "z"], "scores": [0.0, 1.0, 0.5]},
        {"prompt": "b", "answer": 2, "replies": ["x", "y"], "scores": [1.0, 1.0]},
        {"prompt": "c", "answer": 3, "replies": ["x"], "scores": [1.0]},
        {"prompt": "d", "answer": 4, "replies": ["x", "y"], "scores": [1.0]},
    ]
    write("d.jsonl", lists)
    assert say("pairs", "d.jsonl", "--out", "p.jsonl") == 0
    assert rows(Path("p.jsonl")) == [
        {"prompt": "a", "answer": 1, "chosen": "y", "rejected": "x", "chosen_score": 1.0, "rejected_score": 0.0, "gap": 1.0}
    ]
    left = rows(Path("p.dropped.jsonl"))
    assert [row["reason"] for row in left] == ["no gap", "too few replies", "no scores"]
    single = [{"prompt": of["prompt"], "answer": of["answer"], "response": r, "score": s, "id": i} for of in lists[:3]
              for i, (r, s) in enumerate(zip(of["replies"], of["scores"], strict=True))]  # fmt: skip
    random.Random(1).shuffle(single)
    # a table holds the scores as text
    write("d.csv", single)
    assert say("pairs", "d.csv", "--choose", "all", "--gap", 0.5, "--out", "p.parquet") == 0
    found = rows(Path("p.parquet"))
    assert {(row["prompt"], row["chosen"], row["rejected"]) for row in found} == {("a", "y", "x"), ("a", "y", "z"), ("a", "z", "x")}
    # what differs between the replies is none of the prompt's
    assert all("id" not in row and row["answer"] == "1" for row in found)


def test_pairs_are_what_dpo_reads(capsys):
    rated = [{"prompt": f"Start with {i}. Add 2.", "replies": ["good", "bad"], "scores": [1, 0]} for i in range(4)]
    write("d.jsonl", rated)
    assert say("pairs", "d.jsonl", "--out", "p.jsonl") == 0
    assert cli.main(["train", "dpo", "--task", "p.jsonl", "--model", "untrained", "--dry-run", "--steps", "1"]) == 0
    assert "chosen" in capsys.readouterr().out


def test_a_mixture_of_files_of_several_kinds(capsys):
    write("a.jsonl", [{"prompt": f"a{i}", "answer": i} for i in range(30)])
    write("b.csv", [{"question": f"b{i}", "answer": i} for i in range(30)])
    argv = ("mix", "a.jsonl=2", "b.csv", "--rows", 30, "--rename", "question=prompt", "--seed", 3)
    assert say(*argv, "--out", "m.parquet", "--json") == 0
    assert json.loads(capsys.readouterr().out)["from_files"] == {"a.jsonl": 20, "b.csv": 10}
    mixed = rows(Path("m.parquet"))
    assert {row["source"] for row in mixed} == {"a.jsonl", "b.csv"}
    assert all(row["prompt"][0] == row["source"][0] for row in mixed)
    assert say(*argv, "--out", "n.parquet") == 0
    assert rows(Path("n.parquet")) == mixed


def test_orders_by_difficulty_in_both_directions(capsys):
    write("d.jsonl", [{"prompt": str(i), "pass_rate": i / 10, "level": i} for i in range(10)])

    def order(*argv: object) -> list[int]:
        assert say("curriculum", "d.jsonl", *argv, "--out", "o.jsonl") == 0
        return [int(row["prompt"]) for row in rows(Path("o.jsonl"))]

    assert order() == list(range(9, -1, -1)) == order("--by", "level", "--order", "hard-first")
    assert order("--by", "level") == list(range(10)) == order("--hard", "high")
    three = order("--order", "bands", "--stages", 2)
    assert set(three[:5]) == {5, 6, 7, 8, 9}
    assert three[:5] != [9, 8, 7, 6, 5]
    assert [row["stage"] for row in rows(Path("o.jsonl"))] == [1] * 5 + [2] * 5
    cut = order("--order", "bands", "--cuts", "0.2,0.75")
    assert [sorted(cut[:2]), sorted(cut[2:7]), sorted(cut[7:])] == [[8, 9], [3, 4, 5, 6, 7], [0, 1, 2]]
    near = order("--order", "target", "--target", 0.5, "--width", 0.05, "--rows", 3)
    assert set(near) == {4, 5, 6}
    assert len(rows(Path("o.dropped.jsonl"))) == 7


def test_the_tools_that_need_no_model_import_no_torch():
    write("d.jsonl", MIXED)
    # the path of the tests may be relative to the folder that they were started in
    env = {**os.environ, "PYTHONPATH": str(Path(rewardlab.__file__).parents[1])}
    code = "import sys; from rewardlab.commands.cli import main; sys.exit(main(sys.argv[1:]) or 'torch' in sys.modules)"
    for argv in (
        ["dedupe", "d.jsonl"],
        ["filter", "d.jsonl", "--pass-rate", "0.1:"],
        ["mix", "d.jsonl"],
        ["curriculum", "d.jsonl"],
    ):
        command = [sys.executable, "-c", code, "data", *argv, "--out", "o.jsonl"]
        assert subprocess.run(command, capture_output=True, env=env).returncode == 0, argv


def test_a_list_of_json_is_read_strictly_and_what_is_written_of_it_is_read_again(capsys):
    Path("d.json").write_text('[{"prompt": "a"}, {"prompt": NaN}, {"prompt": "b", "n": 1, "n": 2}, {"prompt": "c"}]')
    # 1: a script must hear of what could not be read
    assert say("dedupe", "d.json", "--out", "o.jsonl") == 1
    said = capsys.readouterr().out
    assert "broken: row 2: not JSON: NaN is not JSON" in said
    assert "broken: row 3: not JSON: the key 'n' occurs twice in an object" in said
    assert [row["prompt"] for row in rows(Path("o.jsonl"))] == ["a", "c"]
    assert say("dedupe", "o.jsonl", "--out", "p.jsonl") == 0
    assert [row["place"] for row in rows(Path("o.dropped.jsonl"))] == ["row 2", "row 3"]
