"""Temperature scaling: the split of a budget, when temperatures agree, what is sampled then, and what a grid reaches."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction

import numpy as np
import pytest

from rewardlab import registry
from rewardlab.api import answer
from rewardlab.core import Run, Score, Task, ask
from rewardlab.errors import RewardlabError
from rewardlab.methods.search.temperature_scaling_tts import (
    GRID,
    agreed,
    over_temperatures,
    reach_of_temperatures,
    shares,
    temperature_scaling_tts,
)
from rewardlab.rewards.intrinsic import likelihood
from rewardlab.rollouts.best import best
from rewardlab.rollouts.independent import independent
from rewardlab.rollouts.vote import majority
from tests.helpers.scripted import ScriptedPolicy
from tests.helpers.served_model import serving

NO, A, B = "I cannot say.", "Answer: 7", "Answer: 8"


class Warm(ScriptedPolicy):
    """Says the texts of a table by question and temperature, in turn over all calls. `asked` counts replies by both."""

    def __init__(self, table):
        super().__init__({})
        self.table, self.asked = table, Counter()

    def extend(self, trajectories, sampling, rng):
        return [self._at(t, sampling) for t in trajectories]

    def _at(self, t, sampling):
        place = (t.problem.question, sampling.temperature)
        said = self.table[place[0]][place[1]]
        self.says = {"": [said[self.asked[place] % len(said)]]}
        self.asked[place] += 1
        return super().extend([t], sampling, None)[0]


def sampled(table, n=8, **settings):
    """The replies to each question of the table, and the policy and the run."""
    run = Run(policy := Warm(table), max_new=100)
    grid = over_temperatures(inner=independent(n=n), temperatures=tuple(next(iter(table.values()))), **settings)
    return grid([ask(question) for question in table], run), policy, run


# ---- the split ----------------------------------------------------------------------------------------------------------


def test_a_budget_is_split_evenly_with_one_reply_at_zero():
    assert shares(9, (0.0, 0.5, 1.0)) == [1, 4, 4]
    # 8 - 1 = 7 over two: 3 each, and the one left goes to the middle, the later of two
    assert shares(8, (0.0, 0.5, 1.0)) == [1, 3, 4]
    # 10 over four: 2 each, and of the two left one goes to either side of the middle: places 1 and 3
    assert shares(10, (0.4, 0.6, 0.8, 1.0)) == [2, 3, 2, 3]
    # too few for all: spread over the grid
    assert shares(1, (0.4, 0.8, 1.2)) == [0, 1, 0]
    assert shares(2, (0.2, 0.4, 0.6, 0.8)) == [0, 1, 0, 1]
    # more replies at 0 would all be the same
    assert shares(5, (0.0,)) == [1]
    assert all(sum(shares(n, GRID)) == n for n in range(1, 100))


# ---- when temperatures agree --------------------------------------------------------------------------------------------


def test_temperatures_agree_where_each_is_sure_and_all_of_the_same():
    # 4 of 5 is .8, just enough; 3 of 4 is not; replies without an answer count against it
    assert agreed([[7, 7, 7, 7, 8], [7, 7]], 0.8, 1.0)
    assert not agreed([[7, 7, 7, 8], [7, 7]], 0.8, 1.0)
    assert not agreed([[7, 7, 7, None], [7, 7]], 0.8, 1.0)
    assert not agreed([[None, None], [7, 7]], 0.8, 1.0)
    # each is sure, and not of the same
    assert not agreed([[7, 7], [8, 8]], 0.8, 1.0)
    # three of four suffice for .75; that one is unsure does not
    assert agreed([[7], [7], [7], [8]], 0.8, 0.75)
    assert not agreed([[7], [7], [7], [7, 8]], 0.8, 0.75)
    assert agreed([[Fraction(1, 2)], [0.5]], 0.8, 1.0)


# ---- what is sampled ----------------------------------------------------------------------------------------------------


def test_an_easy_question_is_left_after_the_least_and_a_hard_one_gets_the_whole_budget():
    table = {
        "easy": {0.0: [A], 0.5: [A], 1.0: [A]},
        # sure at each temperature, and of different answers
        "split": {0.0: [A], 0.5: [A], 1.0: [B]},
        # unsure at 1.0 in the beginning; 2 of 3 are no .8, and 4 of 5 would be after the budget
        "late": {0.0: [A], 0.5: [A], 1.0: [B, A, A, A, A]},
    }
    groups, policy, run = sampled(table, n=9)
    assert [len(group) for group in groups] == [1 + 2 + 2, 9, 9]
    assert policy.asked["split", 0.0] == 1
    assert policy.asked["split", 1.0] == policy.asked["split", 0.5] == 4
    assert run.metrics["left_early"] == pytest.approx(1 / 3)
    # every reply has a number of its own, and tokens are those of the replies that were made
    assert [t.path for t in groups[1]] == [(i,) for i in range(9)]
    assert policy.token_count.generated == sum(t.written for group in groups for t in group)


def test_a_question_is_left_as_soon_as_its_temperatures_agree():
    # 1.0: one wrong of the first 4, then 4 of 5
    groups, policy, _ = sampled({"q": {0.5: [A], 1.0: [B, A, A, A, A, A]}}, n=20)
    assert policy.asked == {("q", 0.5): 5, ("q", 1.0): 5}
    assert majority()(groups[0], [], None).reply == A


def test_with_as_many_as_the_budget_nothing_is_left_early():
    groups, *_ = sampled({"q": {0.5: [A], 1.0: [A]}}, n=6, least=6)
    assert len(groups[0]) == 6


def test_fewer_replies_than_temperatures_and_a_grid_of_one():
    groups, policy, _ = sampled({"q": {0.2: [A], 0.6: [A], 1.0: [B]}}, n=1)
    assert [t.reply for t in groups[0]] == [A]
    assert policy.asked == {("q", 0.6): 1}
    assert len(sampled({"q": {0.0: [A]}}, n=8)[0][0]) == 1


def test_the_answer_is_the_vote_over_all_temperatures():
    # sure of 8 at each of two temperatures, 7 has 4 of 12 and no answer 2
    table = {"q": {0.4: [B, B, A, B], 0.8: [A, NO, B, B], 1.2: [A, A, NO, B]}}
    groups, *_ = sampled(table, n=12)
    assert len(groups[0]) == 12
    recipe = temperature_scaling_tts()
    assert recipe.select == majority()
    # 8: 3 + 2 + 1 = 6;  7: 1 + 1 + 2 = 4
    assert recipe.select(groups[0], [Score(None)] * 12, None).reply == B


def test_it_keeps_the_selection_of_what_it_is_stacked_on():
    recipe = registry.build("best_of_n+temperature_scaling_tts", {"best_of_n.n": 12})
    assert recipe.select == best()
    assert recipe.reward == likelihood()
    assert recipe.rollout.rows_per_problem == recipe.rollout.innermost.settings["n"] == 12


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"temperatures": ()}, "different numbers"), ({"temperatures": (0.5, 0.5)}, "different numbers"),
        ({"temperatures": (-0.5, 1.0)}, "from 0 up"),
    ],
)  # fmt: skip
def test_settings_that_make_no_sense_are_refused(settings, says):
    with pytest.raises(RewardlabError, match=says):
        temperature_scaling_tts(**settings)


def test_answers_count_the_tokens_that_were_sampled():
    prompts = ["easy", "hard"]
    table = {"easy": {0.4: [A], 0.8: [A]}, "hard": {0.4: [A, B], 0.8: ["The total is 7, so the answer is **7**.", B]}}
    test = tuple(ask(question, "7") for question in prompts)
    task = Task("rows", test, test, "final_number")
    found = answer(temperature_scaling_tts(n=8, temperatures=(0.4, 0.8)), policy := Warm(table), task, problems=2, device="cpu")
    assert sum(policy.asked.values()) == 4 + 8
    assert found["tokens"] == policy.token_count.generated
    assert found["replies"] == 6.0
    assert found["pass@all"]["value"] == 1.0
    assert found["pass@1"]["value"] == pytest.approx((1 + 0.5) / 2)


def test_a_served_model_is_sampled_at_each_temperature():
    asked = []

    def says(body):
        asked.append(body)
        # at 1.0 in turn, so that it is never sure
        hot = sum(one["temperature"] == 1.0 for one in asked)
        return "I think the answer is **12**." if body["temperature"] < 1 or hot % 2 else "So it is **13**."

    with serving(says) as server:
        recipe = temperature_scaling_tts(n=7, temperatures=(0.0, 0.5, 1.0))
        found = answer(recipe, server.name, prompt="What is 3 times 4?", max_new=20)
    assert sorted(body["temperature"] for body in asked) == [0.0, 0.5, 0.5, 0.5, 1.0, 1.0, 1.0]
    # the rounds ask anew, with other seeds, so that a server does not repeat itself
    assert len({body["seed"] for body in asked if body["temperature"] > 0}) == 6
    assert found["replies"] == 7
    assert "12" in found["answer"]


# ---- what there is to gain ----------------------------------------------------------------------------------------------


def right_where_a(groups, run):
    return [[Score(float(t.reply == A)) for t in group] for group in groups]


def test_reach_tells_complementary_temperatures_from_resampling():
    # 0.4 always solves e, f and never g, h; 1.0 the other way about, but for one half of f
    table = {
        "e": {0.4: [A], 1.0: [B]}, "f": {0.4: [A], 1.0: [A, B]}, "g": {0.4: [A], 1.0: [B]}, "h": {0.4: [B], 1.0: [A]},
        "i": {0.4: [B], 1.0: [A]}, "j": {0.4: [B], 1.0: [B]},
    }  # fmt: skip
    run = Run(Warm(table), max_new=100, verify=right_where_a)
    found = reach_of_temperatures(temperatures=(0.4, 1.0), n=4)([ask(q) for q in table], run)
    # chosen on e, g, i: 0.4 solves two, 1.0 one;  valued on f, h, j: 0.4 solves f alone, the grid f and h
    assert found["best"] == 0.4
    assert found["other"] == 1.0
    assert found["single"] == pytest.approx(1 / 3)
    assert found["grid"] == pytest.approx(2 / 3)
    assert found["gain"] == pytest.approx(1 / 3)
    # h is new at 1.0; two more replies at 0.4 add nothing
    assert found["new_other"] == pytest.approx(1 / 3)
    assert found["new_same"] == 0.0
    assert found["solved_at_0.4"] == pytest.approx(3 / 6)
    assert found["solved_at_1"] == pytest.approx(3 / 6)


def test_alike_temperatures_gain_nothing_and_add_what_resampling_adds():
    # 2 of 4 right everywhere: two of them miss with 1/6, so that two more add 1 - 5/6 = 1/6, and two others 5/6 of 1/6
    table = {q: {0.4: [A, B], 1.0: [A, B]} for q in "efgh"}
    run = Run(Warm(table), max_new=100, verify=right_where_a)
    found = reach_of_temperatures(temperatures=(0.4, 1.0), n=4)([ask(q) for q in table], run)
    assert found["new_same"] == pytest.approx(1 / 6)
    assert found["new_other"] == pytest.approx(5 / 36)
    # 1 - (1/6)^2 against 1, since without replacement three of four hit
    assert found["single"] == 1.0
    assert found["grid"] == pytest.approx(1 - 1 / 36)


def test_reach_refuses_too_little():
    with pytest.raises(RewardlabError, match="even"):
        reach_of_temperatures(n=3)([ask(q) for q in "abcd"], Run(None))
    assert np.isclose(sum(shares(64, GRID)), 64)
