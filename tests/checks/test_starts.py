"""Numbers before training that are kept: measured once for all runs that begin alike, and never for one that begins otherwise."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from rewardlab import registry
from rewardlab.checks import pairs as rehearse
from rewardlab.checks.kept import with_known_start, with_shared_start
from rewardlab.checks.runs import Job, run
from rewardlab.evals.passk import coverage
from rewardlab.runs.config import RunConfig
from rewardlab.util.files import cache

CONFIG = RunConfig(task="arithmetic:test_size=8", model="untrained", eval_problems=4, eval_every=0, steps=1)


@pytest.fixture
def job(tmp_path, own_cache):
    def of(method="grpo", config=CONFIG, by=None, **settings):
        recipe = registry.build(method, {"problems": 2, "n": 2} | settings)
        return Job(method, recipe.to_json(), config, str(tmp_path / "run"), by and by.to_json(), beside=True)

    return of


def files():
    return sorted((cache() / "starts").glob("*/*.json"))


def file_of(job) -> str:
    """Where the start of a job is kept."""
    return registry.load_part(with_known_start(job).by).settings["file"]


def comparable(done):
    return {k: v for k, v in done.numbers.items() if not k.startswith("train.seconds")}


@pytest.mark.slow
def test_the_start_is_measured_once_and_changes_no_other_number(job):
    plain = run(job(lr=1e-3))
    assert comparable(run(with_known_start(job()))).keys() == comparable(plain).keys()
    [file] = files()
    # what another run has written is read, not measured
    file.write_text(json.dumps(json.loads(file.read_text()) | {"pass@1": 0.75, "greedy": 0.5}))
    other = run(with_known_start(job(lr=1e-3)))
    assert (other.numbers["before.pass@1"], other.numbers["before.greedy"]) == (0.75, 0.5)
    rest = comparable(plain).keys() - {"before.pass@1", "before.greedy"}
    assert {k: other.numbers[k] for k in rest} == {k: plain.numbers[k] for k in rest}
    assert files() == [file]


@pytest.mark.slow
@pytest.mark.parametrize("other", [
    {"config": CONFIG.but(seed=1)}, {"config": CONFIG.but(eval_problems=3)}, {"config": CONFIG.but(task="arithmetic:test_size=9")},
    {"config": CONFIG.but(max_new=5)}, {"by": coverage(n=2, k=2)}, {"method": "ppo"},
])  # fmt: skip
def test_a_run_that_begins_otherwise_has_a_file_of_its_own(job, other):
    settings = {"n": 1} if other.get("method") == "ppo" else {}
    assert file_of(job()) != file_of(job(**other, **settings))


def test_how_long_and_how_fast_a_run_learns_does_not_matter(job):
    assert file_of(job()) == file_of(job(lr=1e-3, minibatches=2, config=CONFIG.but(steps=9)))


def test_runs_of_a_comparison_share_their_start_whatever_their_task_is_called(job, tmp_path):
    own = tmp_path / "mine.jsonl"
    own.write_text("".join(json.dumps({"prompt": f"{i} + 1 = ", "answer": str(i + 1)}) + "\n" for i in range(12)))
    config = CONFIG.but(task=str(own), model="untrained", seed=3)
    first, second = (with_shared_start(job(config=config, lr=rate), tmp_path / "out") for rate in (1e-4, 1e-3))
    assert first.by == second.by
    before = run(first).numbers["before.pass@1"]
    [file] = (tmp_path / "out" / "starts").glob("*-s3.json")
    # the second reads it
    file.write_text(json.dumps({"pass@1": before + 0.25}))
    assert run(second).numbers["before.pass@1"] == before + 0.25
    for other in (job(config=config.but(seed=4)), job(config=config.but(max_new=5)), job(by=coverage(n=2, k=2), config=config)):
        assert with_shared_start(other, tmp_path / "out").by != first.by


def test_runs_that_measure_nothing_share_nothing(job, tmp_path):
    unmeasured = job(config=CONFIG.but(eval_problems=0))
    assert with_shared_start(unmeasured, tmp_path) is unmeasured


@pytest.mark.slow
def test_jobs_that_are_rehearsed_side_by_side_measure_many_problems_once(job, tmp_path, monkeypatch):
    asked, held_out = [], rehearse.held_out
    monkeypatch.setattr(rehearse, "held_out", lambda task, n: asked.append(n) or held_out(task, n))
    jobs = [replace(job(name), folder=str(tmp_path / "side" / name)) for name in ("grpo", "rloo")]
    # its critic is a second model, which a measure may ask
    other = replace(job("ppo"), folder=str(tmp_path / "side" / "ppo"))
    alone = replace(job("rloo"), folder=str(tmp_path / "alone" / "rloo"))
    names = [rehearse.rehearse(one).names for one in (*jobs, other, alone)]
    assert asked == [CONFIG.eval_problems] * 3
    assert names[1] == names[3]
    assert {"pass@1", "before.pass@1", "greedy"} <= set(names[0]) & set(names[2])
    assert {path.name for path in (tmp_path / "side").iterdir()} == {"starts"}
