"""COIG-P: two replies at random are a pair if their grades differ enough."""

from __future__ import annotations

import pytest
from rows import Replies

from rewardlab import registry
from rewardlab.core import Run
from rewardlab.worlds.notes import notes, quality


def pairs_of(task, gap: float, problems: int = 300):
    """The pairs that the method makes of the first problems, and what it logs."""
    run, recipe = Run(Replies([])), registry.build("coig_p", {"gap": gap})
    groups = recipe.rollout([task.train[i] for i in range(problems)], run)
    return [g[0].problem.meta for g in groups], run.metrics


def test_a_gap_gives_more_right_labels_and_loses_the_prompts_alone_whose_replies_are_all_alike():
    task = notes(writers=6, noise=0.4)
    (any_gap, loose), (wide, strict) = pairs_of(task, 0.0), pairs_of(task, 4.0)
    assert all(p["chosen_score"] - p["rejected_score"] >= 4.0 for p in wide)
    assert min(p["chosen_score"] - p["rejected_score"] for p in any_gap) == 1.0
    rows = [task.train[i].meta["scores"] for i in range(300)]
    assert strict["paired"] == sum(max(row) - min(row) >= 4.0 for row in rows) / 300 < loose["paired"]
    assert 0.55 < loose["true_labels"] < 0.75
    assert strict["true_labels"] > loose["true_labels"] + 0.05
    # what it says of labels is what the notes themselves say
    right = [quality(p["chosen"], p) - quality(p["rejected"], p) for p in wide]
    assert strict["true_labels"] == pytest.approx(sum((d > 0) + (d == 0) / 2 for d in right) / len(right))


def test_the_same_pairs_teach_a_reward_model():
    recipe = registry.build("bradley_terry+coig_p", {"gap": 3.0})
    assert str(recipe.rollout) == "paired(inner=recorded(fields=('chosen', 'rejected')), choose='random', gap=3)"
    assert recipe.also[0].name == "reward"
    assert recipe.objective is None


def test_the_writers_of_the_world_differ_in_care_and_its_judge_errs_as_asked():
    exact, noisy = notes(writers=4), notes(writers=4, noise=0.4)
    worth = [exact.train[i].meta["true_scores"] for i in range(300)]
    means = [sum(row[k] for row in worth) / 300 for k in range(4)]
    assert means == sorted(means)
    assert means[3] > means[0] + 1.5
    for i in range(20):
        told, truth = noisy.train[i].meta, exact.train[i].meta
        assert (told["replies"], told["true_scores"]) == (truth["replies"], truth["true_scores"])
        assert truth["scores"] == [round(x) for x in truth["true_scores"]]
        assert all(0 <= x <= 10 and x == int(x) for x in told["scores"])
    assert "replies" not in notes().train[0].meta
    assert all(p.meta["scores"] == [round(x) for x in p.meta["true_scores"]] for p in noisy.test[:20])
