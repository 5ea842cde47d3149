"""An environment for any method: where it takes one itself it gets it, and else its replies become episodes."""

from __future__ import annotations

import pytest

from rewardlab import registry
from rewardlab.core import Task, ask
from rewardlab.envs.search import search
from rewardlab.errors import RewardlabError
from rewardlab.registry.playing import as_task

TOOL = '''
def add(a: int) -> int:
    """Add one.

    Args:
        a: a number
    """
    return a + 1
'''


@pytest.fixture
def files(tmp_path):
    (tmp_path / "mine.py").write_text(TOOL)
    (tmp_path / "docs.jsonl").write_text('{"text": "Emma was written by Jane Austen."}\n')
    return tmp_path


def test_independent_replies_become_episodes_and_wrappers_stay(files):
    recipe = registry.build("dapo", {"tools": f"{files}/mine.py:add", "turns": 3, "n": 5})
    alone = registry.build("dapo", {"n": 5})
    sampler = recipe.rollout.innermost
    assert (sampler.name, sampler.settings["n"], sampler.settings["turns"]) == ("interactive", 5, 3)
    assert sampler.settings["env"].settings["tools"] == (f"{files}/mine.py:add",)
    assert recipe.rollout.name == alone.rollout.name != "interactive"
    assert recipe.measure.name == "episode_accuracy"
    assert (recipe.objective, recipe.credit, recipe.reward) == (alone.objective, alone.credit, alone.reward)


def test_the_only_function_of_a_file_is_its_tool_by_any_way(files, monkeypatch):
    monkeypatch.chdir(files)
    env = registry.build("grpo", {"tools": "mine.py"}).rollout.innermost.settings["env"]
    assert env.settings["tools"] == (f"{files}/mine.py:add",)
    named = registry.build("grpo", {"env": "functions(tools=('mine.py',))"}).rollout.innermost.settings["env"]
    assert '"name": "add"' in named.start(ask("?"), 0)[0].tools
    (files / "none.py").write_text("x = 1\n")
    with pytest.raises(RewardlabError, match=r"none[.]py has no function to use as a tool; write one"):
        registry.build("grpo", {"tools": "none.py"})


def test_a_method_that_plays_gets_the_tools_as_its_environment(files):
    recipe = registry.build("igpo", {"tools": f"{files}/mine.py:add"})
    assert recipe.rollout.innermost.settings["env"].name == "functions"


def test_a_corpus_is_searched_by_any_method(files):
    env = registry.build("grpo", {"corpus": f"{files}/docs.jsonl"}).rollout.innermost.settings["env"]
    assert env.function is search.function
    assert env.settings["corpus"] == str(files / "docs.jsonl")


def test_an_environment_is_named_as_text(files):
    env = registry.build("grpo", {"env": "search(field='documents')"}).rollout.innermost.settings["env"]
    assert env == search(field="documents")


def test_a_recipe_in_an_environment_is_saved_and_loaded(files):
    recipe = registry.build("grpo", {"tools": f"{files}/mine.py:add"})
    assert registry.load_recipe(recipe.to_json()) == recipe


def tasked(environment, played=False):
    return Task("game", (), (), "final_answer", environment=environment, turns=9, played=played)


def test_a_task_brings_its_environment_to_methods_that_would_search():
    env, task = registry.part("environment", "try_again"), tasked("try_again")
    recipe = as_task(registry.build("igpo"), task)
    for part in (recipe.rollout, recipe.measure.settings["rollout"]):
        assert part.innermost.settings["env"] == env
    alone = as_task(registry.build("grpo"), task).rollout.innermost.settings
    assert (alone["env"], alone["turns"]) == (env, 9)
    # one that has another environment, or none, stays as it is
    for other in (registry.build("retool"), registry.build("dpo"), registry.build("igpo", {"env": "search(results=2)"})):
        assert as_task(other, task) == other
    assert as_task(registry.build("igpo"), tasked("search")) == registry.build("igpo")


def test_a_task_that_can_only_be_played_is_played_by_every_method_that_can():
    env, task = registry.part("environment", "try_again"), tasked("try_again", played=True)
    assert as_task(registry.build("retool"), task).rollout.innermost.settings["env"] == env
    with pytest.raises(RewardlabError, match="plays no environment"):
        as_task(registry.build("dpo"), task)


@pytest.mark.parametrize("method", ["grpo", "igpo", "majority_vote"])
@pytest.mark.parametrize(
    "setting", [{"tools": "mine.py:add"}, {"corpus": "docs.jsonl"}, {"env": "interpreter"}, {"tools": "mine.py:add", "turns": 2}]
)
def test_what_a_played_task_would_drop_is_refused(files, monkeypatch, method, setting):
    monkeypatch.chdir(files)
    recipe = registry.build(method, setting).but(name="mine")
    flag = next(iter(setting))
    with pytest.raises(RewardlabError, match=f"game brings its own environment.* leave out --{flag}, or give it with rows"):
        as_task(recipe, tasked("try_again", played=True))
    assert as_task(recipe, Task("rows", (), (), "final_answer")) == recipe


OWN = """
from rewardlab.core import Message, environment

@environment(start=lambda problem, seed: (None, 0))
def game(state, turn):
    return Message("user", "on"), state
"""


def test_the_tasks_turns_hold_where_it_is_played_in_ones_own_way(files):
    (files / "game.py").write_text(OWN)
    task = tasked("try_again", played=True)
    for env in (f"{files}/game.py:game", "try_again"):
        recipe = as_task(registry.build("grpo", {"env": env}), task)
        assert recipe.rollout.innermost.settings["turns"] == 9
        assert recipe.measure.settings["rollout"].settings["turns"] == 9
        assert as_task(registry.build("grpo", {"env": env, "turns": 3}), task).rollout.innermost.settings["turns"] == 3
    # a method of turns has its own
    turns = registry.build("igpo").rollout.innermost.settings["turns"]
    assert as_task(registry.build("igpo", {"env": env}), task).rollout.innermost.settings["turns"] == turns


@pytest.mark.parametrize(
    ("method", "settings", "says"),
    [
        ("grpo", {"tools": "mine.py:add", "corpus": "docs.jsonl"}, "both say"),
        ("grpo", {"turns": 3}, "there is no environment.*GoToLocal,turns=3"),
        ("dpo", {"env": "search"}, "only independent replies"),
        ("grpo", {"tools": "mine:add"}, "FILE.py:NAME"),
        ("grpo", {"env": "no_such_environment"}, "no_such_environment"),
    ],
)
def test_what_cannot_be_played_is_refused(files, monkeypatch, method, settings, says):
    monkeypatch.chdir(files)
    with pytest.raises(RewardlabError, match=says):
        registry.build(method, settings)
