"""PAV: beside the outcome, reward each step's progress under a prover policy, best-of-K.

    Q_mu(s, a) = 1 - (1 - Q(s, a))^K,     A_mu(s_h, a_h) = Q_mu(s_h, a_h) - Q_mu(s_(h-1), a_(h-1))
    gradient: sum_h grad log pi(a_h | s_h) (Q(s_h, a_h) + alpha A_mu(s_h, a_h))

Q is the chance to end right after a step. Progress under the policy itself adds nothing to what outcomes teach; a step's Q would
pay a poor step from a good state more than a good one from a poor state. A prover that has K tries tells steps apart where the
policy seldom ends right. Only the tokens of a step are paid its progress, while the outcome pays all of a reply: less the base's
baseline, and not divided by a deviation, so that alpha weighs the same in every group.

Setlur et al. 2024, arXiv:2410.08146. K = 4 is the paper's prover. (inferred): alpha, and the mean of the group's first steps as the
value of the prompt. Q is the share of right continuations, where the paper trains a verifier to foretell it: give such a one by
inner=prm_steps(model="prm:PATH"), or any reward of chances at the ends of steps. Steps are lines.
For search, rewards/progress.py has `promising`, Q + alpha A_mu of the last step, as `score=` of beams.
"""

import torch
from torch import Tensor

from rewardlab.checks.claim import Check, Within
from rewardlab.core import Batch, Chain, Credit, Recipe, Run, credit
from rewardlab.credit.terms import by_term
from rewardlab.credit.tokens import over_steps
from rewardlab.data.columns import Data
from rewardlab.evals.step_worth import step_agreement
from rewardlab.methods.baselines.grpo import grpo
from rewardlab.rewards.monte_carlo import monte_carlo_steps
from rewardlab.rewards.progress import best_of, step_gain
from rewardlab.rewards.reward import Reward
from rewardlab.rewards.steps import sound_steps
from rewardlab.rewards.task import correct
from rewardlab.rollouts.independent import independent


@credit
def in_its_step(a: Tensor, batch: Batch, run: Run) -> Tensor:
    """Every decision gets the reward of its own step, and nothing from later steps."""
    return over_steps(torch.where(batch.rewarded, a, 0.0), batch.rewarded, batch.mask)


def progress(of: Reward, k: int = 4) -> Reward:
    """A_mu of each step for the prover that takes the best of k, from `of`, which gives the ends of steps their Q."""
    return step_gain(inner=best_of(of, k=k), first="group").named("progress")


def undivided(by: Credit) -> Credit:
    """The chain without a division by the group's deviation: it would weigh the outcome, but not the progress, by the group."""
    return Chain.join(*(part for part in by.of if part.name != "scale_by_std")) if isinstance(by, Chain) else by


def pav_rewarding_progress(
    base: Recipe | None = None, *, inner: Reward | None = None, n: int = 4, k: int = 4, alpha: float = 3.0
) -> Recipe:
    """inner: the reward that gives each step its chance to end right; without it, the share of n continuations that do.  k: tries
    of the prover.  alpha: weight of progress beside the outcome.
    """
    base = base or grpo()
    return base.but(
        rollout=base.required("rollout").but_innermost(steps="newline"),
        reward=(base.reward or correct()) + alpha * progress(inner or monte_carlo_steps(n=n), k),
        credit=by_term(chains={"progress": in_its_step()}, others=undivided(base.required("credit"))),
    )


fidelity = "core"
left_out = "the verifier that learns beforehand to foretell progress, and its labels (here shares of right continuations each time)"
data = Data(answer="the gold answer")

Q = monte_carlo_steps(n=16)
check = Check(
    says="progress under the best of 4 tells steps that go wrong from sound ones better than progress under the policy itself",
    versus=None, task="arithmetic:biased=0.75,error=0.1", measure="agreement.progress", direction="higher", margin=0.028,
    against="agreement.own",
    by=step_agreement(
        truth=sound_steps(), rollout=independent(n=4, steps="newline"),
        rewards={"progress": progress(Q), "own": progress(Q, k=1), "value": Q},
    ),
    problems=60, steps=1, fault=Within("agreement.own", high=0.7, says="correlation of the policy's own progress and soundness"),
    learns=None,
    tried="30 problems, seeds 0 to 3: .62 .48 .61 .44 for the prover, .54 .43 .53 .31 for the policy, .51 .37 .49 .20 for chances",
    finding="progress for the best of four correlates with the soundness of steps at .51, for the policy itself at .45, and the "
    "mere chance after a step at .41. What a policy learns from the better reward is not tested here",
)  # fmt: skip
baseline = "grpo"
