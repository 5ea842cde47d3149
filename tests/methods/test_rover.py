"""ROVER: the values of the uniform policy."""

from __future__ import annotations

import pytest
import torch
from rows import Replies, batch_of, outcome

from rewardlab.core import Outputs, Recipe, Run, Score, Trajectory, ask
from rewardlab.engine.collate import add_columns, collate
from rewardlab.engine.update import backward
from rewardlab.evals.passk import coverage
from rewardlab.methods.objectives.rover import mean_logprob, rover, uniform_value_error
from rewardlab.models.embedded import untrained
from rewardlab.objectives.ratio import policy_gradient
from rewardlab.objectives.weighting import row_mean
from rewardlab.tasks.countdown.rewards import countdown_equation

RUN = Run(policy=None)


def test_the_mean_runs_over_the_whole_vocabulary():
    logits = torch.tensor([[0.0, 1.0, 5.0], [2.0, 2.0, 2.0]])
    by_hand = [logits[0].log_softmax(0).mean().item(), -1.098612]  # log 1/3
    assert mean_logprob(logits, torch.tensor([0, 1]))["mean_logprob"].tolist() == pytest.approx(by_hand)


def test_the_loss_by_hand_over_what_is_read_in_between():
    # decisions at 1, 2 | 4; rho 2.  Q: 2 (-1 + 2) = 2;  2 (-2 + 1.5) = -1;  2 (-1 + 1) = 0
    # mean Q of the state before each: 9 (never used);  2 (-3 + 4) = 2;  2 (-5 + 4.5) = -1
    # targets at credit 1/2: 1/2 + 2;  1/2 - 1;  1/2 + 0.    errors: -1/2, -1/2, -1/2
    batch = batch_of([[("rddrd", {"correct": outcome(1.0)})]], {"policy.mean_logprob": [[0, -4.5, -4, 7, -4.5]]})
    batch.old, batch.credit = torch.tensor([[0, -2, -1.5, 0, -1]]), torch.full((1, 5), 0.5)
    logprobs = torch.tensor([[0, -1.0, -2, 0, -1]], requires_grad=True)
    means = torch.tensor([[0, 0.0, -3, 99, -5]], requires_grad=True)
    loss = uniform_value_error(rho=2.0)(Outputs(logprobs=logprobs, extra={"mean_logprob": means}), batch, RUN)
    assert loss[batch.mask].tolist() == pytest.approx([0.25, 0.25, 0.25])
    loss[batch.mask].sum().backward()
    assert means.grad is None  # the target stands still
    assert logprobs.grad is not None
    assert logprobs.grad[batch.mask].tolist() == pytest.approx([-2, -2, -2])  # 2 error rho


def gradient(policy, objective, batch, run) -> torch.Tensor:
    policy.model.zero_grad()
    backward(policy, batch, Recipe(objective=objective, weighting=row_mean()), run, 64)
    return torch.cat([p.grad.flatten() for p in policy.parameters()])


def test_the_first_update_of_a_batch_is_that_of_reinforce():
    """All Q are 0 then, and d (Q - r)^2 = -2 r rho d log pi: the columns must be exactly what the update computes."""
    policy = untrained()
    problem = ask("2+3?", "5")
    asked = policy.read([Trajectory(problem)] * 3, [problem.prompt] * 3)
    group = policy.write(asked, ["5", "2+3=6\n6", "a long and wrong reply"])
    batch, run = collate([group], [[Score(1.0), Score(0.0), Score(0.0)]], policy.device), Run(policy)
    part = uniform_value_error(rho=0.5)
    add_columns(batch, part.needs, run, 64, part.per_token)
    batch.credit = rover().credit(batch.reward, batch, run)
    expected = gradient(policy, policy_gradient(), batch, run)
    assert torch.allclose(gradient(policy, part, batch, run), expected, rtol=1e-3, atol=1e-6 * float(expected.abs().max()) + 1e-7)
    assert float(expected.abs().max()) > 1e-3


def test_every_token_of_a_batch_weighs_the_same():
    # three and one decisions: a mean over replies would give 1/6 and 1/2
    batch = batch_of([[("rddd", {"correct": outcome(1.0)}), ("rd", {"correct": outcome(0.0)})]])
    assert rover().weighting(batch)[batch.mask].tolist() == pytest.approx([0.25] * 4)


def test_coverage_counts_solved_problems_and_different_right_answers():
    # right: 2 of 4 (one answer twice), 2 of 4 (two answers);  pass@1 1/2;  pass@2 = 1 - (2/4)(1/3) = 5/6
    def problem(target):
        return ask("Use 1, 2 and 3.", numbers=[1, 2, 3], target=target)

    said = ["Answer: 1+2+3", "Answer: 1+2+3", "Answer: 1+2-3", "none", "Answer: 3+2-1", "Answer: 2+3-1", "4", "Answer: 4"]
    run = Run(Replies(said), verify=countdown_equation())
    found = coverage(n=4, k=2)([problem(6), problem(4)], run)
    assert found["pass@2"] == pytest.approx(5 / 6)
    assert found["pass@1"] == 0.5
    assert found["distinct"] == 1.5
