"""THR: a token's advantage is scaled by whether its update makes the group's right replies likelier, or leaves room for others.

    THR_jk = sign(A_j) sum over the tokens (i, k') of right replies of <e_ik' - pi_ik', e_jk - pi_jk> <h_ik', h_jk>
    A_jk = (1 + p sign(THR_jk)) A_j;      p > 0 exploits, p < 0 explores

e is the sampled token as a unit vector, pi the policy's distribution there, h its last hidden state: THR is the first-order effect
of the token's update on the sum of log pi of the right replies, in which the vocabulary head alone moves. A token that a wrong
reply shares with right ones takes these down with it; one with a positive THR makes what is already right surer.

Deng et al. 2025, arXiv:2510.03669; the double sum over all tokens is that of their arXiv:2505.18830. (inferred): the form of the
weights and p = .1, as no released code was found; what earns more than the group's mean is right; states and probabilities are
those before the update. Left out: a threshold on |THR|.

Data: prompts and answers. The policy must be a language model.
"""

import torch
from torch import Tensor

from rewardlab.core import Batch, Recipe, Run, credit
from rewardlab.credit.group import center, scale_by_std
from rewardlab.credit.value import to_go
from rewardlab.evals.likelihood import likelihood_foretold
from rewardlab.methods.baselines.grpo import grpo
from rewardlab.proof.claim import Claim, Within
from rewardlab.rewards.task import correct
from rewardlab.rollouts.independent import independent


@credit(needs=("policy.hidden",), compares_rows=True)
def hidden_reward(a: Tensor, batch: Batch, run: Run) -> Tensor:
    """(B, T) THR of every decision with an advantage; 0 for the others, and where no reply of the group is right."""
    decided = batch.mask[:, 1:]
    # the state one position before a token predicts it
    hidden, ids = batch.columns["policy.hidden"][:, :-1][decided], batch.ids[:, 1:][decided]
    advantage, group = a[:, 1:][decided], batch.group[:, None].expand(decided.shape)[decided]
    found = torch.zeros_like(advantage)
    for rows in (group == g for g in range(batch.groups)):
        if bool((advantage[rows] > 0).any()):
            found[rows] = run.policy.gradient_products(hidden[rows], ids[rows], advantage[rows] > 0)
    return torch.zeros_like(a).masked_scatter(torch.nn.functional.pad(decided, (1, 0)), found * advantage.sign())


@credit(needs=("policy.hidden",), compares_rows=True)
def steer_by_hidden_reward(a: Tensor, batch: Batch, run: Run, *, p: float = 0.1) -> Tensor:
    """(1 + p sign(THR)) A. Logs `thr_positive`, the share of the decisions with an advantage whose THR is positive."""
    sign = hidden_reward()(a, batch, run).sign()
    if bool((where := batch.mask & (a != 0)).any()):
        run.log("thr_positive", float((sign[where] > 0).float().mean()))
    return a * (1 + p * sign)


@credit(needs=("old",))
def surprise(a: Tensor, batch: Batch, run: Run) -> Tensor:
    """-log pi: what right replies are less likely to share."""
    return torch.where(batch.mask, -batch.old, 0.0)


def token_hidden_reward(base: Recipe | None = None, *, p: float = 0.1) -> Recipe:
    """p: from -1 to 1; above 0 what makes right replies surer counts more, below 0 less, and what does not the other way round."""
    base = base or grpo()
    return base.but(credit=base.required("credit") >> steer_by_hidden_reward(p=p))


claim = Claim(
    says="THR tells better than a token's surprise which updates of wrong replies' tokens lower the likelihood of right replies",
    versus=None, task="arithmetic:biased=0.75,error=0.1", measure="auc.thr", direction="higher", margin=0.05,
    against="auc.surprise",
    by=likelihood_foretold(
        reward=correct(), credit=center() >> scale_by_std() >> to_go(),
        predictors={"thr": hidden_reward(), "surprise": surprise()}, rollout=independent(n=8),
    ),
    problems=100, steps=1, fault=Within("lowers", low=0.2, says="share of wrong replies' tokens whose update lowers right replies"),
    learns=None, start=None,
)  # fmt: skip
baseline = "grpo"
