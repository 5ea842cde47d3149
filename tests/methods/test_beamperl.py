"""BeamPERL: what replies earn by the released weights; beams whose reactions are known; accuracy by kind."""

from __future__ import annotations

import random

import numpy as np
import pytest
import torch

from rewardlab import registry
from rewardlab.core import Run, Score, Trajectory, Turn, ask
from rewardlab.engine.collate import collate
from rewardlab.errors import RewardlabError
from rewardlab.evals.kinds import accuracy_by_kind
from rewardlab.models.embedded import untrained
from rewardlab.worlds.beams import KINDS, beams, reactions


def said(text: str, length: int = 3, gold=("7P", "5P")) -> Trajectory:
    zeros = np.zeros(length, np.float32)
    turns = (Turn(None, np.zeros(2, np.int64)), Turn("policy", np.zeros(length, np.int64), zeros, zeros, text))
    return Trajectory(ask("Beam", list(gold)), turns, "end")


def run() -> Run:
    return Run(None, verify=registry.part("reward", "coefficients"))


REPLIES = ["12-5=7; \\boxed{7P, 5P}", "\\boxed{7P}", "7P, 5P", ""]


def test_form_is_worth_one_and_the_reactions_two():
    def totals(**settings):
        return [s.total for s in registry.build("beamperl", settings).reward([[said(x) for x in REPLIES]], run())[0]]

    assert totals() == [3.0, 1.0, 0.0, 0.0]
    assert totals(form_weight=0.0, weight=1.0) == [1.0, 0.0, 0.0, 0.0]
    assert totals(form=r".+\n?</think>.*\\boxed\{.+\}.*") == [2.0, 0.0, 0.0, 0.0]


def test_the_credit_of_a_group():
    recipe, r = registry.build("beamperl"), run()
    group = [said(x, n) for x, n in zip(REPLIES, (4, 2, 1, 1), strict=True)]
    batch = collate([group], recipe.reward([group], r), torch.device("cpu"))
    rewards = np.array([3.0, 1.0, 0.0, 0.0])
    expected = torch.tensor((rewards - 1) / (rewards.std(ddof=1) + 1e-4))[:, None] * batch.mask
    assert torch.allclose(recipe.credit(batch.reward, batch, r).double(), expected, atol=1e-4)
    assert recipe.rollout.settings["n"] == 4
    assert recipe.rollout.settings["temperature"] == 0.6


def test_reactions_by_hand():
    # a load in the middle is shared, at a support it is borne there alone, and by its distances otherwise
    assert reactions((0, 4), [(8, 2)]) == (4, 4)
    assert reactions((1, 5), [(8, 1)]) == (8, 0)
    assert reactions((1, 5), [(8, 4)]) == (2, 6)
    assert reactions((0, 4), [(8, 1), (4, 3)]) == (7, 5)


@pytest.mark.slow
def test_kinds_differ_in_the_number_of_loads_and_the_place_of_supports():
    task = beams()
    counts = {kind: sum(p.meta["kind"] == kind for p in task.test) for kind in KINDS}
    assert min(counts.values()) >= 60
    for p in task.test[:200]:
        beam, kind = p.meta["beam"], p.meta["kind"]
        assert (len(beam["loads"]) > 1) == (kind == "loads")
        assert (beam["supports"][0] > 0) == (kind == "supports")
        first, second = reactions(tuple(beam["supports"]), [tuple(x) for x in beam["loads"]])
        assert p.answer == [f"{first}P", f"{second}P"]
        assert min(first, second) >= 0
    one = beams(train="one", test_size=1).train
    assert {one[i].meta["kind"] for i in range(100)} == {"one"}


@pytest.mark.slow
def test_a_mistake_about_moved_supports_cannot_be_seen_on_one_load():
    task = beams(biased=1.0, error=0.0)
    check = registry.part("reward", "coefficients").check
    right: dict[str, list[bool]] = {kind: [] for kind in KINDS}
    for p in task.test:
        right[p.meta["kind"]].append(bool(check(task.demonstrate(p, random.Random(0)), p.answer).correct))
    # where the support was moved by one place the two mistakes can cancel
    assert np.mean(right["supports"]) < 0.35
    # half of the places are beyond the middle, or less
    assert 0.4 < np.mean(right["one"]) < 0.8
    assert 0.05 < np.mean(right["loads"]) < 0.5
    with pytest.raises(RewardlabError, match="biased"):
        beams(biased=2.0)


def test_accuracy_by_kind_counts_each_kind_alone():
    def verify(groups, run=None):
        return [[Score(float(t.problem.answer)) for t in group] for group in groups]

    problems = [ask(f"{i}", right, kind=kind) for i, (kind, right) in enumerate([("a", 1), ("a", 0), ("b", 1), ("b", 1), ("a", 0)])]
    r = Run(untrained(), max_new=2, verify=verify)
    found = accuracy_by_kind(better="b", worse="a")(problems, r)
    assert (found["pass@1"], found["pass@1.a"], found["pass@1.b"]) == pytest.approx((0.6, 1 / 3, 1.0))
    assert found["apart"] == pytest.approx(2 / 3)
    assert "apart" not in accuracy_by_kind()(problems, r)
    with pytest.raises(RewardlabError, match="c in its column"):
        accuracy_by_kind(better="c", worse="a")(problems, r)
