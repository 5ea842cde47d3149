"""The invisible leash: right answers kept, lost and added, by hand; of a policy that changed; and the recipe."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scripted import ScriptedPolicy

from rewardlab import registry
from rewardlab.core import Run, Score, ask
from rewardlab.errors import RewardlabError
from rewardlab.methods.studies.invisible_leash import START, Said, entropy, shares, support


def said(*answers: str, right: str = "abc") -> Said:
    return Said(answers, tuple(answer in right for answer in answers), np.empty(0))


def test_answers_are_kept_lost_and_added():
    before = [said("a", "b", "x", "b"), said("x", "x", "x", "x")]
    now = [said("a", "a", "a", "y"), said("x", "x", "c", "c")]
    # a stays, b goes, c is new in the other problem; wrong answers are no support
    assert shares(before, now) == {"preserved": 1 / 3, "shrunk": 1 / 3, "expanded": 1 / 3}
    # where two replies must give it, a was not within reach before
    assert shares(before, now, least=2) == {"preserved": 0.0, "shrunk": 1 / 3, "expanded": 2 / 3}
    assert shares([said("x")], [said("y")]) == {}


def test_entropy_by_hand():
    assert entropy(["a", "a", "b", "b"]) == pytest.approx(math.log(2))
    assert entropy(["a"] * 4) == 0.0


def run_of(policy, start) -> Run:
    def verify(groups, run):
        return [[Score(float("7" in t.reply or "8" in t.reply)) for t in group] for group in groups]

    return Run(policy=policy, seed=0, max_new=20, verify=verify, models={} if start is None else {START: start})


def test_a_policy_that_became_sure():
    start = ScriptedPolicy(lambda t: ["Answer: 7", "Answer: 8", "Answer: 1", "Answer: 2"])
    sure = ScriptedPolicy(lambda t: ["Answer: 7", "Answer: 7", "Answer: 7", "Answer: 1"])
    found = support(n=4)([ask("?", "7")], run_of(sure, start))
    assert (found["start.pass@1"], found["pass@1"]) == (0.5, 0.75)
    assert (found["preserved"], found["shrunk"], found["expanded"]) == (0.5, 0.5, 0.0)
    assert found["start.answer_entropy"] == pytest.approx(math.log(4))
    assert found["answer_entropy"] < found["start.answer_entropy"]
    same = support(n=4)([ask("?", "7")], run_of(start, start))
    assert (same["preserved"], same["pass@2"]) == (1.0, same["start.pass@2"])


def test_a_run_without_its_start_is_told_what_is_missing():
    with pytest.raises(RewardlabError, match="no model 'start'"):
        support(n=2)([ask("?", "7")], run_of(ScriptedPolicy(lambda t: ["7"]), None))


def test_a_base_keeps_all_but_its_measure_and_gets_a_frozen_start():
    plain, recipe = registry.build("dapo"), registry.build("dapo+invisible_leash", {"samples": 8})
    assert str(recipe.objective) == str(plain.objective)
    assert str(recipe.rollout) == str(plain.rollout)
    assert recipe.measure.settings["n"] == 8
    (start,) = recipe.also
    assert (start.name, start.init, start.every) == ("start", "copy:policy", 0)
