"""Rows from which a judge, or a policy that one pays, would learn nothing are refused before anything is loaded, in words."""

from __future__ import annotations

import json

import pytest

from rewardlab import registry
from rewardlab.api.pair_labels import check_rows
from rewardlab.core import ask
from rewardlab.errors import RewardlabError
from rewardlab.judges.cases import check_cases, questions_about
from rewardlab.judges.named import form_of
from rewardlab.methods.judges.trm_thinking_supervised_rm import TRM

PAIR = {"chosen": "It is so.", "rejected": "It is not."}
TRACED = PAIR | {"judgement": '{"explanation": "", "score": "Assistant A"}'}
SENTENCES = {"documents": ["It opened in 1899."], "sentences": [{"text": "It did.", "correct": "yes"}]}


@pytest.fixture
def checked(tmp_path):
    """Check four rows with these columns for a method; one may have others."""

    def check(method, columns, settings=None, last=None):
        rows = [{"prompt": f"Question {i}?"} | (last if last is not None and i == 3 else columns) for i in range(4)]
        (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        check_rows(registry.build(method, settings or {}), registry.task(str(tmp_path / "rows.jsonl")))

    return check


@pytest.mark.parametrize(
    ("method", "columns", "settings", "says"),
    [
        ("s2j", PAIR, {}, r"s2j pays the judge's own solution .* none of 4 rows has one: .*--weight 0"),
        ("mr3", {}, {}, r"rows.jsonl, line \d: problem 'Question 0\?' has nothing to judge"),
        ("mr3", PAIR, {}, r"none of 4 rows has one: none has the column.*--language target"),
        ("mr3", TRACED | {"judgement": '"score": "Assistant B"'}, {}, r"4 have one whose verdict is not the label"),
        ("rlac", {}, {"choice": "random"}, r"(?s)needs a column.*checklist: "),
        ("rlac", {"checklist": ["short"]}, {"validator": ""}, r"no item of 'checklist' of 4 rows has one: .*--validator"),
        ("deepseek_grm_spct", {}, {}, r"rows.jsonl, line \d: .* has no replies to judge"),
        ("deepseek_grm_spct", {"replies": ["a", "b"], "scores": [1]}, {}, r"line \d: .* has no replies to judge"),
        ("trained_judge", {"chosen": "so", "rejected": "no"}, {"form": "{prompt} {first} {second} {rubric}"}, r"'rubric'"),
        ("rewardanything", {"replies": ["a", "b"], "scores": [2, 2]}, {}, r"in all 4 rows the replies are worth the same"),
        ("libra_rm", {"reply": "a", "label": 4}, {}, r"line \d: .*says \(4\) is not from 0 to 1"),
        ("libra_rm", {"reply": "a", "label": "maybe"}, {}, r"line \d: the label 'maybe'"),
        ("trm_thinking_supervised_rm", {"documents": ["d"]}, {}, r"line \d: .* has no sentences to judge"),
    ],
)
def test_rows_that_teach_nothing_are_refused(method, columns, settings, says, checked):
    with pytest.raises(RewardlabError, match=says):
        checked(method, columns, settings)


@pytest.mark.parametrize(
    ("method", "columns", "settings"),
    [
        ("s2j", PAIR, {"weight": 0.0}),
        ("s2j", PAIR | {"answer": "so"}, {}),
        ("mr3", TRACED, {}),
        ("rlac", {}, {}),
        ("deepseek_grm_spct", PAIR, {}),
        ("libra_rm", {"reply": "a", "label": 0.7}, {}),
        ("trm_thinking_supervised_rm", SENTENCES, {}),
        ("trm_thinking_supervised_rm", {"documents": ["d"]}, {"trm": "copy:policy"}),
    ],
)
def test_rows_that_teach_something_are_taken(method, columns, settings, checked):
    checked(method, columns, settings)


def test_a_single_bad_row_is_named_wherever_it_stands(checked):
    with pytest.raises(RewardlabError, match=r"line 4: .* has nothing to judge"):
        checked("mr3", TRACED, last={"reply": "a"})
    checked("mr3", TRACED, last=PAIR)


def test_questions_of_a_row_are_those_that_its_form_shows():
    listed = ask("Why?", None, replies=["a", "b", "c"], scores=[0, 1, 0])
    assert len(questions_about(listed, form_of("", "verdict"))) == 3
    assert len(questions_about(listed, form_of("", "scores"))) == 1
    asked = questions_about(listed, form_of("", "pairwise"))[0]
    # what is a question to a judge already passes as it is
    assert questions_about(asked, form_of("")) == [asked]
    check_cases([asked], form_of(""))


def test_a_policy_that_a_judge_of_sentences_pays_is_measured_by_that_judge():
    recipe = registry.build("trm_thinking_supervised_rm", {"trm": "copy:policy"})
    assert recipe.measure.name == "own_reward"
    assert recipe.measure.settings["reward"].settings["model"] == TRM
