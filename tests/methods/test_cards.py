"""CARDS: what judges segments also chooses among replies, and whole replies are the case of one segment."""

from __future__ import annotations

from rewardlab import registry
from rewardlab.core import Run, ask
from rewardlab.methods.baselines.best_of_n import best_of_n
from rewardlab.methods.search.cards import cards, claim
from rewardlab.models.embedded import untrained
from rewardlab.rewards.correct_so_far import correct_so_far
from rewardlab.rewards.intrinsic import likelihood
from rewardlab.rewards.steps import leading_steps
from rewardlab.rollouts.best import best

PROBLEMS = [ask("1 + 2 = ?"), ask("3 + 4 = ?")]


def test_one_score_judges_segments_and_replies():
    given = cards(best_of_n().but(reward=leading_steps()))
    for recipe, score in ((cards(), likelihood()), (cards(score=correct_so_far()), correct_so_far()), (given, leading_steps())):
        assert recipe.rollout.settings["score"] == recipe.reward == score
        assert recipe.select == best()


def test_whole_replies_are_rejected_where_nothing_ends_a_segment():
    recipe = registry.build("cards", claim.versus_settings)
    run = Run(untrained(), max_new=12)
    rows = [t for group in recipe.rollout(PROBLEMS, run) for t in group]
    assert [len(t.turns) for t in rows] == [2, 2]
    ours = registry.build("cards", claim.settings).rollout.settings
    assert {k for k, v in recipe.rollout.settings.items() if v != ours[k]} == {"max_entropy", "max_tokens"}
