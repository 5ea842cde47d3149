"""Thoth: gates, times the count of steps, times their order and content."""

from __future__ import annotations

import math

import numpy as np
import pytest

from rewardlab import registry
from rewardlab.core import Run, Trajectory, Turn, ask
from rewardlab.methods.shaping.thoth_scirecipe import data
from rewardlab.worlds.protocols import Step, aligned, read, step_score, write

GOLD = [Step("add", ["salt"], ["5 ml"]), Step("heat", ["tube a", "buffer"], ["3 min", "hot"]), Step("spin", ["cells"], [])]


def totals(*texts: str, answer: str | None = None, **settings) -> list[float | None]:
    problem = ask("How?", write(GOLD) if answer is None else answer)
    rows = [Trajectory(problem, (Turn("policy", np.zeros(2, np.int64), text=text),), "end") for text in texts]
    (scores,) = registry.build("thoth_scirecipe", settings).reward([rows], Run(policy=None))
    return [score.total for score in scores]


def test_right_slips_and_gates():
    swapped = [GOLD[1], GOLD[0], GOLD[2]]
    other = [GOLD[0]._replace(parameters=["6 ml"]), *GOLD[1:]]
    found = totals(write(GOLD), write(other), write(swapped), write(GOLD[:2]), write([*GOLD, *GOLD]))
    # all right: 1 (1 + 1.5).  5 ml and 6 ml share one word of three: 1 + 1/6 for that step, 1 + (1.16667 + 1.5 + 1.5) / 3
    assert found[:2] == pytest.approx([2.5, 2.38889], abs=1e-5)
    # heat is aligned with the second gold step, add with none after it, spin neither: heat is one place off among three,
    # m = 1 - (1/3)^1.5 = .80755, times 1.5 is 1.21133;   the order is wrong
    assert found[2] == pytest.approx(1.21133, abs=1e-5)
    # one step short: cos(pi/6) (0 + 1.5);   twice as many: cos(pi/2) = 0
    assert found[3:] == pytest.approx([math.cos(math.pi / 6) * 1.5, 0], abs=1e-9)
    by_lcs = totals(write(swapped), write(GOLD[:2]), actions="lcs", over="longest")
    # LCS heat, spin: 4/6, and 1.21133 over three steps;   4/5 and 3 over three, times cos(pi/6)
    assert by_lcs == pytest.approx([2 / 3 + 1.21133 / 3, math.cos(math.pi / 6) * 1.8], abs=1e-5)


def test_a_closed_gate_leaves_nothing_and_a_sum_does():
    untold = write(GOLD, ["Add salt.", "Heat the buffer.", "Spin the cells."])
    told = write(GOLD, ["Now add some salt.", "Heat the buffer in the tube.", "Spin the cells."])
    broken = write(GOLD).replace('"action"', '"act"')
    extra = write(GOLD).replace("<orc>\n", "<orc>\nNote well.\n")
    # the second line does not name the tube
    assert totals(untold, told, broken, extra, "add salt") == pytest.approx([0, 2.5, 0, 0, 0])
    # form 1, told 0, count 1, order 1, content 1.5
    assert totals(untold, broken, extra, gated=False) == pytest.approx([4.5, 0, 4.5])


def test_the_template_rows_are_protocols():
    # all right: count 1, order 1; of the first both steps have objects and parameters, so 1.5
    assert [totals(row["answer"], answer=row["answer"]) for row in data.rows] == [[pytest.approx(2.5)]] * 2


def test_without_a_gold_protocol_there_is_no_verdict():
    assert totals(write(GOLD), "words", answer="Just do it.") == [None, 0]
    assert totals(write(GOLD), answer="Just do it.", gated=False) == [None]


def test_parameters_count_where_the_objects_overlap_by_a_half():
    gold = GOLD[1]
    # one object of two, both parameters: 1/2 + 1/2;   one of three: 1/3 alone;   none as a whole, but a word of three is shared
    assert step_score(gold._replace(objects=["buffer"]), gold, 0, 3) == pytest.approx(1.0)
    assert step_score(gold._replace(objects=["buffer", "salt"]), gold, 0, 3) == pytest.approx(1 / 3)
    assert step_score(gold._replace(objects=["buffer x"]), gold, 0, 3) == pytest.approx(1 / 4)
    assert step_score(gold, gold, 3, 3) == 0
    assert step_score(GOLD[2], GOLD[2], 0, 1) == 1.5


def test_steps_are_aligned_in_order_until_one_is_missing():
    assert aligned(GOLD, GOLD) == [(0, 0), (1, 1), (2, 2)]
    assert aligned([GOLD[2], GOLD[0]], GOLD) == [(0, 2)]
    # an action that is not wanted uses up the gold steps, as in the released evaluation
    assert aligned([Step("wash", [], []), *GOLD], GOLD) == []


@pytest.mark.parametrize(
    "text", ["", "<think>" * 50, write(GOLD) + "<key></key>", write(GOLD).replace("</orc>", ""), "<key>" * 30_000]
)
def test_what_is_no_protocol(text):
    assert read(text) is None


def test_the_better_reply_of_a_pair_is_honest_and_the_other_gamed():
    task = registry.task("protocols", test_size=60)
    rewards = [totals(p.meta["chosen"], p.meta["rejected"], answer=p.answer) for p in task.test]
    assert {p.meta["fault"] for p in task.test} == {"untold", "twice", "words", "first"}
    assert all(honest > 0 for honest, _ in rewards)
    assert all((gamed == 0) == (p.meta["fault"] != "first") for p, (_, gamed) in zip(task.test, rewards, strict=True))


def test_tokens_of_all_replies_count_the_same_as_in_the_released_script():
    assert str(registry.build("thoth_scirecipe").weighting) == "token_mean()"
