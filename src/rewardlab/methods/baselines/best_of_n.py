"""Best-of-n: sample n replies and keep the one with the highest score.

    answer = argmax over y_1 .. y_n ~ pi of r(y)

Stiennon et al. 2020, arXiv:2009.01325; Nakano et al. 2021, arXiv:2112.09332. Without a reward model (`--reward`), the policy's own
mean log-probability is the score.
"""

from rewardlab.checks.claim import Claim
from rewardlab.core import Recipe, Update
from rewardlab.data.columns import Data
from rewardlab.evals.passk import accuracy
from rewardlab.rewards.intrinsic import likelihood
from rewardlab.rollouts.best import best
from rewardlab.rollouts.independent import independent


def best_of_n(base: Recipe | None = None, *, n: int = 8, temperature: float = 1.0) -> Recipe:
    """n: replies per problem."""
    base = base or Recipe(name="best_of_n", reward=likelihood(), measure=accuracy(), update=Update())
    return base.but(rollout=independent(n=n, temperature=temperature), select=best())


data = Data(answer="the gold answer")

# pass@1 here is the mean over the same n replies, so that both numbers come from the same samples
claim = Claim(
    says="the best of n by score is right more often than a single sample",
    versus=None, task="arithmetic", measure="accuracy", direction="higher", margin=0.05, against="pass@1", problems=200,
    learns=None, sanity=True, version=2, replaces="it holds by construction, which was not said",
)  # fmt: skip
baseline = None
