"""Rows of which few have labels: digits, rotated digits, and rows of a file."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch

from rewardlab.errors import RewardlabError
from rewardlab.tasks.few_labels import digits, from_file, rotated


@pytest.mark.slow
def test_digits_have_as_many_labels_of_each_class():
    pytest.importorskip("sklearn")
    problem = digits("class", 20, np.random.default_rng(0))
    (x, y), (others, hidden), (test, answers) = problem.labelled, problem.unlabelled, problem.test
    assert y.bincount().tolist() == [2] * 10
    assert len(x) + len(others) + len(test) == 1797
    assert (len(hidden), len(answers), problem.classes) == (len(others), len(test), 10)
    # the same row is in one part only
    rows = {tuple(row.tolist()) for part in (x, others, test) for row in part}
    assert len(rows) == 1797


def test_numbers_are_the_angles_by_which_digits_are_rotated():
    pytest.importorskip("sklearn")
    problem = digits("number", 100, np.random.default_rng(0))
    assert len(problem.labelled[1]) == 100
    assert 0 <= float(problem.unlabelled[1].min()) < float(problem.unlabelled[1].max()) <= 1
    # a label that is off by 1 is off by all 120 degrees
    assert problem.error(torch.tensor([0.25]), torch.tensor([0.5])).tolist() == [30.0]


def test_an_image_is_rotated():
    image = torch.zeros(1, 8, 8)
    image[0, 3:5, 6:8] = 1.0
    still = rotated(image.view(1, 64), torch.zeros(1)).view(8, 8)
    assert torch.allclose(still, image[0], atol=1e-5)
    quarter = rotated(image.view(1, 64), torch.tensor([np.pi / 2])).view(8, 8)
    # from the right to the top or the bottom
    assert torch.allclose(quarter, torch.rot90(image[0], 1), atol=1e-4) or torch.allclose(
        quarter, torch.rot90(image[0], -1), atol=1e-4
    )


def write(path, rows) -> str:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(path)


def test_rows_of_a_file_without_a_label_are_unlabelled(tmp_path):
    rows = [{"a": i, "b": -i, "name": "x", "kind": "even" if i % 2 == 0 else "odd"} for i in range(10)]
    rows += [{"a": 100, "b": 5, "name": "y", "kind": None}, {"a": 7, "b": 5, "name": "z", "kind": ""}]
    problem = from_file(write(tmp_path / "rows.jsonl", rows), "kind", "class", np.random.default_rng(0))
    # text is no input; 30% of 10 labelled ones are held out
    assert problem.labelled[0].shape == (7, 2)
    assert (len(problem.test[1]), len(problem.unlabelled[0]), problem.unlabelled[1], problem.classes) == (3, 2, None, 2)
    whole = torch.cat((problem.labelled[0], problem.unlabelled[0], problem.test[0]))
    assert torch.allclose(whole.mean(0), torch.zeros(2), atol=1e-5)
    assert [problem.restore(y) for y in (0, 1)] == ["even", "odd"]


def test_numbers_of_a_file_keep_their_unit(tmp_path):
    rows = [{"a": i, "price": 10.0 + 5 * i} for i in range(11)] + [{"a": 3, "price": None}]
    problem = from_file(write(tmp_path / "rows.jsonl", rows), "price", "number", np.random.default_rng(0))
    assert (problem.classes, problem.unit) == (0, 50.0)
    assert problem.restore(0.5) == 35.0
    every = torch.cat((problem.labelled[1], problem.test[1]))
    assert (float(every.min()), float(every.max())) == (0.0, 1.0)


@pytest.mark.parametrize(
    ("rows", "goal", "message"),
    [
        ([{"a": 1, "label": "x"}] * 6, "class", "filled in for 6 of 6"),
        ([{"a": "red", "label": "x"}] * 6 + [{"a": "red"}], "class", "here none"),
        ([{"a": 1, "label": "x"}] * 6 + [{"a": 1}], "number", "every label is a number or empty"),
    ],
)
def test_files_that_will_not_do_are_refused(tmp_path, rows, goal, message):
    with pytest.raises(RewardlabError, match=message):
        from_file(write(tmp_path / "rows.jsonl", rows), "label", goal, np.random.default_rng(0))
