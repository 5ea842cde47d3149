"""Who is better in a world: words by hand, and the error rates of the whole procedure, simulated."""

from __future__ import annotations

import math

import numpy as np
import pytest

from rewardlab.comparisons.league import Guard, Outcome
from rewardlab.comparisons.standings import detectable, fitness, standings, told_apart
from rewardlab.comparisons.words import AT_A_COST, BASELINE, BETTER, EQUAL, INERT, UNDECIDED, WORSE

SHARE = Outcome("pass@1", "higher", "right replies", margin=0.05)
LENGTH = Outcome("log_right_length", "lower", "length of right replies", margin=0.05, scale="log")
GUARD = Guard("pass@1", at_least=-0.05)
BASE = [0.50, 0.52, 0.48, 0.51, 0.49, 0.50, 0.53, 0.47]


def runs(values, name="pass@1", **others):
    return [{name: value, "tokens": 1.0 + i} | {k: v[i] for k, v in others.items()} for i, value in enumerate(values)]


def moved(by, noise=(0.01, -0.01, 0.0, 0.01, -0.01, 0.0, 0.01, -0.01)):
    return [base + by + extra for base, extra in zip(BASE, noise, strict=True)]


def word(found, name):
    return found[name].word


def test_words_of_differences_that_are_plain():
    found = standings(
        {"base": runs(BASE), "up": runs(moved(0.1)), "down": runs(moved(-0.1)), "level": runs(moved(0.002))}, "base", SHARE
    )
    assert {name: one.word for name, one in found.items()} == {"base": BASELINE, "up": BETTER, "down": WORSE, "level": EQUAL}
    # the mean of the noise above is 0
    assert found["up"].effect == pytest.approx(0.1)
    assert found["up"].low < 0.1 < found["up"].high


def test_where_less_is_better_effects_are_turned():
    shorter = standings({"base": runs(BASE, "log_right_length"), "short": runs(moved(-0.2), "log_right_length")}, "base", LENGTH)
    assert word(shorter, "short") == BETTER
    assert shorter["short"].effect == pytest.approx(0.2)


def test_many_rivals_ask_for_more_than_one_does():
    # an effect of 2.5 standard errors of eight pairs: p = .041
    noise = np.array([1, -1, 1, -1, 1, -1, 1, -1.0])
    values = noise / noise.std(ddof=1) * 0.02
    weak = [base + 0.0178 + x for base, x in zip(BASE, values, strict=True)]
    alone = standings({"base": runs(BASE), "a": runs(weak)}, "base", SHARE)
    others = {f"other{i}": runs(moved(0.0, noise=tuple(0.03 * ((-1) ** (i + j)) for j in range(8)))) for i in range(5)}
    among = standings({"base": runs(BASE), "a": runs(weak), **others}, "base", SHARE)
    assert word(alone, "a") == BETTER
    assert word(among, "a") in (UNDECIDED, EQUAL)
    assert among["a"].adjusted == pytest.approx(6 * alone["a"].p)


@pytest.mark.parametrize(
    ("right", "expected"),
    [
        (moved(0.0), BETTER),  # the guard is kept by its whole interval
        (moved(-0.2), AT_A_COST),  # all of it is below the bound
        (moved(-0.05, noise=(0.03, -0.03) * 4), UNDECIDED),  # it lies across
    ],
)
def test_the_guard_is_kept_by_its_whole_interval(right, expected):
    base = runs([3.5] * 8, "log_right_length", **{"pass@1": BASE})
    short = [{"log_right_length": 3.2 + 0.01 * (i % 3), "pass@1": value, "tokens": 5.0} for i, value in enumerate(right)]
    found = standings({"base": base, "short": short}, "base", LENGTH, GUARD)
    assert word(found, "short") == expected


def test_who_gains_nothing_and_loses_the_guard_is_worse():
    base = runs([3.5, 3.51] * 4, "log_right_length", **{"pass@1": BASE})
    same = [dict(run, **{"pass@1": run["pass@1"] - 0.3, "tokens": 9.0}) for run in base]
    assert word(standings({"base": base, "same": same}, "base", LENGTH, GUARD), "same") == WORSE


def test_a_member_without_the_number_in_a_run_is_never_better():
    # no reply is right in one run, so that there is no length of right replies
    base = runs([3.5, 3.52] * 4, "log_right_length", **{"pass@1": BASE})
    short = runs([3.0, 3.02] * 3 + [3.0, math.nan], "log_right_length", **{"pass@1": BASE})
    assert word(standings({"base": base, "short": short}, "base", LENGTH, GUARD), "short") == UNDECIDED


def test_equal_to_the_last_bit_is_inert():
    assert word(standings({"base": runs(BASE), "same": runs(BASE)}, "base", SHARE), "same") == INERT


def test_seeds_of_one_start_count_as_one():
    # four starts: the member gains .2 from two of them and loses .1 from the others, twice over
    gains = [0.2, 0.2, 0.2, 0.2, -0.1, -0.1, -0.1, -0.1]
    member = runs([base + gain for base, gain in zip(BASE, gains, strict=True)])
    by_seed = standings({"base": runs(BASE), "m": member}, "base", SHARE)["m"]
    by_start = standings({"base": runs(BASE), "m": member}, "base", SHARE, starts=[0, 0, 1, 1, 2, 2, 3, 3])["m"]
    assert by_start.effect == pytest.approx(by_seed.effect)
    assert by_start.high - by_start.low > 1.5 * (by_seed.high - by_seed.low)


def test_a_world_is_fit_where_the_baseline_learns_and_has_room():
    learnt = [{"pass@1": 0.6 + 0.01 * (i % 2), "before.pass@1": 0.3} for i in range(8)]
    assert [one["ok"] for one in fitness(learnt, "pass@1")] == [True, True]
    idle = [{"pass@1": 0.3 + 0.1 * (-1) ** i, "before.pass@1": 0.3} for i in range(8)]
    assert [one["ok"] for one in fitness(idle, "pass@1")] == [False, True]
    full = [dict(run, **{"pass@1": 0.95}) for run in learnt]
    assert [one["ok"] for one in fitness(full, "pass@1")] == [True, False]
    assert fitness(learnt, None) == []
    # where another number decides, right replies are enough
    assert [one["ok"] for one in fitness(full, "pass@1", must_learn=False)] == [True]
    assert [one["ok"] for one in fitness([dict(run, **{"pass@1": 0.1}) for run in full], "pass@1", must_learn=False)] == [False]


def test_a_world_whose_seeds_share_policies_is_fit_by_what_so_many_policies_gain():
    gains = [0.1, 0.1, 0.1, 0.3, 0.3, 0.3]
    runs = [{"pass@1": 0.4 + gain, "before.pass@1": 0.4} for gain in gains]
    assert fitness(runs, "pass@1")[0]["ok"]
    # two policies that gain .1 and .3: .2, with a standard error of .1
    shared = fitness(runs, "pass@1", starts=[0, 0, 0, 1, 1, 1])[0]
    assert not shared["ok"]
    assert shared["needs"] == "at least 4 standard errors (0.4)"


def test_members_that_differ_by_noise_alone_cannot_be_told_apart():
    rng = np.random.default_rng(1)
    alike = {f"m{i}": runs(list(0.5 + 0.02 * rng.standard_normal(8))) for i in range(8)}
    assert not told_apart(alike, SHARE)["ok"]
    assert told_apart(alike | {"far": runs(moved(0.2))}, SHARE)["ok"]


def simulated(rng, members, pairs, effects=None, collapse=None):
    """Runs of a league: a seed shifts all members alike; each has noise of its own."""
    shared = 0.02 * rng.standard_normal(pairs)
    found = {}
    for i in range(members + 1):
        values = 0.5 + shared + 0.03 * rng.standard_normal(pairs) + (effects or {}).get(i, 0.0)
        if collapse == i:
            values[rng.random(pairs) < 0.2] = 0.05
        found[f"m{i}"] = runs(list(values))
    return found


LEAGUES = 400


@pytest.mark.slow
def test_of_leagues_of_alike_members_one_in_twenty_finds_a_difference():
    rng = np.random.default_rng(0)
    wrong = sum(
        any(one.word in (BETTER, WORSE) for one in standings(simulated(rng, 9, 8), "m0", SHARE).values()) for _ in range(LEAGUES)
    )
    # 5% of 400 are 20; the 99.9% quantile of their binomial is 35
    assert wrong <= 35
    # and the procedure is not idle
    assert wrong >= 4


def test_one_true_winner_is_found_and_hardly_any_other():
    rng = np.random.default_rng(0)
    found, false = 0, 0
    for _ in range(LEAGUES):
        words = {name: one.word for name, one in standings(simulated(rng, 9, 8, {3: 0.1}), "m0", SHARE).items()}
        found += words.pop("m3") == BETTER
        false += any(one in (BETTER, WORSE) for one in words.values())
    # .1 is what `detectable` says is found with 80% power by eight pairs whose differences spread by .042
    assert detectable(0.042, 8, 9) == pytest.approx(0.077, abs=0.01)
    assert found / LEAGUES > 0.8
    assert false <= 35


def test_who_collapses_in_one_run_of_five_is_not_called_better():
    rng = np.random.default_rng(0)
    seen, unseen = [], []
    for _ in range(LEAGUES):
        league = simulated(rng, 9, 8, {3: 0.05}, collapse=3)
        collapsed = any(run["pass@1"] == 0.05 for run in league["m3"])
        (seen if collapsed else unseen).append(standings(league, "m0", SHARE)["m3"].word == BETTER)
    # better by .05 in the runs that do not collapse, it ends lower on average; a run that collapsed is not overlooked
    assert not any(seen)
    # of eight runs none collapses in a sixth of the leagues: what did not happen, nothing can see
    assert len(unseen) / LEAGUES == pytest.approx(0.8**8, abs=0.05)
