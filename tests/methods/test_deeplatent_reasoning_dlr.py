"""DLR: the contrast and the policy gradient by hand; the assistant alone learns, and the model that answers stays as it is."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from rewardlab import api
from rewardlab.api.inputs import begin_run
from rewardlab.core import Score, Task, ask
from rewardlab.engine.step import Ops, standard_loop
from rewardlab.errors import RewardlabError
from rewardlab.methods.baselines.grpo import grpo
from rewardlab.methods.sampling.deeplatent_reasoning_dlr import (
    deeplatent_reasoning_dlr,
    kept_of,
    latent_contrast,
    pair_contrast,
)
from rewardlab.models.embedded import untrained
from rewardlab.policies.assistant import Assistant
from rewardlab.rewards.reward import reward
from rewardlab.runs.config import RunConfig
from rewardlab.tasks.sources import Listed

PROBLEMS = [ask(f"Add {i}", str(i)) for i in range(4)]
TASK = Task("sums", Listed(PROBLEMS), PROBLEMS[:2], "final_number")


@reward
def letters(trajectory):
    return sum(c.isalpha() for c in trajectory.reply)


def recipe_of(**settings):
    settings = {"count": 2, "size": 4, "well_formed": 0.0, "assistant_lr": 1e-2} | settings
    return deeplatent_reasoning_dlr(grpo(n=4), **settings).but(reward=letters(), problems=2)


def begun(policy=None, **settings) -> Ops:
    recipe, config = recipe_of(**settings), RunConfig(max_new=6, steps=2, eval_problems=2).settled()
    return Ops(recipe, begin_run(recipe, policy or untrained().copy("policy"), TASK, config), TASK, config)


def state(model) -> list[torch.Tensor]:
    return [w.clone() for w in model.state().values()]


def test_what_is_kept():
    def kept(rewards, share):
        return kept_of(torch.tensor(rewards), share).tolist()

    # the best two of eight, and none of the others
    assert kept([1.1, 0.1, 0.0, 1.0, 0.1, 0.0, 0.1, 0.1], 0.25) == [True, False, False, True, *[False] * 4]
    # ties are kept together; the rest of the share is not filled with the worst
    assert kept([1.0, 1.0, 1.0, 0.0], 0.25) == [True, True, True, False]
    assert kept([1.0, 0.0, 0.0, 0.0], 0.5) == [True, False, False, False]
    # all right or all wrong say nothing; one latent neither
    assert not any(kept([1.0, 1.0], 0.5) + kept([0.0, 0.0], 0.5) + kept([1.0], 0.25))


def test_the_contrast_by_hand():
    # kept: (1, 0) and (0, 2); not kept: (-3, 0). Cosines: kept pair 0; first to third -1; second to third 0.  tau = 1/2
    latents = torch.tensor([[1.0, 0.0], [0.0, 2.0], [-3.0, 0.0]])
    kept = torch.tensor([True, True, False])
    one, two = math.log(1 + math.exp(-2.0)), math.log(2.0)
    assert pair_contrast(latents, kept, 0.5).item() == pytest.approx((one + two) / 2, abs=1e-6)
    assert pair_contrast(latents, torch.tensor([True, False, False]), 0.5) == 0
    assert pair_contrast(latents, torch.tensor([True, True, True]), 0.5) == 0


def test_the_contrast_moves_the_mean_towards_what_is_kept():
    # noise as sampled; the mean of all latents is what learns
    noise, mean = torch.tensor([[1.0, 0.2], [1.0, -0.3], [-1.0, 0.1]]), torch.zeros(2, requires_grad=True)
    pair_contrast(mean + noise, torch.tensor([True, True, False]), 1.0).backward()
    assert mean.grad[0] < 0


def test_the_gaussian_policy_by_hand():
    assistant = Assistant(untrained(), count=2, size=3, std=2.0)
    z, mean = torch.tensor([[[1.0, -2.0, 0.0], [0.0, 0.0, 4.0]]]), torch.zeros(1, 2, 3, requires_grad=True)
    found = assistant._logprobs(z, mean)
    norm = 3 * (math.log(2.0) + 0.5 * math.log(2 * math.pi))
    # sum of squares over 2 std^2: 5 / 8 and 16 / 8
    torch.testing.assert_close(found, torch.tensor([[-5 / 8 - norm, -2.0 - norm]]))
    found.sum().backward()
    # (z - mean) / std^2;   for log std: ((z - mean) / std)^2 - 1
    torch.testing.assert_close(mean.grad, z / 4)
    torch.testing.assert_close(assistant.model.log_std.grad, z[0] ** 2 / 4 - 1)


def test_latents_are_found_again_from_their_vectors():
    assistant = Assistant(untrained(), count=2, size=8)
    z = torch.randn(5, 2, 8, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(assistant.model.latents_of(assistant.model.project(z)), z, atol=1e-4, rtol=1e-4)
    with pytest.raises(RewardlabError, match="as many directions"):
        Assistant(untrained(), size=1000)


def test_the_assistant_alone_learns_and_from_its_own_decisions():
    ops = begun()
    policy, assistant = ops.run.policy, ops.run.model("assistant")
    before = state(policy), state(assistant)
    groups = ops.rollout(ops.problems())
    row = groups[0][0]
    assert [turn.author for turn in row.turns] == ["assistant", None, "policy"]
    # latents are no reply, and count among no tokens that one may have
    assert row.replies == [row.turns[2].text]
    assert (row.ends, row.written) == ([len(row) - 1], len(row.turns[2].ids))
    # rows of a group have latents of their own
    assert not np.array_equal(row.turns[0].vectors, groups[0][1].turns[0].vectors)
    scores = ops.score(groups)
    learner, objective = ops.learners["assistant"], ops.learners["assistant"].recipe.objective
    batch = ops.collate(groups, scores, learner)
    assert batch.mask[:, :2].all()
    assert not batch.mask[:, 2:].any()
    # the outcome falls on the last latent, and both get its advantage
    assert [float(r) for r in batch.reward[:, 1]] == [s.value for scored in scores for s in scored]
    out = assistant.evaluate(batch, objective.wants)
    torch.testing.assert_close(out.logprobs[batch.mask], batch.old[batch.mask], atol=1e-3, rtol=1e-3)
    policy_gradient = objective.leaves()[0](out, batch, ops.run)
    torch.testing.assert_close(policy_gradient[batch.mask], -batch.credit[batch.mask], atol=1e-2, rtol=1e-2)
    ops.learn_due(ops.collate(groups, scores), groups, scores)
    assert all(torch.equal(a, b) for a, b in zip(before[0], state(policy), strict=True))
    assert not all(torch.equal(a, b) for a, b in zip(before[1], state(assistant), strict=True))
    assert all(p.grad is None for p in policy.parameters())


def test_the_gradient_of_the_means_is_that_of_the_formula():
    ops = begun(contrast=0.0)
    assistant, learner = ops.run.model("assistant"), ops.learners["assistant"]
    groups = ops.rollout(ops.problems())
    batch = ops.collate(groups, ops.score(groups), learner)
    out = assistant.evaluate(batch, ("logprobs",))
    loss = -(out.logprobs[:, :2] * batch.credit[:, :2]).sum()
    loss.backward()
    # means begin as 0 with std 1, and f's bias is the mean: -sum A z
    z = assistant.model.latents_of(torch.from_numpy(np.stack([t.turns[0].vectors for t, _ in batch.rows])))
    expected = -(batch.credit[:, :2, None] * z).sum(0).flatten()
    torch.testing.assert_close(assistant.model.bias.grad, expected, atol=1e-3, rtol=1e-3)


def test_measures_use_the_means_or_samples():
    for sampled in (False, True):
        ops, seen = begun(sampled=sampled), []
        write = ops.run.model("assistant").write
        ops.run.models["assistant"].write = lambda rows, rng, seen=seen, write=write: seen.append(rng) or write(rows, rng)
        ops.evaluate()
        assert [rng is not None for rng in seen] == [sampled]


def test_a_whole_step():
    ops = begun(count=1)
    standard_loop(ops.recipe, ops.run, ops)
    assert ops.run.metrics["assistant/grad_norm"] > 0


def test_the_contrast_of_a_batch_leaves_rows_without_a_verdict_out():
    ops = begun()
    learner, groups = ops.learners["assistant"], ops.rollout(ops.problems())
    # in the first group the third has no verdict; in the second no one is better than another
    worth = [[1.0, 1.0, None, 0.0], [1.0, 1.0, 1.0, 1.0]]
    scores = [[Score(value) for value in row] for row in worth]
    batch = ops.collate(groups, scores, learner)
    out = ops.run.model("assistant").evaluate(batch, ("logprobs", "hidden"))
    found = latent_contrast(keep=0.25, tau=0.5)(out, batch, ops.run)
    z = out.hidden[[0, 1, 3], :2].flatten(1)
    by_hand = pair_contrast(z, torch.tensor([True, True, False]), 0.5)
    torch.testing.assert_close(found, torch.stack([by_hand, by_hand * 0]))


def test_a_resumed_run_is_the_uninterrupted_one_and_its_assistant_goes_on(tmp_path):
    def train(steps, out, **settings):
        return api.train(
            recipe_of(**settings), untrained().copy("policy"), TASK, steps=steps, out=tmp_path / out, max_new=6, eval_problems=2
        )  # fmt: skip

    whole = train(3, "whole").run.model("assistant")
    train(2, "cut")
    resumed = api.resume(tmp_path / "cut", TASK, untrained().copy("policy"), steps=3).run.model("assistant")
    assert all(torch.equal(a, b) for a, b in zip(state(whole), state(resumed), strict=True))
    ops = begun(assistant=str(tmp_path / "whole" / "model"))
    assert all(torch.equal(a, b) for a, b in zip(state(whole), state(ops.run.model("assistant")), strict=True))


def test_a_policy_that_reads_no_vectors_is_refused():
    class Other:
        pass

    with pytest.raises(RewardlabError, match="a Other does not"):
        begun(policy=Other())
