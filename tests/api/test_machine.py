"""What `rewardlab doctor` says of this machine, and of machines that lack something."""

from __future__ import annotations

import importlib.metadata
import json
import os
import tomllib
from pathlib import Path

import pytest

from rewardlab.api import machine
from rewardlab.commands import cli
from rewardlab.errors import RewardlabError
from rewardlab.sandbox import workers


def found(rows, what):
    (row,) = [row for row in rows if row["what"] == what]
    return row


def test_every_extra_of_the_package_says_what_it_is_for():
    project = tomllib.loads((Path(machine.__file__).parents[3] / "pyproject.toml").read_text())["project"]
    assert set(machine.EXTRAS) == set(project["optional-dependencies"])


def test_the_machine_is_examined_from_the_command_line(capsys):
    assert cli.main(["doctor", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert found(document["machine"], "processors")["found"].startswith(str(len(os.sched_getaffinity(0))))
    assert {row["state"] for rows in document.values() for row in rows} <= {"ok", "slower", "missing"}
    assert cli.main(["doctor"]) == 0
    assert "This machine" in capsys.readouterr().out


def test_an_extra_that_is_absent_or_too_old_is_named_with_its_remedy(monkeypatch):
    installed = importlib.metadata.version
    versions = {"sympy": None, "peft": "0.1"}

    def version(name):
        if name in versions and versions[name] is None:
            raise importlib.metadata.PackageNotFoundError(name)
        return versions.get(name) or installed(name)

    monkeypatch.setattr(importlib.metadata, "version", version)
    extras = {row.what: row for row in machine._extras()}
    assert (extras["verify"].state, extras["lora"].state) == ("missing", "missing")
    assert "pip install 'rewardlab[verify]'" in extras["verify"].remedy
    assert "sympy>=1.13" in extras["verify"].remedy
    assert "peft>=0.13" in extras["lora"].remedy


def test_a_machine_that_cannot_isolate_is_told_what_does_not_work(monkeypatch):
    def refuse(*_, **__):
        raise RewardlabError("the sandbox refuses to run programs here: no namespaces. To run them anyway ...")

    monkeypatch.setattr("rewardlab.sandbox.sandbox.Sandbox.run_programs", refuse)
    row = machine._sandbox()
    assert (row.state, row.found) == ("missing", "the sandbox refuses to run programs here: no namespaces")
    monkeypatch.setenv(workers.UNSAFE, "1")
    assert "without isolation" in machine._sandbox().found


def test_a_cache_that_cannot_be_written_is_missing(monkeypatch, tmp_path):
    monkeypatch.setenv("REWARDLAB_CACHE", str(tmp_path / "there" / "not"))
    assert machine._cache().state in ("ok", "slower")
    monkeypatch.setattr(os, "access", lambda *_: False)
    assert machine._cache().remedy == "set REWARDLAB_CACHE to a folder of yours"


def test_a_package_that_is_not_installed_is_a_clear_error(monkeypatch):
    def missing(name):
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "requires", missing)
    with pytest.raises(RewardlabError, match="not installed in this Python"):
        machine.doctor()
