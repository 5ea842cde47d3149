"""BRME: heads fitted to scores, the mix of the surest and the lowest by hand, and a policy trained by it."""

from __future__ import annotations

import json

import pytest
import torch

from rewardlab import registry
from rewardlab.api import train
from rewardlab.core import Task, ask
from rewardlab.errors import RewardlabError
from rewardlab.methods.reward_models.reward_robust_rlhf_brme import (
    end_states,
    fit_heads,
    judged,
    reward_robust_rlhf_brme,
    robust,
)
from rewardlab.models.embedded import untrained
from rewardlab.rollouts.recorded import recorded
from rewardlab.tasks.sources import Listed

PAIRS = [ask(f"What is {i} + 1?", "", chosen=f"It is {i + 1}.", rejected=f"Perhaps {i + 2}, sir, or so.") for i in range(8)]
TASK = Task("pairs", Listed(PAIRS), PAIRS[:4], "final_number")


def test_the_mix_by_hand():
    # three heads, two replies: of the first the second head is surest, of the second the third
    mean = torch.tensor([[1.0, 5.0], [3.0, -1.0], [2.0, 4.0]])
    std = torch.tensor([[0.5, 0.9], [0.1, 0.8], [0.7, 0.2]])
    mixed, nominal, worst = robust(mean, std, 0.25)
    assert nominal.tolist() == [3, 4]
    assert worst.tolist() == [1, -1]
    assert mixed.tolist() == pytest.approx([0.25 * 3 + 0.75 * 1, 0.25 * 4 - 0.75])
    assert robust(mean, std, 1.0)[0].tolist() == [3, 4]
    assert robust(mean, std, 0.0)[0].tolist() == [1, -1]


def plane(n: int, rng: torch.Generator, noise: float) -> tuple[torch.Tensor, torch.Tensor]:
    """States, and labels that are a linear map of them with noise where the first number is positive."""
    x = 3 + torch.randn(n, 3, generator=rng)
    y = 10 + 2 * x[:, 1] - x[:, 2] + noise * torch.where(x[:, 0] > 3, 1.0, 0.1) * torch.randn(n, generator=rng)
    return x, y


def test_heads_learn_means_and_where_they_are_unsure():
    rng = torch.Generator().manual_seed(0)
    fitted = fit_heads(*plane(600, rng, 1.0), heads=4, part=0.5, rng=rng)
    x, y = plane(400, rng, 0.0)
    mean, std = judged(fitted, x)
    assert mean.shape == std.shape == (4, 400)
    assert float((mean - y).abs().mean()) < 0.3
    noisy = x[:, 0] > 3
    assert all(float(s[noisy].mean()) > 1.5 * float(s[~noisy].mean()) for s in std)
    # memory holds plain data
    assert json.loads(json.dumps(fitted)) == fitted


def test_heads_agree_where_there_was_data_and_not_far_from_it():
    rng = torch.Generator().manual_seed(1)
    x, y = plane(60, rng, 1.0)
    fitted = fit_heads(x, y, heads=5, part=0.5, rng=rng)
    near, far = (judged(fitted, at)[0] for at in (x, x + 20 * torch.randn(x.shape, generator=rng)))
    assert float((far.max(0).values - far.min(0).values).mean()) > 5 * float((near.max(0).values - near.min(0).values).mean())


def test_states_are_those_of_the_last_token():
    policy = untrained()
    groups = recorded(fields=("chosen", "rejected"))(PAIRS[:2], type("R", (), {"policy": policy}))
    rows = [t for group in groups for t in group]
    found = end_states(policy, rows)
    # each row alone: padding changes nothing
    assert torch.allclose(found, torch.cat([end_states(policy, [t]) for t in rows]), atol=1e-4)


@pytest.mark.parametrize("given", [False, True])
def test_a_policy_is_trained_by_the_mix(given, tmp_path):
    settings = {"pairs": 8, "heads": 3, "n": 2, "weight": 0.4, "rm_lr": 1e-2}
    if given:
        # any reward model in a folder: here one with a random head
        model = untrained().copy("rm", value_head=True)
        with torch.no_grad():
            model.model.value_head.copy_(torch.randn(model.model.value_head.shape, generator=torch.Generator().manual_seed(0)))
        model.save(tmp_path / "rm")
        settings["reward_model"] = str(tmp_path / "rm")
    recipe = reward_robust_rlhf_brme(**settings).but(problems=2)
    result = train(recipe, untrained(), TASK, out=tmp_path / "run", steps=2, eval_problems=4, max_new=6, device="cpu")
    lines = [json.loads(line) for line in (result.out / "metrics.jsonl").read_text().splitlines()]
    assert lines[-1]["disagreement"] >= 0
    assert 0 <= lines[-1]["pair_accuracy"] <= 1
    assert any("reward_model/loss" in key for line in lines for key in line) is not given


def test_it_stands_on_a_reward_model():
    assert "robust_score" in str(registry.build("rlhf+reward_robust_rlhf_brme").reward)
    with pytest.raises(RewardlabError, match="which grpo is not paid by"):
        registry.build("grpo+reward_robust_rlhf_brme")
