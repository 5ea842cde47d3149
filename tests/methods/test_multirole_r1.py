"""MultiRole-R1: diversity of roles and of language beside the answer."""

from __future__ import annotations

import math

import pytest
from lengths import credits, reply, run_at, totals

from rewardlab import registry
from rewardlab.errors import RewardlabError
from rewardlab.methods.shaping.multirole_r1 import lexical_diversity, perspectives

RUN = run_at()
ROLES = {"roles": "^As an? ([^,]+)", "max_roles": 2}


def value(part, text: str) -> float:
    return part([[reply(1, text)]], RUN)[0][0].value


def test_lexical_diversity_by_hand():
    # a b a b c: types 3/5; entropy of 2/5 2/5 1/5 over log 3; sentences of 3 and 2 words: .5 / 2.5; two statements: 0;
    # {a b}, {b c}: 1 - 1/3; K = 10^4 (4 + 4 + 1 - 5) / 25 = 1600; bigrams ab ba ab bc: 3/4; one function word: 0
    entropy = -(0.8 * math.log(0.4) + 0.2 * math.log(0.2)) / math.log(3)
    assert value(lexical_diversity(), "a b a. B c") == pytest.approx((0.6 + entropy + 0.2 + 2 / 3 + 1 / 17 + 0.75) / 8)
    # the same word, over and over: one of four types, K = 10^4 (16 - 4) / 16 = 7500, one of three bigrams
    assert value(lexical_diversity(), "no no no no") == pytest.approx((1 / 4 + 1 / 76 + 1 / 3) / 8)
    # one word has no pair, no entropy and no second sentence: it does not earn more than a reply that varies
    assert value(lexical_diversity(), "one") == 1 / 8
    assert value(lexical_diversity(), "one. two") == pytest.approx((1 + 1 + 1 + 1 + 1) / 8)
    assert value(lexical_diversity(), " ... ") == 0.0


def test_kinds_of_sentences_and_function_words_by_hand():
    # what no other measure tells apart: a question and an exclamation are two of three kinds
    plain, asked = (value(lexical_diversity(), text) for text in ("one. two.", "one? two!"))
    assert asked - plain == pytest.approx(math.log(2) / math.log(3) / 8)
    # two of twenty function words, equally often
    known, unknown = (value(lexical_diversity(), text) for text in ("the of", "ten six"))
    assert known - unknown == pytest.approx(math.log(2) / math.log(20) / 8)
    # sentences of 1 and 9 words vary by 4/5; of 1, 1 and 19 by more than their mean, which counts as 1
    assert "lengths 0.80" in why("a. " + "b " * 9)
    assert "lengths 1.00" in why("a. b. " + "c " * 19)


def why(text: str) -> str:
    return lexical_diversity()([[reply(1, text)]], RUN)[0][0].why


def test_perspectives_count_once_each_and_up_to_the_most():
    part = perspectives(pattern="^As an? ([^,]+)", max_roles=3)
    text = "As a nurse, yes.\nAs a NURSE , no.\nAs an old man, no.\nNot as a cook, no."
    assert value(part, text) == pytest.approx(2 / 3)
    assert value(part, "".join(f"As a role {i}, yes.\n" for i in range(9))) == 1.0
    assert value(part, "yes") == 0.0
    assert value(perspectives(pattern="yes|no", max_roles=4), "yes\nyes, no\nno") == 0.5
    with pytest.raises(RewardlabError, match="not a regular expression"):
        value(perspectives(pattern="("), "yes")


def test_the_reward_and_the_credit_where_all_are_right():
    recipe = registry.build("multirole_r1", {**ROLES, "perspective": 0.2})
    two, one = "As a cook, x.\nAs a nurse, 4", "As a cook, 4"
    lexical = [value(lexical_diversity(), text) for text in (two, one)]
    group = [reply(3, two), reply(5, one), reply(2, "As a cook, ?")]
    expected = [0.9 + 0.1 * lexical[0] + 0.2, 0.9 + 0.1 * lexical[1] + 0.1, None]
    assert totals(recipe, [group], RUN)[0] == pytest.approx(expected)
    # two replies: +-.7071 whatever the distance, up to the epsilon
    assert credits(recipe, [group], RUN) == pytest.approx([0.705, -0.705, 0], abs=3e-3)
    # a wrong reply of all roles earns less than a right one of none
    wrong, right = totals(recipe, [[reply(3, "As a cook, x.\nAs a nurse, 5"), reply(3, "4")]], RUN)[0]
    assert wrong < right


def test_as_in_the_paper_roles_earn_nothing_by_themselves():
    two, one = "As a cook, x.\nAs a nurse, 4", "As a cook, 4"
    found = totals(registry.build("multirole_r1"), [[reply(3, two), reply(5, one)]], RUN)[0]
    assert found == pytest.approx([0.9 + 0.1 * value(lexical_diversity(), text) for text in (two, one)])


def test_without_roles_of_its_own_a_reply_is_counted_by_its_different_answers():
    recipe = registry.build("multirole_r1", {"perspective": 0.1})
    part = next(p for p in recipe.reward.walk() if p.name == "perspectives")
    assert value(part, "Answer: 3\nConfidence: 0.5\nAnswer: 4\nAnswer 3: 4") == 0.5
