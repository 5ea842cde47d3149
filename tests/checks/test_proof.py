"""Whether verdicts are sound, pairs are paired, nothing is lost from the record, and comparisons compare like with like."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from rewardlab import api, registry
from rewardlab.checks import methods_doc, results, runs
from rewardlab.checks import pairs as pairing
from rewardlab.checks.claim import Claim, Within
from rewardlab.checks.judge import judge
from rewardlab.checks.pairs import rehearse
from rewardlab.checks.reproduce import claim_of, reproduce, reproduce_all, seeds_of
from rewardlab.checks.runs import Done, Job
from rewardlab.checks.workers import Failed, run_all, shared_processes
from rewardlab.commands import cli
from rewardlab.commands.reproduce import show
from rewardlab.errors import RewardlabError
from rewardlab.registry import catalogue
from rewardlab.runs.config import RunConfig
from tests.helpers import in_process

LADDER = '''"""Ladder: a study whose rungs are counted.

    height = 1 + seed / 1000

Jacob et al. 1700, made up.
"""
import os, time
from pathlib import Path
from rewardlab.checks.claim import Claim
from rewardlab.core import Recipe
from rewardlab.core import study

@study
def rungs(run):
    print("a study may print")
    if hold := os.environ.get("LADDER_HOLDS"):
        Path(hold, str(run.seed)).touch()
        time.sleep(60)
    if run.seed == 103 and "LADDER_BREAKS" in os.environ:
        raise ValueError("a rung is broken")
    return {"height": 1 + run.seed / 1000, "depth": 0.25}

def ladder(base=None):
    return (base or Recipe(name="ladder")).but(study=rungs())

claim = Claim(
    says="it is high", versus=None, task="arithmetic", measure="height", direction="higher", margin=0.5, against="depth",
    learns=None,
)
'''
FEW = '''"""Few: two replies a step."""
from rewardlab.methods.baselines.grpo import grpo

def few(base=None):
    return grpo(n=2).but(problems=1, name="few")

claim = None
'''
MUTE = LADDER[: LADDER.index("claim = ")].replace("ladder", "mute") + "claim = None\n"
SMALL = Claim(
    says="small", versus="grpo", task="arithmetic:test_size=8", measure="pass@1", direction="higher", margin=0.0, budget=200,
    model="untrained", settings={"problems": 2}, versus_settings={"problems": 1, "n": 2}, problems=4, learns=None,
)  # fmt: skip
CONFIG = RunConfig(task=SMALL.task, model="untrained", eval_problems=4, eval_every=0)


@pytest.fixture
def ladder(tmp_path, monkeypatch):
    """A folder with a study that has a claim, one that has none, and two quick methods."""
    folder = tmp_path / "own" / "proving"
    folder.mkdir(parents=True)
    for name, text in (("ladder", LADDER), ("mute", MUTE), ("few", FEW), ("less", FEW.replace("few", "less"))):
        (folder / f"{name}.py").write_text(text)
        monkeypatch.delitem(sys.modules, f"rewardlab.methods.proving.{name}", raising=False)
    monkeypatch.delitem(sys.modules, "rewardlab.methods.proving", raising=False)
    monkeypatch.setenv("REWARDLAB_METHODS", str(folder.parent))
    return folder / "ladder.py"


# ---- effects ---------------------------------------------------------------------------------------------------------


def done(**numbers):
    return Done({k.replace("_", "."): v for k, v in numbers.items()}, [], 1.0)


def test_effects_are_of_pairs_and_positive_where_they_speak_for_the_claim():
    mine, other = [done(length=x) for x in (5, 6, 7, 5, 6)], [done(length=x) for x in (8, 8, 8, 8, 8)]
    claim = replace(SMALL, measure="length", direction="lower", margin=2.0)
    found = judge("grpo", claim, mine, other)
    assert found["effects"] == [3, 2, 1, 3, 2]
    assert found["effect"] == pytest.approx(2.2)
    assert found["verdict"] == "holds"
    assert judge("grpo", replace(claim, direction="higher"), mine, other)["verdict"] == "reversed"


def test_without_a_baseline_a_number_is_compared_with_another_of_its_run_or_with_0():
    mine = [done(right=0.5 + x / 100, before_right=0.25) for x in range(5)]
    claim = replace(SMALL, versus=None, measure="right", against="before.right")
    assert judge("grpo", claim, mine, [])["effects"] == pytest.approx([0.25, 0.26, 0.27, 0.28, 0.29])
    assert judge("grpo", replace(claim, against=None), mine, [])["effects"] == pytest.approx([0.5, 0.51, 0.52, 0.53, 0.54])


def test_a_failed_run_leaves_its_pair_out_and_the_claim_without_verdict():
    mine, other = [done(right=1.0)] * 7, [*[done(right=0.5)] * 5, Failed("out of memory"), done(right=float("nan"))]
    found = judge("grpo", replace(SMALL, measure="right"), mine, other)
    assert found["effects"] == [0.5] * 5 + [None, None]
    assert found["verdict"] == "incomplete"


def test_a_number_that_is_not_measured_is_named():
    with pytest.raises(RewardlabError, match="grpo does not measure 'rigth' here; it measures: right"):
        judge("grpo", replace(SMALL, measure="rigth"), [done(right=1.0)], [done(right=1.0)])


# ---- runs ------------------------------------------------------------------------------------------------------------


def job_of(method, config, folder, settings=None, **more):
    return Job(method, registry.build(method, settings or {}).to_json(), config, str(folder), **more)


def test_a_training_run_tells_its_numbers_and_leaves_nothing(tmp_path):
    config = CONFIG.but(seed=3, steps=5, eval_every=2)
    job = job_of("grpo", config, tmp_path / "run", {"problems": 1, "n": 2})
    found = runs.run(job)
    assert {"pass@1", "before.pass@1", "train.reward", "train.length", "tokens", "steps"} <= found.numbers.keys()
    assert found.numbers["steps"] == found.numbers["updates"] == 5
    spent = [tokens for tokens, _ in found.curve]
    assert len(spent) == 4  # before, after steps 2, 4 and 5
    assert spent == sorted(spent)
    assert spent[-1] == found.numbers["tokens"]
    assert found.curve[-1][1]["pass@1"] == found.numbers["pass@1"]
    assert not (tmp_path / "run").exists()
    assert runs.run(job).numbers == found.numbers


def test_numbers_of_training_are_means_over_the_last_quarter_of_the_steps():
    lines = [{"step": 0, "eval/pass@1": 0.5}, *({"step": s, "reward": s, "tokens": 9, "seconds/step": 1.0} for s in range(1, 9))]
    assert runs._in_training(lines) == {"train.reward": (7 + 8) / 2, "auc.reward": 4.5}


def test_both_sides_see_the_same_problems_on_the_same_budget(tmp_path, monkeypatch):
    seen, train = [], api.train
    monkeypatch.setattr(api, "train", lambda *a, **k: seen.append((k, r := train(*a, **k))) or r)
    for method, settings in (("grpo", {"problems": 1, "n": 2}), ("rloo", {"problems": 2, "n": 2})):
        runs.run(job_of(method, CONFIG.but(seed=7, budget=200), tmp_path / method, settings))
    (one, first), (two, second) = seen
    assert one["config"].but(out=None) == two["config"].but(out=None)
    config = one["config"]
    assert (config.seed, config.start, config.budget, config.eval_problems) == (7, 70_000, 200, 4)
    assert all(200 <= r.summary["tokens"] < 2 * 200 + 2 * 2 * 100 for r in (first, second))


def test_answers_and_studies_are_runs_too(ladder, tmp_path):
    found = runs.run(job_of("best_of_n", CONFIG.but(seed=1, eval_problems=3), tmp_path / "no", {"n": 2})).numbers
    assert {"accuracy", "pass@1", "pass@all", "tokens", "tokens_per_answer"} == found.keys()
    assert found["tokens_per_answer"] == pytest.approx(found["tokens"] / 3)
    assert runs.run(job_of("ladder", RunConfig(seed=4), "")).numbers == runs.study("ladder", 4) == {"height": 1.004, "depth": 0.25}
    with pytest.raises(RewardlabError, match="grpo is not a study; run it with: rewardlab train grpo"):
        runs.study("grpo")


# ---- processes -------------------------------------------------------------------------------------------------------


def work(job):
    if job == "raise":
        raise ValueError("bad\nluck")
    if job == "die":
        os._exit(7)
    print("not for the document")
    return job * 2, torch.get_num_threads(), os.environ["OMP_NUM_THREADS"]


@pytest.mark.slow
def test_no_job_reaches_another_not_even_by_dying(capfd):
    found = dict(run_all(work, [1, "raise", "die", 2, 3], processes=1))
    assert found == {
        0: (2, 1, "1"), 1: Failed("ValueError: bad luck"), 2: Failed("its process ended with exit code 7"),
        3: (4, 1, "1"), 4: (6, 1, "1"),
    }  # fmt: skip
    assert capfd.readouterr().out == ""


def process(job):
    if job == "die":
        os._exit(7)
    return os.getpid()


@pytest.mark.slow
def test_the_stages_of_a_comparison_share_their_processes():
    with shared_processes(1):
        first = dict(run_all(process, [0, 1], processes=1))
        again = dict(run_all(work, [1, "raise"], processes=1)), dict(run_all(process, [0], processes=1))
        # one that dies is replaced
        died = dict(run_all(process, ["die", 0], processes=1))
    assert first[0] == first[1] == again[1][0] != died[1]
    assert again[0] == {0: (2, 1, "1"), 1: Failed("ValueError: bad luck")}
    assert died[0] == Failed("its process ended with exit code 7")
    assert dict(run_all(process, [0], processes=1))[0] not in (first[0], died[1])
    # none of them is left
    for pid in (first[0], died[1]):
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


def test_a_claim_is_run_and_every_run_of_it_is_kept_where_it_says(tmp_path, monkeypatch):
    # in this process, for speed
    monkeypatch.setattr("rewardlab.checks.pairs.rehearsed", lambda jobs, _: [rehearse(job).names for job in jobs])
    monkeypatch.setenv("REWARDLAB_RESULTS", str(tmp_path))
    first = reproduce("rloo", range(100, 102), claim=SMALL, jobs=1)
    assert first.pop("recorded") == str(tmp_path / "rloo.json")
    # an untrained policy is right never, before and after
    assert first["verdict"] == "unfit world"
    assert [len(first[side]) for side in ("method", "baseline", "effects")] == [2, 2, 2]
    assert all(run["tokens"] >= 200 for side in ("method", "baseline") for run in first[side])
    assert first["spent"].keys() == {"method", "baseline"}
    record = json.loads((tmp_path / "rloo.json").read_text())
    assert (record["name"], record["system"], len(record["runs"])) == ("rloo", None, 1)
    assert record["claim"] == record["runs"][0]["claim"] == results.as_record(SMALL)
    assert {"name": "rloo", **record["runs"][0]} == first
    assert first["code"] == results.code("rloo", SMALL)
    assert first["code"]["baseline"].keys() == {"grpo"}


def test_a_claim_is_run_on_the_device_that_is_asked_for(monkeypatch):
    jobs = []
    monkeypatch.setattr(pairing, "_cache_policy", lambda *_: None)
    monkeypatch.setattr(pairing.Pairs, "_check", lambda *_: None)
    monkeypatch.setattr(pairing, "_outcomes_of", lambda _, work, *__: jobs.extend(work) or enumerate([Failed("")] * len(work)))
    with pairing.Pairs("grpo", claim_of("grpo"), 1, "cpu") as pairs:
        pairs.add(range(2))
    assert [job.config.device for job, _ in jobs] == ["cpu"] * 4


def test_a_bound_on_a_number_that_no_run_has_is_a_mistake_and_no_unfit_world():
    claim = replace(claim_of("grpo"), fault=Within("train.lenght", low=1.0))
    pairs = pairing.Pairs("grpo", claim, 1, "cpu")
    pairs.method = pairs.baseline = [Done({"train.length": 20.0}, [], 0.0)]
    with pytest.raises(RewardlabError, match=r"the claim of grpo bounds 'train.lenght'; did you mean train.length\?"):
        pairs._check_bounds()
    # where all runs failed there is nothing to compare the name with
    pairs.method = pairs.baseline = [Failed("boom")]
    pairs._check_bounds()


def test_a_crash_is_told_and_recorded_and_the_claim_is_run_again(ladder, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(registry, "methods", lambda: {"ladder": ladder, "mute": ladder.with_name("mute.py")})
    monkeypatch.setattr(pairing, "run_all", in_process.run_all)
    monkeypatch.setenv("LADDER_BREAKS", "yes")
    assert [row["verdict"] for row in reproduce_all(jobs=1, into=tmp_path)] == ["incomplete"]
    assert "ladder, seed 103, failed: ValueError: a rung is broken" in capsys.readouterr().err
    monkeypatch.delenv("LADDER_BREAKS")
    assert [row["verdict"] for row in reproduce_all(jobs=1, into=tmp_path)] == ["holds"]
    kept = results.read("ladder", tmp_path)["runs"]
    assert [run["verdict"] for run in kept] == ["incomplete", "holds"]
    assert kept[0]["method"][3] == {"error": "ValueError: a rung is broken"}
    assert kept[1]["effects"] == pytest.approx([0.85, 0.851, 0.852, 0.853, 0.854])

    def not_again(*_, **__):
        raise AssertionError("it was run since its file last changed")

    monkeypatch.setattr("rewardlab.checks.reproduce.reproduce", not_again)
    assert reproduce_all(jobs=1, into=tmp_path) == [{"name": "ladder", **kept[1]}]


@pytest.mark.slow
def test_ctrl_c_ends_every_process_and_leaves_no_folder(ladder, tmp_path):
    (tmp_path / "begun").mkdir()
    (tmp_path / "tmp").mkdir()
    env = {**os.environ, "LADDER_HOLDS": str(tmp_path / "begun"), "TMPDIR": str(tmp_path / "tmp")}
    command = [sys.executable, "-m", "rewardlab", "reproduce", "ladder", "--dev", "--jobs", "1"]
    running = subprocess.Popen(command, env=env, stderr=subprocess.PIPE, text=True, start_new_session=True)
    for _ in range(1200):
        if any((tmp_path / "begun").iterdir()):
            break
        time.sleep(0.05)
    assert any((tmp_path / "begun").iterdir())
    os.killpg(running.pid, signal.SIGINT)
    _, said = running.communicate(timeout=60)
    assert running.returncode == 130
    assert "Traceback" not in said
    assert said.strip().endswith("rewardlab: stopped")
    assert list((tmp_path / "tmp").iterdir()) == []
    for _ in range(100):
        if not alive(running.pid):
            break
        time.sleep(0.05)
    assert not alive(running.pid)


def test_a_reproduction_that_is_stopped_stays_in_the_record_with_its_pairs(ladder, tmp_path, monkeypatch):
    def stopped(work, jobs, processes=None):
        if work is rehearse:
            yield from in_process.run_all(work, jobs)
            return
        yield 0, work(jobs[0])
        # the second pair's run ends, and then somebody presses Ctrl-C
        yield 1, work(jobs[1])
        raise KeyboardInterrupt

    monkeypatch.setattr(registry, "methods", lambda: {"ladder": ladder})
    monkeypatch.setattr(pairing, "run_all", in_process.run_all)
    with monkeypatch.context() as patched:
        patched.setattr(pairing, "run_all", stopped)
        with pytest.raises(KeyboardInterrupt):
            reproduce("ladder", jobs=1, into=tmp_path)
    (run,) = results.read("ladder", tmp_path)["runs"]
    assert (run["verdict"], run["seeds"], run["effects"]) == ("stopped", [100, 101], pytest.approx([0.85, 0.851]))
    assert run["method"][1]["height"] == pytest.approx(1.101)
    # it is no verdict, so that the claim is run again, and both stay
    assert [row["verdict"] for row in reproduce_all(jobs=1, into=tmp_path)] == ["holds"]
    assert [run["verdict"] for run in results.read("ladder", tmp_path)["runs"]] == ["stopped", "holds"]


def test_a_stopped_pair_counts_when_both_of_its_sides_are_done():
    pairs = pairing.Pairs("rloo", SMALL, 1, "cpu")
    first, second, other = (Done({"pass@1": x}, [], 0.0) for x in (0.1, 0.2, 0.3))
    # of three pairs: both sides of the first, one of the second, both of the third
    pairs._take([100, 101, 102], {0: first, 1: second, 2: other, 4: other, 5: first})
    assert (pairs.seeds, pairs.method, pairs.baseline) == ([100, 102], [first, other], [second, first])


def test_a_new_version_of_a_claim_sees_seeds_of_its_own(ladder, tmp_path, monkeypatch):
    monkeypatch.setattr(pairing, "run_all", in_process.run_all)
    assert [list(seeds_of(version, 2)) for version in (1, 2, 3)] == [[100, 101], [200, 201], [300, 301]]
    again = replace(claim_of("ladder"), version=2, replaces="a rung was missing")
    assert reproduce("ladder", claim=again, jobs=1, into=tmp_path)["seeds"] == list(range(200, 205))
    assert reproduce("ladder", pairs=2, jobs=1, into=tmp_path)["seeds"] == [100, 101]


def alive(group):
    """Processes of a group that still run; one that ended without being asked for its exit code does not."""
    told = (p.read_text().rpartition(")")[2].split() for p in Path("/proc").glob("[0-9]*/stat") if p.exists())
    return [1 for state, _, its_group, *_ in told if int(its_group) == group and state not in "ZX"]


@pytest.mark.slow
def test_closing_the_jobs_ends_their_processes():
    before = children()
    with closing(run_all(time.sleep, [0.0, 60.0], processes=1)) as outcomes:
        assert next(outcomes) == (0, None)
        assert len(children() - before) == 1
    assert children() == before


def children():
    return {pid for task in Path("/proc/self/task").iterdir() for pid in (task / "children").read_text().split()}


# ---- the record ------------------------------------------------------------------------------------------------------


def run_of(word="holds", **more):
    return {
        "verdict": word, "claim": results.as_record(claim_of("grpo")), "code": results.code("grpo", claim_of("grpo")),
        "measure": "pass@1",
        "effect": 0.1, "effects": [0.1] * 5, "interval": [0.05, 0.15], "updates": {"method": 40},
        "method": [{"pass@1": 0.6}] * 5, "baseline": [{"pass@1": 0.5}] * 5, **more,
    }  # fmt: skip


def test_many_may_add_to_a_record_at_once(tmp_path):
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda i: results.append("grpo", {}, run_of(i=i), tmp_path), range(16)))
    assert sorted(run["i"] for run in results.read("grpo", tmp_path)["runs"]) == list(range(16))
    assert [p.name for p in tmp_path.iterdir()] == ["grpo.json"]


def test_a_broken_record_is_never_written_over(tmp_path):
    (tmp_path / "grpo.json").write_text('{"runs": [')
    with pytest.raises(RewardlabError, match=r"grpo.json is not a record of results"):
        results.append("grpo", {}, run_of(), tmp_path)
    assert (tmp_path / "grpo.json").read_text() == '{"runs": ['


def test_a_run_is_fresh_until_the_method_or_its_claim_changes(tmp_path):
    claim = claim_of("grpo")
    assert not results.fresh("grpo", claim, tmp_path)
    results.append("grpo", results.as_record(claim), run_of(), tmp_path)
    assert results.fresh("grpo", claim, tmp_path)
    assert not results.fresh("grpo", replace(claim, margin=claim.margin + 1), tmp_path)
    results.append("grpo", {}, run_of(code={"method": "of another file"}), tmp_path)
    assert not results.fresh("grpo", claim, tmp_path)


def test_what_would_end_a_reproduction_late_ends_it_before_the_first_run(tmp_path, monkeypatch):
    monkeypatch.setattr("rewardlab.checks.pairs.rehearsed", lambda jobs, _: [rehearse(job).names for job in jobs])
    monkeypatch.setattr("rewardlab.checks.pairs.run_all", not_reached)
    with pytest.raises(RewardlabError, match=r"rloo does not measure 'pass@3' here; it measures: pass@1"):
        reproduce("rloo", range(100, 102), claim=replace(SMALL, measure="pass@3"), into=tmp_path)
    with pytest.raises(RewardlabError, match=r"unknown setting of rloo 'nn'; did you mean n"):
        reproduce("rloo", range(100, 102), claim=replace(SMALL, settings={"nn": 2}), into=tmp_path)
    (tmp_path / "file").touch()
    monkeypatch.setenv("REWARDLAB_RESULTS", str(tmp_path / "file" / "results"))
    with pytest.raises(RewardlabError, match=r"cannot write results of rloo to .*file/results: Not a directory; set REWARDLAB_RES"):
        reproduce("rloo", range(100, 102), claim=SMALL)


def not_reached(*_, **__):
    raise AssertionError("a run began")


def test_development_seeds_are_never_mixed_with_others(ladder, tmp_path):
    with pytest.raises(RewardlabError, match="seeds 98 to 102 mix those for development"):
        reproduce("ladder", range(98, 103), into=tmp_path)


# ---- the command line ------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_development_prints_one_document_or_a_table_and_leaves_no_record(ladder, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("REWARDLAB_RESULTS", str(tmp_path / "results"))
    argv = ["reproduce", "ladder", "--dev", "--jobs", "1", "--seeds", "2"]
    assert cli.main([*argv, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["name"], document["verdict"], document["seeds"]) == ("ladder", "undecided", [0, 1])
    assert not (tmp_path / "results").exists()
    show(document)
    told = " ".join(capsys.readouterr().out.split())
    assert "height, to be higher, against depth" in told
    # of two effects, .75 and .751: t with 1 degree of freedom at 98.4% is 39.78, times .0005
    assert "effect +0.7505, 98.4% interval +0.7306 to +0.7704, margin 0.5: undecided (2 pairs)" in told


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("reproduce mute", "mute makes no claim: there is nothing to reproduce"),
        ("reproduce", "one of the arguments METHOD --all is required"),
        ("reproduce grpoo", "unknown method 'grpoo'; did you mean grpo"),
        ("study starc --nonsense 3", "unknown flag of starc '--nonsense'"),
        ("study grpo", "grpo is not a study; run it with: rewardlab train grpo"),
        ("compare grpo grpo --task arithmetic", "grpo is named twice"),
        ("compare grpo rloo", "which task? give --task"),
        ("compare grpo ladder --task arithmetic", "a study trains no policy"),
        ("compare grpo rloo --task arithmetic --out /proc", "/proc exists and is not an empty folder"),
    ],
)
def test_a_wrong_request_is_refused_with_its_reason(ladder, line, message, capsys):
    assert cli.main(line.split()) == 2
    assert message in capsys.readouterr().err


def test_study_prints_its_table(ladder, capsys):
    assert cli.main(["study", "ladder", "--seed", "5", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"study": "ladder", "seed": 5, "numbers": {"height": 1.005, "depth": 0.25}}


def test_settings_of_a_study_are_flags(capsys):
    assert cli.main(["study", "starc", "--worlds", "1", "--pairs", "2", "--states", "8", "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)["numbers"]
    assert shown == pytest.approx(runs.study("starc", 0, {"worlds": 1, "pairs": 2, "states": 8}), nan_ok=True)
    assert shown != pytest.approx(runs.study("starc", 0, {"worlds": 1, "pairs": 2, "states": 9}), nan_ok=True)


# ---- docs/methods.md -------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_document_tells_verdicts_and_marks_those_of_older_files(tmp_path):
    results.append("grpo", results.as_record(claim_of("grpo")), run_of(), tmp_path)
    results.append("rloo", {}, run_of("undecided", code={"method": "of another file"}), tmp_path)
    text = methods_doc.document(tmp_path)
    assert re.search(r"Claims: holds 1, undecided 1", text)
    (grpo,) = [line for line in text.splitlines() if line.startswith("| [grpo]")]
    assert "**holds**<br>40 updates of the small policy of the task on `arithmetic" in grpo
    assert "Right: ppo reaches 50%, grpo reaches 60%." in grpo
    assert "<br>pass@1 +0.1 [+0.05, +0.15], 5 pairs" in grpo
    assert "credit: `center() >> scale_by_std() >> to_go()`" in grpo
    (rloo,) = [line for line in text.splitlines() if line.startswith("| [rloo]")]
    assert "**undecided** †" in rloo
    assert all(line.count(" | ") == 3 for line in text.splitlines() if line.startswith("| ["))


@pytest.mark.slow
def test_the_document_is_written_in_a_checkout_alone(tmp_path, monkeypatch):
    monkeypatch.setattr(catalogue, "repository", lambda: tmp_path)
    (tmp_path / "docs").mkdir()
    assert methods_doc.write().read_text("utf-8") == methods_doc.document(catalogue.SHIPPED)
    monkeypatch.setattr(catalogue, "repository", lambda: None)
    with pytest.raises(RewardlabError, match="installed without one"):
        methods_doc.write()


def test_a_record_that_names_its_measure_by_module_path_is_of_the_same_claim():
    """As results/dapo.json was written by the first version."""
    claim = claim_of("rover")
    recorded = results.as_record(claim)
    assert recorded["by"] == {"part": "measure:coverage", "with": {"n": 8, "k": 8}}
    old = {**recorded, "by": {"part": "rewardlab.evals.passk:coverage", "with": {"n": 8, "k": 8}}}
    assert results.same_claim(old, claim)
    assert not results.same_claim({**old, "by": {"part": "rewardlab.evals.passk:coverage", "with": {"n": 8, "k": 2}}}, claim)
    assert not results.same_claim({**old, "margin": 0.5}, claim)
    assert not results.same_claim({**old, "by": {"part": "measure:removed", "with": {}}}, claim)


def test_a_setting_of_a_claim_may_be_a_part():
    score = registry.part("reward", "number_mentioned")
    claim = replace(SMALL, settings={"score": score, "n": 2}, versus="rlhf", versus_settings={"score": score})
    sides = pairing.Pairs("rlhf", claim).recipes
    assert [side.reward for side in sides] == [score, score]
    recorded = results.as_record(claim)
    assert recorded["settings"] == {"score": {"part": "reward:number_mentioned", "with": {}}, "n": 2}
    assert results.same_claim(recorded, claim)
    other = registry.part("reward", "final_number")
    assert not results.same_claim(recorded, replace(claim, settings={"score": other, "n": 2}))
