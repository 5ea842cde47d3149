"""Questions with options and without: what each form makes of a row, and which rows it leaves out."""

from __future__ import annotations

import json

import pytest

from rewardlab import data
from rewardlab.data.drops import Drop
from rewardlab.data.templates import gold_option, options_of, templated
from rewardlab.errors import RewardlabError

OPTIONS = ["seven", "12", "B"]


@pytest.mark.parametrize(
    ("answer", "at"),
    [("B", 2), ("b", 2), ("A", 0), ("(A)", 0), ("C.", 2), (1, 1), (12, 1), ("12", 1), ("SEVEN", 0), ("D", None),
     (7, None), ("", None), (True, None)],
)  # fmt: skip
def test_the_right_option_by_text_letter_or_index(answer, at):
    # an option's own text comes before a letter
    assert gold_option(answer, OPTIONS) == at


def test_options_of_a_list_an_object_or_json():
    assert options_of(["a ", "b"]) == options_of('["a", "b"]') == options_of({"B": "b", "A": "a", "C": None}) == ["a", "b"]
    assert options_of(None) == options_of("a, b") == []


@pytest.mark.parametrize("written", [lambda value: value, json.dumps])
@pytest.mark.parametrize(("labels", "answer"), [("ABCD", "C"), ("1234", "3")])
def test_options_with_labels_as_arc_has_them(tmp_path, written, labels, answer):
    options = written({"text": ["iron", "glass", "wood", "clay"], "label": list(labels)})
    (tmp_path / "a.jsonl").write_text(json.dumps({"prompt": "What burns?", "answer": answer, "choices": options}) + "\n")
    data.template_file(tmp_path / "a.jsonl", tmp_path / "b.jsonl", form="both", options_column="choices")
    made = [json.loads(line) for line in (tmp_path / "b.jsonl").read_text().splitlines()]
    assert [(row["prompt"], row["answer"]) for row in made] == [
        ("What burns?\nA. iron\nB. glass\nC. wood\nD. clay", "C"), ("What burns?", "wood"),
    ]  # fmt: skip


def test_both_forms_of_a_question():
    made = templated("What is 3*4?", "B", ["7", "12"], "both")
    assert made == [("choice", "What is 3*4?\nA. 7\nB. 12", "B"), ("open", "What is 3*4?", "12")]
    # one that can only be chosen from, and one that has nothing to choose from
    assert [form for form, *_ in templated("Which of the following is odd?", "A", ["7", "12"], "both")] == ["choice"]
    assert templated("What is 3*4?", "12", [], "both") == [("open", "What is 3*4?", "12")]


@pytest.mark.parametrize(
    ("question", "answer", "options", "form", "reason"),
    [
        ("What?", "Z", ["a", "b"], "choice", "bad option"), ("What?", "Z", ["a", "b"], "open", "bad option"),
        ("What?", "a", ["a", "A"], "choice", "bad options"), ("What?", "a", ["a"], "choice", "bad options"),
        ("What?", "a", [], "choice", "no options"), ("What?", "", [], "open", "cannot be verified"),
        ("What?", "word " * 11, [], "open", "cannot be verified"), ("What?", "B", ["a", "b " * 11], "open", "cannot be verified"),
        ("All but one are true, except", "a", ["a", "b"], "open", "asks about its options"),
    ],
)  # fmt: skip
def test_what_cannot_be_verified_is_left_out_with_the_reason(question, answer, options, form, reason):
    found = templated(question, answer, options, form)
    assert isinstance(found, Drop)
    assert found.reason == reason


def test_a_file_gets_both_forms_each_with_its_verifier(tmp_path):
    rows = [
        {"prompt": "What is 3*4?", "answer": "B", "options": ["7", "12"], "domain": "math"},
        {"prompt": "Who wrote it?", "answer": "Ada Lovelace", "domain": "history"},
        {"prompt": "Why?", "answer": "because " * 20, "domain": "history"},
    ]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    told = data.template_file(tmp_path / "a.jsonl", tmp_path / "b.jsonl", form="both", verifier="two_way_match")
    made = [json.loads(line) for line in (tmp_path / "b.jsonl").read_text().splitlines()]
    assert [(row["form"], row["verifier"], row["answer"]) for row in made] == [
        ("choice", "choice", "B"), ("open", "two_way_match", "12"), ("open", "two_way_match", "Ada Lovelace"),
    ]  # fmt: skip
    # what is open shows no options, to any reward either
    assert made[0]["options"] == ["7", "12"]
    assert not made[1].get("options")
    assert told["dropped"] == {"cannot be verified": 1}
    with pytest.raises(RewardlabError, match="form"):
        data.template_file(tmp_path / "a.jsonl", tmp_path / "b.jsonl", form="opened")
