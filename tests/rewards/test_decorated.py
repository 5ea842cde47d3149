"""Decorated rewards of a user: what they are given, and how their mistakes are told."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest

from rewardlab.core import Run, Score, Trajectory, Turn, ask
from rewardlab.errors import NotFinite, RewardlabError
from rewardlab.evals.own_reward import own_reward
from rewardlab.rewards.reward import reward
from rewardlab.rewards.user.external import from_file
from rewardlab.rewards.user.functions import PLURAL, SINGULAR
from rewardlab.rollouts.independent import independent
from rewardlab.settings.hyperparameters import BY_NAME


def attempt(reply="four") -> Trajectory:
    return Trajectory(ask("2+2?", "4"), (Turn(None, np.arange(3), text="2+2?"), Turn("policy", np.arange(4), text=reply)))


def test_arguments_of_plain_functions_are_refused():
    def two(completion, answer):
        return 1.0

    def one(reply):
        return 1.0

    def many(completions):
        return []

    def second(trajectory, answer):
        return 1.0

    for function, over in ((two, "trajectory"), (one, "trajectory"), (many, "group"), (second, "trajectory")):
        with pytest.raises(
            RewardlabError, match=rf"@reward {function.__name__}\(.*a decorated reward is given the {over}.*plain function"
        ):
            reward(over=over)(function)
    assert {*BY_NAME} == {*SINGULAR} - {"trajectory"}
    assert {*(f"{name}s" for name in BY_NAME), "replies", "queries"} >= {*PLURAL} - {"trajectories"}

    @reward
    def fine(t, run):
        return float(run is not None)

    assert fine()([[attempt()]], Run(None))[0][0].value == 1.0


@pytest.mark.parametrize("wrong", [0, 2, 7, -1, 99])
def test_a_reward_of_a_position_that_the_policy_did_not_decide_is_refused(wrong, tmp_path):
    @reward(steps=True)
    def stepwise(trajectory):
        return [(4, 1.0), (wrong, 1.0)]

    says = rf"the reward stepwise of .*test_decorated.py rewards position {wrong}, .*\(rollout 0 of group 0\): it decided 3 to 6"
    with pytest.raises(RewardlabError, match=says):
        stepwise()([[attempt()]], None)
    (tmp_path / "mine.py").write_text(
        f"from rewardlab import Score\ndef stepwise(trajectory):\n    return Score(steps=[({wrong}, 1.0)])\n"
    )
    with pytest.raises(RewardlabError, match=rf"mine.py rewards position {wrong}, "):
        from_file(path=str(tmp_path / "mine.py"), function="stepwise")([[attempt()]], Run(None))


def test_an_exception_names_file_line_and_rollout():
    @reward
    def broken(trajectory):
        return 1 / (len(trajectory.reply) - 4)

    assert broken()([[attempt("six")]], None)[0][0].value == -1.0
    with pytest.raises(
        RewardlabError, match=r"broken of .*test_decorated.py, line \d+: ZeroDivisionError: .*\(rollout 1 of group 0\)"
    ):
        broken()([[attempt("six"), attempt("four")]], None)


def test_no_verdict_names_the_reward_and_the_rollout(tmp_path):
    @reward
    def mute(trajectory):
        pass

    score = mute()([[attempt()]], None)[0][0]
    assert score.missing
    assert re.fullmatch(r"the reward mute of .*test_decorated.py returned None for rollout 0 of group 0", score.why)
    (tmp_path / "mine.py").write_text("def mute(completion):\n    pass\n")
    score = from_file(path=str(tmp_path / "mine.py"), function="mute")([[attempt()]], Run(None))[0][0]
    assert score.why == f"the reward mute of {tmp_path / 'mine.py'} returned None for rollout 0 of group 0"

    @reward
    def explained(trajectory):
        return Score(None, why="the judge is down")

    assert explained()([[attempt()]], None)[0][0].why == "the judge is down"


def test_nan_on_held_out_problems_is_the_rewards():
    @reward
    def undefined(trajectory):
        return math.nan

    from rewardlab.models.embedded import untrained

    run = Run(untrained(), max_new=4)
    with pytest.raises(NotFinite, match=r"reward term 'undefined' of undefined\(\) is not finite for rollout 0 of group 0"):
        own_reward(reward=undefined(), rollout=independent(n=1))([ask("2+2?", "4")], run)


@pytest.mark.parametrize("returned", ["four", (1.0, "fine"), 10**400])
def test_what_is_no_number_is_told_with_file_and_rollout(returned):
    @reward
    def odd(trajectory):
        return returned

    with pytest.raises(RewardlabError, match=rf"the reward odd returned .* \({re.escape(__file__)}, rollout 0 of group 0\)"):
        odd()([[attempt()]], Run(None))
