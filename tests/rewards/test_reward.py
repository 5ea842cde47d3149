"""Laws of the reward algebra: missing never becomes zero, no term is lost, names are unique."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewardlab.core import Score, Term, Trajectory, Turn, ask, check_finite
from rewardlab.errors import NotFinite, RewardlabError
from rewardlab.registry import load_part
from rewardlab.rewards.reward import reward

ROLLOUT = Trajectory(ask("how many?", "3", value=None, steps=()), (Turn("policy", np.arange(4), text="three"),))


def group_of(*metas: dict) -> list[list[Trajectory]]:
    return [[replace(ROLLOUT, problem=ask("how many?", "3", **meta)) for meta in metas]]


def score_of(part, **meta) -> Score:
    return part(group_of(meta))[0][0]


@reward
def a(trajectory):
    return trajectory.problem.meta["a"]


@reward
def b(trajectory):
    return trajectory.problem.meta["b"]


@reward
def c(trajectory, *, shift=0.0):
    x = trajectory.problem.meta["c"]
    return None if x is None else x + shift


@reward(steps=True)
def dense(trajectory):
    return trajectory.problem.meta["dense"]


number = st.floats(-100, 100, allow_subnormal=False)
value = st.none() | number
dense_value = st.lists(st.tuples(st.integers(0, 3), number), max_size=4, unique_by=lambda x: x[0])
LEAVES = {"a": a(), "b": b(), "c": c()}


@st.composite
def expressions(draw, names=("a", "b", "c")):
    """An expression that uses each of these rewards once, with the operators between them."""
    if len(names) == 1:
        part = LEAVES[names[0]]
        return draw(st.sampled_from([1, 2, -0.5])) * part if draw(st.booleans()) else part
    at = draw(st.integers(1, len(names) - 1))
    left, right = draw(expressions(names[:at])), draw(expressions(names[at:]))
    return {"+": left + right, "*": left * right, "-": left - right, ">>": left >> right}[
        draw(st.sampled_from(["+", "*", "-", ">>"]))
    ]


@given(expressions(), value, value, value)
def test_no_term_is_lost_and_each_is_unweighted(part, x, y, z):
    terms = score_of(part, a=x, b=y, c=z).terms
    assert {k: terms[k].value for k in "abc"} == {"a": x, "b": y, "c": z}


@given(expressions())
def test_an_expression_survives_json_and_scores_the_same(part):
    again = load_part(part.to_json())
    assert str(again) == str(part)
    assert score_of(again, a=1.0, b=-2.0, c=0.5) == score_of(part, a=1.0, b=-2.0, c=0.5)


@given(value, value)
def test_missing_spreads_through_sum_product_and_scale(x, y):
    missing = x is None or y is None
    for part in (a() + b(), a() - b(), a() * b(), 2 * (a() + b()), 0 * a() + b(), (a() + b()).named("both")):
        assert (score_of(part, a=x, b=y).value is None) == missing
    assert (score_of(0.0 * a(), a=x).value is None) == (x is None)


@given(number, number, number)
def test_values_follow_arithmetic(x, y, z):
    assert score_of(a() + 0.5 * b(), a=x, b=y).value == math.fsum([x, 0.5 * y])
    assert score_of(a() - b(), a=x, b=y).value == math.fsum([x, -y])
    assert score_of(a() * b() * c(), a=x, b=y, c=z).value == math.prod([x, y, z])


@given(value, value)
def test_a_gate_pays_the_right_where_open_else_its_own_value(x, y):
    paid = score_of(a() >> b(), a=x, b=y).value
    if x is None:
        assert paid is None
    else:
        assert paid == (y if x > 0 else x)


@given(dense_value, number)
def test_steps_add_scale_and_multiply_as_values_do(steps, x):
    alone = dict(steps)
    assert dict(score_of(dense() + a(), dense=steps, a=x).steps) == alone
    assert dict(score_of(3 * dense(), dense=steps).steps) == {t: 3 * r for t, r in alone.items()}
    assert dict(score_of(dense() * a(), dense=steps, a=x).steps) == {t: r * x for t, r in alone.items()}
    assert score_of(dense() * a(), dense=steps, a=x).total == pytest.approx(math.fsum(r * x for r in alone.values()))
    assert score_of(a() * dense(), dense=steps, a=None).steps == ()


def test_steps_at_one_position_add_up_in_order_of_position():
    part = dense() + dense().named("again")
    assert score_of(part, dense=[(2, 1.0), (0, 0.25)]).steps == ((0, 0.5), (2, 2.0))


def test_a_closed_gate_pays_no_steps_and_an_open_one_does():
    assert score_of(a() >> dense(), a=0.0, dense=[(1, 1.0)]).steps == ()
    assert score_of(a() >> dense(), a=1.0, dense=[(1, 1.0)]).steps == ((1, 1.0),)


def test_two_stepwise_factors_are_refused():
    with pytest.raises(RewardlabError, match="at most one factor"):
        score_of(dense() * dense().named("other"), dense=[(0, 1.0)])


def test_a_reward_may_return_a_number_none_or_a_score_and_gives_its_name():
    returned = [0.5, None, Score(0.5, why="half"), Score(None, why="down"), Score(steps=[(1, 2.0)]), Score(terms={"x": Term(1.0)})]

    @reward
    def any_of_these(trajectory):
        return returned[trajectory.problem.meta["i"]]

    scores = any_of_these()(group_of(*({"i": i} for i in range(len(returned)))))[0]
    assert [s.terms for s in scores[:5]] == [
        {"any_of_these": t} for t in (Term(0.5), Term(None), Term(0.5), Term(None), Term(None, ((1, 2.0),)))
    ]
    assert [s.value for s in scores] == [0.5, None, 0.5, None, 0.0, 1.0]
    assert [s.total for s in scores] == [0.5, None, 0.5, None, 2.0, 1.0]
    assert [s.has_outcome for s in scores] == [True, False, True, False, False, True]
    assert list(scores[5].terms) == ["x"]
    with pytest.raises(RewardlabError, match="not of both"):
        Score(1.0, terms={"x": Term(1.0)})


def test_a_step_reward_that_rewards_no_step_is_a_verdict_of_0():
    score = score_of(dense(), dense=[])
    assert (score.missing, score.value, score.has_outcome) == (False, 0.0, True)


def test_a_repeated_name_is_an_error_until_it_is_named():
    with pytest.raises(RewardlabError, match=r"two rewards are named 'a'.*\.named"):
        score_of(a() + 0.5 * a(), a=1.0)
    score = score_of(a() + 0.5 * a().named("half"), a=1.0)
    assert score.value == 1.5
    assert score.terms == {"a": Term(1.0), "half": Term(1.0, weight=0.5)}


def test_naming_a_sum_prefixes_its_terms():
    assert set(score_of((a() + b()).named("x"), a=1.0, b=2.0).terms) == {"x.a", "x.b"}


def test_weights_multiply_through_nested_scales():
    terms = score_of(2 * (a() + 3 * b()), a=1.0, b=1.0).terms
    assert (terms["a"].weight, terms["b"].weight) == (2.0, 6.0)


def test_it_prints_as_its_formula():
    assert str(a() + 0.2 * b() * c(shift=1.0)) == "a() + 0.2 * b() * c(shift=1)"
    assert str((a() + b()) * c()) == "(a() + b()) * c()"
    assert str((a() >> b()) + c()) == "(a() >> b()) + c()"


def test_functions_of_a_group_and_of_all_groups_are_lifted():
    @reward(over="group")
    def rank(group, *, top=1.0):
        return [top - i for i, _ in enumerate(group)]

    @reward(over="groups")
    def where(groups, run):
        return [[100 * g + i for i, _ in enumerate(group)] for g, group in enumerate(groups)]

    groups = group_of({}, {}) + group_of({}, {}, {})
    assert [[s.value for s in row] for row in rank(top=2.0)(groups)] == [[2.0, 1.0], [2.0, 1.0, 0.0]]
    assert [[s.value for s in row] for row in where()(groups)] == [[0, 1], [100, 101, 102]]


def test_a_reason_is_kept_through_combination():
    @reward
    def judged(trajectory):
        return Score(None, why="the judge was away")

    score = score_of(a() + judged(), a=1.0)
    assert score.value is None
    assert score.why == "the judge was away"
    assert score.total is None


def test_combining_with_what_is_no_reward_is_refused():
    with pytest.raises(RewardlabError, match="forgot to call it"):
        a() + b


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_a_reward_that_is_not_finite_names_its_term_and_rollout(bad):
    part = a() + b()
    groups = group_of({"a": 1.0, "b": 1.0}, {"a": 1.0, "b": bad})
    with pytest.raises(NotFinite, match=r"'b'.*rollout 1 of group 0.*'how many\?'"):
        check_finite(groups, part(groups), str(part))


def test_missing_is_finite():
    groups = group_of({"a": None, "b": 1.0})
    check_finite(groups, (a() + b())(groups), "a() + b()")
