"""A reproduction that was stopped resumes after the runs that it had finished; one that was recorded starts anew."""

from __future__ import annotations

import pytest

from rewardlab import registry
from rewardlab.checks import kept as unfinished
from rewardlab.checks.claim import Claim
from rewardlab.checks.pairs import Pairs
from rewardlab.checks.runs import Job
from rewardlab.evals.passk import coverage
from rewardlab.runs.config import RunConfig
from rewardlab.util.files import cache

CONFIG = RunConfig(task="arithmetic:test_size=8", model="untrained", eval_problems=4, eval_every=0, steps=1)


@pytest.fixture
def job(tmp_path, own_cache):
    def of(seed=100, by=None, **settings):
        recipe = registry.build("grpo", {"problems": 1, "n": 2} | settings)
        return Job("grpo", recipe.to_json(), CONFIG.but(seed=seed), str(tmp_path / "run"), by and by.to_json())

    return of


def refuse(*_, **__):
    raise AssertionError("it was run again")


def test_a_finished_run_is_not_run_again_before_it_is_recorded(job, monkeypatch):
    first = unfinished.run_once(job())
    with monkeypatch.context() as patch:
        patch.setattr(unfinished, "run", refuse)
        assert unfinished.run_once(job()) == first
        for other in (job(seed=101), job(lr=1e-4), job(by=coverage(n=2, k=2))):
            with pytest.raises(AssertionError, match="run again"):
                unfinished.run_once(other)
        unfinished.recorded(job())
        with pytest.raises(AssertionError, match="run again"):
            unfinished.run_once(job())


def test_pairs_forget_the_outcomes_of_a_record(job):
    claim = Claim(
        says="-", versus="grpo", task=CONFIG.task, measure="pass@1", direction="higher", margin=0.1, model="untrained",
        settings={"problems": 1, "n": 2}, versus_settings={"problems": 1, "n": 4}, problems=4, steps=1,
    )  # fmt: skip
    with Pairs("grpo", claim, jobs=1) as pairs:
        for seed in (100, 101):
            unfinished.run_once(pairs.job(0, seed))
        pairs.recorded([100])
    assert [path.name for path in (cache() / "unfinished").glob("*/*.json")] == ["s101.json"]
