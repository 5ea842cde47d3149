"""Credit by terms and by turns, against numbers worked out by hand."""

from __future__ import annotations

import pytest
import torch

from rewardlab.core import Batch, Events, Run
from rewardlab.credit.group import center, scale_by_std
from rewardlab.credit.terms import by_term, each_term
from rewardlab.credit.turns import over_turns, turn_of, turn_sums, turn_to_go
from rewardlab.credit.value import to_go
from rewardlab.errors import RewardlabError

RUN = Run(None)


def batch(rows: int, mask: list[list[int]], terms: dict[str, tuple[list[list[float]], float]]) -> Batch:
    """One group; a term has an event wherever its number is not NaN."""
    where = torch.tensor(mask).bool()
    events = {}
    for name, (table, weight) in terms.items():
        x = torch.tensor(table)
        events[name] = Events(x.nan_to_num(), ~x.isnan(), weight)
    total = sum((e.weight * e.reward for e in events.values()), torch.zeros(where.shape))
    given = torch.stack([e.rewarded for e in events.values()]).any(0)
    ids, group = torch.zeros(where.shape, dtype=torch.long), torch.zeros(rows, dtype=torch.long)
    return Batch(ids, where, torch.full((rows,), where.shape[1]), torch.zeros(where.shape), total, given, group, events)


NO = float("nan")


def test_each_term_has_statistics_of_its_own_and_keeps_its_weight():
    # correct: 1, 0 -> centred +-0.5.   short: 10, 30 -> centred -+10.   A = 1 * correct + 0.1 * short at the last decision
    b = batch(2, [[1, 1], [1, 1]], {"correct": ([[NO, 1.0], [NO, 0.0]], 1.0), "short": ([[NO, 10.0], [NO, 30.0]], 0.1)})
    a = each_term(chain=center())(b.reward, b, RUN)
    assert a.tolist() == [[0.0, pytest.approx(0.5 - 1.0)], [0.0, pytest.approx(-0.5 + 1.0)]]


def test_normalising_terms_apart_tells_rows_apart_that_their_sum_does_not():
    # sums are 1, 1, 0: rows 0 and 1 earn the same; by terms, the rarer reward (row 1's) is worth more
    b = batch(3, [[1], [1], [1]], {"x": ([[1.0], [0.0], [0.0]], 1.0), "y": ([[0.0], [1.0], [0.0]], 1.0)})
    b.terms["y"].reward[:] = torch.tensor([[0.0], [4.0], [2.0]])
    a = each_term(chain=center() >> scale_by_std(eps=1e-12))(b.reward, b, RUN)[:, 0]
    # x: mean 1/3, std sqrt(((2/3)^2 + 2 (1/3)^2) / 2) = 0.57735 -> 1.1547, -0.57735, -0.57735;   y: mean 2, std 2 -> -1, 1, 0
    assert a.tolist() == pytest.approx([1.1547 - 1, -0.57735 + 1, -0.57735], abs=1e-4)


def test_by_term_gives_each_term_its_own_chain_and_refuses_one_that_is_not_there():
    b = batch(2, [[1, 1], [1, 1]], {"correct": ([[NO, 1.0], [NO, 0.0]], 1.0), "steps": ([[2.0, 4.0], [0.0, 0.0]], 0.5)})
    a = by_term(chains={"correct": center() >> to_go(), "steps": to_go()})(b.reward, b, RUN)
    # correct: +-0.5 everywhere;  steps to go: 6, 4 and 0, 0, each times 0.5
    assert a.tolist() == [[3.5, 2.5], [-0.5, -0.5]]
    with pytest.raises(RewardlabError, match="stepps"):
        by_term(chains={"stepps": to_go()})(b.reward, b, RUN)


MASK = torch.tensor([[0, 1, 1, 0, 1, 0, 1], [0, 0, 1, 1, 1, 1, 0]]).bool()


def test_turns_are_told_apart_by_what_is_read_between_them():
    assert turn_of(MASK).tolist() == [[-1, 0, 0, 0, 1, 1, 2], [-1, -1, 0, 0, 0, 0, 0]]
    sums = turn_sums(torch.arange(14.0).view(2, 7), MASK)
    assert sums.tolist() == [[3.0, 4.0, 6.0], [9 + 10 + 11 + 12, 0, 0]]
    assert over_turns(sums, MASK)[0].tolist() == [0, 3, 3, 0, 4, 0, 6]


def test_turn_returns_discount_by_turns_not_by_tokens():
    r = torch.tensor([[0, 0, 1.0, 0, 2.0, 0, 4.0], [0, 0, 0, 0, 0, 8.0, 0]])
    b = batch(2, MASK.int().tolist(), {"paid": (r.tolist(), 1.0)})
    # row 0: G_2 = 4, G_1 = 2 + 0.5 * 4 = 4, G_0 = 1 + 0.5 * 4 = 3
    assert turn_to_go(gamma=0.5)(r, b, RUN).tolist() == [[0, 3, 3, 0, 4, 0, 4], [0, 0, 8, 8, 8, 8, 0]]
