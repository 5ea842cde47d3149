"""Where steps end, for any way of cutting a text into tokens."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewardlab.core import Trajectory, Turn, ask
from rewardlab.errors import RewardlabError
from rewardlab.text.splitters import SPLITTERS, cut, mark, splitter


def steps(pieces: list[str], name: str) -> list[str]:
    ends = splitter(name)(pieces)
    return ["".join(pieces[a:b]) for a, b in zip([0, *(e + 1 for e in ends)], [e + 1 for e in ends], strict=False)]


def test_lines_end_steps_and_the_end_of_text_token_belongs_to_the_last():
    assert splitter("newline")(["7", "+5", "=12", "\n", "12", "*3", "=36", "\n", "Answer: 36", ""]) == [3, 7, 9]


def test_blank_steps_join_the_one_before_and_leading_blanks_the_one_after():
    assert steps(["\n", " ", "\n", "a", "\n\n", "\n", "b", "\n", " ", "\n"], "newline") == ["\n \na\n\n\n", "b\n \n"]


def test_a_piece_that_starts_with_a_line_break_belongs_to_the_line_it_writes():
    assert steps(["one", "\ntwo", "\nthree"], "newline") == ["one", "\ntwo", "\nthree"]


def test_blank_lines_end_paragraphs():
    text = "First,\n1+1=2.\n\nThen\n \t\n\n2+2=4\nso 4\n\n"
    assert cut(text, "paragraph") == ["First,\n1+1=2.", "Then", "2+2=4\nso 4"]
    assert cut("one\nline", "paragraph") == ["one\nline"]


def test_closing_tags_end_steps():
    assert cut("<step>a\nb</step> <step>c</step>\n the rest", "tag") == [
        "<step>a\nb</step>",
        "<step>c</step>",
        "the rest",
    ]


def test_sentences_are_not_ended_by_a_decimal_point():
    assert cut('It costs 3.50 in all. "Really?" Yes!\nSo 7.', "sentence") == [
        "It costs 3.50 in all.",
        '"Really?"',
        "Yes!",
        "So 7.",
    ]


def test_every_token_is_a_step_but_for_trailing_blanks():
    assert splitter("token")(["a", " ", "b", "\n", ""]) == [0, 1, 4]


@given(st.lists(st.text(alphabet="a1 .!\n</>s", max_size=5), max_size=30), st.sampled_from(sorted(SPLITTERS)))
def test_steps_cover_the_reply_and_only_a_blank_reply_is_a_blank_step(pieces, name):
    found = steps(pieces, name)
    assert "".join(found) == "".join(pieces)
    assert splitter(name)(pieces) == sorted(set(splitter(name)(pieces)))
    if pieces:
        assert splitter(name)(pieces)[-1] == len(pieces) - 1
    if name != "token" and "".join(pieces).strip():
        assert all(step.strip() for step in found)


@given(st.lists(st.sampled_from(["a", "12", "+", " ", "\n", "\n\n", ".", "=", " b"]), min_size=1, max_size=30))
def test_text_and_tokens_have_the_same_lines(pieces):
    assert [step.strip() for step in steps(pieces, "newline")] == cut("".join(pieces), "newline")


def characters(ids: np.ndarray) -> list[str]:
    return [chr(i) for i in ids]


def turn(author: str | None, text: str) -> Turn:
    return Turn(author, np.array([ord(c) for c in text], np.int64), text=text)


def test_mark_gives_token_positions_over_the_replies_of_the_policy():
    turns = (
        turn(None, "ask\n"),
        turn("policy", "a\nb"),
        turn("policy", "c"),
        turn(None, "no\n"),
        turn("policy", "d\ne"),
    )
    marked = mark(Trajectory(ask("?"), turns), "newline", characters)
    assert marked.steps == (5, 7, 12, 13)
    assert [chr(marked.ids[t]) for t in marked.steps] == ["\n", "c", "\n", "e"]


def test_mark_without_a_reply_has_no_steps():
    assert mark(Trajectory(ask("?"), (turn(None, "ask"),)), "newline", characters).steps == ()


def test_an_unknown_splitter_names_the_nearest():
    with pytest.raises(RewardlabError, match="did you mean newline"):
        splitter("newlines")
    with pytest.raises(RewardlabError, match="does not show its tokens"):
        cut("a b", "token")
