"""NLPO: PPO restricted to the top-p tokens of a mask model, an older copy of the policy.

    q(y_t) = pi(y_t) / sum over v in N_t of pi(v) for y_t in N_t, else 0;    N_t: the top-p tokens of pi_psi, and the ends
    ratio = q / q_old, clipped as in PPO;  r_t = reward - beta log(pi_old/ref);  psi <- theta every mu steps

A vocabulary has tens of thousands of actions, nearly all of them nonsense at any one place. Sampled now and then, they make
advantages noisy, and what is learnt from them breaks the language. The copy knows which they are, and follows the task slowly.
p = 1 is PPO.

Ramamurthy et al. 2022, arXiv:2210.01241. p = .9, mu = 5, five epochs, the restricted log-probs in the ratio and the raw ones in
the KL are those of the released code (allenai/RL4LMs: nlpo.py at 01477e4, causal_policy.py at 0e3a809, imdb gpt2_nlpo.yml at
6f22de5). There the update of pi_psi replaces a model that the sampler does not read, as far as the code shows, so that its masks
stay those of the start; here they follow, as in the paper. The weight of the KL and gamma are those of `ppo` (.01 and 1; there .1
at first, and .99). When the policy is tested the most likely reply is the same with masks and without.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from rewardlab.checks.claim import Claim, Within
from rewardlab.core import (
    Batch,
    Group,
    Learner,
    Loop,
    Objective,
    Outputs,
    Problem,
    Recipe,
    Run,
    Trajectory,
    loop,
    objective,
    rollout,
)
from rewardlab.data.columns import Data
from rewardlab.errors import RewardlabError
from rewardlab.methods.baselines.ipo import accuracy_and_kl
from rewardlab.methods.baselines.ppo import ppo
from rewardlab.objectives.ratio import clipped_ratio
from rewardlab.rollouts.independent import independent
from rewardlab.settings.domain import PositiveFloat, PositiveInt, PositiveShare
from rewardlab.util.outputs import forward_batch
from rewardlab.util.tempered import tempered

# ---- Replies of tokens that another model finds likely enough, masked in the decoder as in the released code ----------

ROWS = 256
"""Rows of one forward pass, which bounds its memory."""


@rollout
def restricted_vocabulary(
    problems: list[Problem], run: Run, *, model: str, n: PositiveInt = 1, top_p: PositiveShare = 0.9,
    temperature: PositiveFloat = 1.0,
) -> list[Group]:  # fmt: skip
    """n replies to each problem, sampled from the policy restricted at each token to the top-p tokens of the model `model`, and to
    those that end a reply.

    `sampled` holds the log-probs of the restricted policy, at the temperature; `logprobs` those of the policy without restriction.
    Logs `outside`, the share of tokens that are outside as a whole reply is read: above 0 by rounding alone.
    """
    with run.policy.restricted(run.model(model), top_p):
        groups = independent(n=n, temperature=temperature)(problems, run)
    done, share = _read_again([t for group in groups for t in group], run, model, top_p, temperature)
    run.log("outside", share)
    return [done[i : i + n] for i in range(0, len(done), n)]


@torch.no_grad()
def _read_again(
    rows: Sequence[Trajectory], run: Run, model: str, top_p: float, temperature: float
) -> tuple[list[Trajectory], float]:  # fmt: skip
    """The rows with both log-probs as the trainer computes them, and the share of their tokens that are outside of the nucleus."""
    mask, done, outside = run.model(model), [], []
    for start in range(0, len(rows), ROWS):
        part = rows[start : start + ROWS]
        batch = forward_batch(part, run.policy.device)
        # the state one position before a token predicts it
        decided = batch.mask[:, 1:]
        own, other = run.policy.evaluate(batch, ("hidden", "logprobs")), mask.evaluate(batch, ("hidden",))
        hidden, of_mask = (x.hidden[:, :-1][decided] for x in (own, other))
        with tempered(temperature, run.policy):
            sampled, inside = run.policy.nucleus_logprobs(hidden, batch.ids[:, 1:][decided], mask, of_mask, top_p)
        outside.append(~inside.cpu())
        sizes = decided.sum(1).tolist()
        columns = (x.float().cpu().split(sizes) for x in (own.logprobs[:, 1:][decided], sampled))
        for t, raw, restricted in zip(part, *columns, strict=True):
            turn = replace(t.turns[-1], logprobs=raw.numpy(), sampled=restricted.numpy())
            done.append(replace(t, turns=(*t.turns[:-1], turn)))
    return done, float(torch.cat(outside).float().mean()) if outside else 0.0


# ---- the recipe ---------------------------------------------------------------------------------------------------------

MASK = "mask"


@objective(unit="token", wants=("hidden",), needs=(f"{MASK}.hidden",))
def clipped_ratio_in_nucleus(
    out: Outputs, batch: Batch, run: Run, *, top_p: PositiveShare = 0.9, eps: PositiveFloat = 0.2,
    eps_high: PositiveFloat | None = None,
) -> Tensor:  # fmt: skip
    """`clipped_ratio` of the restricted policy, of which the rollout recorded the log-probs before the update as `sampled`."""
    old = torch.zeros_like(batch.old)
    for i, (row, _) in enumerate(batch.rows):
        # missing: text that was only read
        old[i, : len(row)] = torch.from_numpy(row.column("sampled", missing=0.0)).to(old.device)
    # the state one position before a token predicts it
    decided = batch.mask[:, 1:]
    own, other = (x[:, :-1][decided] for x in (out.hidden, batch.columns[f"{MASK}.hidden"]))
    new, _ = run.policy.nucleus_logprobs(own, batch.ids[:, 1:][decided], run.model(MASK), other, top_p)
    table = torch.zeros_like(old)
    table[:, 1:] = new.new_zeros(decided.shape).masked_scatter(decided, new)
    return clipped_ratio(eps=eps, eps_high=eps_high)(Outputs(logprobs=table), replace(batch, old=old), run)


@loop(wraps="inner")
def mask_follows(recipe: Recipe, run: Run, ops: Any, *, mu: PositiveInt = 5, inner: Loop | None = None) -> None:
    """Copy the policy into the mask model every `mu` training steps.  inner: how a step is taken."""
    if run.step % mu == 0:
        run.model(MASK).load_state(run.policy.state())
    inner(recipe, run, ops) if inner else ops.standard_step(recipe)


def _restricted(of: Objective, top_p: float) -> Objective:
    """The objective with its clipped ratio in the nucleus."""
    terms = [(scale, leaf, leaf.name == "clipped_ratio") for scale, leaf in of.terms()]
    if not any(found for *_, found in terms):
        raise RewardlabError(f"nlpo restricts the policy of a clipped ratio, and this objective has none: {of}")

    def changed(leaf: Objective) -> Objective:
        kept = {name: value for name, value in leaf.settings.items() if name in ("eps", "eps_high")}
        return clipped_ratio_in_nucleus(top_p=top_p, **kept)

    parts = [(scale, changed(leaf) if found else leaf) for scale, leaf, found in terms]
    first, *others = [leaf if scale == 1 else scale * leaf for scale, leaf in parts]
    return sum(others, start=first)


def nlpo(base: Recipe | None = None, *, top_p: float = 0.9, mu: int = 5, epochs: int = 5) -> Recipe:
    """top_p: of the mask model's probability, at each token.  mu: steps between its updates.  epochs: passes over a batch, where
    there is no base.
    """
    base = base or ppo(epochs=epochs)
    objective = _restricted(base.required("objective"), top_p)
    if (cut := base.sampling_settings.get("top_p", 1.0)) != 1:
        raise RewardlabError(f"nlpo samples from the nucleus of its mask model, and this base from its own (top_p={cut:g})")
    return base.but(
        rollout=base.required("rollout").replace_innermost(independent, restricted_vocabulary, model=MASK, top_p=top_p),
        objective=objective,
        loop=mask_follows(mu=mu, inner=base.loop),
        also=(*base.also, Learner(MASK, "copy:policy", Recipe(), every=0)),
    )


fidelity = "core"
left_out = (
    "the coefficient of the KL that adapts to a target; the 100 tokens that are kept whatever the mask says; and masks when the "
    "policy is tested, so that what lies outside of the nucleus, and was never trained, can be sampled then"
)
data = Data(answer="the gold answer")

claim = Claim(
    says="the policy stays nearer to its start than PPO's after as many updates on as many replies, and solves no less",
    versus="ppo", task="countdown:largest=30,habit=0.9", measure="kl", direction="lower", margin=0.723,
    settings={"problems": 16, "lr": 1e-4}, versus_settings={"problems": 16, "lr": 1e-4, "epochs": 5}, by=accuracy_and_kl(),
    problems=500, steps=40, guard=Within("greedy", low=-0.03),
    fault=Within("kl", low=0.2, says="nats a reply by which PPO leaves its start"), start=None,
    tried="at 3e-4 with 32 problems, three seeds: 11 to 14 nats, PPO 9 to 19, and neither learns; here 3 to 4 on both sides",
    finding="PPO learns too little here (44% right before, 53% after) for anything to be decided; NLPO ends at 45%. Both stand "
    "four nats from their start, and the most likely replies get worse on both sides (73% before; 56% and 61%)",
)  # fmt: skip
baseline = "ppo"
system = "rl4lms-nlpo"
