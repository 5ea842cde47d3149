"""VSRM: steps are paid by how much they raise the accuracy of forced answers."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
import torch
from rows import batch_of, outcome, row_of, steps

from rewardlab import registry
from rewardlab.core import Run, Score, Term
from rewardlab.methods.process.vsrm_stepwise import REFLECTION, propagated, vsrm_stepwise
from rewardlab.rewards.progress import step_gain
from rewardlab.rewards.reward import reward


def released(accuracies: list[float]) -> list[float]:
    """`compute_step_reward` of the released code, for the accuracies at the cuts of a reply and after its thinking."""
    gamma, farthest, cuts, found = 0.7, 4, len(accuracies) - 1, []
    for j in range(cuts):
        delta = accuracies[j + 1] - accuracies[j]
        if abs(delta) >= 1e-5:
            found.append(delta)
            continue
        k, looked = j + 1, 0
        while looked < farthest and k < cuts and abs(accuracies[k + 1] - accuracies[k]) < 1e-5:
            k, looked = k + 1, looked + 1
        if looked == farthest:
            found.append(0.0)
        elif k < cuts:
            change = accuracies[k + 1] - accuracies[k]
            found.append((1 if change > 0 else -1) * abs(change) * gamma ** (k - j))
        else:
            final = accuracies[-1] - accuracies[j]
            found.append((1 if final > 0 else -1) * abs(final) * gamma ** (cuts - j - 1))
    return found


ACCURACIES = (
    [0.0, 0.0, 0.2, 0.2, 1.0],
    [1.0, 1.0, 0.4, 0.4],
    [0.2, 0.2, 0.2, 0.2, 0.2, 0.2, 0.8],
    [0.2, 0.2, 0.2, 0.2, 0.2, 0.2, 0.2, 0.8],
    [0.6, 0.6, 0.6],
    [0.4],
    [],
)


@reward(over="groups")
def forced(groups, run):
    """The accuracies whose place in the list is the row's tag, one at each position from 1 on; without a tag no verdict."""
    return [[_said(t.tag) for t in group] for group in groups]


def _said(tag: str) -> Score:
    accuracies = ACCURACIES[int(tag)] if tag else []
    return Score(terms={"forced": Term(None, tuple(enumerate(accuracies, 1)))}, missing=not tag)


def paid(place: int, **settings) -> list[tuple[int, float]]:
    row = replace(row_of("r" + "d" * 9), tag=str(place))
    (score,) = propagated(inner=step_gain(inner=forced()), **settings)([[row]], Run(policy=None))[0]
    return list(score.steps)


def test_a_step_that_changes_nothing_shares_in_what_comes_of_it():
    # 0 0 .2 .2 1: gains 0 .2 0 .8
    assert [x for _, x in paid(0)] == pytest.approx([0.7 * 0.2, 0.2, 0.7 * 0.8, 0.8])
    # 1 1 .4 .4: the second line leads to the fall, the last to nothing
    assert [x for _, x in paid(1)] == pytest.approx([-0.7 * 0.6, -0.6, 0.0])
    # the first step is compared with nothing
    assert [at for at, _ in paid(1)] == [2, 3, 4]
    assert [x for _, x in paid(0, gamma=0.5, eps=0.3)] == pytest.approx([0.8 / 8, 0.8 / 4, 0.8 / 2, 0.8])
    assert [x for _, x in paid(0, ahead=0)] == pytest.approx([0.0, 0.2, 0.0, 0.8])


@pytest.mark.parametrize("place", range(len(ACCURACIES)))
def test_as_the_released_code_pays(place):
    assert [x for _, x in paid(place)] == pytest.approx(released(ACCURACIES[place]) if ACCURACIES[place] else [])


def test_what_is_missing_stays_missing():
    assert propagated(inner=step_gain(inner=forced()))([[row_of("rd")]], Run(policy=None))[0][0].missing


def test_the_advantages_by_hand():
    # right, two steps paid .5 and -.25 besides; wrong, a step paid .2; no verdict
    rows = [
        ("rddd", {"correct": outcome(1.0), "propagated": steps({1: 0.5, 2: -0.25})}),
        ("rdd", {"correct": outcome(0.0), "propagated": steps({1: 0.2})}),
        ("rd", {"correct": outcome(None)}),
    ]
    batch = batch_of([[row] for row in rows], {"value": [[0.0] * 4] * 3})
    recipe = vsrm_stepwise(registry.build("ppo", {"beta": 0.0, "lam": 1.0}))
    found = recipe.credit(batch.reward, batch, Run(policy=None))
    raw = torch.tensor([1.25, 0.75, 1.0, 0.2, 0.0])
    wanted = (raw - raw.mean()) / raw.std()
    assert found[batch.mask & batch.rewarded.any(1, keepdim=True)].tolist() == pytest.approx(wanted.tolist(), abs=1e-5)
    assert not found[2].any()


def test_where_a_reflection_begins():
    begins = [
        bool(re.search(REFLECTION, s))
        for s in ("Wait, no.", "HOLD ON.", "So it is 5.", "also 5.", "sober", "Let me double-check it.")
    ]
    assert begins == [True, True, True, False, False, True]


def test_on_another_base_and_its_settings():
    assert "correct() + 2 * propagated" in str(registry.build("vsrm-stepwise", {"weight": 2.0}).reward)
    assert "whiten" in str(registry.build("reinforce_plus_plus+vsrm-stepwise").credit)
    assert registry.build("vsrm-stepwise", {"splitter": "newline"}).rollout.settings["steps"] == "newline"
