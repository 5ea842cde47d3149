"""Absolute Zero: one policy proposes its own tasks and solves them; a proposal is rewarded for being learnable. No data is used.

    r_propose = 0 if all n solutions of the task are right or none is, else 1 - their share;   r_solve = 1[right]
    wrong or without a value: -1/2;  unreadable: -1
    A = (r - mean) / std over the rows of one kind (deduction, abduction, induction) and role (propose, solve): six baselines

language="python" is for pretrained models, as in the paper: prompts say what is asked and in which form, programs run in the
sandbox, and one that gives another result the second time is no task. The default is the small total language of the task
`triplets`, whose small model has seen careless solutions and random proposals. The n solutions that measure a proposal also train
the solver (the paper samples others for it). Problems of the task are never read in training.

Zhao et al. 2025, arXiv:2505.03335
"""

from typing import Literal

import torch
from torch import Tensor

from rewardlab.core import Batch, Problem, Recipe, Run, credit, measure
from rewardlab.evals.passk import count_right, mean_interval
from rewardlab.methods.baselines.grpo import grpo
from rewardlab.objectives.weighting import token_mean
from rewardlab.proof.claim import Claim
from rewardlab.tasks.triplets.rewards import solved_or_learnable
from rewardlab.tasks.triplets.rollout import self_play
from rewardlab.tasks.triplets.triplet import KINDS


@credit
def by_kind_and_role(a: Tensor, batch: Batch, run: Run, *, proposer: float = 1.0, eps: float = 1e-4) -> Tensor:
    """Every decision gets its row's reward, normalised over the rows of its tag; `proposer` scales that of proposals.

    Rows without a verdict get 0. The only row of its tag has nothing to be compared with, and gets 0.
    """
    tags = [t.tag for t, _ in batch.rows]
    rewards, judged, advantages = a.sum(1), batch.rewarded.any(1), torch.zeros(len(a), device=a.device)
    # tags in the order of the batch, not of a set, which differs from process to process
    for tag in dict.fromkeys(tags):
        rows = torch.tensor([t == tag for t in tags], device=a.device) & judged
        # the standard deviation of one number is NaN
        if int(rows.sum()) > 1:
            scale = proposer if tag.startswith("propose") else 1.0
            advantages[rows] = scale * (rewards[rows] - rewards[rows].mean()) / (rewards[rows].std() + eps)
    return torch.where(batch.mask, advantages[:, None], 0.0)


@measure
def solved(problems: list[Problem], run: Run) -> dict[str, float]:
    """pass@1 of held-out tasks, which are never proposed in training, with its 95% interval; and pass@1 of each kind."""
    right = [float(row[0]) for row in count_right(problems, run, 1, 1.0)]
    low, high = mean_interval(right)
    kinds = [p.meta.get("kind") for p in problems]
    by_kind = {k: [r for r, kind in zip(right, kinds, strict=True) if kind == k] for k in KINDS}
    overall = {"pass@1": sum(right) / len(right), "ci95_low": low, "ci95_high": high, "n": float(len(right))}
    return overall | {k: sum(v) / len(v) for k, v in by_kind.items() if v}


def absolute_zero(
    base: Recipe | None = None, *, n: int = 8, past: int = 2, proposer: float = 1.0, temperature: float = 1.0,
    language: Literal["list", "python"] = "list",
) -> Recipe:  # fmt: skip
    """n: solutions of each task.  past: tasks that a proposer is shown.  proposer: weight of its credit; 0 leaves it as it is.
    language: of programs."""
    base = base or grpo()
    return base.but(
        rollout=self_play(n=n, past=past, temperature=temperature, language=language),
        reward=solved_or_learnable(),
        credit=by_kind_and_role(proposer=proposer),
        weighting=token_mean(),
        measure=solved(),
    )


claim = Claim(
    says="a proposer that learns to pose learnable tasks teaches the solver more than one that does not learn",
    versus="absolute_zero", task="triplets", measure="pass@1", direction="higher", margin=0.02, versus_settings={"proposer": 0.0},
    steps=60,
    version=3, replaces="all tasks of induction were of the program that changes nothing; in 60 updates neither solver got better",
)  # fmt: skip
baseline = "grpo"
