"""The contract that every method keeps, whoever wrote it."""

from __future__ import annotations

import ast
import inspect
import json
import math
from collections.abc import Iterator
from dataclasses import fields, replace
from functools import cache
from pathlib import Path

import pytest
import torch

from rewardlab import registry
from rewardlab.api import answer, train
from rewardlab.api.inputs import begin_run
from rewardlab.core import Part, Recipe, Run, Task
from rewardlab.core.part import hyperparameters
from rewardlab.models.load import load_policy
from rewardlab.proof.claim import Claim
from rewardlab.registry.describe import YEAR, read_docstring
from rewardlab.rewards.reward import reward
from rewardlab.runs.config import RunConfig

METHODS = sorted(registry.methods())
CLAIM = [f.name for f in fields(Claim)]
SMALL = {"problems": 4, "minibatches": 1}


@reward
def share_of_letters(trajectory):
    """What replies of an untrained policy differ in."""
    return sum(c.isalpha() for c in trajectory.reply) / max(1, len(trajectory.reply))


@pytest.fixture(params=METHODS)
def name(request):
    return request.param


def parts_of(recipe: Recipe) -> Iterator[Part]:
    for part in recipe.parts().values():
        yield from part.walk()
    for learner in recipe.also:
        yield from parts_of(learner.recipe)


def small_recipe(name: str) -> Recipe:
    """The method with four problems a step; second models that come warmed up come untrained."""
    recipe = registry.build(name, SMALL)
    also = tuple(replace(x, init=x.init.replace("embedded:", "untrained:")) for x in recipe.also)
    return recipe.but(also=also)


@cache
def world(name: str) -> tuple[Task, object]:
    """The task of the method's claim, and a tiny policy with random weights of the kind it is played with."""
    claim = registry.module_of(name).claim
    task = registry.task(claim.task if claim else "arithmetic")
    task = replace(task, test=task.test[:8])
    return task, micro_policy(task)


_POLICIES: dict[str, object] = {}


def micro_policy(task: Task):
    """One policy for every task of the same text."""
    key = f"{task.model} {task.source}"
    if key not in _POLICIES:
        _POLICIES[key] = load_policy("untrained", task=task)
    return _POLICIES[key]


# ---- what is written -------------------------------------------------------------------------------------------------


def test_it_builds_prints_and_comes_back_from_json(name):
    recipe = registry.build(name)
    assert recipe.name == name
    assert all(str(part) in str(recipe) for part in recipe.parts().values())
    again = registry.load_recipe(json.loads(json.dumps(recipe.to_json())))
    assert again == recipe
    assert str(again) == str(recipe)


def test_it_is_a_function_of_its_base_with_settings_by_name_alone(name):
    first, *rest = inspect.signature(registry.method(name)).parameters.values()
    assert (first.name, first.default) == ("base", None)
    assert all(p.kind is p.KEYWORD_ONLY and p.default is not p.empty for p in rest)


def test_every_setting_reaches_the_recipe(name):
    """A setting that changes nothing is a promise that is not kept."""
    method, base = registry.method(name), registry.build(name)
    for key, default in hyperparameters(method).items():
        if isinstance(default, bool) or not isinstance(default, int | float):
            continue
        assert method(**{key: default + 1}) != base.but(name=method().name), f"{key} of {name} changes nothing"


def test_its_docstring_names_idea_and_source(name):
    said = read_docstring(registry.module_of(name).__doc__ or "")
    assert said["title"]
    assert said["idea"]
    assert "arXiv:" in said["reference"] or YEAR.search(said["reference"])


def test_its_claim_can_be_run(name):
    module = registry.module_of(name)
    assert hasattr(module, "claim"), f"{name} says neither claim = Claim(...) nor claim = None"
    claim = module.claim
    if claim is None:
        return
    assert isinstance(claim, Claim)
    assert claim.says
    assert claim.versus is None or claim.versus in METHODS
    assert registry.task(claim.task).name
    assert claim.direction in ("higher", "lower")
    assert math.isfinite(claim.margin)
    assert claim.margin >= 0


def test_its_claim_is_written_in_the_order_of_its_fields(name):
    tree = ast.parse(registry.file_of(name).read_text())
    calls = [n for n in ast.walk(tree) if isinstance(n, ast.Call) and getattr(n.func, "id", "") == "Claim"]
    for call in calls:
        written = [k.arg for k in call.keywords]
        assert not call.args
        assert written == [k for k in CLAIM if k in written]


# ---- what it does ----------------------------------------------------------------------------------------------------


def learns(recipe: Recipe) -> bool:
    return recipe.objective is not None or bool(recipe.also) or recipe.loop is not None


def test_it_trains_finite_steps_that_a_seed_repeats(name, tmp_path):
    recipe, (task, policy) = small_recipe(name), world(name)
    if not learns(recipe):
        pytest.skip("trains nothing")
    if recipe.reward is not None and task.model in ("embedded", "vision"):
        recipe = recipe.but(reward=recipe.reward + share_of_letters())
    first, before, after = two_steps(recipe, task, policy, tmp_path / "first")
    assert all(math.isfinite(v) for line in first for v in line.values() if v is not None)
    assert any("loss" in key for key in first[-1])
    assert any(not torch.equal(before[k], after[k]) for k in before)
    second, _, again = two_steps(recipe, task, policy, tmp_path / "second")
    assert second == first
    assert all(torch.equal(after[k], again[k]) for k in after)


def two_steps(recipe: Recipe, task: Task, policy, out: Path) -> tuple[list[dict], dict, dict]:
    """The lines of metrics without times, and the weights of every model before and after."""
    model = policy.copy("policy")
    done = train(recipe, model, task, steps=2, out=out, max_new=8, eval_every=0, eval_problems=4)
    lines = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
    timeless = [{k: v for k, v in line.items() if "seconds" not in k} for line in lines]
    assert [line["step"] for line in timeless] == [0, 1, 2]
    models = {"policy": done.run.policy, **done.run.models}
    after = {f"{n}.{k}": v.clone() for n, m in models.items() for k, v in m.state().items()}
    start = begin_run(recipe, policy.copy("policy"), task, RunConfig(max_new=8))
    before = {f"{n}.{k}": v for n, m in {"policy": start.policy, **start.models}.items() for k, v in m.state().items()}
    return timeless, before, after


def test_what_is_studied_is_finite_and_a_seed_repeats_it(name):
    recipe = registry.build(name)
    if recipe.study is None:
        pytest.skip("no study")
    first, second = (recipe.study(Run(None, seed=3)) for _ in range(2))
    assert first == second
    assert first
    assert all(math.isfinite(v) for v in first.values())


def test_what_selects_answers(name):
    recipe, (task, policy) = registry.build(name), world(name)
    if recipe.select is None:
        pytest.skip("selects nothing")
    found = [answer(recipe, policy, task, problems=3, max_new=8) for _ in range(2)]
    assert found[0] == found[1]
    assert found[0]["n"] == 3
    assert 0.0 <= found[0]["accuracy"]["value"] <= 1.0
    if task.model == "embedded":
        one = answer(recipe, policy, prompt="2+3=?", max_new=8)
        assert isinstance(one["answer"], str)
