"""QeRL: RL of adapters on a model in 4 bits, with noise on its norms in rollouts, as wide at first as quantisation's and then less.

    W' = W4 + B A,   A and B train;      RMSNorm(x) = (w + z) x / rms(x),   z ~ N(0, sigma_k^2) where replies are sampled
    sigma_0 = 0 (quantisation alone);    sigma_k = first (last / first)^((k - 1) / (K - 2)),   k = 1 .. K - 1, in K equal stages

The error of 4 bits flattens the distribution of the next token, which explores; but it stays as it is. Noise of a width that falls
is added to it. A vector that is added to the scales of a norm is row-wise noise on the matrices that read it (query, key, value,
gate, up), which costs no matrix and leaves those in 4 bits.

Huang et al. 2025, arXiv:2510.11696: Eqs. 8 to 10, K = 10; and the released code, in the copy vukrosic/QeRL-learn 1bf4803
(trl_trainer/{noise_scheduler,grpo_trainer}.py, training/dapo_qwen2.5-7b_nvfp4_single_gpu.sh): the exponent; 1e-2 to 1e-4 (paper:
5e-2 to 5e-4); no noise in the first stage; one z for all replies of a step (paper: for each forward pass); importance ratios that
do not know of the noise (`corrected` is ours). As in the paper, the last norm has none; the code noises it too. With --lora-rank 32
adapters have the scale 2 (there 1).
Left out: NVFP4, AWQ and their kernels, hence the speed: here the 4 bits are NF4 of bitsandbytes, a format that the paper compares
with (memory and speed: results/real/README.md); training the norms beside the adapters, as the script does. Without nf4: it is the
noise alone, on any language model.

Data: prompts and answers; a checkpoint of a language model, in 4 bits by --model nf4:FOLDER --lora-rank 32 (extra `nf4`).
"""

from rewardlab.core import Recipe
from rewardlab.evals.noised import entropy_with_noise
from rewardlab.methods.baselines.grpo import grpo
from rewardlab.proof.claim import Claim
from rewardlab.rollouts.independent import independent
from rewardlab.rollouts.noised import parameter_noise


def qerl(
    base: Recipe | None = None, *, n: int = 8, first: float = 1e-2, last: float = 1e-4, stages: int = 10, corrected: bool = False
) -> Recipe:
    """n: replies per prompt.  first, last: width of the noise in the second and the last stage.  stages: of equal length, the first
    without noise.  corrected: importance ratios are to the policy with noise."""
    base = base or grpo(n=n)
    return base.but(
        rollout=parameter_noise(of=base.required("rollout"), first=first, last=last, stages=stages, corrected=corrected)
    )


# by construction: noise of this size makes any policy less sure
claim = Claim(
    says="noise on the scales of its norms makes a frozen policy less sure of its next token, so that it explores more",
    versus=None, task="arithmetic:biased=0.75,error=0.1", measure="entropy.noise", direction="higher", margin=0.01,
    against="entropy", by=entropy_with_noise(rollout=independent(n=1), sigma=0.3), problems=100, steps=1, learns=None, start=None,
    sanity=True,
    tried="one seed, 6 samples of noise: +.00003 nats at 0.01, +.002 at 0.1, +.009 at 0.2, +.023 at 0.3 above .077; 0.01 is what "
    "the paper begins with in models a thousand times as large, and too little to show here",
)  # fmt: skip
baseline = "grpo"
