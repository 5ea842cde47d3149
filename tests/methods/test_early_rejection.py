"""Early rejection: which begun steps are completed, and what that costs."""

from __future__ import annotations

import pytest

from rewardlab.checks.pairs import Pairs
from rewardlab.methods.search.early_rejection import claim, early_rejection
from rewardlab.rollouts.beams import beams
from rewardlab.rollouts.best import best
from tests.helpers.scripted import last_digit, searched

SAYS = {"": ["a5xxx9\n", "b7xxx1\n"], "b7": ["xxx1\n"], "b7xxx1\n": ["4", "2"], "a5xxx9\n": ["8"]}


def test_only_the_best_of_the_begun_steps_is_completed():
    replies, (group,), policy = searched(beams(score=last_digit(), width=1, branch=2, early=2), SAYS)
    # by the two first tokens b7 beats a5; by whole steps a5xxx9 would have won
    assert policy.calls == [["", ""], ["b7"], ["b7xxx1\n"] * 2]
    assert replies == [["b7xxx1\n4", "b7xxx1\n2"]]
    whole, _, patient = searched(beams(score=last_digit(), width=1, branch=2), SAYS)
    assert whole == [["a5xxx9\n8", "a5xxx9\n8"]]
    # 2 x 2 tokens of begun steps, 5 to complete one of them, 2 x (1 and the end); for whole steps 2 x 7 and 2 x (1 and the end)
    assert policy.token_count.generated == 4 + 5 + 4
    assert patient.token_count.generated == 14 + 4
    # a completed step is one step: the row is one of a tree
    assert [t.path for t in group] == [(1, 0), (1, 1)]
    assert [len(t.spans) for t in group] == [2, 2]


def test_a_completed_step_keeps_every_token_and_its_score():
    _, (group,), _ = searched(beams(score=last_digit(), width=2, branch=1, early=2), SAYS | {"a5": ["xxx9\n"]})
    assert sorted(t.reply for t in group) == ["a5xxx9\n8", "b7xxx1\n4"]
    for t in group:
        assert int(t.mask.sum()) == len(t.column("logprobs")[t.mask]) == len(t.reply) + 1


@pytest.mark.parametrize("early", [1, 3, 4, 9])
def test_a_step_is_never_longer_than_allowed(early):
    _, (group,), _ = searched(beams(score=last_digit(), width=1, branch=1, early=early, step_tokens=4), {
        "": ["abcdefgh"], "a": ["bcdefgh"], "abc": ["defgh"], "abcd": ["efgh"], "abcde": ["fgh"], "abcdefg": ["h"],
        "abcdefgh": [""],
    })  # fmt: skip
    assert [t.reply for t in group] == ["abcdefgh"]
    assert max(end - start for _, start, end in group[0].spans) <= 4


def test_the_recipe_drops_early_and_chooses_by_whole_replies():
    recipe = early_rejection(width=2, branch=3, tokens=7)
    known = recipe.rollout.settings
    assert (known["width"], known["branch"], known["early"], known["score"]) == (2, 3, 7, recipe.reward)
    assert recipe.select == best()


def test_both_sides_of_the_claim_search_by_its_scorer_and_differ_in_nothing_but_when_they_ask_it():
    ours, theirs = (recipe.rollout.settings for recipe in Pairs("early_rejection", claim).recipes)
    assert ours["score"] == theirs["score"] == claim.reward
    assert {k for k, v in ours.items() if v != theirs[k]} == {"early"}
