"""Implicit PRM: an outcome reward model as a log-likelihood ratio scores every step, without step labels.

    r(y) = beta log prm(y) / ref(y), learnt from outcomes alone;    q_k = beta sum over tokens up to step k of log(prm / ref)

Whatever loss r is learnt by (cross-entropy, DPO, KTO, NCA), q_k is the soft value of the reply after step k, and q_k - q_{k-1}
its process reward (`implicit_steps`). Math-Shepherd continues every step many times for such labels. Of n replies that one is
chosen whose least q_k is highest.

Yuan et al. 2024, arXiv:2412.01981. The cross-entropy, beta = 0.05 and the loss names are those of its text and released README
(PRIME-RL/ImplicitPRM, c044175); that q_k sums from the first token on is as others' code reads its models (aster2024/SPRM,
ae8c6f0, eval/get_baseline_rewards_implicit_prm.py). There the model learns once, from a file of replies with outcomes; here it
learns beside the policy, which stays as it is, from what the policy samples.
(inferred): the least q_k as a reply's score (`score="last"` takes r itself), KTO's reference point, which is the group's mean, n.
Votes weighted by the scores are measured beside as `voted`. PRIME is this model, by cross-entropy, as a reward in training. Steps
are lines; they are needed only where it chooses.
"""

from __future__ import annotations

from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor

from rewardlab.checks.claim import Claim, Within
from rewardlab.core import Batch, Learner, Outputs, Recipe, Run, Update, objective
from rewardlab.data.columns import Data
from rewardlab.evals.reranked import reranked
from rewardlab.objectives.pairs import row_sum
from rewardlab.rewards.algebra import aggregate
from rewardlab.rewards.implicit import implicit_steps
from rewardlab.rewards.task import correct
from rewardlab.rollouts.independent import independent
from rewardlab.settings.domain import PositiveFloat

# ----------------------------------------------------------------------------------------------------------------------
#
# Losses of a language model whose likelihood, relative to a reference, is to be a reward: from outcomes of replies alone.
#
# r = beta sum over tokens of log(model / reference)
#
# ce     -[o log sigmoid(r) + (1 - o) log(1 - sigmoid(r))], o whether the reply is right: r is its log-odds
# dpo    -log sigmoid(r_w - r_l) of each right reply w and wrong reply l to the same problem   (Rafailov et al., arXiv:2305.18290)
# kto    1 - sigmoid(r - z) if it is right, 1 - sigmoid(z - r) if not; z = max(0, mean of r), without gradient
#        (Ethayarajh et al. 2024, arXiv:2402.01306)
# nca    -log sigmoid(r_w) - log sigmoid(-r_w) / 2 - log sigmoid(-r_l) / 2 of the pairs of dpo
#            (Chen et al. 2024, arXiv:2402.05369)


@objective(unit="group", needs=("ref",))
def ratio_from_outcomes(
    out: Outputs, batch: Batch, run: Run, *, beta: PositiveFloat = 0.05, loss: Literal["ce", "dpo", "kto", "nca"] = "ce"
) -> Tensor:
    """(G,) the mean loss of a group's replies, or of its pairs of a right and a wrong one; 0 where there is none.

    A reply is right if its rewards sum to more than 0; one without a verdict teaches nothing.  loss: as at the top of this file.
    """
    said = beta * row_sum(out.logprobs - batch.ref, batch)
    right, judged = row_sum(batch.reward, batch) > 0, batch.rewarded.any(1)
    same = batch.group[:, None] == batch.group
    if loss in ("dpo", "nca"):
        counted = same & (right & judged)[:, None] & (~right & judged)
        losses = F.softplus(said - said[:, None]) if loss == "dpo" else _contrast(said[:, None], said)
        losses, count = torch.where(counted, losses, 0.0).sum(1), counted.sum(1)
    else:
        z = _reference_point(said.detach(), same & judged) if loss == "kto" else 0.0
        signed = torch.where(right, said - z, z - said)
        losses, count = torch.where(judged, torch.sigmoid(-signed) if loss == "kto" else F.softplus(-signed), 0.0), judged
    zeros = said.new_zeros(batch.groups)
    return zeros.index_add(0, batch.group, losses) / zeros.index_add(0, batch.group, count.to(said)).clamp(min=1)


def _contrast(better: Tensor, worse: Tensor) -> Tensor:
    # -log sigmoid(x) = softplus(-x)
    return F.softplus(-better) + (F.softplus(better) + F.softplus(worse)) / 2


def _reference_point(said: Tensor, of: Tensor) -> Tensor:
    """(B,) for each row the mean over the judged rows of its group, at least 0."""
    return (torch.where(of, said, 0.0).sum(1) / of.sum(1).clamp(min=1)).clamp(min=0)


# ---- the recipe ---------------------------------------------------------------------------------------------------------


def implicit_prm(
    base: Recipe | None = None, *, loss: Literal["ce", "dpo", "kto", "nca"] = "ce", beta: float = 0.05, n: int = 4,
    score: Literal["min", "last"] = "min", choose: int = 8, lr: float | None = None, epochs: int = 1,
) -> Recipe:  # fmt: skip
    """n: replies per problem; dpo and nca learn from problems with a right and a wrong one.  score: what a reply is worth, of its
    q_k.  choose: replies to choose from when it is measured.  lr, epochs: of the model.
    """
    base = base or Recipe(name="implicit_prm", reward=correct(), update=Update(problems=8))
    prm = Recipe(
        objective=ratio_from_outcomes(loss=loss, beta=beta),
        update=Update(lr=lr, epochs=epochs, loss_kind="preference", small_lr=3e-4),
    )
    values = implicit_steps(model="prm", beta=beta, form="value")
    return base.but(
        # no objective of its own: the policy samples, and stays as it is
        rollout=independent(n=n),
        measure=reranked(by=aggregate(values, by=score), n=choose),
        also=(*base.also, Learner("prm", "copy:policy", prm)),
    )


fidelity = "core"
left_out = (
    "cross-entropy on as many right as wrong replies, in all or of each problem, two variants of its table; models without a "
    "reference at test time; and KTO's own reference point, from replies to other prompts"
)
data = Data(answer="the gold answer")

claim = Claim(
    says="taught by outcomes alone, it picks right ones of 8 oftener than a head taught by four continuations of every step",
    versus="er_prm", task="arithmetic:biased=0.75,error=0.1", measure="reranked", direction="higher", margin=0.12,
    settings={"beta": 0.5}, versus_settings={"eta": 0.0, "init": "embedded:arithmetic:judge", "lr": 3e-4, "problems": 8},
    problems=300, steps=30, fault=Within("by_auc", low=0.6, says="right replies above wrong ones, by the head"),
    judge=Within("by_auc", low=0.6, says="right replies above wrong ones to the same problem, by the model"), learns=None,
    finding="taught by one verdict for each reply it picks a right one of 8 for 47% of the problems, as does a head taught by "
    "four continuations of every step; one sample is right in 38%, the majority in 48%. It tells right from wrong about as well "
    "(AUC .75, .71) at fewer tokens (132,000 and 152,000). beta is .5, not .05: replies here are short",
    version=2, replaces="the head, on the policy's own trunk, had hardly learnt (AUC .55): it could not have been worse",
)  # fmt: skip
baseline = None
