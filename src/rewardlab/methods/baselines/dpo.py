"""DPO: learn from preferences without a reward model; the policy's log-ratio to the reference serves as an implicit reward.

    loss = -log sigmoid(beta [log pi/ref(chosen) - log pi/ref(rejected)])

Rafailov et al. 2023, arXiv:2305.18290
"""

from rewardlab.core import Recipe, Update
from rewardlab.evals.passk import accuracy
from rewardlab.objectives.pairs import dpo_loss
from rewardlab.proof.claim import Claim
from rewardlab.rollouts.recorded import recorded


def dpo(base: Recipe | None = None, *, beta: float = 0.1, lr: float = 1e-4, problems: int = 32) -> Recipe:
    """problems: pairs per step; the data has columns `chosen` and `rejected`."""
    base = base or Recipe(name="dpo", measure=accuracy(), update=Update())
    return base.but(rollout=recorded(fields=("chosen", "rejected")), objective=dpo_loss(beta=beta), lr=lr, problems=problems)


claim = Claim(
    says="learning from pairs beats imitating the chosen replies alone, on the same pairs",
    versus="sft", task="preferences", measure="pass@1", direction="higher", margin=0.0, budget=300_000,
)  # fmt: skip
