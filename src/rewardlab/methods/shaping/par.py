"""PAR: reward a reply by the reward model's probability that it is preferred to reference samples.

    r = 1/M sum_m sigmoid(r_rm(x, y) - r_rm(x, y_m)),    y_m: replies of the reference policy to x

Between 0 and 1, steep where a reply is about as good as the references, and flat far above them: there a higher score earns next to
nothing, which is where a reward model is wrong most often. One reference is enough.

Fu et al. 2025, arXiv:2502.18770. Followed: the released script (PorUna-byte/PAR, f054b56: sigmoids averaged over the references, KL
coefficient 0.005). There the references are written once for each prompt, here whenever it comes, so that endless tasks have them
too. The policy learns by leave-one-out REINFORCE: the division by the group's standard deviation, as in GRPO, would stretch the
flat part again.
"""

from rewardlab.checks.claim import Claim, Within
from rewardlab.core import Recipe
from rewardlab.data.columns import Column, Data
from rewardlab.evals.rewards import mean_reward
from rewardlab.methods.baselines.rlhf import rlhf
from rewardlab.rewards.model import preferred


def par(
    base: Recipe | None = None, *, references: int = 1, reward_model: str = "value-head", pairs: int | None = None, passes: int = 1,
    n: int = 8, beta: float = 0.005,
) -> Recipe:  # fmt: skip
    """references: replies of the reference policy per prompt, M.  reward_model, pairs, passes: see rlhf.  beta: of the KL."""
    base = base or rlhf(reward_model=reward_model, pairs=pairs, passes=passes, n=n, beta=beta)
    return base.but(reward=preferred(inner=base.required("reward"), n=references))


fidelity = "core"
left_out = (
    "PPO with a critic, for which leave-one-out REINFORCE stands, references written once for each prompt, and a penalty on length."
)

data = Data(
    answer=Column("the gold answer, if accuracy is to be measured beside the score", optional=True),
    chosen=Column("a reply that was preferred, for teaching the reward model; not read with --reward-model PATH", optional=True),
    rejected=Column("the reply that it was preferred to", optional=True),
    rows=[
        {
            "prompt": "Write a birthday wish for a colleague.",
            "chosen": "Happy birthday, Sam! May the year ahead bring you good coffee and few meetings.",
            "rejected": "Happy birthday.",
        },
        {
            "prompt": "Explain to a child why the sky is blue.",
            "chosen": "Sunlight is made of all colours. The air throws the blue ones around most, so blue comes from everywhere.",
            "rejected": "Rayleigh scattering is proportional to the inverse fourth power of the wavelength.",
        },
    ],
)

HACKED = {"pairs": 3000, "beta": 0.005, "lr": 1e-3}
claim = Claim(
    says="after equal updates on an imperfect reward model, notes are truly better than those of a policy paid its raw score",
    versus="rlhf", task="notes:flip=0.1,taste=0.15", measure="reward", direction="higher", margin=0.24, settings=HACKED,
    versus_settings=HACKED, by=mean_reward(), steps=40,
    fault=Within("train.truth", high=0.4, says="true quality late in training on the raw score; 0.55 at the start"),
    judge=Within("train.pair_accuracy", 0.56, 0.9, "better notes above worse ones: learnt, and imperfect"), learns=None,
    tried="annotators who err at random (flip=0.2, 800 pairs) on a development seed: the true quality hardly fell in 26 steps",
    finding="True quality falls from 0.55 to 0.29, on the raw score to 0.08: with the sigmoid the policy loses less to the "
    "reward model's faults, and neither helps. That the difference reaches the margin is left open.",
)  # fmt: skip
