"""RewardAnything: rewards for the order of all replies under a principle, and for the form; numbers worked out by hand."""

from __future__ import annotations

import json

import pytest
from rows import Replies

from rewardlab import registry
from rewardlab.core import Run, Trajectory, ask
from rewardlab.methods.judges.rewardanything import (
    PRINCIPLE,
    agreement,
    form_of_json,
    in_agreement,
    ndcg,
    ranking_agreement,
    well_formed,
)

FORM = "By {principle} {prompt}\n{replies}"


@pytest.mark.parametrize(
    ("said", "gold", "expected"),
    [
        # pairs (1,2), (1,3), (2,3) weigh 1 + 1, 1 + 3, 1 + 2: 9 in all
        ((5, 4, 1), (4, 3, 1), 1.0),
        ((1, 4, 5), (4, 3, 1), 0.0),
        # the far pair is turned round: 4 of 9; and with it (1,2) is tied: 1 more
        ((2, 2, 3), (4, 3, 1), 1 - (1 + 4 + 3) / 9),
        ((3, 5, 1), (4, 3, 1), 1 - 2 / 9),
        # a tie in the row's scores is no fault, whatever the judge says; all tied by the judge: half
        ((5, 1), (3, 3), 1.0),
        ((2, 2, 2), (4, 3, 1), 0.5),
    ],
)
def test_pairs_far_apart_cost_more_and_ties_half(said, gold, expected):
    assert agreement(said, gold) == pytest.approx(expected)


def judged(text, worth=(3.0, 1.0)):
    shown = ["a", "b", "c"][: len(worth)]
    begun = Trajectory(ask("Why?", shown=shown, worth=list(worth)))
    return Replies([text]).extend([begun], None, None)[0]


def values(part, *rows):
    return [s.value for s in part([list(rows)], Run(None))[0]]


def test_a_judgement_without_scores_agrees_with_nothing():
    rows = [judged("[[5, 2]]"), judged("[[1, 2]]"), judged("[[4]]"), judged("")]
    assert values(in_agreement(form=FORM), *rows) == [1.0, 0.0, 0.0, 0.0]
    assert values(well_formed(form=FORM), *rows) == [1.0, 1.0, 0.0, 0.0]


def listed(*scores, order=()):
    said = {f"model-{i}": x for i, x in enumerate(scores, 1) if x is not None}
    return "<think>x</think>" + json.dumps({"scores": said, "best-to-worst": list(order)})


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # gold 4, 3, 1: pairs weigh 2, 4, 3.  equal scores are tied, whatever the order says: half of 2
        (listed(4, 4, 1, order=["model-2", "model-1", "model-3"]), 1 - 1 / 9),
        (listed(4, 4, 1, order=["model-1", "model-2", "model-3"]), 1 - 1 / 9),
        # two of three have scores: their pair alone, of 4
        (listed(5, None, 1), 1.0),
        (listed(1, None, 5), 0.0),
        (listed(2, "none", 2), 0.5),
        # one, or none
        (listed(5, None, None), 0.0),
        ("nothing", 0.0),
    ],
)
def test_the_published_form_is_paid_by_its_scores_over_the_replies_that_have_one(text, expected):
    assert values(in_agreement(), judged(text, (4.0, 3.0, 1.0))) == [pytest.approx(expected)]


SAID = {"scores": {"model-1": 4, "model-2": 2}, "best-to-worst": ["model-1", "model-2"]}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # tags .15, JSON .2, keys .2, both replies .2, the order .2; over 50 characters of thought .05 more
        (f"<think>short</think>{json.dumps(SAID)}", 0.95),
        (f"<think>{'long ' * 11}</think>\n```json\n{json.dumps(SAID)}\n```", 1.0),
        # text around it costs .05, and no tags .15
        (f"Here: {json.dumps(SAID)}", 0.75),
        # an order against the scores costs .2; one reply without a score .1
        (json.dumps({**SAID, "best-to-worst": ["model-2", "model-1"]}), 0.6),
        (json.dumps({"scores": {"model-1": 4}}), 0.2 + 0.1 + 0.1),
        ("<think>", 0.05),
        ("", 0.0),
        ("[1, 2]", 0.0),
        ('{"scores": 3, "best-to-worst": [[1], {}]}', 0.4),
    ],
)
def test_shares_of_the_form(text, expected):
    assert form_of_json(text, 2) == pytest.approx(expected)


def test_the_reward_is_the_sum_of_both():
    recipe = registry.build("rewardanything", {"form": FORM, "formed": 0.5})
    scores = recipe.reward([[judged("[[5, 2]]"), judged("[[2, 5]]"), judged("no")]], Run(None))[0]
    assert [s.total for s in scores] == [1.5, 0.5, 0.0]


def test_gains_far_down_the_order_count_less():
    # gains 2^2 - 1 = 3, 2^1 - 1 = 1 and 0; places 1, log2 3, 2
    assert ndcg([0.9, 0.5, 0.1], [3, 2, 1]) == 1.0
    assert ndcg([0.1, 0.5, 0.9], [3, 2, 1]) == pytest.approx((1 / 1.5849625 + 3 / 2) / (3 + 1 / 1.5849625))
    assert ndcg([1, 2], [2, 2]) == 1.0
    # percentages and Elo ratings are scores, too
    assert ndcg([2, 1], [100, 0]) == ndcg([2, 1], [2400, 1000]) == 1.0
    assert ndcg([1, 2], [100, 0]) == pytest.approx(1 / 1.5849625)


class Judge(Replies):
    """It scores each reply by the number in its text, or says nothing."""

    def extend(self, trajectories, sampling, rng):
        rows = [[text[-1] for text in t.problem.meta["shown"]] for t in trajectories]
        said = [f"[[{', '.join(row)}]]" for row in rows]
        silent = ["silent" in t.problem.question for t in trajectories]
        self.replies = ["none" if nothing else text for text, nothing in zip(said, silent, strict=True)]
        return super().extend(trajectories, sampling, rng)


def test_replies_are_ranked_in_any_order_and_silence_ties_them():
    rows = [
        ask("first", replies=["x 1", "x 3", "x 9"], scores=[1, 2, 5], principle="p"),
        ask("second", replies=["x 1", "x 9", "x 3"], scores=[1, 2, 5], principle="p"),
        ask("silent", replies=["x 1", "x 9"], scores=[1, 2], principle="p"),
    ]
    found = ranking_agreement(form=FORM)(rows, Run(Judge([]), max_new=9))
    # tau 1; of three pairs one turned round: 1/3; all tied: 0
    assert found["tau"] == pytest.approx((1 + 1 / 3 + 0) / 3)
    assert found["pairs"] == pytest.approx((1 + 2 / 3 + 1 / 2) / 3)
    assert found["unread"] == pytest.approx(1 / 3)


def test_a_row_is_judged_by_its_own_principle_unless_all_have_the_same():
    rows = [ask("Why?", replies=["a", "b"], scores=[1, 0], principle="Be brief."), ask("How?", replies=["a", "b"], scores=[1, 0])]
    own, same = ["By Be brief. Why?", f"By {PRINCIPLE} How?"], ["By Be kind. Why?", "By Be kind. How?"]
    for told, expected in (("", own), ("Be kind.", same)):
        recipe = registry.build("rewardanything", {"form": FORM, "told": told, "n": 2})
        groups = recipe.rollout(rows, Run(Replies(["[[1, 0]]"] * 4), max_new=9))
        assert [g[0].problem.question.partition("\n")[0] for g in groups] == expected
