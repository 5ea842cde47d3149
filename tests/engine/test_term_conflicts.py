"""How the terms of a reward go together."""

from __future__ import annotations

import json

import pytest
from rows import outcome, score_of, steps

from rewardlab import registry
from rewardlab.api import train
from rewardlab.engine.term_conflicts import compared, conflicts
from rewardlab.models.embedded import untrained
from rewardlab.rewards.length import length_penalty, tokens
from rewardlab.rewards.reward import reward


def scored(*rows: dict) -> list:
    return [score_of({k: v if hasattr(v, "weight") else outcome(v) for k, v in row.items()}) for row in rows]


def test_conflict_is_the_share_of_pairs_that_both_tell_apart_and_order_differently():
    # a: 1 1 0 2;  b: 0 1 1 0.  pairs (0,1): a ties; (0,2): 1 > 0, 0 < 1: opposed; (0,3): b ties; (1,2): b ties;
    # (1,3): 1 < 2, 1 > 0: opposed; (2,3): 0 < 2, 1 > 0: opposed.  second group: 0 < 1 in both: agreed
    groups = [scored(*({"a": x, "b": y} for x, y in ((1, 0), (1, 1), (0, 1), (2, 0)))), scored({"a": 0, "b": 0}, {"a": 1, "b": 1})]
    # right: the second and the last; wrong: the first and the third.  a: (0,1) tied, (0,3) true, (1,2) true, (2,3) true;
    # b: (0,1) true, (0,3) tied, (1,2) tied, (2,3) untrue; second group: both wrong
    truth = [[0.0, 1.0, 0.0, 1.0], [0.0, 0.0]]
    assert conflicts(groups, truth) == {"conflict/a~b": 0.75, "untrue/a": 0.0, "untrue/b": 0.5}


def test_a_term_that_is_subtracted_counts_the_other_way_round_and_missing_verdicts_do_not_count():
    group = scored({"a": 1, "b": outcome(5, -0.1)}, {"a": 0, "b": outcome(2, -0.1)}, {"a": 3, "b": outcome(None, -0.1)})
    assert conflicts([group], [[None, 1.0, 0.0]]) == {"conflict/a~-b": 1.0, "untrue/a": 1.0}


def test_a_term_whose_own_name_begins_with_a_minus_is_not_turned_round():
    # "-cost" is paid as it is: the first reply earns more by it, and less by a
    group = scored({"a": 0, "-cost": outcome(-1)}, {"a": 1, "-cost": outcome(-2)})
    assert conflicts([group], [[None, None]]) == {"conflict/a~-cost": 1.0}


def test_no_numbers_where_there_is_one_term_or_nothing_to_tell_apart():
    assert conflicts([scored({"a": 1}, {"a": 0})], [[1.0, 0.0]]) == {}
    assert conflicts([scored({"a": 1, "b": 1}, {"a": 1, "b": 1})], [[1.0, 0.0]]) == {}
    assert conflicts([scored({"a": 1, "b": 2})], [[1.0]]) == {}
    assert conflicts([], []) == {}


def test_steps_count_by_their_sum_and_what_a_product_was_computed_from_does_not_count():
    terms = {"a": outcome(1, None), "b": steps({0: 1.0, 3: 2.0}), "a*b": outcome(3)}
    other = {"a": outcome(2, None), "b": steps({1: 1.0}), "a*b": outcome(4)}
    group = [score_of(terms), score_of(other)]
    assert list(compared([group])) == ["b", "a*b"]
    assert conflicts([group], [[None, None]]) == {"conflict/b~a*b": 1.0}
    assert compared([[score_of({"a": outcome(1, None), "b": outcome(1)})]]) == {"b": ("b", 1.0)}
    assert len(compared([[score_of({str(i): outcome(1) for i in range(20)})]])) == 8


@reward
def second_letter(trajectory):
    return float(ord(trajectory.reply[1:2] or "a"))


@pytest.mark.slow
def test_a_run_logs_them_and_a_run_with_one_term_does_not(tmp_path):
    grpo, settings = registry.build("grpo", {"problems": 2}), {"task": "arithmetic", "steps": 1, "eval_problems": 4}
    for name, paid in (("many", tokens() + length_penalty() + second_letter()), ("one", second_letter())):
        train(grpo.but(reward=paid), untrained(), out=tmp_path / name, **settings)
    many, one = (json.loads((tmp_path / name / "metrics.jsonl").read_text().splitlines()[-1]) for name in ("many", "one"))
    # the one pays for tokens what the other takes
    assert many["conflict/tokens~length_penalty"] == 1.0
    assert 0 < many["conflict/tokens~second_letter"] < 1
    assert not any(name.startswith(("conflict/", "untrue/")) for name in one)
