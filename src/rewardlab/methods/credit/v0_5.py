"""V0.5: the baseline is a value model's prior, drawn to the group's mean the further the two are apart, with more replies there.

    s^2 = V (1 - V) / n,    w = min(1, s^2 / (mean r - V)^2),    b = w V + (1 - w) mean r,    A_i = r_i - b
    while |mean r - V| > s and n < N: as many replies again to that prompt

V is said before anything is sampled, so it has no variance, but it may be wrong; the mean of four replies is right on average, and
varies. w gives the least squared error of a mixture, s^2 / (s^2 + bias^2), with the bias estimated by the distance beyond chance.
That V lies within a standard error of the mean is the test of V; where it fails, the prompt is given further replies.

Zhang et al. 2026, arXiv:2603.10848 (abstract, summaries; no code was found). (inferred): the estimate of the bias, s under V, which
counts as .05 from 0 and 1 at least, one standard error as the test's bound, doubling the replies up to N = 16, no division by the
deviation. Left out: the value model V_0 itself, which reads how the policy has done on other prompts; V is a column, or any reward
that is asked about the prompt.

Data: prompts and answers, and the column pass_rate: what a value model, or an earlier measurement, says of each prompt.
"""

from rewardlab.core import Recipe
from rewardlab.credit.group import center
from rewardlab.credit.prior import subtract_prior, subtract_shrunk_mean
from rewardlab.credit.value import to_go
from rewardlab.evals.baselines import baseline_error
from rewardlab.methods.baselines.grpo import grpo
from rewardlab.proof.claim import Claim, Within
from rewardlab.rewards.monte_carlo import sampled_pass_rate
from rewardlab.rewards.recorded import number_in_data
from rewardlab.rewards.reward import Reward
from rewardlab.rewards.task import correct
from rewardlab.rollouts.doubted import adaptive_resampling
from rewardlab.rollouts.independent import independent


def v0_5(base: Recipe | None = None, *, prior: Reward | None = None, n: int = 4, most: int = 16, z: float = 1.0) -> Recipe:
    """prior: V; None: the column pass_rate.  n: replies at first.  most: N.  z: standard errors beyond which V is doubted."""
    base = base or grpo(n=n)
    return base.but(
        rollout=adaptive_resampling(
            of=base.required("rollout"), prior=prior or number_in_data(), reward=base.reward, z=z, most=most
        ),
        credit=subtract_shrunk_mean(z=z) >> to_go(),
    )


ASTRAY = sampled_pass_rate(n=16, astray=0.25)
FOUR = independent(n=4)
ONCE, AGAIN = (adaptive_resampling(of=FOUR, prior=ASTRAY, most=most) for most in (4, 16))
claim = Claim(
    says="with a prior that is wrong about a quarter of the prompts the baseline errs less than the mean of as many replies, four",
    versus=None, task="arithmetic:biased=0.75,error=0.1", measure="error.shrunk", direction="lower", margin=0.008,
    against="error.mean", settings={"prior": ASTRAY},
    by=baseline_error(
        reward=correct(), truth=independent(n=64), rollouts={"shrunk": ONCE, "again": AGAIN, "mean": FOUR, "prior": ONCE},
        credits={"shrunk": subtract_shrunk_mean(), "again": subtract_shrunk_mean(), "mean": center(), "prior": subtract_prior()},
    ),
    problems=150, steps=1, fault=Within("error.prior", low=0.03, says="squared error of the prior alone"), learns=None,
    tried="100 problems, one seed: .016 shrunk, .006 with further replies (7.6 a prompt), .036 the mean, .073 the prior",
)  # fmt: skip
baseline = "grpo"
