"""STARC: the distance of two rewards is that of their canonical forms, which remove everything that does not affect policy order.

    d(R1, R2) = m(s(R1), s(R2)),   s(R) = c(R) / n(c(R)), 0 where c(R) = 0
    c(R)(s, a, s') = E_S'[R(s, a, S') - V(s) + gamma V(S')],   V: the value of R under the uniform policy ("value")
    c(R) = the least of all rewards that R becomes by potential shaping and redistribution over s'   ("minimal")

Skalse et al. 2024, arXiv:2309.15257. Compared with EPIC (Gleave et al. 2021, arXiv:2006.13900) and DARD (Wulfe et al. 2022,
arXiv:2201.10081), both with uniform coverage, and with no canonicalisation, as in the released code: random MDPs, random pairs
of rewards, and rewards at even steps on the line between them. The table: Pearson correlations with the regret of following the
other reward, mean of both directions (inferred), and distances of rewards that rank all policies alike. The minimal form is solved.
"""

import torch
from torch import Tensor

from rewardlab.core import Recipe, Run
from rewardlab.envs.mdp import MDP, random_mdp, random_reward, redistributed, regret, shaped, values
from rewardlab.evals.study import study
from rewardlab.proof.claim import Claim
from rewardlab.util.device import keep_freed_memory

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


claim = Claim(
    says="STARC distances correlate better with regret than EPIC's", versus=None, task="gridworld", measure="correlation.starc",
    direction="higher", margin=0.05, against="correlation.epic", settings={"worlds": 8, "pairs": 16}, learns=None,
)  # fmt: skip
