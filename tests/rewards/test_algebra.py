"""OperatorFactory on rewards: their numbers by hand, and the laws that hold for all of them."""

from __future__ import annotations

import json
import math
import re
import statistics
import textwrap
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from rewardlab.core import Recipe, Run, Score, Term, Trajectory, Turn, Update, ask
from rewardlab.credit.group import center
from rewardlab.credit.terms import each_term
from rewardlab.engine.collate import collate
from rewardlab.engine.step import Ops
from rewardlab.errors import NotFinite, RewardlabError
from rewardlab.registry import load_part
from rewardlab.registry.formula import read_reward
from rewardlab.report.curves import sections
from rewardlab.rewards import algebra
from rewardlab.rewards.algebra import (
    aggregate,
    clip,
    constrained,
    distance_to_best,
    lexicographic,
    maximum,
    minimum,
    normalised,
    rank,
    scheduled,
    share,
    signed,
    threshold,
)
from rewardlab.rewards.operator import OperatorFactory, operator
from rewardlab.rewards.reward import reward
from rewardlab.runs.config import RunConfig
from rewardlab.util.serialize import pack, unpack
from rewardlab.verifiers.contract import Verdict, verifier

ROLLOUT = Trajectory(ask("how many?", "3"), (Turn("policy", np.arange(4), text="three"),))


@reward
def a(trajectory):
    return trajectory.problem.meta["a"]


@reward
def b(trajectory):
    return trajectory.problem.meta["b"]


@reward
def c(trajectory):
    return trajectory.problem.meta["c"]


@reward
def dense(trajectory):
    """Rewards of steps, and an outcome where the problem gives one."""
    steps, outcome = trajectory.problem.meta["dense"]
    return Score(outcome, steps)


def group(**columns):
    """One group whose rollouts earn these numbers, term by term."""
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    return [replace(ROLLOUT, problem=ask("how many?", "3", **row)) for row in rows]


def paid(part, run=None, **columns):
    return [s.value for s in part([group(**columns)], run)[0]]


def one(part, run=None, **numbers):
    return part([group(**{k: [v] for k, v in numbers.items()})], run)[0][0]


number = st.integers(-40, 40).map(lambda n: n / 4)
"""Multiples of 1/4, whose sums and products are exact."""
value = st.none() | number
column = st.lists(number, min_size=1, max_size=6)
judged = st.lists(value, min_size=2, max_size=6)

UNARY = {
    "clip": lambda r: clip(r, low=-2.0, high=3.0), "hard": lambda r: threshold(r, at=0.5),
    "soft": lambda r: threshold(r, at=0.5, soft=2.0), "scheduled": lambda r: scheduled(r, start=0.5),
    "group": lambda r: normalised(r), "running": lambda r: normalised(r, within="running"), "rank": lambda r: rank(r),
    "distance": lambda r: distance_to_best(r), "share": lambda r: share(clip(r, low=0.0)),
    "aggregate": lambda r: aggregate(r, by="min"), "scaled": lambda r: -0.5 * r, "shifted": lambda r: 1 - r,
}  # fmt: skip
BINARY = {
    "+": lambda x, y: x + y, "-": lambda x, y: x - y, "*": lambda x, y: x * y, ">>": lambda x, y: x >> y,
    "minimum": lambda x, y: minimum(x, y), "maximum": lambda x, y: maximum(x, y), "lexicographic": lambda x, y: lexicographic(x, y),
    "constrained": lambda x, y: constrained(x, y, limit=0.25, start=2.0),
}  # fmt: skip


@st.composite
def expressions(draw, names=("a", "b", "c")):
    """An expression that uses each of these rewards once, with operators on and between them."""
    if len(names) == 1:
        made = {"a": a(), "b": b(), "c": c()}[names[0]]
    else:
        at = draw(st.integers(1, len(names) - 1))
        made = draw(st.sampled_from(list(BINARY.values())))(draw(expressions(names[:at])), draw(expressions(names[at:])))
    return draw(st.sampled_from([lambda r: r, *UNARY.values()]))(made)


triples = st.lists(st.tuples(value, value, value), min_size=1, max_size=4)


def constants_of(part) -> bool:
    return "1 - " in str(part)


# ---- laws of all ------------------------------------------------------------------------------------------------------


@given(expressions(), triples)
def test_every_term_is_kept_once_and_unweighted_whatever_the_expression(part, rows):
    table = dict(zip("abc", zip(*rows, strict=True), strict=True))
    for i, score in enumerate(part([group(**table)])[0]):
        assert {k: score.terms[k].value for k in "abc"} == {k: table[k][i] for k in "abc"}


@given(expressions(), triples)
def test_a_score_is_the_sum_of_its_terms_by_their_weights(part, rows):
    for score in part([group(**dict(zip("abc", zip(*rows, strict=True), strict=True)))])[0]:
        if score.value is not None and not constants_of(part):
            # what a closed gate did not ask for may be missing, and weighs nothing
            terms = [t.weight * t.value for t in score.terms.values() if t.weight]
            assert score.value == pytest.approx(math.fsum(terms))


@given(expressions(), triples)
def test_a_rollout_without_a_verdict_never_earns_a_number(part, rows):
    spreads = ">>" not in str(part)
    for score, row in zip(part([group(**dict(zip("abc", zip(*rows, strict=True), strict=True)))])[0], rows, strict=True):
        assert score.value is not None or None in row
        assert (score.value is None) == (None in row) or not spreads


@given(expressions(), triples)
def test_an_expression_survives_json_and_pays_the_same(part, rows):
    again = load_part(json.loads(json.dumps(part.to_json())))
    table = [group(**dict(zip("abc", zip(*rows, strict=True), strict=True)))]
    assert (again, str(again)) == (part, str(part))
    assert again(table) == part(table)


@given(expressions(), triples, st.randoms(use_true_random=False))
def test_what_is_paid_does_not_depend_on_the_order_of_rollouts(part, rows, random):
    order = random.sample(range(len(rows)), len(rows))
    there = paid(part, **dict(zip("abc", zip(*rows, strict=True), strict=True)))
    mixed = paid(part, **dict(zip("abc", zip(*(rows[i] for i in order), strict=True), strict=True)))
    assert mixed == [x if x is None else pytest.approx(x) for x in (there[i] for i in order)]


@pytest.mark.parametrize("make", UNARY.values(), ids=list(UNARY))
@given(rows=judged)
def test_who_has_no_verdict_does_not_exist_for_the_others(make, rows):
    known = [x for x in rows if x is not None]
    alone = iter(paid(make(a()), a=known) if known else [])
    assert paid(make(a()), a=rows) == [None if x is None else next(alone) for x in rows]


@pytest.mark.parametrize("make", UNARY.values(), ids=list(UNARY))
def test_a_step_without_rollouts_is_scored_too(make):
    for groups in ([], [[]], [[], group(a=[None])]):
        scores = make(a())(groups, Run(None))
        assert [[s.value for s in row] for row in scores] == [[None for _ in g] for g in groups]


# ---- laws of some -----------------------------------------------------------------------------------------------------


@given(value, value, value)
def test_sums_products_gates_and_extremes_are_associative(x, y, z):
    numbers = {"a": x, "b": y, "c": z}
    for join in (BINARY[k] for k in ("+", "*", ">>", "minimum", "maximum")):
        left, right = join(join(a(), b()), c()), join(a(), join(b(), c()))
        assert one(left, **numbers).value == one(right, **numbers).value


@given(value, value)
def test_sums_products_and_extremes_commute(x, y):
    for join in (BINARY[k] for k in ("+", "*", "minimum", "maximum")):
        assert one(join(a(), b()), a=x, b=y).value == one(join(b(), a()), a=x, b=y).value


@given(number, number, number, st.sampled_from([-2, 0, 0.5, 3]))
def test_multiplication_distributes_over_sums(x, y, z, k):
    numbers = {"a": x, "b": y, "c": z}
    assert one(k * (a() + b()), **numbers) == one(k * a() + k * b(), **numbers)
    both = a() * c() + b() * c().named("again")
    assert one((a() + b()) * c(), **numbers).value == one(both, **numbers).value


@given(number, number)
def test_scaling_by_what_is_not_negative_goes_into_extremes_and_closed_or_open_gates(x, y):
    for join in (minimum, maximum, lambda p, q: p >> q):
        assert one(2 * join(a(), b()), a=x, b=y).value == one(join(2 * a(), 2 * b()), a=x, b=y).value


@given(number, number, number)
def test_extremes_bound_each_other(x, low, high):
    low, high = sorted((low, high))
    bounded = clip(a(), low=low, high=high)
    assert one(bounded, a=x).value == one(clip(bounded, low=low, high=high), a=x).value
    assert one(bounded, a=x).value == one(maximum(low, minimum(a(), high)), a=x).value
    assert one(minimum(a(), b()) + maximum(a().named("c"), b().named("d")), a=x, b=low).value == x + low
    assert one(clip(a()), a=x).value == x


@given(column, st.sampled_from([0.25, 1, 8]), number)
def test_an_order_is_blind_to_scale_and_shift(xs, k, shift):
    assert paid(rank(k * a() + shift), a=xs) == paid(rank(a()), a=xs) == paid(lexicographic(a()), a=xs)
    assert paid(rank(-a()), a=xs) == pytest.approx([1 - x for x in paid(rank(a()), a=xs)])
    assert paid(distance_to_best(a() + shift), a=xs) == paid(distance_to_best(a()), a=xs)


@given(st.lists(st.tuples(number, number), min_size=2, max_size=6))
def test_no_later_reward_outweighs_an_earlier_one(rows):
    xs, ys = zip(*rows, strict=True)
    earned = paid(lexicographic(a(), b()), a=xs, b=ys)
    for i, j in ((i, j) for i in range(len(rows)) for j in range(len(rows))):
        assert (earned[i] > earned[j]) == (rows[i] > rows[j])
    assert statistics.fmean(earned) == pytest.approx(0.5)


@given(column)
def test_shares_add_up_and_the_best_is_nowhere_below_itself(xs):
    shares = paid(share(clip(a(), low=0.0)), a=xs)
    assert sum(shares) == pytest.approx(float(max(xs) > 0))
    distances = paid(distance_to_best(a()), a=xs)
    assert max(distances) == 0
    assert [x + max(xs) for x in distances] == xs


@given(column)
def test_a_normalised_group_has_no_mean_and_at_most_unit_deviation(xs):
    found = paid(normalised(a()), a=xs)
    assert statistics.fmean(found) == pytest.approx(0, abs=1e-9)
    assert len(xs) < 2 or statistics.stdev(found) <= 1


@given(st.lists(column, min_size=1, max_size=4))
def test_running_statistics_are_those_of_all_rewards_so_far(steps):
    run, seen = Run(None, steps=len(steps)), []
    for run.step, xs in enumerate(steps):
        seen += xs
        mean, std = statistics.fmean(seen), statistics.stdev(seen) if len(seen) > 1 else 0.0
        assert paid(normalised(a(), within="running"), run, a=xs) == pytest.approx(
            [(x - mean) / (std + 1e-4) for x in xs], abs=1e-6
        )


@given(number, st.floats(0.01, 10))
def test_a_soft_threshold_is_half_at_its_place_symmetric_and_never_overflows(x, soft):
    part = threshold(a(), at=1.0, soft=soft)
    assert one(part, a=1.0).value == 0.5
    assert one(part, a=1 + x).value + one(part, a=1 - x).value == pytest.approx(1.0)
    assert [one(part, a=far).value for far in (-1e300, 1e300)] == [0.0, 1.0]
    assert one(threshold(a(), at=1.0, soft=1e-9), a=1 + x).value == pytest.approx(float(x > 0) if x else 0.5)


@given(st.lists(st.lists(number, min_size=1, max_size=4), min_size=1, max_size=5))
def test_a_multiplier_is_never_negative(steps):
    run = Run(None, steps=len(steps))
    for run.step, costs in enumerate(steps):
        part = constrained(a(), b(), limit=0.5, lr=1.0, start=1.0)
        assert one(part, run, a=0.0, b=costs[0]).terms["b"].weight <= 0


# ---- numbers by hand --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("part", "expected"),
    [
        # a: 1 0 .5 None 1;  b: 2 -1 0 5 None
        (a() + 2 * b(), [5, -2, 0.5, None, None]),
        (1 - a(), [0, 1, 0.5, None, 0]),
        (a() * b(), [2, 0, 0, None, None]),
        (a() >> b(), [2, 0, 0, None, None]),
        (a() >> 1 + 0.5 * b(), [2, 0, 1, None, None]),
        (a() >> 3, [3, 0, 3, None, 3]),
        (minimum(a(), b()), [1, -1, 0, None, None]),
        (minimum(a(), b(), 0.25), [0.25, -1, 0, None, None]),
        (maximum(a(), b()), [2, 0, 0.5, None, None]),
        (clip(b(), low=-0.5, high=1), [1, -0.5, 0, 1, None]),
        (clip(b(), high=1), [1, -1, 0, 1, None]),
        (threshold(a(), at=0.5), [1, 0, 1, None, 1]),
        (threshold(a(), at=0.5, soft=0.5), [1 / (1 + math.exp(-1)), 1 / (1 + math.exp(1)), 0.5, None, 1 / (1 + math.exp(-1))]),
        # of four, 1 and 1 beat two and tie with one
        (rank(a()), [2.5 / 3, 0, 1 / 3, None, 2.5 / 3]),
        (lexicographic(a(), b()), [1, 0, 0.5, None, None]),
        (lexicographic(threshold(a(), at=0.25), b()), [1, 0, 0.5, None, None]),
        (share(a()), [0.4, 0, 0.2, None, 0.4]),
        (distance_to_best(a()), [0, -1, -0.5, None, 0]),
        # mean 1.5, squares .25 + 6.25 + 2.25 + 12.25 = 21, over 3: std sqrt(7)
        (normalised(b(), eps=0.0), [0.5 / 7**0.5, -2.5 / 7**0.5, -1.5 / 7**0.5, 3.5 / 7**0.5, None]),
        (normalised(b(), within="running", eps=0.0), [0.5 / 7**0.5, -2.5 / 7**0.5, -1.5 / 7**0.5, 3.5 / 7**0.5, None]),
        (scheduled(b(), start=0.5, end=2), [1, -0.5, 0, 2.5, None]),
        # the mean cost of who has both verdicts is (2 - 1 + 0) / 3
        (constrained(a(), b(), limit=0, lr=0.3, start=0.9), [-1, 1, 0.5, None, None]),
        (aggregate(a()), [1, 0, 0.5, None, 1]),
    ],
    ids=str,
)
def test_what_is_paid_by_hand(part, expected):
    found = paid(part, a=[1, 0, 0.5, None, 1], b=[2, -1, 0, 5, None])
    assert found == [x if x is None else pytest.approx(x) for x in expected]


def test_a_group_is_compared_with_itself_alone():
    groups = [group(a=[1, 3]), group(a=[10, 10, 40])]
    for part, expected in {
        rank(a()): [[0, 1], [0.25, 0.25, 1]],
        share(a()): [[0.25, 0.75], [1 / 6, 1 / 6, 2 / 3]],
        distance_to_best(a()): [[-2, 0], [-30, -30, 0]],
        normalised(a(), eps=0.0): [[-(0.5**0.5), 0.5**0.5], [-1 / 3**0.5, -1 / 3**0.5, 2 / 3**0.5]],
    }.items():
        assert [[s.value for s in row] for row in part(groups)] == [pytest.approx(row) for row in expected]


@pytest.mark.parametrize(
    ("shape", "weights"),
    [
        ({"shape": "linear"}, [1, 0.75, 0.5, 0.25]),
        ({"shape": "cosine"}, [1, (2 + 2**0.5) / 4, 0.5, (2 - 2**0.5) / 4]),
        ({"shape": "step", "until": 0.5}, [1, 1, 0, 0]),
        ({"shape": "exponential", "end": 0.0625}, [1, 0.5, 0.25, 0.125]),
        ({"since": 0.25, "until": 0.5}, [1, 1, 0, 0]),
    ],
    ids=str,
)
def test_a_schedule_follows_the_run_and_is_the_weight_of_its_terms(shape, weights):
    run, part = Run(None, steps=4), scheduled(a() + 2 * b(), **{"start": 1.0, "end": 0.0, **shape})
    for run.step, weight in enumerate(weights):
        score = one(part, run, a=4.0, b=1.0)
        assert score.value == pytest.approx(6 * weight)
        assert [score.terms[k].weight for k in "ab"] == pytest.approx([weight, 2 * weight])
        assert run.metrics["weight/a+b"] == pytest.approx(weight)


def test_a_multiplier_climbs_while_the_cost_is_above_its_limit_and_comes_back_to_zero():
    run, part = Run(None, steps=4), constrained(a(), b(), limit=1.0, lr=0.5)
    multipliers = []
    for run.step, costs in enumerate([[3, 5], [1, None], [0, 0], [None, None]]):
        rows = part([group(a=[1.0, 1.0], b=costs)], run)[0]
        multipliers.append(-run.metrics["weight/b"])
        assert rows[0].value == (None if costs[0] is None else 1 - multipliers[-1] * costs[0])
    # .5 * (4 - 1);  + 0;  - .5;  no cost is known, nothing moves
    assert multipliers == [1.5, 1.5, 1.0, 1.0]
    assert "weight/a" not in run.metrics


def test_old_rewards_fade_from_running_statistics_by_their_decay():
    run, part = Run(None, steps=2), normalised(a(), within="running", decay=0.5, eps=0.0)
    paid(part, run, a=[0, 0, 4, 4])
    run.step = 1
    # count 4/2 + 2, mean (2*2 + 2*8)/4 = 5, squares 16/2 + 0 + 36*2*2/4 = 44, over 3
    assert paid(part, run, a=[8, 8]) == pytest.approx([3 / (44 / 3) ** 0.5] * 2)


def test_statistics_of_the_start_are_frozen_at_the_first_step_in_which_rewards_vary():
    run, part = Run(None, steps=4), normalised(a(), within="start", eps=1e-9)
    assert paid(part, run, a=[3, 3]) == [0, 0]
    run.step = 1
    # mean 2, unbiased variance 2
    assert paid(part, run, a=[1, 3]) == pytest.approx([-(0.5**0.5), 0.5**0.5])
    # scoring the step again changes nothing, nor do the rewards that come
    assert paid(part, run, a=[1, 3]) == pytest.approx([-(0.5**0.5), 0.5**0.5])
    run.step = 2
    assert paid(part, run, a=[4, 4]) == pytest.approx([2**0.5, 2**0.5])
    run.memory = json.loads(json.dumps(run.memory))
    run.step = 3
    assert paid(part, run, a=[0, 9]) == pytest.approx([-(2**0.5), 7 / 2**0.5])


def test_a_gates_closed_door_asks_for_no_verdict_behind_it():
    assert paid(a() >> b() >> c(), a=[0, 1, 1, 1], b=[None, 0, None, 2], c=[None, None, 1, 5]) == [0, 0, None, 5]


# ---- terms ------------------------------------------------------------------------------------------------------------


def test_what_is_no_sum_has_a_term_of_its_own_and_keeps_the_others_at_weight_0():
    terms = one(0.5 * clip(2 * a(), high=1.0) + b(), a=3.0, b=4.0).terms
    assert terms == {"a": Term(3.0, weight=None), "clip(a)": Term(1.0, weight=0.5), "b": Term(4.0)}
    assert set(one((2 * (a() + b())) * c(), a=1, b=1, c=1).terms) == {"a", "b", "c", "(a+b)*c"}
    assert set(one((a() >> b()) >> c(), a=1, b=1, c=1).terms) == {"a", "b", "c", "a>>b>>c"}
    assert set(one(minimum(a() + b(), 1), a=1, b=1).terms) == {"a", "b", "minimum(a+b,1)"}


def test_a_name_goes_to_the_whole_and_stands_before_its_details():
    assert set(one(clip(a(), high=1.0).named("x"), a=2.0).terms) == {"x", "x.a"}
    assert set(one((a() * b()).named("x"), a=1, b=1).terms) == {"x", "x.a", "x.b"}
    assert set(one(scheduled(clip(a())).named("x"), a=1).terms) == {"x", "x.a"}
    assert set(one((a() + clip(b())).named("x"), a=1, b=1).terms) == {"x.a", "x.b", "x.clip(b)"}


def test_a_verifier_under_another_name_keeps_its_details():
    @verifier
    def half_right(response, answer):
        return Verdict(True, "three", "it is", parts={"share": 0.5})

    score = one(half_right().named("correct"), a=0.0)
    assert score.terms == {"correct": Term(1.0), "correct.share": Term(0.5, weight=None)}
    assert one(2 * clip(half_right() + 1, high=0.5), a=0.0).extracted == "three"


def test_names_are_unique_until_named():
    for part in (clip(a()) + a(), minimum(a(), a()), constrained(a(), a(), limit=1)):
        with pytest.raises(RewardlabError, match=r"two rewards are named 'a'.*\.named"):
            one(part, a=1.0)
    assert set(one(minimum(a(), a().named("again")), a=1.0).terms) == {"a", "again", "minimum(a,again)"}


def test_a_new_name_under_which_two_details_would_meet_is_refused():
    @reward
    def half(trajectory):
        return Score(terms={name: Term(1.0) for name in ("half", "half.share", "share")})

    with pytest.raises(RewardlabError, match=r"two rewards are named 'x\.share'"):
        one(half().named("x"), a=1.0)


def test_terms_apart_get_the_credit_of_what_is_paid_not_of_what_it_was_made_of():
    part = 2 * clip(a(), high=1.0) + b()
    groups = [group(a=[5.0, 0.0], b=[0.0, 3.0])]
    batch = collate(groups, part(groups), torch.device("cpu"))
    # 2 * (1 - .5) - 1.5, and the other way round
    assert each_term(chain=center())(batch.reward, batch, None).sum(1).tolist() == [-0.5, 0.5]


def test_every_term_and_every_weight_is_plotted():
    run = Run(None, steps=2)
    part = (scheduled(a(), start=0.5) + constrained(clip(b(), high=1.0), c(), limit=0.0, lr=1.0)).named("r")
    ops = Ops(Recipe(reward=part, update=Update(lr=1e-3)), run, SimpleNamespace(), RunConfig())
    ops.score([group(a=[1, 3], b=[0, 4], c=[2, 0])])
    assert run.metrics["reward/r.a"] == 2.0
    assert run.metrics["reward/r.b"] == 2.0
    assert run.metrics["reward/r.clip(b)"] == 0.5
    assert (run.metrics["weight/a"], run.metrics["weight/c"]) == (0.5, -1.0)
    drawn = {p["title"] for s in sections([{"step": 1, **run.metrics}, {"step": 2, **run.metrics}]) for p in s["panels"]}
    assert drawn >= {"r.a", "r.b", "r.c", "r.clip(b)", "weight/a", "weight/c"}


# ---- rewards of steps -------------------------------------------------------------------------------------------------

DENSE = [([(2, 3.0), (0, -1.0)], None), ([(1, 0.5)], 4.0), ([], 2.0)]


@pytest.mark.parametrize(
    ("part", "steps", "values"),
    [
        (clip(dense(), low=0, high=2), [((0, 0), (2, 2)), ((1, 0.5),), ()], [0, 2, 2]),
        (signed(dense()), [((0, -3), (2, 5)), ((1, 0.0),), ()], [0, 7, 3]),
        (threshold(dense(), at=0.5), [((0, 0), (2, 1)), ((1, 1),), ()], [0, 1, 1]),
        (scheduled(dense(), start=2.0), [((2, 6), (0, -2)), ((1, 1),), ()], [0, 8, 4]),
        (2 - dense(), [((0, 1), (2, -3)), ((1, -0.5),), ()], [2, -2, 0]),
        (dense() >> 9, [(), (), ()], [9, 9, 9]),
        # five rewards, mean 1.7
        (
            normalised(dense(), eps=0.0), [((0, -2.7 / 3.95**0.5), (2, 1.3 / 3.95**0.5)), ((1, -1.2 / 3.95**0.5),), ()],
            [0, 2.3 / 3.95**0.5, 0.3 / 3.95**0.5],
        ),
        *(
            (aggregate(dense(), by=by), [(), (), ()], values)
            for by, values in {
                "sum": [2, 4.5, 2], "mean": [1, 2.25, 2], "min": [-1, 0.5, 2], "max": [3, 4, 2], "last": [3, 4, 2],
                "product": [-3, 2, 2],
            }.items()
        ),
    ],
    ids=str,
)  # fmt: skip
def test_rewards_of_steps_by_hand(part, steps, values):
    scores = part([group(dense=DENSE)])[0]
    assert [dict(s.steps) for s in scores] == [pytest.approx(dict(x)) for x in steps]
    assert [s.value for s in scores] == pytest.approx(values)
    assert all(s.terms["dense"].steps == tuple(d) for s, (d, _) in zip(scores, DENSE, strict=True))
    for s in scores:
        at = {t for x in s.terms.values() for t, _ in x.steps}
        if "2 - " not in str(part):
            assert s.value == pytest.approx(sum(x.weight * x.value for x in s.terms.values() if None not in (x.value, x.weight)))
        summed = {t: sum((x.weight or 0.0) * dict(x.steps).get(t, 0.0) for x in s.terms.values()) for t in at}
        assert summed == pytest.approx({t: dict(s.steps).get(t, 0.0) for t in at})


def test_an_outcome_stays_none_where_only_steps_were_rewarded():
    only, both, outcome = clip(dense(), high=0)([group(dense=[([(0, 1.0)], None), ([(0, 1.0)], 1.0), ([], 1.0)])])[0]
    assert [s.has_outcome for s in (only, both, outcome)] == [False, True, True]
    assert [s.terms["clip(dense)"].value for s in (only, both, outcome)] == [None, 0, 0]


def test_a_product_has_an_outcome_where_its_stepped_factor_has_one_be_it_0():
    both, steps = (a() * dense())([group(a=[2.0, 2.0], dense=[([(0, 1.0)], 0.0), ([(0, 1.0)], None)])])[0]
    assert both.terms["a*dense"] == Term(0.0, ((0, 2.0),))
    assert steps.terms["a*dense"] == Term(None, ((0, 2.0),))
    assert (both.has_outcome, steps.has_outcome) == (True, False)


def test_a_reward_of_no_weight_is_an_event_and_without_a_verdict_still_missing():
    part = scheduled(a(), start=0.0) + dense()
    judged, lost = part([group(a=[3.0, None], dense=[([(0, 1.0)], None)] * 2)])[0]
    assert (judged.value, judged.has_outcome, judged.total) == (0.0, True, 1.0)
    assert (lost.missing, lost.value, lost.total, lost.steps) == (True, None, None, ())


@pytest.mark.parametrize("make", [rank, share, distance_to_best, lambda r: minimum(r, 1), lambda r: lexicographic(r, a())])
def test_operators_on_whole_rollouts_refuse_rewards_of_steps_and_say_what_to_do(make):
    with pytest.raises(RewardlabError, match=r"wants one number per rollout.*aggregate"):
        one(make(dense()), dense=([(0, 1.0)], None), a=1.0)
    assert one(make(aggregate(dense())), dense=([(0, 1.0)], None), a=1.0).value is not None


def test_a_constraint_may_weigh_steps_by_what_they_sum_to():
    score = one(constrained(a(), dense(), limit=1.0, lr=1.0), Run(None), a=1.0, dense=([(0, 1.0), (3, 2.0)], None))
    assert (score.value, score.steps, score.terms["dense"].weight) == (1.0, ((0, -2.0), (3, -4.0)), -2.0)


# ---- memory -----------------------------------------------------------------------------------------------------------

REMEMBERING = [
    normalised(a(), within="running"),
    constrained(a(), b(), limit=0.5),
    normalised(a()) + constrained(b(), c(), limit=0),
]


def play(part, run, steps, rng):
    """What a few steps pay."""
    found = []
    for _ in range(steps):
        found.append(paid(part, run, **{k: rng.normal(size=4).tolist() for k in "abc"}))
        run.step += 1
    return found


@pytest.mark.parametrize("part", REMEMBERING, ids=str)
def test_a_resumed_run_pays_bit_for_bit_the_same(part):
    whole = play(part, Run(None, steps=6), 6, np.random.default_rng(0))
    rng, run = np.random.default_rng(0), Run(None, steps=6)
    first, tensors = play(part, run, 3, rng), {}
    saved = json.dumps(pack(run.memory, tensors))
    later = Run(None, steps=6, step=3, memory=unpack(json.loads(saved), tensors))
    assert first + play(part, later, 3, rng) == whole


@pytest.mark.parametrize("part", REMEMBERING, ids=str)
def test_scoring_again_and_evaluating_in_between_move_nothing(part):
    whole = play(part, Run(None, steps=4), 4, np.random.default_rng(1))
    rng, run, found = np.random.default_rng(1), Run(None, steps=4), []
    for _ in range(4):
        paid(part, run.detached(), a=[9, 8], b=[7, 6], c=[5, 4])
        rows = {k: rng.normal(size=4).tolist() for k in "abc"}
        assert paid(part, run, **rows) == paid(part, run, **rows)
        found.append(paid(part, run, **rows))
        run.step += 1
    assert found == whole


def test_what_only_looks_on_logs_nothing():
    run = Run(None)
    one(scheduled(a()), run.detached(), a=1.0)
    assert run.metrics == {}


def test_two_operators_do_not_share_a_memory():
    run = Run(None, steps=2)
    part = constrained(a(), b(), limit=1.0, lr=1.0) + constrained(a().named("a2"), b().named("b2"), limit=2.0, lr=1.0)
    for run.step, expected in enumerate([(-3.0, -2.0), (-6.0, -4.0)]):
        terms = one(part, run, a=0.0, b=4.0).terms
        assert (terms["b"].weight, terms["b2"].weight) == expected


# ---- how it is written ------------------------------------------------------------------------------------------------


def test_it_reads_like_mathematics():
    assert str(a() - 0.5 * b() - 1) == "a() - 0.5 * b() - 1"
    assert str(a() - (b() - c())) == "a() - (b() - c())"
    assert str(-a() + b()) == "-1 * a() + b()"
    assert str(1 - clip(2 * a() + b(), low=0)) == "1 - clip(2 * a() + b(), low=0)"
    assert str(a() >> (b() >> 0.5 + c())) == "a() >> b() >> 0.5 + c()"
    assert str(minimum(a(), b(), 1)) == "minimum(a(), b(), 1)"
    assert repr(scheduled(a(), end=0.0, shape="cosine") * b()) == "scheduled(a(), end=0, shape='cosine') * b()"
    assert str(sum([a(), b()])) == "a() + b()"


FORMULAS = [
    "answer_given() >> correct() + 0.1 * length_penalty(per_token=0.5)",
    "minimum(correct(), 1 + length_penalty()) * answer_given()",
    "lexicographic(correct(), clip(length_penalty(), low=-0.5)).named('r') + 2",
    "constrained(correct(), -1 * length_penalty(per_token=1), limit=40)",
    "(correct() + answer_given()) * scheduled(length_penalty(), start=1, end=0.5, shape='cosine')",
    "aggregate(correct_steps(), by='min') >> threshold(correct(), at=0.5, soft=0.1)",
]


@pytest.mark.parametrize("text", FORMULAS)
def test_what_a_reward_prints_is_read_again(text):
    assert str(read_reward(text)) == text
    assert read_reward(text) == load_part(read_reward(text).to_json())


def test_a_formula_holds_files_of_ones_own(tmp_path):
    file = tmp_path / "mine.py"
    file.write_text("def score(completions, **rest):\n    return [float(len(c)) for c in completions]\n")
    part = read_reward(f'0.5 * "{file}:score" >> 1 - answer_given()')
    assert [x.name for x in part.walk() if not x.of] == ["from_file", "Constant", "answer_given"]
    with pytest.raises(RewardlabError, match="there is no reward file"):
        read_reward('"none.py:f" + correct()')


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("corect() + answer_given()", "did you mean correct"),
        ("clip(correct(), lwo=1)", "did you mean low"),
        ("clip(correct(), low='x')", "low of clip must be a number"),
        ("clip()", "takes 1 reward, and settings by name"),
        ("constrained(correct(), limit=1)", "takes 2 rewards, and settings by name"),
        ("correct(answer_given())", "takes no other reward"),
        ("correct() ** 2", "has no meaning in a reward"),
        ("correct", None),
        ("(2 * 3)", "the same number for every reply"),
        ("(1 >> 2) * correct()", "a number has no such operator"),
        ("correct().__class__()", "has no meaning in a reward"),
        ("[correct() for x in y]", "has no meaning in a reward"),
        ("clip(correct(), low=open('x'))", "must be a number, a text, a list or a reward"),
        ("clip(correct(), **{'low': 1})", "has no meaning in a reward"),
        ("__import__('os').system('true')", "has no meaning in a reward"),
        ("correct() +", "cannot read the reward"),
        ("(" * 500, "cannot read the reward"),
        ("-" * 100_000 + "correct()", "cannot read the reward"),
    ],
)
def test_what_is_no_formula_is_refused_with_its_place(text, message):
    if message is None:
        assert str(read_reward(text)) == "correct()"
        return
    with pytest.raises(RewardlabError, match=message):
        read_reward(text)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: clip(a), "forgot to call it"),
        (lambda: one(clip(a(), low=2, high=1), a=1), "low=2 is above high=1"),
        (lambda: one(threshold(a(), at=0, soft=-1), a=1), "soft of threshold must be a number from 0 up"),
        (lambda: one(share(a()), a=-1), "cannot be shared out"),
        (lambda: one(scheduled(a(), shape="cubic"), a=1), "shape of scheduled must be linear"),
        (lambda: one(scheduled(a(), shape="exponential"), a=1), "ends above 0"),
        (lambda: one(scheduled(a(), since=0.5, until=0.5), a=1), "must come before"),
        (lambda: one(normalised(a(), within="batch"), a=1), "within of normalised must be group, running or start"),
        (lambda: one(aggregate(a(), by="median"), a=1), "by of aggregate must be sum, mean"),
        (lambda: a() + math.inf, "cannot combine"),
    ],
)
def test_settings_that_make_no_sense_are_refused(make, message):
    with pytest.raises(RewardlabError, match=message):
        make()


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_what_is_not_finite_is_named_before_it_is_put_in_order(bad):
    with pytest.raises(NotFinite, match=r"'a'.*rollout 1 of group 0"):
        paid(rank(a()), a=[1.0, bad])


def test_an_operator_of_ones_own_is_a_function_of_numbers():
    @operator(over="group")
    def above_the_mean(xs, *, by=1.0):
        return [by * float(x > statistics.fmean(xs)) for x in xs]

    assert paid(a() + above_the_mean(b(), by=2.0), a=[1, 1, None, 1], b=[1, 5, 3, None]) == [1, 3, None, None]

    @operator(over="group")
    def too_few(xs):
        return xs[:1]

    with pytest.raises(RewardlabError, match=r"too_few\(a\(\)\) gave 1 numbers for 2 rewards"):
        paid(too_few(a()), a=[1, 2])


# ---- docs/REWARDS.md --------------------------------------------------------------------------------------------------

PAGE = (Path(__file__).parents[2] / "docs" / "REWARDS.md").read_text()
NUMBERS = re.findall(r"^\| `(.+?)` \|((?: [-.0-9]+ \|){4})$", PAGE, re.M)


def leaf(name):
    def earned(trajectory):
        return trajectory.problem.meta[name]

    earned.__name__ = name
    return reward(earned)


LEAVES = {name: leaf(name) for name in ("form", "right", "cost")}
EARNED = {name: [None if x == "-" else float(x) for x in row.strip("| ").split(" | ")] for name, row in NUMBERS}


@pytest.mark.parametrize("expression", EARNED)
def test_the_page_says_what_is_paid(expression):
    part = eval(expression, vars(algebra) | LEAVES)
    columns = {name: EARNED[f"{name}()"] for name in LEAVES}
    assert paid(part, **columns) == [x if x is None else pytest.approx(x, abs=6e-5) for x in EARNED[expression]]


def test_the_page_shows_every_operator_and_its_code_runs():
    assert len(EARNED) == 20
    shown = set(re.findall(r"`(\w+)\(", PAGE.partition("## In numbers")[0]))
    assert shown >= {name for name, x in vars(algebra).items() if isinstance(x, OperatorFactory)}
    code = re.search(r"    import statistics\n(?:(?:    .*)?\n)+", PAGE)[0]
    space = dict(LEAVES)
    exec(textwrap.dedent(code), space)
    assert paid(space["above_the_mean"](space["cost"](), by=2.0), cost=[2, 1, 3, 0]) == [2, 0, 2, 0]


@pytest.mark.parametrize("text", re.findall(r"^    (?:rewardlab .*--reward '([^'\x22]+)'|(format_ok.+))$", PAGE, re.M), ids=str)
def test_the_pages_formulas_are_read(text):
    assert read_reward("".join(text))
