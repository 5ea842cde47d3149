"""SimPO: preferences without a reference model; a reply's reward is its mean log-probability, with a target margin.

    loss = -log sigmoid(beta / |y_w| log pi(y_w) - beta / |y_l| log pi(y_l) - gamma)

Unlike DPO's log-ratio, this reward is the quantity that decoding maximises, and it does not depend on length.

Meng et al. 2024, arXiv:2405.14734; beta = 2 and gamma = 1 are those of the released llama-3-8b-base-simpo.yaml
(princeton-nlp/SimPO, 15c4ff8), which states gamma over beta.
"""

import torch.nn.functional as F
from torch import Tensor

from rewardlab.checks.claim import START, Check, Within
from rewardlab.core import Batch, Outputs, Recipe, Run, Update, objective
from rewardlab.data.columns import Data
from rewardlab.evals.pairs import preference_margins
from rewardlab.evals.passk import accuracy
from rewardlab.methods.baselines.sft import sft_first
from rewardlab.objectives.pairs import margin, row_sum
from rewardlab.rollouts.recorded import recorded


@objective(unit="group")
def simpo_loss(out: Outputs, batch: Batch, run: Run, *, beta: float = 2.0, gamma: float = 1.0) -> Tensor:
    """gamma: how far the preferred reply should lead, in units of beta times nats per token."""
    mean_logprob = row_sum(out.logprobs, batch) / batch.mask.sum(1).clamp(min=1)  # (B,) nats per token
    return -F.logsigmoid(beta * margin(mean_logprob, batch) - gamma)


def simpo(
    base: Recipe | None = None,
    *,
    beta: float = 2.0,
    gamma: float = 1.0,
    lr: float | None = None,
    problems: int = 32,
    sft_steps: int = 0,
) -> Recipe:
    """problems: pairs per step; the data has columns `chosen` and `rejected`.  sft_steps: of SFT on the chosen, as in `dpo`."""
    base = base or Recipe(name="simpo", measure=accuracy(), update=Update())
    return base.but(
        rollout=recorded(fields=("chosen", "rejected")),
        objective=simpo_loss(beta=beta, gamma=gamma),
        loop=sft_first(steps=sft_steps) if sft_steps else base.loop,
        lr=lr,
        loss_kind="preference",
        small_lr=None,
        problems=problems,
    )


fidelity = "whole"
data = Data(chosen="the better reply", rejected="the worse reply")

# by construction: what is compared is the number that its own loss raises
check = Check(
    says="the mean log-probability, by which replies are generated, ranks pairs of unequal length right more often than after DPO",
    versus="dpo", task="preferences:writer=policy,biased=0.75,error=0.1,longer=0.5", measure="likelier_per_token",
    direction="higher", margin=0.08, settings={"lr": 1e-3}, versus_settings={"lr": 3e-4}, by=preference_margins(), steps=40,
    fault=Within("likelier_per_token", high=0.85, says="pairs ranked right by DPO's mean log-probability"), learns=None,
    start=START, sanity=True,
    tried="each side at 1e-4, 3e-4, 1e-3: at 1e-3 .66 for SimPO, .485 for DPO at all; longer=0.8, at 1e-4: .49 for both",
    finding="the mean log-probability ranks 48% of pairs right before and after DPO, since the reply with extra lines decides, and "
    "64% after SimPO, whose loss raises this number. Its replies lose likelihood meanwhile, -2.0 to -4.2 per token",
    version=2, replaces="its pairs were of equal length, which deletes what SimPO is about",
)  # fmt: skip
