"""StepSearch: searches are paid for new evidence."""

from __future__ import annotations

import numpy as np
import pytest
from rows import batch_of, outcome, steps

from rewardlab import registry
from rewardlab.core import Run
from rewardlab.methods.process.stepsearch import claim, stepsearch
from rewardlab.rewards.reward import reward
from tests.rewards.test_searches import ANN, BOB, CAL, episode


def test_the_advantages_by_hand():
    # two searches paid .5 and -.25 before a right answer; one paid 0 before a wrong one; no verdict
    rows = [
        ("rdrdrd", {"correct": outcome(1.0), "search_progress": steps({1: 0.5, 3: -0.25}), "searched_for": outcome(0.5, 0.618)}),
        ("rdrd", {"correct": outcome(0.0), "search_progress": steps({1: 0.0}), "searched_for": outcome(1.0, 0.618)}),
        ("rd", {"correct": outcome(None)}),
    ]
    batch = batch_of([[row] for row in rows], {"value": [[0.25] * 6] * 3})
    recipe = stepsearch(registry.build("ppo", {"beta": 0.0, "lam": 1.0}))
    found = recipe.credit(batch.reward, batch, Run(policy=None))
    raw = np.array([0.5 - 0.25 + 1.309, -0.25 + 1.309, 1.309, 0.618, 0.618]) - 0.25
    wanted = (raw - raw.mean()) / raw.std(ddof=1)
    assert found[batch.mask & batch.rewarded.any(1, keepdim=True)].tolist() == pytest.approx(wanted.tolist(), abs=1e-5)
    assert not found[2].any()


def test_what_is_paid_and_what_is_left_without_it():
    full, without = registry.build("stepsearch"), registry.build("stepsearch", {"weight": 0.0, "key": 0.0})
    assert str(full.reward) == "if_answered(inner=correct() + 1 * search_progress() + 0.618 * searched_for())"
    assert str(without.reward) == "correct()"
    assert "interactive" in str(without.rollout)
    assert registry.build("stepsearch", dict(claim.versus_settings)).reward == without.reward
    stacked = registry.build("grpo+stepsearch", {"grpo.n": 4})
    assert "center" in str(stacked.credit)
    assert stacked.rows_per_problem == 4


@reward
def verify(trajectory):
    return float("Answer: Cal" in trajectory.reply)


def test_searches_are_paid_where_the_episode_ends_in_an_answer():
    """Else to search on until the turns are over would be paid as much as an answer."""
    known = {"facts": [ANN, BOB, CAL], "gold_documents": [BOB], "searches": ["Bob friend"]}
    group = [
        episode("Search: Bob friend", BOB, "Answer: Cal", **known),  # 1 + 1 + .618
        episode("Search: Bob friend", BOB, "Answer: Dee", **known),
        episode("Search: Bob friend", BOB, "Search: Cal boss", **known),
        episode(
            "<search>Bob friend</search>", "<information>\nThe search failed: no answer\n</information>", "Answer: Cal", **known
        ),
    ]
    for last in ("<think>It may be Cal", "<answer>Cal</answer> and more", "<think>Cal</think>"):
        (cut,) = stepsearch().reward([[episode("Search: Bob friend", BOB, last, **known)]], Run(policy=None, verify=verify()))[0]
        assert cut.total == -1.0
    found = [s.total for s in stepsearch().reward([group], Run(policy=None, verify=verify()))[0]]
    assert found == [pytest.approx(2.618), pytest.approx(1.618), -1.0, None]
    (last,) = [s.steps for s in stepsearch().reward([group[2:3]], Run(policy=None, verify=verify()))[0]]
    assert last == ((group[2].ends[-1], -1.0),)
    assert [s.total for s in stepsearch(weight=0, key=0).reward([group], Run(policy=None, verify=verify()))[0]] == [1, 0, 0, 1]
