"""A method that is in no league's file joins by its name on problems of the user's own."""

from __future__ import annotations

import json
import sys

import pytest

from rewardlab.commands import cli
from rewardlab.comparisons.league import OWN, league
from rewardlab.comparisons.own import of_task, only
from rewardlab.comparisons.own_check import check
from rewardlab.comparisons.season import FIRST, Season
from rewardlab.errors import RewardlabError
from rewardlab.runs.config import RunConfig

MINE = '''"""Curt: two passes over each batch."""
from rewardlab.methods.baselines.grpo import grpo

def curt(base=None, *, n: int = 2, worth: float = 1.0):
    return (base or grpo(n=n)).but(epochs=2, reward=worth * grpo().reward)

claim = None
'''


@pytest.fixture
def rows(tmp_path, monkeypatch):
    """Rows, and a method of the user's own."""
    folder = tmp_path / "own" / "joining"
    folder.mkdir(parents=True)
    (folder / "curt.py").write_text(MINE)
    for name in ("rewardlab.methods.joining.curt", "rewardlab.methods.joining"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.setenv("REWARDLAB_METHODS", str(folder.parent))
    monkeypatch.chdir(tmp_path)
    lines = (json.dumps({"prompt": f"{a} + 1 = ", "answer": str(a + 1)}) for a in range(30))
    (tmp_path / "rows.jsonl").write_text("\n".join(lines))
    return RunConfig(task="rows.jsonl", model="untrained", max_new=4, device="cpu")


def test_a_method_of_ones_own_meets_the_members_by_the_settings_of_the_league(rows, tmp_path):
    found = of_task(only(league("length"), ["hapo", "curt"], [], own=True), rows)
    assert [member.name for member in found.members] == ["grpo", "hapo", "curt"]
    season = Season(found, rows, tmp_path / "out")
    check(season, dry=True)
    (world,) = found.worlds
    recipe = season.recipe(found.member("curt"), world)
    shared = league("length").settings
    assert recipe.sampling_settings["n"] == shared["n"]
    assert recipe.update.problems == shared["problems"]
    assert recipe.measure == league("length").measure
    # a rate is chosen for it as for the others
    job = season.job(found.member("curt"), world, FIRST, {found.rate_of(found.member("curt")): 3e-4})
    assert job.recipe["update"]["lr"] == 3e-4


def test_it_is_planned_by_the_command_line(rows, capsys):
    line = "league length --task rows.jsonl --model untrained --members curt,dapo+hapo --steps 1 --seeds 2 --max-new 4 --dry-run"
    assert cli.main(line.split()) == 0
    assert "3 members on 2 seeds: grpo, curt, dapo+hapo" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("name", "member", "says"),
    [
        ("length", "curtt", "unknown member of the league 'curtt'; did you mean .*curt"),
        ("length", "best_of_n", "best_of_n selects answers and trains nothing, which no member of this league does"),
        ("length", "rewardbench_2", "rewardbench_2 is a study and trains nothing"),
        ("search", "curt", "curt trains a model, which no member of this league does"),
        ("judges", "curt", "curt does not measure what decides in this league, right verdicts .*: its own measure is accuracy"),
        ("process_rewards", "curt", "its own measure is accuracy, and the members' reranked$"),
        ("reward_models", "curt", "it has no setting reward_lr or rm_lr"),
    ],
)
def test_a_method_that_is_not_measured_as_the_members_are_cannot_join(rows, name, member, says):
    with pytest.raises(RewardlabError, match=says):
        only(league(name), [member], [], own=True)


def test_a_reward_model_of_another_league_joins_with_its_own_rate(rows):
    found = only(league("reward_models"), ["rlbff"], [], own=True)
    assert found.rate_of(found.member("rlbff")) in ("reward_lr", "rm_lr")


def test_the_worlds_of_a_league_have_its_own_members(rows, capsys):
    assert cli.main(["league", "length", "--members", "hapo,curt", "--dry-run"]) == 2
    assert "curt is no member of the league (they are grpo, hapo, " in (said := capsys.readouterr().err)
    assert "any method joins on problems of your own: add --task" in said
    # its members stay as its file has them
    assert only(league("length"), ["hapo"], [], own=True).member("hapo") == league("length").member("hapo")
    assert OWN not in [world.name for world in league("length").worlds]
