"""`rewardlab parts`: everything a recipe is made of can be found, without importing it."""

import json
import re
import subprocess
import sys

import pytest

from rewardlab import registry
from rewardlab.commands import cli
from rewardlab.registry import browse, parts_doc
from rewardlab.registry.parts import shared_part, shared_parts
from rewardlab.settings.domain import settings_of
from rewardlab.settings.hyperparameters import hyperparameters


def test_every_part_task_and_model_is_there_and_says_what_it_is():
    found = browse.entries()
    names = {(entry["slot"], entry["name"]) for entry in found}
    assert shared_parts().keys() <= names
    assert {("task", name) for name in registry.tasks()} <= names
    assert {("model", "embedded"), ("reward", "dapo/overlong")} <= names
    assert {entry["name"] for entry in found if entry["kind"] == "verifier"} == registry.verifiers().keys()
    assert [entry["name"] for entry in found if not entry["about"]] == []
    assert [entry["kind"] for entry in found] == sorted((entry["kind"] for entry in found), key=browse.ORDER.index)


def test_what_is_read_from_the_text_is_what_the_code_does():
    for entry in browse.entries():
        if (entry["slot"], entry["name"]) in shared_parts():
            function = shared_part(entry["slot"], entry["name"]).function
            assert [s["name"] for s in entry["settings"]] == list(hyperparameters(function))
            for s in entry["settings"]:
                setting = settings_of(function)[s["name"]]
                if setting.domain:
                    assert s["values"].removesuffix(", or none").startswith((setting.domain.says, "Literal")), (entry["name"], s)


def test_one_part_in_full(capsys):
    assert cli.main(["parts", "gae"]) == 0
    said = capsys.readouterr().out
    assert "credit  gae(gamma=1.0, lam=0.95)" in said
    assert "Generalised advantage estimation" in said
    assert "arXiv:1506.02438" in said
    assert "lam       0.95      a number from 0 to 1" in said
    assert "used by  ppo" in said
    assert "credit/value.py:" in said


def test_a_slot_or_a_kind_alone(capsys):
    assert cli.main(["parts", "credit", "--json"]) == 0
    assert {entry["kind"] for entry in json.loads(capsys.readouterr().out)} == {"credit"}
    # two things of one name are both shown
    assert cli.main(["parts", "sql", "--json"]) == 0
    assert [entry["kind"] for entry in json.loads(capsys.readouterr().out)] == ["verifier", "task"]
    # a part of one method's file is found as a formula may call it
    assert cli.main(["parts", "overlong", "--json"]) == 0
    assert "dapo/overlong" in {entry["name"] for entry in json.loads(capsys.readouterr().out)}
    assert cli.main(["parts", "task:sql", "--json"]) == 0
    assert [entry["kind"] for entry in json.loads(capsys.readouterr().out)] == ["task"]


@pytest.mark.parametrize(
    ("name", "near"), [("credti", "credit"), ("ga", "gae"), ("dapo/overlon", "dapo/overlong"), ("rewrad", "reward")]
)
def test_a_mistyped_name_is_answered_with_the_nearest(name, near, capsys):
    assert cli.main(["parts", name]) == 2
    assert near in capsys.readouterr().err.partition("did you mean")[2]


def test_the_page_has_every_part_and_whole_rows(tmp_path, monkeypatch):
    monkeypatch.setattr(parts_doc, "repository", lambda: tmp_path)
    (tmp_path / "docs").mkdir()
    lines = parts_doc.write().read_text("utf-8").splitlines()
    rows = [line for line in lines if line.startswith("| [")]
    assert len(rows) == len(browse.entries())
    assert all(re.sub(r"\\.", "", row).count("|") == 5 for row in rows)
    assert f"## {browse.ORDER[0]}" in lines
    assert any("`lam=0.95` a number from 0 to 1 | ppo |" in row for row in rows)


def test_it_needs_no_torch():
    code = "import sys; from rewardlab.registry import browse; print(len(browse.entries()), 'torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    count, torch = done.stdout.split()
    assert (int(count) > 150, torch) == (True, "False")


def test_the_plural_of_a_slot_is_understood_and_a_method_is_named(capsys):
    assert cli.main(["parts", "verifiers", "--json"]) == 0
    plural = capsys.readouterr().out
    assert cli.main(["parts", "verifier", "--json"]) == 0
    assert capsys.readouterr().out == plural
    assert cli.main(["parts", "grpo"]) == 2
    assert capsys.readouterr().err == "rewardlab: grpo is a method: rewardlab show grpo\n"
