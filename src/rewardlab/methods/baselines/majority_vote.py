"""Majority vote (self-consistency): sample n replies and return the most frequent answer.

    answer = argmax over a of sum_i 1[answer(y_i) = a]

Wang et al. 2023, arXiv:2203.11171
"""

from rewardlab.checks.claim import Claim
from rewardlab.core import Recipe, Update
from rewardlab.data.columns import Data
from rewardlab.evals.passk import accuracy
from rewardlab.rollouts.independent import independent
from rewardlab.rollouts.vote import majority


def majority_vote(base: Recipe | None = None, *, n: int = 8, temperature: float = 1.0) -> Recipe:
    """n: replies per problem."""
    base = base or Recipe(name="majority_vote", measure=accuracy(), update=Update())
    return base.but(rollout=independent(n=n, temperature=temperature), select=majority())


data = Data(answer="the gold answer")

# pass@1 here is the mean over the same n replies, so that both numbers come from the same samples
claim = Claim(
    says="the majority answer is right more often than a single sample",
    versus=None, task="arithmetic", measure="accuracy", direction="higher", margin=0.05, against="pass@1", problems=200,
    learns=None, sanity=True, version=2, replaces="it holds by construction where the mode is right, which was not said",
)  # fmt: skip
baseline = None
