"""RAST: the difference of two small models' logits moves a third one, which stays as it is."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from rewardlab import registry
from rewardlab.api import answer
from rewardlab.api.inputs import begin_run
from rewardlab.core import Task, ask
from rewardlab.engine.step import Ops, standard_loop
from rewardlab.errors import RewardlabError
from rewardlab.methods.baselines.grpo import grpo
from rewardlab.methods.search.rast import rast
from rewardlab.models.embedded import untrained
from rewardlab.rewards.reward import reward
from rewardlab.runs.config import RunConfig
from rewardlab.tasks.sources import Listed
from rewardlab.util.outputs import forward_batch

PROBLEMS = [ask(f"Add {i}", str(i)) for i in range(4)]
TASK = Task("sums", Listed(PROBLEMS), PROBLEMS[:2], "final_number")


def saved(folder, seed):
    untrained(seed).save(folder)
    return str(folder)


def logits_at(policy, batch):
    decided = batch.mask[:, 1:]
    return policy.evaluate(batch, ("hidden",)).hidden[:, :-1][decided] @ policy.vocabulary_head().T


@torch.no_grad()
def test_replies_are_sampled_from_the_large_model_plus_the_shift(tmp_path):
    recipe = rast(small_rl=saved(tmp_path / "rl", 1), small_base=saved(tmp_path / "base", 2), strength=0.5, n=3)
    run = begin_run(recipe, untrained().copy("policy"), TASK, RunConfig(max_new=6).settled())
    rows = [t for group in recipe.rollout(PROBLEMS, run) for t in group]
    batch = forward_batch(rows, run.policy.device)
    large, rl, base = (logits_at(model, batch) for model in (run.policy, untrained(1), untrained(2)))
    wanted = (large + 0.5 * (rl - base)).log_softmax(1).gather(1, batch.ids[batch.mask][:, None]).squeeze(1)
    found = np.concatenate([t.turns[-1].logprobs for t in rows])
    np.testing.assert_allclose(found, wanted.numpy(), atol=2e-3)
    assert np.abs(found - large.log_softmax(1).gather(1, batch.ids[batch.mask][:, None]).squeeze(1).numpy()).max() > 0.05


def test_without_a_pair_it_answers_as_the_large_model_and_counts_all_three(capsys):
    plain = registry.build("majority_vote", {"n": 1})
    shifted, alone = (answer(recipe, untrained(), prompt="2+3=?", max_new=8) for recipe in (rast(), plain))
    assert shifted["answer"] == alone["answer"]
    numbers = [answer(recipe, untrained(), TASK, max_new=8)["tokens"] for recipe in (rast(), plain)]
    assert numbers[0] == 3 * numbers[1]
    # once in each of the two calls
    assert capsys.readouterr().err.count("rast has no shift to add") == 2


@reward
def letters(trajectory):
    return sum(c.isalpha() for c in trajectory.reply)


def test_with_a_large_model_the_small_one_learns_and_its_shift_is_measured_there(tmp_path):
    recipe = rast(grpo(n=4), large=saved(tmp_path / "large", 3), strength=2.0).but(reward=letters(), problems=2, lr=1e-2)
    config = RunConfig(max_new=6, steps=2, eval_problems=2).settled()
    ops = Ops(recipe, begin_run(recipe, untrained().copy("policy"), TASK, config), TASK, config)
    seen, large, before = [], ops.run.model("large"), [w.clone() for w in ops.run.model("large").state().values()]
    extend = large.extend
    large.extend = lambda *args: seen.append([(w, m.name) for w, m in large._joined]) or extend(*args)
    ops.evaluate()
    assert seen == [[(2.0, "policy"), (-2.0, "small_base")]]
    # the small one learns from what it samples alone
    assert not ops.run.policy._joined
    standard_loop(ops.recipe, ops.run, ops)
    assert all(torch.equal(a, b) for a, b in zip(before, large.state().values(), strict=True))
    base = ops.run.model("small_base").state()
    assert any(not torch.equal(w, base[k]) for k, w in ops.run.policy.state().items())


def test_weights_are_for_all_models_or_none():
    run = begin_run(rast(), untrained().copy("policy"), TASK, RunConfig(max_new=6).settled())
    names = ["small_rl", "small_base"]
    assert [w for w, _ in run.weighted(names, 2.0, (1.0, -1.0))] == [2.0, -2.0]
    assert [w for w, _ in run.weighted(names, 2.0)] == [2.0, 2.0]
    with pytest.raises(RewardlabError, match="1 weights are given for the models small_rl, small_base"):
        run.weighted(names, 1.0, (1.0,))
