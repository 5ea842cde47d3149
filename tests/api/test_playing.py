"""A model that is measured, trained and answers in an environment: that which is named, the run's own, or the task's."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

import rewardlab
from rewardlab import registry
from rewardlab.api import export_environment, search
from rewardlab.api.inputs import in_environment
from rewardlab.api.search_arms import arms as arms_of_search
from rewardlab.commands import cli
from rewardlab.comparisons.arms import arms_of
from rewardlab.core import Task, ask
from rewardlab.errors import RewardlabError
from rewardlab.evals.passk import coverage
from rewardlab.registry.formula import read_reward
from rewardlab.tasks.sources import Listed

GAME = '''
from pathlib import Path

from rewardlab.core import Message, environment

COUNTED = Path(__file__).with_name("counted")

@environment(start=lambda problem, seed, **_: (Message("user", "Say anything."), 0))
def game(state, turn, *, upto=2):
    """Ends after so many replies."""
    with COUNTED.open("a") as file:
        file.write("x")
    at = state + 1
    return Message("user", "Once more.", last=at == upto), at
'''
SHORT = {"steps": 1, "eval_problems": 2, "max_new": 4, "device": "cpu", "track": ()}


@pytest.fixture
def game(tmp_path):
    (tmp_path / "game.py").write_text(GAME)
    return f"{tmp_path}/game.py:game"


@pytest.fixture
def played(tmp_path):
    """How often the game was asked since the last time."""

    def since() -> int:
        file = tmp_path / "counted"
        times = len(file.read_text()) if file.exists() else 0
        file.write_text("")
        return times

    return since


@pytest.fixture
def task():
    problems = [ask(f"{i} + 1 = ?", str(i + 1)) for i in range(4)]
    return Task("sums", Listed(problems), problems[:2], "final_answer", max_new=4)


def test_a_run_in_an_environment_is_measured_there_too(game, played, tmp_path):
    (rows := tmp_path / "rows.jsonl").write_text("".join(json.dumps({"prompt": f"{i}?", "answer": "1"}) + "\n" for i in range(8)))
    recipe = registry.build("grpo", {"env": game, "turns": 3, "n": 2, "problems": 2})
    result = rewardlab.train(recipe, "untrained", str(rows), out=tmp_path / "run", **SHORT)
    assert result.summary["after"]["turns"] == 2.0
    line = json.loads((tmp_path / "run" / "metrics.jsonl").read_text().splitlines()[-1])
    assert line["turns"] == 2.0
    assert played() > 0
    found = rewardlab.evaluate(str(result.out), k=(1,), problems=1, device="cpu")
    assert found["n"] == 1
    assert played() == 2


def test_a_run_bears_an_environment_that_goes_to_another_folder(task, tmp_path, monkeypatch):
    """As a tool may: the run's own files, given by a relative path, are written where they were begun."""
    monkeypatch.chdir(tmp_path)
    wanders = GAME.replace("    at = state + 1\n", "    at = state + 1\n    import os\n    os.chdir('/')\n")
    (tmp_path / "wanders.py").write_text(wanders)
    recipe = registry.build("grpo", {"env": "wanders.py:game", "turns": 2, "n": 2, "problems": 2})
    result = rewardlab.train(recipe, "untrained", task, out="run", **SHORT)
    assert Path.cwd() == tmp_path
    assert {"summary.json", "report.html", "rollouts", "model"} <= {path.name for path in (tmp_path / "run").iterdir()}
    rewardlab.resume(result.out, task, steps=2)
    assert json.loads((tmp_path / "run" / "summary.json").read_text())["steps"] == 2
    assert not (tmp_path / "run" / ".lock").exists()


def test_a_run_is_measured_in_its_own_environment_for_other_turns(game, played, tmp_path, capsys):
    (rows := tmp_path / "rows.jsonl").write_text("".join(json.dumps({"prompt": f"{i}?", "answer": "1"}) + "\n" for i in range(8)))
    recipe = registry.build("grpo", {"env": game, "turns": 2, "n": 2, "problems": 2})
    result = rewardlab.train(recipe, "untrained", str(rows), out=tmp_path / "run", **SHORT)
    played()
    asked = ["--task", str(rows), "--turns", "1", "--k", "1", "--problems", "1", "--device", "cpu", "--json"]
    assert cli.main(["eval", str(result.out), *asked]) == 0
    assert json.loads(capsys.readouterr().out)["turns"] == 1.0
    assert cli.main(["eval", "untrained", *asked]) == 2
    assert "there is no environment: give --env, --tools" in capsys.readouterr().err


def test_a_task_that_brings_its_environment_is_measured_and_exported_in_no_other(game, tmp_path):
    task = Task("game", [ask("1?")], [ask("?")], "earned", environment="try_again", turns=3, played=True)
    env = registry.part("environment", "search", corpus="docs.jsonl")
    refused = {
        "game brings its own environment.* leave out --corpus": lambda: rewardlab.evaluate(
            "untrained", task, device="cpu", env=env
        ),
        "game brings its own environment": lambda: export_environment(task, tmp_path / "out", env=env),
        "says them in its name": lambda: rewardlab.evaluate("untrained", task, device="cpu", turns=5),
    }
    for says, call in refused.items():
        with pytest.raises(RewardlabError, match=says):
            call()


@pytest.mark.parametrize(
    "command",
    [["train", "grpo"], ["answer", "majority_vote"], ["search", "best_of_n"], ["compare", "grpo", "otc_po"], ["eval"], ["league"]],
)
def test_every_command_refuses_what_a_game_would_drop(command, capsys):
    pytest.importorskip("minigrid")
    of = {"eval": ["eval", "untrained"], "league": ["league", "agents", "--members", "spear", "--model", "untrained"]}
    asked = of.get(command[0], [*command, "--model", "untrained"])
    asked += ["--dry-run"] if command[0] in ("train", "compare", "league") else []
    assert cli.main([*asked, "--task", "babyai:GoToLocal,turns=3", "--env", "interpreter", "--device", "cpu"]) == 2
    assert "babyai_GoToLocal brings its own environment, babyai_level" in capsys.readouterr().err


def test_all_methods_of_a_comparison_are_answered_by_the_same(game):
    """Else one would learn from episodes, and the other from single replies."""
    ready = registry.build("rloo").but(name="ready")
    for arm in arms_of(["grpo", "otc_po", "best_of_n", ready], {"env": game, "turns": 3}):
        settings = arm.recipe.rollout.innermost.settings
        assert (settings["turns"], settings["env"].settings["function"]) == (3, "game"), arm.name
        assert arm.recipe.measure is None or "game" in str(arm.recipe.measure), arm.name
    with pytest.raises(RewardlabError, match="beam_search samples by beams, and only independent replies become episodes"):
        arms_of(["grpo", "beam_search"], {"env": game})
    with pytest.raises(RewardlabError, match="ready plays an environment already: make the recipe with"):
        arms_of([registry.build("igpo").but(name="ready"), "grpo"], {"env": game})
    with pytest.raises(RewardlabError, match=r"grpo has no turns of its own: .* --igpo.turns 3\."):
        arms_of(["grpo", "igpo"], {"turns": 3})
    # those that have turns take them
    assert [arm.recipe.rollout.innermost.settings["turns"] for arm in arms_of(["otc_po", "igpo"], {"turns": 3})] == [3, 3]
    few, more = arms_of(["grpo"], {"env": game, "turns": [2, 4]})
    assert (few.name, more.recipe.rollout.innermost.settings["turns"]) == ("grpo:turns=2", 4)


def test_what_is_measured_is_what_is_trained(game):
    """A method whose measure samples single replies itself is measured in episodes, by as many as it says."""
    of_kinds, of_eight = registry.build("beamperl"), registry.build("grpo").but(name="eight", measure=coverage(n=8, k=6))
    assert of_kinds.measure.name == "accuracy_by_kind"
    for arm in arms_of([of_eight, "beamperl"], {"env": game, "turns": 3}):
        (plays,) = [part for part in arm.recipe.measure.walk() if part.name == "interactive"]
        assert plays.settings["turns"] == 3
    first, _ = arms_of([of_eight, "beamperl"], {"env": game})
    assert (first.recipe.measure.name, first.recipe.measure.settings["k"]) == ("episode_curve", 6)


def test_a_comparison_plays_a_game_for_as_many_turns_as_it_has(game):
    """Also in runs, which get recipes as JSON."""
    task = Task(
        "game", Listed([ask("1?", "1")] * 4), [ask("?", "1")], "final_answer", environment="try_again", turns=9, played=True
    )
    for recipe in (registry.build("grpo", {"env": game}), registry.build("grpo")):
        again = registry.load_recipe(json.loads(json.dumps(in_environment(recipe, task).to_json())))
        assert in_environment(again, task).rollout.innermost.settings["turns"] == 9


def test_recipes_and_names_are_searched_alike(game):
    found = arms_of_search([registry.build("best_of_n").but(name="mine"), "majority_vote"], {"env": game, "turns": 4}, None, False)
    assert [arm.recipe.rollout.innermost.settings["turns"] for arm in found] == [4, 4]


def test_a_search_plays_episodes_and_answers_by_their_last_replies(game, played, task, tmp_path):
    settings = {"model": "untrained", "max_new": 4, "device": "cpu", "problems": 2, "out": tmp_path / "answers.jsonl"}
    found = search(["best_of_n", "majority_vote"], task, settings={"env": game, "turns": 5, "n": 3}, **settings)
    assert [cell["replies"] for cell in found["results"]] == [3, 3]
    # of two methods, for two problems: three episodes of two replies each
    assert played() == 2 * 2 * 3 * 2
    own = replace(task, environment="try_again", turns=3)
    assert search("best_of_n", own, settings={"n": 2}, model="untrained", max_new=4, device="cpu", problems=1)["n"] == 1
    with pytest.raises(RewardlabError, match="beam_search samples by"):
        search("beam_search", task, settings={"env": game}, model="untrained")


def test_any_model_is_measured_in_an_environment_that_is_named(game, played, task):
    env = registry.build("grpo", {"env": game}).rollout.innermost.settings["env"]
    found = rewardlab.evaluate("untrained", task, k=(1, 2), problems=2, device="cpu", env=env, turns=5)
    assert set(found) >= {"pass@1", "pass@2"}
    # two problems, two episodes of two replies each
    assert played() == 8


def test_an_episode_tells_how_many_of_its_replies_were_cut_off(game, task, tmp_path, capsys):
    recipe = registry.build("grpo", {"env": game, "n": 2, "problems": 2})
    result = rewardlab.train(recipe, "untrained", task, out=tmp_path / "run", **SHORT | {"max_new": 1})
    line = json.loads((result.out / "metrics.jsonl").read_text().splitlines()[-1])
    # the game ends each episode, and says nothing of why its replies ended
    assert line["turns_cut_off"] > 0.8
    assert (line["out_of_turns"], line["out_of_context"]) == (0.0, 0.0)
    short = registry.build("grpo", {"env": game, "n": 2, "problems": 2, "turns": 1})
    result = rewardlab.train(short, "untrained", task, out=tmp_path / "short", **SHORT)
    assert json.loads((result.out / "metrics.jsonl").read_text().splitlines()[-1])["out_of_turns"] == 1.0
    found = rewardlab.evaluate("untrained", task, k=(2,), device="cpu", max_new=1, env=recipe.rollout.innermost.settings["env"])
    assert found["turns"] == 2.0
    assert found["cut_off"] > 0.8
    chosen = registry.build("majority_vote", {"env": game, "n": 3})
    answered = rewardlab.answer(chosen, "untrained", task, device="cpu", max_new=1)
    assert answered["turns"] == 2.0
    assert answered["cut_off"] > 0.8


@pytest.mark.parametrize(
    ("reward", "told"),
    [("", True), ("correct() + paid()", False), ("paid()", False), ("earned()", False), ("correct() + length_penalty()", True)],
)
def test_an_environment_that_pays_in_vain_is_told(reward, told, game, task, tmp_path, capsys):
    paying = tmp_path / "paying.py"
    paying.write_text(GAME.replace("last=at == upto)", "last=at == upto, reward=0.25)"))
    recipe = registry.build("grpo", {"env": f"{paying}:game", "n": 2, "problems": 2})
    recipe = recipe.but(reward=read_reward(reward)) if reward else recipe
    rewardlab.train(recipe, "untrained", task, out=tmp_path / "run", **SHORT)
    said = " ".join(capsys.readouterr().err.split())
    unread = f"the environment pays 0.5 in an episode of step 1, and the reward {reward or 'correct()'} does not look at that"
    assert (unread in said) is told


def test_rows_without_answers_may_be_judged_by_what_an_environment_pays(game, tmp_path, capsys):
    """An environment that pays for a win, and rows that say nothing but what is played."""
    paying, rows = tmp_path / "paying.py", tmp_path / "rows.jsonl"
    paying.write_text(GAME.replace("last=at == upto)", "last=at == upto, reward=0.5)"))
    rows.write_text("".join(json.dumps({"prompt": f"Game {i}."}) + "\n" for i in range(4)))
    with pytest.raises(RewardlabError, match=r"the reward correct\(\) needs answers.* the environment pays .*--verifier earned"):
        rewardlab.train("grpo", "untrained", rows, settings={"env": f"{paying}:game"}, out=tmp_path / "run", **SHORT)
    asked = ["eval", "untrained", "--test", str(rows), "--env", str(paying), "--max-new", "1", "--problems", "2", "--device", "cpu"]
    assert cli.main(asked) == 2
    assert "pass@k needs answers" in (said := " ".join(capsys.readouterr().err.split()))
    assert "--verifier earned" in said
    assert cli.main([*asked, "--verifier", "earned", "--k", "2", "--json"]) in (0, None)
    assert json.loads(capsys.readouterr().out)["pass@2"]["value"] == 1.0


@pytest.mark.parametrize("how", [str, Path])
def test_an_environment_is_named_in_python_as_on_the_command_line(how, game, played, task, tmp_path):
    env = how(game.removesuffix(":game"))
    rewardlab.evaluate("untrained", task, k=(1,), problems=1, device="cpu", max_new=4, env=env, turns=3)
    assert played() == 2
    assert export_environment(task, tmp_path / "package", env=env)["environment"].startswith("from_file(")
    with pytest.raises(RewardlabError, match="env must be an environment"):
        rewardlab.evaluate("untrained", task, env=7)


def test_a_selection_plays_too(game, played, task):
    rewardlab.answer(registry.build("majority_vote", {"env": game, "n": 3}), "untrained", task, problems=1, device="cpu", max_new=4)
    assert played() == 6


def test_the_command_line_says_what_clashes(game, tmp_path, capsys):
    (rows := tmp_path / "rows.jsonl").write_text('{"prompt": "1?", "answer": "1"}\n')
    assert cli.main(["eval", "untrained", "--task", str(rows), "--env", game, "--corpus", str(rows)]) == 2
    assert "give one of them" in capsys.readouterr().err
