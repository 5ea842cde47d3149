"""Bradley-Terry reward model: a scalar head on the policy's trunk, trained so that preferred replies score higher.

    P(a preferred to b) = sigmoid(r(a) - r(b));     loss = -log P(chosen preferred to rejected)

Bradley and Terry 1952; as a reward model, Christiano et al. 2017, arXiv:1706.03741, and Ouyang et al. 2022, arXiv:2203.02155.
The policy is not trained; the run's model is the reward model.
"""

from rewardlab.core import Learner, Recipe, Update
from rewardlab.evals.pairs import pair_accuracy
from rewardlab.objectives.pairs import preference_loss
from rewardlab.proof.claim import Claim
from rewardlab.rollouts.recorded import recorded


def bradley_terry(base: Recipe | None = None, *, reward_lr: float = 1e-3, problems: int = 32) -> Recipe:
    """problems: pairs per step; the data has columns `chosen` and `rejected`."""
    # no objective: the policy is never updated, the reward model only starts from its weights
    base = base or Recipe(name="bradley_terry", update=Update())
    reward_model = Recipe(objective=preference_loss(), update=Update(lr=reward_lr))
    return base.but(
        rollout=recorded(fields=("chosen", "rejected")),
        measure=pair_accuracy(model="reward"),
        also=(*base.also, Learner("reward", "value-head", reward_model)),
        problems=problems,
    )


claim = Claim(
    says="a reward model trained on pairs prefers the right reply of held-out pairs",
    versus=None, task="preferences", measure="pair_accuracy", direction="higher", margin=0.2, budget=300_000,
    against="before.pair_accuracy",
)  # fmt: skip
baseline = None
