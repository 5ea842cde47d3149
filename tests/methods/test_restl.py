"""RESTL: pairs that differ in one aspect, their order, the reward of several models, and a run."""

from __future__ import annotations

import json
import random

import pytest
import torch
from rows import row_of
from safetensors.torch import load_file

from rewardlab import registry
from rewardlab.api import resume, train
from rewardlab.core import Run, Score, ask
from rewardlab.errors import RewardlabError
from rewardlab.methods.reward_models import restl as method
from rewardlab.text import stl
from rewardlab.verifiers.stl import ASPECTS, aspects
from rewardlab.worlds.requirements import requirements

GOLD = "G[0,20] (v > 9 -> F[0,6] p < 4)"


@pytest.mark.parametrize("aspect", ASPECTS)
def test_pairs_differ_in_their_aspect_and_are_labelled_by_it(aspect):
    task = requirements(size=60)
    made = [pair for i in range(60) if (pair := method.pair_of(task.train[i], aspect))]
    assert len(made) > 50
    others = set()
    for ease, problem in made:
        gold = stl.parse(problem.answer)
        better, worse = (aspects(problem.meta[side], gold) for side in method.SIDES)
        assert better[aspect] - worse[aspect] == pytest.approx(ease)
        assert 0 < ease <= 1
        assert problem.meta["qualities"] == [pytest.approx(better[aspect]), pytest.approx(worse[aspect])]
        others.add(problem.meta["chosen"] == problem.answer)
    # the better one is not always the gold formula: a model of one aspect is not to learn the others
    assert others == ({True} if aspect == "symbols" else {True, False})
    assert method.pair_of(made[0][1], aspect) == made[0]


def test_given_formulas_make_the_pair_of_the_best_and_the_worst():
    replies = ["G[0,20] (v > 9 -> F[0,6] p < 4)", f"not not {GOLD}", "v > 9", "no formula"]
    problem = ask("How?", GOLD, replies=replies)
    ease, pair = method.pair_of(problem, "atoms")
    assert (pair.meta["chosen"], pair.meta["rejected"], ease) == (replies[0], "no formula", 1.0)
    brief = method.pair_of(ask("How?", GOLD, replies=replies[:2]), "succinct")
    # 5 parts of 7
    assert brief[0] == pytest.approx(1 - 5 / 7)
    # both mean the same
    assert method.pair_of(ask("How?", GOLD, replies=replies[:2]), "semantics") is None
    with pytest.raises(RewardlabError, match="is no formula: there is"):
        method.pair_of(ask("How?", "G[a,b] x"), "atoms")


def test_stages_begin_with_the_pairs_that_differ_most():
    pairs = [(ease, ask(str(ease), "x > 1")) for ease in (0.1, 0.9, 0.5, 0.7, 0.3, 0.2)]
    staged = [[p.question for p in stage] for stage in method.stages_of(pairs, 3, True, random.Random(0))]
    assert staged == [["0.9", "0.7"], ["0.9", "0.7", "0.5", "0.3"], ["0.9", "0.7", "0.5", "0.3", "0.2", "0.1"]]
    mixed = method.stages_of(pairs, 3, False, random.Random(0))
    # as many updates, on others
    assert [len(stage) for stage in mixed] == [2, 4, 6]
    assert [p.question for p in mixed[0]] != staged[0]


def test_the_reward_is_the_weighted_sum_of_standardised_scores(monkeypatch):
    said = {"reward_atoms": [3.0, 1.0], "reward_succinct": [-10.0, 30.0]}

    def scores(*, model):
        return lambda groups, run: [[Score(value) for value in said[model]]]

    monkeypatch.setattr(method, "model_score", scores)
    run = Run(None)
    run.memory[method.SCALES] = {"reward_atoms": [1.0, 2.0], "reward_succinct": [10.0, 20.0]}
    total = registry.build("restl", {"aspects": ("atoms", "succinct"), "weights": (0.75, 0.25)}).reward
    # 3/4 (3 - 1) / 2 + 1/4 (-10 - 10) / 20;   3/4 (1 - 1) / 2 + 1/4 (30 - 10) / 20
    assert [s.total for s in total([[row_of("rd"), row_of("rd")]], run)[0]] == [0.5, 0.25]


def test_every_aspect_has_a_model_and_the_same_weight():
    recipe = registry.build("restl", {})
    assert [x.name for x in recipe.also][-4:] == [f"reward_{aspect}" for aspect in ASPECTS]
    assert str(recipe.reward).count("0.25 * ") == 4
    # as the command line gives it
    assert [x.name for x in registry.build("restl", {"aspects": "atoms"}).also][-1] == "reward_atoms"
    for settings, why in (
        ({"aspects": ("taste",)}, "taste"),
        ({"aspects": ()}, "needs an aspect"),
        ({"weights": (1.0,)}, "4 aspects, 1 weights"),
    ):
        with pytest.raises(RewardlabError, match=why):
            registry.build("restl", settings)


def test_a_run_teaches_its_models_once_and_is_resumed(tmp_path):
    given = {
        "eval_problems": 2, "device": "cpu", "checkpoint_every": 1,
        "settings": {"problems": 2, "pairs": 6, "aspects": ("atoms", "succinct"), "epochs": 1},
    }  # fmt: skip
    task = "requirements:size=12,test_size=4"
    for name, steps in (("whole", 2), ("cut", 1)):
        train("restl", "untrained", task, steps=steps, out=tmp_path / name, **given)
    resume(tmp_path / "cut", steps=2)
    for model in ("policy", "reward_atoms"):
        file = f"checkpoints/step-000002/{model}.safetensors"
        whole, cut = (load_file(tmp_path / run / file) for run in ("whole", "cut"))
        assert all(torch.equal(whole[name], cut[name]) for name in whole)
    rows = [json.loads(line) for line in (tmp_path / "whole" / "metrics.jsonl").read_text().splitlines()]
    accuracy = [row["reward_atoms.pair_accuracy"] for row in rows if "reward_atoms.pair_accuracy" in row]
    assert len(accuracy) == 2
    assert accuracy[0] == accuracy[1]
    assert {"eval/equivalent", "eval/atoms", "eval/readable"} <= set().union(*rows)
