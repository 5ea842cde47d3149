"""PAV: steps are paid the progress that they mean for a prover with several tries."""

from __future__ import annotations

from dataclasses import replace

import pytest
from rows import batch_of, outcome, row_of, steps

from rewardlab import registry
from rewardlab.core import Run, Score, Term
from rewardlab.methods.process.pav_rewarding_progress import check, pav_rewarding_progress, progress
from rewardlab.rewards.reward import reward


@reward(over="groups")
def chances(groups, run):
    """Two steps in rows of three, which end right and wrong, and one in a row of two."""
    values = {3: [((1, 0.5), (2, 1.0)), ((1, 0.25), (2, 0.0))], 2: [((1, 0.0),)]}
    return [[Score(terms={"chances": Term(None, values[len(t)][t.path[0]])}) for t in group] for group in groups]


def group():
    return [replace(row_of(p), path=(i,)) for p, i in (("rdd", 0), ("rdd", 1), ("rd", 0))]


def test_progress_under_the_best_of_two():
    found = [s.steps for s in progress(chances(), k=2)([group()], Run(policy=None))[0]]
    # best of 2: 3/4 1, 7/16 0, 0;  the first steps' mean: (3/4 + 7/16 + 0) / 3 = 19/48
    assert found[0] == ((1, pytest.approx(36 / 48 - 19 / 48)), (2, pytest.approx(1 / 4)))
    assert found[1] == ((1, pytest.approx(21 / 48 - 19 / 48)), (2, pytest.approx(-7 / 16)))
    assert found[2] == ((1, pytest.approx(-19 / 48)),)
    score = progress(chances(), k=2)([group()], Run(policy=None))[0][0]
    assert [name for name, term in score.terms.items() if term.weight is not None] == ["progress"]


def credit_of(*rows, **settings):
    batch = batch_of([list(rows)])
    return pav_rewarding_progress(**settings).credit(batch.reward, batch, Run(policy=None))


def row(pattern: str, verdict: float | None, gains: dict[int, float], alpha: float):
    return pattern, {"correct": outcome(verdict), "progress": steps(gains, weight=alpha)}


def test_the_advantages_by_hand():
    # steps of two tokens and one, of unequal lengths; the outcome pays all of a reply, progress its own step alone
    found = credit_of(row("rddd", 1.0, {2: 0.5, 3: -0.25}, 2.0), row("rdd", 0.0, {2: 0.125}, 2.0))
    # Q + alpha A: an outcome of 1 or 0, less the group's mean and not divided by its deviation
    assert found[0].tolist() == pytest.approx([0, 0.5 + 1.0, 0.5 + 1.0, 0.5 - 0.5])
    assert found[1, :3].tolist() == pytest.approx([0, -0.5 + 0.25, -0.5 + 0.25])


def test_all_right_one_reply_and_missing_verdicts():
    # all right: no outcome, but progress is left
    found = credit_of(row("rdd", 1.0, {1: 0.5, 2: 0.0}, 1.0), row("rd", 1.0, {1: 0.0}, 1.0))
    assert found.tolist() == [[0, 0.5, 0], [0, 0, 0]]
    assert credit_of(row("rd", 1.0, {1: -0.5}, 1.0)).tolist() == [[0, -0.5]]
    found = credit_of(("rd", {"correct": outcome(None)}), row("rd", 0.0, {1: 0.25}, 4.0))
    assert found.tolist() == [[0, 0], [0, 1.0]]


def test_a_verifier_of_ones_own_and_another_base():
    recipe = registry.build("pav-rewarding-progress", {"inner": chances(), "k": 3})
    assert "best_of(chances(), k=3)" in str(recipe.reward)
    assert "leave_one_out" in str(registry.build("rloo+pav-rewarding-progress").credit)
    assert check.by.settings["rewards"]["own"] != check.by.settings["rewards"]["progress"]
