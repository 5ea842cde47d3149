"""Replies with references: labels are true, and no opening of a held-out reply is in a training row."""

from __future__ import annotations

import random

from rewardlab import registry
from rewardlab.data.openers import opener_of
from rewardlab.worlds.references import references


def test_labels_say_whether_the_answer_is_the_reference_and_working_out_goes_along_with_being_right():
    task = references()
    rows = [task.train[i] for i in range(600)]
    assert all((p.meta["reply"].rpartition("Answer: ")[2] == p.answer) == (p.meta["label"] == "yes") for p in rows)
    share = {
        long: sum(p.meta["label"] == "yes" for p in own) / len(own)
        for long in (True, False)
        if (own := [p for p in rows if ("\n" in p.meta["reply"]) == long])
    }
    assert 0.68 < share[True] < 0.82
    assert 0.27 < share[False] < 0.43


def test_every_row_has_a_worked_out_reply_whose_opener_answers_nothing_and_held_out_ones_are_new():
    task = references()
    training = {opener_of(p.meta["worked"], p.answer) for p in (task.train[i] for i in range(400))}
    held_out = {opener_of(p.meta["worked"], p.answer) for p in task.test}
    assert None not in training | held_out
    assert not training & held_out


def test_the_small_judge_is_impressed_by_what_is_worked_out_and_compares_elsewhere():
    judged = registry.task(references().warmed_as)
    rows = [judged.train[i] for i in range(600)]
    said = [judged.demonstrate(p, random.Random(i)) for i, p in enumerate(rows)]
    long = [text for text, p in zip(said, rows, strict=True) if "\n" in p.meta["reply"] and p.meta["label"] == "no"]
    short = [text == f"[[{p.meta['label']}]]" for text, p in zip(said, rows, strict=True) if "\n" not in p.meta["reply"]]
    # impressed in .8, and in a tenth of the rest wrong by chance: .82
    assert 0.7 < sum(text == "[[yes]]" for text in long) / len(long) < 0.92
    assert 0.84 < sum(short) / len(short) < 0.96
    assert rows[0].question.endswith(f"Reference: {rows[0].answer}\n")
