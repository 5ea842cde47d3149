"""Merging by hand: weights of two or three models that were trained from one start."""

from __future__ import annotations

import pytest
import torch

from rewardlab.errors import RewardlabError
from rewardlab.policies.merging import (
    average,
    largest_share,
    of_one_sign,
    overlap,
    random_share,
    reinforced_agents,
    task_arithmetic,
    task_vectors,
    ties,
)

START = {"a": torch.tensor([1.0, 1, 1, 1, 1]), "b": torch.tensor([[0.0, 0]])}
# the first model changed a: 0, 1, 2 and b: 0; the second a: 0 and 4; below eps counts as unchanged
FIRST = {"a": torch.tensor([1.2, 1.4, 0.8, 1, 1]), "b": torch.tensor([[1.0, 0.0]])}
SECOND = {"a": torch.tensor([1.6, 1 + 1e-7, 1, 1, 2]), "b": torch.tensor([[0.0, 0.0]])}
MODELS = [FIRST, SECOND]


def lists(weights) -> dict:
    return {name: w.flatten().tolist() for name, w in weights.items()}


def test_ram_keeps_lone_changes_and_averages_shared_ones():
    merged = lists(reinforced_agents(START, MODELS, gain=0.0))
    # a0: mean of .2 and .6; the others as the one model has them; a3 nobody changed
    assert merged["a"] == pytest.approx([1.4, 1.4, 0.8, 1.0, 2.0])
    assert merged["b"] == pytest.approx([1.0, 0.0])


def test_ram_enlarges_lone_changes_by_what_a_model_shares():
    merged = lists(reinforced_agents(START, MODELS, gain=0.3))
    # rho: 1 shared of 3 own, and 1 of 1: factors 1 + .3 / 3 and 1 + .3; the shared a0 is not enlarged
    assert merged["a"] == pytest.approx([1.4, 1 + 0.4 * 1.1, 1 - 0.2 * 1.1, 1.0, 1 + 1.3])
    assert merged["b"] == pytest.approx([1.1, 0.0])


def test_a_model_with_shared_changes_alone_is_enlarged_at_most_by_gain():
    third = {"a": torch.tensor([1.5, 1.5, 1, 1, 1]), "b": torch.zeros(1, 2)}
    merged = lists(reinforced_agents(START, [FIRST, SECOND, third], gain=0.5))
    # shared a0 by three and a1 by two; FIRST: rho 2/2, capped at 1; SECOND: rho 1/1
    assert merged["a"] == pytest.approx([1 + (0.2 + 0.6 + 0.5) / 3, 1 + (0.4 + 0.5) / 2, 1 - 0.2 * 1.5, 1.0, 1 + 1.5])
    assert merged["b"] == pytest.approx([1.5, 0.0])


def test_changes_below_the_threshold_are_dropped():
    assert lists(reinforced_agents(START, MODELS, eps=0.9, gain=0.0)) == {
        "a": pytest.approx([1, 1, 1, 1, 2]),
        "b": pytest.approx([1, 0]),
    }
    # nothing changed by more: the start
    assert lists(reinforced_agents(START, MODELS, eps=9.0)) == lists(START)


def test_overlap_counts_shared_and_lone_changes_of_each_model():
    shared, alone = overlap(task_vectors(START, MODELS), 1e-5)
    assert (shared.tolist(), alone.tolist()) == ([1, 1], [3, 1])


def test_averages_and_sums():
    assert lists(average(START, MODELS))["a"] == pytest.approx([1.4, 1.2, 0.9, 1, 1.5])
    assert lists(task_arithmetic(START, MODELS))["a"] == pytest.approx([1.8, 1.4, 0.8, 1, 2])
    assert lists(task_arithmetic(START, MODELS, scale=0.5)) == lists(average(START, MODELS))


def test_ties_elects_a_sign_among_the_largest_changes():
    start = {"w": torch.zeros(5)}
    models = [{"w": torch.tensor([5.0, 4, 0.1, -1, 0])}, {"w": torch.tensor([-3.0, 2, 0.1, 0, 6])}]
    # the two largest of each: 5, 4 and -3, 6; of 5 and -3 the heavier sign is +; 4 and 6 are alone
    assert ties(start, models, density=0.4)["w"].tolist() == pytest.approx([5, 4, 0, 0, 6])


def test_merging_keeps_the_number_format():
    half = [{name: w.bfloat16() for name, w in model.items()} for model in (START, *MODELS)]
    assert {w.dtype for w in reinforced_agents(half[0], half[1:]).values()} == {torch.bfloat16}


def test_models_of_another_shape_are_refused():
    with pytest.raises(RewardlabError, match=r"model 2 of 2 .* a is missing"):
        average(START, [FIRST, {"b": START["b"]}])
    with pytest.raises(RewardlabError, match="another shape"):
        average(START, [FIRST, {"a": torch.zeros(4), "b": START["b"]}])


def test_a_random_share_keeps_the_mean_and_is_the_same_for_a_seed():
    change = {"a": torch.ones(10000), "b": torch.full((2, 50), 3.0)}
    first, again = (random_share(change, 0.25, torch.Generator().manual_seed(3)) for _ in range(2))
    assert all(torch.equal(first[name], again[name]) for name in change)
    assert set(first["a"].tolist()) == {0.0, 4.0}
    assert float(first["a"].mean()) == pytest.approx(1.0, abs=0.06)
    assert first["b"].shape == (2, 50)
    assert all(torch.equal(v, change[name]) for name, v in random_share(change, 1.0, torch.Generator()).items())


def test_the_largest_share_of_each_tensor():
    change = {"a": torch.tensor([[1.0, -5.0], [0.5, 2.0]]), "b": torch.tensor([0.1, 0.2, -0.3])}
    # half of 3 is one; a quarter of 3 would be none: all stay
    assert lists(largest_share(change, 0.5)) == {"a": [0, -5, 0, 2], "b": pytest.approx([0, 0, -0.3])}
    assert lists(largest_share(change, 0.25)) == {"a": [0, -5, 0, 0], "b": pytest.approx([0.1, 0.2, -0.3])}
    assert lists(largest_share(change, 1.0)) == lists(change)


def test_changes_of_the_sign_of_their_sum():
    change, other = {"a": torch.tensor([1.0, -1.0, 1.0, 0.0, -1.0])}, {"a": torch.tensor([2.0, 3.0, -3.0, 2.0, 1.0])}
    # agree; the first has the wrong sign; the second stays, for it is heavier; one alone; a sum of 0 counts as +
    assert of_one_sign(change, other, 0.25)["a"].tolist() == pytest.approx([0.75 + 0.5, 0.75, -0.75, 0.5, 0.25])
