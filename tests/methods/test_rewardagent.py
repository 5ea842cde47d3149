"""RewardAgent: a reward model's score plus what routed verifiers say."""

from __future__ import annotations

import re

import numpy as np
import pytest

from rewardlab import registry
from rewardlab.core import Run, Trajectory, Turn, ask
from rewardlab.methods.verifiers import rewardagent
from rewardlab.methods.verifiers.rewardagent import CONSTRAINED, FACTUAL, constraints_met, supported_facts
from rewardlab.models.embedded import untrained
from rewardlab.rewards.reward import reward

PASSAGES = ["The farm needs corn.", "The ship needs rice.", "Ann was born in Oslo in 1901."]


def reply(text: str, prompt: str = "What does the farm need?", **meta) -> Trajectory:
    return Trajectory(ask(prompt, **meta), (Turn("policy", np.zeros(1, np.int64), text=text),), "end")


def test_constraints_are_those_of_the_problem():
    few = {"id": "length_constraints:number_words", "num_words": 3, "relation": "less than"}
    both = [few, {"id": "keywords:existence", "keywords": ["corn"]}]
    group = [reply(text, instructions=both) for text in ("corn", "rice", "a b c d", "a b c corn", "")]
    assert [s.value for s in constraints_met()([group])[0]] == [1.0, 0.5, 0.0, 0.5, 0.0]
    assert constraints_met()([[reply("corn")]])[0][0].value == 0.5
    assert constraints_met()([[reply("corn", instructions=[{"id": "no:such"}])]])[0][0].value is None


def test_patterns_of_prompts():
    asks = {"Answer in exactly two sentences.": CONSTRAINED, "Who wrote it?": FACTUAL, "Mention the year.": CONSTRAINED}
    assert all(re.search(pattern, prompt, re.IGNORECASE) for prompt, pattern in asks.items())
    assert not any(re.search(p, "Write me a poem.", re.IGNORECASE) for p in (CONSTRAINED, FACTUAL))


@reward
def length(trajectory):
    return 0.1 * len(trajectory.reply)


def test_the_sum_by_hand_and_that_it_mends_a_reward_model_that_likes_length(monkeypatch):
    """Where the model is wrong by its taste, the verifiers outweigh it; where they have nothing to say, it decides."""
    monkeypatch.setattr(rewardagent, "model_score", lambda model: length().named("model_score"))
    agent = rewardagent.agent_reward(1.0, 2.0, "", "")
    groups = [
        [reply("corn", passages=PASSAGES), reply("rice, of course", passages=PASSAGES)],  # .4 + .5 + 2 against 1.5 + .5 + 0
        [reply("corn"), reply("more corn")],  # nothing to check: .4 and .9, + .5 + 1
    ]
    found = [[s.total for s in row] for row in agent(groups, Run(None))]
    assert found == [[pytest.approx(2.9), pytest.approx(2.0)], [pytest.approx(1.9), pytest.approx(2.4)]]


def test_the_recipe_trains_the_model_and_measures_the_sum_and_its_terms():
    recipe = registry.build("rewardagent", {"form_when": "", "facts_when": ""})
    assert [learner.name for learner in recipe.also] == ["reward"]
    task = registry.task("notes:taste=0.3", test_size=60)
    policy = untrained(task=task)
    found = recipe.measure(task.test, Run(policy, models={"reward": policy.copy("reward", value_head=True)}))
    # a head of zeros prefers nothing
    assert found["pair_accuracy.model_score"] == 0.5
    assert found["pair_accuracy"] > 0.6
    assert {"pair_accuracy", "pair_accuracy.model_score", "pair_accuracy.form", "pair_accuracy.facts"} <= set(found)


def test_notes_say_what_can_be_checked_and_the_checks_tell_better_from_worse():
    task = registry.task("notes", test_size=300)
    groups = [[reply(p.meta[side], p.question, **p.meta) for side in ("chosen", "rejected")] for p in task.test]
    form, known = constraints_met()(groups), supported_facts()(groups)
    wins = {1: 0, 0: 0, -1: 0}
    for a, b in form:
        wins[(a.value > b.value) - (a.value < b.value)] += 1
    assert wins[1] > 3 * wins[-1]
    for p, (a, b) in zip(task.test, known, strict=True):
        # a note that names another need says something false; other notes do not differ in what can be checked
        if p.meta["need"] not in p.meta["rejected"]:
            assert a.value > b.value
    best = [[reply(p.meta["solution"], p.question, **p.meta)] for p in task.test]
    assert all(row[0].value == 1.0 for row in constraints_met()(best))


def test_a_served_model_takes_the_place_of_the_programs():
    recipe = registry.build("rewardagent", {"agent": "openai:http://127.0.0.1:9/v1#none", "facts": 2.0})
    paid = recipe.measure.settings["reward"]
    assert (paid.name, paid.settings["facts"], paid.settings["preference"].name) == ("verified_preference", 2.0, "model_score")
    assert registry.build("rewardagent").measure.settings["reward"].name != "verified_preference"


def test_how_long_the_agent_may_be_is_said():
    agent = {"agent": "openai:http://h#m"}
    assert "max_new=64" in str(registry.build("rewardagent", {**agent, "longest": 64}).measure)
    assert registry.build("rewardagent", {**agent, "longest": 512}).measure == registry.build("rewardagent", agent).measure
