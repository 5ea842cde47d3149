"""DPO: learn from preferences without a reward model; the policy's log-ratio to the reference serves as an implicit reward.

    loss = -log sigmoid(beta [log pi/ref(chosen) - log pi/ref(rejected)])
    with label_smoothing eps, the chance that a label is wrong:    (1 - eps) loss(chosen, rejected) + eps loss(rejected, chosen)

Rafailov et al. 2023, arXiv:2305.18290. The policy that it starts from, and its reference, has seen the chosen replies: `sft_steps`
imitates them first, as in the paper. The released code (config.yaml) learns at 5e-7 in both stages; here imitation takes 10 times
the rate of DPO. Label smoothing is that of the released code and of TRL (cDPO); at 0 the loss is the paper's.
"""

from rewardlab.checks.claim import Claim
from rewardlab.core import Recipe, Update
from rewardlab.data.columns import Data
from rewardlab.evals.passk import accuracy
from rewardlab.objectives.pairs import dpo_loss, soft_dpo_loss
from rewardlab.rollouts.recorded import recorded
from rewardlab.settings.domain import Share

from .sft import sft_first


def dpo(
    base: Recipe | None = None, *, beta: float = 0.1, lr: float | None = None, problems: int = 32, sft_steps: int = 0,
    label_smoothing: Share = 0.0,
) -> Recipe:  # fmt: skip
    """problems: pairs per step; the data has columns `chosen` and `rejected`.  sft_steps: steps of SFT on the chosen replies before
    the others; 0 where the model has had it, or where the pairs are its own samples.  label_smoothing: the chance that a label is
    wrong; at .5 nothing is preferred.
    """
    base = base or Recipe(name="dpo", measure=accuracy(), update=Update())
    return base.but(
        rollout=recorded(fields=("chosen", "rejected")),
        objective=soft_dpo_loss(beta=beta, label=1 - label_smoothing) if label_smoothing else dpo_loss(beta=beta),
        loop=sft_first(steps=sft_steps) if sft_steps else base.loop,
        lr=lr,
        loss_kind="preference",
        small_lr=None,
        problems=problems,
    )


fidelity = "whole"
data = Data(chosen="the better reply", rejected="the worse reply")

claim = Claim(
    says="on the policy's own pairs, telling replies apart raises accuracy above imitating the better ones after equal updates",
    versus="sft", task="preferences:writer=policy,biased=0.75,error=0.1", measure="pass@1", direction="higher", margin=0.03,
    settings={"lr": 1e-4}, versus_settings={"field": "chosen", "lr": 3e-4, "problems": 32}, steps=40,
    tried="each side at 3e-5, 1e-4, 3e-4: .554, .567, .432 for DPO, .553, .656, .732 for imitation; also the share of pairs whose "
    "better reply is likelier, of which imitation alone ranks .91 right",
    finding="47% right before; 58% with DPO and 75% with SFT on the better replies, each at the best of three rates: where the "
    "better reply is simply right, imitating it teaches more. Preferences between replies that are all good or all bad are not "
    "tested",
    version=2,
    replaces="the chosen replies were worked solutions, which SFT imitates best of all; the margin was 0",
)  # fmt: skip
