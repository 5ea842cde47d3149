"""APRIL: generate more replies than a step needs; the step ends when enough are complete, and the rest continue in the next.

    in progress: (1 + spare) N groups;   a step ends when N are complete;   the prefixes of the others are kept with the log-probs
    of the weights that wrote them, so that the importance ratio of the loss holds for every token:  ratio_t = pi / pi_old(t)

Zhou et al. 2025, arXiv:2509.18521. Stacks on any method that samples independent replies and corrects by the ratio (GRPO, DAPO,
GSPO ...). The paper launches all (1 + spare) N at the first step; here it launches N and returns (1 - spare) N of them, which
keeps as many in progress from then on.
"""

from rewardlab.core import Recipe
from rewardlab.methods.baselines.grpo import grpo
from rewardlab.proof.claim import Claim
from rewardlab.rollouts.independent import independent
from rewardlab.rollouts.partial import partial

kind = "infrastructure"


def april(base: Recipe | None = None, *, spare: float = 0.5) -> Recipe:
    """spare: extra groups in progress, as a share of the groups of a step; 0 waits for the longest reply."""
    base = base or grpo()
    # innermost: a base's filter stays around the rollout, and sees complete groups only
    return base.but(rollout=base.required("rollout").replace_innermost(independent, partial, spare=spare))


claim = Claim(
    says="fewer slots stand idle behind the longest replies",
    versus="april", task="euclid", measure="train.busy", direction="higher", margin=0.1, versus_settings={"spare": 0.0}, steps=20,
    learns=None, sanity=True, version=2, replaces="it holds by construction, which was not said; tokens were the budget",
)  # fmt: skip
