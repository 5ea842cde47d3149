"""FlowRL: replies as likely as their rewards say, by trajectory balance."""

from __future__ import annotations

import math

import pytest
import torch
from rows import batch_of, outcome

from rewardlab.core import Outputs, Recipe, Run, Score, Trajectory, ask
from rewardlab.engine.collate import add_columns, collate
from rewardlab.engine.update import backward
from rewardlab.methods.objectives.flowrl import flowrl, partition_error, trajectory_balance
from rewardlab.models.embedded import untrained

RUN = Run(policy=None)


def batch():
    """One group: two tokens, right; one token, wrong; one token after two of prompt, without a verdict."""
    z = [[0.5, 9, 9], [0.5, 9, 0], [9, 0.5, 9]]
    rows = [("rdd", {"a": outcome(1.0)}), ("rd", {"a": outcome(0.0)}), ("rrd", {"a": outcome(None)})]
    made = batch_of([rows], {"ref": [[0, -2.0, -1.0], [0, -1.5, 0], [0, 0, -1.0]], "partition.value": z})
    made.credit = torch.tensor([[0, 0.2, 0.2], [0, -0.2, 0], [0, 0, 0]])
    made.old = torch.tensor([[0, -1.0, -1.0], [0, -2.0, 0], [0, 0, -1.0]])
    return made


def test_the_loss_by_hand():
    # right: log pi (-1 - .8)/2 = -.9, ref -1.5: .5 - .9 + 1.5 - 2 = -.9
    # wrong: .5 - 2.2 + 1.5 + 2 = 1.8
    # weights: e^(.2) = 1.22 -> 1.2;   e^(-.2) = .8187
    said = torch.tensor([[0, -1.0, -0.8], [math.nan, -2.2, 0], [0, 0, -3.0]], requires_grad=True)
    loss = trajectory_balance(beta=10.0)(Outputs(logprobs=said), batch(), RUN)
    assert loss.tolist() == pytest.approx([1.2 * 0.81, math.exp(-0.2) * 3.24, 0], rel=1e-5)
    loss.sum().backward()
    # 2 w delta / length: the weight is held fixed
    assert said.grad[0].tolist() == pytest.approx([0, -1.2 * 0.9, -1.2 * 0.9], rel=1e-5)
    assert said.grad[1, 1].item() == pytest.approx(math.exp(-0.2) * 3.6, rel=1e-5)
    assert not said.grad[2].any()


def test_a_very_unlikely_reply_does_not_overflow():
    made = batch()
    made.old = made.old - 500
    loss = trajectory_balance()(Outputs(logprobs=torch.full((3, 3), -1.0)), made, RUN)
    assert torch.isfinite(loss).all()


def test_log_z_learns_at_the_end_of_the_prompt_what_balances_its_replies():
    value = torch.zeros(3, 3, requires_grad=True)
    loss = partition_error(beta=10.0)(Outputs(value=value), batch(), RUN)
    # with old log-probs: -1 + 1.5 - 2 = -1.5;   -2 + 1.5 + 2 = 1.5
    assert loss.tolist() == pytest.approx([2.25, 2.25, 0])
    loss.sum().backward()
    assert value.grad.tolist() == [[-3, 0, 0], [3, 0, 0], [0, 0, 0]]


def test_balance_is_the_target_distribution():
    """Where log pi = log ref + beta r - log Z for one-token replies, the loss is 0 and has no gradient."""
    made, reward = batch_of([[("rd", {"a": outcome(1.0)}), ("rd", {"a": outcome(0.0)})]]), torch.tensor([0.1, -0.1])
    ref = torch.tensor([0.5, 0.5]).log()
    weight = (ref + 15 * reward).exp()
    made.columns |= {"ref": torch.stack([ref * 0, ref], 1), "partition.value": weight.sum().log().expand(2, 2)}
    said = torch.stack([ref * 0, (weight / weight.sum()).log()], 1).requires_grad_()
    made.credit, made.old = torch.stack([reward * 0, reward], 1), said.detach()
    loss = trajectory_balance()(Outputs(logprobs=said), made, RUN)
    loss.sum().backward()
    assert loss.tolist() == pytest.approx([0, 0], abs=1e-9)
    assert said.grad.abs().max() < 1e-4


def test_log_z_learns_in_a_run():
    policy, recipe = untrained(), flowrl()
    (learner,) = recipe.also
    z = policy.copy("partition", value_head=True)
    problem = ask("2+3?", "5")
    asked = policy.read([Trajectory(problem)] * 2, [problem.prompt] * 2)
    made = collate([policy.write(asked, ["5", "a wrong reply"])], [[Score(1.0), Score(0.0)]], policy.device)
    run = Run(policy, reference=policy.copy("reference"), models={"partition": z})
    add_columns(made, recipe.needs, run, 64)
    # a policy that is 5 nats above the reference at every token: log Z has to come down to -5
    made.columns["ref"] = made.columns["ref"] - 5
    made.credit = learner.recipe.credit(made.reward, made, run)
    assert made.credit[made.mask].abs().min() > 0.5
    optimiser, losses = torch.optim.Adam(z.parameters(), lr=0.02), []
    for _ in range(60):
        optimiser.zero_grad()
        losses.append(backward(z, made, Recipe(objective=learner.recipe.objective), run, 64)["loss"])
        optimiser.step()
    # both replies share a prompt: the best constant leaves the spread, (15 * 1.41 / 2)^2 for either
    assert losses[0] == pytest.approx((15 * math.sqrt(0.5)) ** 2 + 25, rel=0.01)
    assert losses[-1] == pytest.approx((15 * math.sqrt(0.5)) ** 2, rel=0.02)
