"""Inverse preference learning: for a fixed policy, Q determines the reward, so Q is trained on preferences without a reward model.

    r_Q(s, a) = Q(s, a) - gamma V(s')
    critic: -log sigmoid(sum r_Q(preferred) - sum r_Q(other)) + coefficient mean r_Q^2 + expectile(Q - V; tau)
    policy: -exp(greed (Q(s, a) - V(s))) log pi(a|s),   greed = 1 / beta

Hejna and Sadigh 2023, arXiv:2305.15363, in the form on top of implicit Q-learning. Of the released code, settings and the cap on
weights are followed; its two Q networks, its slow copy of Q as the target of V and the clipping of V are left out. `greed=0` weighs
all recorded actions alike: behaviour cloning, of both segments of a pair. `preferred=True` teaches the policy the preferred ones
alone; with greed=0 that is the cloning of preferred segments, the fairer baseline, since it knows the preferences too (SFT in
Hejna et al. 2023, arXiv:2310.13639).
"""

from collections.abc import Sequence

import numpy as np
import torch

from rewardlab.core import Batch, Learner, Problem, Recipe, Rollout, Run, Update, measure
from rewardlab.evals.returns import episode_return
from rewardlab.objectives.offline import (
    advantage_weighted,
    expectile_value,
    implied_preference,
    implied_reward,
    implied_reward_square,
)
from rewardlab.objectives.weighting import preferred_mean
from rewardlab.proof.claim import Claim
from rewardlab.rollouts.interactive import interactive
from rewardlab.rollouts.segments import segments
from rewardlab.tasks.pointmass.environment import pointmass


@measure
def return_and_agreement(problems: Sequence[Problem], run: Run, *, play: Rollout, gamma: float) -> dict[str, float]:
    """The policy's return; and on held-out segments, the correlation of r_Q with the true reward, and how often the preferred
    segment has the larger sum of r_Q.
    """
    returns = episode_return(play=play)(problems, run)
    rows = [t for group in segments()(list(problems), run) for t in group]
    batch = _batch_of([t.ids for t in rows], [t.mask for t in rows])
    with torch.no_grad():
        implied = implied_reward(run.models["critic"].evaluate(batch, ("value",)).value, batch, gamma)
    rewards = torch.tensor([r for t in rows for _, r in t.paid])
    sums = implied.sum(1)  # (rows,)
    # a constant r_Q, as of an untrained critic, has no correlation (NaN): it counts as 0
    correlation = torch.corrcoef(torch.stack((implied[batch.mask], rewards)))[0, 1].nan_to_num()
    # rows alternate: the preferred segment, then the other one
    return returns | {"correlation": float(correlation), "pair_accuracy": float((sums[::2] > sums[1::2]).float().mean())}


def _batch_of(ids: Sequence[np.ndarray], masks: Sequence[np.ndarray]) -> Batch:
    """Segments of one length as a batch: groups of two rows, the preferred one first; without rewards and log-probs."""
    mask, zeros = torch.from_numpy(np.stack(masks)), torch.zeros(len(ids), len(ids[0]))
    length = torch.full((len(ids),), len(ids[0]))
    return Batch(torch.from_numpy(np.stack(ids)), mask, length, zeros, zeros, mask, torch.arange(len(ids)) // 2)


def ipl(
    base: Recipe | None = None, *, greed: float = 3.0, gamma: float = 0.99, tau: float = 0.7, coefficient: float = 0.5,
    critic_lr: float = 3e-3, passes: int = 4, turns: int = 40, preferred: bool = False,
) -> Recipe:  # fmt: skip
    """greed: how sharply better actions are preferred; 0 is behaviour cloning.  preferred: whether the policy learns from the
    preferred segments alone.  tau: expectile of V.  coefficient: of r_Q^2.  passes: over the segments of a step, of policy and
    critic.  turns: of the episodes that are measured.
    """
    play = interactive(env=pointmass(), n=1, turns=turns, temperature=0.0)
    # no credit: the weights of recorded actions come from the critic, within the objective
    base = base or Recipe(name="ipl", update=Update(problems=32, lr=1e-3))
    critic = Recipe(
        objective=implied_preference(gamma=gamma) + coefficient * implied_reward_square(gamma=gamma) + expectile_value(tau=tau),
        update=Update(lr=critic_lr, epochs=passes),
    )
    return base.but(
        rollout=segments(),
        objective=advantage_weighted(greed=greed),
        weighting=preferred_mean() if preferred else base.weighting,
        epochs=passes,
        measure=return_and_agreement(play=play, gamma=gamma),
        also=(*base.also, Learner("critic", "value-head", critic)),
    )


claim = Claim(
    says="a policy learnt from preferences by way of Q alone earns more than a clone of the preferred segments",
    versus="ipl", task="pointmass:skill=0.4", measure="return", direction="higher", margin=4.9,
    versus_settings={"greed": 0.0, "preferred": True}, problems=300, steps=40, learns="return", span=(-100.0, 0.0), start=None,
    version=2, replaces="its baseline cloned the rejected segments too",
)  # fmt: skip
