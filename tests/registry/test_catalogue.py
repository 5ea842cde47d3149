"""What `list` and `show` say of methods: read from syntax trees, kept until a file changes."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from method_files import ALPHA, BETA, write

from rewardlab import registry
from rewardlab.commands import list as list_command
from rewardlab.registry import PACKAGE, browse, catalogue, parts
from rewardlab.registry import index as kept
from rewardlab.registry.describe import COMPUTED, entry
from rewardlab.registry.details import details

METHOD = '''"""Method {i}: the idea.

Doe et al. 2031, arXiv:3101.00001
"""
import no_such_library_{i}
from rewardlab.checks.claim import Claim

def method_{i}(base=None):
    base = base or grpo(n=4).but(lr=1e-3)
    return base

claim = Claim(says="it beats GRPO", versus="grpo", task="arithmetic", measure="pass@1", direction="higher", margin=0.1)
'''


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty folder for methods, and a cache of its own."""
    monkeypatch.setenv("REWARDLAB_METHODS", str(tmp_path / "methods"))
    monkeypatch.setenv("REWARDLAB_CACHE", str(tmp_path / "cache"))
    (tmp_path / "methods").mkdir()
    return tmp_path / "methods"


def settle(path: Path) -> None:
    """Date a file back to a minute ago, so that its entry is kept."""
    os.utime(path, (time.time() - 60,) * 2)


def named(folder: str) -> dict[str, dict]:
    return {row["name"]: row for row in registry.rows(folder)}


def test_rows_say_what_a_method_is_without_importing_it(folder):
    write(folder, "toys", "alpha", ALPHA)
    write(folder, "toys", "beta_2", BETA)
    rows = named("toys")
    alpha, beta = rows["alpha"], rows["beta_2"]
    assert alpha["idea"] == "scale what was earned."
    assert alpha["reference"] == "Doe et al. 2031, arXiv:3101.00001"
    assert alpha["text"] == "    A = by * r\n\nThe scale is the paper's."
    assert (alpha["system"], alpha["kind"], alpha["claim"], alpha["baseline"]) == ("alpha", "method", None, None)
    assert (beta["system"], beta["kind"]) == ("beta-2", "analysis")
    assert (beta["claim"], beta["baseline"]) == ("beats alpha", "alpha")
    assert beta["verdict"] == "not run"
    assert not {"rewardlab.methods.toys.alpha", "rewardlab.methods.toys"} & sys.modules.keys()


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ("", "rloo"),  # what its function builds on
        ('claim = Claim(says="x", versus="ppo")', "ppo"),
        ('claim = Claim(says="x", versus="gamma")', "rloo"),  # against itself under other settings
        ('baseline = "sft"\nclaim = Claim(says="x", versus="ppo")', "sft"),
        ('baseline: str | None = None\nclaim = Claim(says="x", versus="ppo")', None),
    ],
)
def test_the_baseline_is_stated_or_claimed_or_built_on(folder, lines, expected):
    function = "def gamma(base=None):\n    base = base or rloo(n=2).but(lr=1.0)\n    return base\n"
    path = write(folder, "toys", "gamma", f"{function}\n{lines}\n")
    assert entry(path)["baseline"] == expected


def test_a_file_makes_a_claim_or_a_check_and_says_how_whole_it_is(folder):
    beta = BETA.replace("claim = Claim(", "check = Check(").replace(
        "margin=0.1)", "margin=0.1, sanity=True, version=2, replaces='x')"
    )
    write(folder, "toys", "beta_2", beta + 'fidelity = "core"\nleft_out = "its judge"\n')
    write(folder, "toys", "alpha", ALPHA)
    rows = named("toys")
    said = [rows["beta_2"][key] for key in ("shows", "claim", "baseline", "sanity", "version", "fidelity", "left_out")]
    assert said == ["check", "beats alpha", "alpha", True, 2, "core", "its judge"]
    assert [rows["alpha"][key] for key in ("shows", "sanity", "fidelity", "left_out")] == [None, False, None, ""]
    write(folder, "toys", "beta_2", BETA + "check = Check(says='x')\n")
    assert "a claim or a check, not both" in named("toys")["beta_2"]["error"]


def test_the_verdict_follows_what_the_file_says_of_its_claim_now(folder):
    results = folder / "toys" / "results"
    write(folder, "toys", "beta_2", BETA)
    results.mkdir()
    run = {"verdict": "holds", "interval": [0.1, 0.3], "effect": 0.2, "claim": {"margin": 0.1}}
    (results / "beta_2.json").write_text(json.dumps({"runs": [run, {**run, "verdict": "stopped"}]}))
    assert named("toys")["beta_2"]["verdict"] == "holds"
    write(folder, "toys", "beta_2", BETA.replace("margin=0.1)", "margin=0.1, sanity=True)"))
    assert named("toys")["beta_2"]["verdict"] == "sanity"
    write(folder, "toys", "beta_2", BETA.replace("claim = Claim(", "check = Check("))
    assert named("toys")["beta_2"]["verdict"] == "works"
    (results / "beta_2.json").write_text(json.dumps({"runs": [{**run, "moved": {"what": "x", "ok": False}}]}))
    assert named("toys")["beta_2"]["verdict"] == "works, inert here"


def test_a_file_that_cannot_be_read_has_a_row_that_says_so(folder):
    write(folder, "toys", "alpha", ALPHA)
    write(folder, "toys", "broken", '"""Broken: x."""\ndef broken(:\n')
    write(folder, "toys", "stated", 'kind = KINDS["x"]\n')
    rows = named("toys")
    assert rows["alpha"]["idea"] == "scale what was earned."
    assert rows["broken"]["idea"].startswith("cannot be read: SyntaxError: ")
    assert "line 2" in rows["broken"]["idea"]
    assert "kind = KINDS['x'] must be a literal" in rows["stated"]["idea"]
    assert rows["broken"].keys() - {"error"} == rows["alpha"].keys()


def test_an_unfinished_file_does_not_hide_the_parts_of_others(folder):
    write(folder, "toys", "broken", '"""Broken: x."""\ndef broken(:\n')
    known = {(entry["kind"], entry["name"]) for entry in browse.entries()}
    assert {("reward", "correct"), ("credit", "center")} <= known
    assert ("reward", "correct") in parts.shared_parts()
    assert not any(path.stem == "broken" for paths in parts.parts_of_methods().values() for path in paths)


def test_a_claim_that_is_computed_is_known_to_show_alone(folder):
    text = BETA.replace("beta_2", "delta").replace('"beats alpha"', '"beats " + "grpo"').replace('versus="alpha"', 'versus="grpo"')
    write(folder, "computed", "delta", text)
    row = named("computed")["delta"]
    assert (row["claim"], row["baseline"]) == (COMPUTED, None)
    shown = details("delta")
    assert (shown["claim"], shown["baseline"]) == ("beats grpo", "grpo")


def test_details_add_formula_changes_and_parameters(folder):
    write(folder, "toy_details", "alpha", ALPHA)
    write(folder, "toy_details", "beta_2", BETA)
    shown = details("beta_2")
    assert shown["changes"]["credit"] == ["scaled()", "center()"]
    assert shown["changes"]["objective"] == ["plain()", None]
    assert shown["changes"]["lr"] == ["what suits the model, for reward", "0.5"]
    assert ["--weight", "float", 0.5, "beta_2", "a number"] in shown["parameters"]
    assert shown["formula"].splitlines()[0] == "credit     center()"
    stack = details("alpha+beta_2")
    assert stack["baseline"] == "alpha"
    assert stack["changes"] == {"credit": ["scaled()", "scaled() >> center()"], "lr": ["what suits the model, for reward", "0.5"]}


def test_the_verdict_is_that_of_the_last_run_in_the_results_beside_the_file(folder, tmp_path, monkeypatch):
    for name, text in (("alpha", ALPHA), ("beta_2", BETA), ("gamma", ALPHA)):
        write(folder, "toys", name, text)
    results = folder / "toys" / "results"
    results.mkdir()
    (results / "alpha.json").write_text(json.dumps({"runs": [{"verdict": "holds"}, {"verdict": "too noisy"}]}))
    (results / "gamma.json").write_text("{")
    verdicts = {name: row["verdict"] for name, row in named("toys").items()}
    assert verdicts == {"alpha": "too noisy", "beta_2": "not run", "gamma": "unreadable"}
    # results of one's own come before those that came with the file
    monkeypatch.setenv("REWARDLAB_RESULTS", str(tmp_path / "mine"))
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "alpha.json").write_text(json.dumps({"runs": [{"verdict": "holds"}]}))
    assert {name: row["verdict"] for name, row in named("toys").items()} == {**verdicts, "alpha": "holds"}


def test_where_results_are_written(folder, tmp_path, monkeypatch):
    write(folder, "toys", "alpha", ALPHA)
    outside, own = folder / "toys" / "alpha.py", PACKAGE / "methods" / "baselines" / "grpo.py"
    assert catalogue.results_folder(outside) == folder / "toys" / "results"
    assert catalogue.results_folder(own) == catalogue.SHIPPED
    # an installed package is not written to
    monkeypatch.setattr(catalogue, "repository", lambda: None)
    monkeypatch.chdir(tmp_path)
    assert catalogue.results_folder(own) == tmp_path / "results"
    assert catalogue.record_of(own) == catalogue.SHIPPED / "grpo.json"
    monkeypatch.setenv("REWARDLAB_RESULTS", "here")
    assert catalogue.results_folder(own) == catalogue.results_folder(outside) == tmp_path / "here"


# ---- the cache -------------------------------------------------------------------------------------------------------


def read_names(path: Path) -> str:
    """A reader that leaves a mark for each file it reads."""
    READ.append(path.name)
    return path.read_text()


READ: list[str] = []


def values(*paths: Path) -> list[str]:
    READ.clear()
    return list(kept.read_each("names", paths, read_names).values())


def test_only_files_that_changed_are_read_again(folder):
    one, other = folder / "one", folder / "other"
    for path in (one, other):
        path.write_text("before")
        settle(path)
    assert (values(one, other), READ) == (["before", "before"], ["one", "other"])
    assert (values(one, other), READ) == (["before", "before"], [])
    other.write_text("after!")  # as long as before
    assert (values(one, other), READ) == (["before", "after!"], ["other"])


def test_a_file_written_a_moment_ago_is_read_again(folder):
    """Its next version may have the same time stamp and size."""
    path = folder / "one"
    path.write_text("before")
    assert (values(path), READ) == (["before"], ["one"])
    stamp = path.stat().st_mtime_ns
    path.write_text("after!")
    os.utime(path, ns=(stamp, stamp))
    assert values(path) == ["after!"]


def test_files_that_are_gone_leave_the_cache(folder, tmp_path):
    one, other = folder / "one", folder / "other"
    for path in (one, other):
        path.write_text("x")
        settle(path)
    values(one)
    one.unlink()
    values(other)
    (store,) = (tmp_path / "cache" / "registry").iterdir()
    assert list(json.loads(store.read_text())["files"]) == [str(other)]


@pytest.mark.parametrize("held", ["", "[]", '{"files": {}}', '{"reader": [1, 2], "files": {"x": 1}}'])
def test_a_cache_of_another_version_is_read_as_empty(folder, tmp_path, held):
    path = folder / "one"
    path.write_text("x")
    settle(path)
    values(path)
    (store,) = (tmp_path / "cache" / "registry").iterdir()
    store.write_text(held)
    assert (values(path), READ) == (["x"], ["one"])


def test_a_cache_that_cannot_be_written_is_done_without(folder, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("REWARDLAB_CACHE", str(tmp_path / "file"))
    write(folder, "toys", "alpha", ALPHA)
    settle(folder / "toys" / "alpha.py")
    assert named("toys")["alpha"]["idea"] == "scale what was earned."


def test_four_hundred_methods_are_listed_without_torch_at_once(folder):
    """In processor time, which other tests that run beside this one do not lengthen; the limits are generous."""
    for i in range(400):
        settle(write(folder, "many", f"method_{i}", METHOD.replace("{i}", str(i))))
    code = (
        "import json, sys, time; start = time.process_time(); from rewardlab import registry; rows = registry.rows('many');"
        "print(json.dumps([len(rows), rows[0], 'torch' in sys.modules, time.process_time() - start]))"
    )
    (n, row, torch, cold), (_, _, _, warm) = (
        json.loads(subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout) for _ in range(2)
    )
    assert (n, torch) == (400, False)
    assert (row["name"], row["baseline"], row["claim"]) == ("method_0", "grpo", "it beats GRPO")
    assert cold < 2.0
    assert warm < 0.5


# ---- list ------------------------------------------------------------------------------------------------------------


def test_list_prints_kind_fidelity_baseline_and_verdict(folder, capsys):
    write(folder, "toys", "alpha", ALPHA)
    write(folder, "toys", "beta_2", BETA + 'fidelity = "core"\nleft_out = "its judge"\n')
    rows = registry.rows("toys")
    stands = {"alpha": ["length league: better in 1 of 2 worlds"], "beta_2": []}
    list_command.show([{k: (row | {"leagues": stands[row["name"]]})[k] for k in list_command.COLUMNS} for row in rows])
    first, *lines = (line.strip() for line in capsys.readouterr().out.splitlines() if line)
    assert first == "toys"
    assert lines[0].split() == ["alpha", "method", "-", "a", "starting", "point", "not", "run"]
    assert lines[1] == "scale what was earned."
    assert lines[2] == "length league: better in 1 of 2 worlds"
    assert lines[3].split() == ["beta_2", "analysis", "core", "against", "alpha", "not", "run"]


@pytest.mark.parametrize(
    ("method", "flags"),
    [
        ("grpo", ["--env", "--tools", "--corpus", "--turns"]),  # its replies become episodes
        ("igpo", ["--env", "--tools", "--corpus"]),  # it plays, for as many turns as it says
        ("dpo", []),  # it samples nothing
    ],
)
def test_details_say_by_which_flags_something_answers_the_replies(method, flags):
    assert list(details(method)["episodes"]) == flags
