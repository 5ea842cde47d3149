"""Leagues as files, and how one is run: rates, kept runs, what is shown."""

from __future__ import annotations

import json
import math
import re
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from rewardlab import registry
from rewardlab.api.checking import check_columns
from rewardlab.api.first_rows import check_episodes
from rewardlab.checks.runs import Done
from rewardlab.checks.workers import Failed
from rewardlab.commands import cli
from rewardlab.commands import league as command
from rewardlab.comparisons import guide, known_runs, league_records, leagues_doc, played, results
from rewardlab.comparisons.facts import at_one_rate, pairs_of, ran
from rewardlab.comparisons.forecast import forecast, noise_of
from rewardlab.comparisons.league import OWN, Guard, League, Member, Outcome, World, league, leagues
from rewardlab.comparisons.league_page import page
from rewardlab.comparisons.own import of_task, only
from rewardlab.comparisons.own_check import check, each_fits
from rewardlab.comparisons.played import beyond, chosen
from rewardlab.comparisons.season import Season, model_of
from rewardlab.comparisons.standings import fitness, told_apart
from rewardlab.comparisons.telling import advice, remedies, sentences, standing_words
from rewardlab.comparisons.words import ABSENT, BASELINE, FAILED, INERT, UNFIT
from rewardlab.core import measure
from rewardlab.errors import RewardlabError
from rewardlab.evals.passk import accuracy
from rewardlab.models import embedded
from rewardlab.models.embedded import tokenizer, untrained
from rewardlab.registry.formula import read_reward
from rewardlab.registry.playing import as_task
from rewardlab.runs.config import RunConfig
from rewardlab.tasks.strictprm.problems import problems as strictprm_problems
from rewardlab.util.extras import MissingExtra
from tests.helpers import in_process
from tests.helpers.checkpoints import checkpoint

TINY = League(
    question="Which of two?", want="a test", baseline="grpo",
    members=(Member("grpo", knob="eps", values=(0.1,)), Member("rloo"), Member("hapo")),
    worlds=(World("sums", "arithmetic", "chains", model="untrained"),),
    outcome=Outcome("pass@1", "higher", "right replies", margin=0.05), guard=Guard("pass@1", at_least=-0.1),
    measure=accuracy(), settings={"n": 2, "problems": 1}, steps=1, problems=4, rates=(1e-4, 3e-4), rate_seeds=1,
)  # fmt: skip


@pytest.fixture
def tiny(tmp_path, own_cache, monkeypatch):
    monkeypatch.setattr(known_runs, "run_all", in_process.run_all)
    return Season(TINY, RunConfig(device="cpu"), tmp_path / "out", pairs=2, processes=1)


# ---- leagues as files ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", leagues())
def test_every_member_can_be_made_in_every_world(name, tmp_path):
    found = league(name)
    under_way = Season(found, RunConfig(), tmp_path)
    for world in found.worlds:
        # an environment of others needs its package
        with suppress(MissingExtra):
            registry.task(world.task)
        for member in found.members_of(world):
            recipe = under_way.recipe(member, world)
            # without a measure of the league each is measured by its own
            assert recipe.measure == (found.measure or recipe.measure)
            assert recipe.measure is not None
            for value in member.values:
                assert under_way.recipe(member, world, {member.knob: value}) != recipe


def test_the_rows_of_a_world_have_what_the_members_that_play_there_read(tmp_path):
    found = league("agents")
    under_way = Season(found, RunConfig(), tmp_path)
    for world in found.worlds:
        with suppress(MissingExtra):
            task = registry.task(world.task)
            policy = untrained(task=task)
            for member in found.members_of(world):
                recipe = as_task(under_way.recipe(member, world), task)
                check_columns(recipe.but(name=member.stack), task)
                check_episodes(recipe, task, policy, under_way.config)


@pytest.mark.parametrize("name", leagues())
def test_two_worlds_at_least_and_one_that_no_check_of_a_member_has_used(name):
    found = league(name)
    used = {claim.task for member in found.members for method in member.stack.split("+") if (claim := registry.claim_of(method))}
    assert len(found.worlds) >= 2
    new = [world for world in found.worlds if world.new]
    assert new
    for world in new:
        assert not {task for task in used if task.partition(":")[0] == world.task.partition(":")[0] and task == world.task}
    assert len(found.rates) >= 3


def test_the_rate_of_a_member_is_that_of_the_model_which_it_trains(tmp_path):
    found = league("reward_models")
    under_way = Season(found, RunConfig(), tmp_path)
    for member in found.members:
        job = under_way.job(member, found.worlds[0], 100, {found.rate_of(member): 0.0123})
        rates = {learner["recipe"]["update"]["lr"] for learner in job.recipe["also"] if learner["name"] in ("reward", "base")}
        assert 0.0123 in rates, member.name
        assert job.recipe["update"]["lr"] is None
    grpo = league("length")
    assert {grpo.rate_of(member) for member in grpo.members} == {"lr"}


def test_a_league_says_what_is_wrong_with_it():
    with pytest.raises(RewardlabError, match="unknown baseline"):
        replace(TINY, baseline="grop")
    with pytest.raises(RewardlabError, match="distinct"):
        replace(TINY, members=(Member("grpo"), Member("grpo")))
    with pytest.raises(RewardlabError, match="margin above 0"):
        Outcome("pass@1", "higher", "right replies", margin=0.0)
    with pytest.raises(RewardlabError, match="did you mean length"):
        league("lenght")


# ---- rates --------------------------------------------------------------------------------------------------------------


def test_a_rate_at_the_edge_asks_for_one_beyond_it():
    assert beyond({3e-5: 0.2, 1e-4: 0.5, 3e-4: 0.4}) == []
    assert beyond({3e-5: 0.6, 1e-4: 0.5, 3e-4: 0.4}) == [9e-6]
    assert beyond({3e-5: 0.2, 1e-4: 0.5, 3e-4: 0.7}) == [9e-4]
    # where every rate failed, or all do alike, there is none to go on from
    assert beyond({3e-5: None, 1e-4: None}) == []
    assert beyond({3e-5: 0.0, 1e-4: 0.0, 3e-4: 0.0}) == []


def test_a_rate_at_which_a_run_failed_is_not_chosen():
    assert chosen({3e-5: 0.2, 1e-4: None, 3e-4: 0.4}) == 3e-4
    assert chosen({3e-5: 0.4, 3e-4: 0.4}) == 3e-5
    assert chosen({1e-4: None}) is None


def test_on_rows_that_are_solved_already_length_chooses_the_rate_while_accuracy_is_kept():
    found = of_task(league("length"), RunConfig(task="mine.jsonl", model="mine"))
    (world,) = found.worlds

    def runs(length, right):
        return [Done({"log_right_length": length, "before.pass@1": 0.96, "pass@1": right}, [], 1.0)] * 2

    # the shortest of these lost ten points
    levels = played.rate_levels(found, world, {1e-5: runs(3.4, 0.96), 3e-5: runs(3.1, 0.93), 1e-4: runs(2.9, 0.86), 3e-4: [None]})
    assert levels == {1e-5: None, 3e-5: 0.93, 1e-4: None, 3e-4: None}
    assert beyond(levels) == []
    # the best is at the end of the list, where others are out of the question
    assert beyond({1e-5: None, 3e-5: None, 1e-4: 0.93}) == [3e-4]
    # where lengths differ by a fifth of what would matter or less, the rate that is right most often
    levels = played.rate_levels(found, world, {1e-5: runs(3.394, 0.94), 3e-5: runs(3.4, 0.96), 1e-4: runs(3.41, 0.97)})
    assert levels == {1e-5: 0.94, 3e-5: 0.96, 1e-4: None}
    assert chosen(levels) == 3e-5
    # a rate at which no reply is right has no length, in whatever place it stands
    none, some = runs(math.nan, 0.0), runs(3.4, 0.04)
    for by_rate in ({1e-5: none, 3e-5: some}, {1e-5: some, 3e-5: none}):
        assert chosen(played.rate_levels(found, world, by_rate)) == next(rate for rate, of in by_rate.items() if of is some)
    # where nobody is ever right, the baseline still meets, so that the reason is told
    assert chosen(played.rate_levels(found, world, {1e-5: none, 3e-5: none})) == 1e-5
    season = Season(found, RunConfig(), Path())
    assert played.told_unfit(season, world, runs(3.4, 0.95)) == ""
    assert "it ends right often enough (pass@1): 0.05, needed at least 0.15" in played.told_unfit(season, world, runs(3.4, 0.05))


def test_seeds_are_divided_among_warm_starts():
    small = World("a", "arithmetic", "a", starts=4)
    assert [model_of(small, seed) for seed in (0, 1, 100, 101, 105)] == [None, "embedded#1", None, "embedded#1", "embedded#1"]
    assert model_of(World("a", "arithmetic", "a", model="smollm2"), 101) == "smollm2"


def test_warm_starts_are_made_side_by_side_before_the_runs_that_need_them(tiny, monkeypatch):
    asked = []

    def recorded(work, jobs, processes=None):
        asked.append((work, list(jobs)))
        return ((i, Failed("not run")) for i in range(len(jobs)))

    monkeypatch.setattr(known_runs, "run_all", recorded)
    monkeypatch.setattr(known_runs, "_WARM", set())
    several = replace(TINY.worlds[0], model=None, starts=2)
    jobs = [tiny.job(member, several, seed) for seed in (100, 101, 102) for member in TINY.members]
    known_runs.run_jobs("sums", jobs, 1)
    (first, starts), (then, runs) = asked
    assert first is known_runs.warm
    assert [config.model for config in starts] == [None, "embedded#1"]
    assert then is known_runs.run_known
    assert runs == jobs
    # once is enough; one start is made by the run that needs it, and a pretrained model is no start of ours
    asked.clear()
    known_runs.run_jobs("sums", jobs, 1)
    monkeypatch.setattr(known_runs, "_WARM", set())
    known_runs.run_jobs("sums", jobs[:3], 1)
    known_runs.run_jobs("sums", [replace(job, keep=True) for job in jobs], 1)
    assert [work for work, _ in asked] == [known_runs.run_known] * 3


# ---- a league is run ----------------------------------------------------------------------------------------------------


MEASURED: list[int] = []


@measure
def counted(problems, run):
    """Counts how often it is asked."""
    MEASURED.append(run.step)
    return {"pass@1": float(run.seed)}


@pytest.mark.parametrize("own", [False, True])
def test_what_runs_measure_before_their_first_step_is_measured_once_a_seed(tiny, tmp_path, own):
    """On a user's own rows too, which may be other rows of the same name tomorrow."""
    (rows := tmp_path / "rows.jsonl").write_text("".join(f'{{"prompt": "{i}?", "answer": "1"}}\n' for i in range(8)))
    tiny = replace(tiny, league=replace(TINY, measure=counted()))
    world = replace(TINY.worlds[0], task=str(rows) if own else "arithmetic")

    def run_all(seeds):
        MEASURED.clear()
        found = known_runs.run_jobs("sums", [tiny.job(member, world, seed) for seed in seeds for member in TINY.members], 1)
        assert [one.curve[0][1]["pass@1"] for one in found] == [float(seed) for seed in seeds for _ in TINY.members]
        return MEASURED

    assert run_all((100, 101)) == [0, 1, 1, 1, 0, 1, 1, 1]
    if own:
        rows.write_text("".join(f'{{"prompt": "{i}?", "answer": "22"}}\n' for i in range(8)))
        known_runs._KEYS.clear()
        assert run_all((100,)) == [0, 1, 1, 1]


@pytest.mark.slow
def test_a_league_is_run_once_and_read_after_that(tiny, tmp_path, monkeypatch):
    # a policy with random weights is never right, and nobody learns
    tiny = replace(tiny, league=replace(TINY, learns=None))
    assert forecast(tiny, None)[0]["missing"] == forecast(tiny, None)[0]["runs"] == 3 * (2 + 2) + 2
    record = results.run_league("tiny", tiny)
    (world,) = record["worlds"]
    rows = {row["member"]: row for row in world["rows"]}
    assert rows["grpo"]["standing"]["word"] == BASELINE
    assert world["fit"]
    assert rows["grpo"]["tokens"] > 0
    assert rows["grpo"]["updates"] == 1
    assert rows["grpo"]["knob"][0]["at"] == 0.1
    assert len(rows["rloo"]["values"]) == 2
    # by these it is known whether it can stand beside worlds that are run later
    assert league_records._terms(world) == tiny.terms(tiny.league.worlds[0])

    def never(job):
        raise AssertionError("it was run before")

    monkeypatch.setattr(known_runs, "run", never)
    monkeypatch.setattr(known_runs, "run_all", lambda work, jobs, processes=None: (never(job) for job in jobs))
    again = results.run_league("tiny", tiny)
    assert again["worlds"] == record["worlds"]
    of = {"to choose rates": 6, "to compare": 6, "to vary a setting": 2}
    assert forecast(tiny, record)[0] == {"world": "sums", "runs": 14, "of": of, "missing": 0, "seconds": 0, "sees": None}
    # a member that is added later meets the runs of the others
    more = replace(tiny, league=replace(tiny.league, members=(*TINY.members, Member("dr_grpo"))))
    assert forecast(more, None)[0]["missing"] == 2 + 2

    text = page(record, TINY.question)
    assert "<script" not in text
    assert "Not met: members can be told apart" in text
    assert all(f"<td>{name}</td>" in text for name in rows)
    league_records.append("tiny", record, tmp_path / "kept")
    league_records.append("tiny", record, tmp_path / "kept")
    assert len(league_records.history("tiny", tmp_path / "kept")) == 2


def test_where_the_baseline_shows_that_a_world_decides_nothing_the_others_are_not_run(tiny, monkeypatch, capsys):
    asked = []

    def outcome(job, ends=0.97):
        asked.append(job.method)
        return Done({"pass@1": ends, "before.pass@1": 0.2, "auc.truth": 0.6, "tokens": 10.0, "updates": 1.0}, [], 1.0)

    monkeypatch.setattr(played, "run_jobs", lambda what, jobs, processes: [outcome(job) for job in jobs])
    record = results.run_league("tiny", tiny)
    assert set(asked) == {"grpo"}
    assert (
        "sums: not met: it ends with room to differ (pass@1): 0.97, needed 0.15 to 0.85. Nothing can be decided"
        in capsys.readouterr().err
    )
    (world,) = record["worlds"]
    assert not world["fit"]
    assert [row["member"] for row in world["rows"]] == ["grpo"]
    assert standing_words(record) == {"grpo": {"sums": BASELINE}, "rloo": {"sums": UNFIT}, "hapo": {"sums": UNFIT}}
    text = page(record, TINY.question) + leagues_doc.document("tiny", TINY, record) + "\n".join(sentences(record))
    assert "it ends with room to differ" in text
    assert "told apart" not in text
    assert "| rloo | unfit world |" in guide.overview(record)
    # all is known that will be run
    monkeypatch.setattr("rewardlab.comparisons.forecast.known", lambda job: outcome(job))
    assert forecast(tiny, None)[0] | {"seconds": 0} == {
        "world": "sums", "runs": 0, "of": dict.fromkeys(("to choose rates", "to compare", "to vary a setting"), 0), "missing": 0,
        "seconds": 0, "sees": None,
    }  # fmt: skip


def test_a_member_whose_runs_fail_is_told_and_the_others_go_on(tiny, monkeypatch):
    def outcome(job):
        if job.method == "rloo":
            return Failed("RewardlabError: no memory left")
        right = 0.5 + job.config.seed % 7 / 100 + (0.1 if job.method == "hapo" else 0.0)
        return Done({"pass@1": right, "before.pass@1": 0.2, "auc.truth": right, "tokens": 10.0, "updates": 1.0}, [], 1.0)

    monkeypatch.setattr(played, "run_jobs", lambda what, jobs, processes: [outcome(job) for job in jobs])
    (world,) = results.run_league("tiny", replace(tiny, pairs=8))["worlds"]
    rows = {row["member"]: row for row in world["rows"]}
    assert world["fit"]
    assert rows["rloo"]["standing"]["word"] == FAILED
    assert "no rate could be chosen" in rows["rloo"]["failed"]
    assert rows["hapo"]["standing"]["effect"] == pytest.approx(0.1)
    # what fails has no place among those with a number
    assert [row["member"] for row in world["rows"]] == ["hapo", "grpo", "rloo"]


def test_a_member_that_cannot_play_in_a_world_is_not_run_there_and_told(tiny, monkeypatch):
    asked = []

    def outcome(job):
        asked.append((job.method, job.config.task))
        right = 0.5 + job.config.seed % 7 / 100 + (0.1 if job.method == "hapo" else 0.0)
        return Done({"pass@1": right, "before.pass@1": 0.2, "auc.truth": right, "tokens": 10.0, "updates": 1.0}, [], 1.0)

    games = World("games", "countdown", "a game", model="untrained", absent={"rloo": "it reads answers"})
    both = replace(tiny, pairs=8, league=replace(TINY, worlds=(*TINY.worlds, games)))
    monkeypatch.setattr(played, "run_jobs", lambda what, jobs, processes: [outcome(job) for job in jobs])
    record = results.run_league("tiny", both)
    assert ("rloo", "arithmetic") in asked
    assert ("rloo", "countdown") not in asked
    assert standing_words(record)["rloo"] == {"sums": record["worlds"][0]["rows"][-1]["standing"]["word"], "games": ABSENT}
    assert [row["member"] for row in record["worlds"][1]["rows"]] == ["hapo", "grpo"]
    said = "Not run: rloo (it reads answers)."
    assert said in page(record, "Which?")
    assert said in leagues_doc.document("tiny", both.league, record)
    assert said in "\n".join(sentences(record))
    assert said.removesuffix(".") not in page({**record, "worlds": record["worlds"][:1]}, "Which?")
    word = record["worlds"][0]["rows"][-1]["standing"]["word"]
    assert re.search(rf"^\| rloo \| {word}: [^|]+\| not run \| ", guide.overview(record), re.M)
    assert forecast(both, None)[1]["runs"] == 2 * (2 + 8) + 3
    assert league_records._terms(record["worlds"][1]) == both.terms(games)
    with pytest.raises(RewardlabError, match="unknown member that is absent"):
        replace(TINY, worlds=(replace(games, absent={"grpo": "a baseline must be there"}),))
    # of some members those that are left out are absent nowhere
    assert only(both.league, ["hapo"], []).worlds[1].absent == {}


def test_where_a_run_takes_minutes_members_meet_on_fewer_seeds_at_one_rate_and_turn_no_knob(tiny, monkeypatch):
    asked = []

    def outcome(job):
        asked.append((job.method, job.config.task, job.config.seed, dict(registry.load_recipe(job.recipe).update.__dict__)["lr"]))
        right = 0.5 + job.config.seed % 7 / 100
        return Done({"pass@1": right, "before.pass@1": 0.2, "auc.truth": right, "tokens": 10.0, "updates": 1.0}, [], 1.0)

    dear = World("dear", "countdown", "a game", model="untrained", rates=(2e-4,), pairs=5, varied=False)
    both = replace(tiny, pairs=8, league=replace(TINY, worlds=(*TINY.worlds, dear)))
    assert forecast(both, None)[1]["of"] == {"to choose rates": 0, "to compare": 3 * 5, "to vary a setting": 0}
    monkeypatch.setattr(played, "run_jobs", lambda what, jobs, processes: [outcome(job) for job in jobs])
    record = results.run_league("tiny", both)
    there = [(method, seed, lr) for method, task, seed, lr in asked if task == "countdown"]
    assert sorted(there) == sorted((m.name, seed, 2e-4) for m in TINY.members for seed in range(100, 105))
    assert [world["pairs"] for world in record["worlds"]] == [8, 5]
    assert {row["member"]: (row["rate"], row["rates"]) for row in record["worlds"][1]["rows"]}["hapo"] == (2e-4, [[2e-4, None]])
    assert pairs_of(record) == '8 seeds each (5 in "dear")'
    assert at_one_rate(record) == ' (in "dear" all at 0.0002)'
    assert "0.0002" not in leagues_doc.rates(record["worlds"][1], record)
    # a smaller run of the league has no more seeds there than it has elsewhere
    assert len(replace(both, pairs=3).seeds(dear)) == 3


def test_a_cost_is_shown_beside_and_the_outcome_plotted_against_it(tiny, monkeypatch):
    def outcome(job):
        right = 0.5 + job.config.seed % 7 / 100 + (0.1 if job.method == "hapo" else 0.0)
        numbers = {"pass@1": right, "before.pass@1": 0.2, "auc.truth": right, "tokens": 10.0, "updates": 1.0, "calls": 3.25}
        return Done(numbers, [], 1.0)

    monkeypatch.setattr(played, "run_jobs", lambda what, jobs, processes: [outcome(job) for job in jobs])
    costly = replace(TINY, costs={"calls": "calls of an episode"})
    record = results.run_league("tiny", replace(tiny, league=costly))
    for text in (page(record, "Which?"), leagues_doc.document("tiny", costly, record)):
        assert "calls of an episode" in text
        assert "3.25" in text
    plots = {kind: svg for kind, _, svg in leagues_doc.plots_of("tiny", record["worlds"][0], record)}
    assert "calls of an episode" in plots["frontier"]
    # a record of an earlier version names no costs, and is plotted against what is guarded
    plain = {name: value for name, value in record.items() if name != "costs"}
    assert "calls of an episode" not in page(plain, "Which?")
    assert any(kind == "frontier" for kind, _, _ in leagues_doc.plots_of("tiny", record["worlds"][0], plain))


def test_where_the_baseline_fails_nothing_can_be_compared(tiny, monkeypatch):
    monkeypatch.setattr(played, "run_jobs", lambda what, jobs, processes: [Failed("RewardlabError: no memory left") for _ in jobs])
    with pytest.raises(RewardlabError, match="sums: the baseline grpo fails: no rate could be chosen"):
        results.run_league("tiny", tiny)


def test_a_member_that_costs_more_is_shown_at_equal_tokens_too(tiny, monkeypatch):
    asked = []

    def outcome(job):
        asked.append((job.method, job.config.budget))
        tokens = 10.0 if job.config.budget is None and job.method != "hapo" else 30.0
        return Done({"pass@1": 0.5, "before.pass@1": 0.2, "auc.truth": 0.5, "tokens": tokens, "updates": 1.0}, [], 1.0)

    monkeypatch.setattr(played, "run_jobs", lambda what, jobs, processes: [outcome(job) for job in jobs])
    (world,) = results.run_league("tiny", tiny)["worlds"]
    assert [budget for method, budget in asked if budget] == [10, 10]
    assert {method for method, budget in asked if budget} == {"hapo"}
    rows = {row["member"]: row for row in world["rows"]}
    assert rows["hapo"]["equal_tokens"]["effect"] == pytest.approx(0.0)
    assert rows["rloo"]["standing"]["word"] == INERT


@pytest.mark.slow
def test_where_a_world_has_a_budget_runs_end_by_tokens_and_not_by_steps(tiny, tmp_path):
    world = replace(TINY.worlds[0], tokens=3000)
    budgeted = replace(tiny, league=replace(TINY, worlds=(world,), learns=None))
    job = budgeted.job(TINY.member("grpo"), world, 100)
    assert (job.config.budget, job.config.steps) == (3000, None)
    # at the tokens of the baseline, as any other run that has a budget of its own
    assert budgeted.job(TINY.member("grpo"), world, 100, tokens=70).config.budget == 70
    record = results.run_league("tiny", budgeted)
    assert record["worlds"][0]["budget"] == 3000
    assert all(row["tokens"] >= 3000 for row in record["worlds"][0]["rows"])
    assert all(row["updates"] > 1 for row in record["worlds"][0]["rows"])
    # all spent as much already
    assert all(row["equal_tokens"] is None for row in record["worlds"][0]["rows"])
    assert "3,000 tokens of all models together, each at the learning rate chosen for it" in page(record, "Which?")


# ---- recorded replies ---------------------------------------------------------------------------------------------------


def recorded_rows(path, problems=60):
    """Rows with four replies, of which the best one by its scores is right, but in each tenth row; the vote is wrong."""
    rows = []
    for i in range(problems):
        replies = [["we add", f"Answer: {i}"], *([["hm", f"Answer: {i + 1}"]] * 2), ["no", f"Answer: {i + 2}"]]
        scores = [[0.9, 0.1 if i % 10 == 0 else 0.8], *([[0.5, 0.5]] * 2), [0.1, 0.1]]
        rows.append({"prompt": f"{i}+0=?", "answer": str(i), "replies": replies, "scores": scores})
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def test_where_replies_are_recorded_members_are_compared_problem_by_problem(tmp_path, own_cache, monkeypatch):
    monkeypatch.setattr(known_runs, "run_all", in_process.run_all)
    file, train = tmp_path / "rows.jsonl", tmp_path / "train.jsonl"
    recorded_rows(file)
    train.write_text('{"prompt": "?", "answer": "1"}\n{"prompt": "??", "answer": "1"}\n')
    config = RunConfig(task=str(train), test=str(file), model="recorded", device="cpu")
    four = replace(
        league("selection"),
        members=(
            Member("majority_vote", settings={"n": 4}),
            Member("by the last", "best_of_n", settings={"n": 4}, by="last"),
            Member("by the mean", "best_of_n", settings={"n": 4}, by="mean"),
        ),
    )
    found = of_task(four, config, reward=registry.part("reward", "step_scores_in_data"))
    record = results.run_league("own", Season(found, config, tmp_path / "out", processes=1))
    (world,) = record["worlds"]
    rows = {row["member"]: row for row in world["rows"]}
    assert (world["paired"], world["pairs"]) == ("problems", 60)
    assert rows["majority_vote"]["mean"] == 0.0
    # one run each, however many seeds a league has
    assert len(rows["by the last"]["seconds"]) == 1
    assert rows["by the last"]["standing"]["word"] == "better"
    assert rows["by the last"]["mean"] == pytest.approx(0.9)
    # .9 and .1 are as much in the mean as .5 and .5: of equal ones the first is taken
    assert rows["by the mean"]["mean"] == 1.0
    assert rows["by the mean"]["standing"]["effect"] == 1.0
    assert "seeds each" not in page(record, "Which?")
    assert f"on {world['pairs']} problems with recorded replies" in page(record, "Which?")


def test_without_the_data_of_recorded_replies_the_record_is_shown(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("REWARDLAB_DATA", str(tmp_path))
    strictprm_problems.cache_clear()
    assert cli.main(["league", "selection", "--out", str(tmp_path / "out")]) == 0
    said = capsys.readouterr().out
    assert "majority_vote" in said
    assert "it cannot be run again here: the data file strictprm/candidates_gsm8k.jsonl.gz is missing" in said
    assert not (tmp_path / "out").exists()


def test_a_world_whose_package_is_missing_is_told_with_the_worlds_that_run_without_it(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda module: None)
    lacks = command.data_missing(league("agents"))
    assert "pip install 'rewardlab[babyai]'" in lacks
    assert lacks.endswith("--worlds 'a habit,articles'")
    assert command.data_missing(only(league("agents"), [], ["articles"])) == ""


# ---- on one's own problems ----------------------------------------------------------------------------------------------


def test_on_ones_own_problems_members_meet_in_one_world():
    found = of_task(league("length"), RunConfig(task="mine.jsonl", model="org/model", lora_rank=8), steps=5)
    (world,) = found.worlds
    assert (world.task, world.model, world.steps) == ("mine.jsonl", "org/model", 5)
    # lengths in tokens of the small worlds would cut a real model's replies
    assert all(not member.small for member in found.members)


def test_on_ones_own_problems_all_members_play_in_ones_own_environment(tmp_path):
    env = registry.part("environment", "functions", tools=("rewardlab.text.bm25:words",))
    own = of_task(league("agents"), RunConfig(task="mine.jsonl", model="hf:model"), env=env, turns=3)
    under_way = Season(own, RunConfig(), tmp_path)
    for member in own.members:
        recipe = under_way.recipe(member, own.worlds[0])
        places = [part for slot in (recipe.rollout, recipe.measure) for part in slot.walk() if part.name == "interactive"]
        assert places, member.name
        assert all(part.settings["turns"] == 3 for part in places)
        # a method's own environment may wrap it
        assert all(env in part.settings["env"].walk() for part in places), member.name


@pytest.mark.parametrize("name", ["objectives", "length", "data", "dense", "without_labels", "exploration"])
def test_a_league_of_single_replies_is_of_episodes_where_something_answers_them(name, tmp_path):
    env = registry.part("environment", "functions", tools=("rewardlab.text.bm25:words",))
    config = RunConfig(task="mine.jsonl", model="hf:model")
    own = of_task(league(name), config, env=env, turns=3, reward=read_reward("prm:my/scorer") if name == "dense" else None)
    under_way = Season(own, RunConfig(), tmp_path)
    for member in own.members:
        recipe = under_way.recipe(member, own.worlds[0])
        for slot in (recipe.rollout, recipe.measure):
            places = [part for part in slot.walk() if part.name == "interactive"]
            assert places, member.name
            assert all(env in part.settings["env"].walk() and part.settings["turns"] == 3 for part in places), member.name
            assert not any(part.name in ("independent", "pass_curve") for part in slot.walk()), member.name


def test_a_league_whose_members_write_no_replies_is_answered_by_nothing():
    env = registry.part("environment", "functions", tools=("rewardlab.text.bm25:words",))
    for other in ("preferences", "judges"):
        with pytest.raises(RewardlabError, match="measures by replies that it samples itself"):
            of_task(league(other), RunConfig(task="mine.jsonl", model="hf:model"), env=env)


def test_a_search_engine_that_does_not_answer_is_found_before_a_model_is_loaded(tmp_path):
    (rows := tmp_path / "rows.jsonl").write_text("".join(f'{{"prompt": "{i}?", "answer": "1"}}\n' for i in range(8)))
    env = registry.part("environment", "search", corpus="http://127.0.0.1:9/retrieve")
    own = only(league("agents"), ["igpo"], [])
    season = Season(of_task(own, RunConfig(task=str(rows), model="no/such"), env=env), RunConfig(task=str(rows)), tmp_path)
    with pytest.raises(RewardlabError, match=r"the search engine at http://127\.0\.0\.1:9/retrieve failed"):
        check(season, dry=True)


def test_a_process_reward_model_pays_a_search_its_last_step_and_no_sum_over_steps():
    given, config = read_reward("prm:my/scorer"), RunConfig(task="mine.jsonl")
    (world,) = of_task(league("search"), config, reward=given).worlds
    assert str(world.reward) == "prm_score(model='prm:my/scorer')"
    # where members say how they read steps, and where steps are paid one by one, they are left as they are
    for name in ("selection", "length"):
        assert of_task(league(name), config, reward=given).worlds[0].reward == given
    assert of_task(league("search"), config, reward=registry.part("reward", "correct")).worlds[0].reward.name == "correct"


def test_members_that_read_a_scorer_read_the_one_of_ones_own():
    config = RunConfig(task="mine.jsonl", model="org/model", lora_rank=8)
    found = of_task(league("dense"), config, reward=read_reward("prm:my/scorer"))
    under_way = Season(found, config, Path("out"))
    formulas = {member.name: str(under_way.recipe(member, found.worlds[0])) for member in found.members}
    assert not any(league("dense").scorer in formula for formula in formulas.values())
    assert [name for name, formula in formulas.items() if "my/scorer" not in formula] == ["grpo", "prime"]
    assert "correct() + prm_steps(model='prm:my/scorer', clip=0.5)" in formulas["clip"]
    # its own world is as it was
    assert "arithmetic" in str(league("dense").member("clip").reward)
    for other in (None, registry.part("reward", "correct")):
        with pytest.raises(RewardlabError, match="name yours, --reward prm:PATH"):
            of_task(league("dense"), config, reward=other)


def test_the_rates_of_a_pretrained_model_are_those_of_each_members_loss(tmp_path):
    adapted = RunConfig(task="mine.jsonl", model="org/model", lora_rank=8)
    found = of_task(league("preferences"), adapted)
    pairs = Season(found, adapted, tmp_path)
    assert pairs.rates(found.member("dpo"), found.worlds[0]) == (2e-6, 5e-6, 2e-5)
    assert pairs.rates(found.member("sft"), found.worlds[0]) == (3e-5, 1e-4, 3e-4)
    small = of_task(league("preferences"), RunConfig(task="mine.jsonl"))
    assert Season(small, RunConfig(task="mine.jsonl"), tmp_path).rates(small.member("dpo"), small.worlds[0]) == small.rates


def test_an_edited_file_is_not_answered_by_runs_of_the_one_before(tiny, tmp_path, monkeypatch):
    rows, model = tmp_path / "rows.jsonl", tmp_path / "model"
    model.mkdir()
    (model / "weights").write_text("1")
    world = replace(TINY.worlds[0], task=str(rows), model=f"hf:{model}")

    def key():
        known_runs._KEYS.clear()
        return known_runs.file_of(tiny.job(TINY.member("grpo"), world, 100)).parent.name

    rows.write_text('{"prompt": "a", "answer": "1"}')
    first = key()
    assert key() == first
    rows.write_text('{"prompt": "a", "answer": "22"}')
    second = key()
    assert second != first
    (model / "weights").write_text("22")
    assert key() not in (first, second)


def own(tmp_path, rows, name="length", members=("hapo",), model="hf:model", **config):
    """A season on a user's own rows."""
    file = tmp_path / "rows.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    config = RunConfig(task=str(file), model=model.replace("model", str(tmp_path / "model")), device="cpu", max_new=4, **config)
    found = of_task(only(league(name), list(members), []), config, steps=1, rates=(1e-4,), problems=2)
    return Season(found, config, tmp_path / "out", pairs=2, processes=1)


SUMS = [{"prompt": f"What is {i} + 1?", "answer": str(i + 1)} for i in range(30)]
PREFERRED = [{**row, "chosen": row["answer"], "rejected": "0"} for row in SUMS]


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("checkpoint") / "model"
    checkpoint(folder, tokenizer(), max_position_embeddings=512)
    return folder


@pytest.mark.slow
def test_a_run_of_other_settings_in_the_same_folder_is_not_resumed(model, tmp_path, own_cache, monkeypatch):
    (tmp_path / "model").symlink_to(model)
    first = own(tmp_path, SUMS)
    world = first.league.worlds[0]

    def updates(steps, rows=SUMS):
        later = own(tmp_path, rows)
        later = replace(later, league=replace(later.league, worlds=(replace(world, steps=steps),)))
        job = later.job(later.league.member("grpo"), later.league.worlds[0], 100, {"lr": 1e-4})
        assert job.keep
        return known_runs.run_known(job).numbers["updates"]

    assert updates(1) == 1
    assert updates(2) == 2
    # stopped before its end: it is resumed where nothing has changed, and not where something has
    with monkeypatch.context() as broken:
        broken.setattr(known_runs, "write_json", stopped)
        with pytest.raises(KeyboardInterrupt):
            updates(3)
    assert updates(4) == 4
    assert updates(3) == 3
    assert len({path.name for path in (tmp_path / "out" / "unfinished").iterdir()}) == 4


def stopped(*_):
    raise KeyboardInterrupt


@pytest.mark.parametrize(
    ("rows", "league_of", "says"),
    [
        ([], ("length", ["hapo"]), "holds no problems"),
        ([{"prompt": row["prompt"], "result": row["answer"]} for row in SUMS], ("length", ["hapo"]),
         "what decides, length of right replies, needs answers, .* no column 'answer' .*: result\\)\\. Name .* --answer-column, "
         "or name what judges replies with --verifier, such as --verifier mine.py:quality$"),
        (SUMS, ("preferences", ["ipo"]), "^dpo: .* no 'chosen'|^dpo needs 2 columns"),
        ([{k: v for k, v in row.items() if k != "answer"} for row in PREFERRED], ("preferences", ["ipo"]),
         "what decides, true quality of replies, needs answers"),
        ([{k: v for k, v in row.items() if k != "answer"} for row in PREFERRED], ("judges", ["from rewards alone", "s2j", "rm_r1"]),
         "^s2j pays .* add a column 'answer' .*; to leave it out: --members 'from rewards alone,rm_r1'$"),
        ([{**row, "prompt": row["prompt"] * 200} for row in SUMS], ("length", ["hapo"]), "^grpo: .* too long"),
    ],
)  # fmt: skip
def test_what_would_fail_every_run_is_said_before_the_first(rows, league_of, says, model, tmp_path):
    (tmp_path / "model").symlink_to(model)
    with pytest.raises(RewardlabError, match=says):
        check(own(tmp_path, rows, *league_of))
    assert not (tmp_path / "out").exists()


def test_all_members_that_rows_do_not_fit_are_named_at_once():
    found = only(league("length"), ["hapo", "laser", "pear"], [])
    (world, *_) = found.worlds
    members = found.members_of(world)

    def refuse(*names):
        def check(member):
            if member.name in names:
                raise RewardlabError(f"no column for {member.name}")

        return check

    each_fits(found, world, members, refuse())
    with pytest.raises(RewardlabError, match=r"^hapo: no .* hapo; to leave it out: --members laser,pear$"):
        each_fits(found, world, members, refuse("hapo"))
    with pytest.raises(RewardlabError, match=r"^hapo: no .*;\n  pear: no .*; to leave these out: --members laser$"):
        each_fits(found, world, members, refuse("hapo", "pear"))
    # without the baseline there is no league
    with pytest.raises(RewardlabError, match=r"^grpo: no column for grpo$"):
        each_fits(found, world, members, refuse("grpo", "pear"))


def test_a_model_that_is_not_there_is_said_before_the_first_run(tmp_path, capsys):
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in SUMS))
    rows, out = str(tmp_path / "rows.jsonl"), str(tmp_path / "o")
    for dry in (["--dry-run"], []):
        argv = ["league", "length", "--task", rows, "--model", "nosuch", *dry, "--out", out]
        assert cli.main(argv) == 2
        assert "unknown model 'nosuch'" in capsys.readouterr().err
        assert not (tmp_path / "o").exists()


@pytest.mark.parametrize(
    ("flags", "says"),
    [
        ("--task rows.jsonl --seeds 1", "--seeds 1: one seed has no spread, and decides nothing: give 2 at least"),
        ("--seeds 1", "--seeds 1: one seed has no spread, and decides nothing: give 2 at least"),
        ("--task rows.jsonl --worlds overthinking", "--worlds names the league's own, and with --task members meet on your"),
    ],
)
def test_what_decides_nothing_or_would_be_ignored_is_refused_at_once(flags, says, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for dry in (["--dry-run"], []):
        assert cli.main(["league", "length", *flags.split(), *dry]) == 2
        assert says in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_few_seeds_are_told_and_one_is_enough_where_problems_decide(tmp_path, monkeypatch):
    monkeypatch.setattr("rewardlab.comparisons.forecast.forecast", lambda season, record: [])
    rows = tmp_path / "rows.jsonl"
    rows.write_text("".join(json.dumps(row) + "\n" for row in SUMS))

    def season(seeds, model):
        words = ["length", "--task", str(rows), "--seeds", str(seeds), "--model", model]
        args = cli.parse(command, "league", words)
        return args, command.season_of(args, league("length"))[0]

    assert [command.planned(*season(seeds, "untrained"))["few"] for seeds in (2, 4, 5)] == [True, True, False]
    # recorded replies are compared problem by problem
    assert not command.planned(*season(1, "recorded"))["few"]


def test_a_dry_run_makes_no_small_policy_and_says_what_its_own_rows_lack(tmp_path, own_cache, monkeypatch, capsys):
    monkeypatch.setattr(embedded, "cached", lambda name, make: pytest.fail(f"{name} was made"))
    rows, out = tmp_path / "rows.jsonl", str(tmp_path / "o")
    rows.write_text("".join(json.dumps(row) + "\n" for row in SUMS))
    asked = ["league", "length", "--task", str(rows), "--members", "hapo", "--dry-run", "--device", "cpu", "--out", out]
    assert cli.main(asked) == 0
    said = capsys.readouterr()
    assert "2 members on 8 seeds" in said.out
    assert "the small policy is made at the first run" in said.err
    # prompts are measured by its tokenizer all the same
    rows.write_text("".join(json.dumps({**row, "prompt": row["prompt"] * 200}) + "\n" for row in SUMS))
    assert cli.main(asked) == 2
    assert "too long" in capsys.readouterr().err


def test_rows_that_a_guide_asks_for_pass_with_every_member(model, tmp_path):
    (tmp_path / "model").symlink_to(model)
    for name, rows in (("length", SUMS), ("objectives", SUMS), ("exploration", SUMS), ("search", SUMS), ("preferences", PREFERRED)):
        check(own(tmp_path, rows, name, ()))


def test_a_member_whose_rates_all_fail_says_why(tiny, monkeypatch):
    monkeypatch.setattr(played, "run_jobs", lambda what, jobs, processes: [Failed("RewardlabError: too few apples")] * len(jobs))
    with pytest.raises(RewardlabError, match="the baseline grpo fails: no rate could be chosen: too few apples"):
        played.play(tiny, TINY.worlds[0], 1.25)


def test_some_members_and_worlds():
    found = only(league("length"), ["hapo"], ["overthinking"])
    assert [member.name for member in found.members] == ["grpo", "hapo"]
    assert [world.name for world in found.worlds] == ["overthinking"]
    with pytest.raises(RewardlabError, match="did you mean hapo"):
        only(league("length"), ["hap"], [])
    with pytest.raises(RewardlabError, match="nothing is left to compare with grpo"):
        only(league("length"), ["grpo"], [])


def test_names_in_a_list_may_have_commas_of_their_own():
    known = ["few pairs, near ties", "taste", "few pairs"]
    assert command.names_of("taste, few pairs,near ties", known) == ["taste", "few pairs, near ties"]
    assert command.names_of("few pairs,taste", known) == ["few pairs", "taste"]
    assert command.names_of("tast", known) == ["tast"]
    assert command.names_of(None, known) == []


def test_a_league_may_be_run_world_by_world(tiny):
    rules = {**dict.fromkeys(league_records.RULES, 1), "baseline": "grpo"}
    (terms,) = (tiny.terms(world) for world in tiny.league.worlds)
    worlds = {"sums": terms, "notes": {**terms, "task": "notes"}}

    def record(when, *names, **changes):
        found = [{"name": name, "found": when, **worlds[name],
                  "rows": [{"member": m, "formula": f} for m, f in terms["formulas"].items()]} for name in names]  # fmt: skip
        return {**rules, "when": when, "worlds": found, **changes}

    first = league_records.completed(record("2026-01-01", "notes"), None, worlds)
    assert first["unrun"] == ["sums"]
    both = league_records.completed(record("2026-01-02", "sums"), first, worlds)
    assert [(world["name"], world["found"]) for world in both["worlds"]] == [("sums", "2026-01-02"), ("notes", "2026-01-01")]
    assert both["unrun"] == []
    # a setting that goes by another name since then is the same setting; of an unfit world the baseline alone was run
    now = {**worlds, "notes": {**worlds["notes"], "formulas": dict.fromkeys(terms["formulas"], "dpo_loss(inner=x)")}}
    before = {**worlds["notes"], "name": "notes", "rows": [{"member": m, "formula": "dpo_loss(of=x)"} for m in terms["formulas"]]}
    assert next(iter(terms["formulas"])) == "grpo"
    rivals = sorted(terms["formulas"].keys() - {"grpo"})
    for older, missing in ((before, []), ({**before, "rows": before["rows"][:1]}, rivals),
                           ({**before, "rows": before["rows"][:1], "fit": False}, [])):  # fmt: skip
        found = league_records.completed(record("2026-01-02", "sums"), {**first, "worlds": [older]}, now)
        assert found["unrun"] == []
        assert list(found["worlds"][-1].get("absent", {})) == missing
    # a world that is run again takes the place of its older run
    again = league_records.completed(record("2026-01-03", "notes"), both, worlds)
    assert [world["when"] for world in again["worlds"]] == ["2026-01-02", "2026-01-03"]
    # by other rules, in a world that is another one now, or by a baseline with another setting, nothing is comparable
    sums = record("2026-01-04", "sums")
    assert league_records.completed({**sums, "members": 2}, both, worlds)["unrun"] == ["notes"]
    for change in ({"task": "notes:flip=0.3"}, {"steps": 7}, {"budget": 9}, {"formulas": {**terms["formulas"], "grpo": "other"}}):
        assert league_records.completed(sums, both, {**worlds, "notes": {**worlds["notes"], **change}})["unrun"] == ["notes"]
    # who is defined otherwise by now is taken out, and the others stay
    other = {**worlds, "notes": {**worlds["notes"], "formulas": {**terms["formulas"], rivals[0]: "other"}}}
    (*_, notes) = league_records.completed(sums, both, other)["worlds"]
    assert [row["member"] for row in notes["rows"]] == [name for name in terms["formulas"] if name != rivals[0]]
    assert notes["absent"] == {rivals[0]: league_records.CHANGED}
    assert ran(again) == "Run 2026-01-02 to 2026-01-03."
    assert ran(first) == "Run 2026-01-01. Not run yet: sums."


def test_a_plan_says_what_the_runs_are_for_and_when_the_rest_is_known(capsys):
    world = {"world": "own", "runs": 8, "of": {"to choose rates": 6, "to compare": 2, "to vary a setting": 0}}
    document = {"members": ["grpo", "hapo"], "steps": {"own": 5}, "seeds": 1, "few": False, "margin": 0.05}
    command.show({**document, "plan": [{**world, "missing": 8, "seconds": None, "sees": None}]})
    said = capsys.readouterr().out
    assert said.startswith(
        "2 members on 1 seed: grpo, hapo\nown: 8 runs of 5 updates (6 to choose rates, 2 to compare), 8 to do; how"
    )
    assert "is told once the baseline has chosen its rate (0.05 would matter)" in said
    command.show({**document, "plan": [{**world, "missing": 2, "seconds": 75, "sees": {5: 0.1234}}]})
    said = capsys.readouterr().out
    assert "2 to do, about 0:01:15\n" in said
    assert "detected with 80% power: 0.123 with 5 seeds (0.05 would matter)" in said
    command.show({**document, "seeds": 2, "few": True, "plan": [{**world, "missing": 8, "seconds": None, "sees": None}]})
    assert "2 members on 2 seeds: grpo, hapo\n  warning: so few seeds decide only" in capsys.readouterr().out
    command.show({**document, "plan": [{**world, "missing": 0, "seconds": 0, "sees": None}]})
    assert capsys.readouterr().out == "own: 8 runs of 5 updates (6 to choose rates, 2 to compare), all done\n"


@pytest.mark.parametrize(
    ("ends", "rises", "apart", "says"),
    [
        (0.0, 0.0, 0.0, ["no reply is right"]),
        (0.05, 0.04, 0.1, ["take easier problems", "more --seeds"]),
        (0.95, 0.4, 0.1, ["take harder problems", "more --seeds"]),
        (0.5, 0.0, 0.1, ["give the baseline more", "more --seeds"]),
        (0.5, 0.4, 0.0, ["more --seeds"]),
        (0.5, 0.4, 0.1, []),
    ],
)
def test_problems_that_decide_nothing_come_with_what_to_try(ends, rises, apart, says):
    runs = {
        name: [{"pass@1": ends + by + wiggle * (ends > 0), "before.pass@1": ends - rises} for wiggle in (0.0, 0.001, 0.002)]
        for name, by in (("grpo", 0.0), ("hapo", apart))
    }
    conditions = fitness(runs["grpo"], "pass@1")
    fit = all(one["ok"] for one in conditions)
    own = {"name": OWN, "conditions": conditions, "fit": fit, "told_apart": told_apart(runs, TINY.outcome)}
    found = remedies(own)
    assert len(found) == len(says)
    assert all(told.startswith(start) for told, start in zip(found, says, strict=True))
    # the worlds of a league are fixed, and nothing about them can be tried
    assert remedies({**own, "name": "sums"}) == []


def test_a_family_lists_its_members_also_where_its_league_was_never_run(capsys, monkeypatch):
    for record in (league_records.read, lambda name: None):
        monkeypatch.setattr(league_records, "read", record)
        for name in leagues():
            assert cli.main(["list", "--family", name]) == 0
            said = capsys.readouterr().out
            found = league(name)
            assert f"against {found.baseline} (rewardlab show NAME)" in said
            assert all(re.search(rf"^  {member.name} +\S", said, re.MULTILINE) for member in found.members)
            assert f"rewardlab league {name} --task mine.jsonl" in said
    assert "has not been run here yet" in said


def test_a_folder_taken_for_a_league_and_a_league_for_a_folder(capsys):
    for argv, says in (
        (["list", "--family", "shaping"], "shaping is a folder of methods: rewardlab list --folder shaping"),
        (["league", "shaping"], "shaping is a folder of methods"),
        (["list", "--family", "lenght"], "did you mean length"),
    ):
        assert cli.main(argv) == 2
        assert says in capsys.readouterr().err


# ---- what is said of it -------------------------------------------------------------------------------------------------


def test_noise_of_a_world_is_that_of_differences_between_seeds():
    rows = [
        {"member": "grpo", "values": [0.5, 0.6, 0.5, 0.6]},
        {"member": "a", "values": [0.6, 0.6, 0.6, 0.6]},  # differences .1 0 .1 0: standard deviation .0577
        {"member": "b", "values": [0.5, 0.6, 0.5, 0.6]},  # none
    ]
    record = {"baseline": "grpo", "worlds": [{"name": "w", "rows": rows}]}
    assert noise_of(record, World("w", "arithmetic", "w")) == pytest.approx(math.sqrt(4 * 0.05**2 / 3))
    assert noise_of(record, World("other", "arithmetic", "w")) is None


@pytest.mark.parametrize("name", leagues())
def test_what_is_said_of_a_league_is_in_its_record(name):
    record = league_records.read(name)
    if record is None:
        pytest.skip(f"the league {name} has not been run yet")
    told = list(sentences(record))
    assert len(told) == len(record["worlds"])
    assert "{" not in advice(league(name), record)
    json.dumps(record, allow_nan=False)


def test_the_guide_and_the_pages_are_those_of_the_records():
    root = registry.PACKAGE.parents[1]
    for path, text in leagues_doc.documents(league_records.FOLDER).items():
        assert (root / path).read_text("utf-8") == text, f"{path} is old: make docs"


@pytest.mark.slow
def test_a_league_that_is_killed_resumes_after_the_runs_that_had_ended(tmp_path, own_cache):
    command = [
        sys.executable, "-m", "rewardlab", "league", "length", "--members", "hapo", "--task", "arithmetic", "--model", "untrained",
        "--seeds", "2", "--steps", "1", "--eval-problems", "4", "--rates", "1e-4,3e-4", "--jobs", "1", "--device", "cpu", "--json",
        "--out", str(tmp_path / "out"),
    ]  # fmt: skip
    kept = own_cache / "league-runs"
    first = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while not (ended := {path: path.stat().st_mtime_ns for path in kept.glob("*/*.json")}):
        assert first.poll() is None
        time.sleep(0.1)
    first.kill()
    first.wait()
    assert not (tmp_path / "out" / "league.json").exists()
    again = subprocess.run(command, capture_output=True, text=True, check=True)
    # a policy with random weights is never right: the baseline says that nothing can be decided
    assert [row["member"] for row in json.loads(again.stdout)["worlds"][0]["rows"]] == ["grpo"]
    assert all(path.stat().st_mtime_ns == when for path, when in ended.items())
    assert len(list(kept.glob("*/*.json"))) > len(ended)
