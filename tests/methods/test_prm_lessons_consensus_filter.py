"""Consensus filtering: the model learns from the replies on which continuations and a judge place the first error alike."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from rows import row_of

from rewardlab import registry
from rewardlab.core import Outputs, Run, Score, Trajectory, ask, rollout
from rewardlab.core.policy import TokenCount
from rewardlab.core.trajectory import Turn
from rewardlab.engine.collate import collate
from rewardlab.engine.step import Ops, standard_loop
from rewardlab.errors import RewardlabError
from rewardlab.methods.process.prm_lessons_consensus_filter import check, kept_labels, prm_lessons_consensus_filter
from rewardlab.models.embedded import untrained
from rewardlab.rewards.reward import reward
from rewardlab.runs.config import RunConfig
from rewardlab.text.splitters import mark


def says(*rows):
    """An annotator of the steps at positions 1, 2, 3 of replies in this order."""
    asked = iter(rows)

    @reward(steps=True)
    def told(trajectory):
        return [(at, x) for at, x in zip((1, 2, 3), next(asked), strict=False) if x is not None] or Score(None)

    return told()


def test_the_loss_by_hand():
    """Of three replies the first has its error where both say; of the second they say different things; the third is right."""
    shares = says((0.5, 0.0, 0.25), (1.0, 0.0, 0.0), (0.25, 0.5, 1.0))
    judge = says((1.0, 0.0, None), (1.0, 1.0, 0.0), (1.0, 1.0, 1.0))
    recipe = prm_lessons_consensus_filter(annotators=(shares, judge))
    (prm,) = recipe.also
    rows = [replace(row_of("rddd"), steps=(1, 2, 3)) for _ in range(3)]
    run = Run(None)
    batch = collate([rows], prm.recipe.reward([rows], run), torch.device("cpu"))
    value = torch.tensor([[9.0, 1.0, 2.0, 9.0], [9.0] * 4, [9.0, 1.0, 2.0, -1.0]])
    loss = prm.recipe.objective(Outputs(value=value), batch, run)
    p, q, r = (1 / (1 + math.exp(-x)) for x in (1.0, 2.0, -1.0))
    # the third step of the first reply comes after the error: no label, though a continuation of it was right
    wanted = [-(math.log(p) + math.log(1 - q)) / 2, 0.0, -(math.log(p) + math.log(q) + math.log(r)) / 3]
    assert loss.tolist() == pytest.approx(wanted, abs=1e-6)


class Scripted:
    """A policy of characters. It goes on rightly unless the text has a !; as a judge it says what it is told to."""

    name, context = "scripted", 10_000

    def __init__(self, *replies):
        self.replies, self.asked, self.token_count = iter(replies), [], TokenCount()

    def decode(self, ids):
        return "".join(map(chr, ids))

    def read(self, trajectories, messages):
        self.asked += [t.problem.question for t in trajectories]
        return list(trajectories)

    def extend(self, trajectories, sampling, rng):
        said = [next(self.replies, "wrong" if "!" in t.reply else "right") for t in trajectories]
        return [
            t.plus(Turn("policy", np.array([ord(c) for c in s]), text=s), "end") for t, s in zip(trajectories, said, strict=True)
        ]


@reward
def ends_right(trajectory):
    return float(trajectory.reply.endswith("right"))


def test_continuations_and_a_judge_in_the_style_of_a_real_model():
    text = "First, 6 times 7 is 41!\nSo there are 41 eggs, minus 1.\nThe answer is $\\boxed{40}$"
    ends = np.cumsum([len(line) for line in text.splitlines(keepends=True)]) - 1
    turn = Turn("policy", np.array([ord(c) for c in text]), text=text)
    row = Trajectory(ask("Six boxes of 7 eggs, one is broken?", "41"), (turn,), "end", steps=tuple(map(int, ends)))
    labels = prm_lessons_consensus_filter(continuations=2).also[-1].recipe.reward
    analysis = "**Paragraph 0** claims 6 x 7 = 41. Recalculating, 6 x 7 = 42, so it is off by one.\n\nFirst error: \\boxed{0}"
    for said, steps in (
        (analysis, ((int(ends[0]), 0.0),)),
        ("All of it checks out. \\boxed{-1}", ()),
        ("Paragraph 0 is wrong.", ()),
    ):
        judge = Scripted(said)
        ((score,),) = labels([[row]], Run(Scripted(), models={"judge": judge}, verify=ends_right(), max_new=10))
        assert score.steps == steps
        assert score.missing == (not steps)
        assert "<paragraph_2>" in judge.asked[0]
        assert "Six boxes" in judge.asked[0]


def test_a_reply_is_worth_the_product_of_the_chances_of_its_steps(monkeypatch):
    policy = untrained(0, hidden=32, layers=1)
    begun = policy.read([Trajectory(ask("?"))], [ask("?").prompt])
    rows = [mark(t, "newline", policy.pieces) for t in policy.write(begun * 2, ["a\nb", "a\nb\nc"])]
    said = [[0.0, math.log(3)], [math.log(3), math.log(3), math.log(3)]]

    def values(model, found):
        table = [np.zeros(len(t)) for t in found]
        for t, v, own in zip(found, table, said, strict=True):
            v[list(t.steps)] = own
        return table

    monkeypatch.setattr("rewardlab.rewards.model.values", values)
    by = prm_lessons_consensus_filter().measure.settings["by"]
    # 1/2 * 3/4, and 3/4 of three steps
    assert [s.total for s in by([rows], Run(policy, models={"prm": policy}))[0]] == pytest.approx([0.375, 27 / 64])


def test_the_model_learns_and_the_policy_does_not():
    @reward(steps=True)
    def right(trajectory):
        return [(at, 1.0) for at in trajectory.steps]

    task = registry.task("arithmetic", test_size=2)
    recipe = prm_lessons_consensus_filter(annotators=(right(), right()), n=2, choose=2, lr=1e-2).but(problems=2)
    policy = untrained(hidden=32, layers=1)
    before = {k: v.clone() for k, v in policy.state().items()}
    prm = policy.copy("prm", value_head=True)
    start = {k: v.clone() for k, v in prm.state().items()}
    run = Run(policy, models={"prm": prm}, max_new=6, seed=1, verify=ends_right())
    standard_loop(recipe, run, Ops(recipe, run, task, RunConfig(steps=2)))
    assert all(torch.equal(v, before[k]) for k, v in policy.state().items())
    assert any(not torch.equal(v, start[k]) for k, v in prm.state().items())


def test_what_is_asked_of_whom():
    annotators = lambda recipe: [part.name for part in recipe.also[-1].recipe.reward.settings["inner"]]  # noqa: E731
    assert annotators(prm_lessons_consensus_filter()) == ["monte_carlo_steps", "judged_steps"]
    assert [x.name for x in prm_lessons_consensus_filter().also] == ["judge", "prm"]
    # no judge is loaded where others annotate
    assert [x.name for x in prm_lessons_consensus_filter(annotators=(says(),)).also] == ["prm"]


def test_labels_are_measured_among_the_replies_that_keep_them():
    @rollout
    def written(problems, run):
        return [[replace(row_of("rddd"), steps=(1, 2, 3)) for _ in range(5)]]

    right, second, third = (1.0, 1.0, 1.0), (1.0, 0.0, 0.0), (1.0, 1.0, 0.0)
    # two replies are right, and of a last one nothing is known
    truth = says(right, right, second, third, (None,) * 3)
    judge, shares = says(right, second, second, second, right), says(right, right, second, second, right)
    measured = kept_labels(truth=truth, annotators={"judge": judge, "shares": shares}, rollout=written())
    found = measured([ask("?")], Run(None))
    # of 4 replies with a truth the judge clears one of two, and places one of two errors; they disagree on the second reply
    assert found["kept.judge"] == found["kept.shares"] == 1.0
    assert (found["cleared.judge"], found["located.judge"], found["f1.judge"]) == (0.5, 0.5, 0.5)
    assert (found["cleared.shares"], found["located.shares"]) == (1.0, 0.5)
    assert found["f1.shares"] == found["f1.consensus"] == pytest.approx(2 * 0.5 / 1.5)
    assert (found["kept.consensus"], found["flawed.judge"]) == (0.75, 0.5)
    assert found["flawed.consensus"] == pytest.approx(2 / 3)


def test_nothing_kept_and_nothing_known():
    @rollout
    def written(problems, run):
        return [[replace(row_of("rddd"), steps=(1, 2, 3))]]

    apart = {"a": says((1.0, 1.0, 1.0)), "b": says((0.0,))}
    found = kept_labels(truth=says((1.0, 0.0)), annotators=apart, rollout=written())([ask("?")], Run(None))
    assert (found["kept.consensus"], found["f1.consensus"], found["flawed.consensus"]) == (0.0, 0.0, 0.0)
    with pytest.raises(RewardlabError, match="does not judge"):
        kept_labels(truth=says((None,)), annotators=apart, rollout=written())([ask("?")], Run(None))


def test_what_its_check_measures():
    task = registry.task("arithmetic", test_size=4)
    found = check.by(task.test, Run(untrained(hidden=32, layers=1), max_new=6, seed=1, verify=ends_right()))
    assert {check.measure, check.against, check.fault.number, check.judge.number} <= set(found)
