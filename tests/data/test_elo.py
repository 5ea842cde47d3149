"""Elo ratings: tables, expected win rates, mismatch degrees, and offsets that make scores agree with them."""

from __future__ import annotations

import itertools
import json
import math

import numpy as np
import pytest
import torch

from rewardlab.data.elo import calibrating_offsets, elo_table, expected_win_rate, mismatch_degree, mismatch_degrees, win_rate
from rewardlab.errors import RewardlabError


def test_expected_win_rates_are_logistic_in_the_ratings():
    assert expected_win_rate(1200, 1200) == 0.5
    # 400 points are odds of 10
    assert expected_win_rate(1600, 1200) == pytest.approx(10 / 11)
    assert expected_win_rate(1200, 1600) == pytest.approx(1 / 11)


def test_the_mismatch_degree_is_a_share_of_the_most_there_could_be():
    # wins .9 of its pairs and .6 are expected: .3 too many, and at the most it could be .6 too few
    assert mismatch_degree(0.9, 0.6) == pytest.approx(0.3 / 0.6)
    assert mismatch_degree(0.1, 0.25) == pytest.approx(-0.15 / 0.75)


def test_the_mismatch_degree_of_a_model_is_over_its_pairs_with_others():
    wrote = [("a", "b"), ("b", "a"), ("a", "b"), ("a", "a")]
    # a wins once, loses once, and ties once, which is no win; by both the same says nothing
    scores = np.array([[1.0, 0.0], [1.0, 0.0], [2.0, 2.0], [5.0, 0.0]])
    found = mismatch_degrees(scores, wrote, {"a": 1600.0, "b": 1200.0})
    assert found["a"] == pytest.approx((1 / 3 - 10 / 11) / (10 / 11))
    assert found["b"] == pytest.approx((1 / 3 - 1 / 11) / (10 / 11))


def test_one_score_each_has_an_offset_in_closed_form():
    # sigmoid((3 + o_a - 1 - o_b) / T) = 10/11, so o_a - o_b = T log 10 - 2
    offsets = calibrating_offsets({"a": [3.0], "b": [1.0]}, {"a": 1600, "b": 1200}, temperature=0.1)
    assert offsets["a"] - offsets["b"] == pytest.approx(0.1 * math.log(10) - 2, abs=1e-6)
    assert offsets["a"] + offsets["b"] == pytest.approx(0.0, abs=1e-9)
    hotter = calibrating_offsets({"a": [3.0], "b": [1.0]}, {"a": 1600, "b": 1200}, temperature=1.0)
    assert hotter["a"] - hotter["b"] == pytest.approx(math.log(10) - 2, abs=1e-6)


def test_all_replies_of_one_are_compared_with_all_of_the_other():
    # four pairs, of which the first model wins all but 0 against 5: each by far, so that W is 3/4
    rate, slope = win_rate(np.array([0.0, 10.0]), np.array([-5.0, 5.0]), 0.0, 0.1)
    assert rate == pytest.approx(0.75)
    near, _ = win_rate(np.array([0.0, 10.0]), np.array([-5.0, 5.0]), 4.9, 0.1)
    ahead, slope = win_rate(np.array([0.0, 10.0]), np.array([-5.0, 5.0]), 4.95, 0.1)
    assert (ahead - near) / 0.05 == pytest.approx(slope, rel=0.3)


SCORES = {name: np.random.default_rng(seed).normal(mean, 1.0, 200 + 50 * seed) for seed, (name, mean) in enumerate(
    {"low": 0.0, "overrated": 2.5, "high": 1.0}.items()
)}  # fmt: skip
ELO = {"low": 1000.0, "overrated": 1050.0, "high": 1300.0}


def network_offsets(scores, elo, steps: int) -> torch.Tensor:
    """As the released code finds them: a network for a constant input, and the mean squared error with the diagonal."""
    torch.manual_seed(0)
    names = list(scores)
    sizes = (len(names), 64, 32, len(names))
    layers = [torch.nn.Linear(a, b) for a, b in itertools.pairwise(sizes)]
    network = torch.nn.Sequential(layers[0], torch.nn.ReLU(), layers[1], torch.nn.ReLU(), layers[2])
    adam = torch.optim.Adam(network.parameters(), lr=0.01)
    wanted = torch.tensor([[expected_win_rate(elo[a], elo[b]) if a != b else 0.0 for b in names] for a in names])
    table = [torch.tensor(scores[name], dtype=torch.float32) for name in names]
    for _ in range(steps):
        o = network(torch.zeros(len(names)))
        rates = [
            [torch.sigmoid(((x + o[i])[:, None] - (y + o[j])) / 0.1).mean() if i != j else torch.zeros(()) for j, y in
             enumerate(table)] for i, x in enumerate(table)
        ]  # fmt: skip
        loss = (torch.stack([torch.stack(row) for row in rates]) - wanted).square().mean()
        adam.zero_grad()
        loss.backward()
        adam.step()
    return (o - o.mean()).detach()


@pytest.mark.slow
def test_the_network_of_the_released_code_ends_at_the_same_offsets():
    found = calibrating_offsets(SCORES, ELO)
    network = network_offsets(SCORES, ELO, steps=100)
    assert [found[name] for name in SCORES] == pytest.approx(network.tolist(), abs=0.06)
    assert found["overrated"] < min(found["low"], found["high"]) - 1.0


def test_win_rates_agree_with_the_ratings_afterwards():
    offsets = calibrating_offsets(SCORES, ELO)
    for a in SCORES:
        for b in SCORES:
            if a != b:
                rate, _ = win_rate(SCORES[a], SCORES[b], offsets[a] - offsets[b], 0.1)
                assert rate == pytest.approx(expected_win_rate(ELO[a], ELO[b]), abs=0.04)


def test_many_scores_are_represented_by_their_quantiles():
    many = {"a": np.random.default_rng(0).normal(1, 1, 30000), "b": np.random.default_rng(1).normal(0, 1, 300)}
    few = {"a": many["a"][:999], "b": many["b"]}
    elo = {"a": 1200.0, "b": 1200.0}
    gap, other = ((o := calibrating_offsets(x, elo))["a"] - o["b"] for x in (many, few))
    assert gap == pytest.approx(other, abs=0.1)
    assert gap == pytest.approx(np.median(many["b"]) - np.median(many["a"]), abs=0.1)


def test_mistakes_are_said():
    with pytest.raises(RewardlabError, match="no Elo rating of b: give one"):
        calibrating_offsets({"a": [1.0], "b": [1.0]}, {"a": 1})
    with pytest.raises(RewardlabError, match="all replies are by a"):
        calibrating_offsets({"a": [1.0]}, {"a": 1})
    with pytest.raises(RewardlabError, match="a reply of b has a score that is not finite"):
        calibrating_offsets({"a": [1.0], "b": [math.nan]}, {"a": 1, "b": 2})


def test_a_table_is_rows_of_models_and_ratings(tmp_path):
    (tmp_path / "a.csv").write_text("model,elo\nx,1200\ny,1100.5\n")
    # as the released code keeps it
    (tmp_path / "b.json").write_text(json.dumps([{"model_name": "x", "model_path": "", "arena_score": 1273}]))
    assert elo_table(tmp_path / "a.csv") == {"x": 1200.0, "y": 1100.5}
    assert elo_table(tmp_path / "b.json") == {"x": 1273.0}
    (tmp_path / "c.csv").write_text("model,elo\nx,high\n")
    with pytest.raises(RewardlabError, match=r"c.csv, line 2: a rating is a row with columns model"):
        elo_table(tmp_path / "c.csv")


def test_offsets_that_take_many_steps_to_find_are_found():
    # each step that helps makes the next one freer, until the matrix of the equations had no inverse
    scores = {
        "a": [-3.0524464982219657, -8.440145286732685],
        "b": [0.09473914789202754, 0.11452741174389615, 0.12541017450944672, 0.11089083777382362],
        "c": [2.416466281078672],
    }
    elo = {"a": 1223.3077387294238, "b": 1643.9139762339007, "c": 1240.0990845769848}
    offsets = calibrating_offsets(scores, elo)
    for first, second in itertools.combinations(scores, 2):
        ahead = offsets[first] - offsets[second]
        rate, _ = win_rate(np.array(scores[first]), np.array(scores[second]), ahead, 0.1)
        assert rate == pytest.approx(expected_win_rate(elo[first], elo[second]), abs=0.1)
