"""FlowRL: match the reward distribution, with probability growing in the reward, instead of maximising reward.

    target: p(y|x) = pi_ref(y|x)^(1/|y|) exp(beta r^) / Z(x),    r^ the reward normalised within its group
    loss = w (log Z(x) + mean_t log pi(y_t) - beta r^ - mean_t log pi_ref(y_t))^2,    w = clip(pi / pi_old) of the reply, held fixed

The squared imbalance (trajectory balance) is 0 for all replies only where the policy is the target, so replies of equal reward stay
equally likely relative to the reference. log Z(x) is learnt from the same loss, by a second model that reads the prompt.

Zhu et al. 2025, arXiv:2509.15207. beta = 15, n = 8, means over the tokens, the advantage of GRPO as r^, and w are those of the
released code (Xuekai-Zhu/FlowRL, guide at 4b0b3be; flowrl_7B_math.sh as kept in Charlie-ChenLin/FlowRL, 1e549d8). w is clipped as
in the paper; the guide computes the clipped weight and uses the other, and a later copy (cdxeve/FlowRL, 25d45b2) bounds it at 10.
The script takes sixteen updates from 512 prompts, here four from a batch (--minibatches).
"""

import torch
from torch import Tensor

from rewardlab.checks.claim import Claim, Within
from rewardlab.core import Batch, Learner, Outputs, Recipe, Run, Update, objective
from rewardlab.data.columns import Data
from rewardlab.evals.passk import coverage
from rewardlab.methods.baselines.grpo import grpo
from rewardlab.objectives.pairs import row_sum


def prompt_end(table: Tensor, batch: Batch) -> Tensor:
    """(B,) a table's number at the token before the first decision: that of the prompt."""
    first = batch.mask.float().argmax(1)
    return table.gather(1, (first - 1).clamp(min=0)[:, None]).squeeze(1)


def row_mean_of(table: Tensor, batch: Batch) -> Tensor:
    """(B,) the mean of a table over the decisions of each row."""
    return row_sum(table, batch) / batch.mask.sum(1).clamp(min=1)


def imbalance(log_z: Tensor, logprobs: Tensor, batch: Batch, beta: float) -> Tensor:
    """(B,) log Z + mean log pi - beta r^ - mean log ref; 0 for rows without a verdict, whose reward nobody knows."""
    reward = row_mean_of(batch.credit, batch)
    found = log_z + row_mean_of(logprobs - batch.ref, batch) - beta * reward
    return torch.where(batch.rewarded.any(1), found, 0.0)


@objective(unit="row", needs=("old", "ref", "partition.value"))
def trajectory_balance(out: Outputs, batch: Batch, run: Run, *, beta: float = 15.0, eps: float = 0.2) -> Tensor:
    """The squared trajectory-balance error of each reply, with log Z from before the update."""
    log_ratio = row_sum(out.logprobs.detach() - batch.old, batch)
    # clamped before exp: the ratio of a long reply may overflow
    weight = log_ratio.clamp(-10, 10).exp().clamp(1 - eps, 1 + eps)
    log_z = prompt_end(batch.columns["partition.value"], batch)
    return weight * imbalance(log_z, out.logprobs, batch, beta).square()


@objective(unit="row", wants=("value",), needs=("old", "ref"))
def partition_error(out: Outputs, batch: Batch, run: Run, *, beta: float = 15.0) -> Tensor:
    """The same squared error, as a loss of log Z, with the policy from before the update fixed."""
    return imbalance(prompt_end(out.value, batch), batch.old, batch, beta).square()


def flowrl(
    base: Recipe | None = None, *, beta: float = 15.0, eps: float = 0.2, partition_lr: float | None = None, n: int = 8
) -> Recipe:
    """beta: how sharply the target prefers rewards.  eps: bounds of the weight.  partition_lr: learning rate of log Z.
    n: replies per prompt.
    """
    base = base or grpo(n=n).but(minibatches=4)
    partition = Recipe(
        credit=base.required("credit"), objective=partition_error(beta=beta), update=Update(lr=partition_lr, loss_kind="scorer")
    )
    return base.but(
        objective=trajectory_balance(beta=beta, eps=eps), also=(*base.also, Learner("partition", "value-head", partition))
    )


fidelity = "core"
left_out = (
    "log Z as three layers on the policy's mean prompt state, whose gradient reaches the policy too: here it is a second model, a "
    "copy of the policy with a scalar head at the last token of the prompt, which learns after the policy on each batch"
)
data = Data(answer="the gold answer")

claim = Claim(
    says="more different right answers stay open than after GRPO's equal updates, at the same accuracy",
    versus="grpo", task="countdown:largest=30,habit=0.9", measure="distinct", direction="higher", margin=0.057,
    versus_settings={"minibatches": 4}, by=coverage(n=8, k=8), problems=1000, steps=40, guard=Within("pass@1", low=-0.03),
    start=None,
    finding="GRPO's gain differs too much between runs to be called learning, so that nothing is decided. Both sides narrow alike: "
    "8 replies hold 1.43 different right answers before, .76 after FlowRL and .77 after GRPO",
)  # fmt: skip
