"""G1: numbers, sets and answers that are not unique, each paid as it should be, and the credit of a group of sets."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from rewardlab import registry
from rewardlab.core import Run, Trajectory, Turn, ask
from rewardlab.engine.collate import collate

# 1-2-3-4-1 and 1-3
SQUARE = {"nodes": [1, 2, 3, 4], "edges": [[1, 2], [2, 3], [3, 4], [4, 1], [1, 3]], "directed": False}
ARROWS = {"nodes": [1, 2, 3], "edges": [[1, 2], [1, 3]], "directed": True}
ITEMS, NOTHING = {"items": [1, 2, 3]}, {"items": []}
BRIDGES = {"pairs": [[1, 2], [3, 4]], "nodes": [1, 2, 3, 4, 5]}
OTHER = {"nodes": [101, 102, 103, 104], "edges": [[101, 102], [102, 103], [103, 104], [104, 101], [102, 104]]}


def row(text: str, answer, length: int = 3) -> Trajectory:
    zeros = np.zeros(length, np.float32)
    turns = (Turn(None, np.zeros(2, np.int64)), Turn("policy", np.zeros(length, np.int64), zeros, zeros, text))
    return Trajectory(ask("?", answer), turns, "end")


def paid(text: str, answer, **settings) -> float | None:
    return registry.build("g1_erdos", settings).reward([[row(text, answer)]], Run(None))[0][0].total


@pytest.mark.parametrize(
    ("answer", "reply", "worth"),
    [
        ({"value": 3}, "Answer: 3", 1), ({"value": 3}, "Answer: 3 or 4", 0),
        ({"value": 3}, "Answer: 3.0005", 0), ({"value": 3}, "", 0),
        ({"value": 1 / 3}, "Answer: 0.3333", 1), ({"value": 1 / 3}, "1/3", 1), ({"value": 1 / 3}, "Answer: 0.33", 0),
        ({"value": True}, "Answer: Yes.", 1), ({"value": True}, r"\boxed{true}", 1), ({"value": False}, "Answer: no", 1),
        ({"value": True}, "Answer: no", 0), ({"value": True}, "Answer: yes or no", 0), ({"value": True}, "Answer: 1", 0),
        (ITEMS, "Answer: 3, 1, 2", 1), (ITEMS, "Answer: [1, 2]", 2 / 3), (ITEMS, "Answer: 1, 2, 3, 4, 5, 6", 1 / 2),
        (ITEMS, "Answer: 1, 1, 1", 1 / 3), (ITEMS, "Answer: none", 0), (ITEMS, "Answer: 7", 0), (ITEMS, "", 0),
        (NOTHING, "Answer: none", 1), (NOTHING, "Answer: []", 1), (NOTHING, "Answer: 1", 0), (NOTHING, "", 0),
        (BRIDGES, "Answer: 2-1, 4-3", 1), (BRIDGES, "Answer: (1, 2)", 1 / 2), (BRIDGES, "Answer: 1-2, 3-4, 4-5", 2 / 3),
        (BRIDGES, "Answer: 1-9", 0),
    ],
)  # fmt: skip
def test_numbers_and_sets_by_hand(answer, reply, worth):
    assert paid(reply, answer) == pytest.approx(worth)
    # exact: only what is all right
    assert paid(reply, answer, partial=False) == (1.0 if worth == 1 else 0.0)


@pytest.mark.parametrize(
    ("problem", "right", "wrong"),
    [
        # from 1: 2, 3 and 4 in any order, all before anything is found from them
        ({"kind": "bfs", "source": 1}, ["1-2, 1-3, 1-4", "1-4, 3-1, 1-2"], 
         ["1-2, 2-3, 1-4", "1-2, 1-3", "1-2", "2-3, 1-2, 1-4", "1-2, 1-3, 1-4, 2-3", "none"]),
        ({"kind": "dfs", "source": 1}, ["1-2, 2-3, 3-4", "1-4, 4-3, 3-2", "1-3, 3-2, 3-4"],
         ["1-2, 1-3, 3-4", "1-2, 2-3, 1-4", "1-3, 3-4"]),
        ({"kind": "bfs", "source": 1, "graph": ARROWS}, ["1-2, 1-3"], ["2-1, 1-3"]),
        ({"kind": "dominating_set"}, ["1", "2, 4", "1, 2, 3, 4"], ["2", "5", "none"]),
        ({"kind": "maximal_independent_set"}, ["2, 4", "1", "3"], ["2", "1, 3", "1, 2"]),
        ({"kind": "edge_cover"}, ["1-2, 3-4", "2-3, 4-1"], ["1-2, 2-3, 3-4", "1-3", "1-2, 4-2"]),
        ({"kind": "max_weight_matching", "graph": {"edges": [[1, 2, 5], [2, 3, 9], [3, 4, 5]]}}, ["1-2, 3-4"],
         ["2-3", "1-2", "1-2, 2-3"]),
        # 1 and 3 have three neighbours, as 102 and 104
        ({"kind": "isomorphism", "other": OTHER}, ["1: 102, 2: 101, 3: 104, 4: 103"],
         ["1: 101, 2: 102, 3: 103, 4: 104", "1: 102, 2: 102, 3: 104, 4: 103", "1: 102", "none"]),
    ],
    ids=lambda x: x["kind"] if isinstance(x, dict) else None,
)  # fmt: skip
def test_whatever_solves_the_problem_is_right(problem, right, wrong):
    answer = {"graph": SQUARE, **problem}
    assert [paid(f"Answer: {reply}", answer) for reply in right] == [1] * len(right)
    assert [paid(f"Answer: {reply}", answer) for reply in wrong] == [0] * len(wrong)


@pytest.mark.parametrize(
    "answer",
    [None, "", "x", {}, {"value": "3"}, {"value": float("nan")}, {"items": 3}, {"kind": "?"}, {"pairs": [[1]], "nodes": []}],
)
def test_a_gold_answer_of_no_known_kind_gives_no_verdict(answer):
    assert paid("Answer: 3", answer) is None


def test_where_no_set_is_right_the_fuller_one_still_gets_credit():
    group = [row("Answer: 1, 2", ITEMS, 2), row("Answer: 1", ITEMS, 5), row("Answer: 4", ITEMS, 1)]
    for partial, rewards in ((True, [2 / 3, 1 / 3, 0]), (False, [0, 0, 0])):
        recipe = registry.build("g1_erdos", {"partial": partial})
        batch = collate([group], recipe.reward([group], Run(None)), torch.device("cpu"))
        x = np.array(rewards)
        expected = torch.tensor((x - x.mean()) / (x.std(ddof=1) + 1e-4))[:, None] * batch.mask
        assert torch.allclose(recipe.credit(batch.reward, batch, Run(None)).double(), expected, atol=1e-4)


@pytest.mark.parametrize("reply", ["1-" * 50_000, "Answer: " + "(1, 2), " * 20_000, "[" * 100_000, "1: " * 60_000])
def test_hostile_replies_earn_nothing(reply):
    for answer in (ITEMS, BRIDGES, {"kind": "isomorphism", "graph": SQUARE, "other": OTHER}):
        assert paid(reply, answer) <= 0.5
