"""Duels with judgements to learn from: about which order, and how often they are right."""

from __future__ import annotations

import random

import numpy as np
import pytest

from rewardlab import registry
from rewardlab.judges.cases import WORTH, agrees
from rewardlab.judges.named import form_of
from rewardlab.rollouts.judgements import Judging, own_judgement
from rewardlab.worlds.duels import FORM


@pytest.mark.parametrize(("settings", "low", "high"), [("", 0.85, 0.97), (":taught_error=0,taught_named=1", 1.0, 1.0)])
def test_half_of_the_judgements_stand_in_each_order_and_most_are_right(settings, low, high):
    train = registry.task(f"taught_duels{settings}").train
    rows = [train[i] for i in range(400)]
    assert all(("judgement" in p.meta) != ("judgement_reversed" in p.meta) for p in rows)
    assert 0.4 < np.mean(["judgement" in p.meta for p in rows]) < 0.6
    right = []
    for row in rows:
        question, text = own_judgement(row, Judging(FORM), random.Random(0))
        values = form_of(FORM).read(text, 2).values
        right.append(agrees(values, question.meta[WORTH]))
    assert low <= np.mean(right) <= high


def test_the_policy_is_that_of_duels_and_rows_are_the_same_in_every_epoch():
    task = registry.task("taught_duels:size=8")
    assert task.warmed_as == registry.task("duels").warmed_as
    epochs = [{task.train[i].key: task.train[i].meta for i in range(start, start + 8)} for start in (0, 8)]
    assert epochs[0] == epochs[1]
