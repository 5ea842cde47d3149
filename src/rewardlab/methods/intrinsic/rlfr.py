"""RLFR: beside the outcome, a small penalty for hidden states off the flow learnt from right replies.

    D_t = s / (1 - s) mean over layers of |v(s h_t + (1 - s) noise, s | h_{t-1}) - (h_t - noise)|^2      the velocity deviation
    D~ = (D - min) / (max - min) over the reply's tokens;      A_t <- A_t - coef sum over t' >= t of D~_t' [D~_t' > threshold]

v is a network that turns noise into hidden states of replies known to be good: first of worked solutions, then at every step of
those of the policy's own replies that were right. A state that it does not know is far from how right replies come about; entropy
or likelihood would let the policy judge itself.

Zhang et al. 2025, arXiv:2510.10201, and the released code and script (Jinghaoleven/RLFR, 14bf504: actor_flow.py, flow_simple.py,
models/utils.py, train_ray_RLFR_lm_qwen2.5_7B.sh; ce40213: qwen2_5_7b_flow.yaml): s = .8, layers at 1/4, 1/2 and 3/4, six blocks,
coef = .01, threshold = .6 and the `top` 15 of a reply, rate 1e-4, n = 8, costs summed over the rest of the reply, and as context
the state one token earlier (token_post, shift 1, in config/flow_config_7B.json). Learnt from are replies that the verifier finds
right, there those with a reward of at least 1. The first fit is at random times, sigmoids of normal numbers (e3de376).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from rewardlab.checks.claim import Check, Within
from rewardlab.core import Batch, Credit, Loop, Problem, Recipe, Rollout, Run, credit, loop, measure
from rewardlab.credit.value import discounted_sums
from rewardlab.data.columns import Column, Data
from rewardlab.errors import RewardlabError
from rewardlab.evals.gradients import paid_at_the_end
from rewardlab.methods.baselines.grpo import grpo
from rewardlab.rollouts.independent import independent
from rewardlab.rollouts.recorded import recorded
from rewardlab.settings.domain import NonNegativeFloat, PositiveFloat, PositiveInt, PositiveShare, Share
from rewardlab.util.outputs import forward_batch
from rewardlab.util.ranking import auc_of

# ---- Whether what a part has learnt from right replies tells right from wrong; the policy stays as it is -------------


@measure
def learnt_auc(
    problems: Sequence[Problem], run: Run, *, rollout: Rollout, scorer: Credit, steps: PositiveInt = 150, rows: PositiveInt = 32
) -> dict[str, float]:
    """`scorer` gives decisions numbers and learns from right replies as it does: those to the first half of the problems, `rows` of
    them at each of `steps`. Then it scores the replies to the second half, all of which it is told are wrong.

    auc.scorer: mean over problems of the chance that a right reply has a lower mean than a wrong one, over numbers that are not 0.
    auc.entropy: the same of the policy's entropy.  n: problems with both.  Replies without a verdict are left out.
    """
    # without the verifier, so that the scorer goes by what it is told
    groups, aside = rollout(list(problems), run), replace(run, memory={}, verify=None)
    right = [[None if s.value is None else s.value >= 1 for s in row] for row in run.verify(groups, run)]
    judged = [[(t, ok) for t, ok in zip(*pair, strict=True) if ok is not None] for pair in zip(groups, right, strict=True)]
    half, device = len(judged) // 2, run.policy.device
    good = [t for row in judged[:half] for t, ok in row if ok]
    if not good:
        raise RewardlabError(f"learnt_auc: no reply to the first {half} problems is right, and {scorer} learns from such")
    for _ in range(steps):
        some = torch.randint(len(good), (min(rows, len(good)),), generator=run.rng("learnt_auc")).tolist()
        batch = paid_at_the_end([good[i] for i in some], [1.0] * len(some), len(some), device)
        scorer(batch.reward, batch, aside)
    found: dict[str, list[float]] = {"scorer": [], "entropy": []}
    for row in judged[half:]:
        if len({ok for _, ok in row}) == 2:
            batch = paid_at_the_end([t for t, _ in row], [0.0] * len(row), len(row), device)
            entropy = run.policy.evaluate(batch, ("entropy",)).entropy.detach()
            scored = scorer(batch.reward, batch, aside)
            # the mean of no number is not 0, the best there is
            known = (batch.mask & (scored != 0)).any(1).tolist()
            both = len({ok for (_, ok), numbered in zip(row, known, strict=True) if numbered}) == 2
            for name, table in (("scorer", scored), ("entropy", entropy)) if both else ():
                means = row_means(table, batch.mask & (table != 0)).tolist()
                found[name].append(auc_of([(-x, ok) for x, (_, ok), numbered in zip(means, row, known, strict=True) if numbered]))
    if not found["scorer"]:
        raise RewardlabError(f"learnt_auc: none of {len(judged) - half} problems has both right and wrong replies to compare")
    return {**{f"auc.{name}": float(np.mean(aucs)) for name, aucs in found.items()}, "n": float(len(found["scorer"]))}


def row_means(table: Tensor, where: Tensor) -> Tensor:
    """(B,) the mean of each row of a table (B, T) where `where`; 0 where it is nowhere."""
    return torch.where(where, table, 0.0).sum(1) / where.sum(1).clamp(min=1)


# ---- A flow in the space of hidden states: which way noise must move to become a state that good replies pass through -
#
#     x_s = s x + (1 - s) noise;    loss = mean over the entries of (v(x_s, s, context, layer) - (x - noise))^2
#
# The velocity deviation, this loss at one time s, is high for states that the field has not learnt. `context` is the state one
# token earlier. Residual blocks have scale, shift and gate by time, layer and context.

States = list[tuple[float, Tensor]]  # for each layer its height, 0 to 1, and its states (B, T, hidden)


class Block(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.norm, self.modulation = nn.RMSNorm(width), nn.Linear(width, 3 * width)
        self.mlp = nn.Sequential(nn.Linear(width, width), nn.SiLU(), nn.Linear(width, width))
        # zeros: each block begins as the identity
        nn.init.zeros_(self.modulation.weight)
        nn.init.zeros_(self.modulation.bias)

    def forward(self, x: Tensor, c: Tensor) -> Tensor:
        shift, scale, gate = self.modulation(F.silu(c)).chunk(3, -1)
        return x + gate * self.mlp(self.norm(x) * (1 + scale) + shift)


class Field(nn.Module):
    """(n, width) -> (n, width): the velocity at x, time s, one for all or (n, 1), under the context and the height of the layer."""

    def __init__(self, width: int, blocks: int):
        super().__init__()
        self.state, self.context = nn.Linear(width, width), nn.Linear(width, width)
        self.time, self.height = nn.Linear(width, width), nn.Linear(width, width)
        self.blocks, self.norm = nn.ModuleList(Block(width) for _ in range(blocks)), nn.RMSNorm(width)
        self.out = nn.Linear(width, width)
        nn.init.zeros_(self.out.weight)
        nn.init.zeros_(self.out.bias)

    def forward(self, x: Tensor, s: float | Tensor, context: Tensor, height: float) -> Tensor:
        c = self.context(context) + self.time(waves(s, x)) + self.height(waves(height, x))
        x = self.state(x)
        for block in self.blocks:
            x = block(x, c)
        return self.out(self.norm(x))


def waves(number: float | Tensor, like: Tensor) -> Tensor:
    """(width,) sines and cosines of a number from 0 to 1; (n, width) of numbers (n, 1)."""
    half = like.shape[1] // 2
    angles = 1000 * number * torch.exp(-math.log(10000) * torch.arange(half, device=like.device) / max(1, half))
    return F.pad(torch.cat((angles.cos(), angles.sin()), -1), (0, like.shape[1] - 2 * half))


class Flow:
    """A field with its optimiser.  memory: where both are kept between steps, a dictionary of a run's memory, empty at first."""

    def __init__(self, memory: dict[str, Any], states: States, blocks: int, lr: float, seed: int):
        self.memory, first = memory, states[0][1]
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            self.field = Field(first.shape[-1], blocks).to(first.device)
        self.optimiser = torch.optim.AdamW(self.field.parameters(), lr=lr, weight_decay=0.01)
        if "weights" in memory:
            self.field.load_state_dict(memory["weights"])
            self.optimiser.load_state_dict(memory["optimiser"])
        else:
            real = torch.cat([x.flatten(0, 1)[x.flatten(0, 1).any(1)] for _, x in states])
            # entries of hidden states differ in size by orders of magnitude, and the largest would be all that counts
            memory["mean"], memory["scale"] = real.mean(0), 1 / real.std(0).clamp(min=1e-3)

    def deviations(self, states: States, chosen: Tensor, time: float | None, rng: torch.Generator) -> Tensor:
        """(n,) mean over the layers of the deviation at the n positions `chosen` (B, T), with gradient; each needs one before it.

        time: s; None: each state its own, the sigmoid of a normal number.
        """
        found = []
        for height, table in states:
            x = (table - self.memory["mean"]) * self.memory["scale"]
            target, context = x[chosen], x.roll(1, 1)[chosen]
            noise = torch.randn(target.shape, generator=rng).to(target)
            s = torch.randn(len(target), 1, generator=rng).to(target).sigmoid() if time is None else time
            velocity = self.field(s * target + (1 - s) * noise, s, context, height)
            found.append((velocity - (target - noise)).square().mean(1))
        return torch.stack(found).mean(0)

    @torch.enable_grad()
    def learn(self, states: States, chosen: Tensor, time: float | None, rng: torch.Generator) -> float:
        """A step of the field on the states `chosen`; the loss before it."""
        loss = self.deviations(states, chosen, time, rng).mean()
        self.optimiser.zero_grad()
        loss.backward()
        self.optimiser.step()
        self.memory["weights"], self.memory["optimiser"] = self.field.state_dict(), self.optimiser.state_dict()
        return float(loss.detach())


def states_of(policy: Any, batch: Batch, heights: Sequence[float]) -> States:
    """The states of a model at layers of these heights, as shares of its depth."""
    layers = (min(round(height * policy.depth), policy.depth - 1) for height in heights)
    return [(layer / policy.depth, policy.activation_table(batch, layer)) for layer in layers]


def with_previous(batch: Batch) -> Tensor:
    """(B, T) decisions before which another token stands."""
    return batch.mask & (torch.arange(batch.ids.shape[1], device=batch.ids.device) > 0)


# ---- the recipe ---------------------------------------------------------------------------------------------------------

FLOW, HEIGHTS = "rlfr.flow", (0.25, 0.5, 0.75)


def costs(deviation: Tensor, chosen: Tensor, threshold: float, top: int) -> Tensor:
    """(B, T) D~ of a table of deviations where it counts, 0 elsewhere; all alike is 0."""
    low = torch.where(chosen, deviation, torch.inf).amin(1, keepdim=True)
    high = torch.where(chosen, deviation, -torch.inf).amax(1, keepdim=True)
    scaled = torch.where(chosen & (high > low), (deviation - low) / (high - low).clamp(min=1e-12), 0.0)
    scaled = torch.where(scaled > threshold, scaled, 0.0)
    most = scaled.topk(min(top, scaled.shape[1]), 1)
    return torch.zeros_like(scaled).scatter(1, most.indices, most.values)


def right(batch: Batch, run: Run) -> Tensor:
    """(B,) whether the verifier finds a reply right, whatever it was paid; without a verifier, whether it was paid at least 1."""
    if run.verify is None:
        return torch.where(batch.rewarded, batch.reward, 0.0).sum(1) >= 1.0
    (row,) = run.verdicts([[t for t, _ in batch.rows]])
    return torch.tensor([s.value is not None and s.value >= 1.0 for s in row], device=batch.mask.device)


@credit
def deviations(
    a: Tensor, batch: Batch, run: Run, *, time: PositiveShare = 0.8, blocks: PositiveInt = 6, lr: PositiveFloat = 1e-4
) -> Tensor:
    """(B, T) D of each decision, whatever the credit; then the flow, which run.memory holds, learns from the right replies.

    Logged: deviation, its mean, and flow_loss.
    """
    chosen, states = with_previous(batch), states_of(run.policy, batch, HEIGHTS)
    flow, rng = Flow(run.memory.setdefault(FLOW, {}), states, blocks, lr, run.seed), run.rng("flow")
    with torch.no_grad():
        found = time / (1 - time) * flow.deviations(states, chosen, time, rng)
    if len(found):
        run.log("deviation", float(found.mean()))
    if bool((learnt := chosen & right(batch, run)[:, None]).any()):
        run.log("flow_loss", flow.learn(states, learnt, time, rng))
    return torch.zeros(chosen.shape, device=found.device).masked_scatter(chosen, found)


@credit(wraps="by")
def along_the_flow(
    a: Tensor, batch: Batch, run: Run, *, by: Credit, coef: NonNegativeFloat = 0.01, threshold: Share = 0.6, top: PositiveInt = 15
) -> Tensor:
    """A less what the tokens of the rest of the reply cost by the deviations `by`. Rows without a verdict keep their credit."""
    cost = costs(by(a, batch, run), with_previous(batch), threshold, top)
    judged = batch.rewarded.any(1, keepdim=True)
    return torch.where(batch.mask & judged, a - coef * discounted_sums(cost, 1.0), a)


@loop(wraps="inner")
def flow_first(
    recipe: Recipe, run: Run, ops: Any, *, steps: PositiveInt, field: str, blocks: PositiveInt,
    lr: PositiveFloat, inner: Loop | None = None,
) -> None:  # fmt: skip
    """Before the first step the flow learns from the texts in a column of the data, a step's problems at a time, of which those
    without a text are passed over."""
    if FLOW not in run.memory:
        memory: dict[str, Any] = run.memory.setdefault(FLOW, {})
        for _ in range(steps):
            if told := [p for p in ops.problems() if p.meta.get(field)]:
                batch = forward_batch([row for (row,) in recorded(fields=(field,))(told, run)], run.policy.device)
                states = states_of(run.policy, batch, HEIGHTS)
                Flow(memory, states, blocks, lr, run.seed).learn(states, with_previous(batch), None, run.rng("flow"))
    inner(recipe, run, ops) if inner else ops.standard_step(recipe)


def rlfr(
    base: Recipe | None = None, *, coef: float = 0.01, threshold: float = 0.6, top: int = 15, time: float = 0.8, blocks: int = 6,
    flow_lr: float = 1e-4, fit_steps: int = 50, field: str = "solution", n: int = 8,
) -> Recipe:  # fmt: skip
    """coef, threshold, top: of a token's cost.  time, blocks, flow_lr, fit_steps: of the flow, first fitted to `field`."""
    base = base or grpo(n=n)
    off = deviations(time=time, blocks=blocks, lr=flow_lr)
    shaped = along_the_flow(by=off, coef=coef, threshold=threshold, top=top)
    first = flow_first(steps=fit_steps, field=field, blocks=blocks, lr=flow_lr, inner=base.loop) if fit_steps else base.loop
    return base.but(credit=base.required("credit") >> shaped, loop=first)


fidelity = "core"
left_out = (
    "a first fit on a whole corpus (here `fit_steps` batches), with the state one token later as context (here one earlier, as in "
    "the later fits), the modulation of the field's last layer, and deeper embeddings of time and layer; states are standardised"
)
data = Data(
    answer="the gold answer",
    solution=Column("a worked solution, from which the flow learns first; not with fit_steps=0", optional=True, setting="field"),
    idle={"solution": "has no first fit: the flow begins with the policy's own right replies"},
    rows=[
        {"prompt": "A car drives 60 km an hour. How far in 3?", "answer": "180", "solution": "60 x 3 = 180."},
        {"prompt": "What is 5 squared plus 1?", "answer": "26", "solution": "$5^2 = 25$, and $25 + 1 = 26$.\n\\boxed{26}"},
    ],
)

check = Check(
    says="a flow fitted to a frozen policy's right replies tells right from wrong replies to other problems better than entropy",
    versus=None, task="arithmetic:biased=0.75,error=0.1", measure="auc.scorer", direction="higher", margin=0.23,
    against="auc.entropy", by=learnt_auc(rollout=independent(n=8), scorer=deviations(blocks=2, lr=1e-3)), problems=200, steps=1,
    fault=Within("auc.entropy", high=0.9, says="how well entropy tells right replies from wrong ones"),
    judge=Within("auc.scorer", low=0.6, says="right replies above wrong ones, by the flow"), learns=None, start=None,
    finding="the flow ranks a right reply above a wrong one in 51%, which is chance, so nothing is decided; low entropy does so "
    "in 7%, since right replies are the less certain ones here",
    version=2, replaces="nothing asked whether the flow had learnt, and it was at chance",
)  # fmt: skip
baseline = "grpo"
