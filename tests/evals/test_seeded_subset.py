"""A run's own share of the held-out problems."""

from __future__ import annotations

import pytest

from rewardlab.core import Run, ask, measure
from rewardlab.errors import RewardlabError
from rewardlab.evals.seeded_subset import own_share


@measure
def numbers(problems, run):
    return {"sum": float(sum(p.answer for p in problems)), "n": float(len(problems))}


def found(n: int, seed: int, parts: int = 3) -> dict[str, float]:
    return own_share(inner=numbers(), parts=parts)([ask("q", 10**i) for i in range(n)], Run(policy=None, seed=seed))


def test_neighbouring_seeds_share_no_problem_and_all_are_seen():
    assert [found(7, seed)["sum"] for seed in (99, 100, 101, 102)] == [1001001, 10010, 100100, 1001001]
    assert [found(7, seed)["n"] for seed in (0, 1, 2)] == [3, 2, 2]


def test_a_part_without_a_problem_is_an_error():
    with pytest.raises(RewardlabError, match="2 problems are too few for 3 parts"):
        found(2, seed=2)
