"""A task exported for verifiers, as far as the package is not needed for it: names, and what answers."""

import ast
import json
import tomllib

import pytest

from rewardlab import registry
from rewardlab.api import export_environment
from rewardlab.api.environment_package import module_name
from rewardlab.api.exported_environment import Exported
from rewardlab.commands import cli
from rewardlab.envs.try_again import TOLD
from rewardlab.registry.formula import read_environment

FILE = '''
from rewardlab.core import Message, environment

def add(a: int, b: int) -> int:
    """Add two numbers.

    Args:
        a: the first
        b: the second
    """
    return a + b

@environment(start=lambda problem, seed, **_: (Message("user", "Guess."), 0))
def guess(state, turn, *, limit=3):
    """Answers so often."""
    return Message("user", f"Again: {turn.text}", last=state + 1 == limit), state + 1
'''


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The current folder, with tools, an environment, documents and rows, in names with spaces."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my tools.py").write_text(FILE)
    (tmp_path / "my rows.jsonl").write_text(
        "".join(json.dumps({"prompt": f"1 + {i}?", "answer": str(i + 1)}) + "\n" for i in range(12))
    )
    (tmp_path / "docs.jsonl").write_text(json.dumps({"title": "Emma", "text": "A novel by Jane Austen."}) + "\n")
    return tmp_path


@pytest.mark.parametrize(
    ("flags", "reply", "answer"),
    [
        (["--tools", "my tools.py:add"], '<tool_call>{"name": "add", "arguments": {"a": 1, "b": 2}}</tool_call>', "3"),
        (["--env", "my tools.py:guess(limit=2)"], "7", "Again: 7"),
        (["--corpus", "docs.jsonl"], "<search>Emma</search>", "Doc 1 (Title: Emma) A novel by Jane Austen."),
    ],
)
def test_what_answers_is_exported_with_rows_of_ones_own(flags, reply, answer, folder, monkeypatch, capsys):
    assert cli.main(["export-env", "my rows.jsonl", *flags, "--turns", "3", "--out", "package"]) in (0, None)
    assert "my_rows" in capsys.readouterr().out
    # it is loaded from anywhere
    monkeypatch.chdir("/")
    exported = Exported(folder / "package" / "my_rows")
    assert exported.about["turns"] == 3
    row = exported.rows("train")[0]
    episode = exported.begin(row, 0)
    assert episode.opening is not None
    assert answer in episode.reply(reply).text
    assert not episode.over
    episode.reply(f"\\boxed{{{row['answer']}}}")
    assert episode.score().total == 1.0


def test_an_exported_environment_is_told_what_the_verifier_says(folder):
    """Several tries: a wrong reply is answered, and the right one is the last."""
    document = export_environment("my rows.jsonl", "package", env=read_environment("try_again"), turns=3)
    exported = Exported(folder / "package" / document["name"])
    row = exported.rows("train")[0]
    episode = exported.begin(row, 0)
    assert episode.reply("\\boxed{-7}").text == TOLD
    assert not episode.over
    assert episode.reply(f"\\boxed{{{row['answer']}}}") is None
    assert episode.over
    assert episode.score().total == 1.0


@pytest.mark.parametrize(
    ("task", "name"),
    [
        ("gym_text:Frozen Lake", "gym_text_frozen_lake"), ("données", "donnees"), ("漢字", "task"), ("2 rows", "task_2_rows"),
        ("class", "task_class"), ("math", "task_math"), ("numpy", "task_numpy"), ("rewardlab", "task_rewardlab"),
    ],
)  # fmt: skip
def test_a_package_has_a_name_that_is_free(task, name):
    assert module_name(task) == name


def test_one_that_was_exported_before_keeps_its_name(tmp_path, monkeypatch):
    export_environment("arithmetic", tmp_path / "package", rows=2, test_rows=1)
    monkeypatch.syspath_prepend(str(tmp_path / "package"))
    assert module_name("arithmetic") == "arithmetic"


def test_any_file_name_may_be_told_of_a_task(folder):
    rows = folder / 'a "b"\\n.jsonl'
    rows.write_bytes((folder / "my rows.jsonl").read_bytes())
    document = export_environment(registry.task(str(rows)), folder / "package")
    project = tomllib.loads((folder / "package" / "pyproject.toml").read_text())
    assert str(rows) in project["project"]["description"]
    code = (folder / "package" / document["name"] / "__init__.py").read_text()
    assert "a 'b'\\n.jsonl" in ast.get_docstring(ast.parse(code))
