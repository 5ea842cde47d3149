"""Recipes: printed, saved, changed and stacked."""

from __future__ import annotations

import json
from dataclasses import fields

import pytest

from rewardlab import registry
from rewardlab.core import Learner, Part, Recipe, Update
from rewardlab.core.part import decorator
from rewardlab.credit.group import center, leave_one_out, scale_by_std, subtract_mean_of_others, whiten
from rewardlab.credit.value import gae, to_go
from rewardlab.errors import RewardlabError
from rewardlab.methods.baselines.grpo import grpo
from rewardlab.methods.baselines.ppo import ppo
from rewardlab.methods.baselines.sft import sft
from rewardlab.methods.judges.rl_tango import with_max_new
from rewardlab.objectives.ratio import clipped_ratio, imitate, policy_gradient
from rewardlab.objectives.regularise import kl_to_reference, negative_entropy
from rewardlab.registry.stack import stack
from rewardlab.rewards.reward import reward
from rewardlab.rewards.task import correct
from rewardlab.rollouts.best import best
from rewardlab.rollouts.filtered import solved_between
from rewardlab.rollouts.independent import independent
from rewardlab.rollouts.vote import majority


@reward
def brief(trajectory, *, words=10):
    return float(len(trajectory.reply.split()) <= words)


@decorator(Part)
def harder(groups, scores, run, *, by=2):
    return [group[0].problem for group in groups]


def round_trip(recipe: Recipe) -> Recipe:
    return registry.load_recipe(json.loads(json.dumps(recipe.to_json())))


def with_learners() -> Recipe:
    critic = Recipe(credit=gae(lam=0.9), objective=clipped_ratio() + 0.1 * negative_entropy(), update=Update(lr=1e-2))
    opponent = Learner("opponent", "copy:policy", critic, problems=harder(by=3), every=4)
    return ppo().but(also=(*ppo().also, opponent))


RECIPES = {
    **{name: registry.build(name) for name in ("sft", "grpo", "rloo", "ppo", "dpo", "bradley_terry", "best_of_n", "majority_vote")},
    "grpo with a reference": grpo(beta=0.04),
    "a sum of rewards": grpo().but(reward=correct() >> (correct().named("again") + 0.2 * brief(words=5)) * brief()),
    "a longer chain": grpo().but(credit=center() >> scale_by_std(eps=0.1) >> to_go(gamma=0.9) >> whiten()),
    "learners": with_learners(),
    "nothing": Recipe(),
}


@pytest.mark.parametrize("recipe", RECIPES.values(), ids=RECIPES)
def test_a_recipe_comes_back_from_json(recipe):
    again = round_trip(recipe)
    assert again == recipe
    assert str(again) == str(recipe)
    assert again.needs == recipe.needs


def test_it_prints_slot_by_slot():
    assert str(grpo(n=4, beta=0.04).but(lr=0.01, measure=None)).splitlines() == [
        "rollout    independent(n=4)",
        "reward     correct()",
        "credit     center() >> scale_by_std() >> to_go()",
        "objective  clipped_ratio() + 0.04 * kl_to_reference()",
        "weighting  row_mean()",
        "update     Update(lr=0.01)",
    ]


def test_it_prints_its_learners():
    text = str(with_learners())
    assert "also       critic from 'value-head', every 1:\n  credit     less_kl() >> lambda_return()" in text
    assert "also       opponent from 'copy:policy', every 4, on harder(by=3):\n  credit     gae(lam=0.9)" in text


def test_but_changes_slots_and_names_fields_of_the_update_directly():
    base = grpo()
    changed = base.but(objective=imitate(), lr=0.5, epochs=3)
    assert (changed.objective, changed.update) == (imitate(), Update(lr=0.5, epochs=3))
    assert changed.rollout == base.rollout
    assert base.update == Update()
    assert base.but(update=Update(warmup=5), lr=0.5).update == Update(warmup=5, lr=0.5)
    assert base.but(weighting=None).weighting is None


@pytest.mark.parametrize(("wrong", "near"), [("objektive", "objective"), ("minibatch", "minibatches"), ("rewards", "reward")])
def test_an_unknown_slot_is_refused_with_the_nearest_name(wrong, near):
    with pytest.raises(RewardlabError, match=f"unknown slot '{wrong}'; did you mean .*{near}"):
        grpo().but(**{wrong: 1})


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"reward": brief}, r"the reward is a part that was not called: write brief\(\.\.\.\)"),
        ({"reward": 3}, "3 cannot be the reward: it is not a part but int"),
        ({"credit": imitate()}, r"imitate\(\) cannot be the credit: it is a part of the slot objective"),
        ({"objective": lambda out, batch, run: 0}, "cannot be the objective: it is not a part but function"),
        ({"also": (Learner("a", "x", Recipe()), Learner("a", "y", Recipe()))}, "two learners are named a"),
    ],
)
def test_what_is_no_part_of_the_slot_is_refused_at_once(changes, message):
    with pytest.raises(RewardlabError, match=message):
        grpo().but(**changes)


def test_a_weighted_reward_is_a_reward():
    assert str(grpo().but(reward=0.5 * brief()).reward) == "0.5 * brief()"


def test_no_field_of_the_update_is_a_slot():
    assert not {f.name for f in fields(Update)} & {f.name for f in fields(Recipe)}


def test_needs_come_from_all_parts_and_learners():
    assert set(grpo().needs) == {"old"}
    assert set(grpo(beta=0.1).needs) == {"old", "ref"}
    assert set(ppo().needs) == {"old", "ref", "value"}
    assert set(ppo(beta=0.0).needs) == {"old", "value"}
    assert sft().needs == ()
    only = Recipe(also=(Learner("critic", "value-head", Recipe(objective=kl_to_reference())),))
    assert only.needs == ("ref",)


def test_sampling_settings_are_those_below_the_wrappers():
    assert registry.build("dapo", {"n": 6}).rows_per_problem == 6
    assert registry.build("step_dpo").sampling_settings == registry.build("dpo").sampling_settings
    sampling = Recipe(rollout=solved_between(inner=solved_between(inner=independent(n=3, temperature=0.5)))).sampling_settings
    assert (sampling["n"], sampling["temperature"]) == (3, 0.5)
    longer = Recipe(rollout=with_max_new(rollout=independent(n=5), max_new=9))
    assert (longer.rows_per_problem, longer.sampling_settings["n"]) == (5, 5)
    assert (sft().rows_per_problem, Recipe().rows_per_problem) == (1, 1)


# ---- stacks ----------------------------------------------------------------------------------------------------------


def one_out(base=None):
    return (base or grpo()).but(credit=leave_one_out() >> to_go())


def discounting(base=None, *, gamma=0.9):
    return (base or grpo()).but(credit=center() >> to_go(gamma=gamma))


def whitened(base=None):
    base = base or grpo()
    return base.but(credit=base.credit >> whiten())


def brief_too(base=None, *, weight=0.5):
    base = base or grpo()
    return base.but(reward=base.reward + weight * brief())


def spread(base=None):
    base = base or grpo()
    return base.but(objective=base.objective + 0.01 * negative_entropy())


def plain_gradient(base=None):
    return (base or grpo()).but(objective=policy_gradient())


def choosing(base=None):
    return (base or grpo()).but(select=best())


def voting(base=None):
    return (base or grpo()).but(select=majority())


def without_weights(base=None):
    return (base or grpo()).but(weighting=None)


def stacked(*methods) -> Recipe:
    return stack([(m.__name__, m, {}) for m in methods])


@pytest.mark.parametrize(
    ("methods", "message"),
    [
        (
            (grpo, one_out, discounting),
            "one_out and discounting cannot be stacked: discounting replaces the credit",
        ),
        ((grpo, spread, plain_gradient), "spread and plain_gradient cannot be stacked: plain_gradient replaces the objective"),
        ((grpo, whitened, whitened, one_out), "whitened and one_out cannot be stacked: one_out replaces the credit"),
        ((grpo, choosing, voting), "choosing and voting cannot be stacked: voting replaces the select"),
        (
            (grpo, brief_too, one_out, plain_gradient, discounting),
            "one_out and discounting cannot be stacked: discounting replaces the credit",
        ),
    ],
)
def test_two_methods_that_replace_one_slot_are_refused_by_name(methods, message):
    with pytest.raises(RewardlabError, match=message):
        stacked(*methods)


def test_methods_that_change_different_slots_stack():
    made = stacked(grpo, one_out, plain_gradient, choosing, without_weights)
    assert str(made.credit) == "leave_one_out() >> to_go()"
    assert made.objective == policy_gradient()
    assert (made.select, made.weighting) == (best(), None)
    assert made.name == "grpo+one_out+plain_gradient+choosing+without_weights"


def test_extending_what_another_method_made_is_allowed():
    made = stacked(grpo, one_out, whitened, brief_too, spread)
    assert str(made.credit) == "leave_one_out() >> to_go() >> whiten()"
    assert str(made.objective) == "clipped_ratio() + 0.01 * negative_entropy()"
    assert str(made.reward) == "correct() + 0.5 * brief()"
    twice = stack([("grpo", grpo, {}), ("a", brief_too, {"weight": 1.0}), ("b", spread, {}), ("c", spread, {})])
    assert str(twice.objective) == "clipped_ratio() + 0.01 * negative_entropy() + 0.01 * negative_entropy()"


def test_a_method_may_replace_what_it_also_replaces_when_it_is_alone():
    assert stacked(grpo, discounting).credit == center() >> to_go(gamma=0.9)
    with pytest.raises(RewardlabError, match="grpo replaces the rollout that sft brings"):
        stacked(sft, grpo)


def test_settings_reach_their_method():
    made = stack([("grpo", grpo, {"n": 3}), ("brief_too", brief_too, {"weight": 2.0})])
    assert made.rollout.settings["n"] == 3
    assert str(made.reward) == "correct() + 2 * brief()"


def test_a_stack_of_nothing_is_refused():
    with pytest.raises(RewardlabError, match="no method named"):
        stack([])


@pytest.mark.parametrize("saved", ["rewardlab.credit.group:less_mean_of_others", "credit:less_mean_of_others"])
def test_parts_load_under_the_names_that_they_were_saved_by(saved):
    assert registry.load_part({"part": saved, "with": {}}) == subtract_mean_of_others()


def test_another_reward_is_also_what_a_search_searches_by():
    searching = registry.build("beam_search", {"width": 3}).scored_by(correct())
    assert searching.reward == searching.rollout.settings["score"] == correct()
    assert searching.rollout.settings["width"] == 3
    # a rollout that does not score is the same as before
    assert grpo().scored_by(correct()).rollout == grpo().rollout
