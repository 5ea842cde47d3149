"""Contrastive rewards for text-to-SQL: an encoder that learns which query belongs to which question, and what it pays."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from rewardlab import registry
from rewardlab.core import Batch, Outputs, Run, Trajectory, Turn, ask
from rewardlab.engine.step import Ops
from rewardlab.errors import RewardlabError
from rewardlab.methods.shaping.contrastive_text2sql import MODEL, contrastive_texts, info_nce, query_in, query_nearer_to_question
from rewardlab.models.embedded import untrained
from rewardlab.models.learners import learner_model
from rewardlab.rewards.similarity import nearer_to_question
from rewardlab.runs.config import RunConfig


class Encoder:
    """Embeds a text as the unit vector of its first letter among x, y and z; other texts as the mean of all three."""

    device, name = torch.device("cpu"), "encoder"

    def write(self, trajectories, texts):
        return [
            t.plus(Turn("encoder", np.array(["xyz".find(text[:1])]), text=text), "end")
            for t, text in zip(trajectories, texts, strict=True)
        ]

    def evaluate(self, batch, wants=(), per_token=()):
        assert wants == ("hidden",)
        ids = batch.ids
        return Outputs(hidden=torch.where(ids[..., None] < 0, torch.ones(3), torch.eye(3)[ids.clamp(min=0)]))


def replies(question: str, *texts: str) -> list[Trajectory]:
    zeros = np.zeros(1, np.float32)
    return [Trajectory(ask(question), (Turn("policy", np.zeros(1, np.int64), zeros, zeros, text),), "end") for text in texts]


def pay(*groups: list[Trajectory]) -> list[list[float]]:
    run = Run(None, models={"encoder": Encoder()})
    return [[s.total for s in row] for row in nearer_to_question()(list(groups), run)]


def test_nearness_by_hand():
    # questions x and y. A reply x: 1 - 0; y: 0 - 1; z: 0 - 0; the mean of all: equally near to both
    assert pay(replies("x", "x", "y", "z", "?"), replies("y", "y"))[0] == pytest.approx([1, -1, 0, 0])
    # three questions: the mean over the two others
    assert pay(replies("x", "y"), replies("y", "y"), replies("z", "x")) == [pytest.approx([-0.5]), [1.0], [pytest.approx(-0.5)]]


def test_a_step_of_one_question_subtracts_nothing_and_a_question_that_comes_twice_counts_once():
    assert pay(replies("x", "x", "y")) == [[1.0, 0.0]]
    assert pay(replies("x", "x"), replies("x", "y")) == [[1.0], [0.0]]
    assert pay(replies("x", "x"), [], replies("y", "x")) == [[1.0], [], [-1.0]]


def test_words_around_the_query_are_not_read_and_a_reply_without_one_is_neither_near_nor_far():
    class First(Encoder):
        """Embeds a text by the first column that it selects; one that says x itself as x."""

        def write(self, trajectories, texts):
            return super().write(trajectories, [text.removeprefix("SELECT ") for text in texts])

    def paid(*texts):
        groups = [replies("x", *texts), replies("y", "SELECT y")]
        return [s.total for s in query_nearer_to_question()(groups, Run(None, models={"encoder": First()}))[0]]

    # a reply that says the question, x, again: before its query, in a comment, and with no query at all
    fenced = "x!\n```sql\nSELECT y\n```"
    assert paid("SELECT x", fenced, "-- x\nSELECT y", "/* x */ SELECT y") == [1.0, -1.0, -1.0, -1.0]
    assert paid("x", "With x in mind.", "x\n```python\nx\n```", "") == [0.0, 0.0, 0.0, 0.0]
    assert query_in("SELECT a FROM t WHERE b = '--x' -- x") == "SELECT a FROM t WHERE b = '--x'"


def test_the_method_pays_the_query_and_not_the_words_around_it():
    recipe = registry.build("contrastive_text2sql")
    assert any(part.name.endswith("query_nearer_to_question") for part in recipe.reward.walk())


def test_info_nce_by_hand():
    # questions (1, 0), (0.6, 0.8) and queries (1, 0), (0, 1): similarities [[1, 0], [0.6, 0.8]]; temperature 1/2: logits twice that
    rows = torch.tensor([[1.0, 0.0], [1.0, 0.0], [0.6, 0.8], [0.0, 1.0]])
    mask = torch.tensor([[False, True, True]] * 4)
    # two decided positions with the mean wanted, of another length; a position that was only read counts nothing
    hidden = torch.stack([torch.full((4, 2), 7.0), 2 * rows, 4 * rows], 1)
    blank = torch.zeros(4, 3)
    batch = Batch(torch.zeros(4, 3), mask, torch.full((4,), 3), blank, blank, blank.bool(), torch.tensor([0, 0, 1, 1]))
    e = math.exp
    forth = [e(2) / (e(2) + e(0)), e(1.6) / (e(1.2) + e(1.6))]
    back = [e(2) / (e(2) + e(1.2)), e(1.6) / (e(0) + e(1.6))]
    expected = -sum(math.log(p) for p in (*forth, *back)) / 4
    assert float(info_nce(temperature=0.5)(Outputs(hidden=hidden), batch, Run(None))) == pytest.approx(expected, rel=1e-5)
    batch.group = torch.tensor([0, 1, 2, 3])
    with pytest.raises(RewardlabError, match="groups of two rows"):
        info_nce()(Outputs(hidden=hidden), batch, Run(None))


def test_question_and_query_are_read_apart():
    policy, problem = untrained(task=registry.task("queries", test_size=1)), registry.task("queries", test_size=1).train[0]
    ((question, query),) = contrastive_texts()([problem], Run(policy))
    assert (question.reply, query.reply) == (problem.question, problem.meta["solution"])
    assert question.mask.all()
    assert query.mask.all()
    with pytest.raises(RewardlabError, match="no text in the column 'gold'"):
        contrastive_texts(field="gold")([problem], Run(policy))


@pytest.mark.slow
def test_the_encoder_is_taught_before_the_first_step_and_then_stays():
    task = registry.task("queries", test_size=2)
    policy = untrained(hidden=32, task=task)
    recipe = registry.build("contrastive_text2sql", {"pairs": 256, "passes": 6, "encoder_lr": 3e-3})
    recipe = recipe.but(problems=2, rollout=recipe.rollout.but(n=2))
    run = Run(policy, steps=2, max_new=4, verify=registry.part("reward", "sql"))
    run.models[MODEL] = encoder = learner_model(recipe.also[0], policy)
    ops = Ops(recipe, run, task, RunConfig())
    held_out = [task.train[10_000 + i] for i in range(40)]
    before = _nearer(encoder, held_out)
    recipe.loop(recipe, run, ops)
    after, taught = _nearer(encoder, held_out), {k: v.clone() for k, v in encoder.state().items()}
    assert after > max(0.75, before + 0.1)
    run.step += 1
    recipe.loop(recipe, run, ops)
    assert all(torch.equal(v, taught[k]) for k, v in encoder.state().items())
    assert {"correct", "nearness"} <= {k.partition("/")[2] for k in run.metrics if k.startswith("reward/")}


def _nearer(encoder, problems) -> float:
    """The share of the other questions' queries that are less near to a question than its own; by chance a half."""
    groups = [[t] for p in problems for t in replies(p.question, p.meta["solution"])]
    paid = []
    for row in groups:
        others = [[Trajectory(row[0].problem, t[0].turns, "end")] for t in groups]
        paid.append([s[0].total for s in nearer_to_question()(others, Run(None, models={"encoder": encoder}))])
    return float(np.mean([x < row[i] for i, row in enumerate(paid) for j, x in enumerate(row) if j != i]))
