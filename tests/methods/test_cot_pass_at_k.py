"""CoT-Pass@k as the measure of a method: what judges, how many verdicts count, and on what base."""

from __future__ import annotations

import pytest

from rewardlab import registry
from rewardlab.methods.studies.cot_pass_at_k import ACCEPT


def test_a_base_keeps_all_but_its_measure():
    plain, recipe = registry.build("dapo"), registry.build("dapo+cot_pass_at_k")
    assert (str(recipe.reward), str(recipe.objective), str(recipe.rollout)) == (
        str(plain.reward), str(plain.objective), str(plain.rollout),
    )  # fmt: skip
    assert "cot_pass_curve" in str(recipe.measure)


@pytest.mark.parametrize(("judge", "named"), [("copy:policy", "judge"), ("openai:http://localhost:1/v1#m", "openai:")])
def test_a_model_becomes_one_of_the_run_and_a_served_one_does_not(judge, named):
    recipe = registry.build("cot_pass_at_k", {"judge": judge})
    assert recipe.measure.settings["by"].settings["model"].startswith(named)
    assert [learner.name for learner in recipe.also] == (["judge"] if named == "judge" else [])


@pytest.mark.parametrize("accept", ["any", "majority", "all"])
def test_how_many_verdicts_accept(accept):
    at_least = registry.build("cot_pass_at_k", {"accept": accept}).measure.settings["at_least"]
    shares = [0.0, 1 / 3, 2 / 3, 1.0]
    assert [share >= at_least for share in shares] == {
        "any": [False, True, True, True], "majority": [False, False, True, True], "all": [False, False, False, True],
    }[accept]  # fmt: skip
    assert at_least == ACCEPT[accept]
