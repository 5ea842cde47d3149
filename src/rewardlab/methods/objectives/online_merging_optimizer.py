"""Online merging: merge every preference update with the SFT model's parameter changes, to keep its skills.

    theta <- theta + merge(F(d), F(tau)),    d: what the optimiser's steps have just changed,  tau = theta_SFT - theta_pretrained
    dare:  F keeps a random share of the changes, over that share;      merge = (1 - alpha) F(d) + alpha F(tau)
    ties:  F keeps the largest share of each tensor;                    the same of the changes that have the sign of F(d) + F(tau)

Models that are interpolated after alignment trade some of its reward for skills; doing it at every step steers the whole training
in the direction of the fine-tuned model. F(tau) is chosen once, F(d) anew at each step; the optimiser's moments see no merging.

Lu et al. 2024, arXiv:2405.17931. F, merge, density = .01 and alpha = 1e-7 are those of the released optimisers and script
(QwenLM/online_merging_optimizers, 8e53529, online_merging/optimizers.py, LLaMA-Factory/run_dpo_om.sh), whose learning rate is 1e-6:
with larger rates and shorter runs take more of both. Several optimiser steps on a batch are merged together, as `online_step`
does there. (inferred): `sft_steps`.

The --model was fine-tuned from the checkpoint `pretrained`. Without that the --model is taken for pretrained, and the first third
of the steps, or `sft_steps`, imitate the chosen replies.
"""

from typing import Any, Literal

import torch

from rewardlab.checks.claim import Check, Within
from rewardlab.core import Learner, Loop, Recipe, Run, loop
from rewardlab.data.columns import Data
from rewardlab.evals.pairs import preference_margins
from rewardlab.methods.baselines.dpo import dpo
from rewardlab.methods.baselines.sft import sft_first, steps_of
from rewardlab.policies.merging import Weights, largest_share, of_one_sign, random_share, task_vectors
from rewardlab.settings.domain import NonNegativeInt, PositiveShare, Share

PRETRAINED, TAU = "pretrained", "online_merging.tau"
How = Literal["dare", "ties"]


def change(before: Weights, after: Weights) -> dict[str, torch.Tensor]:
    return {name: v[0] for name, v in task_vectors(before, [after]).items()}


def sparse(change: Weights, how: str, density: float, rng: torch.Generator) -> dict[str, torch.Tensor]:
    return random_share(change, density, rng) if how == "dare" else largest_share(change, density)


@loop(wraps="inner", first=("after",))
def merged_updates(
    recipe: Recipe, run: Run, ops: Any, *, after: NonNegativeInt | None = None, how: How = "dare",
    density: PositiveShare = 0.01, alpha: Share = 1e-7, inner: Loop | None = None,
) -> None:  # fmt: skip
    """Training steps by `inner`; from the step `after` on, each update is merged with tau.  after: None: a third of the run's.

    run.memory holds the sparse tau.  Logged: merged, the norm of the merged change over that of the step's.
    """
    after = steps_of(run, 1 / 3, "sft_steps") if after is None else after
    before = {name: w.clone() for name, w in run.policy.state().items()}
    if run.step >= after and TAU not in run.memory:
        tau = change(run.model(PRETRAINED).state(), before)
        run.memory[TAU] = sparse(tau, how, density, run.rng("merging tau"))
    inner(recipe, run, ops) if inner else ops.standard_step(recipe)
    if run.step < after:
        return
    made, tau = change(before, run.policy.state()), run.memory[TAU]
    kept = sparse(made, how, density, run.rng("merging"))
    if how == "ties":
        merged = of_one_sign(kept, tau, alpha)
    else:
        merged = {name: (1 - alpha) * v + alpha * tau[name] for name, v in kept.items()}
    run.policy.load_state({name: w + merged[name] for name, w in before.items()})
    run.log("merged", norm(merged) / max(norm(made), 1e-12))


def norm(change: Weights) -> float:
    return float(sum(v.square().sum() for v in change.values())) ** 0.5


def online_merging_optimizer(
    base: Recipe | None = None, *, pretrained: str = "", sft_steps: int | None = None, how: How = "dare",
    density: float = 0.01, alpha: float = 1e-7,
) -> Recipe:  # fmt: skip
    """pretrained: checkpoint from which the policy was fine-tuned; without it, `sft_steps` fine-tune it first; None: a third
    of the run's.  how: dare or ties.  density: share of the changes that a merge is made of.  alpha: weight of fine-tuning's, at
    every step.
    """
    base = base or dpo()
    after = 0 if pretrained else sft_steps
    steps = base.loop if after == 0 else sft_first(steps=after, inner=base.loop)
    frozen = Learner(PRETRAINED, pretrained or "copy:policy", Recipe(), every=0)
    return base.but(loop=merged_updates(after=after, how=how, density=density, alpha=alpha, inner=steps), also=(*base.also, frozen))


fidelity = "core"
left_out = "rescaling to the old sum, an option that is off in the script, and bounds of 1 on single changes, which are far below"
data = Data(chosen="the better reply", rejected="the worse reply")

SFT = {"sft_steps": 20, "lr": 1e-4}
check = Check(
    says="after fine-tuning and equal updates on pairs, the fine-tuned replies stay likelier than by DPO, and pairs are told apart",
    versus="dpo", task="preferences:biased=0.75,error=0.1", measure="chosen_per_token", direction="higher", margin=0.02187,
    settings={**SFT, "density": 0.5, "alpha": 0.01}, versus_settings=SFT, by=preference_margins(), steps=60,
    guard=Within("preferred", low=-0.03), fault=Within("kl", low=0.5, says="nats that the replies of a pair lose after DPO"),
    learns=None, start=None,
    finding="the opposite: fine-tuned replies lose likelihood by merging (-.061 per token before, -.099 after) and gain by DPO "
    "(-.050). What is kept of an update is scaled by 1/density, so that at DPO's rate it moves further (5.4 nats, DPO 3.5)",
)  # fmt: skip
baseline = "dpo"
