"""Worlds: their tasks exist, their rewards are those that are said, and what is recorded is what is shown."""

from __future__ import annotations

import json

import pytest

from rewardlab import registry
from rewardlab.checks import probe, worlds
from rewardlab.checks.worlds import WORLDS, World
from rewardlab.commands import cli
from rewardlab.errors import RewardlabError
from rewardlab.models import embedded

TINY = World("tiny", "arithmetic:difficulty=1,biased=0.5,test_size=20", "tests", settings={"problems": 2})


@pytest.mark.parametrize("world", WORLDS, ids=lambda w: w.name)
def test_a_world_has_test_problems_enough_and_a_recipe_that_plays_it(world, thorough):
    task = registry.task(world.task)
    few = task.test[:30]
    assert len({p.key for p in few}) == 30
    assert not thorough or len(task.test) == 1000
    recipe = world.recipe(3e-4)
    assert recipe.update.lr == 3e-4
    names = {part.name for part in recipe.reward.walk()}
    assert set(world.reward or {"correct": 1.0}) <= names
    assert recipe.rollout.name == ("interactive" if task.environment else "independent")


def test_an_unknown_world_is_refused_with_the_nearest():
    with pytest.raises(RewardlabError, match="did you mean biased"):
        worlds.world("biassed")


@pytest.fixture
def tiny(tmp_path, monkeypatch):
    """A world whose policy is untrained, and results of its own."""
    monkeypatch.setenv("REWARDLAB_RESULTS", str(tmp_path))
    monkeypatch.setattr(probe, "load_policy", lambda *_, **__: embedded.untrained())
    monkeypatch.setattr(probe, "checkpoint", lambda task: tmp_path / "policy")
    monkeypatch.setattr(worlds, "WORLDS", (TINY,))
    monkeypatch.setattr(probe, "VOTED", 4)
    return tmp_path / "worlds" / "tiny.json"


@pytest.mark.slow
def test_a_world_is_measured_and_its_record_shown(tiny, monkeypatch, capsys):
    monkeypatch.setattr(probe, "RATES", (1e-3, 1e-4))
    record = probe.check(TINY, seeds=(0, 1), updates=1, problems=10)
    assert record["recorded"] == str(tiny)
    assert [(run["seed"], run["lr"]) for run in record["runs"]][:2] == [(0, 1e-3), (0, 1e-4)]
    assert len(record["runs"]) == 3
    assert {run["lr"] for run in record["runs"][2:]} == {record["lr"]}
    assert record["steps"] == "every step"
    assert all(run["tokens"] > 0 for run in record["runs"])
    assert json.loads(tiny.read_text())["start"] == record["start"]
    assert cli.main(["worlds", "tiny", "--json"]) == 0
    (shown,) = json.loads(capsys.readouterr().out)
    assert shown["measured"]["reached"] == record["reached"]
    assert cli.main(["worlds"]) == 0
    assert TINY.task in capsys.readouterr().out


def test_a_record_that_is_broken_says_how_to_make_it_again(tiny):
    tiny.parent.mkdir()
    tiny.write_text("{")
    with pytest.raises(RewardlabError, match=r"rewardlab worlds --check"):
        worlds.measured(TINY)


def test_the_start_alone_can_be_measured_and_is_not_taken_for_all(tiny):
    record = probe.check(TINY, problems=10, start_only=True)
    assert record["runs"] == []
    assert "GRPO was not run yet" in record["remarks"]
    assert cli.main(["worlds", "tiny"]) == 0
    assert cli.main(["worlds", "tiny", "--start-only"]) == 2


def run(single: float) -> dict:
    return {"truth": {"single": single}}


def test_one_seed_has_no_noise_that_is_known():
    found = probe._summary([run(0.7)], {"single": 0.4, "greedy": 0.4})
    assert found["noise"] is None
    assert found["remarks"] == ["one seed tells nothing of the noise"]


@pytest.mark.parametrize(
    ("ends", "start", "greedy", "remarks"),
    [
        ((0.70, 0.72, 0.71), 0.4, 0.4, []),
        ((0.42, 0.48, 0.39), 0.4, 0.4, ["GRPO moves it by less than three standard deviations of its noise"]),
        ((0.20, 0.21, 0.22), 0.4, 0.4, ["GRPO lowers the truth"]),
        ((0.90, 0.91, 0.92), 0.4, 0.98, ["little is left to learn when GRPO ends", "its greedy answer is right already"]),
    ],
)
def test_what_is_wrong_with_a_world_is_said(ends, start, greedy, remarks):
    found = probe._summary([run(x) for x in ends], {"single": start, "greedy": greedy})
    assert found["remarks"] == remarks
    assert found["reached"] == pytest.approx(sum(ends) / 3, abs=1e-4)
