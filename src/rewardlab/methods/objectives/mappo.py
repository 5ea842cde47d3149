"""MaPPO: scale the rejected reply's term by a reward model's prior, so that near-ties are not pushed apart.

    loss = -log sigmoid(beta log pi/ref(y_w) - D beta log pi/ref(y_l)),    D = r_w - r_l in [0, 1],  r: prior rewards in [0, 1]
    SimPO: -log sigmoid(beta/|y_w| log pi(y_w) - D beta/|y_l| log pi(y_l) - gamma)
    IPO:   (log pi/ref(y_w) - D log pi/ref(y_l) - 1/(2 tau))^2

DPO widens the gap of any pair alike, mostly by making the rejected reply less likely; where both are good, that drains good replies
of probability, and the chosen one falls along with the other. D = 1 is the method below, D = 0 leaves the rejected reply alone.
There is nothing to tune. It works on any pairwise loss: simpo+mappo, ipo+mappo; rip+mappo and xwin_lm+mappo rank own replies.

Lan et al. 2025, arXiv:2507.21183v5, equations 8, 12 and 14; no code is public. Scores without bounds, as a reward model's own are,
go through the logistic function first, as in the paper (appendix D.2.4): `scale=None`. (inferred): division by `scale` for grades
in a known range; D = 0 for a pair whose rejected reply has the higher score (in the paper scores choose the pair); D = 1 without
both scores. The paper's pairs are the best and the worst of 8 replies of the policy before training (`n=8`) by a frozen reward
model.

rewardlab data pairs makes scored pairs of several scored replies; coig_p+mappo --scale 10 takes its grades; mappo --n 8 and
rip+mappo take --reward-model PATH; a reward of one's own is score=....
"""

import torch
from torch import Tensor

from rewardlab.checks.claim import Check, Within
from rewardlab.core import Batch, Recipe, Run, credit
from rewardlab.data.columns import Column, Data
from rewardlab.errors import RewardlabError
from rewardlab.evals.pairs import preference_margins
from rewardlab.methods.baselines.dpo import dpo
from rewardlab.methods.baselines.rlhf import rlhf
from rewardlab.objectives.pairs import margin, row_sum, weigh_by_credit
from rewardlab.rewards.recorded import score_in_data
from rewardlab.rewards.reward import Reward
from rewardlab.rollouts.ranked import ranked
from rewardlab.settings.domain import PositiveFloat
from rewardlab.worlds.notes import note_quality


@credit
def prior_gap(a: Tensor, batch: Batch, run: Run, *, by: Reward | None = None, scale: PositiveFloat | None = 1.0) -> Tensor:
    """1 at the positions of the preferred reply, D at those of the other: weights for `credit_weighted`, not advantages.

    by: the prior reward; None: the recipe's, and where it has none, what stands in the data.  scale: as in `mappo`.
    """
    prior = _scores(batch, run, by)  # (B,) NaN without a score
    prior = torch.sigmoid(prior) if scale is None else _in_unit(prior, scale)
    gap = margin(prior, batch).clamp(0, 1)  # (G,)
    if bool(gap.isnan().all()):
        raise RewardlabError(
            "no pair has a score for both of its replies: the data needs the columns chosen_score and rejected_score, "
            "as `rewardlab data pairs` writes them, or give a reward (score=...)"
        )
    gap = gap.nan_to_num(1.0)
    run.log("prior_gap", float(gap.mean()))
    weight = torch.ones_like(a)
    weight[1::2] = gap[:, None]
    return weight


def _in_unit(prior: Tensor, scale: float) -> Tensor:
    """Scores from 0 to `scale` over it. Raises RewardlabError for others: cut off at 1, a gap would be that of DPO."""
    for score in prior.tolist():
        if score < 0 or score > scale:
            raise RewardlabError(
                f"a prior score of {score:g} is not from 0 to {scale:g}: give the range of the scores (scale=10), or, where they "
                "have no bounds, scale=None"
            )
    return prior / scale


def _scores(batch: Batch, run: Run, by: Reward | None) -> Tensor:
    if by is None and bool(batch.rewarded.any()):
        return torch.where(batch.rewarded.any(1), row_sum(batch.reward, batch), torch.nan)
    rows = [t for t, _ in batch.rows]
    # each pair is a group, so that rewards that compare replies compare these two
    scores = (by or score_in_data())([rows[i : i + 2] for i in range(0, len(rows), 2)], run)
    totals = [torch.nan if s.total is None else s.total for row in scores for s in row]
    return torch.tensor(totals, device=batch.ids.device)


def mappo(
    base: Recipe | None = None, *, score: Reward | None = None, scale: float | None = 1.0, n: int = 0,
    reward_model: str = "value-head",
) -> Recipe:  # fmt: skip
    """score: the prior reward; None: that of the base, else what stands in the data.  scale: its range, which it is divided by;
    None: it has no bounds, as the score of a reward model, of which it is the default.  n: the pair is the best and the worst of n
    own replies, by the prior reward, or where there is none by a reward model (`rlhf`), which is taught on the data's pairs unless
    `reward_model` names one that was trained before; 0: the pair is that of the base's rollout.
    """
    base = base or dpo()
    objective = weigh_by_credit(base.objective, base.credit, "mappo")
    if n:
        base = rlhf(base, score=score, reward_model=reward_model) if base.reward is None else base
        base = base.but(rollout=ranked(by=score or base.required("reward"), n=n))
    prior = score or base.reward
    if scale == 1.0 and prior is not None and any(part.name == "model_score" for part in prior.walk()):
        scale = None
    return base.but(credit=prior_gap(by=score, scale=scale), objective=objective)


fidelity = "whole"
data = Data(
    chosen=Column("the better reply; not where own replies are ranked (n) by a reward or model of your own", optional=True),
    rejected=Column("the worse reply", optional=True),
    chosen_score=Column("how good the better reply is; not with a score of your own", optional=True),
    rejected_score=Column("how good the worse reply is", optional=True),
    rows=[
        {
            "prompt": "Name a planet, in a few words.",
            "chosen": "Mars.",
            "rejected": "There are many planets, of which one is Mars.",
            "chosen_score": 9,
            "rejected_score": 5,
        },
        {
            "prompt": "Why do leaves fall?",
            "chosen": "Trees save water in winter.",
            "rejected": "Because of gravity alone.",
            "chosen_score": 8,
            "rejected_score": 2,
        },
        {
            "prompt": "How does one boil an egg?",
            "chosen": "Seven minutes in boiling water.",
            "rejected": "In a pan, somehow.",
            "chosen_score": 7,
            "rejected_score": 3,
        },
    ],
)

check = Check(
    says="where many pairs are near-ties, chosen and rejected replies lose less likelihood than after DPO, and are told apart",
    versus="dpo", task="notes", measure="kl", direction="lower", margin=4.0,
    settings={"score": note_quality(), "lr": 3e-4}, versus_settings={"lr": 3e-4}, by=preference_margins(), steps=40,
    guard=Within("preferred", low=-0.05), fault=Within("kl", low=0.5, says="nats that the replies of a pair lose after DPO"),
    moved=Within("rejected_logprob", low=0.1, says="log-likelihood of the rejected reply"), learns=None, start=None,
    finding="a reply of a pair loses 8.7 nats of likelihood by DPO and .7 by MaPPO, which ranks no fewer pairs right (89%, DPO "
    "80%). It moves less altogether: whether what it writes becomes better is not tested",
)  # fmt: skip
baseline = "dpo"
system = "mappo-map-preference-optimization"
