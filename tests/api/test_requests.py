"""Wrong requests in Python are refused before anything is loaded or written."""

import pytest

import rewardlab
from rewardlab import api, registry
from rewardlab.errors import RewardlabError
from rewardlab.registry.formula import read_reward
from rewardlab.runs.config import RunConfig


@pytest.mark.parametrize("name", ["task", "model", "out", "test", "prompt_column", "system"])
def test_an_empty_setting_is_refused_by_name(name):
    with pytest.raises(RewardlabError, match=f"{name} must be a .*not empty, not ''"):
        RunConfig(**{name: ""})


@pytest.mark.parametrize(
    "call",
    [
        lambda: api.evaluate(""), lambda: api.answer("majority_vote", prompt=""), lambda: api.resume(""),
        lambda: api.export("", "x"), lambda: api.export("x", ""), lambda: read_reward(""),
    ],
)  # fmt: skip
def test_an_empty_argument_is_refused(call):
    with pytest.raises(RewardlabError, match="not empty, not ''"):
        call()


@pytest.mark.parametrize("call", [rewardlab.train, api.plan])
@pytest.mark.parametrize(("recipe", "says"), [("best_of_n", "selects answers and trains nothing"), ("starc", "is a study")])
def test_what_trains_nothing_is_not_trained(call, recipe, says, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(RewardlabError, match=says):
        call(recipe, "untrained", "arithmetic")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["grpo", "bradley_terry", "prime", "dpo", "rl_tango"])
def test_a_method_that_trains_second_models_alone_learns_too(name):
    assert registry.build(name).learns
