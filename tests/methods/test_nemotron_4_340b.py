"""Nemotron-4's RPO: the implicit gap of a pair is to be the gap of its rewards."""

from __future__ import annotations

import json
import math

import pytest
import torch
from rows import batch_of, outcome

from rewardlab import registry
from rewardlab.api import train
from rewardlab.core import Outputs, Run, ask
from rewardlab.data.columns import Data
from rewardlab.errors import RewardlabError
from rewardlab.methods.reward_models.nemotron_4_340b import bernoulli_kl, gaps_learnt, rpo_loss
from rewardlab.models.embedded import untrained
from rewardlab.objectives.pairs import dpo_loss

# log pi/ref, summed: preferred 3/2, other -1: h = 5/2;   preferred 1/2, other 3: h = -5/2;   equal: h = 0
REF = [[0, -2, -1], [0, -1], [0, -3], [0, -2, -2, -2], [0, -1], [0, -1]]
FIRST, SECOND = [[-9, -1, -0.5, -9], [-9, -2, -9, -9]], [[-9, -2.5, -9, -9], [-9, -1, -1, -1]]
LOGPROBS = torch.tensor([*FIRST, *SECOND, *[[-9, -1, -9, -9]] * 2])
H = [2.5, -2.5, 0.0]


def pairs(rewards):
    patterns = ["rdd", "rd", "rd", "rddd", "rd", "rd"]
    rows = [(pattern, {"": outcome(x)}) for pattern, x in zip(patterns, rewards, strict=True)]
    return batch_of([rows[:2], rows[2:4], rows[4:]], {"ref": REF})


def sigmoid(x: float) -> float:
    return 1 / (1 + math.exp(-x))


def kl(a: float, b: float) -> float:
    p, q = sigmoid(b), sigmoid(a)
    return p * math.log(p / q) + (1 - p) * math.log((1 - p) / (1 - q))


REWARDS = [2.0, 0.5, 1.0, 1.0, 3.0, 2.0]
GAPS = [1.5, 0.0, 1.0]


@pytest.mark.parametrize(
    ("distance", "of"),
    [("backward", kl), ("forward", lambda a, b: kl(b, a)), ("squared", lambda a, b: (a - b) ** 2)],
)
def test_the_loss_by_hand(distance, of):
    loss = rpo_loss(beta=0.2, eta=2.0, distance=distance)(Outputs(logprobs=LOGPROBS), pairs(REWARDS), Run(None))
    assert loss.tolist() == pytest.approx([of(0.2 * h, 2 * gap) for h, gap in zip(H, GAPS, strict=True)], abs=1e-6)


def test_it_pulls_back_a_gap_that_is_wider_than_the_rewards_where_dpo_widens_every_one():
    # a = 1/2, -1/2, 0; the rewards of the first are far apart, the others equal
    logprobs = LOGPROBS.clone().requires_grad_()
    rpo_loss(beta=0.2)(Outputs(logprobs=logprobs), pairs([9.0, 0.0, 1.0, 1.0, 1.0, 1.0]), Run(None)).sum().backward()
    # the first widens, the second, which lags behind, catches up, and the third stays
    assert logprobs.grad[0, 1] < 0 < logprobs.grad[1, 1]
    assert logprobs.grad[2, 1] < 0 < logprobs.grad[3, 1]
    assert logprobs.grad[4:].abs().sum() == 0
    ahead = LOGPROBS.clone().requires_grad_()
    rpo_loss(beta=0.2)(Outputs(logprobs=ahead), pairs([1.0, 1.0, *[1.0] * 4]), Run(None)).sum().backward()
    assert ahead.grad[0, 1] > 0 > ahead.grad[1, 1]
    plain = LOGPROBS.clone().requires_grad_()
    dpo_loss(beta=0.2)(Outputs(logprobs=plain), pairs([1.0] * 6), Run(None)).sum().backward()
    assert (plain.grad[::2, 1] < 0).all()


def test_it_is_0_where_the_gaps_agree_and_finite_far_out():
    x = torch.tensor([0.0, 3.0, -200.0, 300.0])
    assert bernoulli_kl(x, x).tolist() == [0, 0, 0, 0]
    assert bernoulli_kl(x, -x).isfinite().all()
    assert (bernoulli_kl(x, x + 1) >= 0).all()


def test_a_pair_without_both_rewards_teaches_nothing():
    loss = rpo_loss()(Outputs(logprobs=LOGPROBS), pairs([2.0, None, *REWARDS[2:]]), Run(None))
    assert loss[0] == 0
    assert loss[2] > 0


def test_the_likelihood_of_the_chosen_is_added():
    batch, out = pairs(REWARDS), Outputs(logprobs=LOGPROBS)
    terms = [registry.build("nemotron_4_340b", {"sft": sft}).objective.terms() for sft in (0.5, 0.0)]
    losses = [sum(scale * leaf(out, batch, Run(None)) for scale, leaf in of) for of in terms]
    assert (losses[0] - losses[1]).tolist() == pytest.approx([0.75, 1.25, 0.5])


def test_gaps_are_compared_with_those_of_the_rewards():
    policy = untrained()
    problems = [ask(f"{i}?", chosen="aa", rejected="b", chosen_score=i, rejected_score=1) for i in range(4)]
    same = gaps_learnt()(problems, Run(policy, reference=policy))
    # nothing was learnt: a = 0, b = -1, 0, 1, 2
    assert (same["gap_error"], same["gap"], same["preferred"], same["n"]) == (1.0, 0.0, 0.5, 4)
    assert same["gap_correlation"] == 0.0
    moved = policy.copy("moved")
    with torch.no_grad():
        for weight in moved.parameters():
            weight += 0.1 * torch.randn(weight.shape, generator=torch.Generator().manual_seed(1))
    found = gaps_learnt()(problems, Run(moved, reference=policy))
    assert found["gap"] != 0
    assert -1 <= found["gap_correlation"] <= 1
    with pytest.raises(RewardlabError, match="chosen_score"):
        gaps_learnt()([ask("?", chosen="a", rejected="b")], Run(policy, reference=policy))
    with pytest.raises(RewardlabError, match="reference"):
        gaps_learnt()(problems, Run(policy))


def test_it_learns_the_gaps_of_a_users_rows(tmp_path):
    rows = next(Data.from_json(row["data"]) for row in registry.rows() if row["name"] == "nemotron_4_340b").rows
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    settings = {"problems": 2, "lr": 3e-3, "beta": 0.5}
    given = {"eval_problems": 1, "device": "cpu", "checkpoint_every": 0, "settings": settings}
    train("nemotron_4_340b", "untrained", registry.task(str(tmp_path / "rows.jsonl")), steps=8, out=tmp_path / "run", **given)
    logged = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    losses = [row["loss"] for row in logged if "loss" in row]
    assert losses[-1] < 0.7 * losses[0]
