"""Pairs made of several replies: those of the data, and those that a policy writes; and the pairs that survive a filter."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace

import pytest
from rows import Replies

from rewardlab.core import Run, Score, ask
from rewardlab.errors import RewardlabError
from rewardlab.methods.curricula.coig_p import paired
from rewardlab.methods.curricula.rip import MEMORY, filter_pairs
from rewardlab.rewards.recorded import score_in_data
from rewardlab.rewards.reward import reward
from rewardlab.rollouts.ranked import ranked
from rewardlab.rollouts.recorded import recorded

SIDES = recorded(fields=("chosen", "rejected"))


@reward
def number_said(trajectory):
    """The number that the reply begins with; "?" gets no verdict."""
    said = trajectory.reply.split()[0]
    return Score(None, why="?") if said == "?" else float(said)


def texts(groups) -> list[list[str]]:
    return [[t.reply for t in group] for group in groups]


def run_of(replies: list[str] = (), further: list = ()) -> Run:
    """A run whose policy and reference say `replies`; `further` are the problems that come next."""
    queue = list(further)
    policy = Replies(list(replies))
    return Run(policy, reference=policy, more_problems=lambda n: [queue.pop(0) for _ in range(n)])


# ---- of the data -----------------------------------------------------------------------------------------------------


def judged(name: str, replies: list[str], scores: list, true: list | None = None):
    return ask(name, replies=replies, scores=scores, **({"true_scores": true} if true else {}))


def test_problems_without_a_pair_are_replaced_and_labels_are_compared_with_the_truth():
    equal = judged("equal", ["a", "b"], [5, 5])
    near = judged("near", ["a", "b"], [5, 6], [1, 2])
    unsure = judged("unsure", ["a", "b"], [5, None])
    right, wrong = judged("right", ["good", "bad"], [9, 2], [8, 1]), judged("wrong", ["bad", "good"], [9, 2], [1, 8])
    tied = judged("tied", ["one", "two"], [9, 2], [4, 4])
    run = run_of(further=[unsure, wrong, tied])
    groups = paired(inner=SIDES, gap=2.0)([equal, near, right], run)
    assert texts(groups) == [["good", "bad"], ["bad", "good"], ["one", "two"]]
    # three of six have a pair; one label is right, one wrong, one of equals
    assert run.metrics == {"paired": 0.5, "true_labels": 0.5}
    assert groups[0][0].problem.meta["chosen_score"] == 9.0


def test_the_truth_may_be_known_of_some_rows_and_written_as_json():
    unknown = ask("unknown", replies=["good", "bad"], scores=[9, 2], true_scores=None)
    table = ask("table", replies='["good", "bad"]', scores="[9, 2]", true_scores="[8, 1]")
    run = run_of()
    assert texts(paired(inner=SIDES)([unknown, table], run)) == [["good", "bad"]] * 2
    assert run.metrics["true_labels"] == 1.0


def test_two_replies_at_random_are_others_at_each_visit_and_no_visit_is_lost():
    # of the scores 0, 1, 5, 6 four pairs differ by 3 or more
    problem = judged("many", ["a", "b", "c", "d"], [0, 1, 5, 6])
    part, run = paired(inner=SIDES, choose="random", gap=3.0), run_of()

    def at(step):
        run.step = step
        return [tuple(pair) for pair in texts(part([problem, problem], run))]

    found = [at(step) for step in range(40)]
    counts = Counter(pair for row in found for pair in row)
    assert counts.keys() == {("c", "a"), ("c", "b"), ("d", "a"), ("d", "b")}
    assert min(counts.values()) >= 8
    assert run.metrics["paired"] == 1.0
    # twice in one step it may have two pairs; a step that is sampled again has the same ones
    assert any(first != second for first, second in found)
    assert at(3) == found[3]
    # held-out problems keep their pair
    held = replace(run, held_out=True)
    assert len({tuple(texts(part([problem], replace(held, step=step)))[0]) for step in range(9)}) == 1


def test_data_that_cannot_be_paired_is_refused():
    with pytest.raises(RewardlabError, match="no list 'replies'"):
        paired(inner=SIDES)([ask("bare")], run_of())
    with pytest.raises(RewardlabError, match="2 replies, but 1 scores"):
        paired(inner=SIDES)([judged("short", ["a", "b"], [1])], run_of())
    run = run_of()
    run.more_problems = None
    with pytest.raises(RewardlabError, match="differ by 3: lower the gap"):
        paired(inner=SIDES, gap=3.0)([judged("near", ["a", "b"], [1, 2])], run)


# ---- of a policy -----------------------------------------------------------------------------------------------------


def test_the_best_and_the_worst_of_several_replies_are_recorded_the_best_first():
    problems = [ask("one"), ask("two"), ask("three")]
    said = ["2", "7", "?", "5", "4", "4", "4", "4", "1", "1", "3", "3"]
    groups = ranked(by=number_said(), n=4)(problems, run_of(said))
    # the replies to the second problem are all the same: they make no pair
    assert texts(groups) == [["7", "2"], ["3", "1"]]
    assert [g[0].problem.question for g in groups] == ["one", "three"]
    assert [len(g[0]) for g in groups] == [1, 1]
    best = ranked(by=number_said(), n=4, ranks=(0,))(problems, run_of(said))
    assert texts(best) == [["7"], ["4"], ["3"]]
    assert texts(ranked(by=number_said(), n=4, ranks=(0, 1))(problems, run_of(said))) == [["7", "5"], ["3", "1"]]


def test_where_no_replies_differ_a_step_still_has_a_batch():
    assert texts(ranked(by=number_said(), n=2)([ask("one")], run_of(["4", "4"]))) == [["4", "4"]]


# ---- survivors -------------------------------------------------------------------------------------------------------

# rejected score, length in tokens, gap:   4, 4, 1    4, 1, 1    1, 4, 8    4, 4, 5
REPLIES = ["5 xx", "4 xx", "5", "4", "9 xx", "1 xx", "9 xx", "4 xx"]
POOL = [ask(name, chosen=a, rejected=b) for name, a, b in zip("ABCD", REPLIES[::2], REPLIES[1::2], strict=True)]


@pytest.mark.parametrize(
    "bounds",
    [
        {"rejected_score": "3:", "rejected_length": "2:", "gap": ":2"},
        # medians: of 4 4 1 4 it is 4, of 4 1 4 4 it is 4, of 1 1 8 5 it is 3
        {"rejected_score": "50%:", "rejected_length": "50%:", "gap": ":50%"},
    ],
)
def test_a_prompt_survives_whose_rejected_reply_is_good_and_long_and_little_worse(bounds):
    run = run_of(further=[*POOL[1:], POOL[0]])
    part = filter_pairs(inner=SIDES, by=number_said(), **bounds, pool=4)
    assert texts(part(POOL[:1], run)) == [["5 xx", "4 xx"]]
    assert run.metrics["survived"] == 0.25
    dropped = {name: run.metrics[f"dropped/{name}"] for name in ("rejected_score", "rejected_length", "gap")}
    assert dropped == {"rejected_score": 0.25, "rejected_length": 0.25, "gap": 0.25}
    assert (run.metrics["rejected_score"], run.metrics["gap"]) == (4.0, 1.0)
    # the bounds are kept, whatever comes later: B to D are dropped one after another until A comes again
    run.memory = json.loads(json.dumps(run.memory))
    run.more_problems = iter_of([POOL[2], POOL[3], POOL[0]])
    assert texts(part(POOL[1:2], run)) == [["5 xx", "4 xx"]]


def iter_of(problems):
    queue = iter(problems)
    return lambda n: [next(queue) for _ in range(n)]


def test_without_bounds_all_survive_and_without_survivors_the_first_are_kept():
    run = run_of(further=POOL[1:])
    none = filter_pairs(inner=SIDES, by=number_said(), rejected_score=None, rejected_length=None, gap=None, pool=1)
    assert len(none(POOL[:2], run)) == 2
    run = run_of(further=POOL * 3)
    strict = filter_pairs(inner=SIDES, by=number_said(), rejected_score="100:", pool=1, attempts=2)
    assert texts(strict(POOL[:2], run)) == [["5 xx", "4 xx"], ["5", "4"]]
    assert run.metrics["survived"] == 0.0


def test_a_pair_without_a_verdict_is_dropped_and_held_out_pairs_are_kept():
    unsure = ask("unsure", chosen="5 xx", rejected="? xx")
    run = run_of(further=[POOL[0]])
    part = filter_pairs(inner=SIDES, by=number_said(), rejected_score="3:", rejected_length=None, gap=None, pool=1)
    assert texts(part([unsure], run)) == [["5 xx", "4 xx"]]
    run.more_problems = None
    assert len(part([unsure, *POOL], run)) == 5
    assert set(run.memory) == {MEMORY}


def test_the_datas_own_scores_are_a_reward():
    problem = ask("one", chosen="a", rejected="b", chosen_score="7", rejected_score=None)
    (group,) = SIDES([problem], run_of())
    scores = score_in_data()([group], run_of())[0]
    assert [s.total for s in scores] == [7.0, None]
    assert "rejected_score" in scores[1].why
