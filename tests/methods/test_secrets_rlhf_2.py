"""Votes of reward models on their own pairs: what is flipped and softened, the loss, MetaRM's step, and a run that is resumed."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch
from rows import batch_of, outcome
from safetensors.torch import load_file

from rewardlab import registry
from rewardlab.api import resume, train
from rewardlab.core import Message, Outputs, Run, Task, ask
from rewardlab.engine.step import Ops
from rewardlab.errors import RewardlabError
from rewardlab.methods.reward_models import secrets_rlhf_2 as method
from rewardlab.models.embedded import untrained
from rewardlab.models.learners import learner_model
from rewardlab.models.reward_model import load_reward_model
from rewardlab.runs.config import RunConfig
from rewardlab.tasks.sources import Shuffled


def pair(i: int, wrong: bool = False):
    """The better reply ends with a 7, the worse one with a 3; labelled the other way round where the label is wrong."""
    chosen, rejected = (f"{i}3", f"{i}7") if wrong else (f"{i}7", f"{i}3")
    return ask(f"{i}+{i}=?", str(2 * i), chosen=chosen, rejected=rejected, qualities=[0.0, 1.0] if wrong else [1.0, 0.0])


PAIRS = [pair(i, wrong=i % 5 == 0) for i in range(10, 30)]
TASK = Task("pairs", Shuffled(PAIRS), [pair(i) for i in range(40, 50)], "final_number", max_new=4)


@pytest.fixture(scope="module")
def policy():
    return untrained()


def begun(policy, task: Task = TASK, **settings) -> Ops:
    recipe = registry.build("secrets_rlhf_2", {"problems": 4, "reward_lr": 1e-2, "votes": 3, "passes": 4, **settings})
    run = Run(policy.copy("policy"), steps=3, max_new=4, verify=registry.part("reward", task.verifier))
    run.models = {learner.name: learner_model(learner, policy) for learner in recipe.also}
    return Ops(recipe, run, task, RunConfig())


def step(ops: Ops) -> dict[str, float]:
    ops.run.metrics = {}
    ops.recipe.loop(ops.recipe, ops.run, ops)
    ops.run.step += 1
    return ops.run.metrics


def loss(scores, margins, labels, scale=1.0) -> list[float]:
    """Of pairs of replies of one token each, with the scores of both."""
    groups = [[("rd", {"margin": outcome(m), "smooth": outcome(a)})] * 2 for m, a in zip(margins, labels, strict=True)]
    out = Outputs(value=torch.tensor([[0.0, s] for both in scores for s in both]))
    return method.denoised_preference(scale=scale)(out, batch_of(groups), Run(None)).tolist()


def test_the_loss_asks_for_the_strength_as_a_margin_and_softens_the_label():
    def nll(x: float) -> float:
        return math.log1p(math.exp(-x))

    found = loss([(3.0, 1.0), (3.0, 1.0), (0.0, 1.0)], [0.5, 0.5, -1.5], [0.0, 0.1, 0.1])
    assert found == pytest.approx([nll(1.5), 0.9 * nll(1.5) + 0.1 * nll(-1.5), 0.9 * nll(0.5) + 0.1 * nll(-0.5)], abs=1e-5)
    assert loss([(3.0, 1.0)], [0.5], [0.0], scale=0.0) == pytest.approx([nll(2.0)], abs=1e-5)


def test_pairs_with_wrong_labels_are_the_weakest_and_are_flipped(policy):
    ops = begun(policy, flip=0.2)
    first = step(ops)
    learnt = [ops.task.train[i] for i in range(len(PAIRS))]
    # one pair in five is wrong, and none of them is left: every chosen reply ends with a 7 again
    assert all(p.meta["chosen"].endswith("7") and p.meta["qualities"] == [1.0, 0.0] for p in learnt)
    assert sorted(p.key for p in learnt) == sorted(p.key for p in PAIRS)
    assert all(p.meta["margin"] > 0 and p.meta["smooth"] == 0.0 for p in learnt)
    assert (first["flipped"], first["kept"]) == (0.2, 0.8)
    assert (first["strength_auc"], first["flips_right"]) == (1.0, 1.0)
    assert first["strength_std"] > 0
    assert "softened" not in first


def test_what_is_below_0_and_not_flipped_is_softened(policy):
    ops = begun(policy, flip=0.1, soft=0.3)
    assert step(ops)["softened"] == pytest.approx(0.1)
    soft = [p for p in (ops.task.train[i] for i in range(len(PAIRS))) if p.meta["smooth"]]
    assert {(p.meta["smooth"], p.meta["chosen"][-1]) for p in soft} == {(0.3, "3")}
    assert all(p.meta["margin"] < 0 for p in soft)
    # without soft labels they stay as they were
    assert step(begun(policy, flip=0.1, soft=0.0))["kept"] == pytest.approx(0.9)


def test_the_final_model_starts_where_the_voters_did(policy):
    ops = begun(policy)
    model = ops.learners["reward"].model
    start = {name: p.clone() for name, p in model.state().items()}
    problems = [PAIRS[i] for i in range(4)]
    gaps = method.voted(ops, ops.run, problems, 2, 3)
    assert gaps.shape == (2, 4)
    assert not (gaps[0] == gaps[1]).all()
    assert all(torch.equal(start[name], p) for name, p in model.state().items())
    assert not ops.learners["reward"].optimiser.state
    assert str(ops.learners["reward"].recipe.reward) == "margin_and_label()"


def test_only_so_many_pairs_are_read_and_data_without_an_end_has_a_limit(policy):
    ops = begun(policy, pairs=8)
    step(ops)
    assert len(ops.task.train) == 8
    endless = registry.task("notes")
    ops = begun(policy, task=endless, pairs=4, votes=1, passes=1)
    step(ops)
    assert {p.key for p in ops.task.train.problems} == {endless.train[i].key for i in range(4)}


def test_difference_of_scores_is_over_all_pairs_and_divided_by_k_squared():
    def sigmoid(x: float) -> float:
        return 1 / (1 + math.exp(-x))

    found = method.difference(torch.tensor([0.0, 1.0, 3.0]))
    assert float(found) == pytest.approx(2 / 9 * (sigmoid(1) + sigmoid(3) + sigmoid(2)), abs=1e-6)


def test_meta_rm_updates_the_weights_as_they_were_by_the_gradient_at_those_that_tell_replies_apart(policy):
    told = [replace(p, meta={**p.meta, "shifted": ["1", "22", "7"], "margin": 0.0, "smooth": 0.0}) for p in PAIRS[:4]]
    ops = begun(policy, task=replace(TASK, train=method.Curated(told)), flip=0.0)
    state = ops.learners["reward"]
    torch.nn.init.normal_(state.model.model.value_head, generator=torch.Generator().manual_seed(1))
    start = [p.detach().clone() for p in state.model.parameters()]

    def apart() -> torch.Tensor:
        groups = method.shifted(told, ops.run, 3)
        return sum(method.difference(scores(group)) for group in groups) / len(groups)

    def scores(group):
        batch = ops.collate([group], None, state)
        return method.last_value(state.model.evaluate(batch, ("value",)), batch)

    lower = float(apart().detach())
    ahead = torch.autograd.grad(apart(), state.model.parameters())
    with method.told_apart(ops, ops.run, 0.02, 3):
        there = [p.detach().clone() for p in state.model.parameters()]
        assert float(apart().detach()) > lower
        with torch.no_grad():
            for p in state.model.parameters():
                p += 0.25
    assert all(torch.allclose(at, p + 0.02 * g, atol=1e-6) for at, p, g in zip(there, start, ahead, strict=True))
    assert all(torch.allclose(p, at + 0.25, atol=1e-5) for p, at in zip(state.model.parameters(), start, strict=True))
    assert ops.run.metrics["difference"] == pytest.approx(lower, abs=1e-5)


def test_meta_rm_by_hand(monkeypatch):
    # r(x) = w x, w = 1, of two replies 1 and 3:  J = 2/4 sigmoid(2 w),  dJ/dw = sigmoid'(2) = .104994
    w = torch.nn.Parameter(torch.tensor(1.0))
    model = SimpleNamespace(parameters=lambda: [w], evaluate=lambda batch, wants: w * torch.tensor([1.0, 3.0]))
    task = SimpleNamespace(train=[None])
    ops = SimpleNamespace(
        learners={"reward": SimpleNamespace(model=model)}, task=task, position=0, collate=lambda *_: None,
        recipe=SimpleNamespace(update=SimpleNamespace(problems=1)), once=lambda make: make(),
    )  # fmt: skip
    monkeypatch.setattr(method, "shifted", lambda *_: [None])
    monkeypatch.setattr(method, "last_value", lambda out, batch: out)
    with method.told_apart(ops, Run(None), 1.0, 2):
        assert w.item() == pytest.approx(1.104994, abs=1e-6)
        # an update by .1 of the gradient of -log sigmoid(w) there:  1 - sigmoid(1.104994) = .248810
        with torch.no_grad():
            w += 0.1 * (1 - torch.sigmoid(w))
    assert w.item() == pytest.approx(1 + 0.0248810, abs=1e-6)
    # off, unless asked for
    assert registry.build("secrets_rlhf_2").loop.settings["meta"] == 0.0


def test_a_step_with_meta_rm_samples_replies_where_the_data_has_none(policy):
    metrics = step(begun(policy, meta=0.1, replies=2, votes=1))
    assert math.isfinite(metrics["reward/loss"])
    assert metrics["difference"] > 0


def test_pairs_are_missed_by_their_columns(policy):
    plain = Task("plain", Shuffled([ask("1+1=?", "2")]), [ask("2+2=?", "4")], "final_number", max_new=4)
    with pytest.raises(RewardlabError, match="'chosen'"):
        step(begun(policy, plain))


@pytest.mark.slow
def test_a_run_that_is_resumed_learns_from_the_same_pairs_and_is_a_reward_model(tmp_path):
    given = {"eval_problems": 2, "device": "cpu", "settings": {"problems": 2, "votes": 2}, "checkpoint_every": 1}
    for name, steps in (("whole", 3), ("cut", 1)):
        train("secrets_rlhf_2", "untrained", "notes:flip=0.25,size=6,test_size=4", steps=steps, out=tmp_path / name, **given)
    resume(tmp_path / "cut", steps=3)
    whole, cut = (load_file(tmp_path / run / "checkpoints" / "step-000003" / "reward.safetensors") for run in ("whole", "cut"))
    assert all(torch.equal(whole[name], cut[name]) for name in whole)
    lines = [json.loads(line) for line in (tmp_path / "cut" / "metrics.jsonl").read_text().splitlines()]
    assert len({line["strength"] for line in lines if "strength" in line}) == 1
    scored = load_reward_model(str(tmp_path / "whole"), "cpu").score([([Message("user", "2+2=?")], "Send corn.")])
    assert all(map(math.isfinite, scored))
