"""Tabular Markov decision processes: random instances, values of policies, optimal policies. Exact, in float64.

A reward is a tensor (..., S, A, S'); a policy is a tensor of probabilities (..., S, A). Leading dimensions are batches.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class MDP:
    """transition: (S, A, S') probabilities.  start: (S,) probabilities.  gamma: discount per step, below 1."""

    transition: Tensor
    start: Tensor
    gamma: float

    @property
    def states(self) -> int:
        return self.transition.shape[0]

    @property
    def actions(self) -> int:
        return self.transition.shape[1]

    def mean(self, reward: Tensor) -> Tensor:
        """(..., S, A) the expected reward of each action."""
        return (self.transition * reward).sum(-1)

    def after(self, values: Tensor) -> Tensor:
        """(..., S, A) the expected value of the next state, given values (..., S')."""
        return torch.einsum("sap,...p->...sa", self.transition, values)

    def uniform(self) -> Tensor:
        """(S, A) the policy that takes every action with the same probability."""
        return torch.full(self.transition.shape[:2], 1.0 / self.actions, dtype=self.transition.dtype)


def random_mdp(rng: torch.Generator, states: int, actions: int, gamma: float, spread: float = 1.0) -> MDP:
    """Transitions are a softmax over those of S Gaussian samples that exceed `spread` (always including the largest).

    The start distribution is uniform. As in the experiments of Skalse et al. 2024, arXiv:2309.15257, who use 1.0 for 32 states and
    leave the other transitions a probability of about 1e-9; here it is 0.
    """
    logits = torch.randn(states, actions, states, generator=rng, dtype=torch.float64)
    # the threshold is lowered to the largest logit where none exceeds `spread`, so that every row has a next state
    reachable = logits >= logits.amax(-1, keepdim=True).clamp(max=spread)
    transition = logits.where(reachable, -torch.inf).softmax(-1)
    return MDP(transition, torch.full((states,), 1.0 / states, dtype=torch.float64), gamma)


def random_reward(mdp: MDP, rng: torch.Generator) -> Tensor:
    """(S, A, S') Gaussian, made sparse with probability 0.2, scaled with 0.7, shifted with 0.3 and shaped with 0.5.

    As in the code released with Skalse et al. 2024, arXiv:2309.15257.
    """
    sparse, scaled, shifted, shape, scale, offset = torch.rand(6, generator=rng, dtype=torch.float64)
    r = torch.randn(mdp.transition.shape, generator=rng, dtype=torch.float64)
    # a Gaussian exceeds 3 with a probability of 0.13%
    r = r.where(r > 3, 0.0) if sparse < 0.2 else r
    r = r * (10 * scale if scaled < 0.7 else 1) + (10 * offset if shifted < 0.3 else 0)
    potential = 10 * offset * torch.randn(mdp.states, generator=rng, dtype=torch.float64)
    return shaped(mdp, r, potential) if shape < 0.5 else r


def values(mdp: MDP, reward: Tensor, policy: Tensor) -> Tensor:
    """(..., S) the value of each state under a policy:  V = (I - gamma P_pi)^-1 r_pi."""
    moves = torch.einsum("...sa,sap->...sp", policy, mdp.transition)  # (..., S, S') P_pi
    expected = (policy * mdp.mean(reward)).sum(-1)  # (..., S) r_pi
    system = torch.eye(mdp.states, dtype=moves.dtype) - mdp.gamma * moves
    # solved, not inverted: more exact, and invertible because gamma < 1
    return torch.linalg.solve(system, expected[..., None]).squeeze(-1)


def best_policy(mdp: MDP, reward: Tensor) -> Tensor:
    """(..., S, A) a deterministic optimal policy, by policy iteration (Howard 1960)."""
    mean = mdp.mean(reward)
    choice = mean.argmax(-1)
    while True:
        policy = torch.nn.functional.one_hot(choice, mdp.actions).to(mean.dtype)
        q = mean + mdp.gamma * mdp.after(values(mdp, reward, policy))
        # ties keep the current action, so that rounding cannot make the iteration cycle for ever
        gain = q.amax(-1) - q.gather(-1, choice[..., None]).squeeze(-1)
        better = torch.where(gain > 1e-9 * (1 + q.abs().amax(-1)), q.argmax(-1), choice)
        if torch.equal(better, choice):
            return policy
        choice = better


def expected_return(mdp: MDP, reward: Tensor, policy: Tensor) -> Tensor:
    """(...,) the expected return J of a policy, from the start distribution."""
    return (values(mdp, reward, policy) * mdp.start).sum(-1)


def regret(mdp: MDP, truth: Tensor, other: Tensor) -> Tensor:
    """(...,) the return under `truth` that is lost by a policy which is optimal under `other`, over best minus worst return.

    0 if all policies have the same return.
    """
    # the worst policy is optimal for the negated reward
    best, worst, achieved = (expected_return(mdp, truth, best_policy(mdp, r)) for r in (truth, -truth, other))
    return torch.where(best - worst > 1e-9, (best - achieved) / (best - worst).clamp(min=1e-9), 0.0)


def shaped(mdp: MDP, reward: Tensor, potential: Tensor) -> Tensor:
    """R(s, a, s') + gamma phi(s') - phi(s): potential-based shaping keeps the order of all policies (Ng et al. 1999)."""
    return reward + mdp.gamma * potential - potential[:, None, None]


def redistributed(mdp: MDP, reward: Tensor, noise: Tensor) -> Tensor:
    """The reward plus noise (S, A, S'), from which the mean over next states is subtracted: every policy keeps its return."""
    return reward + noise - mdp.mean(noise)[..., None]
