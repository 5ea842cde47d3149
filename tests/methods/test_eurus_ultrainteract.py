"""Eurus-RM: Bradley-Terry with absolute terms, on the pairs of every turn of a tree."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import pytest
import torch
from reward_runs import taught
from rows import Replies, batch_of, outcome

from rewardlab import registry
from rewardlab.core import Outputs, Run, ask
from rewardlab.errors import RewardlabError
from rewardlab.evals.pairs import end_values, pair_accuracy
from rewardlab.methods.reward_models.eurus_ultrainteract import (
    absolute_in_data,
    accuracy_by_turn,
    at_each_turn,
    pairs_at_each_turn,
)
from rewardlab.models.embedded import untrained
from rewardlab.objectives.pairs import last_value
from rewardlab.rollouts.recorded import recorded


def softplus(x: float) -> float:
    return math.log1p(math.exp(x))


def losses(recipe, scores, counts):
    """The loss of each pair, from the scores at the ends and whether it counts absolutely."""
    batch = batch_of([[("rd", {"": outcome(x)})] * 2 for x in counts])
    out = Outputs(value=torch.tensor([[0.0, x] for x in scores]))
    assert last_value(out, batch).tolist() == scores
    return sum(scale * leaf(out, batch, Run(None)) for scale, leaf in recipe.also[-1].recipe.objective.terms()).tolist()


def test_the_loss_is_bradley_terrys_and_pushes_right_scores_above_0_and_wrong_ones_below():
    # both above 0, the right one higher; both below; and a pair that is not right and wrong
    scores, counts = [3.0, 1.0, -2.0, -1.0, 0.5, 2.0], [1.0, 1.0, 0.0]
    plain = [softplus(-2.0), softplus(1.0), softplus(1.5)]
    extra = [softplus(-3.0) + softplus(1.0), softplus(2.0) + softplus(-1.0), 0.0]
    whole = registry.build("eurus_ultrainteract")
    assert losses(whole, scores, counts) == pytest.approx([a + b for a, b in zip(plain, extra, strict=True)])
    half = registry.build("eurus_ultrainteract", {"absolute": 0.5})
    assert losses(half, scores, counts) == pytest.approx([a + b / 2 for a, b in zip(plain, extra, strict=True)])
    assert losses(registry.build("eurus_ultrainteract", {"absolute": 0.0}), scores, counts) == pytest.approx(plain)


TREE = ask(
    "6 * 7?",
    chosen="42",
    rejected="41",
    turns=[
        {"observation": "One more.", "chosen": "42!", "rejected": "40"},
        {"observation": "Two more.", "chosen": "42!!", "rejected": "43"},
    ],
)


def test_a_tree_gives_a_pair_at_each_turn_after_the_wrong_reply_and_what_was_said_to_it():
    first, second, third = pairs_at_each_turn(TREE, 5)
    assert first == TREE
    said = [("user", "6 * 7?"), ("assistant", "41"), ("user", "One more."), ("assistant", "40"), ("user", "Two more.")]
    assert [(m.role, m.text) for m in second.prompt] == said[:3]
    assert [(m.role, m.text) for m in third.prompt] == said
    assert [(p.meta["chosen"], p.meta["rejected"]) for p in (second, third)] == [("42!", "40"), ("42!!", "43")]
    assert len(list(pairs_at_each_turn(TREE, 2))) == 2
    groups = at_each_turn(inner=recorded(fields=("chosen", "rejected")))(
        [TREE, ask("1?", chosen="a", rejected="b")], Run(Replies([]))
    )
    assert [[t.reply for t in group] for group in groups] == [["42", "41"], ["42!", "40"], ["42!!", "43"], ["a", "b"]]
    with pytest.raises(RewardlabError, match="observation, chosen, rejected"):
        list(pairs_at_each_turn(ask("?", chosen="a", rejected="b", turns=[{"chosen": "c", "rejected": "d"}]), 5))


@pytest.mark.parametrize(("said", "value"), [(None, 1.0), (True, 1.0), (False, 0.0), ("false", 0.0), ("perhaps", None)])
def test_rows_say_whether_their_replies_are_right_and_wrong(said, value):
    (group,) = recorded(fields=("chosen", "rejected"))([ask("?", chosen="a", rejected="b", absolute=said)], Run(Replies([])))
    assert [s.value for s in absolute_in_data()([group], Run(None))[0]] == [value] * 2


def test_the_released_pairs_are_read_as_they_are(tmp_path):
    said = [("user", "6 * 7?"), ("assistant", "41"), ("user", "Your answer is wrong.")]
    rows = [
        {
            "trajectory": [{"from": who, "value": text + "." * i} for who, text in said],
            "chosen": "42",
            "rejected": "43",
        }
        for i in range(2)
    ]
    (tmp_path / "pairs.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    task = registry.task(str(tmp_path / "pairs.jsonl"), prompt_column="trajectory")
    assert [m.role for m in task.train[0].prompt] == ["user", "assistant", "user"]


def test_it_learns_from_a_users_trees_and_the_run_is_a_reward_model(tmp_path):
    after, scores = taught("eurus_ultrainteract", tmp_path, ["Answer: 750", "Answer: 340"])
    assert after["pair_accuracy"] == 1.0
    assert scores[0] != scores[1]


def test_accuracy_is_told_by_turn_and_for_scores_above_and_below_0():
    policy = untrained()
    model = policy.copy("reward", value_head=True)
    torch.nn.init.normal_(model.model.value_head, generator=torch.Generator().manual_seed(1))
    run = Run(policy, models={"reward": model})
    trees = [replace(TREE, prompt=ask(f"{i} * 7?").prompt) for i in range(6)]
    found = accuracy_by_turn()(trees, run)
    by_turn = list(zip(*(pairs_at_each_turn(tree, 5) for tree in trees), strict=True))
    assert found["n"] == 18
    assert found["pair_accuracy"] == pytest.approx(pair_accuracy()([p for pairs in by_turn for p in pairs], run)["pair_accuracy"])
    each = [found[f"pair_accuracy.turn{t}"] for t in (1, 2, 3)]
    assert each == pytest.approx([pair_accuracy()(list(pairs), run)["pair_accuracy"] for pairs in by_turn])
    rows = [recorded(fields=(side,))([p for pairs in by_turn for p in pairs], run) for side in ("chosen", "rejected")]
    chosen, rejected = (end_values(model, [t for group in of for t in group]) for of in rows)
    assert found["sign"] == pytest.approx(((chosen > 0).mean() + (rejected < 0).mean()) / 2)
    assert 0 < found["sign"] < 1
