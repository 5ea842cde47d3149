"""Majority vote (self-consistency): sample n replies and return the most frequent answer.

    answer = argmax over a of sum_i 1[answer(y_i) = a]

Wang et al. 2023, arXiv:2203.11171
"""

from rewardlab.checks.claim import Check
from rewardlab.core import Recipe, Update
from rewardlab.data.columns import Column, Data
from rewardlab.evals.passk import accuracy
from rewardlab.rollouts.independent import independent
from rewardlab.rollouts.vote import majority


def majority_vote(base: Recipe | None = None, *, n: int = 8, temperature: float = 1.0) -> Recipe:
    """n: replies per problem."""
    base = base or Recipe(name="majority_vote", measure=accuracy(), update=Update())
    return base.but(rollout=independent(n=n, temperature=temperature), select=majority())


fidelity = "whole"
data = Data(answer=Column("the gold answer, by which replies are judged; questions without one are answered too", optional=True))

# pass@1 here is the mean over the same n replies, so that both numbers come from the same samples
check = Check(
    says="the majority answer is right more often than a single sample",
    versus=None, task="arithmetic", measure="accuracy", direction="higher", margin=0.05, against="pass@1", problems=200,
    sanity=True,
    finding="49% of single replies are right, and 86% of the most frequent answers of 8. It can only help where the right "
    "answer is the most frequent one",
    version=2, replaces="it holds by construction where the mode is right, which was not said",
)  # fmt: skip
baseline = None
