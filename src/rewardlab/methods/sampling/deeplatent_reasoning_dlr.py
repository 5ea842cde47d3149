"""DLR: a small assistant samples latents for a frozen model, and alone is trained, on the answers' rewards.

    z_1 .. z_G ~ pi_assistant(. | x),  y_i ~ pi_frozen(. | z_i, x),  r_i = right_i + w well_formed_i,  A_i = (r_i - mean) / std
    loss = -mean_i min(ratio A_i, clip(ratio) A_i) + c contrast,     ratio = pi_assistant(z_i | x) / pi_old(z_i | x)
    contrast = mean over ordered pairs (i, j) kept  -log e^s_ij / (e^s_ij + sum over k not kept e^s_ik),   s = cosine / tau

Exploring in tokens moves all weights of a model by noisy gradients. Here exploration is in a few continuous vectors: each latent is
decoded once, those of the highest reward are kept, and the contrast draws these together and away from the others, in both
directions of each pair. z is mean + std noise, so that the contrast moves the means. What answers cannot forget: it never learns.

Shan et al. 2026, arXiv:2601.17275 (abstract and introduction; no code was found, and what others tell of the text: G = 64, d =
512, about .18 of the latents kept). (inferred): the Gaussian policy and that it reads the frozen model's state at the end of
the prompt, the map of latents to vectors and their place before the prompt (`policies/assistant.py`), the form of the contrast,
tau, and the weights c and w. The assistant of the paper is a language model of 1.3B; here it is one hidden layer on the frozen
model's own reading.

The --model stays as it is. `assistant`: the folder of a trained one (best/ or model/ of a run).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from rewardlab.checks.claim import Claim
from rewardlab.core import Batch, Group, Learner, Measure, Outputs, Problem, Recipe, Rollout, Run, measure, objective, rollout
from rewardlab.data.columns import Data
from rewardlab.evals.passk import accuracy
from rewardlab.methods.baselines.grpo import grpo
from rewardlab.rewards.format import answer_given
from rewardlab.rewards.task import correct
from rewardlab.settings.domain import PositiveFloat, PositiveShare

# ---- Measures of the policy after the latents that a learner writes before its replies -------------------------------


@measure(wraps="inner")
def with_prefix(problems: Sequence[Problem], run: Run, *, inner: Measure, by: str, sampled: bool = False) -> dict[str, float]:
    """The measure `inner` with the means of the learner `by`'s latents before each reply.  sampled: samples them."""
    writer = run.model(by)

    def write(rows: Any, rng: Any) -> Any:
        return writer.write(rows, rng if sampled else None)

    with run.policy.prefixed(write):
        return inner(problems, run)


# ---- Replies after a prefix of latents that a learner of the run writes ----------------------------------------------


@rollout(wraps="inner")
def prefixed(problems: list[Problem], run: Run, *, inner: Rollout, by: str) -> list[Group]:
    """The groups of `inner` with latents of the learner `by` (`policies/assistant.py`) before each reply, sampled for each row.

    They are a turn of the learner's own, with log-probs; the policy reads them in place of token embeddings.
    """
    writer = run.model(by)
    writer.step = run.step
    with run.policy.prefixed(writer.write):
        return inner(problems, run)


# ---- the recipe ---------------------------------------------------------------------------------------------------------

ASSISTANT = "assistant"


def kept_of(rewards: Tensor, keep: float) -> Tensor:
    """(n,) bool: the latents of a group with the `keep` highest rewards, ties too; none where all earned the same."""
    # at least one; 0.29 * 100 is less than 29 in floating point
    count = max(1, int(keep * len(rewards) + 1e-9))
    return (rewards >= rewards.sort(descending=True).values[count - 1]) & (rewards > rewards.min())


def pair_contrast(latents: Tensor, kept: Tensor, tau: float) -> Tensor:
    """The contrast of latents (n, d) of one problem; 0 without two kept ones and one that is not."""
    if int(kept.sum()) < 2 or bool(kept.all()):
        return latents.sum() * 0.0
    unit = F.normalize(latents, dim=1)
    similar = unit @ unit.T / tau
    # log of the sum over those not kept, for each anchor
    away = similar[:, ~kept].logsumexp(1, keepdim=True)
    pulled = F.softplus(away - similar)[kept][:, kept]
    # a latent is no pair with itself
    return pulled[~torch.eye(len(pulled), dtype=torch.bool, device=pulled.device)].mean()


@objective(unit="group", wants=("hidden",))
def latent_contrast(out: Outputs, batch: Batch, run: Run, *, keep: PositiveShare = 0.25, tau: PositiveFloat = 0.1) -> Tensor:
    """`pair_contrast` of the latents of each group. Rows without a verdict, or without latents, count as neither."""
    rewards, known = batch.reward.sum(1), batch.rewarded.any(1) & batch.mask.any(1)
    losses = []
    for group in range(batch.groups):
        rows = ((batch.group == group) & known).nonzero().squeeze(1)
        if not len(rows):
            losses.append(out.hidden.sum() * 0.0)
            continue
        # all rows have as many latents
        latents = torch.stack([out.hidden[row][batch.mask[row]].flatten() for row in rows])
        losses.append(pair_contrast(latents, kept_of(rewards[rows], keep), tau))
    return torch.stack(losses)


def deeplatent_reasoning_dlr(
    base: Recipe | None = None, *, count: int = 2, size: int = 16, width: int = 64, std: float = 1.0, fixed_std: bool = False,
    contrast: float = 0.1, keep: float = 0.25, tau: float = 0.1, well_formed: float = 0.1, assistant_lr: float = 1e-2,
    assistant: str = "", sampled: bool = False,
) -> Recipe:  # fmt: skip
    """count: latents before a prompt.  size: numbers of each.  width, std, fixed_std: of the assistant.  contrast: c.  keep: share
    of the latents kept.  well_formed: w.  assistant_lr: its rate.  assistant: a trained one to go on with.  sampled: answer
    held-out problems from sampled latents, and not from their means.
    """
    base = base or grpo()
    fresh = f"count={count},size={size},width={width},std={std},fixed_std={str(fixed_std).lower()}"
    learnt = base.required("objective") + contrast * latent_contrast(keep=keep, tau=tau) if contrast else base.required("objective")
    learning = Recipe(
        credit=base.required("credit"), objective=learnt, weighting=base.weighting, update=replace(base.update, lr=assistant_lr)
    )
    paid = base.reward or correct()
    return base.but(
        rollout=prefixed(inner=base.required("rollout"), by=ASSISTANT), objective=None,
        reward=paid + well_formed * answer_given() if well_formed else paid,
        measure=with_prefix(inner=base.measure or accuracy(), by=ASSISTANT, sampled=sampled),
        also=(*base.also, Learner(ASSISTANT, f"prefix:{assistant or fresh}", learning)),
    )  # fmt: skip


fidelity = "reading"
left_out = (
    "an assistant of 1.3B parameters (here one hidden layer on the frozen model's reading), and choosing latents "
    "before they are decoded, since both rewards read the reply"
)
data = Data(
    answer="the gold answer",
    rows=[
        {"prompt": "A pool fills in 4 hours at 50 litres an hour. How many litres does it hold?", "answer": "200"},
        {"prompt": "What is 81 divided by 9?", "answer": "9"},
        {"prompt": "How many letters has the word 'latent'?", "answer": "6"},
    ],
)

claim = Claim(
    says="a frozen model is right more often, once an assistant of latents has learnt, than after as many updates of GRPO",
    versus="grpo", task="arithmetic:biased=0.75,error=0.1", measure="pass@1", direction="higher", margin=0.136,
    settings={"problems": 8, "std": 3.0, "sampled": True}, versus_settings={"problems": 8}, steps=40, start=None,
    tried="without training, 128 problems, right .35: vectors after the prompt .05; before it .23 where z = 0 is the mean "
    "embedding, .35 where it is a line break, .32 with std 3 (from latent to latent .05 apart); against its own start +.017 on two "
    "seeds",
    finding="the frozen model is right in 32% before and 34% after its assistant has learnt; GRPO goes from 36% to 64%. Latents "
    "before the prompt move this model little",
)  # fmt: skip
baseline = "grpo"
