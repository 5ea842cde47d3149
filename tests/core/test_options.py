"""Decorators refuse options that they do not know, and values of the wrong kind, where a part is defined."""

from __future__ import annotations

import pytest

from rewardlab.core import credit, environment, loop, measure, objective, rollout, select, weighting
from rewardlab.errors import RewardlabError
from rewardlab.rewards.operator import operator
from rewardlab.rewards.reward import reward
from rewardlab.verifiers.contract import verifier


def function(x, *, inner=None, n=1):
    return x


@pytest.mark.parametrize(
    ("decorator", "options", "message"),
    [
        (credit, {"need": ("ref",)}, "unknown option of @credit 'need'; did you mean needs"),
        (credit, {"needs": ("ref",), "untis": 3}, "unknown option of @credit 'untis'"),
        (credit, {"needs": "ref"}, r"needs of @credit for function must be tuple.*not 'ref'"),
        (credit, {"unit": "token"}, "unknown option of @credit 'unit'"),
        (objective, {"unit": "tokn"}, "unknown unit of @objective for function 'tokn'; did you mean token"),
        (objective, {"wants": ("logprobs", "entropi")}, "'entropi'; did you mean entropy"),
        (objective, {"per_token": 3}, "per_token of @objective for function must be .*not 3"),
        (weighting, {"unit": "rows"}, "'rows'; did you mean row"),
        (rollout, {"whole": True}, "unknown option of @rollout 'whole'"),
        (rollout, {"across_problems": 1}, "across_problems of @rollout for function must be bool, not 1"),
        (rollout, {"wraps": "iner"}, "unknown hyperparameter of function 'iner'; did you mean inner"),
        (environment, {}, "@environment of function needs the option start"),
        (environment, {"start": "now"}, "start of @environment for function must be Callable, not 'now'"),
        (reward, {"over": "groop"}, "unknown over of @reward for function 'groop'; did you mean group"),
        (reward, {"over": "pairs"}, "unknown over of @reward"),
        (reward, {"step": True}, "unknown option of @reward 'step'; did you mean steps"),
        (operator, {"over": "weight"}, "'weight'; did you mean weights"),
        (operator, {"differentiable": function}, "unknown option of @operator 'differentiable'"),
        (verifier, {"over": "pears"}, "'pears'; did you mean pairs"),
        (verifier, {"steps": True}, "unknown option of @verifier 'steps'"),
        (select, {"unit": "row"}, "unknown option of @select"),
        (measure, {"over": "group"}, "unknown option of @measure"),
        (loop, {"every": 2}, "unknown option of @loop"),
    ],
)
def test_a_wrong_option_is_refused_where_the_part_is_defined(decorator, options, message):
    with pytest.raises(RewardlabError, match=message):
        decorator(**options)(function)


def test_options_are_read_by_name():
    made = objective(unit="row", needs=("ref",), wants=("logprobs", "entropy"))(function)()
    assert (made.unit, made.needs, made.wants, made.per_token) == ("row", ("ref",), ("logprobs", "entropy"), ())
    assert reward(over="groups", steps=True)(function)().options.steps
    assert operator()(function)(reward()(function)()).over == "number"
    assert verifier()(function)().options.over == "pair"


def test_wrappers_know_the_part_that_they_wrap():
    plain, wrapper = rollout(function), rollout(wraps="inner")(function)
    around = wrapper(inner=wrapper(inner=plain(n=3), n=2))
    assert (around.inner, around.innermost) == (wrapper(inner=plain(n=3), n=2), plain(n=3))
    assert around.but_innermost(n=4) == wrapper(inner=wrapper(inner=plain(n=4), n=2))
    assert around.but(n=5) == wrapper(inner=wrapper(inner=plain(n=3), n=2), n=5)
    assert (plain().inner, plain().innermost) == (None, plain())
    with pytest.raises(RewardlabError, match=r"the rollout function\(n=3\) has no setting m"):
        around.but_innermost(m=4)
