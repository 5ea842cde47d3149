"""Documents as problems whose spans are hidden: what is salient, that no copy is left, and what can be searched."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewardlab import data
from rewardlab.data.masking import hide, mask, salient
from rewardlab.errors import RewardlabError

TEXT = (
    "Ada Lovelace met Charles Babbage in 1833. The Analytical Engine was planned in London on 12 March 1837. "
    "However, it cost 1,500."
)


def test_names_dates_and_numbers_are_salient():
    named = ["Ada Lovelace", "Charles Babbage", "1833", "Analytical Engine", "London", "12 March 1837", "1,500"]
    assert salient(TEXT) == named
    # a word that opens a sentence is a name only if it is one elsewhere
    assert salient("Paris is old. It is said that Paris is older.") == ["Paris"]
    assert salient("Paris is old.") == []
    assert salient("In May 12, 1999 the Bank of England paid 3.5% more.") == ["May 12, 1999", "Bank of England", "3.5%"]


def test_a_span_is_hidden_wherever_it_stands_and_the_longest_first():
    hidden, answers = hide("Bob of Ada Lovelace met Ada. Bobby saw Bob.", ["Ada", "Bob", "Ada Lovelace"])
    assert hidden == "[mask 1] of [mask 2] met [mask 3]. Bobby saw [mask 1]."
    assert answers == ["Bob", "Ada Lovelace", "Ada"]
    assert hide("nothing here", ["Bob"]) == ("nothing here", [])
    assert hide(TEXT, []) == (TEXT, [])


@given(st.text(alphabet="AaBb 12.,[]'\n", max_size=60))
def test_the_answers_put_back_are_the_text(text):
    hidden, answers = hide(text, salient(text))
    for i, span in reversed(list(enumerate(answers, 1))):
        hidden = hidden.replace(mask(i), span)
    assert hidden == text


def rows(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_each_document_is_a_row_for_each_number_of_masks(tmp_path):
    others = [f"Nobody lived in Place{i} before {1900 + i}." for i in range(5)]
    near = "Charles Babbage and Ada Lovelace wrote letters."
    (source := tmp_path / "docs.jsonl").write_text(
        "".join(json.dumps({"text": t, "id": i}) + "\n" for i, t in enumerate([TEXT, near, *others]))
    )
    data.ramp_file(source, tmp_path / "out.jsonl", max_masks=3, around=2)
    written = rows(tmp_path / "out.jsonl")
    first = [row for row in written if row["id"] == 0]
    assert [row["masks"] for row in first] == [1, 2, 3]
    for row in written:
        assert len(row["answer"]) == row["masks"]
        # what is hidden stands nowhere in the prompt, and the document can be found
        assert not any(span in row["prompt"].split() for span in row["answer"])
        assert all(mask(i) in row["prompt"] for i in range(1, row["masks"] + 1))
        assert len(row["facts"]) <= 3
    assert all(TEXT in row["facts"] and near in row["facts"] for row in first)


def test_a_document_without_a_span_is_left_out_with_the_reason(tmp_path):
    (source := tmp_path / "docs.jsonl").write_text(
        '{"text": "nothing to see"}\n{"text": "See Rome and Bonn.", "names": ["Bonn", "Oslo"]}\n'
    )
    data.ramp_file(source, tmp_path / "out.jsonl", spans_column=None)
    (dropped,) = rows(tmp_path / "out.dropped.jsonl")
    assert "no name, date or number" in json.dumps(dropped)
    (source2 := tmp_path / "given.jsonl").write_text('{"text": "See Rome and Bonn.", "names": ["Bonn", "Oslo"]}\n')
    data.ramp_file(source2, tmp_path / "given_out.jsonl", spans_column="names")
    # a span that the text does not hold is not hidden
    assert [row["answer"] for row in rows(tmp_path / "given_out.jsonl")] == [["Bonn"]]
    with pytest.raises(RewardlabError, match="max_masks is a whole number from 1 up, not 0"):
        data.ramp_file(source, tmp_path / "x.jsonl", max_masks=0)
