"""PRM-BiasBench: what is measured of a small scorer, here one that checks values and nothing else."""

from __future__ import annotations

import pytest

from rewardlab.core import Run, TokenCount
from rewardlab.methods.studies import prm_biasbench
from rewardlab.methods.studies.prm_biasbench import attacked, solved
from rewardlab.worlds.remainders import remainders


class Values:
    """A step is right where its equation is true; it looks at nothing else."""

    convention, name, splitter = "scripted", "scripted", ""

    def __init__(self):
        self.token_count = TokenCount()

    def fits(self, prompt, steps) -> bool:
        return True

    def score(self, solutions):
        return [[self.chance(step) for step in steps] for _, steps in solutions]

    def chance(self, step: str) -> float:
        left, equals, right = step.rpartition("=")
        for sign, of in (("+", int.__add__), ("-", int.__sub__), ("*", int.__mul__)):
            a, found, b = left.partition(sign)
            if equals and found and a.isdigit() and b.isdigit():
                return 0.9 if of(int(a), int(b)) == int(right) else 0.1
        return 0.9


def test_the_kind_that_passes_most_is_told(monkeypatch):
    monkeypatch.setattr(prm_biasbench, "load_scorer", lambda *_: Values())
    found = attacked(problems=12)(Run(policy=None, seed=0, max_new=8))
    assert found["accepted"] == 1.0
    assert found["passes.wrong_value"] == 0.0
    assert found["passes.another_problems"] == found["passes.one_step_repeated"] == found["passes.most"] == 1.0
    assert found["size.verbose"] == pytest.approx(0.0)
    assert "suffix.after" not in found


def test_a_gold_solution_is_right_in_every_step():
    problem = remainders().train[0]
    assert solved(problem).labels == (1.0,) * (len(problem.meta["steps"]) + 1)
    assert solved(problem).right
