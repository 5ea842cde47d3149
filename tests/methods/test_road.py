"""The road test: every method, on rows of its own template, with models of two families that the small policies do not come from.

One step of training, or one answer, through transformers; what it measures are numbers.
"""

from __future__ import annotations

import json
import math

import pytest

from rewardlab import registry
from rewardlab.api import answer, plan, train
from rewardlab.api.checking import check_columns
from rewardlab.errors import RewardlabError
from rewardlab.models.embedded import tokenizer
from rewardlab.settings.hyperparameters import hyperparameters
from tests.helpers.checkpoints import checkpoint
from tests.helpers.chromium import BROWSER, MISSING
from tests.helpers.seen import OF_TEMPLATES, looker
from tests.helpers.shrunk import shrunk
from tests.helpers.steps import BY_ROAD, ROAD, STATED
from tests.helpers.tiers import only

KINDS = {row["name"]: row["kind"] for row in registry.rows()}
LEARN_NOTHING = {"study", "benchmark", "analysis", "survey", "data"}
UNSTATED = tuple(name for name, kind in KINDS.items() if name not in STATED and kind not in LEARN_NOTHING)
SMALL = {
    "problems": 2, "minibatches": 1, "epochs": 1, "n": 2, "turns": 2, "choose": 2, "continuations": 2, "iterations": 2,
    "judgements": 2, "searches": 2, "width": 2, "depth": 2, "branch": 2, "rounds": 1,
}  # fmt: skip
"""Settings of many methods that say how much is sampled; values that a method does not allow are left out."""


@pytest.fixture(scope="module", params=["LlamaForCausalLM", pytest.param("Qwen2ForCausalLM", marks=pytest.mark.slow)])
def model(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("model")
    checkpoint(folder, tokenizer(), request.param, max_position_embeddings=2048)
    return f"hf:{folder}"


def small(name: str) -> dict:
    """Settings of a method that make one step short."""
    known = hyperparameters(registry.method(name)).keys() | {"problems", "minibatches", "epochs"}
    given = {key: value for key, value in SMALL.items() if key in known}
    for key in list(given):
        try:
            registry.build(name, given)
            break
        except RewardlabError:
            del given[key]
    return given | STATED[name].settings


@pytest.mark.parametrize("name", only(BY_ROAD, ROAD))
def test_a_method_runs_on_its_template_rows_with_any_model(name, model, tmp_path):
    data = STATED[name]
    # what shows pictures needs a model that sees
    model = looker(tmp_path / "model", size=OF_TEMPLATES) if "images" in data.required else model
    rows = tmp_path / "rows.jsonl"
    rows.write_text(data.jsonl())
    verifier = {"verifier": data.verified_by} if data.verified_by else {}
    task = registry.task(str(rows), **verifier)
    if data.verified_by == "web_page" and not BROWSER:
        pytest.skip(MISSING)
    recipe = shrunk(registry.build(name, small(name)))
    if recipe.study is not None:
        pytest.skip("a study has no model")
    if not recipe.learns:
        found = answer(recipe, model, task, problems=2, max_new=6, device="cpu")
        assert math.isfinite(found["accuracy"]["value"])
        return
    short = {"steps": 1, "eval_problems": 2, "max_new": 6, "device": "cpu", "patience": 0, "max_missing": 1.0}
    result = train(recipe, model, task, out=tmp_path / "run", **short)
    steps = [json.loads(line) for line in (result.out / "metrics.jsonl").read_text().splitlines()]
    assert result.summary["steps"] == steps[-1]["step"] == 1
    assert all(math.isfinite(x) for key, x in steps[-1].items() if "loss" in key or "grad_norm" in key or "reward" in key)


@pytest.mark.parametrize("name", ROAD)
def test_rows_that_lack_its_columns_are_refused_with_all_of_their_names(name, tmp_path):
    data = STATED[name]
    lacking = [column for column in data.required if column not in ("prompt", "answer")]
    if not lacking or not registry.build(name).learns:
        return
    rows = tmp_path / "rows.jsonl"
    rows.write_text("".join(json.dumps({"prompt": f"What is {i} + 1?", "answer": str(i + 1)}) + "\n" for i in range(4)))
    with pytest.raises(RewardlabError) as refused:
        plan(registry.build(name, data.settings), task=registry.task(str(rows)))
    assert all(f"{column}:" in str(refused.value) for column in lacking)


RENAMED = [
    (name, parameter.flag.removeprefix("--").replace("-", "_"), parameter.default)
    for name in ROAD
    for parameter in registry.parameters(name)
    if isinstance(parameter.default, str) and parameter.default in STATED[name].required and "text" in parameter.values
]
"""Settings by which a method reads another column in the place of one that its rows must have; a choice, as of a kind, is none."""
READ_TWICE = {("ultramedical", "field")}
"""Its own SFT alone reads another column then: DPO and the reward model read `chosen`."""


@pytest.mark.parametrize(("name", "setting", "column"), RENAMED, ids=[f"{name}-{setting}" for name, setting, _ in RENAMED])
def test_a_column_that_a_setting_renames_is_not_missed(name, setting, column, tmp_path):
    if (name, setting) in READ_TWICE:
        return
    rows = tmp_path / "rows.jsonl"
    renamed = [{"mine" if key == column else key: value for key, value in row.items()} for row in STATED[name].rows]
    rows.write_text("".join(json.dumps(row) + "\n" for row in renamed))
    verifier = {"verifier": STATED[name].verified_by} if STATED[name].verified_by else {}
    task = registry.task(str(rows), **verifier)
    check_columns(registry.build(name, {**STATED[name].settings, setting: "mine"}), task)
    with pytest.raises(RewardlabError, match=f"{column}:"):
        check_columns(registry.build(name, STATED[name].settings), task)


def test_every_method_states_the_rows_that_it_reads():
    assert UNSTATED == ()


@pytest.mark.parametrize("name", [name for name in ROAD if "answer" in STATED[name].required])
def test_rows_without_answers_are_refused_where_the_method_needs_them(name, tmp_path):
    recipe = registry.build(name, STATED[name].settings)
    if not recipe.learns or recipe.study is not None:
        return
    rows = tmp_path / "rows.jsonl"
    lacking = [{key: value for key, value in row.items() if key != "answer"} for row in STATED[name].rows]
    rows.write_text("".join(json.dumps(row) + "\n" for row in lacking * 3))
    with pytest.raises(RewardlabError, match="answer"):
        check_columns(recipe, registry.task(str(rows)))
