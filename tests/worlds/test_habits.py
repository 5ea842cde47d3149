"""Notes by writers with habits: notes of one writer are alike, test pairs are by others, and labels are wrong as asked."""

from __future__ import annotations

import random
import statistics

from rewardlab.worlds.habits import Habits, habits, writer
from rewardlab.worlds.notes import quality, read


def test_a_writer_keeps_its_habits_but_for_a_slip_now_and_then():
    problem = habits(size=1).train[0]
    own = Habits(polite=2, today=None, praise=3, filler=1)
    notes = [read(own.write(problem, random.Random(i))) for i in range(400)]
    assert all(note.well_formed for note in notes)
    # a slip of 10% chooses the habit itself again 1 time in 4 (politeness, praise, fillers), or for today, which is half the asks
    for kept in ([n.praise == 3 for n in notes], [n.filler == 1 for n in notes], [n.polite == 2 for n in notes]):
        assert 0.88 < statistics.mean(kept) < 0.97
    asked = [note.today == problem.meta["hurry"] for note in notes]
    assert 0.9 < statistics.mean(asked) < 0.99


def test_outputs_of_one_writer_are_more_alike_than_those_of_two_and_test_writers_are_others():
    train = habits(size=150).train
    rows = [train[i].meta for i in range(150)]
    same, other = [], []
    for meta in rows:
        (a1, a2), (b, _) = list(meta["outputs"].values())[:2]
        same.append(abs(read(a1).praise - read(a2).praise))
        other.append(abs(read(a1).praise - read(b).praise))
    assert statistics.mean(same) < 0.4 < 1.0 < statistics.mean(other)
    assert len({name for meta in rows for name in meta["outputs"]}) == 48
    assert [writer("train", i) for i in range(48)] != [writer("test", i) for i in range(48)]


def test_pairs_differ_in_quality_beside_a_reference_of_the_best():
    train = habits(size=150, flip=0.25).train
    rows = [train[i].meta for i in range(150)]
    assert all(quality(meta["reference"], meta) == 1.0 for meta in rows)
    assert all([quality(meta[side], meta) for side in ("chosen", "rejected")] == meta["qualities"] for meta in rows)
    assert 0.15 < statistics.mean(meta["qualities"][0] < meta["qualities"][1] for meta in rows) < 0.36
    assert all(p.meta["qualities"][0] > p.meta["qualities"][1] for p in habits(test_size=50).test)
