"""PRIME: a second language model, trained on outcomes alone, gives a process reward to every token.

    r_t = beta log(prm(y_t) / ref(y_t));     prm loss = -[o log sigmoid(sum_t r_t) + (1 - o) log(1 - sigmoid(sum_t r_t))]
    A_t = (o_i - mean of o_j) + sum_{s >= t} gamma^{s-t} (r'_s - mean of r'_j),   both means over the other replies j of the group

o is the outcome, r'_j a reply's mean token reward, and r' = r / max |sum_{s >= t} r_s|, the maximum over all tokens of the batch:
however sure the model is, what it says of the rest of a reply is worth no more than an outcome. The process reward model starts as
a copy of the policy and learns on every batch that the policy samples, after it has been used there. Problems that are solved too
rarely or too often are left out, and others sampled in their place until the batch is full.

Cui et al. 2025, arXiv:2502.01456, and the released code as kept in zkcpku/PRIME (080412e, run_prime_main.sh; 4ad30aa,
ppo_trainer.yaml; 8d6a5e6, core_algos.py): beta = .05, .2 and .8, equal weights (5 and 5), the maximum (prime_norm: batch_norm),
whitening; there n = 4. The baseline of token rewards is the paper's; the code subtracts the group's mean, this row included, times
n / (n - 1). `online=False` freezes the process reward model at the reference, so that its rewards are 0: what is left is
leave-one-out credit for outcomes alone, in the same loss and on the same problems.
"""

import math
from dataclasses import replace

import torch.nn.functional as F
from torch import Tensor

from rewardlab.checks.claim import Claim, Within
from rewardlab.core import Batch, Learner, Outputs, Recipe, Run, Update, credit, objective
from rewardlab.credit.group import leave_one_out, subtract_mean_of_others, whiten
from rewardlab.credit.value import over_decisions, to_go
from rewardlab.data.columns import Data
from rewardlab.errors import RewardlabError
from rewardlab.methods.baselines.grpo import grpo
from rewardlab.objectives.pairs import row_sum
from rewardlab.rollouts.filtered import solved_between
from rewardlab.util.ranking import auc_of


@credit(needs=("prm.logprobs", "ref"))
def plus_implicit_rewards(
    a: Tensor, batch: Batch, run: Run, *, beta: float = 0.05, gamma: float = 1.0, weight: float = 1.0, bounded: bool = True
) -> Tensor:
    """Add to each token the process rewards from there on, minus the group's baseline. Every token is a reward event of its own.

    bounded: all are divided by the largest sum of them from a token on, in size, that there is in the batch.
    """
    reward = beta * (batch.columns["prm.logprobs"] - batch.ref)
    _log_auc(row_sum(reward, batch), batch, run)
    if bounded:
        # 1e-6 as in the released code: a model that still is the reference says nothing
        reward = reward / (over_decisions(reward, batch.mask, 1.0).abs().max() + 1e-6)
    # the shared credit functions read rewards and events from the batch, so they get one in which every decision is an event
    tokens = replace(batch, rewarded=batch.mask, reward=reward)
    return a + weight * (subtract_mean_of_others() >> to_go(gamma=gamma))(tokens.reward, tokens, run)


def _log_auc(said: Tensor, batch: Batch, run: Run) -> None:
    """prm_auc: how often the model's reward of a reply is higher for a right one than for a wrong one of the same group."""
    right = batch.reward.sum(1) > 0  # (B,)
    groups = ([*zip(said[batch.group == g].tolist(), right[batch.group == g].tolist(), strict=True)] for g in range(batch.groups))
    if known := [auc for group in groups if not math.isnan(auc := auc_of(group))]:
        run.log("prm_auc", sum(known) / len(known))


@objective(unit="row", needs=("ref",))
def outcome_cross_entropy(out: Outputs, batch: Batch, run: Run, *, beta: float = 0.05, term: str = "correct") -> Tensor:
    """The sum of a reply's token rewards as the log-odds that it is right."""
    if term not in batch.terms:
        raise RewardlabError(f"the process reward model learns from the reward term {term!r}, which this reward does not have")
    outcome = batch.terms[term]
    right = (outcome.reward.sum(1) > 0).float()  # (B,)
    # with logits: the sigmoid of a long reply's sum rounds to 0 or 1, and its log would be -inf
    loss = F.binary_cross_entropy_with_logits(beta * row_sum(out.logprobs - batch.ref, batch), right, reduction="none")
    # replies without a verdict have no label to learn
    return loss.where(outcome.rewarded.any(1), 0.0)


def prime(
    base: Recipe | None = None, *, n: int = 8, beta: float = 0.05, gamma: float = 1.0, weight: float = 1.0,
    prm_lr: float | None = None, prm_epochs: int = 1, low: float = 0.2, high: float = 0.8, attempts: int = 10, online: bool = True,
    bounded: bool = True,
) -> Recipe:  # fmt: skip
    """weight: of process rewards beside the outcome. bounded: they are divided by their largest sum to go. prm_epochs: times that
    their model goes over each batch. low, high: shares of right replies between which a problem is kept. attempts: how often at
    most problems are sampled to fill the batch.
    """
    base = base or grpo(n=n)
    prm = Recipe(objective=outcome_cross_entropy(beta=beta), update=Update(lr=prm_lr, epochs=prm_epochs))
    process = plus_implicit_rewards(beta=beta, gamma=gamma, weight=weight, bounded=bounded)
    return base.but(
        # groups that are nearly all right or all wrong have outcome advantages near 0, and unbalance the labels of the model
        rollout=solved_between(inner=base.required("rollout"), low=low, high=high, attempts=attempts),
        # outcomes become advantages before the process rewards are added: the two have baselines of their own
        credit=leave_one_out() >> to_go() >> process >> whiten(),
        # every=0 freezes the model: as a copy of the policy's start it equals the reference, so its rewards stay 0
        also=(*base.also, Learner("prm", "copy:policy", prm, every=1 if online else 0)),
    )


fidelity = "core"
left_out = (
    "the buffer of further problems that were sampled and kept but did not fit the batch, which the next step begins with, and the "
    "mean of the loss over all tokens of a batch (here of each reply first, as in GRPO)"
)
data = Data(answer="the gold answer")

claim = Claim(
    says="process rewards learned online from outcomes teach more than the outcomes alone in as many updates",
    versus="prime", task="arithmetic:biased=0.75,error=0.1", measure="gold", direction="higher", margin=0.07,
    settings={"beta": 0.5, "prm_epochs": 4}, versus_settings={"online": False}, steps=40,
    judge=Within("train.prm_auc", low=0.6, says="right replies above wrong ones of their group, by the learnt rewards"),
    tried="accuracy during training, which is that of the problems kept, near a half whatever is learnt",
    finding="36% right before; 65% with process rewards and 76% by the outcomes alone, although the model ranks a right reply "
    "above a wrong one in 83%. That was with process rewards that nothing bounded, at ten times the beta of the paper",
    version=2, replaces="the process reward model had learnt nothing (its loss stayed at chance); tokens were the budget",
)  # fmt: skip
baseline = "rloo"
