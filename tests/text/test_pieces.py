"""Where a text stands among the texts of tokens."""

from __future__ import annotations

from rewardlab.text.pieces import tokens_with


def test_the_tokens_that_hold_a_text_in_part_or_wholly():
    pieces = ["so ", "1", "", "2 o", "r 12", "!"]
    assert tokens_with("12", pieces) == [1, 3]
    assert tokens_with("12", pieces, last=True) == [4]
    assert tokens_with("13", pieces) == []
    assert tokens_with("12", []) == []
