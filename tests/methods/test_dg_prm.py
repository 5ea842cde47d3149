"""DG-PRM: a tree of criteria, dominance, and the pairs and loss that follow."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from scripted import ScriptedPolicy

from rewardlab.core import Outputs, Run, Score, Trajectory, ask
from rewardlab.engine.collate import collate
from rewardlab.methods.process.dg_prm import better, dg_prm, dominates, front, pair_purity, pairs_among, pareto_pairs
from rewardlab.models.embedded import untrained
from rewardlab.rewards import criteria as module
from rewardlab.rewards.criteria import TREE, CriteriaTree, by_criterion, named_criteria
from rewardlab.rewards.reward import reward


def test_dominance_on_cases_where_it_matters():
    a, b, c, d = {"x": 1.0, "y": 0.5}, {"x": 0.5, "y": 0.5}, {"x": 0.0, "y": 1.0}, {"x": 0.5, "y": 0.5}
    # better in one and equal in the other; better in one and worse in the other; equal
    assert (dominates(a, b), dominates(a, c), dominates(c, a), dominates(b, d)) == (True, False, False, False)
    # the sums are 1.5, 1, 1, 1: by these a is preferred to c too
    assert pairs_among([a, b, c, d], "pareto", 0.0) == [(0, 1), (0, 3)]
    assert pairs_among([a, b, c, d], "sum", 0.0) == [(0, 1), (0, 2), (0, 3)]
    assert front([a, b, c, d]) == [0, 2]
    # what is dominated itself is no positive: of three in a row the best alone is
    chain = [{"x": 0.0}, {"x": 1.0}, {"x": 0.5}]
    assert pairs_among(chain, "pareto", 0.0) == pairs_among(chain, "sum", 0.0) == [(1, 0), (1, 2)]
    # by a gap; where a verdict is missing, what both have decides; without any nothing does
    assert not dominates(a, b, by=0.5)
    assert dominates({"x": 1.0}, c)
    assert not dominates({}, b)
    assert not better({}, b, "sum", 0.0)


def test_the_tree_grows_and_a_step_finds_its_criteria(monkeypatch):
    plane = {"sum": (1, 0), "total": (0.96, 0.28), "times": (0.6, 0.8), "style": (0, 1), "step": (0.8, 0.6)}
    monkeypatch.setattr(module, "embedded", lambda texts, model: np.array([plane[x] for x in texts], float))
    tree = CriteriaTree()
    tree.grow(["sum", "style", "total", "times", "sum"])
    # total is sum again (.96); times is .8 from style, .6 from sum: the nearer branch
    assert tree.branches == [["sum"], ["style", "times"]]
    # near the step: sum .8; style .6 and times .96, whose mean is .78: the branch of sum first, then times before style
    assert tree.relevant("step", 2) == ["sum", "times"]
    assert tree.relevant("step", 0) == ["sum", "style", "times"]


def digit(place):
    """The digit in this place of the last line, as a criterion."""

    @reward
    def read(trajectory):
        return float(trajectory.reply.split("\n")[-2 if trajectory.reply.endswith("\n") else -1][place])

    return read()


SAYS = {"": ["51\n", "50\n", "15\n"], "51\n": ["99"], "15\n": ["00"]}
CRITERIA = digit(0).named("first") + digit(1).named("second")


def test_pairs_and_their_loss():
    run = Run(ScriptedPolicy(SAYS), max_new=20)
    groups = pareto_pairs(criteria=CRITERIA, branch=3)([ask("?")], run)
    # 51 dominates 50 alone, and the path goes on from it, to a step without a rival; 15 is better in one thing, and worse in one
    assert [[t.reply for t in pair] for pair in groups] == [["51\n", "50\n"]]
    batch = collate(groups, [[Score(0.0), Score(0.0)]], torch.device("cpu"))
    assert batch.mask.sum(1).tolist() == [3, 3]
    batch.columns["ref"] = torch.zeros(2, batch.width)
    logprobs = torch.zeros(2, batch.width)
    logprobs[1] = -0.5
    loss = dg_prm().objective(Outputs(logprobs=logprobs), batch, run)
    (found,) = loss.values() if isinstance(loss, dict) else (loss,)
    # beta times 3 tokens times .5
    assert found.sum().item() == pytest.approx(math.log1p(math.exp(-0.15)), rel=1e-4)
    # by the sum 15 wins against both, as 51 does against 50
    by_sum = pareto_pairs(criteria=CRITERIA, branch=3, rule="sum", each=9)([ask("?")], Run(ScriptedPolicy(SAYS), max_new=20))
    assert [[t.reply for t in pair] for pair in by_sum] == [["51\n", "50\n"], ["15\n", "50\n"]]
    purity = pair_purity(rollout=pareto_pairs(criteria=CRITERIA, branch=3, rule="sum", each=9), truth=digit(0))
    # of 51 over 50 the truth says nothing; 15 over 50 is wrong: (1/2 + 0) / 2
    found = purity([ask("?")], Run(ScriptedPolicy(SAYS), max_new=20))
    assert (found["purity"], found["telling"], found["reversed"], found["pairs"]) == (0.25, 0.5, 0.5, 2.0)


class Judge:
    """Names two criteria, of which one is named already; its chances are those of untrained weights."""

    context = 4000

    def __init__(self):
        self.policy, self.asked = untrained(hidden=32, layers=1), []

    def read(self, rows, messages):
        self.asked += [m[-1].text for m in messages]
        return self.policy.read(rows, messages)

    def extend(self, rows, sampling, rng):
        return self.policy.write(rows, ["Well:\n- Units are kept.\n- This step is clearly written.\n-\n"] * len(rows))

    def write(self, rows, texts):
        return self.policy.write(rows, texts)

    def score(self, rows):
        return self.policy.score(rows)


def test_a_judge_names_criteria_and_judges_by_them():
    policy, judge = untrained(hidden=32, layers=1), Judge()
    run = Run(policy, models={"judge": judge}, max_new=6, seed=2)
    recipe = dg_prm()
    recipe.rollout([ask("1+1=?")], run)
    known = [x for branch in run.memory[TREE]["branches"] for x in branch]
    assert "Units are kept." in known
    assert len(known) == 5 == run.metrics["criteria"]
    (t,) = policy.write(policy.read([Trajectory(ask("?"))], [ask("?").prompt]), ["a"])
    (score,) = by_criterion(criterion="c")([[t]], run)[0]
    assert "Is this true of it? c" in judge.asked[-1]
    assert 0 < score.value < 1
    assert named_criteria([], run, "judge", 8) == []
