"""Prompts whose parts stand in several columns: system messages, and rows as Alpaca, LLaMA-Factory and OpenOrca have them."""

from __future__ import annotations

import json

import pytest

from rewardlab import registry
from rewardlab.errors import RewardlabError

CHAT = [{"from": "human", "value": "b"}, {"from": "gpt", "value": "4"}]
OTHER = {"prompt": "b", "instruction": "b", "input": "", "history": None, "conversations": CHAT}
"""A second row: without a second prompt there is none to hold out."""


@pytest.fixture
def read(tmp_path, capsys):
    def of(row: dict, **options):
        """The problem of a row, and what is said of the file."""
        path = tmp_path / "mine.jsonl"
        plain = {name: OTHER.get(name, value) for name, value in row.items() if not name.startswith(("system", "persona"))}
        path.write_text(f"{json.dumps(row)}\n{json.dumps(plain)}\n")
        problems = registry.task(str(path), order="file", **options)
        (problem,) = (p for p in [*problems.train.problems, *problems.test] if p.prompt[-1].text != "b")
        return problem, capsys.readouterr().err

    return of


def said(problem) -> list[tuple[str, str]]:
    return [(m.role, m.text) for m in problem.prompt]


@pytest.mark.parametrize("name", ["system", "system_prompt"])
def test_a_system_column_begins_the_prompt_and_that_is_said(read, name):
    problem, told = read({"prompt": "2 + 2?", name: "Be short."})
    assert said(problem) == [("system", "Be short."), ("user", "2 + 2?")]
    assert f"read: the column '{name}' as the system message of 1 of 2 prompts (--system-column none: of none)" in told
    # rewards are still given it
    assert problem.meta[name] == "Be short."


def test_of_a_conversation_too_whose_own_system_message_stays(read):
    turns = [{"from": "human", "value": "2 + 2?"}, {"from": "gpt", "value": "4"}]
    assert said(read({"conversations": turns, "system": "Be short."})[0]) == [("system", "Be short."), ("user", "2 + 2?")]
    own = [{"from": "system", "value": "Be kind."}, *turns]
    problem, told = read({"conversations": own, "system": "Be short."})
    assert said(problem)[0] == ("system", "Be kind.")
    assert "read:" not in told
    # one that is named goes before it
    assert said(read({"conversations": own, "system": "Be short."}, system_column="system")[0])[0] == ("system", "Be short.")


@pytest.mark.parametrize("value", [None, "", "  ", 3, {"os": "linux"}])
def test_what_is_no_text_is_a_column_like_others(read, value):
    problem, told = read({"prompt": "2 + 2?", "system": value})
    assert said(problem) == [("user", "2 + 2?")]
    assert "read:" not in told


def test_it_is_not_read_where_that_is_said_or_another_text_stands_for_it(read):
    row = {"prompt": "2 + 2?", "system": "linux"}
    assert said(read(row, system_column="none")[0]) == [("user", "2 + 2?")]
    assert said(read(row, system="Be kind.")[0])[0] == ("system", "Be kind.")


def test_another_column_is_named(read):
    row = {"prompt": "2 + 2?", "persona": "Be short."}
    assert said(read(row, system_column="persona")[0]) == [("system", "Be short."), ("user", "2 + 2?")]
    with pytest.raises(RewardlabError, match=r"'sytem'.*system"):
        read({"prompt": "2 + 2?", "system": "x"}, system_column="sytem")
    with pytest.raises(RewardlabError, match="a system message is a text, and prompt is"):
        read({"prompt": [{"role": "user", "content": "a"}], "system": "x"}, system_column="prompt")


def test_alpacas_rows_are_an_instruction_with_its_input_and_a_reply(read):
    row = {"instruction": "Add.", "input": "2 and 2", "output": "4", "system": "Be short.", "history": [["Hi", "Hello"]]}
    problem, told = read(row)
    turns = [("system", "Be short."), ("user", "Hi"), ("assistant", "Hello"), ("user", "Add.\n2 and 2")]
    assert said(problem) == turns
    assert problem.meta["solution"] == "4"
    assert "read: the column 'input' after the instruction in 1 of 2 prompts" in told
    # named, the reply is an answer
    named, _ = read(row, prompt_column="instruction", answer_column="output")
    assert (said(named), named.answer, "solution" in named.meta) == (turns, "4", False)
    pair = {"instruction": "Add.", "input": "", "chosen": "4", "rejected": "5", "history": []}
    assert said(read(pair)[0]) == [("user", "Add.")]
    with pytest.raises(RewardlabError, match=r"line 1: history is a list of pairs of texts"):
        read({**row, "history": ["Hi"]})


def test_input_is_another_column_beside_other_prompts(read):
    problem, told = read({"prompt": "2 + 2?", "input": "3", "instruction": "x"})
    assert (said(problem), told) == ([("user", "2 + 2?")], "")
