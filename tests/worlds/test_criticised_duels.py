"""Duels with critiques: how many rows have them, and that they say what tells the replies apart."""

from __future__ import annotations

import numpy as np

from rewardlab import registry
from rewardlab.core import ask
from rewardlab.worlds.criticised_duels import COLUMNS, critique


def test_half_of_the_training_rows_have_critiques_of_both_orders_and_all_held_out_ones_do():
    task = registry.task("criticised_duels:test_size=40")
    rows = [task.train[i] for i in range(400)]
    assert 0.4 < np.mean([COLUMNS[0] in p.meta for p in rows]) < 0.6
    assert all((COLUMNS[0] in p.meta) == (COLUMNS[1] in p.meta) for p in rows)
    assert all(p.meta[column] for p in task.test for column in COLUMNS)
    assert task.warmed_as == registry.task("duels").warmed_as


def test_a_critique_names_the_wishes_that_one_reply_alone_fulfils():
    notes = ask("We need corn. Wishes: polite, urgent, signed.", None, kind="wishes", wishes=["polite", "urgent", "signed"])
    # both notes have "today": nothing is said of it
    assert critique(notes, "we need corn please today", "Ann today we need corn") == "polite + - signed - +"
    assert critique(notes, "Ann today we need corn", "we need corn please today") == "polite - + signed + -"
    sums = ask("Work out 12+5-3.", "14", kind="sums", steps=["12+5=17", "17-3=14"])
    assert critique(sums, "13", "14") == "12+5=17 17-3=14 A - B +"
