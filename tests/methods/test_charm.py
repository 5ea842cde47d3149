"""CHARM: ratings of rows and files, pairs that are turned round, the mismatch degree, and runs on both kinds of start."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from rewardlab import registry
from rewardlab.api import resume, train
from rewardlab.core import Message, Run, Task, ask
from rewardlab.engine.step import Ops
from rewardlab.errors import RewardlabError
from rewardlab.methods.reward_models import charm as method
from rewardlab.models.embedded import untrained
from rewardlab.models.learners import learner_model
from rewardlab.models.reward_model import load_reward_model
from rewardlab.runs.config import RunConfig
from rewardlab.tasks.sources import Shuffled

WRITERS = ("plain", "loud")


def pair(i: int, **more):
    """A reply by each policy; the loud one says 8. The annotator always likes that better."""
    return ask(
        f"{i}+{i}=?", str(2 * i), chosen=f"{i}8", rejected=f"{i}3", chosen_model="loud", rejected_model="plain", chosen_elo=1000,
        rejected_elo=1400, qualities=[0.0, 1.0], **more,
    )  # fmt: skip


PAIRS = [pair(i) for i in range(10, 26)]


@pytest.fixture(scope="module")
def policy():
    return untrained()


def begun(policy, pairs=PAIRS, steps=12, **settings) -> Ops:
    recipe = registry.build("charm", {"problems": 4, "reward_lr": 1e-2, **settings})
    task = Task("pairs", Shuffled(pairs), [pair(i) for i in range(40, 50)], "final_number", max_new=4)
    run = Run(policy.copy("policy"), steps=steps, max_new=4, verify=registry.part("reward", task.verifier))
    run.models = {learner.name: learner_model(learner, policy) for learner in recipe.also}
    return Ops(recipe, run, task, RunConfig())


def step(ops: Ops) -> dict[str, float]:
    ops.run.metrics = {}
    ops.recipe.loop(ops.recipe, ops.run, ops)
    ops.run.step += 1
    return ops.run.metrics


def test_an_overrated_policy_loses_the_pairs_that_its_rating_says_it_should(policy):
    ops = begun(policy)
    first = [step(ops) for _ in range(6)]
    assert all("turned" not in row for row in first)
    before = method.mismatch()(ops.task.test, ops.run)
    # it has learnt the annotator's taste, and 1/11 is expected; at the most it were (1 - 1/11) / (10/11) = 1
    assert before["mismatch.loud"] > 0.7
    assert before["elo_correlation"] == pytest.approx(-1.0)
    told = step(ops)
    # so that loud wins a tenth of all comparisons, about as many of its pairs stay
    assert told["turned"] > 0.7
    assert told["labels_right"] == told["turned"]
    assert told["raw_labels_right"] == 0.0
    assert told["offset.loud"] == -told["offset.plain"] < 0
    for _ in range(5):
        step(ops)
    after = method.mismatch()(ops.task.test, ops.run)
    assert abs(after["mismatch.loud"]) < before["mismatch.loud"] / 2
    assert after["elo_correlation"] == pytest.approx(1.0)


def test_pairs_are_turned_round_by_score_and_offset_of_the_policy(monkeypatch):
    pairs = [pair(0), pair(1), pair(2), pair(3)]
    same = method.replace(pairs[3], meta={**pairs[3].meta, "rejected_model": "loud", "rejected_elo": 1000})
    scores = np.array([[2.0, 1.0], [4.0, 1.0], [2.2, 1.2], [0.0, 3.0]])
    monkeypatch.setattr(method, "pair_scores", lambda problems, run, model: scores)
    monkeypatch.setattr(method, "calibrating_offsets", lambda scores, elo, temperature: {"loud": -1.0, "plain": 0.5})
    run = Run(None)
    method.relabel([*pairs[:3], same], run, {}, 0.1)
    # 1 < 1.5; 3 > 1.5; 1.2 < 1.7; and by one policy there is nothing to calibrate: the label stays
    assert run.memory[method.TURNED] == [True, False, True, False]
    turned = method.turned_round(pairs[0]).meta
    assert (turned["chosen"], turned["chosen_model"], turned["chosen_elo"]) == ("03", "plain", 1400)
    assert turned["qualities"] == [1.0, 0.0]


def test_ratings_are_those_of_the_rows_or_of_a_file(tmp_path):
    assert method.ratings_of(PAIRS, None) == {"loud": 1000.0, "plain": 1400.0}
    (tmp_path / "elo.csv").write_text("model,elo\nloud,900\nplain,1500\n")
    assert method.ratings_of(PAIRS, str(tmp_path / "elo.csv")) == {"loud": 900.0, "plain": 1500.0}
    other = method.replace(PAIRS[0], meta={**PAIRS[0].meta, "chosen_elo": 1100})
    with pytest.raises(RewardlabError, match="give loud two ratings, 1000 and 1100"):
        method.ratings_of([*PAIRS, other], None)
    bare = method.replace(PAIRS[0], meta={k: v for k, v in PAIRS[0].meta.items() if not k.endswith("elo")})
    with pytest.raises(RewardlabError, match="--elo FILE"):
        method.ratings_of([bare], None)


def test_what_starts_from_nothing_learns_the_labels_first(tmp_path):
    assert "first=0.5" in str(registry.build("charm", {}).loop)
    assert "first" not in str(registry.build("charm", {"init": str(tmp_path)}).loop)


@pytest.mark.slow
def test_a_run_that_is_resumed_learns_from_the_same_pairs_and_is_a_reward_model(tmp_path):
    given = {"eval_problems": 8, "device": "cpu", "settings": {"problems": 2}, "checkpoint_every": 1}
    task = "authored_notes:size=12,test_size=8"
    for name, steps in (("whole", 4), ("cut", 3)):
        train("charm", "untrained", task, steps=steps, out=tmp_path / name, **given)
    resume(tmp_path / "cut", steps=4)
    folder = "checkpoints/step-000004/reward.safetensors"
    whole, cut = (load_file(tmp_path / run / folder) for run in ("whole", "cut"))
    assert all(torch.equal(whole[name], cut[name]) for name in whole)
    scored = load_reward_model(str(tmp_path / "whole"), "cpu").score([([Message("user", "2+2=?")], "Send corn.")])
    assert all(map(math.isfinite, scored))
    # what was taught before is calibrated at once
    again = train(
        "charm", "untrained", task, steps=1, out=tmp_path / "again", eval_problems=8, device="cpu",
        settings={"problems": 2, "init": str(tmp_path / "whole")},
    )  # fmt: skip
    assert "turned" in (tmp_path / "again" / "metrics.jsonl").read_text()
    assert again is not None
