"""SPAE: after each step an answer is forced, and the step is credited by how much surer and more right that answer has become.

    Phi_k = 1.5 Acc_k Conf_k + 0.5 Acc_k - Conf_k;     Acc: mean probability of the gold answer's tokens after step k
    Conf: mean over probes of exp(-mean entropy)       A_t = g_k A_outcome + xi (Phi_k - Phi_(k-1)),   t in step k
    g_k = gamma in the steps after the first with Phi > 0.9, where A_outcome > 0, else 1

An outcome credits alike the step that finds the answer, the steps that check it again, and the one that overturns it. A rise of the
potential pays the first, its fall charges the last, and gamma below 1 takes from what is written after the answer was there.

Wu et al. 2026, arXiv:2601.03823. Phi, 5 probes of 10 tokens at temperature 0.6, read as far as the gold answer is long, no rise at
the first step and 0.9 are those of the released example (cii030/SPAE-RL, 1f8c839, inference/probe_mechanism_example.py; no training
code was found). Acc and Conf are means over tokens, as a summary of the paper has them; the example divides exp(sum of log-probs)
and exp(-sum of entropies) by the number of tokens, reads the gold tokens' log-probs beside what each probe wrote (here: after the
gold tokens before them, so without noise of the probes) and entropies of the 20 likeliest tokens (here: of all). (inferred): the
form of g, that it spares wrong replies and the last step, the answer; xi, gamma.

Data: prompts with gold answers that are texts. Steps are lines.
"""

import torch
from torch import Tensor

from rewardlab.core import Batch, Credit, Recipe, Run, credit
from rewardlab.core.domain import NonNegativeFloat, Share
from rewardlab.credit.group import center, scale_by_std
from rewardlab.credit.terms import credit_of
from rewardlab.credit.tokens import over_steps
from rewardlab.credit.value import to_go
from rewardlab.errors import unknown
from rewardlab.evals.step_worth import step_agreement
from rewardlab.methods.baselines.grpo import grpo
from rewardlab.proof.claim import Claim, Within
from rewardlab.rewards.monte_carlo import monte_carlo_steps
from rewardlab.rewards.potential import TERM, step_potential
from rewardlab.rewards.task import correct
from rewardlab.rollouts.independent import independent


@credit
def by_potential(
    a: Tensor, batch: Batch, run: Run, *, chain: Credit, xi: NonNegativeFloat = 0.5, full: float = 0.9, gamma: Share = 0.5
) -> Tensor:
    """The terms but the potential through `chain`, less in the steps after the potential was `full`; and xi times its rises."""
    if TERM not in batch.terms:
        raise unknown("reward term", TERM, batch.terms)
    others = [e.weight * credit_of(name, chain, batch, run) for name, e in batch.terms.items() if name != TERM]
    outcome = torch.stack(others).sum(0)
    said = batch.terms[TERM]
    rises, was_full = torch.zeros_like(a), torch.zeros_like(said.rewarded)
    for i in range(len(batch)):
        ends = said.rewarded[i].nonzero().squeeze(1)
        phi = said.reward[i, ends]
        rises[i, ends[1:]] = phi[1:] - phi[:-1]
        # whether the potential was full after a step before this one
        was_full[i, ends[1:]] = (phi[:-1] > full).cummax(0).values if len(ends) > 1 else False
    judged = batch.mask & torch.stack([e.rewarded for n, e in batch.terms.items() if n != TERM]).any(0).any(1, keepdim=True)
    late = over_steps(was_full.to(a.dtype), said.rewarded, judged) > 0
    weighed = torch.where(late & (outcome > 0), gamma * outcome, outcome)
    return torch.where(judged, weighed + xi * over_steps(rises, said.rewarded, judged), 0.0)


def spae(
    base: Recipe | None = None, *, xi: float = 0.5, full: float = 0.9, gamma: float = 0.5, probes: int = 5, mark: str = "Answer:"
) -> Recipe:
    """xi: of the potential's rises.  full, gamma: after a potential above `full`, right replies earn gamma.  probes: answers per
    step.  mark: that forces them, where replies do not think between tags.
    """
    base = base or grpo()
    return base.but(
        rollout=base.required("rollout").but_innermost(steps="newline"),
        # weight 0: the potential is for the credit alone
        reward=(base.reward or correct()) + 0.0 * step_potential(probes=probes, mark=mark),
        credit=by_potential(chain=center() >> scale_by_std() >> to_go(), xi=xi, full=full, gamma=gamma),
    )


claim = Claim(
    says="the potential of a step goes along with the chance to finish right from there, more than how sure an answer there is",
    versus=None, task="arithmetic:biased=0.75,error=0.1,redundant=0.4", measure="agreement.potential", direction="higher",
    margin=0.22, against="agreement.sure",
    by=step_agreement(
        truth=monte_carlo_steps(n=16), rollout=independent(n=2, steps="newline"),
        rewards={"potential": step_potential(), "sure": step_potential(of="sure"), "right": step_potential(of="right")},
    ),
    problems=60, steps=1, fault=Within("agreement.sure", high=0.6, says="correlation of confidence and chance"), learns=None,
    tried="12 problems, 98 steps: potential .43, sure -.08, right alone .42",
)  # fmt: skip
baseline = "grpo"
