"""Nemotron-4 RPO, reward-aware preference optimisation: the gap between two replies is learnt, and not just made wide.

    implicit gap  a = beta [log pi/ref(y_c) - log pi/ref(y_l)],    gap of the reward model  b = eta [r*(y_c) - r*(y_l)]
    D[a || b] = sigmoid(b) log(sigmoid(b) / sigmoid(a)) + (1 - sigmoid(b)) log((1 - sigmoid(b)) / (1 - sigmoid(a)))
    L = D[a || b] - sft log pi(y_c)

DPO widens every gap without end, also between two good replies, and so unlearns the rejected one, which may be nearly as good, and
often the chosen one with it. D is 0 at a = b: replies that are equally good stay as likely as they are, beside each other.

Nvidia 2024, arXiv:2406.11704, section 3.3.2, and the released loss (NVIDIA/NeMo-Aligner, megatron_gpt_dpo_model.py, `rpo_bwd_kl`;
its other distances are rpo_fwd_kl, with a and b in each other's place, and rpo_sq, (a - b)^2). eta = 1 as in the code
(gt_reward_scale), beta = 0.2 is the code's ref_policy_kl_penalty, sft = 1e-5 (inferred). The reward r* is of the data
(`chosen_score`, `rejected_score`) or a reward model (score=). In the paper RPO follows DPO, three times over, each time from the
checkpoint before: train again with --model RUN.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from rewardlab.checks.claim import Check, Within
from rewardlab.core import Batch, Outputs, Problem, Recipe, Run, Trajectory, measure, objective
from rewardlab.data.columns import Column, Data
from rewardlab.errors import RewardlabError
from rewardlab.evals.passk import mean_interval
from rewardlab.methods.baselines.dpo import dpo
from rewardlab.objectives.pairs import margin, row_sum
from rewardlab.rewards.recorded import score_in_data
from rewardlab.rewards.reward import Reward
from rewardlab.rollouts.recorded import recorded
from rewardlab.settings.domain import PositiveFloat
from rewardlab.worlds.notes import note_quality

SIDES = ("chosen", "rejected")


def bernoulli_kl(a: Tensor, b: Tensor) -> Tensor:
    """KL(Bernoulli(sigmoid(b)) || Bernoulli(sigmoid(a))), from log-odds: D[a || b]."""
    # logsigmoid stays finite where log(1 - sigmoid(x)) would be log(0)
    yes, no = F.logsigmoid(b), F.logsigmoid(-b)
    return yes.exp() * (yes - F.logsigmoid(a)) + no.exp() * (no - F.logsigmoid(-a))


@objective(unit="group", needs=("ref",))
def rpo_loss(
    out: Outputs, batch: Batch, run: Run, *, beta: PositiveFloat = 0.2, eta: PositiveFloat = 1.0,
    distance: Literal["backward", "forward", "squared"] = "backward",
) -> Tensor:  # fmt: skip
    """(G,) the distance of beta (log pi/ref of the preferred - of the other) from eta (reward of the preferred - of the other).

    A pair without both rewards teaches nothing.  distance: "backward", D[a || b] of the paper; "forward", D[b || a]; "squared".
    """
    a = beta * margin(row_sum(out.logprobs - batch.ref, batch), batch)
    b = eta * margin(row_sum(batch.reward, batch), batch)
    losses = (a - b).square() if distance == "squared" else bernoulli_kl(a, b) if distance == "backward" else bernoulli_kl(b, a)
    known = batch.rewarded.any(1)
    return torch.where(known[::2] & known[1::2], losses, 0.0)


@objective(unit="group")
def likely_preferred(out: Outputs, batch: Batch, run: Run) -> Tensor:
    """(G,) -log pi of the preferred reply, summed over its tokens."""
    said = -row_sum(out.logprobs, batch)
    margin(said, batch)  # refuses groups of another size than two
    return said[::2]


@measure
def gaps_learnt(
    problems: Sequence[Problem], run: Run, *, score: Reward | None = None, beta: PositiveFloat = 0.2, eta: PositiveFloat = 1.0
) -> dict[str, float]:
    """How far the implicit gaps of held-out pairs are those of the reward, teacher-forced.

    preferred: the share of pairs in which a > 0, ties half.  gap_error: the mean of |a - b|, in log-odds.  gap_correlation:
    Pearson's, over pairs; 0 where either gap never differs.  gap: the mean of a.  chosen_logprob: that of log pi of the chosen.
    """
    if run.reference is None:
        raise RewardlabError("gaps_learnt needs a reference policy, and this method has none")
    groups = recorded(fields=SIDES)(list(problems), run)
    paid = [[s.total for s in row] for row in (score or score_in_data())(groups, run)]
    known = [(group, row[0] - row[1]) for group, row in zip(groups, paid, strict=True) if row[0] is not None and row[1] is not None]
    if not known:
        raise RewardlabError(
            "no held-out pair has a reward for both replies: give the columns chosen_score and rejected_score, or score=..."
        )
    now, ref = (_said(model, [t for group, _ in known for t in group]) for model in (run.policy, run.reference))
    a, b = beta * ((now - ref)[:, 0] - (now - ref)[:, 1]), eta * np.array([gap for _, gap in known])
    wins = np.where(a == 0, 0.5, a > 0)
    low, high = mean_interval(wins.tolist())
    varied = len(a) > 1 and a.std() > 0 and b.std() > 0
    return {
        "preferred": float(wins.mean()), "ci95_low": low, "ci95_high": high, "n": float(len(a)),
        "gap_error": float(np.abs(a - b).mean()), "gap_correlation": float(np.corrcoef(a, b)[0, 1]) if varied else 0.0,
        "gap": float(a.mean()), "chosen_logprob": float(now[:, 0].mean()),
    }  # fmt: skip


def _said(model: object, rows: Sequence[Trajectory]) -> np.ndarray:
    """(n, 2) log-probs of both replies of n pairs."""
    scored = zip(rows, model.score(rows), strict=True)  # type: ignore[attr-defined]
    return np.array([logprobs[t.mask].sum(dtype=np.float64) for t, logprobs in scored]).reshape(-1, 2)


def nemotron_4_340b(
    base: Recipe | None = None, *, score: Reward | None = None, beta: float = 0.2, eta: float = 1.0, sft: float = 1e-5,
    distance: str = "backward", lr: float | None = None, problems: int = 32,
) -> Recipe:  # fmt: skip
    """score: the reward r*; None: that of the base, else what stands in the data.  beta, eta: of the implicit gap and of that of
    the reward.  sft: weight of the likelihood of chosen replies.  distance: as in `rpo_loss`.  problems: pairs per step."""
    base = base or dpo(beta=beta, lr=lr, problems=problems)
    loss = rpo_loss(beta=beta, eta=eta, distance=distance)
    paid = score or base.reward or score_in_data()
    return base.but(
        rollout=recorded(fields=SIDES),
        reward=paid,
        measure=gaps_learnt(score=paid, beta=beta, eta=eta),
        objective=loss + sft * likely_preferred() if sft else loss,
    )


fidelity = "core"
left_out = (
    "the reward model that regresses the five attributes of HelpSteer2 by a head of five outputs, whose weighted sum is r*, is the "
    "method attribute_regression: give its run, score=model:RUN, or the scores themselves; the synthetic prompts and replies, "
    "staged SFT, DPO before RPO (the method dpo) and the three iterations, which are three runs"
)
data = Data(
    chosen="the better reply",
    rejected="the worse reply",
    chosen_score=Column("the reward of the better reply; not with a score of your own", optional=True),
    rejected_score=Column("the reward of the worse reply", optional=True),
    rows=[
        {
            "prompt": "Name a planet, in a few words.", "chosen": "Mars.", "rejected": "There are many, of which one is Mars.",
            "chosen_score": 3.5, "rejected_score": 1.0,
        },
        {
            "prompt": "Why do leaves fall?", "chosen": "Trees save water in winter.", "rejected": "To save water in winter.",
            "chosen_score": 3.0, "rejected_score": 2.8,
        },
        {
            "prompt": "How does one boil an egg?", "chosen": "Seven minutes in boiling water.", "rejected": "In a pan, somehow.",
            "chosen_score": 3.2, "rejected_score": 0.4,
        },
    ],
)  # fmt: skip

check = Check(
    says="after RPO the implicit gaps of held-out pairs follow those of the true reward more closely than after DPO, as far as "
    "they correlate",
    versus="dpo", task="notes", measure="gap_correlation", direction="higher", margin=0.05,
    settings={"score": note_quality(), "eta": 10.0, "sft": 0.0, "lr": 3e-4}, versus_settings={"beta": 0.2, "lr": 3e-4},
    by=gaps_learnt(score=note_quality(), eta=10.0), steps=40,
    fault=Within("gap_error", low=0.5, says="log-odds by which the gaps after DPO miss those of the reward"),
    moved=Within("gap_error", high=-0.2, says="log-odds by which gaps miss those of the reward"),
    finding="Stopped after 5 pairs of runs, undecided: 40 updates of the small policy, 32 pairs of notes each. The correlation of "
    "the implicit gaps with the true ones is .57 after RPO and .52 after DPO; gaps miss the reward's by 1.59 and 1.65 in log-odds, "
    "so that what RPO is to mend is hardly moved in so few updates",
)  # fmt: skip
baseline = "dpo"
