"""Curation by two reward models: what is kept, flipped and dropped, in which rounds, and a run that is resumed."""

from __future__ import annotations

import math
from contextlib import contextmanager

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from rewardlab import registry
from rewardlab.api import resume, train
from rewardlab.core import Message, Run, Task, ask
from rewardlab.engine.step import Ops
from rewardlab.errors import RewardlabError
from rewardlab.methods.reward_models import skywork_reward_v2 as method
from rewardlab.models.embedded import untrained
from rewardlab.models.learners import learner_model
from rewardlab.models.reward_model import load_reward_model
from rewardlab.runs.config import RunConfig
from rewardlab.tasks.sources import Shuffled


def pair(i: int, gold: bool = False, wrong: bool = False):
    """The better reply ends with a 7, the worse one with a 3."""
    texts = (f"{i}3", f"{i}7") if wrong else (f"{i}7", f"{i}3")
    qualities = [0.0, 1.0] if wrong else [1.0, 0.0]
    return ask(f"{i}+{i}=?", str(2 * i), chosen=texts[0], rejected=texts[1], gold=gold, qualities=qualities)


PAIRS = [pair(i, gold=i < 16, wrong=i >= 16 and i % 4 == 0) for i in range(10, 34)]
TASK = Task("pairs", Shuffled(PAIRS), [pair(i) for i in range(40, 50)], "final_number", max_new=4)


@pytest.fixture(scope="module")
def policy():
    return untrained()


def begun(policy, pairs=PAIRS, **settings) -> Ops:
    given = {"problems": 4, "reward_lr": 1e-2, "passes": 6, "gold_passes": 40, **settings}
    recipe = registry.build("skywork_reward_v2", given)
    run = Run(policy.copy("policy"), steps=3, max_new=4, verify=registry.part("reward", TASK.verifier))
    run.models = {learner.name: learner_model(learner, policy) for learner in recipe.also}
    return Ops(recipe, run, Task("pairs", Shuffled(pairs), TASK.test, "final_number", max_new=4), RunConfig())


def step(ops: Ops) -> dict[str, float]:
    ops.run.metrics = {}
    ops.recipe.loop(ops.recipe, ops.run, ops)
    ops.run.step += 1
    return ops.run.metrics


def test_wrong_labels_are_flipped_and_verified_pairs_stay(policy):
    ops = begun(policy)
    first = step(ops)
    learnt = ops.task.train.problems
    assert len(learnt) == len(PAIRS)
    assert all(p.meta["chosen"].endswith("7") for p in learnt)
    assert sum(p.meta["gold"] for p in learnt) == 6
    assert (first["raw_labels_right"], first["labels_right"]) == (pytest.approx(13 / 18), 1.0)
    assert (first["kept"], first["flipped"]) == (pytest.approx(13 / 18), pytest.approx(5 / 18))


def test_without_recycling_they_are_dropped(policy):
    ops = begun(policy, recycle=False)
    assert step(ops)["dropped"] == pytest.approx(5 / 18)
    assert len(ops.task.train.problems) == len(PAIRS) - 5


@pytest.fixture
def scripted(monkeypatch):
    """Models that say what is written down: the gold model first, then one a round."""
    taught: list[int] = []

    def use(by_gold, rounds):
        said = iter([(None, by_gold), *rounds])

        @contextmanager
        def teach(ops, run, model, problems, passes, doing):
            taught.append(len(problems))
            run.memory["says"] = next(said)
            yield

        def gaps(problems, run, model):
            of_gold, of_wild = run.memory["says"]
            return np.array(of_gold if len(problems) == 2 else of_wild, float)

        monkeypatch.setattr(method, "taught_pairs", teach)
        monkeypatch.setattr(method, "pair_gaps", gaps)
        return taught

    return use


GOLD, WILD = [pair(i, gold=True) for i in (10, 11)], [pair(i) for i in range(20, 25)]


def judged(rounds: int) -> list[str]:
    return method.judged(None, Run(None), GOLD, WILD, rounds, 1, 1, True)


def test_a_pair_is_kept_flipped_or_dropped_by_both_models(scripted):
    scripted([1, -1, 1, -1, 0], [([1, 1], [2, -2, -2, 2, 1])])
    assert judged(1) == ["kept", "flipped", "dropped", "dropped", "dropped"]


def test_the_best_model_is_the_one_that_ranks_most_verified_pairs_right(scripted):
    taught = scripted([1, 1, 1, 1, 1], [([1, 1], [1, 1, 1, 1, -1]), ([1, 0], [1, -1, -1, -1, -1])])
    assert judged(2) == ["kept"] * 4 + ["dropped"]
    # the gold model learns the verified pairs, the first round the raw ones, the second what the first left
    assert taught == [2, 5, 4]
    scripted([1, 1, 1, 1, 1], [([1, 0], [1, 1, 1, 1, -1]), ([1, 1], [1, -1, -1, -1, -1])])
    assert judged(2) == ["kept"] + ["dropped"] * 4


def test_no_round_is_taught_on_nothing(scripted):
    taught = scripted([1] * 5, [([1, 1], [-1] * 5), ([1, 1], [1] * 5)])
    assert judged(2) == ["dropped"] * 5
    assert taught == [2, 5]


@pytest.mark.parametrize("gold", [True, False, None, "no"])
def test_pairs_of_one_kind_alone_are_refused(policy, gold):
    with pytest.raises(RewardlabError, match=r"of 4 pairs [04] have true"):
        step(begun(policy, [ask(f"{i}?", "1", chosen="1", rejected="2", gold=gold) for i in range(4)]))


def test_a_run_that_is_resumed_learns_from_the_same_pairs_and_is_a_reward_model(tmp_path):
    given = {"eval_problems": 2, "device": "cpu", "settings": {"problems": 2}, "checkpoint_every": 1}
    task = "verified_notes:gold=0.5,flip=0.25,size=8,test_size=4"
    for name, steps in (("whole", 3), ("cut", 1)):
        train("skywork_reward_v2", "untrained", task, steps=steps, out=tmp_path / name, **given)
    resume(tmp_path / "cut", steps=3)
    whole, cut = (load_file(tmp_path / run / "checkpoints" / "step-000003" / "reward.safetensors") for run in ("whole", "cut"))
    assert all(torch.equal(whole[name], cut[name]) for name in whole)
    scored = load_reward_model(str(tmp_path / "whole"), "cpu").score([([Message("user", "2+2=?")], "Send corn.")])
    assert all(map(math.isfinite, scored))
