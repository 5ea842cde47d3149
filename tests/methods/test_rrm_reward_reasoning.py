"""RRM: votes, Elo ratings and knockouts with a judge whose verdicts are written down; what the recipe asks of which row."""

from __future__ import annotations

import numpy as np
import pytest

from rewardlab import registry
from rewardlab.api import answer
from rewardlab.core import Run, Score, Trajectory, Turn, ask
from rewardlab.methods.judges.rrm_reward_reasoning import (
    elo,
    elo_ratings,
    highest_elo,
    rrm_reward_reasoning,
)
from rewardlab.models.embedded import untrained
from rewardlab.rewards.tournament import shares_won
from rewardlab.rollouts.knockout import knockout

PROBLEM = ask("Name a large number.")
FORM = "{prompt}|{first}|{second}"


def group(*replies: str) -> list[Trajectory]:
    return [Trajectory(PROBLEM, (Turn("policy", np.zeros(1, np.int64), text=reply),), "end") for reply in replies]


class Judge:
    """A judge that prefers the larger number, or what `says` says of the two that it reads; it counts what it is asked."""

    context = 10_000

    def __init__(self, says=lambda a, b: "A" if int(a) > int(b) else "B"):
        self.says, self.asked, self.prompts = says, [], []

    def read(self, trajectories, messages):
        self.prompts += [t.problem.question for t in trajectories]
        return list(trajectories)

    def extend(self, trajectories, sampling, rng):
        pairs = [t.problem.question.split("|")[1:] for t in trajectories]
        self.asked += [tuple(pair) for pair in pairs]
        ids = np.zeros(1, np.int64)
        return [t.plus(Turn("policy", ids, text=f"[[{self.says(*p)}]]")) for t, p in zip(trajectories, pairs, strict=True)]


def run_of(judge: Judge, seed: int = 0) -> Run:
    return Run(policy=None, models={"judge": judge}, seed=seed)


def chosen(select, judge: Judge, replies: list[str], seed: int = 0, **settings) -> str:
    nothing = [Score(None)] * len(replies)
    return select(model="judge", form=FORM, **settings)(group(*replies), nothing, run_of(judge, seed)).reply


# ---- votes ---------------------------------------------------------------------------------------------------------------


def test_votes_are_counted_for_the_first_in_both_orders():
    """Whoever prefers what stands first gives each of two replies half of the votes, and of three votes two to the first."""
    biased = Judge(lambda a, b: "A")
    pairs = [(PROBLEM, "7", "3")]
    assert shares_won(pairs, run_of(biased), model="judge", form=FORM, votes=2) == [0.5]
    assert shares_won(pairs, run_of(biased), model="judge", form=FORM, votes=3) == [pytest.approx(2 / 3)]
    assert biased.asked == [("7", "3"), ("3", "7"), ("7", "3"), ("3", "7"), ("7", "3")]


def test_what_cannot_be_read_does_not_vote():
    # of 3 votes the second, which reads 3 first, gives no mark
    judge = Judge(lambda a, b: "A" if a == "7" else "?")
    pairs = [(PROBLEM, "7", "3"), (PROBLEM, "3", "3"), (PROBLEM, "1", "2")]
    assert shares_won(pairs, run_of(judge), model="judge", form=FORM, votes=3) == [1.0, 0.5, 0.5]
    # the same text twice is a tie that nobody is asked about
    assert ("3", "3") not in judge.asked


def test_the_gold_answer_is_not_shown():
    judge = Judge(lambda a, b: "A")
    shown = "{prompt}{answer}|{first}|{second}"
    shares_won([(ask("Sum?", "7"), "7", "3")], run_of(judge), model="judge", form=shown, votes=1)
    assert judge.prompts == ["Sum?|7|3"]


# ---- ratings -------------------------------------------------------------------------------------------------------------


def test_elo_ratings_by_hand():
    """Of equals a win moves K / 2 = 16.  Then the winner is 32 points ahead, expected to win 1 / (1 + 10^(-32/400)) = .5459 of
    matches, and loses 32 * .5459 = 17.47 by losing the next."""
    assert elo_ratings(3, [(0, 1, 1.0)], 32) == [1016.0, 984.0, 1000.0]
    assert elo_ratings(2, [(0, 1, 1.0), (0, 1, 0.0)], 32) == pytest.approx([998.53, 1001.47], abs=0.01)
    assert elo_ratings(2, [(0, 1, 0.5)], 32) == [1000.0, 1000.0]
    assert elo_ratings(1, [], 32) == [1000.0]


def test_all_pairs_of_each_group_are_compared_for_elo():
    judge = Judge()
    ((first, second), (one, two, three)) = elo(model="judge", form=FORM)([group("5", "9"), group("1", "3", "2")], run_of(judge))
    assert len(judge.asked) == 1 + 3
    assert (first.value, second.value) == (998.0, 1002.0)
    assert one.value < three.value < two.value
    # points change hands alone
    assert one.value + two.value + three.value == pytest.approx(3000)


def test_a_majority_is_a_win_however_close():
    """By 3 votes a judge that always prefers what stands first says 2 to 1: the first of the pair has won."""
    scores = elo(model="judge", form=FORM, votes=3)([group("1", "2")], run_of(Judge(lambda a, b: "A")))
    assert [s.value for s in scores[0]] == [1002.0, 998.0]


# ---- tournaments ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [1, 2, 3, 5, 8])
def test_a_knockout_finds_the_best_in_one_comparison_less_than_there_are_replies(count):
    for seed in range(5):
        judge = Judge()
        assert chosen(knockout, judge, [str(i) for i in range(count)], seed) == str(count - 1)
        assert len(judge.asked) == count - 1
    judge = Judge()
    assert chosen(highest_elo, judge, [str(i) for i in range(count)]) == str(count - 1)
    assert len(judge.asked) == count * (count - 1) // 2


def test_who_had_no_opponent_plays_first_in_the_next_round():
    """Of 5 one sits out the first round; of the 3 that are left it is not the one that sits out again."""
    for seed in range(10):
        judge = Judge()
        chosen(knockout, judge, ["0", "1", "2", "3", "4"], seed)
        first, second = {x for pair in judge.asked[:2] for x in pair}, judge.asked[2]
        assert ({"0", "1", "2", "3", "4"} - first).pop() in second


def test_where_verdicts_go_in_a_circle_the_lots_decide_and_all_pairs_give_a_tie():
    """Stone, paper, scissors."""
    beats = {("s", "c"), ("c", "p"), ("p", "s")}
    circle = Judge(lambda a, b: "A" if (a, b) in beats else "B")
    assert {chosen(knockout, circle, ["s", "c", "p"], seed) for seed in range(20)} == {"s", "c", "p"}
    values = [s.value for s in elo(model="judge", form=FORM, k=0.01)([group("s", "c", "p")], run_of(circle))[0]]
    assert values == pytest.approx([1000.0] * 3, abs=1e-3)


def test_ties_are_decided_by_lot():
    assert {chosen(knockout, Judge(lambda a, b: "C"), ["1", "2"], seed) for seed in range(20)} == {"1", "2"}


# ---- the recipe ----------------------------------------------------------------------------------------------------------


def test_a_judge_is_trained_without_anything_to_imitate_and_measured_by_votes():
    recipe = rrm_reward_reasoning()
    assert (recipe.loop, recipe.select) == (None, None)
    assert "right_judgement" in str(recipe.reward)
    assert recipe.measure.settings["k"] == 5


def test_prompts_are_answered_by_a_tournament():
    recipe = rrm_reward_reasoning(candidates=4)
    assert recipe.select == knockout(model="policy", form="rrm", votes=5)
    assert recipe.rollout.settings["n"] == 4
    assert not recipe.learns
    other = rrm_reward_reasoning(candidates=4, judge="hf:somewhere", strategy="elo")
    assert other.select == highest_elo(model="judge", form="rrm", votes=5)
    assert [(x.name, x.init, x.every) for x in other.also] == [("judge", "hf:somewhere", 0)]
    policy = untrained(0, task=registry.task("arithmetic", test_size=1))
    short = rrm_reward_reasoning(candidates=3, form=FORM, votes=1)
    assert isinstance(answer(short, policy, prompt="2+3=?", max_new=4)["answer"], str)
