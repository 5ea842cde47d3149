"""Judgements that rows bring: which order of the replies they are about, and that imitation sees both orders."""

from __future__ import annotations

import random

import pytest

from rewardlab import registry
from rewardlab.core import Run, ask
from rewardlab.judges.cases import WORTH
from rewardlab.models.embedded import untrained
from rewardlab.rewards.judgements import right_judgement
from rewardlab.rollouts.judgements import Judging, accepted_judgements, own_judgement
from rewardlab.worlds.duels import FORM

FORTH, BACK = "A + B - [[A]]", "A - B + [[B]]"


def row(**judgements: str):
    return ask("Work out 1+1.", None, chosen="2", rejected="3", **judgements)


@pytest.mark.parametrize(
    ("known", "shown", "text"),
    [({"judgement": FORTH}, ["2", "3"], FORTH), ({"judgement_reversed": BACK}, ["3", "2"], BACK)],
)
def test_a_judgement_is_about_the_order_in_which_it_was_written(known, shown, text):
    question, said = own_judgement(row(**known), Judging(FORM), random.Random(0))
    assert (question.meta["shown"], said) == (shown, text)
    assert question.question == f"Work out 1+1.\nA: {shown[0]}\nB: {shown[1]}"


def test_rows_without_one_have_none_and_both_are_used_by_chance():
    assert own_judgement(row(), Judging(FORM), random.Random(0)) is None
    both = row(judgement=FORTH, judgement_reversed=BACK)
    assert {own_judgement(both, Judging(FORM), random.Random(i))[1] for i in range(20)} == {FORTH, BACK}


def test_both_orders_are_imitated_and_wrong_verdicts_in_neither():
    policy = untrained(0, task=registry.task("duels:judged=true", test_size=1))
    rows = [row(judgement=FORTH), row(judgement_reversed=BACK), row(judgement=BACK), row(judgement_reversed=FORTH)]
    groups = accepted_judgements(by=right_judgement(form=FORM), form=FORM)(rows, Run(policy))
    assert [(t.reply, t.problem.meta[WORTH]) for (t,) in groups] == [(FORTH, [1.0, 0.0]), (BACK, [0.0, 1.0])]
