"""QeRL: RL of adapters on a 4-bit model, with noise on its norms in rollouts that anneals from the scale of quantisation noise.

    W' = W4 + B A,   A and B train;      RMSNorm(x) = (w + z) x / rms(x),   z ~ N(0, sigma_k^2) where replies are sampled
    sigma_0 = 0 (quantisation alone);    sigma_k = first (last / first)^((k - 1) / (K - 2)),   k = 1 .. K - 1, in K equal stages

The error of 4 bits flattens the distribution of the next token, which explores; but it stays as it is. Noise of a width that falls
is added to it. A vector that is added to the scales of a norm is row-wise noise on the matrices that read it (query, key, value,
gate, up), which costs no matrix and leaves those in 4 bits.

Huang et al. 2025, arXiv:2510.11696: Eqs. 8 to 10, K = 10; and the released code, in the copy vukrosic/QeRL-learn 1bf4803
(trl_trainer/{noise_scheduler,grpo_trainer}.py, training/dapo_qwen2.5-7b_nvfp4_single_gpu.sh): the exponent; 1e-2 to 1e-4
(paper: 5e-2 to 5e-4); no noise in the first stage; one z for all replies of a step (paper: for each forward pass); importance
ratios that do not know of the noise (`corrected` is ours). As in the paper, the last norm has none; the code noises it too.
With --lora-rank 32 adapters have the scale 2 (there 1). The base is GRPO; the script's is DAPO, with a mean over tokens, clipped at
1.28, and without replies that were cut off. Without nf4: it is the noise alone, on any language model.

The model is a checkpoint of a language model, in 4 bits by --model nf4:FOLDER --lora-rank 32 (extra `nf4`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from rewardlab.checks.claim import Check
from rewardlab.core import Group, Problem, Recipe, Rollout, Run, Trajectory, Turn, measure, rollout
from rewardlab.data.columns import Data
from rewardlab.errors import RewardlabError
from rewardlab.methods.baselines.grpo import grpo
from rewardlab.rollouts.independent import independent
from rewardlab.settings.domain import PositiveFloat, PositiveInt
from rewardlab.util.outputs import entropies

# ---- How sure a policy is of its next tokens with noise on the scales of its norms, and without ----------------------


@measure
def entropy_with_noise(
    problems: Sequence[Problem], run: Run, *, rollout: Rollout, sigma: PositiveFloat, times: PositiveInt = 8
) -> dict[str, float]:
    """Entropy with and without RMSNorm noise, in nats, averaged over the decisions of replies sampled without noise.

    entropy: of the policy; entropy.noise: with N(0, sigma^2) added to the scales of its layers' norms, the mean over so many
    `times`.
    """
    if not hasattr(run.policy, "noised"):
        raise RewardlabError(f"entropy_with_noise is for language models, and {run.policy.name!r} is none")
    rows = [t for group in rollout(list(problems), run) for t in group]

    def entropy() -> float:
        decided = [h[t.mask] for t, h in zip(rows, entropies(run.policy, rows), strict=True)]
        return float(np.concatenate(decided).mean())

    plain, with_noise = entropy(), []
    for _ in range(times):
        with run.policy.noised(sigma, run.rng("noise")):
            with_noise.append(entropy())
    return {"entropy": plain, "entropy.noise": float(np.mean(with_noise))}


# ---- Replies of a policy with noise on the scales of its norms, less of it from stage to stage -----------------------


def sigma_at(progress: float, first: float, last: float, stages: int) -> float:
    """The noise when so much of training is done, 0 to 1: none in the first of equal stages, `first` in the second, then from stage
    to stage the same share of it, down to `last` in the last stage."""
    # in floating point 0.29 * 100 is less than 29
    stage = min(stages - 1, int(progress * stages + 1e-9))
    if stage == 0:
        return 0.0
    return first * (last / first) ** ((stage - 1) / max(1, stages - 2))


@rollout(wraps="inner")
def parameter_noise(
    problems: list[Problem], run: Run, *, inner: Rollout, first: PositiveFloat = 1e-2, last: PositiveFloat = 1e-4,
    stages: PositiveInt = 10, corrected: bool = False,
) -> list[Group]:  # fmt: skip
    """The samples of `inner` with N(0, sigma^2) added to the norm scales of the policy's layers: new noise in every step, sigma by
    `sigma_at`. Held-out problems are answered without it.

    corrected: the recorded log-probs are those with the noise, so that importance ratios say how the replies were sampled.  False:
    those of the policy without it, as if it had sampled the replies itself. Logs sigma, and how much more log-prob the sampled
    tokens had with the noise, on average.
    """
    if not hasattr(run.policy, "noised"):
        raise RewardlabError(f"noised puts noise on the norms of a language model, and {run.policy.name!r} is none")
    sigma = 0.0 if run.held_out else sigma_at(run.progress, first, last, stages)
    run.log("sigma", sigma)
    if not sigma:
        return inner(problems, run)
    with run.policy.noised(sigma, run.rng("noise")):
        groups = inner(problems, run)
    # these log-probs come for free where the trainer takes its own for those of the sampler
    with run.unbilled():
        clean = run.policy.score([t for group in groups for t in group])
    rows = [t for group in groups for t in group]
    run.log("noise_gap", _gap(rows, clean, run.policy.name))
    told = iter([_as_sampled(t) if corrected else _as_without(t, own, run) for t, own in zip(rows, clean, strict=True)])
    return [[next(told) for _ in group] for group in groups]


def _gap(rows: Sequence[Trajectory], clean: Sequence[np.ndarray], name: str) -> float:
    pairs = [(t.column("logprobs")[t.mask_of(name)], own[t.mask_of(name)]) for t, own in zip(rows, clean, strict=True)]
    gaps = np.concatenate([noisy - own for noisy, own in pairs]) if pairs else np.zeros(0)
    return float(np.nanmean(gaps)) if np.isfinite(gaps).any() else 0.0


def _as_sampled(t: Trajectory) -> Trajectory:
    # no step's weights alone sampled this: in low precision the trainer would put its own log-probs in place of the recorded ones
    return replace(t, turns=tuple(turn if turn.author is None else replace(turn, step=-1) for turn in t.turns))


def _as_without(t: Trajectory, clean: np.ndarray, run: Run) -> Trajectory:
    """With the log-probs of this step's own decisions by the policy without noise."""
    turns: list[Turn] = []
    start = 0
    for turn in t.turns:
        end = start + len(turn.ids)
        ours: Any = turn.author == run.policy.name and turn.logprobs is not None and turn.step == run.policy.step
        turns.append(replace(turn, logprobs=clean[start:end].astype(np.float32)) if ours else turn)
        start = end
    return replace(t, turns=tuple(turns))


# ---- the recipe ---------------------------------------------------------------------------------------------------------


def qerl(
    base: Recipe | None = None, *, n: int = 8, first: float = 1e-2, last: float = 1e-4, stages: int = 10, corrected: bool = False
) -> Recipe:
    """n: replies per prompt.  first, last: width of the noise in the second and the last stage.  stages: of equal length, the first
    without noise.  corrected: importance ratios are to the policy with noise."""
    base = base or grpo(n=n)
    return base.but(
        rollout=parameter_noise(inner=base.required("rollout"), first=first, last=last, stages=stages, corrected=corrected)
    )


fidelity = "core"
left_out = (
    "NVFP4, AWQ and their kernels, hence the speed: here the 4 bits are NF4 of bitsandbytes, a format that the paper "
    "compares with; training the norms beside the adapters, as the script does"
)
data = Data(
    answer="the gold answer",
    rows=[
        {"prompt": "A garden is 6 m by 9 m. What is its area in square metres?", "answer": "54"},
        {"prompt": "What is 45 + 55?", "answer": "100"},
        {"prompt": "How many edges has a cube?", "answer": "12"},
    ],
)

# by construction: noise of this size makes any policy less sure
check = Check(
    says="noise on the scales of its norms makes a frozen policy less sure of its next token, so that it explores more",
    versus=None, task="arithmetic:biased=0.75,error=0.1", measure="entropy.noise", direction="higher", margin=0.01,
    against="entropy", by=entropy_with_noise(rollout=independent(n=1), sigma=0.3), problems=100, steps=1, learns=None, start=None,
    sanity=True,
    tried="one seed, 6 samples of noise: +.00003 nats at 0.01, +.002 at 0.1, +.009 at 0.2, +.023 at 0.3 above .077; 0.01 is what "
    "the paper begins with in models a thousand times as large, and too little to show here",
    finding="noise of .3 raises the entropy of the next token from .077 to .099 nats; the paper's .01 is too little to show in so "
    "small a model. Whether the noise helps to learn is not tested",
)  # fmt: skip
baseline = "grpo"
