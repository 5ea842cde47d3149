"""Problems of one's own, from every kind of file."""

import csv
import gzip
import json
import time
from pathlib import Path

import pytest

import rewardlab
from rewardlab import registry
from rewardlab.api.checking import check_answers
from rewardlab.commands.cli import main
from rewardlab.core import Trajectory, Turn
from rewardlab.errors import RewardlabError
from rewardlab.runs.config import COLUMNS, RunConfig
from rewardlab.tasks.rows import splits

ROWS = [{"prompt": f"What is {i}+1?", "answer": i + 1} for i in range(30)]


def as_csv(rows: list[dict], delimiter: str = ",") -> str:
    import io

    text = io.StringIO()
    writer = csv.DictWriter(text, rows[0], delimiter=delimiter)
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def write(path: Path, rows: list[dict]) -> str:
    if path.suffix == ".parquet":
        import pyarrow as pa
        import pyarrow.parquet as pq

        pq.write_table(pa.Table.from_pylist(rows), path)
        return str(path)
    texts = {
        ".jsonl": lambda: "".join(json.dumps(row) + "\n" for row in rows),
        ".json": lambda: json.dumps(rows, indent=1),
        ".csv": lambda: as_csv(rows),
        ".tsv": lambda: as_csv(rows, "\t"),
    }
    path.write_text(texts[path.suffix]())
    return str(path)


def everything(path: str, **options) -> dict:
    """All problems of a file, by question."""
    task = registry.task(path, **options)
    return {p.question: p for p in [*task.train.problems, *task.test]}


@pytest.mark.parametrize("suffix", ["jsonl", "json", "csv", "tsv", "parquet"])
def test_every_kind_of_file_holds_the_same_problems(tmp_path, suffix):
    problems = everything(write(tmp_path / f"mine.{suffix}", ROWS))
    assert {q: str(p.answer) for q, p in problems.items()} == {r["prompt"]: str(r["answer"]) for r in ROWS}


@pytest.mark.parametrize("suffix", ["jsonl", "json", "csv", "tsv"])
def test_files_compressed_by_gzip_hold_the_same_problems(tmp_path, suffix):
    path = Path(write(tmp_path / f"mine.{suffix}", ROWS))
    (tmp_path / f"mine.{suffix}.gz").write_bytes(gzip.compress(path.read_bytes()))
    path.unlink()
    task = registry.task(f"{path}.gz")
    assert task.name == "mine"
    assert {p.question for p in [*task.train.problems, *task.test]} == {r["prompt"] for r in ROWS}
    (tmp_path / "split").mkdir()
    for split in ("train", "test"):
        (tmp_path / "split" / f"{split}.{suffix}.gz").write_bytes(Path(f"{path}.gz").read_bytes())
    assert len(registry.task(str(tmp_path / "split")).test) == len(ROWS)
    Path(f"{path}.gz").write_bytes(Path(f"{path}.gz").read_bytes()[:-20])
    with pytest.raises(RewardlabError, match="is no whole gzip file"):
        registry.task(f"{path}.gz")


def test_a_compressed_parquet_file_is_refused(tmp_path):
    (tmp_path / "mine.parquet.gz").write_bytes(b"x")
    with pytest.raises(RewardlabError, match=r"cannot read .*mine\.parquet\.gz: problems are in"):
        registry.task(str(tmp_path / "mine.parquet.gz"))


def test_numbers_as_answers_are_judged_as_numbers(tmp_path):
    rows = [{"prompt": "a", "answer": 4}, {"prompt": "b", "answer": 4.0}, {"prompt": "c", "answer": 0.5}]
    problems = everything(write(tmp_path / "mine.parquet", [{**r, "answer": float(r["answer"])} for r in rows]))
    verify = registry.part("reward", "final_answer")
    for question, right in (("a", "Answer: 4"), ("b", "Answer: 4"), ("c", "Answer: 1/2")):
        replies = [Trajectory(problems[question]).plus(Turn("policy", [1], text=t), "end") for t in (right, "Answer: 7")]
        assert [s.value for s in verify([replies], None)[0]] == [1.0, 0.0]


def test_a_spreadsheets_csv_with_mark_commas_and_line_breaks(tmp_path):
    path = tmp_path / "mine.csv"
    path.write_bytes(b'\xef\xbb\xbfprompt,answer\r\n"One, two\nor three?",3\r\n\r\nb,4\r\n')
    assert everything(str(path))["One, two\nor three?"].answer == "3"


def test_cells_of_any_length(tmp_path):
    path = write(tmp_path / "mine.csv", [{"prompt": "x" * 200_000, "answer": "1"}, {"prompt": "b", "answer": "2"}])
    assert len(everything(path)) == 2


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("a.csv", 'prompt,answer\n"a\nb",1\nc,2,3\n', r"a\.csv, line 4: 3 cells, but 2 columns: prompt, answer"),
        ("a.csv", 'prompt,answer\na,1\nb,"2\n', r"a\.csv, line 3: broken CSV"),
        ("a.csv", "", r"a\.csv holds no problems"),
        ("a.csv", "prompt,answer\na,1\nb,\n", r"a\.csv, line 3: the problem has no answer"),
        ("a.json", '[{"prompt": "a",\n "answer" 1}]', r"a\.json, line 2: broken JSON: Expecting ':' delimiter at column 11$"),
        ("a.jsonl", '{"prompt": "a"}\n{"prompt":\n', r"a\.jsonl, line 2: broken JSON: Expecting value at column 11$"),
        ("a.json", '{"prompt": "a"}\n{"prompt": "b"}\n', r"a\.json, line 2: broken JSON.*is named \.jsonl"),
        ("a.json", '{"prompt": "a"}', "expected an array of objects, found dict"),
        ("a.json", '[{"prompt": "a", "answer": 1}, 7]', r"object 2: expected an object"),
    ],
)
def test_what_is_broken_is_named_by_file_and_line(tmp_path, name, text, says):
    (tmp_path / name).write_text(text)
    with pytest.raises(RewardlabError, match=says):
        registry.task(str(tmp_path / name))


@pytest.mark.parametrize(
    ("row", "says"),
    [
        ('{"prompt": "a", "answer": NaN}', "broken JSON: NaN is not JSON"),
        ('{"prompt": "a", "answer": 1e999}', "broken JSON: the number 1e999 is out of range"),
        ('{"prompt": "a", "answer": 1, "answer": 2}', "broken JSON: the key 'answer' occurs twice in an object"),
        ('{"prompt": "a", "answer": ' + "[" * 100_000 + "]" * 100_000 + "}", "broken JSON: nested too deeply"),
        ('{"prompt": "a", "answer": ' + "9" * 5000 + "}", "broken JSON: Exceeds the limit"),
    ],
)
def test_rows_are_read_as_strictly_as_by_the_data_tools(tmp_path, row, says):
    rows = ['{"prompt": "What is 1+1?", "answer": 2}', row, '{"prompt": "What is 2+2?", "answer": 4}']
    (tmp_path / "a.jsonl").write_text("\n".join(rows))
    (tmp_path / "a.json").write_text(f"[{', '.join(rows)}]")
    (tmp_path / "b.json").write_text(f'{{"about": [], "data": [{", ".join(rows)}]}}')
    for name, place in (("a.jsonl", "line 2"), ("a.json", "object 2"), ("b.json", "object 2")):
        with pytest.raises(RewardlabError) as e:
            registry.task(str(tmp_path / name))
        assert str(e.value).startswith(f"{tmp_path / name}, {place}: {says}")


def test_two_columns_of_one_name_are_refused(tmp_path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    (tmp_path / "a.csv").write_text("prompt,answer,answer\nWhat is 1+1?,2,3\n")
    pq.write_table(pa.table([["What is 1+1?"], [2], [3]], names=["prompt", "answer", "answer"]), tmp_path / "a.parquet")
    (tmp_path / "a.json").write_text('{"data": [{"prompt": "a", "answer": 1}], "data": 3}')
    for name, column in (("a.csv", "answer"), ("a.parquet", "answer"), ("a.json", "data")):
        with pytest.raises(RewardlabError, match=rf"{name}.*: several columns are named '{column}'"):
            registry.task(str(tmp_path / name))


@pytest.mark.parametrize(("suffix", "place"), [("jsonl", "line 3"), ("json", "object 3")])
@pytest.mark.parametrize("value", ["a\ud83d cut", ["fine", {"role": "a\udc00"}]])
def test_half_of_a_character_is_named_with_its_row_and_column(tmp_path, suffix, place, value):
    file = write(tmp_path / f"rows.{suffix}", [*ROWS[:2], {**ROWS[2], "facts": value}, {**ROWS[3], "facts": "whole: 😀"}])
    with pytest.raises(RewardlabError, match=f"rows.{suffix}, {place}: the column 'facts' holds half of a character .*take it out"):
        registry.task(file)


@pytest.mark.parametrize("suffix", ["csv", "tsv", "jsonl", "json"])
@pytest.mark.parametrize(("encoding", "iconv"), [("latin-1", "latin1"), ("utf-16", "utf16")])
def test_another_encoding_is_named_with_its_line_and_what_to_do(tmp_path, suffix, encoding, iconv):
    # beyond what is read at once
    rows = [*ROWS * 100, {"prompt": "P@rez?", "answer": 1}, *ROWS]
    path = Path(write(tmp_path / f"mine.{suffix}", rows))
    text = path.read_text().replace("@", "é")
    path.write_bytes(text.encode(encoding))
    bad = 1 if encoding == "utf-16" else text[: text.index("é")].count("\n") + 1
    with pytest.raises(RewardlabError, match=rf"line {bad}: not UTF-8; convert it \(iconv -f {iconv} -t utf8\)$"):
        registry.task(str(path))


@pytest.mark.parametrize("delimiter", [";", "\t", "|"])
def test_a_csv_of_other_delimiters_is_read(tmp_path, delimiter):
    rows = [{"prompt": f"One, two, or {i}; which?", "answer, in kg": i} for i in range(5)]
    (tmp_path / "mine.csv").write_text(as_csv(rows, delimiter))
    problems = everything(str(tmp_path / "mine.csv"), answer_column="answer, in kg")
    assert {q: p.answer for q, p in problems.items()} == {r["prompt"]: str(r["answer, in kg"]) for r in rows}


def test_other_delimiters_in_a_csv_of_commas_are_text(tmp_path):
    rows = [{"prompt": f"{i};a|b", "answer (a|b;c)": i} for i in range(5)]
    assert everything(write(tmp_path / "mine.csv", rows), answer_column="answer (a|b;c)")["3;a|b"].answer == "3"
    assert "a;b" in everything(write(tmp_path / "one.csv", [{"prompt": "a;b"}, {"prompt": "c"}]))


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        (
            "a.csv",
            "prompt,answer\na,1\nb\nc,3\nd,\n,5\n",
            r"line 3: 1 cells, but 2 columns.*\(3 of 5 rows are bad; this is the first\)",
        ),
        ("a.jsonl", '{"prompt": "a"}\n{"prompt"\n{}\n7\n', r"line 2: broken JSON.*\(3 of 4 rows are bad; this is the first\)"),
        ("a.json", '[{"prompt": ""}, {"prompt": ""}, {"prompt": "a"}]', r"object 1: the prompt is empty \(2 of 3 rows"),
        (
            "a.csv",
            "prompt,answer\na,1\nb,\n",
            r"\(column 'answer' is ''\)\. Without an answer: line 3\. To leave them out: .*/a\.csv --out",
        ),
        (
            "a.json",
            '[{"prompt": "a", "answer": 1}, {"prompt": "b"}]',
            r"it has no column 'answer'; its columns are: prompt\)\. Without an answer: object 2$",
        ),
        ("a.csv", "question,answer\na,1\nb,2\n", r"The columns are: question, answer$"),
    ],
)
def test_the_first_bad_row_is_named_and_all_are_counted(tmp_path, name, text, says):
    (tmp_path / name).write_text(text)
    with pytest.raises(RewardlabError, match=says):
        registry.task(str(tmp_path / name))


def test_rows_without_an_answer_are_named_with_the_command_that_leaves_them_out(tmp_path):
    rows = [{"prompt": f"What is {i}?", "gold": str(i)} for i in range(20)]
    bad = [*rows[:3], {"prompt": "Which?", "gold": None}, {"prompt": "Why?"}, *rows[3:], *({"prompt": f"{i}?"} for i in range(10))]
    path = write(tmp_path / "mine.jsonl", bad)
    with pytest.raises(RewardlabError, match=r"Without an answer: line 4, line 5, line 23, .* and 2 more") as error:
        registry.task(path, answer_column="gold")
    command = str(error.value).partition("To leave them out: rewardlab ")[2].replace("kept.jsonl", str(tmp_path / "kept.jsonl"))
    assert main(command.split()) == 0
    assert len(everything(str(tmp_path / "kept.jsonl"), answer_column="gold")) == 20
    # a row without a prompt is another fault
    with pytest.raises(RewardlabError, match="no column 'prompt'") as error:
        registry.task(write(tmp_path / "other.jsonl", [rows[0], {"gold": 1}, rows[1]]), answer_column="gold")
    assert "Without an answer" not in str(error.value)


def test_a_list_inside_an_object_is_read(tmp_path):
    (tmp_path / "mine.json").write_text(json.dumps({"version": "1", "tags": [], "data": ROWS}))
    assert len(everything(str(tmp_path / "mine.json"))) == len(ROWS)
    (tmp_path / "mine.json").write_text(json.dumps({"train": ROWS, "test": ROWS}))
    with pytest.raises(RewardlabError, match="expected an array of objects, found dict"):
        registry.task(str(tmp_path / "mine.json"))


@pytest.mark.parametrize(
    ("row", "answer", "says"),
    [
        ({"question": "a", "solution": "1"}, None, r"no column 'prompt'; did you mean 'question' \(--prompt-column question\)"),
        ({"Prompt": "a", "answer": "1"}, None, r"did you mean 'Prompt'"),
        ({"Question": "a", "Answer": "1"}, None, r"no column 'prompt'; did you mean 'Question' \(--prompt-column Question\)"),
        ({"prompt": "a", "label": "1"}, "gold", r"no column 'gold'; did you mean 'label' \(--answer-column label\)"),
        ({"prompt": "a", "x": "1"}, "gold", r"no column 'gold'; Name yours with --answer-column\. The columns are: prompt, x"),
    ],
)
def test_a_missing_column_is_named_with_what_may_be_meant(tmp_path, row, answer, says):
    with pytest.raises(RewardlabError, match=says):
        registry.task(write(tmp_path / "mine.csv", [row]), answer_column=answer)


def test_an_answer_column_of_another_name_is_suggested_where_answers_are_needed(tmp_path):
    task = registry.task(write(tmp_path / "mine.csv", [{"prompt": "a", "label": "1"}, {"prompt": "b", "label": "2"}]))
    with pytest.raises(RewardlabError, match=r"Name the column with --answer-column \(did you mean label\?\)"):
        check_answers(registry.build("grpo"), task)


def test_a_world_whose_verifier_counts_needs_no_answers():
    for name in ("packings", "trips"):
        check_answers(registry.build("grpo"), registry.task(name))


# ---- held-out problems -----------------------------------------------------------------------------------------------


def test_a_held_out_file_of_ones_own_is_never_trained_on(tmp_path):
    path, held = write(tmp_path / "mine.csv", ROWS), write(tmp_path / "held.json", ROWS[:7])
    task = registry.task(path, test=held)
    assert (len(task.train), len(task.test)) == (23, 7)
    assert not {p.key for p in task.train.problems} & {p.key for p in task.test}
    assert Path(task.source["options"]["test"]).is_absolute()


@pytest.mark.parametrize("name", ["test", "validation", "dev"])
def test_a_held_out_split_of_a_folder_is_used_as_such(tmp_path, name):
    write(tmp_path / "train.csv", ROWS[:20])
    write(tmp_path / f"{name}.json", ROWS[20:])
    task = registry.task(str(tmp_path))
    assert (len(task.train), len(task.test)) == (20, 10)


def test_a_folder_as_the_hub_lays_it_out(tmp_path):
    (tmp_path / "data").mkdir()
    for i, part in enumerate((ROWS[:10], ROWS[10:20])):
        write(tmp_path / "data" / f"train-0000{i}-of-00002.parquet", part)
    write(tmp_path / "data" / "test-00000-of-00001.parquet", ROWS[20:])
    task = registry.task(str(tmp_path))
    assert (len(task.train), len(task.test)) == (20, 10)
    # as --test, the folder means its test split
    assert len(registry.task(write(tmp_path / "mine.csv", ROWS), test=str(tmp_path)).test) == 10


def test_settings_about_ones_own_data_are_refused_for_other_tasks():
    for name in COLUMNS:
        with pytest.raises(RewardlabError, match=f"{name} is for problems of your own; the task arithmetic"):
            registry.task("arithmetic", **{name: "x"})


# ---- TRL's and verl's formats ----------------------------------------------------------------------------------------


def said(role: str, text: str) -> dict:
    return {"role": role, "content": text}


def test_prompts_and_answers_in_the_format_of_verl(tmp_path):
    rows = [
        {"data_source": "x", "prompt": [said("user", f"{i}?")], "reward_model": {"style": "rule", "ground_truth": str(i)}}
        for i in range(3)
    ]
    problem = everything(write(tmp_path / "mine.parquet", rows))["2?"]
    assert problem.answer == "2"
    assert problem.meta["data_source"] == "x"
    named = everything(write(tmp_path / "mine.jsonl", rows), answer_column="reward_model.style")["2?"]
    assert named.answer == "rule"


@pytest.mark.parametrize("suffix", ["jsonl", "parquet"])
def test_completions_to_imitate_are_found_in_every_format_of_trl(tmp_path, suffix):
    chat = [said("system", "Be short."), said("user", "1+1?")]
    for rows in (
        [{"prompt": "1+1?", "completion": "2"}, {"prompt": "b", "completion": "3"}],
        [
            {"prompt": chat, "completion": [said("assistant", "2")]},
            {"prompt": [said("user", "b")], "completion": [said("assistant", "3")]},
        ],
        [{"messages": [*chat, said("assistant", "2")]}, {"messages": [said("user", "b"), said("assistant", "3")]}],
    ):
        problem = everything(write(tmp_path / f"mine.{suffix}", rows))["1+1?"]
        assert problem.meta == {"solution": "2"}
        assert problem.answer is None
        assert problem.prompt[-1].text == "1+1?"


def test_a_column_of_completions_is_named_and_stands_beside_the_answer(tmp_path):
    rows = [{"q": f"{i}?", "a": i, "how": f"It is {i}."} for i in range(3)]
    names = {"prompt_column": "q", "answer_column": "a", "completion_column": "how"}
    problem = everything(write(tmp_path / "mine.csv", rows), **names)["2?"]
    assert (problem.answer, problem.meta) == ("2", {"solution": "It is 2."})
    with pytest.raises(RewardlabError, match=r"no column 'hwo'; did you mean 'how' \(--completion-column how\)"):
        everything(write(tmp_path / "mine.csv", rows), **names | {"completion_column": "hwo"})


def test_of_a_conversation_every_reply_is_learned_from(tmp_path):
    turns = [said("user", "1+1?"), said("assistant", "2"), said("user", "and 1?"), said("assistant", "3")]
    path = write(tmp_path / "mine.jsonl", [{"messages": turns}, {"messages": [said("user", "x"), said("assistant", "y")]}])
    assert everything(path)["1+1?"].meta == {"solution": ["2", "and 1?", "3"]}
    twice = [said("user", "1+1?"), said("assistant", "2"), said("assistant", "3")]
    with pytest.raises(RewardlabError, match="line 1: after the prompt, messages of assistant and user must take turns"):
        everything(write(tmp_path / "mine.jsonl", [{"messages": twice}]))


def test_messages_in_parts_and_in_a_cell(tmp_path):
    parts = [{"role": "user", "content": [{"type": "text", "text": "1+"}, {"type": "text", "text": "1?"}]}]
    rows = [{"prompt": parts, "answer": 2}, {"prompt": [said("user", "b")], "answer": 3}]
    assert set(everything(write(tmp_path / "mine.jsonl", rows))) == {"1+1?", "b"}
    cells = [{**row, "prompt": json.dumps(row["prompt"])} for row in rows]
    assert set(everything(write(tmp_path / "mine.csv", cells))) == {"1+1?", "b"}


def test_a_conversation_written_as_json_is_read_in_every_kind_of_file(tmp_path):
    rows = [
        {"prompt": json.dumps([said("system", "Be short."), said("user", f"{i}?")], indent=1), "answer": str(i)} for i in range(3)
    ]
    for suffix in ("jsonl", "parquet", "csv"):
        problem = everything(write(tmp_path / f"mine.{suffix}", rows))["2?"]
        assert [m.role for m in problem.prompt] == ["system", "user"]
    texts = ['[{"a": 1}]', '[{"role": "user", "content": "a"}] is what?']
    assert set(everything(write(tmp_path / "mine.jsonl", [{"prompt": t} for t in texts]))) == set(texts)


def test_conversations_of_sharegpt_are_read(tmp_path):
    def chat(*turns):
        return {"conversations": [{"from": who, "value": text} for who, text in turns]}

    rows = [chat(("system", "Be short."), ("human", "1+1?"), ("gpt", "2")), chat(("human", "b"), ("gpt", "3"))]
    problem = everything(write(tmp_path / "mine.jsonl", rows))["1+1?"]
    assert [(m.role, m.text) for m in problem.prompt] == [("system", "Be short."), ("user", "1+1?")]
    assert problem.meta == {"solution": "2"}


@pytest.mark.parametrize("suffix", ["jsonl", "csv"])
def test_the_prompt_of_preferences_may_lie_within_the_pair(tmp_path, suffix):
    def pair(question, good, bad):
        both = [[said("user", question), said("assistant", reply)] for reply in (good, bad)]
        return dict(zip(("chosen", "rejected"), map(json.dumps, both) if suffix == "csv" else both, strict=True))

    problem = everything(write(tmp_path / f"mine.{suffix}", [pair("1+1?", "2", "3"), pair("b", "c", "d")]))["1+1?"]
    assert problem.meta == {"chosen": "2", "rejected": "3"}
    assert problem.answer is None
    apart = {"chosen": [said("user", "a"), said("assistant", "b")], "rejected": [said("user", "c"), said("assistant", "d")]}
    with pytest.raises(RewardlabError, match="line 1: chosen and rejected have no prompt in common"):
        everything(write(tmp_path / "mine.jsonl", [apart]))


# ---- the hub ---------------------------------------------------------------------------------------------------------


def test_a_hub_out_of_reach_is_said_within_seconds(no_hub):
    started = time.monotonic()
    with pytest.raises(RewardlabError, match=r"no Hugging Face hub can be reached.*hf download --repo-type dataset nobody/gsm8k"):
        registry.task("hub:nobody/gsm8k,config=main")
    assert time.monotonic() - started < 10


def test_a_dataset_of_the_hub_is_read_from_the_cache_where_the_hub_is_out_of_reach(no_hub, tmp_path):
    no_hub("nobody/sums", "main", train=ROWS)
    task = registry.task("hub:nobody/sums,config=main")
    assert (task.name, len(task.train) + len(task.test)) == ("sums", 30)
    # the held-out problems of a file of one's own, too
    mine = write(tmp_path / "mine.csv", [{"prompt": "a", "answer": 1}])
    assert len(registry.task(mine, test="hub:nobody/sums,config=main,split=train").test) == 30


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("hub:gsm8k", "is named hub:OWNER/NAME"),
        ("hub:openai/gsm8k,conf=main", "unknown option of a hub dataset 'conf'; did you mean config"),
        ("hub:openai/gsm8k,main", "unknown option of a hub dataset 'main'"),
        ("hub:openai/gsm8k,config=", "option 'config' .*has no value"),
        ("openai/gsm8k", "hub:openai/gsm8k for a dataset of the hub"),
    ],
)
def test_a_name_that_cannot_be_one_of_the_hub_is_refused(name, says):
    with pytest.raises(RewardlabError, match=says):
        registry.task(name)


def test_settings_about_ones_own_data_are_kept_with_a_run(tmp_path, monkeypatch):
    path, held = write(tmp_path / "mine.csv", ROWS), write(tmp_path / "held.csv", ROWS[:7])
    monkeypatch.chdir(tmp_path)
    task = registry.task("mine.csv", test="held.csv", system="Be kind.")
    config = RunConfig.from_json({"task": task.name, "source": task.source})
    assert (config.task, config.test, config.system, config.prompt_column) == (path, held, "Be kind.", None)


# ---- order -----------------------------------------------------------------------------------------------------------


def test_problems_may_be_taken_in_the_order_of_the_file(tmp_path):
    path = write(tmp_path / "mine.jsonl", ROWS)
    task = registry.task(path, order="file")
    held = {p.question for p in task.test}
    in_file = [row["prompt"] for row in ROWS if row["prompt"] not in held]
    assert [task.train[i].question for i in range(2 * len(in_file))] == 2 * in_file
    shuffled = registry.task(path)
    assert [shuffled.train[i].question for i in range(len(in_file))] != in_file
    with pytest.raises(RewardlabError, match="order"):
        registry.task(path, order="sorted")


def test_rows_whose_prompts_are_all_held_out_can_be_measured_on_and_not_trained_on(tmp_path):
    """Other replies to the prompts of a run: `rewardlab eval RUN --test FILE` reads both files."""
    here, there = (
        write(tmp_path / name, [{"prompt": p, "chosen": f"{p}{reply}", "rejected": "no"} for p in "ab"])
        for name, reply in (("here.jsonl", "1"), ("there.jsonl", "2"))
    )
    task = registry.task(here, test=there)
    assert [p.meta["chosen"] for p in task.test] == ["a2", "b2"]
    assert task.columns == ("prompt", "chosen", "rejected")
    with pytest.raises(RewardlabError, match="no problems to train on"):
        task.train[0]
    for refused in (rewardlab.train, rewardlab.plan):
        with pytest.raises(RewardlabError, match="here holds no training problem that is not a test problem too"):
            refused("bradley_terry", model="embedded", task=here, test=there)


def test_a_held_out_file_without_problems_is_the_one_that_is_named(tmp_path):
    (tmp_path / "train.jsonl").write_text('{"prompt": "What is 1+1?", "answer": 2}\n')
    (tmp_path / "empty.jsonl").write_text("")
    with pytest.raises(RewardlabError, match=r"empty\.jsonl holds no test problems"):
        registry.task(str(tmp_path / "train.jsonl"), test=str(tmp_path / "empty.jsonl"))


def test_a_folder_that_lacks_parts_or_holds_folders_of_splits_says_so(tmp_path):
    row = json.dumps({"prompt": "a", "answer": "1"}) + "\n"
    for name in ("main/train-00000-of-00002", "main/train-00001-of-00002", "other/test", "cut/data/train-00000-of-00003"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / f"{name}.jsonl").write_text(row + row.replace("a", "b", 1))
    assert [place.rpartition("/")[2] for place, _ in splits(str(tmp_path / "main"))["train"]] == [
        f"train-0000{part}-of-00002.jsonl, line {line}" for part in (0, 1) for line in (1, 2)
    ]
    with pytest.raises(RewardlabError, match=r"holds 1 files like train-00000-of-00003.jsonl, whose names say that there are 3"):
        splits(str(tmp_path / "cut"))
    (tmp_path / "cut/data/train-00000-of-00003.jsonl").rename(tmp_path / "cut/data/mine.jsonl")
    with pytest.raises(RewardlabError, match=r"nor a dataset saved to disk; give one of what is in it: main, other$"):
        splits(str(tmp_path))
    with pytest.raises(RewardlabError, match=r"give one of what is in it: mine.jsonl$"):
        splits(str(tmp_path / "cut/data"))
