"""Baseline runs that are kept: computed once, measured anew without training, and dropped where the code or the machine differ."""

from __future__ import annotations

import json
import os
import time

import pytest

from rewardlab import registry
from rewardlab.api.measuring import remeasure
from rewardlab.checks import kept
from rewardlab.checks.runs import Job
from rewardlab.errors import RewardlabError
from rewardlab.evals.core_metrics import core_metrics
from rewardlab.evals.passk import coverage
from rewardlab.registry import code
from rewardlab.runs.config import RunConfig

CONFIG = RunConfig(task="arithmetic:test_size=8", model="untrained", eval_problems=4, eval_every=0, steps=2)


@pytest.fixture
def job(tmp_path, own_cache):
    def of(seed=3, n=2, **more):
        recipe = registry.build("grpo", {"problems": 1, "n": n})
        return Job("grpo", recipe.to_json(), CONFIG.but(seed=seed), str(tmp_path / f"run-{seed}-{n}"), **more)

    return of


def refuse(*_, **__):
    raise AssertionError("it was trained again")


def test_a_kept_run_is_not_run_again(job, monkeypatch):
    assert kept.kept(job()) is None
    first = kept.run_kept(job())
    monkeypatch.setattr(kept, "run", refuse)
    again = kept.run_kept(job())
    assert again.numbers == first.numbers
    assert again.training == first.training
    assert kept.kept(job(seed=4)) is None
    assert kept.kept(job(n=3)) is None
    files = {path.name for path in kept.folder_of(job()).rglob("*")}
    assert "policy.safetensors" in files
    assert not {"best", "model", "policy.optimiser.safetensors"} & files


def test_a_new_measure_needs_no_new_run(job, monkeypatch):
    kept.run_kept(job())
    monkeypatch.setattr(kept, "run", refuse)
    by = coverage(n=2, k=2)
    found = kept.run_kept(job(by=by.to_json())).numbers
    assert {"pass@2", "before.pass@2", "train.reward", "tokens", "steps"} <= found.keys()
    assert found.keys() == kept.run_kept(job(by=by.to_json())).numbers.keys()
    # as a run that was measured by it from the start
    monkeypatch.undo()
    fresh = kept.run(job(by=by.to_json())).numbers
    assert {k: v for k, v in fresh.items() if not k.startswith(("train.", "auc."))} == {
        k: v for k, v in found.items() if not k.startswith(("train.", "auc."))
    }


@pytest.mark.slow
def test_runs_of_other_code_are_not_used(job, monkeypatch):
    key = kept.key_of(job())
    assert kept.key_of(job()) == key
    # what is made up here must not be kept for others
    monkeypatch.setattr(code, "kept_while", lambda files, kind, asked, compute: compute())

    def changed(rooms):
        """Every definition in these rooms is another one."""
        real = code.skeleton
        monkeypatch.setattr(
            code, "skeleton", lambda key: ("other" if code.room_of(key[0]) in rooms else real(key)[0], real(key)[1])
        )
        code._kept.cache_clear()
        new = kept.key_of(job())
        monkeypatch.setattr(code, "skeleton", real)
        code._kept.cache_clear()
        return new

    assert changed(["engine"]) != key
    # how runs are reported or measured does not change what they compute
    assert changed(["report", "evals"]) == key


def test_where_the_machine_computes_otherwise_kept_runs_are_removed(job):
    assert kept.still_so(job())
    kept.run_kept(job())
    assert kept.still_so(job())
    assert kept.kept(job()) is not None
    canary = kept.folder_of(job()).parent / "canary.json"
    lines = json.loads(canary.read_text())
    assert [line["step"] for line in lines][-1] == kept.CANARY
    # what was not logged yet says nothing of the runs
    del lines[-1]["entropy"]
    canary.write_text(json.dumps(lines))
    assert kept.still_so(job())
    assert kept.kept(job()) is not None
    lines = json.loads(canary.read_text())
    lines[-1]["length"] += 1
    canary.write_text(json.dumps(lines))
    assert not kept.still_so(job())
    assert kept.kept(job()) is None


def test_a_run_without_weights_cannot_be_measured_again(job, tmp_path):
    with pytest.raises(RewardlabError, match="there is no folder"):
        remeasure(tmp_path / "nothing", core_metrics(inner=coverage()))


@pytest.mark.slow
def test_runs_that_nobody_asks_for_are_forgotten_and_others_stay(job):
    old, new = kept.run_kept(job(seed=3)), job(seed=4, n=3)
    assert old
    kept.run_kept(new)
    assert kept.still_so(job(seed=3))
    assert kept.still_so(new)
    canary = kept.folder_of(job(seed=3)).parent / "canary.json"
    month_ago = canary.stat().st_mtime - 31 * 86_400
    os.utime(canary, (month_ago, month_ago))
    assert kept.still_so(new)
    assert kept.kept(job(seed=3)) is None
    assert kept.kept(new)


def test_what_no_claim_asked_for_in_a_month_is_removed(tmp_path, monkeypatch):
    monkeypatch.setenv("REWARDLAB_CACHE", str(tmp_path))
    names = ["runs/a/canary.json", "runs/b/canary.json", "starts/a/s1.json", "starts/b/s1.json", "unfinished/a/s1.json"]
    for i, name in enumerate(names):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("{}")
        if i % 2 == 0:
            old = time.time() - 31 * 86_400
            os.utime(tmp_path / name, (old, old))
    kept.forget(30)
    assert sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*.json")) == [
        "runs/b/canary.json",
        "starts/b/s1.json",
    ]
    assert not (tmp_path / "runs/a").exists()
