"""Best-of-n: sample n replies and keep the one with the highest score.

    answer = argmax over y_1 .. y_n ~ pi of r(y)

Stiennon et al. 2020, arXiv:2009.01325; Nakano et al. 2021, arXiv:2112.09332. Without a reward model (`--reward`), the policy's own
mean log-probability is the score.
"""

from rewardlab.checks.claim import Check
from rewardlab.core import Recipe, Update
from rewardlab.data.columns import Column, Data
from rewardlab.evals.passk import accuracy
from rewardlab.rewards.intrinsic import likelihood
from rewardlab.rollouts.best import best
from rewardlab.rollouts.independent import independent


def best_of_n(base: Recipe | None = None, *, n: int = 8, temperature: float = 1.0) -> Recipe:
    """n: replies per problem."""
    base = base or Recipe(name="best_of_n", reward=likelihood(), measure=accuracy(), update=Update())
    return base.but(rollout=independent(n=n, temperature=temperature), select=best())


fidelity = "whole"
data = Data(answer=Column("the gold answer, by which replies are judged; questions without one are answered too", optional=True))

# pass@1 here is the mean over the same n replies, so that both numbers come from the same samples
check = Check(
    says="the best of n by score is right more often than a single sample",
    versus=None, task="arithmetic", measure="accuracy", direction="higher", margin=0.05, against="pass@1", problems=200,
    sanity=True,
    finding="49% of single replies are right, and 98% of the likeliest of 8: this policy knows which of its replies are right. "
    "Nothing is said of reward models, which may prefer wrong replies",
    version=2, replaces="it holds by construction, which was not said",
)  # fmt: skip
baseline = None
