"""Judging by another column, and what a verifier says beside its verdict."""

from __future__ import annotations

import numpy as np
import pytest

from rewardlab import registry
from rewardlab.core import Run, Trajectory, Turn, ask
from rewardlab.errors import RewardlabError
from rewardlab.rewards.another_answer import with_answer
from rewardlab.rewards.task import detail


def said(text: str, answer="a", **meta) -> Trajectory:
    return Trajectory(ask("?", answer, **meta), (Turn("policy", np.zeros(1, np.int64), text=text),), "end")


def test_a_column_takes_the_place_of_the_answer():
    part = with_answer(inner=registry.part("reward", "exact_match"), column="other")
    groups = [[said("b", other="b"), said("a", other="b")], [said("b"), said("b", other="b")], []]
    scores = part(groups, Run(None))
    assert [[s.total for s in row] for row in scores] == [[1.0, 0.0], [None, 1.0], []]
    assert scores[1][0].why == "the problem has no column 'other'"
    assert groups[0][0].problem.answer == "a"


def test_a_detail_is_a_number_that_the_verifier_reports():
    run = Run(None, verify=registry.part("reward", "same_set"))
    group = [said("red, green", ["red", "blue"]), said("red", ["red"]), said("red", [])]
    assert [s.total for s in detail(name="recall")([group], run)[0]] == [0.5, 1.0, None]
    with pytest.raises(RewardlabError, match=r"reports no number 'linking' .* f1, jaccard, precision, recall"):
        detail(name="linking")([group], run)
    with pytest.raises(RewardlabError, match="it reports: none"):
        detail(name="recall")([[said("a")]], Run(None, verify=registry.part("reward", "exact_match")))
