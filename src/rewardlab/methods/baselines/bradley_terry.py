"""Bradley-Terry reward model: a scalar head on the policy's trunk, trained so that preferred replies score higher.

    P(a preferred to b) = sigmoid(r(a) - r(b));     loss = -log P(chosen preferred to rejected)

Pairs may say more than their order: `--labels margins` reads in `chosen_score` and `rejected_score` how good each reply is, and
`--labels votes` how many annotators preferred it, ties included. `rewardlab data pairs` makes such pairs of scored replies.

`init` and `keep_language` are for small models, whose plain head forgets what the trunk knows before it learns to compare: no
paper's reward model reads surprise or was taught verdicts before.

Bradley and Terry 1952; as a reward model, Christiano et al. 2017, arXiv:1706.03741, and Ouyang et al. 2022, arXiv:2203.02155.
The policy is not trained; the run's model is the reward model.
"""

from dataclasses import replace
from typing import Any, Literal

from rewardlab.checks.claim import Check
from rewardlab.core import Learner, Recipe, Update
from rewardlab.data.columns import Column, Data
from rewardlab.evals.pairs import pair_accuracy
from rewardlab.objectives.labels import language_model
from rewardlab.objectives.pairs import preference_loss
from rewardlab.rewards.recorded import score_in_data
from rewardlab.rollouts.recorded import recorded


def bradley_terry(
    base: Recipe | None = None,
    *,
    reward_lr: float | None = None,
    problems: int = 32,
    init: str = "value-head",
    keep_language: float = 0.0,
    labels: Literal["order", "margins", "votes"] = "order",
    center: float = 0.0,
) -> Recipe:
    """problems: pairs per step; the data has columns `chosen` and `rejected`.  init: what the reward model starts from, such as
    value-head:surprise or embedded:TASK:judge (`Learner.init`).  keep_language: weight of the likelihood of both replies.
    labels: what the pairs say, "order", "margins" or "votes"; the latter two read `chosen_score` and `rejected_score`.
    center: weight by which the sum of a pair's two scores is kept near 0."""
    # no objective: the policy is never updated, the reward model only starts from its weights
    base = base or Recipe(name="bradley_terry", update=Update())
    loss = preference_loss(labels=labels, center=center)
    if keep_language:
        loss = loss + keep_language * language_model()
    told = score_in_data() if labels != "order" else None
    reward_model = Recipe(objective=loss, reward=told, update=Update(lr=reward_lr, loss_kind="scorer"))
    return base.but(
        rollout=recorded(fields=("chosen", "rejected")),
        measure=pair_accuracy(model="reward"),
        also=(*base.also, Learner("reward", init, reward_model)),
        problems=problems,
    )


def on_pairs(base: Recipe, *, reward_lr: float | None, init: str, **parts: Any) -> Recipe:
    """The recipe whose second model `reward` learns from pairs, by these parts: that of `base` if it has one, else
    `bradley_terry`'s on top of it."""
    has = any(learner.name == "reward" for learner in base.also)
    recipe = base if has else bradley_terry(base, reward_lr=reward_lr, problems=base.update.problems, init=init)
    also = [replace(x, recipe=x.recipe.but(**parts)) if x.name == "reward" else x for x in recipe.also]
    return recipe.but(also=tuple(also))


fidelity = "whole"
data = Data(
    chosen="the better reply", rejected="the worse reply",
    chosen_score=Column(
        "how good the better reply is, or how many preferred it", optional=True, needed_with=("labels", "margins", "votes"),
        number=True,
    ),
    rejected_score=Column("the same of the worse reply", optional=True, needed_with=("labels", "margins", "votes"), number=True),
)  # fmt: skip

# by construction: the rival is its own start, before anything was learnt
check = Check(
    says="a reward model trained on pairs prefers the better one of held-out replies",
    versus=None, task="notes", measure="pair_accuracy", direction="higher", margin=0.1, against="before.pair_accuracy", steps=100,
    sanity=True,
    finding="50% of held-out pairs ranked right before and 69% after 100 steps on 32 pairs each: it learns, and is far from "
    "perfect",
    version=2, replaces="the reward model learnt nothing: from a value head alone it stayed at chance for minutes",
)  # fmt: skip
baseline = None
