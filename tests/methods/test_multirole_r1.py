"""MultiRole-R1: diversity of roles and of language beside the answer."""

from __future__ import annotations

import math

import pytest
from lengths import credits, reply, run_at, totals

from rewardlab import registry
from rewardlab.errors import RewardlabError
from rewardlab.methods.shaping.multirole_r1 import lexical_diversity, perspectives

RUN = run_at()
ROLES = {"roles": "^As an? ([^,]+)", "most": 2}


def value(part, text: str) -> float:
    return part([[reply(1, text)]], RUN)[0][0].value


def test_lexical_diversity_by_hand():
    # a b a. b c: types 3/5; bigrams ab ba ab bc: 3/4; entropy of 2/5 2/5 1/5 over log 5; sentences {a b}, {b c}: 1 - 1/3
    entropy = -(0.8 * math.log(0.4) + 0.2 * math.log(0.2)) / math.log(5)
    assert value(lexical_diversity(), "a b a. B c") == pytest.approx((0.6 + 0.75 + entropy + 2 / 3) / 4)
    # the same word, over and over: one of four types, one of three bigrams, no entropy, one sentence
    assert value(lexical_diversity(), "no no no no") == pytest.approx((1 / 4 + 1 / 3) / 4)
    # one word has no pair, no entropy and no second sentence: it does not earn more than a reply that varies
    assert value(lexical_diversity(), "one") == 0.25
    assert value(lexical_diversity(), "one. two") == pytest.approx((1 + 1 + 1 + 1) / 4)
    assert value(lexical_diversity(), " ... ") == 0.0


def test_perspectives_count_once_each_and_up_to_the_most():
    part = perspectives(pattern="^As an? ([^,]+)", most=3)
    text = "As a nurse, yes.\nAs a NURSE , no.\nAs an old man, no.\nNot as a cook, no."
    assert value(part, text) == pytest.approx(2 / 3)
    assert value(part, "".join(f"As a role {i}, yes.\n" for i in range(9))) == 1.0
    assert value(part, "yes") == 0.0
    assert value(perspectives(pattern="yes|no", most=4), "yes\nyes, no\nno") == 0.5
    with pytest.raises(RewardlabError, match="not a regular expression"):
        value(perspectives(pattern="("), "yes")


def test_the_reward_and_the_credit_where_all_are_right():
    recipe = registry.build("multirole_r1", ROLES)
    two, one = "As a cook, x.\nAs a nurse, 4", "As a cook, 4"
    lexical = [value(lexical_diversity(), text) for text in (two, one)]
    group = [reply(3, two), reply(5, one), reply(2, "As a cook, ?")]
    assert totals(recipe, [group], RUN)[0] == pytest.approx([1 + 0.1 * (lexical[0] + 1), 1 + 0.1 * (lexical[1] + 0.5), None])
    # two replies: +-.7071 whatever the distance, up to the epsilon
    assert credits(recipe, [group], RUN) == pytest.approx([0.705, -0.705, 0], abs=3e-3)
    # a wrong reply of all roles earns less than a right one of none
    wrong, right = totals(recipe, [[reply(3, "As a cook, x.\nAs a nurse, 5"), reply(3, "4")]], RUN)[0]
    assert wrong < right


def test_without_roles_of_its_own_a_reply_is_counted_by_its_different_answers():
    part = next(p for p in registry.build("multirole_r1").reward.walk() if p.name == "perspectives")
    assert value(part, "Answer: 3\nConfidence: 0.5\nAnswer: 4\nAnswer 3: 4") == 0.5
