"""The selection of replies by the balance score: against numbers worked out by hand, and over the rounds of a run."""

from __future__ import annotations

import numpy as np
import pytest

from rewardlab.core import Run, Score, Trajectory, Turn, ask, rollout
from rewardlab.errors import RewardlabError
from rewardlab.methods.sampling.b_star import THRESHOLDS, Candidate, balance_score, balanced, candidates, select
from rewardlab.rewards.reward import reward
from rewardlab.rollouts.independent import independent


def group(*texts: str, question: str = "Q"):
    """ "+.5 a": right, with a score of .5; "?": no verdict; "+x": no score."""
    return [
        Trajectory(ask(question, "+"), (Turn(None, np.zeros(1, np.int64)), Turn("policy", np.zeros(2, np.int64), text=text)), "end")
        for text in texts
    ]


@reward
def verdict(trajectory):
    return Score(None, why="none") if trajectory.reply[0] == "?" else float(trajectory.reply[0] == "+")


@reward
def said(trajectory):
    number = trajectory.reply[1:].split()[0]
    return Score(None, why="no score") if number == "x" else float(number)


def row(*marks: str) -> list[Candidate]:
    """ "+.9": right with this score, best first."""
    return [Candidate(float(m[1:]), m[0] == "+", i) for i, m in enumerate(marks)]


@pytest.mark.parametrize(
    ("selected", "right", "expected"),
    [(0, 0, 0.0), (4, 0, 0.0), (1, 1, 1 / 8), (8, 8, 1.0), (16, 16, 1.0), (16, 8, 0.5), (4, 2, 2 / 8 * 2 / 4), (10, 9, 0.9)],
)
def test_balance_asks_for_enough_right_replies_and_few_others(selected, right, expected):
    assert balance_score(selected, right, wanted=8) == pytest.approx(expected)


def test_the_threshold_is_that_of_the_highest_mean():
    # wanted 2, everything may be taken: least .9: 1/2 | 0 -> .25;  .7: 1/2 * 1/2 | 1/2 -> .375;
    # .5: 2/2 * 2/3 | 1/2 -> .583;  .1: 2/2 * 2/4 | 1/2 * 1/2 -> .375
    table = [row("+.9", "-.7", "+.5", "-.1"), row("+.7", "-.1")]
    found = select(table, wanted=2, target=10)
    assert found == (pytest.approx((2 / 3 + 1 / 2) / 2), 0.5, [[0, 1, 2], [0]])
    assert select(table, wanted=2, target=10, threshold=0.7) == (pytest.approx(0.375), 0.7, [[0, 1], [0]])


def test_each_problem_gives_as_many_as_it_has_and_as_few_as_will_do():
    table = [row("+1", "+1", "+1", "+1"), row("+1"), row("-0")]
    # 4 of 3 problems at target 4/3: k = 3 gives 3 + 1; k = 2 gives 2 + 1
    found = select(table, wanted=4, target=4 / 3)
    assert found.rows == [[0, 1, 2], [0], []]
    # a problem without any counts as 0
    assert found.balance == pytest.approx((3 / 4 + 1 / 4 + 0) / 3)


def test_of_equal_thresholds_the_lowest_is_taken():
    # one reply per problem whatever the threshold; both select the best
    assert select([row("+.9", "+.4")], wanted=1, target=1).threshold == pytest.approx(0.4)


@pytest.mark.parametrize("table", [[], [[]]])
def test_without_a_candidate_nothing_is_selected(table):
    for threshold in (None, 0.0):
        found = select(table, threshold=threshold)
        assert found.balance == 0
        assert not any(found.rows)


def test_where_no_reply_is_right_the_lowest_threshold_is_taken_and_a_fixed_one_stays():
    table = [row("-.9", "-.1"), []]
    assert select(table) == (0.0, 0.1, [[0, 1], []])
    assert select(table, threshold=0.5) == (0.0, 0.5, [[0], []])
    assert select(table, threshold=1.0) == (0.0, 1.0, [[], []])


def test_all_right_replies_leave_only_their_number():
    assert select([row("+1", "+1")], wanted=8).balance == pytest.approx(2 / 8)


def test_many_scores_are_thinned_out_with_both_ends():
    # only the very lowest threshold selects the one reply that is right
    scores = np.linspace(1, 0, 5 * THRESHOLDS)
    table = [[Candidate(float(x), i == len(scores) - 1, i) for i, x in enumerate(scores)]]
    assert select(table, target=1e9).threshold == 0.0


def test_texts_count_once_and_replies_without_a_score_or_verdict_not_at_all():
    run = Run(policy=None, verify=verdict())
    (found,) = candidates([group("-.2 a", "+.7 b", "+.7 b", "?.9 c", "+x d", "+.7 e")], said(), run)
    assert found == [(0.7, True, 1), (0.7, True, 5), (0.2, False, 0)]


def sampler(by_temperature: dict[float, list[str]], asked: list[float]):
    @rollout
    def given(problems, run, *, n: int = 1, temperature: float = 1.0):
        asked.append(round(temperature, 3))
        return [group(*by_temperature[round(temperature, 3)], question=p.question) for p in problems]

    return given()


WORDS = {0.5: ["+1 a", "+1 a", "-0 b"], 1.0: ["+1 a", "+1 b", "-0 c"], 1.5: ["+1 a", "-0 b", "-0 c"]}


def test_the_temperature_of_the_most_balance_stays_for_a_round_and_is_then_sought_again():
    asked: list[float] = []
    part = balanced(inner=sampler(WORDS, asked), by=said(), lowest=0.5, highest=1.5, temperatures=3, every=2, wanted=2)
    run = Run(policy=None, verify=verdict(), steps=4)
    problems = [ask("Q", "+"), ask("R", "+")]
    for step in range(3):
        run.step = step
        groups = part(problems, run)
    # three are tried and one is used; one; three and one
    assert asked == [0.5, 1.0, 1.5, 1.0, 1.0, 0.5, 1.0, 1.5, 1.0]
    assert [[t.tag for t in g] for g in groups] == [["selected", "selected", ""]] * 2
    assert run.metrics == {"balance": 1.0, "temperature": 1.0, "selected": 2.0, "threshold": 1.0}


def test_a_run_that_goes_on_from_its_memory_keeps_the_temperature_of_its_round():
    asked: list[float] = []
    part = balanced(inner=sampler(WORDS, asked), by=said(), lowest=0.5, highest=1.5, temperatures=3, every=3)
    run = Run(policy=None, verify=verdict())
    part([ask("Q", "+")], run)
    again = Run(policy=None, verify=verdict(), step=1, memory=dict(run.memory))
    del asked[:]
    part([ask("Q", "+")], again)
    assert asked == [1.0]


def test_held_out_problems_are_sampled_at_the_temperature_of_the_round_and_change_nothing():
    asked: list[float] = []
    part = balanced(inner=sampler(WORDS, asked), by=said(), lowest=0.5, highest=1.5, temperatures=3)
    run = Run(policy=None, verify=verdict())
    aside = run.for_evaluation()
    (before,) = part([ask("Q", "+")], aside)
    assert asked == [1.0]  # its own
    assert run.memory == {}
    part([ask("Q", "+")], run)
    (after,) = part([ask("Q", "+")], aside)
    assert asked[-1] == 1.0
    assert {t.tag for t in [*before, *after]} == {""}


def test_a_sampler_without_a_temperature_is_refused():
    @rollout
    def fixed(problems, run):
        return []

    with pytest.raises(RewardlabError, match="temperature"):
        balanced(inner=fixed(), by=said())([ask("Q", "+")], Run(policy=None, verify=verdict()))
    assert balanced(inner=independent(n=3), by=said()).rows_per_problem == 3
