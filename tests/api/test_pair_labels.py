"""Pairs that say more than their order, pairs that say nothing, and empty replies: told before training."""

import json

import pytest

from rewardlab.commands.cli import main

ROWS = [{"prompt": f"{i}+1=?", "chosen": f"{i + 1}", "rejected": f"{i + 7}"} for i in range(12)]


def dry_run(tmp_path, capsys, rows, *more):
    (tmp_path / "pairs.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    given = ["--task", str(tmp_path / "pairs.jsonl"), "--model", "untrained", "--dry-run"]
    code = main(["train", "bradley_terry", *given, *more])
    told = capsys.readouterr()
    return code, " ".join((told.out + told.err).split())


@pytest.mark.parametrize(
    ("columns", "labels"),
    [({"margin": 2.5}, "margins"), ({"label": 0.8}, "votes"), ({"chosen_rating": 4, "rejected_rating": 1}, "margins")],
)
def test_what_pairs_say_is_read_or_the_setting_that_reads_it_is_named(tmp_path, capsys, columns, labels):
    rows = [row | columns for row in ROWS]
    code, told = dry_run(tmp_path, capsys, rows)
    assert code == 0
    assert f"not read by bradley_terry: {' and '.join(columns)}" in told
    assert f"--labels {labels}" in told
    code, told = dry_run(tmp_path, capsys, rows, "--labels", labels)
    assert code == 0
    assert f"read as chosen_score and rejected_score: {' and '.join(columns)}" in told
    assert "not read" not in told


@pytest.mark.parametrize(
    ("columns", "wrong", "right"), [({"margin": 2.5}, "votes", "margins"), ({"label": 0.8}, "margins", "votes")]
)
def test_a_margin_is_no_count_of_votes_and_a_chance_no_margin(tmp_path, capsys, columns, wrong, right):
    code, told = dry_run(tmp_path, capsys, [row | columns for row in ROWS], "--labels", wrong)
    assert code
    assert f"cannot read the column {next(iter(columns))}" in told
    assert f"--labels {right} reads it" in told


def test_a_hard_label_that_is_read_is_told(tmp_path, capsys):
    rows = [row | {"label": 1} for row in ROWS]
    assert "read as chosen_score and rejected_score: label" in dry_run(tmp_path, capsys, rows, "--labels", "votes")[1]
    code, told = dry_run(tmp_path, capsys, rows, "--labels", "margins")
    assert code
    assert "--labels votes reads it" in told


def test_plain_pairs_and_hard_labels_are_told_nothing_of(tmp_path, capsys):
    for columns in ({}, {"label": 1}):
        code, told = dry_run(tmp_path, capsys, [row | columns for row in ROWS])
        assert code == 0
        assert "not read" not in told


def test_pairs_of_equal_replies_are_left_out_and_counted(tmp_path, capsys):
    rows = [row | ({"rejected": row["chosen"]} if i % 4 == 1 else {}) for i, row in enumerate(ROWS)]
    code, told = dry_run(tmp_path, capsys, rows)
    assert code == 0
    assert "left out: 3 of 12 pairs" in told
    assert "pairs.jsonl, line 2)" in told
    code, told = dry_run(tmp_path, capsys, [row | {"rejected": row["chosen"]} for row in ROWS])
    assert code
    assert "chosen and rejected are equal" in told


def test_an_empty_reply_is_no_missing_column(tmp_path, capsys):
    code, told = dry_run(tmp_path, capsys, [*ROWS, {"prompt": "5+5=?", "chosen": "10", "rejected": " "}])
    assert code
    assert "rejected: the worse reply" in told
    assert "line 13, empty" in told
