"""Sotopia-RL: scores of talks, divided among utterances, and a reward model of them."""

from __future__ import annotations

import random

import numpy as np
import pytest

from rewardlab import registry
from rewardlab.core import Run, Trajectory, Turn, ask
from rewardlab.engine.step import Ops
from rewardlab.evals.pairs import pair_accuracy
from rewardlab.methods.shaping.sotopia_rl import attributed_score, data
from rewardlab.models.embedded import untrained
from rewardlab.models.learners import learner_model
from rewardlab.runs.config import RunConfig
from rewardlab.worlds.bargaining import KINDS, bargaining, kind_of, value


def paid(scores, attributions, **settings):
    problem = ask("Buyer: Hello", scores=scores, attributions=attributions)
    t = Trajectory(problem, (Turn("policy", np.zeros(2, np.int64), text="Hi"),), "end")
    return attributed_score(**settings)([[t]])[0][0].value


def test_scores_times_shares_brought_to_one_range():
    scores, shares = {"goal": 9, "relationship": -3, "knowledge": 6}, {"goal": 2, "relationship": 3, "knowledge": 0}
    # 9 * 2/3 of 10;  -3 on -5 to 5;  0
    assert paid(scores, shares) == pytest.approx((0.6 + 0.2 + 0) / 3)
    assert paid(scores, shares, dimensions=("goal",)) == pytest.approx(0.6)
    # uniform: what the attributor says does not count
    assert paid(scores, {}, spread="uniform") == pytest.approx((0.9 + 0.2 + 0.6) / 3)
    assert paid('{"goal": 9}', '{"goal": "1"}', dimensions=("goal",)) == pytest.approx(0.3)
    assert paid({"wit": 5}, {"wit": 3}, dimensions=("wit",)) == pytest.approx(0.5)
    # what a user copies from the template has a number for each of the default dimensions: 7 * 3/3, 3 * 2/3 and 1 * 0
    first = data.rows[0]
    assert paid(first["scores"], first["attributions"]) == pytest.approx((0.7 + (2 + 5) / 10 + 0) / 3)
    # a secret that was kept has 0, the best of -10 to 0
    assert paid({"secret": 0}, {"secret": 3}, dimensions=("secret",)) == pytest.approx(1)


@pytest.mark.parametrize(
    ("scores", "shares"),
    [(None, None), ({"goal": 9}, {}), ({"goal": 9}, {"goal": None}), ("{broken", {"goal": 1}), ({}, {"goal": 1})],
)
def test_a_number_that_is_not_there_gives_no_verdict(scores, shares):
    assert paid(scores, shares, dimensions=("goal",)) is None


def taught(spread: str) -> float:
    policy, task = untrained(0, task=TASK), TASK
    recipe = registry.build(
        "sotopia_rl", {"utterances": 640, "problems": 2, "n": 2, "spread": spread, "rm_lr": 3e-3, "beta": 0.0, "field": "said"}
    )
    run = Run(policy, steps=1, max_new=4, verify=registry.part("reward", "social_value"))
    run.models["reward_model"] = learner_model(recipe.also[0], policy)
    recipe.loop(recipe, run, Ops(recipe, run, task, RunConfig()))
    return pair_accuracy(model="reward_model")(task.test, run)["pair_accuracy"]


TASK = bargaining(noise=0.1, test_size=300)


@pytest.mark.slow
def test_the_reward_model_learns_what_utterances_do():
    """From one utterance each of 640 talks, in one pass."""
    assert taught("attributed") > 0.7


def test_settings_reach_the_lesson():
    (learner,) = registry.build("sotopia_rl", {"dimensions": "goal, wit", "spread": "uniform"}).also
    assert str(learner.recipe.reward) == "attributed_score(dimensions=('goal', 'wit'), spread='uniform')"
    assert (learner.every, learner.recipe.objective.name) == (0, "label_squared_error")
    (learner,) = registry.build("sotopia_rl", {"reward_model": "runs/taught"}).also
    assert (learner.init, learner.recipe.reward) == ("runs/taught", None)


def test_the_world_says_what_utterances_do():
    assert (value("asks"), value("insults"), value("idles")) == (1, 0, pytest.approx(0.4))
    assert kind_of(" Nice day today.") == "chats"
    assert kind_of("Hello") is None
    for p in TASK.test[:100]:
        better, worse = p.meta["qualities"]
        assert better > worse
        assert (value(kind_of(p.meta["chosen"])), value(kind_of(p.meta["rejected"]))) == (better, worse)
        assert p.question.splitlines()[-1].startswith("Buyer:")
        assert kind_of(TASK.demonstrate(p, random.Random(0))) in KINDS
    reward = registry.part("reward", "social_value")
    t = Trajectory(TASK.test[0], (Turn("policy", np.zeros(2, np.int64), text="What do you need it for?"),), "end")
    assert reward([[t]])[0][0].value == 1


def test_attributions_without_noise_are_of_what_was_done():
    for p in (bargaining(noise=0, test_size=200).test)[:200]:
        does = KINDS[kind_of(p.meta["said"])].does
        # nobody who learnt nothing is said to have
        assert does[2] > 0 or p.meta["attributions"]["knowledge"] == 0
