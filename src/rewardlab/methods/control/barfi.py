"""BARFI: learn the weight of an auxiliary reward and the discount by bilevel optimisation of the primary reward.

    inner:  theta(phi) = argmax E sum_t log pi(a_t|s_t) G_t(phi),   r = phi_1 r_primary + phi_2 r_aux + phi_3, discount gamma_phi
    outer:  phi = argmax J_primary(theta(phi)) - cost gamma_phi,    dJ/dphi = A^T (damping I - H)^-1 dJ/dtheta
    A = E sum_t grad log pi(a_t|s_t) dG_t/dphi^T,   H = E sum_t grad^2 log pi(a_t|s_t) G_t(phi),   phi = (1, 1, 0) at first

Gupta et al. 2023, arXiv:2310.19007, by the implicit gradient. The linear system is solved by conjugate gradients rather than by a
Neumann series. (inferred): two inner updates between outer ones, which use an inner one's episodes; Adam's steps in phi; returns
whitened for the inner update, so that only ratios of phi count, and centred in A and dJ/dtheta, which only reduces variance;
dJ/dtheta from one half of the episodes, A and H from the other, and the reverse: an episode in both would add the product of its
own rewards to every entry. `outer_lr=0` keeps the naive sum, phi = (1, 1, 0): the baseline.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from rewardlab.checks.claim import Claim, Within
from rewardlab.core import Batch, Message, Problem, Recipe, Run, Turn, Update, credit, environment, loop
from rewardlab.credit.group import whiten, with_verdict
from rewardlab.credit.value import next_decision, over_decisions
from rewardlab.data.columns import Data
from rewardlab.evals.returns import episode_return
from rewardlab.objectives.ratio import policy_gradient
from rewardlab.objectives.regularise import negative_entropy
from rewardlab.rewards.control import guidance
from rewardlab.rewards.environment import paid
from rewardlab.rollouts.interactive import interactive
from rewardlab.util.adam import adam_step

# ---- Derivatives through the solution of an inner problem, without unrolling it --------------------------------------
#
# x*(phi) = argmin_x f(x, phi)   =>   d/dphi g(x*) = -(d2f/dx dphi)^T (d2f/dx2)^-1 dg/dx


def flat_gradient(loss: Tensor, parameters: Sequence[Tensor], graph: bool = False) -> Tensor:
    """(P,) the gradients of all parameters, flattened and concatenated; graph=True: they can be differentiated again."""
    # the graph is retained, because conjugate gradients differentiate it once per iteration
    gradients = torch.autograd.grad(loss, list(parameters), create_graph=graph, retain_graph=True, allow_unused=True)
    # autograd returns None for a parameter that the loss does not depend on
    return torch.cat([(torch.zeros_like(p) if g is None else g).flatten() for p, g in zip(parameters, gradients, strict=True)])


def hessian_product(loss: Tensor, parameters: Sequence[Tensor], damping: float = 0.0) -> Callable[[Tensor], Tensor]:
    """v -> (H + damping I) v, with H the Hessian of the loss."""
    # H v is the gradient of (gradient . v), so the P x P matrix is never built
    first = flat_gradient(loss, parameters, graph=True)
    return lambda v: flat_gradient(first @ v, parameters) + damping * v


def conjugate_gradients(apply: Callable[[Tensor], Tensor], b: Tensor, iterations: int, tolerance: float = 1e-6) -> Tensor:
    """x with apply(x) = b, for a symmetric positive definite `apply`, in at most `iterations` steps.

    It stops at a direction of negative curvature; if that is the first one, it returns b (Steihaug 1983). tolerance: of the
    residual's norm, relative to that of b.
    """
    x, residual = torch.zeros_like(b), b
    direction, size = residual, residual @ residual
    for i in range(iterations):
        image = apply(direction)
        curvature = direction @ image
        # the Hessian of a network need not be positive definite; along such a direction the quadratic has no minimum
        if curvature <= 0:
            return x if i else b
        step = size / curvature
        x, residual = x + step * direction, residual - step * image
        before, size = size, residual @ residual
        if size <= tolerance**2 * (b @ b):
            break
        direction = residual + (size / before) * direction
    return x


def through_solution(
    outer: Tensor, inner: Tensor, mixed: Sequence[Tensor], parameters: Sequence[Tensor], damping: float, iterations: int
) -> Tensor:
    """(len(mixed),) d outer / d phi through the parameters that minimise `inner`, solved by conjugate gradients.

    mixed: for each entry of phi, the derivative of `inner` by it.  damping: of the Hessian.
    """
    direction = conjugate_gradients(
        hessian_product(inner, parameters, damping), flat_gradient(outer, parameters), iterations
    )  # (P,)
    return -torch.stack([direction @ flat_gradient(m, parameters) for m in mixed])


# ---- A grid with a goal that pays 1 and ends the episode, and a trap that pays nothing -------------------------------
#
#     problem.meta: size, start, goal, trap; places are [row, column].    actions: 0 up, 1 down, 2 left, 3 right
#
# The observation is the agent's place and the offsets from it to goal and trap, in units of the grid's side. A step off the grid
# leaves the agent where it is.

MOVES = ((-1, 0), (1, 0), (0, -1), (0, 1))
OBSERVED = 6

State = dict[str, Any]


def observe(state: State) -> np.ndarray:
    """(6,) agent, goal - agent, trap - agent."""
    at, goal, trap = (np.array(state[k], np.float32) for k in ("at", "goal", "trap"))
    return np.concatenate((at, goal - at, trap - at)) / state["size"]


def start(problem: Problem, seed: int) -> tuple[Message, State]:
    how = "It is a world of moves, not of text: train it on --task gridworld"
    problem.required("size", "start", "goal", "trap", by="the environment gridworld", how=how)
    state = {k: problem.meta[k] for k in ("size", "goal", "trap")} | {"at": list(problem.meta["start"])}
    return Message("environment", data=observe(state)), state


@environment(start=start)
def gridworld(state: State, turn: Turn) -> tuple[Message, State]:
    """One move. The move that reaches the goal is rewarded by 1, every other by 0."""
    row_step, column_step = MOVES[int(turn.ids[-1, 0])]
    # a step off the grid is clipped to its edge
    row, column = (min(max(x + step, 0), state["size"] - 1) for x, step in zip(state["at"], (row_step, column_step), strict=True))
    state = state | {"at": [row, column]}
    if state["at"] == list(state["goal"]):
        return Message("environment", text="goal", reward=1.0, last=True), state
    return Message("environment", data=observe(state), reward=0.0), state


# ---- the recipe ---------------------------------------------------------------------------------------------------------

MEMORY, MOMENTS = "barfi.alignment", "barfi.moments"


def alignment(run: Run, gamma: float) -> Tensor:
    """(4,) phi_1, phi_2, phi_3, and the logit of gamma_phi; the naive sum at first."""
    return run.memory.setdefault(MEMORY, torch.tensor([1.0, 1.0, 0.0, math.log(gamma / (1 - gamma))]))


def returns(batch: Batch, phi: Tensor) -> tuple[Tensor, list[Tensor]]:
    """G(phi) (B, T), and its derivatives by each of the four, in closed form: dG_t/dgamma = G_t+1 + gamma dG_t+1/dgamma."""
    gamma = float(phi[3].sigmoid())
    terms = (batch.terms["primary"].reward, batch.terms["auxiliary"].reward, batch.mask.float())
    returns_to_go = [over_decisions(r, batch.mask, gamma) for r in terms]
    g = sum((w * x for w, x in zip(phi[:3], returns_to_go, strict=True)), torch.zeros_like(returns_to_go[0]))
    by_gamma = over_decisions(next_decision(g, batch.mask), batch.mask, gamma)
    return g, [*returns_to_go, by_gamma * gamma * (1 - gamma)]  # times the derivative of the sigmoid: phi_4 is a logit


@credit
def aligned_return(a: Tensor, batch: Batch, run: Run, *, gamma: float) -> Tensor:
    """G(phi): the return of each decision under the learned reward and discount."""
    return returns(batch, alignment(run, gamma))[0]


def outer_gradient(batch: Batch, run: Run, *, gamma: float, damping: float, iterations: int) -> Tensor:
    """(4,) dJ/dphi, J from every second row and the inner problem from the others, and the reverse; their mean."""
    even = torch.arange(len(batch), device=batch.ids.device)[:, None] % 2 == 0
    found = [implicit_gradient(batch, run, rows, ~rows, gamma, damping, iterations) for rows in (even, ~even)]
    return torch.stack(found).mean(0)


def implicit_gradient(batch: Batch, run: Run, inner: Tensor, outer: Tensor, gamma: float, damping: float, times: int) -> Tensor:
    """(4,) dJ/dphi, the inner problem from the rows `inner` (B, 1), J from the rows `outer`. Every product with H is a pass."""
    run.policy.token_count.scored += times * int(batch.length[inner[:, 0]].sum())  # so that budgets see their cost
    inner_return, by_phi = returns(batch, alignment(run, gamma))
    primary = over_decisions(batch.terms["primary"].reward, batch.mask, gamma)
    logprobs = run.policy.evaluate(batch).logprobs

    def mean(weight: Tensor, rows: Tensor, centre: bool = True) -> Tensor:
        centred = weight - weight[with_verdict(batch) & rows].mean() if centre else weight
        return (logprobs * centred)[batch.mask & rows].mean()  # indexed, since log-probs may be NaN outside the mask

    loss, mixed = -mean(inner_return, inner, centre=False), [-mean(d, inner) for d in by_phi]  # minus: the inner is a maximum
    return through_solution(mean(primary, outer), loss, mixed, run.policy.parameters(), damping, times)


@loop
def bilevel(
    recipe: Recipe, run: Run, ops: Any, *, gamma: float, outer_lr: float, every: int, cost: float, damping: float, iterations: int
) -> None:
    """One inner step on new episodes; every `every` steps, an outer step on the same episodes comes first."""
    groups = ops.rollout(ops.problems())
    batch = ops.collate(groups, ops.score(groups))
    phi = alignment(run, gamma)
    if outer_lr and run.step % every == 0:
        gradient = outer_gradient(batch, run, gamma=gamma, damping=damping, iterations=iterations)
        gradient[3] -= cost * phi[3].sigmoid() * (1 - phi[3].sigmoid())  # d(cost gamma_phi) / d(its logit)
        run.memory[MEMORY] = phi + outer_lr * adam_step(run.memory.setdefault(MOMENTS, {}), gradient)
    ops.update(batch)
    for name, value in zip(("primary", "auxiliary", "constant", "discount"), (*phi[:3], phi[3].sigmoid()), strict=True):
        run.log(f"phi/{name}", float(value))
    run.log("phi/auxiliary_to_primary", float(phi[1] / phi[0]))


def barfi(
    base: Recipe | None = None, *, aux: str = "trap", outer_lr: float = 0.1, every: int = 2, gamma: float = 0.95,
    cost: float = 0.01, damping: float = 1.0, iterations: int = 5, turns: int = 20, entropy: float = 0.01,
) -> Recipe:  # fmt: skip
    """aux: where the second reward leads, "goal" or "trap".  outer_lr: step of an entry of phi; 0 keeps the naive sum.
    every: inner steps per outer one.  gamma: of J_primary, and the first gamma_phi.  damping, iterations: of the inner problem."""
    play = interactive(env=gridworld(), n=1, turns=turns)
    base = base or Recipe(name="barfi", measure=episode_return(play=play), update=Update(problems=64, lr=3e-3))
    return base.but(
        rollout=play,
        reward=paid().named("primary") + guidance(toward=aux).named("auxiliary"),
        credit=aligned_return(gamma=gamma) >> whiten(),
        objective=policy_gradient() + entropy * negative_entropy() if entropy else policy_gradient(),
        loop=bilevel(gamma=gamma, outer_lr=outer_lr, every=every, cost=cost, damping=damping, iterations=iterations),
    )


fidelity = "core"
left_out = (
    "the paper's tasks of continuous control, and its settings: how many inner steps go with an outer one, and from which "
    "episodes, is (inferred), since no released code was found"
)
data = Data(refuses="a world of moves: train it on --task gridworld")

claim = Claim(
    says="a second reward that leads astray loses weight, and more is earned than by naive sums", versus="barfi", task="gridworld",
    measure="return", direction="higher", margin=0.39, versus_settings={"outer_lr": 0.0}, steps=100,
    fault=Within("return", high=0.5), moved=Within("train.phi/auxiliary_to_primary", high=-0.2), learns=None,
    finding="the return is .20 at the end with the naive sum, which is lured into the trap, and .71 with BARFI, .36 before. Its "
    "weight of the bad reward falls from 1 to a third on average: four seeds of eight solve every grid, and two gain little",
    version=2, replaces="it said unlearnt: it was not",
)  # fmt: skip
