"""`rewardlab verify`: settings as flags, and no line of a file is lost."""

import io
import json
import shlex
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
import pytest

from rewardlab.commands import cli, verify
from rewardlab.util import extras

PROGRAM = {"response": "```python\ndef add(a, b): return a + b\n```", "answer": {"tests": "assert add(1, 2) == 3"}}
RIGHT, WRONG = {"response": "yes", "answer": "yes"}, {"response": "no", "answer": "yes"}


def write(path: Path, *lines) -> Path:
    path.write_bytes(b"".join(line if isinstance(line, bytes) else json.dumps(line).encode() + b"\n" for line in lines))
    return path


def read(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def verdicts(path: Path) -> list[bool | None]:
    return [row["correct"] for row in read(path)]


def say(*argv: object) -> int:
    return cli.main(["verify", *map(str, argv)])


@pytest.fixture
def file(tmp_path):
    return write(tmp_path / "v.jsonl", RIGHT, WRONG)


def test_every_example_of_its_help_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "replies.jsonl", {"response": "so 2", "answer": "2"})
    write(tmp_path / "programs.jsonl", PROGRAM)
    (tmp_path / "replies.csv").write_text("reply,gold\nyes,yes\n")
    examples = [line for line in (verify.__doc__ or "").splitlines() if line.startswith("rewardlab verify ")]
    (tmp_path / "mine.py").write_text("def score(completion, answer):\n    return float(answer in completion)\n")
    assert len(examples) == 4
    for example in examples:
        assert cli.main(shlex.split(example)[1:]) == 0, example
    assert verdicts(tmp_path / "judged.jsonl") == [True]
    assert '"correct": true' in capsys.readouterr().out


def test_settings_are_flags_and_the_help_of_a_kind_lists_them(file, tmp_path, capsys):
    out = tmp_path / "out.jsonl"
    write(file, {"response": "YES!", "answer": "yes"})
    assert say("exact_match", "--in", file, "--out", out) == 0
    assert verdicts(out) == [False]
    assert say("exact_match", "--in", file, "--out", out, "--normalised") == 0
    assert verdicts(out) == [True]
    # a text that looks like a number
    assert say("rouge", "--in", file, "--out", out, "--variant", 1, "--at=0.5") == 0
    with pytest.raises(SystemExit):
        say("exact_match", "--help")
    said = capsys.readouterr().out
    assert "--normalised   False     true or false" in said
    assert "also ignore case" in said


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        ("exact_match --normalized", "unknown setting of exact_match 'normalized'; did you mean normalised?"),
        ("exact_mach", "unknown verifier 'exact_mach'; did you mean exact_match"),
        ("code --seconds 0", "seconds of code must be a number above 0, not 0.0"),
        ("code --seconds many", "seconds of code must be a number above 0, not 'many'"),
        ("exact_match --in nothing.jsonl", "there is no file nothing.jsonl"),
        ("exact_match --in .", ". is a folder; give one file"),
        ("exact_match --out no/v.jsonl", "no to write v.jsonl into"),
        ("exact_match --out out.csv", "the output is JSON lines"),
        ("exact_match --out - --json", "would both write to stdout"),
    ],
)
def test_a_mistake_is_said_before_anything_is_written(argv, message, file, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    words = argv.split()
    words += [] if "--in" in words else ["--in", "v.jsonl"]
    words += [] if "--out" in words else ["--out", "out.jsonl"]
    assert say(*words) == 2
    assert message in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["v.jsonl"]


def test_every_line_has_its_line_in_the_output_in_place_and_the_exit_code_tells(tmp_path, capsys):
    lines = [
        b"\xef\xbb\xbf" + json.dumps(RIGHT).encode() + b"\r\n", b"not json\n", WRONG, b"\n", b"[1, 2]\n", {"response": "yes"},
        b'{"response": "yes", "answer": NaN}\n', b'{"response": "yes", "response": "no", "answer": "no"}\n',
        b'{"response": "yes", "answer": "yes", "id": %d}\n' % 10**30, b"[" * 100_000 + b"\n",
        b'{"response": "\xff", "answer": "yes"}\n',
        b'{"response": "\\ud800", "answer": "yes", "id": ' + b"9" * 5000 + b"}\n",
        b'{"response": "a\xe2\x80\xa8b", "answer": "c"}\n',
        b'{"response": "\\ud800", "answer": "c"}',
    ]  # fmt: skip
    file = write(tmp_path / "v.jsonl", *lines)
    assert say("exact_match", "--in", file, "--out", file) == 1
    text = file.read_bytes().decode("utf-8")
    assert text.count("\n") == len(lines)
    rows = [json.loads(line) if line else None for line in text.split("\n")[:-1]]
    assert [row and row["correct"] for row in rows] == [
        True, None, False, None, None, None, None, None, True, None, None, None, False, False,
    ]  # fmt: skip
    assert rows[1] == {"raw": "not json", "correct": None, "extracted": "", "why": rows[1]["why"]}
    starts = {
        1: "line 2: not JSON: ", 4: "line 5: not a JSON object", 5: "line 6: no column answer; it has: response",
        6: "line 7: not JSON: NaN is not JSON", 7: "line 8: not JSON: the key 'response' occurs twice", 9: "line 10: not JSON: ",
        10: "line 11: not UTF-8", 11: "line 12: not JSON: ",
    }  # fmt: skip
    assert rows[3] is None  # the blank line
    for i, start in starts.items():
        assert rows[i]["why"].startswith(start)
    assert rows[5]["response"] == "yes"
    assert rows[8]["id"] == 10**30
    assert rows[13]["response"] == "\ud800"
    said = capsys.readouterr().out
    assert "broken           8" in said
    assert "broken: line 2: not JSON" in said
    # what was judged once can be judged again
    first = file.read_text("utf-8")
    assert say("exact_match", "--in", file, "--out", file) == 1
    assert first.count("\n") == file.read_text("utf-8").count("\n")


def test_a_file_that_is_not_finished_is_not_touched(file, monkeypatch):
    before = file.read_text()

    def stopped(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("rewardlab.api.verify.judge", stopped)
    assert say("exact_match", "--in", file, "--out", file) == 130
    assert file.read_text() == before
    assert [path.name for path in file.parent.iterdir()] == ["v.jsonl"]


def test_a_link_stays_a_link_and_a_device_a_device(file, tmp_path):
    link = tmp_path / "link.jsonl"
    link.symlink_to(file)
    assert say("exact_match", "--in", link, "--out", link) == 0
    assert link.is_symlink()
    assert verdicts(file) == [True, False]
    assert say("exact_match", "--in", file, "--out", "/dev/null") == 0
    assert Path("/dev/null").is_char_device()


def test_a_file_without_the_column_is_refused_and_stays(tmp_path, capsys):
    file = write(tmp_path / "v.jsonl", RIGHT, WRONG)
    before = file.read_text()
    assert say("exact_match", "--in", file, "--out", file, "--answer-column", "gold") == 2
    assert "have no column gold; they have: response, answer; name it: --answer-column answer" in capsys.readouterr().err
    assert file.read_text() == before
    write(file, RIGHT | {"why": "mine"})
    assert say("exact_match", "--in", file, "--out", file) == 2
    assert "a column why, which the verdict would overwrite" in capsys.readouterr().err


def test_cells_and_numbers_are_read_as_they_are_written(tmp_path):
    out = tmp_path / "out.jsonl"
    (tmp_path / "v.csv").write_text("response,answer\n1.50,1.50\n42,42\n")
    assert say("exact_match", "--in", tmp_path / "v.csv", "--out", out) == 0
    assert [(row["response"], row["correct"]) for row in read(out)] == [("1.50", True), ("42", True)]
    rows = [{"response": 42, "answer": "42"}, {"response": None, "answer": "42"}]
    assert say("exact_match", "--in", write(tmp_path / "v.jsonl", *rows), "--out", out) == 1
    assert verdicts(out) == [True, None]


def test_no_rows_are_no_failure_and_no_verdict_is_one(tmp_path, capsys):
    assert say("exact_match", "--in", write(tmp_path / "v.jsonl"), "--out", tmp_path / "out.jsonl") == 0
    assert "the input has no rows" in capsys.readouterr().out
    rows = {"response": "5", "answer": "none"}
    assert say("final_number", "--in", write(tmp_path / "v.jsonl", rows), "--out", tmp_path / "out.jsonl") == 1
    assert "no row got a verdict, most often because: the gold answer 'none' is not a number" in capsys.readouterr().err


def test_a_broken_line_keeps_its_text_and_its_first_cause(tmp_path):
    file = write(tmp_path / "v.jsonl", RIGHT, b"not json\n")
    for _ in range(2):
        assert say("exact_match", "--in", file, "--out", file) == 1
        row = read(file)[1]
        assert row["raw"] == "not json"
        assert row["why"].startswith("line 2: not JSON")


def test_standard_input_and_output(monkeypatch, capsys):
    text = json.dumps({"text": "yes", "gold": "yes"}) + "\nbroken\n"
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    assert say("exact_match", "--in", "-", "--out", "-", "--response-column", "text", "--answer-column", "gold") == 1
    said = capsys.readouterr()
    assert [json.loads(line)["correct"] for line in said.out.splitlines()] == [True, None]
    assert "broken: line 2" in said.err


def test_tables_are_read(tmp_path):
    (tmp_path / "v.csv").write_text('response,answer\n"a\nb","a\nb"\nno,yes\n')
    pa.parquet.write_table(pa.table({"response": ["7", "8"], "answer": [7, 7]}), tmp_path / "v.parquet")
    for name, kind in (("v.csv", "exact_match"), ("v.parquet", "final_number")):
        assert say(kind, "--in", tmp_path / name, "--out", tmp_path / "out.jsonl") == 0
        assert verdicts(tmp_path / "out.jsonl") == [True, False]


@pytest.mark.parametrize(
    ("kind", "module"),
    [
        ("sql", "duckdb"), ("sql", "sqlglot"), ("json_schema", "jsonschema"), ("function_calls", "jsonschema"), ("math", "sympy"),
        ("graph_solution", "networkx"), ("instructions", "py3langid"), ("method_contract", "z3"),
    ],
)  # fmt: skip
def test_a_missing_package_is_said_before_anything(kind, module, file, tmp_path, monkeypatch, capsys):
    there = extras.importlib.util.find_spec
    monkeypatch.setattr(extras.importlib.util, "find_spec", lambda name: None if name == module else there(name))
    assert say(kind, "--in", file, "--out", tmp_path / "out.jsonl") == 2
    assert f"the verifier {kind} needs {module}: pip install 'rewardlab[verify]'" in capsys.readouterr().err
    assert not (tmp_path / "out.jsonl").exists()


def test_columns_under_other_names_are_told_with_the_flags_to_give(tmp_path, capsys):
    for row, flags in (
        ({"completion": "yes", "solution": "yes"}, "name them: --response-column completion --answer-column solution"),
        ({"completion": "yes", "answer": "yes"}, "name it: --response-column completion"),
        ({"said": "yes", "truth": "yes"}, "name them: --response-column NAME --answer-column NAME"),
    ):
        file = write(tmp_path / "v.jsonl", row, row)
        assert say("exact_match", "--in", file, "--out", tmp_path / "o.jsonl") == 2
        assert flags in capsys.readouterr().err
        if "NAME" not in flags:
            assert say("exact_match", "--in", file, "--out", tmp_path / "o.jsonl", *flags.split(": ")[1].split()) == 0


def test_replies_and_prompts_may_be_messages(tmp_path):
    def chat(role, text):
        return [{"role": "system", "content": "Be brief."}, {"role": role, "content": text}]

    mine = tmp_path / "mine.py"
    mine.write_text("def score(prompt, completion): return float(prompt + completion == 'whoyes')")
    rows = [{"prompt": chat("user", "who"), "response": chat("assistant", text), "answer": "yes"} for text in ("yes", "no")]
    file = write(tmp_path / "v.jsonl", *rows)
    for kind in ("exact_match", f"{mine}:score"):
        assert say(kind, "--in", file, "--out", tmp_path / "o.jsonl") == 0
        assert verdicts(tmp_path / "o.jsonl") == [True, False]


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be"])
def test_a_file_in_utf_16_is_refused_with_the_command_that_converts_it(encoding, tmp_path, capsys):
    mark = "" if encoding == "utf-16" else "\ufeff"
    file = tmp_path / "v.jsonl"
    file.write_bytes((mark + json.dumps({"response": "yes", "answer": "yes"}) + "\n").encode(encoding))
    for command in (["verify", "exact_match", "--in"], ["data", "dedupe"]):
        assert cli.main([*command, str(file), "--out", str(tmp_path / "o.jsonl")]) == 2
        assert "v.jsonl, line 1: not UTF-8; convert it (iconv -f utf16 -t utf8)" in capsys.readouterr().err
        assert not (tmp_path / "o.jsonl").exists()
