"""Cells: what should be read, and a teacher that reads the wrong column and is right by luck."""

from __future__ import annotations

import random

import pytest

from rewardlab.errors import RewardlabError
from rewardlab.worlds.cells import cells

TASK = cells(test_size=100)
PROBLEMS = [TASK.train[i] for i in range(400)]


def answer_of(text: str) -> str:
    return text.rpartition("Answer: ")[2]


def test_the_evidence_is_in_the_table_and_gives_the_answer():
    for p in PROBLEMS[:100]:
        (name, _), (value, column) = ((cell["value"], cell["column"]) for cell in p.meta["evidence"])
        (_, *columns), *rows = (line.split() for line in p.meta["table"].split("\n"))
        row = next(row for row in rows if row[0] == name)
        at = 1 + columns.index(column)
        assert row[at] == value
        kind, claimed = p.meta["asked"]["kind"], str(p.meta["asked"]["claimed"])
        expected = {"value": value, "most": name, "true": "yes" if value == claimed else "no"}[kind]
        assert p.answer == expected == answer_of(p.meta["solution"])
        if kind == "most":
            assert int(value) == max(int(r[at]) for r in rows)


def test_a_faultless_teacher_writes_the_solution_and_a_biased_one_another_column():
    faultless, biased = cells(biased=0, error=0, test_size=1), cells(biased=1, error=0, test_size=1)
    for i, p in enumerate(PROBLEMS[:100]):
        assert faultless.demonstrate(p, random.Random(i)) == p.meta["solution"]
        said = biased.demonstrate(p, random.Random(i))
        assert p.meta["evidence"][1]["column"] not in said


def test_many_answers_from_the_wrong_cells_are_right_by_luck():
    said = [TASK.demonstrate(p, random.Random(i)) for i, p in enumerate(PROBLEMS)]
    wrong_cells = [(p, text) for p, text in zip(PROBLEMS, said, strict=True) if text != p.meta["solution"]]
    lucky = sum(answer_of(text) == p.answer for p, text in wrong_cells) / len(wrong_cells)
    assert 0.2 < lucky < 0.45
    assert 0.4 < sum(answer_of(text) == p.answer for p, text in zip(PROBLEMS, said, strict=True)) / len(PROBLEMS) < 0.6


@pytest.mark.parametrize("options", [{"rows": 1}, {"rows": 9}, {"biased": 2.0}])
def test_settings_outside_their_range_are_refused(options):
    with pytest.raises(RewardlabError):
        cells(**options)
