"""Shop-R1: actions paid part by part, hard parts most, and certainty of the rationale."""

from __future__ import annotations

import itertools
import json
import math

import numpy as np
import pytest

from rewardlab import registry
from rewardlab.core import Run, Trajectory, Turn, ask
from rewardlab.evals.pairs import reward_gap
from rewardlab.models.embedded import untrained
from rewardlab.rewards.intrinsic import negentropy
from rewardlab.util.outputs import entropies
from rewardlab.worlds.shopping import action_right, action_value, write

CLICK = {"type": "click", "name": "red running shoes now"}
TYPED = {"type": "type_and_submit", "name": "search box", "text": "warm red hat"}
LEAVE = {"type": "terminate"}


def row(action, gold, text: str | None = None) -> Trajectory:
    said = write("why", action) if text is None else text
    return Trajectory(ask("What next?", gold), (Turn("policy", np.zeros(2, np.int64), text=said),), "end")


def totals(*rows: Trajectory, **settings) -> list[float | None]:
    (scores,) = registry.build("shop_r1", {"certainty": 0.0, **settings}).reward([list(rows)], Run(policy=None))
    return [score.total for score in scores]


def test_the_table_of_rewards():
    # .5 for the form and .3 for the type, .2 for a name, and D times the likeness
    assert totals(row(LEAVE, LEAVE), row(CLICK, CLICK)) == pytest.approx([0.8, 1001])
    # three of four words: 2 * 3 / 7 = .85714;   two of four: 2 * 2 / 6, below .75;   no name;   another type
    near, far = {**CLICK, "name": "red running shoes"}, {**CLICK, "name": "red shoes"}
    assert totals(*(row(x, CLICK) for x in (near, far, {"type": "click"}, LEAVE))) == pytest.approx([858.14286, 1.0, 0.8, 0.5])
    # .1 for each field, .1 R(name): the name is right, the text is not given
    assert totals(row({**TYPED, "text": ""}, TYPED), row(TYPED, TYPED)) == pytest.approx([1.0, 1001.1])
    assert totals(row(TYPED, TYPED), row(far, CLICK), scale=1.0, at=0.5) == pytest.approx([2.1, 1 + 2 / 3])


def test_the_order_of_fields_means_nothing():
    gold = {**TYPED, "where": "top", "filter": "new arrivals"}
    said = {**gold, "text": "warm red cap hat"}
    orders = [dict(order) for order in itertools.permutations(gold.items())]
    assert len({x for order in orders for x in totals(row(said, order), row(order, gold))}) == 2
    # .5 + .3 + .2, three other fields at .1, and D times the text's F1: 3 of 3 and of 4 words, 6/7
    assert totals(row(said, orders[-1])) == pytest.approx([1.3 + 1000 * 6 / 7])
    # the text is what was typed, wherever it stands: a right name alone is worth .1
    assert totals(row({**TYPED, "text": "blue scarf"}, dict(reversed(TYPED.items())))) == pytest.approx([1.1])
    # as a column of JSON
    assert totals(row(CLICK, json.dumps(CLICK))) == pytest.approx([1001])


def test_what_is_not_of_the_form_earns_nothing_and_without_gold_there_is_no_verdict():
    broken = [
        "leave",
        json.dumps(LEAVE),
        json.dumps({"rationale": "x", "action": {"type": 3}}),
        '{"rationale":1,"action":{"type":"a"}}',
    ]
    assert totals(*(row(None, LEAVE, text) for text in broken)) == [0, 0, 0, 0]
    assert totals(row(None, LEAVE, f"```json\n{write('x', LEAVE)}\n```")) == pytest.approx([0.8])
    assert totals(row(LEAVE, None), row(LEAVE, "leave")) == [None, None]
    assert [s.value for s in action_right()([[row(CLICK, CLICK), row(LEAVE, CLICK), row(LEAVE, None)]])[0]] == [1, 0, None]


def test_certainty_is_of_the_rationale_alone():
    policy = untrained()
    (prompt,) = policy.read([Trajectory(ask("1+1?", LEAVE))], [ask("1+1?").prompt])
    said = policy.write([prompt, prompt], [write("1 and 1", LEAVE), "1 and 1"])
    rationale = len(policy.tokenizer('{"rationale":"1 and 1",', add_special_tokens=False)["input_ids"])
    found = [s.value for s in negentropy(before='"action"')([said], Run(policy))[0]]
    entropy = [h[t.mask] for t, h in zip(said, entropies(policy, said), strict=True)]
    most = math.log(len(policy.tokenizer))
    # the second reply has no "action": all of it counts
    assert found == pytest.approx([most - entropy[0][:rationale].mean(), most - entropy[1].mean()], abs=1e-5)
    (whole,) = registry.build("shop_r1").reward([[said[0]]], Run(policy))[0]
    assert whole.total == pytest.approx(0.8 + 0.005 * found[0])


def test_the_gap_counts_how_much_more_one_side_earns():
    policy = untrained()
    leave, click = write("x", LEAVE), write("x", CLICK)
    pairs = [ask("A?", CLICK, chosen=click, rejected=leave), ask("B?", LEAVE, chosen=click, rejected=leave)]
    scaled, exact = action_value(scale=1.0).named("scaled"), action_right().named("exact")
    found = reward_gap(reward=scaled + exact)(pairs, Run(policy))
    # exact: 1, 0 and 0, 1: no difference.  scaled: 2 and .5, .5 and .8: means 1.25 and .65, variance .3825 about .95
    assert found["gap.exact"] == 0
    assert found["gap.scaled"] == pytest.approx(0.6 / 0.3825**0.5)
    assert reward_gap(reward=exact)(pairs[:1] * 2, Run(policy))["gap"] == pytest.approx(1 / 0.5)
    same = [ask("A?", CLICK, chosen=leave, rejected=leave)]
    assert reward_gap(reward=exact)(same, Run(policy))["gap"] == 0
