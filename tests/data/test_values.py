"""What stands in the columns of a row."""

from __future__ import annotations

from rewardlab.data.values import kind_in


def test_a_kind_is_the_value_of_a_column_and_a_list_counts_by_its_length():
    row = {"steps": ["a", "b"], "kind": "x", "level": 3}
    assert [kind_in(row, column) for column in ("steps", "kind", "level", "other", "")] == ["2", "x", "3", "None", ""]
