"""HRM: what is labelled in a solution, and the shares of a tree whose nodes are merged."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from rewardlab import registry
from rewardlab.core import Run, Score, Trajectory, Turn, ask
from rewardlab.engine.collate import collate
from rewardlab.engine.step import Ops, standard_loop
from rewardlab.errors import RewardlabError
from rewardlab.methods.process.hierarchical_reward_model import (
    compressed_shares,
    fine_and_coarse,
    fine_and_coarse_solutions,
    hierarchical_reward_model,
)  # fmt: skip
from rewardlab.models.embedded import untrained
from rewardlab.rewards.reward import reward
from rewardlab.rewards.steps import correct_steps
from rewardlab.runs.config import RunConfig
from rewardlab.text.splitters import mark


def test_a_pair_is_right_if_it_ends_right():
    lines, labels = ["a", "b", "c", "d"], [1.0, 0.0, 1.0, 1.0]
    fine, *coarse = fine_and_coarse(lines, labels)
    # labels of single steps end at the first error, b; pairs reach the step after it, which corrects it
    assert fine == (lines, [1.0, 0.0, None, None])
    # the text goes on: where it ends says nothing of a label
    assert coarse == [(["a b", "c", "d"], [0.0, None, None]), (["a", "b c", "d"], [None, 1.0, None])]
    # where c goes on wrongly, so is its pair
    assert fine_and_coarse(lines, [1.0, 0.0, 0.0, 0.0])[2] == (["a", "b c", "d"], [None, 0.0, None])
    # an error at the end has no step after it; a solution without one is used whole
    assert [len(x) for x, _ in fine_and_coarse(lines, [1.0, 1.0, 1.0, 0.0])] == [4, 3, 3, 3]
    assert fine_and_coarse(lines, labels, cut=False)[0] == (lines, labels)
    assert fine_and_coarse(lines, labels, cut=False)[3] == (["a", "b", "c d"], [None, None, 1.0])
    assert fine_and_coarse(["a"], [0.0]) == [(["a"], [0.0])]
    assert fine_and_coarse(lines, labels, pairs=False) == [fine]


def row(text, problem, taken):
    """One token a character; steps are the letters, and siblings differ in theirs."""
    ids = np.array([ord(c) for c in text])
    turns = (Turn(None, np.array([1]), text="?"), Turn("policy", ids, text=text))
    return Trajectory(problem, turns, "end", path=(taken,), steps=tuple(range(1, len(text) + 1)))


def right_in(wanted):
    @reward
    def among(trajectory):
        return None if trajectory.reply == "az" else float(trajectory.reply in wanted)

    return among()


def test_shares_of_a_tree_and_of_one_whose_nodes_are_merged():
    problem = ask("?")
    texts = ["ab", "ac", "ad", "ae", "f", "az"]
    group = [row(text, problem, i) for i, text in enumerate(texts)]
    run = Run(None, seed=3, verify=right_in({"ab", "f"}))
    scores = compressed_shares(compress=0.0)([group], run)[0]
    # of the four replies below a that have a verdict one is right
    assert [s.steps for s in scores] == [
        ((1, 0.25), (2, 1.0)), ((1, 0.25), (2, 0.0)), ((1, 0.25), (2, 0.0)), ((1, 0.25), (2, 0.0)), ((1, 1.0),), ()
    ]  # fmt: skip
    assert scores[-1].value is None
    # a coin that always falls so takes the first child, ab, from a: none of the others is right
    merged = compressed_shares(compress=1.0)([group], run)[0]
    assert [s.steps[0] for s in merged[:4]] == [(1, 0.0)] * 4
    assert merged[0].steps[1] == (2, 1.0)
    # a has four children, and keeps them where five are asked for
    assert compressed_shares(compress=1.0, children=5)([group], run)[0][0].steps[0] == (1, 0.25)


def test_a_node_that_was_given_away_keeps_its_children_and_a_reply_that_ends_is_no_child():
    # four steps after a; of the four after ab, abw alone is right
    texts = ["abw", "abx", "aby", "abz", "ac", "ad", "ae"]
    group = [row(text, ask("?"), i) for i, text in enumerate(texts)]
    run = Run(None, seed=3, verify=right_in({"abw", "ac"}))
    scores = compressed_shares(compress=1.0)([group], run)[0]
    # a gives ab away, and is right in one of ac, ad, ae; ab, which was given away, keeps abw: one of four
    assert [share for _, share in scores[0].steps] == [pytest.approx(1 / 3), 0.25, 1.0]
    # three steps after a, and a reply that ends there: too few to give one away
    group = [row(text, ask("?"), i) for i, text in enumerate(["ab", "ac", "ad", "a"])]
    scores = compressed_shares(compress=1.0)([group], Run(None, seed=3, verify=right_in({"ab"})))[0]
    assert scores[0].steps == ((1, 0.25), (2, 1.0))


def test_rows_that_the_model_reads_and_their_labels():
    policy = untrained(hidden=32, layers=1)
    asked = ask("Start with 7.")
    (t,) = policy.write(policy.read([Trajectory(asked)], [asked.prompt]), ["7+5=13\n7+5=12\nAnswer: 12"])
    t = mark(t, "newline", policy.pieces, policy.name)
    score = Score(steps=tuple(zip(t.steps, [0.0, 1.0, 1.0], strict=True)))
    run = Run(policy)
    problems = fine_and_coarse_solutions()([[t]], [[score]], run)
    assert [p.meta["merged"] for p in problems] == ["7+5=13\n7+5=12\nAnswer: 12", "7+5=13 7+5=12\nAnswer: 12"]
    prm = hierarchical_reward_model().also[0].recipe
    groups = prm.rollout(problems, run)
    batch = collate(groups, prm.reward(groups, run), torch.device("cpu"))
    # one label a row, at the end of its first line, never on the end token: the wrong step by itself, and corrected
    ends = [policy.pieces(t.ids)[int(at)] for (t,), at in zip(groups, batch.rewarded.int().argmax(1), strict=True)]
    assert ends == ["\n", "\n"]
    assert batch.rewarded.sum(1).tolist() == [1, 1]
    assert batch.reward.sum(1).tolist() == [0.0, 1.0]
    with pytest.raises(RewardlabError, match="no reply of this step"):
        fine_and_coarse_solutions()([[t]], [[Score(None)]], run)


def test_the_model_learns_and_the_policy_does_not():
    task = registry.task("arithmetic", test_size=2)
    recipe = hierarchical_reward_model(labels=correct_steps(), n=2, lr=1e-2, init="value-head").but(problems=2)
    policy = untrained(hidden=32, layers=1)
    before = {k: v.clone() for k, v in policy.state().items()}
    prm = policy.copy("prm", value_head=True)
    start = {k: v.clone() for k, v in prm.state().items()}
    run = Run(policy, models={"prm": prm}, max_new=8, seed=1, verify=right_in(set()))
    standard_loop(recipe, run, Ops(recipe, run, task, RunConfig(steps=2)))
    assert all(torch.equal(v, before[k]) for k, v in policy.state().items())
    assert any(not torch.equal(v, start[k]) for k, v in prm.state().items())
    assert 0 <= recipe.measure(task.test, run)["after_auc"] <= 1
