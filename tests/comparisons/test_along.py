"""Members at equal amounts of what runs spend: paths and meetings by hand, and a league that is measured on the way."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import numpy as np
import pytest

from rewardlab.checks.runs import Done
from rewardlab.comparisons import known_runs, leagues_doc, results
from rewardlab.comparisons.along import POINTS, compared, mean_path, meeting, path_of
from rewardlab.comparisons.forecast import forecast
from rewardlab.comparisons.league import League, Member, Outcome, World
from rewardlab.comparisons.league_page import page
from rewardlab.comparisons.season import Season
from rewardlab.comparisons.telling import at_equal, spending
from rewardlab.comparisons.words import BETTER, WORSE
from rewardlab.evals.rewards import reward_and_kl
from rewardlab.runs.config import RunConfig
from tests.helpers import in_process

REWARD = Outcome("reward", "higher", "true quality", margin=0.03)


def run(*points):
    return Done({}, [(i, {"kl": kl, "reward": reward}) for i, (kl, reward) in enumerate(points)], 0.0)


def test_a_path_is_of_the_measurements_that_went_farther_than_all_before():
    turns_back = run((0.0, 0.5), (0.4, 0.6), (0.3, 0.9), (0.8, 0.7), (math.nan, 0.1))
    assert path_of(turns_back, "kl", "reward").tolist() == [[0.0, 0.4, 0.8], [0.5, 0.6, 0.7]]
    assert path_of(Done({}, [(0, {"reward": 0.5})], 0.0), "kl", "reward").shape == (2, 0)


def test_two_runs_meet_where_the_one_that_went_less_ended():
    far, near = path_of(run((0, 0.5), (1, 0.6), (2, 0.9)), "kl", "reward"), path_of(run((0, 0.5), (1.5, 0.7)), "kl", "reward")
    # halfway between .6 and .9
    assert meeting(far, near) == pytest.approx((1.5, 0.75, 0.7))
    assert meeting(near, far) == pytest.approx((1.5, 0.7, 0.75))
    assert all(math.isnan(x) for x in meeting(far, np.zeros((2, 0))))


def test_going_farther_is_not_being_better():
    """One gains as much for each nat and goes three times as far; one gains more for each nat and stops early."""
    noise = [0.001 * (-1) ** i for i in range(8)]
    base = [run((0, 0.5), (1, 0.6 + x)) for x in noise]
    farther = [run((0, 0.5), (1, 0.6 + x / 2), (3, 0.8)) for x in noise]
    steeper = [run((0, 0.5), (0.5, 0.6 + x)) for x in noise]
    wasteful = [run((0, 0.5), (2, 0.58 + x)) for x in noise]
    found = compared({"base": base, "farther": farther, "steeper": steeper, "wasteful": wasteful}, "base", "kl", REWARD)
    assert found["farther"]["word"] == "equal"
    assert found["farther"]["spent"] == pytest.approx(1)
    assert found["steeper"]["word"] == BETTER
    assert found["steeper"]["effect"] == pytest.approx(0.05)
    assert found["wasteful"]["word"] == WORSE
    assert found["wasteful"]["mean"] == pytest.approx(0.54)
    assert "base" not in found


def test_where_less_is_better_and_seeds_share_starts():
    outcome = Outcome("reward", "lower", "cost", margin=0.03)
    base = [run((0, 0.5), (1, 0.4)), run((0, 0.5), (1, 0.42))] * 2
    lower = [run((0, 0.5), (1, 0.2)), run((0, 0.5), (1, 0.2))] * 2
    found = compared({"base": base, "lower": lower}, "base", "kl", outcome, starts=[0, 1, 0, 1])
    # two starts, with means of .2 and .22
    assert found["lower"]["effect"] == pytest.approx(0.21)
    assert found["lower"]["low"] == pytest.approx(0.21 - 12.706 * 0.01, abs=1e-4)


def test_runs_that_were_not_measured_on_the_way_are_left_out():
    assert compared({"base": [run((0, 0.5), (1, 0.6))], "other": [Done({}, [], 0.0)]}, "base", "kl", REWARD) == {}
    assert mean_path([run((0, 0.5), (1, 0.6)), run((0, 0.5), (3, 0.8))], "kl", "reward") == [[0, 0.5], [2, 0.7]]
    assert mean_path([], "kl", "reward") == []


def test_what_is_said_of_members_at_equal_amounts():
    equal = {"word": BETTER, "effect": 0.05, "low": 0.02, "high": 0.08, "spent": 0.25, "mean": 0.6, "baseline": 0.55}
    rows = [{"member": "base", "at_equal": None}, {"member": "up", "at_equal": equal}, {"member": "new"}]
    record = {"spends": ["kl", "KL"], "outcome": {"scale": "share", "better": "higher"}}
    told = "At equal KL: better up (+5.0 points at 0.25)."
    assert spending({"fit": True, "rows": rows}, record) == told
    assert spending({"fit": False, "rows": rows}, record) == spending({"fit": True, "rows": rows}, {"spends": None}) == ""
    assert at_equal(rows[1], record["outcome"]) == "better: +5.0 points (+2.0 to +8.0), at 0.25"
    assert at_equal(rows[0], record["outcome"]) == at_equal(rows[2], record["outcome"]) == ""


TINY = League(
    question="Which of two?", want="a test", baseline="dpo", members=(Member("dpo"), Member("sft", settings={"field": "chosen"})),
    worlds=(World("notes", "notes:size=8", "orders", model="untrained", rates=(1e-2,)),),
    outcome=REWARD, measure=reward_and_kl(), learns=None, spends=("kl", "KL"), settings={"problems": 2}, steps=POINTS,
    problems=12, rate_seeds=1, chosen_by="reward",
)  # fmt: skip


def test_a_league_measures_on_the_way_and_shows_it(tmp_path, own_cache, monkeypatch):
    monkeypatch.setattr(known_runs, "run_all", in_process.run_all)
    season = Season(TINY, RunConfig(device="cpu", max_new=8), tmp_path / "out", pairs=2, processes=1)
    record = json.loads(json.dumps(results.run_league("tiny", season)))
    world = record["worlds"][0]
    rows = {row["member"]: row for row in world["rows"]}
    for row in rows.values():
        assert len(row["path"]) == POINTS + 1
        assert row["path"][0][0] == pytest.approx(0, abs=1e-5)
    assert rows["dpo"]["at_equal"] is None
    assert rows["sft"]["path"][-1][0] > 0
    # what has been run is known: a run that is measured on the way is one that the plan names
    assert forecast(season, None)[0]["missing"] == 0
    assert "at equal KL" in page(record, "?")
    assert "Along the runs" in page(record, "?")
    assert "at equal KL" in leagues_doc.table(world, record)
    assert [what for what, *_ in leagues_doc.plots_of("tiny", world, record)][-1] == "runs along the way"
    assert at_equal(rows["sft"], record["outcome"]).startswith(rows["sft"]["at_equal"]["word"])


def test_a_league_without_it_measures_only_at_the_end(tmp_path):
    season = Season(TINY, RunConfig(device="cpu"), tmp_path)
    plain = replace(season, league=replace(TINY, spends=None))
    member, world = TINY.members[0], TINY.worlds[0]
    assert season.job(member, world, 100, along=True).config.eval_every == 1
    assert season.job(member, world, 100).config.eval_every == 0
    assert plain.job(member, world, 100, along=True).config.eval_every == 0
