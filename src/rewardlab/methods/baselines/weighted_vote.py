"""Weighted vote: draw n replies; each votes for its answer with the weight that a verifier gives it.

    answer = argmax over a of sum_i 1[answer(y_i) = a] f(x, y_i),     f the chance that y_i is right, as a verifier says

Between the best of n, which trusts the verifier alone, and the majority vote, which asks none. Without a verifier the policy's own
mean probability per token weighs, as in the "weighted sum (normalized)" of Wang et al. 2023, arXiv:2203.11171.

Li et al. 2022, arXiv:2206.02336 (DIVERSE, of one prompt, whole replies judged); verifiers: Cobbe et al. 2021, arXiv:2110.14168. The
value of a model trained otherwise, as a Bradley-Terry reward model is, is taken for the log-odds of being right (inferred).
"""

import math
from collections import defaultdict
from typing import Any

import numpy as np

from rewardlab.core import Group, Learner, Recipe, Run, Score, Scores, Trajectory, Update, last_values, select
from rewardlab.errors import RewardlabError
from rewardlab.evals.passk import accuracy
from rewardlab.proof.claim import Claim
from rewardlab.rewards.intrinsic import likelihood
from rewardlab.rewards.reward import reward
from rewardlab.rollouts.independent import independent
from rewardlab.select.vote import answer_of


@reward(over="groups")
def own_probability(groups: list[Group], run: Run) -> Scores:
    """The geometric mean of the probabilities that the policy gave to the tokens it wrote, 0 to 1."""
    scores = likelihood()(groups, run)
    return [[Score(None if s.value is None else math.exp(s.value), why=s.why) for s in row] for row in scores]


@reward(over="groups")
def said_right(groups: list[Group], run: Run, *, model: str = "verifier") -> Scores:
    """The chance that a reply is right, as a model with a value head says: its value at the end is taken for the log-odds."""
    verifier = run.model(model)
    if verifier.tokenizer.get_vocab() != run.policy.tokenizer.get_vocab():
        raise RewardlabError(f"the model {model!r} has another tokenizer than the policy, so it cannot read its replies")
    values = iter(last_values(verifier, [t for group in groups for t in group]))
    return [[Score(float(1 / (1 + np.exp(-next(values))))) for _ in group] for group in groups]


@select
def weighted_majority(group: Group, scores: list[Score], run: Run) -> Trajectory:
    """Of the answer whose replies' scores, at least 0 each, add up to the most, the reply with the best score; the first of equals.

    Numbers are compared by value. Replies without an answer or without a verdict do not vote; if none does, the first is taken.
    """
    votes: dict[Any, list[tuple[float, Trajectory]]] = defaultdict(list)
    for t, score in zip(group, scores, strict=True):
        weight, answer = score.total, answer_of(t.reply)
        if weight is not None and weight < 0:
            raise RewardlabError(f"a vote cannot weigh less than nothing, and a score is {weight:g}: use a reward of at least 0")
        if weight is not None and answer is not None:
            votes[answer].append((weight, t))
    if not votes:
        return group[0]
    winners = max(votes.values(), key=lambda cast: math.fsum(weight for weight, _ in cast))
    return max(winners, key=lambda vote: vote[0])[1]


def weighted_vote(base: Recipe | None = None, *, n: int = 8, temperature: float = 1.0, verifier: str = "") -> Recipe:
    """n: replies per problem.  verifier: a checkpoint or run folder of a model with a value head, such as bradley_terry trains."""
    base = base or Recipe(name="weighted_vote", reward=own_probability(), measure=accuracy(), update=Update())
    if verifier:
        frozen = Learner("verifier", verifier, Recipe(), every=0)
        base = base.but(reward=said_right(), also=(*base.also, frozen))
    return base.but(rollout=independent(n=n, temperature=temperature), select=weighted_majority())


claim = Claim(
    says="weighing votes gives the right answer more often than counting them, from the same replies",
    versus="majority_vote", task="arithmetic", measure="accuracy", direction="higher", margin=0.02,
)  # fmt: skip
