"""Tests of engine/rates.py: which learning rate suits a model and a loss, and that whoever gives one is obeyed."""

from types import SimpleNamespace

import pytest
import torch

from rewardlab import api, registry
from rewardlab.core import Update
from rewardlab.engine import rates
from rewardlab.engine.rates import pretrained_rate, rate_of, told, with_rates
from rewardlab.errors import RewardlabError
from rewardlab.registry.details import details
from rewardlab.runs.named import read_config


def model(trained: int, frozen: int = 0) -> SimpleNamespace:
    """A model of so many weights, on no device: nothing is stored."""
    weights = [torch.nn.Parameter(torch.empty(trained, device="meta"))]
    weights += [torch.nn.Parameter(torch.empty(frozen, device="meta"), requires_grad=False)] if frozen else []
    return SimpleNamespace(parameters=lambda: weights)


SMALL, PRETRAINED, ADAPTED = model(1_000_000), model(135_000_000), model(2_000_000, frozen=135_000_000)


@pytest.mark.parametrize(
    ("method", "small", "whole", "adapters"),
    [
        ("grpo", 3e-4, 1e-6, 1e-5),
        ("sft", 1e-3, 1e-5, 1e-4),
        ("dpo", 1e-4, 5e-7, 5e-6),
        ("rejection_sampling", 3e-4, 1e-5, 1e-4),
    ],
)
def test_the_rate_follows_the_model_and_the_kind_of_loss(method, small, whole, adapters):
    """A small policy learns at the rates of this package; a pretrained one at those of released scripts."""
    update = registry.build(method).update
    assert [rate_of(update, m) for m in (SMALL, PRETRAINED, ADAPTED)] == [small, whole, adapters]


@pytest.mark.parametrize("learner", [SMALL, PRETRAINED, ADAPTED])
def test_a_rate_that_is_given_wins(learner):
    assert rate_of(registry.build("dpo", {"lr": 2e-5}).update, learner) == 2e-5
    assert rate_of(registry.build("ppo", {"value_lr": 3e-5}).also[0].recipe.update, learner) == 3e-5


def test_second_learners_follow_their_own_models():
    """PPO's critic of a pretrained policy learns at 1e-5; a small model beside it at the rate of small ones."""
    recipe = registry.build("ppo")
    for critic, expected in ((PRETRAINED, 1e-5), (SMALL, 1e-3)):
        made = with_rates(recipe, SimpleNamespace(policy=PRETRAINED, models={"critic": critic}))
        assert (made.update.lr, made.also[0].recipe.update.lr) == (1e-6, expected)


def test_no_method_destroys_a_pretrained_model_unless_it_is_told_to():
    """No method's rate for all weights of a pretrained policy is above 1e-4, nor that of a copy or value head of it."""
    # ipl and barfi learn control worlds alone; deeplatent's assistant begins from random weights, whatever the policy is
    built = {}
    for name in registry.methods():
        try:
            built[name] = registry.build(name)
        except RewardlabError:
            continue
    policies = {name: pretrained_rate(r.update) for name, r in built.items() if registry.file_of(name).parent.name != "control"}
    beside = {
        (name, x.name): pretrained_rate(x.recipe.update)
        for name, r in built.items() for x in r.also if x.init.startswith(("copy:policy", "value-head")) and name in policies
    }  # fmt: skip
    assert len(policies) > 150
    assert len(beside) > 20
    assert {name: rate for name, rate in {**policies, **beside}.items() if rate > 1e-4} == {}


def test_what_is_told_names_the_rate_and_its_origin():
    ppo = registry.build("ppo")
    assert told(ppo, PRETRAINED, {}) == {
        "policy": "lr 1e-06: pretrained, all weights; --lr sets it", "critic": "lr 1e-05: pretrained, all weights",
    }  # fmt: skip
    assert told(registry.build("grpo", {"lr": 1e-4}), ADAPTED, {}) == {"policy": "lr 0.0001: as the recipe says"}
    assert told(registry.build("grpo"), ADAPTED, {})["policy"] == "lr 1e-05: pretrained, adapters; --lr sets it"
    assert told(registry.build("best_of_n"), SMALL, {}) == {}


def test_the_rate_of_steps_that_imitate_is_told():
    imitates = told(registry.build("trained_judge", {"distil": 20}), PRETRAINED, {})["policy"]
    assert imitates == "lr 1e-06: pretrained, all weights; --lr sets it; steps that imitate take 5e-06"
    assert "imitate" not in told(registry.build("trained_judge", {"distil": 0}), PRETRAINED, {})["policy"]


@pytest.mark.parametrize("name", sorted(registry.methods()))
def test_the_rate_of_every_method_can_be_told(name):
    recipe = registry.build(name)
    words = told(recipe, PRETRAINED, {}).get("policy", "")
    assert words.startswith("lr ") == (recipe.objective is not None)
    # a method that lets its user set the rate of imitation says what it is
    assert "imitate" in words or "--sft-lr-scale" not in {p.flag for p in registry.parameters(name)}


def test_a_recipe_saved_without_kinds_loads_with_the_rate_it_had():
    """Recipes of older versions say a number and no kind of loss."""
    saved = registry.build("sft", {"lr": 1e-3}).to_json()
    for new in ("loss_kind", "small_lr"):
        saved["update"].pop(new)
    assert rate_of(registry.load_recipe(saved).update, PRETRAINED) == 1e-3


def test_an_unknown_rate_is_no_number():
    with pytest.raises(RewardlabError, match="learning rate is not known"):
        _ = Update().rate


def test_a_run_learns_at_the_rate_of_its_model_and_keeps_it(tmp_path, monkeypatch, capsys):
    """A model above the limit is pretrained: the run's metrics and its saved recipe have 1e-6, and its first lines say so."""
    monkeypatch.setattr(rates, "SMALL", 1)
    config = {"steps": 1, "eval_every": 0, "eval_problems": 1, "max_new": 4, "device": "cpu"}
    plan = api.plan("grpo", "untrained", "arithmetic", settings={"n": 2, "problems": 1}, **config)
    assert plan["learning_rates"] == {"policy": "lr 1e-06: pretrained, all weights; --lr sets it"}
    done = api.train("ppo", "untrained", "arithmetic", settings={"problems": 2}, out=tmp_path / "run", **config)
    lines = (done.out / "metrics.jsonl").read_text()
    assert '"lr": 1e-06' in lines
    assert '"critic/lr": 1e-05' in lines
    saved = registry.load_recipe(read_config(done.out)["recipe"])
    assert (saved.update.lr, saved.also[0].recipe.update.lr) == (1e-6, 1e-5)
    assert "policy: lr 1e-06: pretrained, all weights" in "".join(capsys.readouterr())


def test_show_says_that_the_rate_follows_the_model():
    """`rewardlab show dpo`: no number where there is none yet."""
    assert details("dpo")["changes"]["lr"] == [
        "what suits the model, for imitation",
        "what suits the model, for preference",
    ]
