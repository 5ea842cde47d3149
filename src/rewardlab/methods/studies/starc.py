"""STARC: the distance of two rewards is that of their canonical forms, which remove all that leaves the policy order unchanged.

    d(R1, R2) = m(s(R1), s(R2)),   s(R) = c(R) / n(c(R)), 0 where c(R) = 0
    c(R)(s, a, s') = E_S'[R(s, a, S') - V(s) + gamma V(S')],   V: the value of R under the uniform policy ("value")
    c(R) = the least of all rewards that R becomes by potential shaping and redistribution over s'   ("minimal")

Skalse et al. 2024, arXiv:2309.15257. Compared with EPIC (Gleave et al. 2021, arXiv:2006.13900) and DARD (Wulfe et al. 2022,
arXiv:2201.10081), both with uniform coverage, and with no canonicalisation, as in lucyfarnik/starc (experiments/interpolated.py):
random MDPs, random pairs of rewards, and rewards at even steps on the line between them; 16 MDPs, 64 pairs and 16 steps there. The
table: Pearson correlations with the regret of following the other reward, of which it keeps both directions (their mean is
(inferred)), and distances of rewards that rank all policies alike. There the minimal form is found by descent and returns are
sampled; here both are solved.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from rewardlab.checks.claim import Check
from rewardlab.core import Recipe, Run, study
from rewardlab.util.device import keep_freed_memory

# ---- Tabular Markov decision processes: random instances, values of policies, optimal policies. Exact, in float64 ----
#
# A reward is a tensor (..., S, A, S'); a policy is a tensor of probabilities (..., S, A). Leading dimensions are batches.


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


# ---- the recipe ---------------------------------------------------------------------------------------------------------

kind = "study"


def value_form(mdp: MDP, reward: Tensor) -> Tensor:
    """(..., S, A, S') the advantage of the uniform policy, whatever the next state."""
    v = values(mdp, reward, mdp.uniform())
    advantage = mdp.mean(reward) - v[..., None] + mdp.gamma * mdp.after(v)
    return advantage[..., None].expand(reward.shape)


def minimal_form(mdp: MDP, reward: Tensor) -> Tensor:
    """(..., S, A, S') the equivalent reward of least L2 norm.

    Of all rewards with mean x (S, A), tau x / |tau|^2 has the least norm; the potential is then a least-squares problem.
    """
    size = mdp.transition.norm(dim=-1)  # (S, A)
    shift = mdp.gamma * mdp.transition - torch.eye(mdp.states, dtype=reward.dtype)[:, None]  # (S, A, S')
    system = (shift / size[..., None]).flatten(0, 1)  # (S A, S')
    mean = mdp.mean(reward)
    potential = -torch.linalg.solve(system.T @ system, system.T @ (mean / size).flatten(-2)[..., None]).squeeze(-1)
    least = mean + torch.einsum("sap,...p->...sa", shift, potential)
    return mdp.transition * (least / size.square())[..., None]


def epic_form(mdp: MDP, reward: Tensor) -> Tensor:
    """R(s, a, s') + E[gamma R(s', A, S') - R(s, A, S') - gamma R(S, A, S')], S, A, S' uniform and independent."""
    mean = reward.mean((-2, -1))
    return reward + mdp.gamma * mean[..., None, None, :] - mean[..., None, None] - mdp.gamma * mean.mean(-1)[..., None, None, None]


def dard_form(mdp: MDP, reward: Tensor) -> Tensor:
    """The same with S' ~ tau(s, A), S'' ~ tau(s', A):  R + E[gamma R(s', A, S'') - R(s, A, S') - gamma R(S', A, S'')]."""
    mean = mdp.mean(reward).mean(-1)
    tau = mdp.transition
    last = torch.einsum("sax,pay,...xay->...sp", tau, tau, reward) / mdp.actions
    return reward + mdp.gamma * mean[..., None, None, :] - mean[..., None, None] - mdp.gamma * last[..., :, None, :]


METRICS = {
    "starc": (value_form, 2.0), "starc_l1": (value_form, 1.0), "starc_max": (value_form, float("inf")), "epic": (epic_form, 2.0),
    "starc_minimal": (minimal_form, 2.0), "dard": (dard_form, 2.0), "plain": (lambda mdp, reward: reward, 2.0),
}  # fmt: skip
"""Each metric's canonicalisation, and the p of the norm that is both n and m."""


def distance(name: str, mdp: MDP, first: Tensor, second: Tensor) -> Tensor:
    """(...,) between rewards (..., S, A, S')."""
    form, p = METRICS[name]
    left, right = (form(mdp, r).flatten(-3) for r in (first, second))
    return (_unit(left, p) - _unit(right, p)).norm(p, dim=-1)


def _unit(x: Tensor, p: float) -> Tensor:
    size = x.norm(p, dim=-1, keepdim=True)
    # a trivial reward's canonical form is 0 up to rounding and must stay 0; the clamp avoids 0 / 0 in the branch not taken
    return torch.where(size > 1e-9, x / size.clamp(min=1e-9), 0.0)


@study
def metrics_and_regret(run: Run, *, worlds: int, pairs: int, way: int, states: int, actions: int, gamma: float) -> dict[str, float]:
    """correlation.METRIC with the regret; alike.METRIC: the distance of rewards that rank all policies alike."""
    keep_freed_memory()
    rng, regrets = run.rng("study"), []
    distances, alike = ({name: list[Tensor]() for name in METRICS} for _ in range(2))
    for _ in range(worlds):
        mdp = random_mdp(rng, states, actions, gamma)
        for _ in range(pairs):
            first, last = random_reward(mdp, rng), random_reward(mdp, rng)
            fraction = torch.arange(1, way + 1, dtype=torch.float64)[:, None, None, None] / way  # (way, 1, 1, 1)
            others = first + fraction * (last - first)
            noise = torch.randn(first.shape, generator=rng, dtype=torch.float64)
            equivalent = 2 * redistributed(mdp, shaped(mdp, first, noise[0, 0]), noise)
            # the distance is symmetric and regret is not: it is averaged over both directions
            regrets.append((regret(mdp, first, others) + regret(mdp, others, first)) / 2)
            # scaling, shaping and redistribution change no policy's rank: a good metric gives 0
            for name in METRICS:
                distances[name].append(distance(name, mdp, first, others))
                alike[name].append(distance(name, mdp, first, equivalent))
    cost = torch.cat(regrets)
    metrics = {f"correlation.{k}": float(torch.corrcoef(torch.stack((torch.cat(v), cost)))[0, 1]) for k, v in distances.items()}
    return metrics | {f"alike.{k}": float(torch.stack(v).mean()) for k, v in alike.items()}


def starc(
    base: Recipe | None = None, *, worlds: int = 4, pairs: int = 8, way: int = 8, states: int = 32, actions: int = 4,
    gamma: float = 0.95,
) -> Recipe:  # fmt: skip
    """worlds: random MDPs.  pairs: of rewards in each.  way: rewards on the line from the first of a pair to the second."""
    base = base or Recipe(name="starc")
    table = metrics_and_regret(worlds=worlds, pairs=pairs, way=way, states=states, actions=actions, gamma=gamma)
    return base.but(study=table)


fidelity = "core"
left_out = (
    "norms weighted by transition probabilities, n and m that are unlike, and forms that take potentials out alone; gridworlds "
    "made by hand; and the continuous environment, where values are learnt"
)

check = Check(
    says="STARC distances correlate better with regret than EPIC's", versus=None, task="gridworld", measure="correlation.starc",
    direction="higher", margin=0.05, against="correlation.epic", settings={"worlds": 8, "pairs": 16},
    finding="distances correlate with regret by .90 for STARC, .82 for EPIC and DARD, .60 without any canonical form; rewards "
    "that rank all policies alike are at 0 for STARC and at .61 for EPIC. The norm matters: with the greatest entry in its "
    "place STARC has .80",
)  # fmt: skip
