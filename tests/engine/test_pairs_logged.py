"""What a step on recorded pairs is logged as: how many of them are told apart, and by how much."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from rewardlab.core import Batch, Outputs, Trajectory, ask
from rewardlab.engine.stats import Stats
from rewardlab.report.curves import PAIRS, sections

PROBLEMS = [ask("a"), ask("b"), ask("c")]


def batch_of(rows: list[tuple[int, str]], ref: list[float] | None = None) -> Batch:
    """One decision a row, after one token of prompt.  rows: number of the problem, and the tag.  ref: log-prob of the decision."""
    n = len(rows)
    mask = torch.tensor([[False, True]] * n)
    zeros = torch.zeros(n, 2)
    columns = {} if ref is None else {"ref": torch.tensor([[-9.0, x] for x in ref])}
    trajectories = [(replace(Trajectory(PROBLEMS[i]), tag=tag), None) for i, tag in rows]
    group = torch.unique(torch.tensor([i for i, _ in rows]), return_inverse=True)[1]
    return Batch(zeros.long(), mask, torch.full((n,), 2), zeros, zeros, zeros.bool(), group, rows=trajectories, columns=columns)


def logged(batch: Batch, *parts: slice, logprobs: list[float] | None = None, values: list[float] | None = None) -> dict[str, float]:
    stats = Stats()
    for part in parts or (slice(None),):
        rows = torch.arange(len(batch))[part]
        said = None if logprobs is None else torch.tensor([[-7.0, x] for x in logprobs])[rows]
        worth = None if values is None else torch.tensor([[5.0, x] for x in values])[rows]
        stats.add({"loss": torch.zeros(())}, Outputs(logprobs=said, value=worth), batch[rows])
    return {k: v for k, v in stats.means().items() if k in PAIRS or k not in ("loss", "drift", "ratio_far", "kl")}


PAIR_ROWS = [(0, "chosen"), (0, "rejected"), (1, "chosen"), (1, "rejected")]


@pytest.mark.parametrize("parts", [(), (slice(0, 2), slice(2, 4))])
def test_pairs_are_told_apart_by_what_their_replies_have_gained_over_the_reference(parts):
    # log pi/ref: 1, -1 | -0.5, -0.5
    found = logged(batch_of(PAIR_ROWS, ref=[-2.0, -1.0, -1.0, -1.0]), *parts, logprobs=[-1.0, -2.0, -1.5, -1.5])
    assert found == pytest.approx({"preferred": 0.75, "margin": 1.0, "chosen_gain": 0.25, "rejected_gain": -0.75})


def test_without_a_reference_the_mean_log_prob_tells_them_apart():
    assert logged(batch_of(PAIR_ROWS), logprobs=[-1.0, -2.0, -1.5, -1.0]) == pytest.approx({"preferred": 0.5, "margin": 0.25})


def test_a_reward_model_tells_them_apart_by_its_score_at_the_end():
    assert logged(batch_of(PAIR_ROWS), values=[3.0, 1.0, 0.0, 2.0]) == pytest.approx({"preferred": 0.5, "margin": 0.0})


def test_single_judged_replies_have_gains_and_no_pairs():
    batch = batch_of([(0, "chosen"), (1, "rejected"), (2, "rejected")], ref=[-2.0, -2.0, -2.0])
    found = logged(batch, logprobs=[-1.0, -2.5, -3.5])
    assert found == pytest.approx({"chosen_gain": 1.0, "rejected_gain": -1.0})


@pytest.mark.parametrize("tag", ["", "solution"])
def test_other_rows_are_no_pairs(tag):
    assert logged(batch_of([(0, tag), (0, tag)], ref=[-1.0, -1.0]), logprobs=[-1.0, -2.0]) == {}


def test_they_stand_on_the_page():
    rows = [{"step": i, "preferred": 0.5 + i / 10, "margin": 1.0 * i} for i in range(3)]
    titles = [panel["title"] for section in sections(rows) for panel in section["panels"]]
    assert titles == ["Pairs told apart", "Margin of pairs"]
