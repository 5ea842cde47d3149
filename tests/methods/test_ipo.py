"""IPO: the lead of the preferred reply has a target, and how far a policy is from its reference."""

from __future__ import annotations

import pytest
import torch
from rows import batch_of

from rewardlab import registry
from rewardlab.core import Outputs, Run, Sampling, Trajectory
from rewardlab.engine.loss import losses_of, weigh
from rewardlab.errors import RewardlabError
from rewardlab.methods.baselines.ipo import accuracy_and_kl, ipo, ipo_loss
from rewardlab.models.embedded import untrained
from rewardlab.objectives.pairs import dpo_loss

RUN = Run(policy=None)

# log pi/ref at the decided positions: preferred 1, 1/2 | other -1;  preferred 1/2 | other 1, 1, 1
# sums 3/2, -1 | 1/2, 3: h = 5/2, -5/2;   means 3/4, -1 | 1/2, 1: h = 7/4, -1/2
REF = [[0, -2, -1], [0, -1], [0, -3], [0, -2, -2, -2]]
PAIRS = batch_of([[("rdd", {}), ("rd", {})], [("rd", {}), ("rddd", {})]], {"ref": REF})
LOGPROBS = torch.tensor([[-9.0, -1, -0.5, -9], [-9, -2, -9, -9], [-9, -2.5, -9, -9], [-9, -1, -1, -1]])


@pytest.mark.parametrize(("average", "expected"), [(False, [0.25, 20.25]), (True, [0.0625, 6.25])])
def test_the_loss_by_hand(average, expected):
    # tau 1/4: the target is 2;   (5/2 - 2)^2, (-5/2 - 2)^2;   (7/4 - 2)^2, (-1/2 - 2)^2
    loss = ipo_loss(tau=0.25, average=average)(Outputs(logprobs=LOGPROBS), PAIRS, RUN)
    assert loss.tolist() == pytest.approx(expected)


def test_the_gradient_pulls_back_what_leads_by_too_much():
    # 2 (h - target) for each token of the preferred reply, and its negative for the other's
    logprobs = LOGPROBS.clone().requires_grad_()
    ipo_loss(tau=0.25)(Outputs(logprobs=logprobs), PAIRS, RUN).sum().backward()
    assert logprobs.grad is not None
    assert logprobs.grad.tolist() == [[0, 1, 1, 0], [0, -1, 0, 0], [0, -9, 0, 0], [0, 9, 9, 9]]


def lead_after(objective, steps: int) -> float:
    """h of two one-token replies, the first always preferred, after gradient descent on their logits from a uniform reference."""
    logits = torch.zeros(2, requires_grad=True)
    uniform = torch.full((2,), 0.5).log()
    batch = weigh(batch_of([[("rd", {}), ("rd", {})]], {"ref": [[0, float(x)] for x in uniform]}), objective, None)
    optimiser = torch.optim.SGD([logits], lr=0.2)
    for _ in range(steps):
        optimiser.zero_grad()
        logprobs = torch.stack((torch.zeros(2), logits.log_softmax(0)), 1)
        sum(losses_of(objective, Outputs(logprobs=logprobs), batch, RUN).values()).backward()
        optimiser.step()
    return float((logits[0] - logits[1]).detach())


@pytest.mark.slow
@pytest.mark.parametrize("strength", [0.25, 1.0])
def test_of_certain_preferences_it_learns_a_lead_that_stays_where_that_of_dpo_grows(strength):
    assert lead_after(ipo_loss(tau=strength), 200) == pytest.approx(1 / (2 * strength), abs=1e-4)
    assert lead_after(ipo_loss(tau=strength), 400) == pytest.approx(1 / (2 * strength), abs=1e-4)
    assert lead_after(dpo_loss(beta=strength), 400) > 1.1 * lead_after(dpo_loss(beta=strength), 200) > 1 / (2 * strength)


def test_the_distance_from_the_reference_is_that_of_the_policys_own_draws():
    task = registry.task("arithmetic", test_size=20)
    reference = untrained(seed=1)
    policy = untrained(seed=2)
    run = Run(policy, reference=reference, seed=3, max_new=6, verify=registry.part("reward", task.verifier))
    found = accuracy_and_kl()(task.test[:8], run)
    asked = policy.read([Trajectory(p) for p in task.test[:8]], [p.prompt for p in task.test[:8]])
    drawn = policy.extend(asked, Sampling(6), Run(policy, seed=3).rng("eval"))
    apart = [a[t.mask].sum() - b[t.mask].sum() for t, a, b in zip(drawn, policy.score(drawn), reference.score(drawn), strict=True)]
    assert found["kl"] == pytest.approx(sum(apart) / 8, abs=1e-3)
    assert abs(found["kl"]) > 0.01
    assert found["pass@1"] == 0.0


def test_a_policy_is_nowhere_from_itself_and_a_run_without_reference_is_refused():
    task = registry.task("arithmetic", test_size=20)
    policy = untrained()
    run = Run(policy, reference=policy.copy("reference"), max_new=6, verify=registry.part("reward", task.verifier))
    assert accuracy_and_kl()(task.test[:4], run)["kl"] == pytest.approx(0.0, abs=1e-4)
    run.reference = None
    with pytest.raises(RewardlabError, match="reference"):
        accuracy_and_kl()(task.test[:4], run)


def test_it_keeps_a_reference():
    assert ipo().needs == ("ref",)
