"""PRISM: when replies are resampled, where they are cut, and which refinements take their place."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from rewardlab.core import Recipe, Run, Trajectory, Turn, ask
from rewardlab.evals.passk import accuracy
from rewardlab.methods.baselines.weighted_vote import weighted_majority
from rewardlab.methods.search.prism_deepthink import Heat, chance, population, prism_deepthink, resampled
from tests.helpers.scripted import last_digit, searched

HEAT = Heat(temperature=0.5, least=0.5, copies=0.3)


def cloud(*scores):
    texts = [Trajectory(ask("?"), (Turn("policy", torch.zeros(1).numpy(), text=str(i)),)) for i in range(len(scores))]
    return list(zip(scores, texts, strict=True))


def drawn(heat, *scores, seed=0):
    return [t.reply for _, t in resampled(cloud(*scores), heat, torch.Generator().manual_seed(seed))]


def test_replies_are_resampled_where_few_of_them_matter():
    # w = r^2 = .64, .36, .36, .25: 1.61^2 / (.4096 + .1296 + .1296 + .0625) = 3.54 of 4
    assert drawn(HEAT, 0.8, 0.6, 0.6, 0.5) == ["0", "1", "2", "3"]
    # w = 1, .01, .01, .01: 1.0609 / 1.0003 = 1.06 < 2; the first may have ceil(.3 * 4) = 2 copies
    for seed in range(5):
        found = drawn(HEAT, 1.0, 0.1, 0.1, 0.1, seed=seed)
        assert found.count("0") == 2
        assert len(found) == 4
    assert drawn(Heat(0.5, 0.5, 1.0), 1.0, 0.0, 0.0, 0.0) == ["0"] * 4
    # a higher temperature flattens: w = r^.1, 1 and thrice .79
    assert drawn(Heat(10, 0.5, 0.3), 1.0, 0.1, 0.1, 0.1) == ["0", "1", "2", "3"]
    # where all are worthless there is nothing to resample by
    assert drawn(HEAT, 0.0, 0.0, 0.0) == ["0", "1", "2"]
    assert drawn(HEAT, 0.4) == ["0"]


@pytest.mark.parametrize(
    ("old", "new", "wanted"),
    [(0.8, 0.4, 0.25), (0.4, 0.8, 1.0), (0.5, 0.5, 1.0), (0.5, 0.0, 0.0), (0.0, 0.1, 1.0), (0.0, 0.0, 0.0)],
)
def test_a_refinement_is_accepted_by_the_ratio_of_weights(old, new, wanted):
    assert chance(HEAT, old, new) == pytest.approx(wanted)


CASES = [("Answer: 2", "end"), ("99", "length"), ("", "end"), ("<think>9", "end")]


STEPS = {"": ["a8\n"], "a8\n": ["b2\n", "d9"], "a8\nb2\n": ["c4"]}


def test_a_reply_is_gone_on_with_before_its_first_bad_step():
    def says(t):
        calls.append(t.reply)
        if t.reply == "a8\n":
            return ["b2\n"] if calls.count("a8\n") == 1 else ["d9"]
        return STEPS[t.reply]

    calls: list[str] = []
    replies, ((row,),), _ = searched(population(score=last_digit(), n=1, rounds=1, elsewhere=0.0, heat=0.5), says)
    # a8 scores .8 and stays; b2 scores .2; the refinement scores .9 against .4 and is accepted
    assert calls == ["", "a8\n", "a8\nb2\n", "a8\n"]
    assert replies == [["a8\nd9"]]
    assert row.path == (0, 1)
    assert len(row.spans) == 2


def test_a_worthless_refinement_is_refused_and_a_perfect_reply_left_alone():
    def says(t):
        return ["5\n"] if not t.reply else ["x4", "x0"][sum(r == "5\n" for call in seen for r in call) > 1 :]

    seen: list = []

    def logged(t):
        seen.append([t.reply])
        return says(t)

    # x4 first; after it only x0, whose weight is 0
    assert searched(population(score=last_digit(), n=1, rounds=4, elsewhere=0.0), logged)[0] == [["5\nx4"]]
    assert len(seen) == 2 + 4
    _, _, policy = searched(population(score=last_digit() / 0.9, n=2, rounds=3), {"": ["9"]})
    assert policy.calls == [["", ""]]


def test_a_reply_that_was_cut_off_is_never_copied_and_does_not_vote():
    says = {"": ["1", "9" * 30, "2"]}
    recipe = prism_deepthink(Recipe(reward=last_digit(), measure=accuracy()), n=3, rounds=1, elsewhere=0.0, copies=1.0, heat=0.1)
    # the long one is cut after 20 digits, with the highest score by the reward; of 1 and 2, 2 weighs 2^10 times as much
    replies, _, policy = searched(recipe.rollout, says, max_new=20)
    assert replies == [["2", "2", "2"]]
    run = Run(policy)
    rows = [Trajectory(ask("?"), (Turn("policy", np.zeros(1, np.int64), text=x),), stop) for x, stop in CASES]
    assert [s.total for s in recipe.reward([rows], run)[0]] == pytest.approx([0.2, 0.0, 0.0, 0.0])
    assert recipe.select(rows, recipe.reward([rows], run)[0], run).reply == "Answer: 2"


def test_a_worthless_reply_keeps_one_place_at_most():
    for seed in range(20):
        found = drawn(Heat(0.5, 0.5, 0.25), 1.0, 0.0, 0.0, 0.0, seed=seed)
        assert max(found.count(x) for x in "123") == 1


def test_the_recipe_votes_by_score():
    recipe = prism_deepthink(n=4, rounds=2, heat=0.3)
    known = recipe.rollout.settings
    assert (known["n"], known["rounds"], known["heat"], known["score"]) == (4, 2, 0.3, recipe.reward.settings["inner"])
    assert recipe.select == weighted_majority()
