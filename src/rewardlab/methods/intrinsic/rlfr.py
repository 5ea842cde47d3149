"""RLFR: tokens whose hidden states lie off the flow that leads to right replies cost a little, beside the outcome.

    D_t = s / (1 - s) mean over layers of |v(s h_t + (1 - s) noise, s | h_{t-1}) - (h_t - noise)|^2      the velocity deviation
    D~ = (D - min) / (max - min) over the reply's tokens;      A_t <- A_t - coef sum over t' >= t of D~_t' [D~_t' > threshold]

v is a network that turns noise into hidden states of replies known to be good: first of worked solutions, then at every step of
those of the policy's own replies that were right. A state that it does not know is far from how right replies come about; entropy
or likelihood would let the policy judge itself.

Zhang et al. 2025, arXiv:2510.10201, and the released code and script (Jinghaoleven/RLFR, 14bf504: actor_flow.py, flow_simple.py,
models/utils.py, train_ray_RLFR_lm_qwen2.5_7B.sh; ce40213: qwen2_5_7b_flow.yaml): s = .8, layers at 1/4, 1/2 and 3/4, six blocks,
coef = .01, threshold = .6 and the `top` 15 of a reply, rate 1e-4, n = 8, costs summed over the rest of the reply, and as context
the state one token earlier (token_post, shift 1, in config/flow_config_7B.json, which the scripts of RL pass; the file of the first
fit has token_pre, the state one token later, so that the weights are put to another use than they were fitted for; here both have
token_post). Right, and so learnt from, are replies that the verifier finds right, there those with a reward of at least 1
(batch_correct); without a verifier that is so here too. The first fit is at random times, each the sigmoid of a normal number
(e3de376, flow_simple.py of LLaMA-Factory). Ours: states are standardised by the first batch.

Data: prompts and answers, and worked solutions in `field` for the first `fit_steps`; 0 of these needs none.
"""

from typing import Any

import torch
from torch import Tensor

from rewardlab.core import Batch, Credit, Loop, Recipe, Run, credit, forward_batch, loop
from rewardlab.core.domain import NonNegativeFloat, PositiveFloat, PositiveInt, PositiveShare, Share
from rewardlab.credit.value import discounted_sums
from rewardlab.evals.latent import learnt_auc
from rewardlab.methods.baselines.grpo import grpo
from rewardlab.policies.velocity import Flow, states_of, with_previous
from rewardlab.proof.claim import Claim, Within
from rewardlab.rollouts.independent import independent
from rewardlab.rollouts.recorded import recorded

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


@credit(inner="by")
def along_the_flow(
    a: Tensor, batch: Batch, run: Run, *, by: Credit, coef: NonNegativeFloat = 0.01, threshold: Share = 0.6, top: PositiveInt = 15
) -> Tensor:
    """A less what the tokens of the rest of the reply cost by the deviations `by`. Rows without a verdict keep their credit."""
    cost = costs(by(a, batch, run), with_previous(batch), threshold, top)
    judged = batch.rewarded.any(1, keepdim=True)
    return torch.where(batch.mask & judged, a - coef * discounted_sums(cost, 1.0), a)


@loop(inner="of")
def flow_first(
    recipe: Recipe, run: Run, ops: Any, *, steps: PositiveInt, field: str, blocks: PositiveInt,
    lr: PositiveFloat, of: Loop | None = None,
) -> None:  # fmt: skip
    """Before the first step the flow learns from the texts in a column of the data, a step's problems at a time."""
    if FLOW not in run.memory:
        memory: dict[str, Any] = run.memory.setdefault(FLOW, {})
        for _ in range(steps):
            rows = [row for group in recorded(fields=(field,))(ops.problems(), run) for row in group]
            batch = forward_batch(rows, run.policy.device)
            states = states_of(run.policy, batch, HEIGHTS)
            Flow(memory, states, blocks, lr, run.seed).learn(states, with_previous(batch), None, run.rng("flow"))
    of(recipe, run, ops) if of else ops.standard_step(recipe)


def rlfr(
    base: Recipe | None = None, *, coef: float = 0.01, threshold: float = 0.6, top: int = 15, time: float = 0.8, blocks: int = 6,
    flow_lr: float = 1e-4, fit_steps: int = 50, field: str = "solution", n: int = 8,
) -> Recipe:  # fmt: skip
    """coef: of a token's cost.  threshold, top: which tokens cost anything.  time, blocks, flow_lr: of the flow.
    fit_steps: of its first fit, on the texts in `field`.  n: replies per prompt.
    """
    base = base or grpo(n=n)
    off = deviations(time=time, blocks=blocks, lr=flow_lr)
    shaped = along_the_flow(by=off, coef=coef, threshold=threshold, top=top)
    first = flow_first(steps=fit_steps, field=field, blocks=blocks, lr=flow_lr, of=base.loop) if fit_steps else base.loop
    return base.but(credit=base.required("credit") >> shaped, loop=first)


claim = Claim(
    says="a flow fitted to a frozen policy's right replies tells right from wrong replies to other problems better than entropy",
    versus=None, task="arithmetic:biased=0.75,error=0.1", measure="auc.scorer", direction="higher", margin=0.23,
    against="auc.entropy", by=learnt_auc(rollout=independent(n=8), scorer=deviations(blocks=2, lr=1e-3)), problems=200, steps=1,
    fault=Within("auc.entropy", high=0.9, says="how well entropy tells right replies from wrong ones"),
    judge=Within("auc.scorer", low=0.6, says="right replies above wrong ones, by the flow"), learns=None, start=None,
    finding="the flow is at chance, and right replies have the higher entropy: that it ranks better than low entropy says nothing",
    version=2,
    replaces="nothing asked whether the flow had learnt, and it was at chance (.51); entropy misleads here (.07), which it outdid",
)  # fmt: skip
baseline = "grpo"
