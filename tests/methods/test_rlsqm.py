"""RLSQM: flags of unit tests, read without running them, reward models of one or of all, and the policy's reward."""

from __future__ import annotations

import random

import pytest
from rows import Replies

from rewardlab import registry
from rewardlab.api import train
from rewardlab.core import Run, Trajectory, Turn, ask
from rewardlab.errors import RewardlabError
from rewardlab.methods.reward_models.rlsqm import static_rates
from rewardlab.rewards.static_quality import FLAGS, LONGEST, quality_flags, static_quality
from rewardlab.worlds.smelly_tests import smelly_tests

GOOD = 'def test_add_is_the_sum():\n    """Small numbers."""\n    assert add(2, 3) == 5\n'
UNITTEST = "class TestAdd(unittest.TestCase):\n    def test_add_sum(self):  # sum\n        self.assertEqual(calc.add(2, 3), 5)\n"
LACKING = {
    "assertion": GOOD.replace("assert add(2, 3) == 5", "print(add(2, 3))"),
    "focal": GOOD.replace("add(2, 3)", "5").replace("test_add", "test_five"),
    "no_duplicates": GOOD + "    assert add(2, 3) == 5\n",
    "no_conditionals": GOOD + "    if True:\n        pass\n",
    "comment": GOOD.replace('    """Small numbers."""\n', "    x = '# none'\n"),
    "descriptive_name": GOOD.replace("test_add_is_the_sum", "test_1"),
}


@pytest.mark.parametrize("good", [GOOD, UNITTEST, f"Here it is:\n```python\n{GOOD}```\nIt tests a sum."])
def test_a_good_test_has_every_property(good):
    assert quality_flags(good, "add") == dict.fromkeys(FLAGS, True)


@pytest.mark.parametrize("flag", LACKING)
def test_a_planted_smell_takes_away_its_property_and_no_other(flag):
    assert [name for name, there in quality_flags(LACKING[flag], "add").items() if not there] == [flag]


@pytest.mark.parametrize(
    "text",
    ["", "def test_add(:\n    pass", "def add(a, b): return a + b", "# a comment", "x = 1\n" * LONGEST, "(" * 5000, "a\0b"],
)
def test_what_is_no_test_has_no_property_not_even_those_that_are_had_by_writing_nothing(text):
    assert not any(quality_flags(text, "add").values())


def test_other_branches_are_conditions_and_other_assertions_are_assertions():
    for line in ("for i in y: pass", "while y: pass", "try: pass\n    except E: pass", "z = 1 if y else 2"):
        assert not quality_flags(f"{GOOD}    {line}\n", "add")["no_conditionals"]
    raised = "def test_add_refuses():\n    with pytest.raises(TypeError):\n        add('a', 1)\n"
    assert quality_flags(raised, "add")["assertion"]


def test_nothing_in_a_test_is_run():
    quality_flags("raise SystemExit\n" + GOOD, "add")


def said(text, focal="add"):
    problem = ask("Test add.", "", **({"focal": focal} if focal else {}))
    return Trajectory(problem, (Turn("policy", [], text=text),), "end")


def test_the_reward_is_the_share_of_the_flags_asked_for():
    of = static_quality()([[said(LACKING["comment"]), said("")]], Run(None))[0]
    assert [s.value for s in of] == [6 / 7, 0.0]
    of = static_quality(flags=("comment", "focal"))([[said(LACKING["comment"]), said(GOOD)]], Run(None))[0]
    assert [s.value for s in of] == [0.5, 1.0]
    with pytest.raises(RewardlabError, match="'focal'"):
        static_quality()([[said(GOOD, focal="")]], Run(None))
    with pytest.raises(RewardlabError, match="coment"):
        registry.build("rlsqm", {"flags": ("coment",)})


def test_one_model_for_the_mean_of_the_flags_or_one_for_each_whose_chances_are_averaged():
    (*_, model) = registry.build("rlsqm").also
    assert (model.name, model.every, len(registry.build("rlsqm").also)) == ("reward", 0, 2)
    recipe = registry.build("rlsqm", {"combined": False, "flags": ("syntax", "focal")})
    assert [learner.name for learner in recipe.also] == ["critic", "reward_syntax", "reward_focal"]
    assert "flags=('focal',)" in str(recipe.also[-1].recipe.reward)


def test_rates_of_what_the_policy_writes():
    problem = ask("Test add.", "", focal="add")
    found = static_rates()([problem, problem], Run(Replies([GOOD, LACKING["comment"]]), max_new=9))
    assert (found["all"], found["quality.comment"], found["quality.focal"]) == (0.5, 0.5, 1.0)
    assert found["quality"] == pytest.approx(13 / 14)


def test_the_world_spoils_each_property_and_its_solution_has_all():
    task = smelly_tests(test_size=40)
    rows = [quality_flags(task.demonstrate(p, random.Random(i)), p.meta["focal"]) for i, p in enumerate(task.test)]
    assert all(0 < sum(row[flag] for row in rows) < 40 for flag in FLAGS)
    assert all(all(quality_flags(p.meta["solution"], p.meta["focal"]).values()) for p in task.test)


@pytest.mark.parametrize("combined", [True, False])
def test_reward_models_are_taught_first_and_the_policy_then_trains_on_them(tmp_path, combined):
    settings = {"tests": 4, "problems": 2, "combined": combined, "flags": ("syntax", "assertion")}
    done = train("rlsqm", "untrained", smelly_tests(test_size=2), steps=1, out=tmp_path, device="cpu", max_new=8,
                 eval_problems=2, settings=settings)  # fmt: skip
    assert 0 <= done.summary["after"]["quality"] <= 1
