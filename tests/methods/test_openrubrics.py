"""OpenRubrics: rubrics of a pair, the filter by their judgements, and judging by rubrics of one's own."""

from __future__ import annotations

import random

import numpy as np
import pytest
from rows import Replies

from rewardlab.core import Run, Trajectory, Turn, ask
from rewardlab.errors import RewardlabError
from rewardlab.methods.judges.openrubrics import consistent_rubrics, openrubrics, rubric_accuracy
from rewardlab.worlds.occasions import WISHES, by_rubric, fulfilled, occasions, wished

FORMS = {
    "contrast": "{prompt} + {chosen} - {rejected}",
    "write": "{prompt} Rubric?",
    "judge": "{prompt} {first} | {second} by {rubric}",
}


class Model(Replies):
    """It writes `rubrics` in turn, and judges by them: "long" prefers the longer reply, "short" the other, others say nothing."""

    context = 10_000

    def __init__(self, *rubrics):
        super().__init__([])
        self.rubrics, self.asked, self.at = rubrics, [], 0

    def extend(self, trajectories, sampling, rng):
        return [t.plus(Turn("writer", np.zeros(1, np.int64), text=self._said(t.problem.question)), "end") for t in trajectories]

    def _said(self, question):
        self.asked.append(question)
        if " by " not in question:
            self.at += 1
            return self.rubrics[(self.at - 1) % len(self.rubrics)]
        replies, rubric = question.removeprefix("Why? ").split(" by ")
        first, second = map(len, replies.split(" | "))
        marks = {"long": "AB"[first < second], "short": "AB"[first > second]}
        return f"[[{marks[rubric]}]]" if rubric in marks else "Hm."


def pair(**meta):
    return ask("Why?", None, chosen="because of this", rejected="so", **meta)


def recorded(problems, model, **settings):
    run = Run(Replies([]), models={"writer": model})
    groups = consistent_rubrics(**FORMS, **settings)(problems, run)
    return [(t.problem.question, t.reply) for (t,) in groups], run


def test_the_first_rubric_by_which_the_better_reply_wins_is_learnt_with_its_judgement():
    model = Model("short", "vague", "long")
    (rubric, judgement), run = recorded([pair()], model, n=3)
    assert model.asked[:3] == ["Why? + because of this - so"] * 3
    assert rubric == ("Why? Rubric?", "long")
    question, said = judgement
    # the better reply stands in either place, and the verdict names it
    assert question in ("Why? because of this | so by long", "Why? so | because of this by long")
    assert said == ("[[A]]" if question.startswith("Why? because") else "[[B]]")
    assert run.metrics["accepted"] == pytest.approx(1 / 3)


def test_pairs_without_such_a_rubric_are_dropped_unless_any_rubric_will_do():
    rows, _ = recorded([pair()], Model("short"), n=2)
    assert rows == [("Why?", "")]
    (rubric, judgement), run = recorded([pair()], Model("short"), n=2, filtered=False)
    assert rubric == ("Why? Rubric?", "short")
    assert judgement[1] == ("[[B]]" if judgement[0].startswith("Why? because") else "[[A]]")
    assert run.metrics["accepted"] == 0.0


def test_rows_may_bring_rubrics_with_judgements_or_without():
    own = [
        {"rubric": "told", "judgement": "[[A]]", "swapped": True},
        {"rubric": ["1. long", "2. clear"], "judgement": "[[B]]", "swapped": True},
        "long",
    ]
    model = Model("never asked")
    rows, run = recorded([pair(rubrics=own)], model)
    # the first judgement prefers what stands first, which is the worse reply
    assert rows == [("Why? Rubric?", "1. long\n2. clear"), ("Why? so | because of this by 1. long\n2. clear", "[[B]]")]
    assert run.metrics["accepted"] == pytest.approx(2 / 3)
    assert len(model.asked) == 1


def listed(**meta):
    """Three replies of 2, 12 and 22 letters, of which the longest is the best; two of them are worth the same."""
    return ask("Why?", None, replies=["so", "because of x", "because of this and that", "not"], scores=[0, 1, 2, 0], **meta)


def test_of_a_list_all_pairs_of_different_worth_are_judged_and_the_right_judgements_are_learnt():
    model = Model("long")
    forms = {**FORMS, "contrast_list": "{prompt}\n{replies}"}
    run = Run(Replies([]), models={"writer": model})
    groups = consistent_rubrics(**forms)([listed()], run)
    assert model.asked[0] == "Why?\n1. because of this and that\n\n2. because of x\n\n3. so\n\n4. not"
    # six pairs, without that of the two that are worth the same
    pairs = [{*q.removeprefix("Why? ").partition(" by ")[0].split(" | ")} for q in model.asked[1:]]
    assert len(pairs) == 5
    assert {"so", "not"} not in pairs
    # the rubric once, and a judgement of each pair
    assert groups[0][0].reply == "long"
    assert len(groups) == 1 + 5
    assert run.metrics["accepted"] == 1.0


def test_a_rubric_of_a_list_must_order_half_of_its_pairs_and_its_wrong_judgements_are_not_learnt():
    """Worth 2, 1, 0 of replies of 3, 5 and 1 letters: the longer one is better in two pairs of three, the shorter one in one."""
    row = ask("Why?", None, replies=["abc", "abcde", "a"], scores=[2, 1, 0])
    for rubric, least, kept in (("long", 0.5, 2), ("long", 0.7, 0), ("short", 0.5, 0), ("short", 0.3, 1)):
        run = Run(Replies([]), models={"writer": Model(rubric)})
        groups = consistent_rubrics(**FORMS, least=least)([row], run)
        assert len(groups) == 1 + kept
        assert groups[0][0].reply == (rubric if kept else "")
        assert run.metrics["accepted"] == float(kept > 0)


def test_a_list_may_bring_rubrics_but_no_judgements():
    model = Model("never asked")
    rows, _ = recorded([listed(rubrics=[{"rubric": "long", "judgement": "[[B]]"}])], model)
    assert len(model.asked) == 5
    assert rows[0] == ("Why? Rubric?", "long")
    # replies that are all worth the same say nothing of any rubric
    alike = ask("Why?", None, replies=["so", "not"], scores=[1, 1], rubrics=["long"])
    assert recorded([alike], model)[0] == [("Why?", "")]


def test_a_text_alone_is_one_rubric_of_a_row():
    model = Model("never asked")
    rows, _ = recorded([pair(rubric="long")], model, column="rubric")
    assert rows[0] == ("Why? Rubric?", "long")
    assert len(model.asked) == 1
    assert recorded([pair(rubrics={"rubric": "long"})], model)[0][0] == ("Why? Rubric?", "long")


def test_a_rubric_is_what_stands_after_the_thinking():
    rows, _ = recorded([pair()], Model("<think>shorter?</think>\n\nlong"))
    assert rows[0] == ("Why? Rubric?", "long")


def test_the_defaults_are_those_of_the_paper():
    """One rubric of a pair, by its likeliest tokens, and a judge that ends with a winner."""
    recipe = openrubrics()
    assert recipe.rollout.settings["n"] == 1
    assert recipe.rollout.settings["temperature"] == 0.0
    said = [{"rubric": "1. The response is short. [Hard Rule]", "judgement": "--- Final Judgment ---\nWinner: Response A"}]
    run = Run(Replies([]), models={"writer": Model("never asked")})
    groups = recipe.rollout([pair(rubrics=said)], run)
    assert groups[1][0].reply.endswith("Winner: Response A")
    assert "Rubric:\n1. The response is short. [Hard Rule]\n\nResponse A:\nbecause of this" in groups[1][0].problem.question


def test_both_orders_come_up():
    problems = [ask(f"Why {i}?", None, chosen="because", rejected="so", rubrics=["x"]) for i in range(12)]
    shown = [recorded([p], Model("x"), filtered=False)[0][1][0] for p in problems]
    assert {text.partition("? ")[2].split(" ")[0] for text in shown} == {"because", "so"}


def test_a_row_without_a_pair_is_refused():
    with pytest.raises(RewardlabError, match="chosen"):
        recorded([ask("Why?", None)], Model("long"))


def test_held_out_pairs_are_judged_by_rubrics_that_the_policy_writes_without_them():
    problems = [pair(), pair(), pair()]
    policy = Model("long", "short", "vague")
    found = rubric_accuracy(write=FORMS["write"], judge=FORMS["judge"])(problems, Run(policy))
    assert policy.asked[:3] == ["Why? Rubric?"] * 3
    # long: right in both orders; short: wrong in both; vague: unread, which is not right
    assert (found["pair_accuracy"], found["judged"], found["unread"]) == pytest.approx((1 / 3, 1 / 3, 1 / 3))
    # several judgements by one rubric
    policy = Model("long", "short", "vague")
    assert rubric_accuracy(write=FORMS["write"], judge=FORMS["judge"], k=5)(problems, Run(policy))["judged"] == pytest.approx(1 / 3)
    assert len(policy.asked) == 3 + 3 * 2 * 5


def answered(problem, text):
    return Trajectory(problem, (Turn("policy", np.zeros(1, np.int64), text=text),), "end")


def test_rubrics_of_the_world_contrast_the_replies_and_some_of_them_mislead():
    rng, right, of_wishes = random.Random(0), [], []
    train = occasions(size=200).train
    for i in range(200):
        p = train[i]
        for x in p.meta["rubrics"]:
            right.append(x["judgement"].endswith("[[B]]" if x["swapped"] else "[[A]]"))
            of_wishes += [word in wished(p) for word in x["rubric"].split()]
    assert 0.55 < np.mean(right) < 0.95
    assert 3 / 8 < np.mean(of_wishes) < 0.75
    task = occasions(judged=True, test_size=60)
    for p in task.test:
        said = task.demonstrate(p, rng)
        if p.meta["rubric"]:
            first, second = p.meta["shown"]
            word = p.meta["rubric"].split()[0]
            signs = ["+" if fulfilled(x, word) else "-" for x in (first, second)]
            assert said.split()[:3] == [word, *signs]
            assert by_rubric()([[answered(p, said), answered(p, "Hm.")]])[0][1].value == 0.0
        else:
            assert set(said.split()) <= set(WISHES)
        assert by_rubric()([[answered(p, said)]])[0][0].value == 1.0
