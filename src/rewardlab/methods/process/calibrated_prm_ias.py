"""Calibrated PRM with IAS: quantile regression of success rates; a low quantile sets the number of samples per problem.

    quantile model:  max(tau d, (tau - 1) d),  d = share of right continuations - sigmoid(V),    at the prompt and after each step
    samples:         N(x) = log(1 - C) / log(1 - p_low(x)), from 1 to `choose`;    answer: the best of N(x) by the median

p_low is what the share of right continuations falls short of in one case out of ten. A model that is too sure of a hard problem
gives it too few samples; one that doubts its forecast gives more. Models taught that a step is right if any continuation is, or on
solutions of stronger policies, are too sure: `calibrated=False` is such a one, and its only number says how many samples there are.

Park et al. 2025, arXiv:2506.09338. The loss, C = 0.99, the chances' limits, and the last step's number as a reply's score are as
in the released code (young-j-park/prm-calibration, 4abcb99, trainer/qwen_trainer.py, utils/ias.py). Its three quantiles, .1, .5
and .9, have one head; here each is a model of its own, of which two are used. It labels with 8 replies to a problem and 8
continuations of each step at temperature .7 (ReadMe.md); here 4, 4 and 1, the first two settings. Both draw up to 64 samples: with
C = 0.99 a most of 8 is asked for wherever p_low is below .44, and tells problems apart no more. The label of the prompt is the
share of right replies in its group. Steps are lines.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from rewardlab.checks.claim import Claim, Within
from rewardlab.core import (
    Batch,
    Learner,
    Outputs,
    Problem,
    Recipe,
    Run,
    Sampling,
    Trajectory,
    Update,
    credit,
    measure,
    objective,
    with_surprise,
)
from rewardlab.data.columns import Data
from rewardlab.errors import RewardlabError
from rewardlab.evals.passk import mean_interval
from rewardlab.evals.reranked import auc_within
from rewardlab.objectives.step_labels import step_loss
from rewardlab.rewards.algebra import aggregate, threshold
from rewardlab.rewards.model import step_score
from rewardlab.rewards.monte_carlo import monte_carlo_steps
from rewardlab.rewards.reward import Reward
from rewardlab.rollouts.independent import independent
from rewardlab.settings.domain import NonNegativeFloat, PositiveInt, Share
from rewardlab.util.outputs import last_values

# ---- Best-of-n where a model that foretells success says how many samples each problem gets --------------------------

NEVER = 1e-4
"""Chances are kept so far from 0 and 1."""


def samples_for(p: float, confidence: float, most: int) -> int:
    """How many samples, each right with chance p, hold a right one with this confidence: log(1 - C) / log(1 - p), 1 to `most`."""
    p = min(1 - NEVER, max(NEVER, p))
    return max(1, min(most, math.ceil(math.log(1 - confidence) / math.log(1 - p))))


@measure
def adaptive_best_of_n(
    problems: Sequence[Problem], run: Run, *, by: Reward, model: str = "prm", low: str = "low", confidence: NonNegativeFloat = 0.99,
    n: PositiveInt = 8, temperature: NonNegativeFloat = 1.0,
) -> dict[str, float]:  # fmt: skip
    """Accuracy of best-of-n under the reward `by`, with as many samples as a conservative forecast of success asks for, at most n.

    model, low: models whose value at the end of the prompt is the log-odds that a reply to it will be right; `low` says how many
    samples (`samples_for`).  adaptive: the accuracy; fixed: of the best of n; even: of the best of as many for every problem as the
    adaptive choice takes in the mean, rounded.  samples: that mean.  capped: the share of problems with n.  brier, overestimate:
    the mean of (p - share)^2, and of p - share, p what `model` says and share that of right ones among the n.  by_auc: as in
    `reranked`. All of the same samples, of which the first ones count; of replies paid alike, the first.
    """
    if run.verify is None:
        raise RewardlabError("adaptive_best_of_n needs the task's verifier, and this run has none: name a task")
    if not 0 < confidence < 1:
        raise RewardlabError(f"adaptive_best_of_n: confidence is {confidence:g}; give a number between 0 and 1")
    prompts = run.policy.read([Trajectory(p) for p in problems], [p.prompt for p in problems])
    said, cautious = (1 / (1 + np.exp(-np.clip(last_values(run.model(name), prompts), -60, 60))) for name in (model, low))
    done = run.policy.extend([t for t in prompts for _ in range(n)], Sampling(run.max_new, temperature), run.rng("eval"))
    groups = [done[i : i + n] for i in range(0, len(done), n)]
    right = [[s.value is not None and s.value >= 1.0 for s in row] for row in run.verify(groups, run)]
    paid = [[-math.inf if s.total is None else s.total for s in row] for row in by(groups, run)]
    counts = [samples_for(float(p), confidence, n) for p in cautious]
    level = round(float(np.mean(counts)))
    adaptive, fixed, even = (
        [_best(*x) for x in zip(paid, right, among, strict=True)] for among in (counts, [n] * len(counts), [level] * len(counts))
    )
    off = said - np.array([np.mean(row) for row in right])
    bounds = mean_interval(adaptive)
    return {
        "adaptive": float(np.mean(adaptive)), "ci95_low": bounds[0], "ci95_high": bounds[1], "n": float(len(groups)),
        "fixed": float(np.mean(fixed)), "even": float(np.mean(even)), "samples": float(np.mean(counts)),
        "capped": float(np.mean([k == n for k in counts])),
        "pass@1": float(np.mean(right)), "brier": float((off**2).mean()), "overestimate": float(off.mean()),
        "by_auc": auc_within(paid, right),
    }  # fmt: skip


def _best(paid: Sequence[float], right: Sequence[bool], k: int) -> bool:
    return right[int(np.argmax(paid[:k]))]


# ---- the recipe ---------------------------------------------------------------------------------------------------------

UNKNOWN = -1.0


@credit
def share_of_group(a: Tensor, batch: Batch, run: Run, *, hard: bool = False) -> Tensor:
    """At all positions, the share of the group's replies whose last label is 1; UNKNOWN without a label.  hard: whether any is."""
    judged = batch.rewarded.any(1)
    last = batch.width - 1 - batch.rewarded.flip(1).int().argmax(1)
    right = (a.gather(1, last[:, None]).squeeze(1) >= 1.0) & judged
    counts = a.new_zeros(2, batch.groups).index_add(1, batch.group, torch.stack((right, judged)).to(a))
    share = (counts[0] > 0).to(a) if hard else counts[0] / counts[1].clamp(min=1)
    return torch.where(counts[1] > 0, share, UNKNOWN)[batch.group][:, None].expand_as(a)


@objective(unit="row", wants=("value",))
def value_from_prompt(
    out: Outputs, batch: Batch, run: Run, *, loss: Literal["quantile", "bce"] = "quantile", tau: Share = 0.5
) -> Tensor:
    """`value_of_steps` with a label at the end of the prompt too: the row's credit, unless it is UNKNOWN."""
    first = batch.mask.int().argmax(1, keepdim=True)
    share, before = batch.credit.gather(1, first), (first - 1).clamp(min=0)
    reward, rewarded = batch.reward.scatter(1, before, share), batch.rewarded.scatter(1, before, share != UNKNOWN)
    return step_loss(out.value, replace(batch, reward=reward, rewarded=rewarded), loss, 0.0, tau)


def calibrated_prm_ias(
    base: Recipe | None = None, *, low: float = 0.1, confidence: float = 0.99, n: int = 4, continuations: int = 4, choose: int = 64,
    calibrated: bool = True, init: str = "value-head", surprise: bool = False, lr: float | None = None, epochs: int = 1,
) -> Recipe:  # fmt: skip
    """low: the cautious quantile.  confidence: C, that a right reply is among the samples.  n, continuations: replies per
    problem, and tries from each of their steps, to label it.  choose: the most samples.  init, lr, epochs: of the models
    (`Learner.init`).  surprise: it also reads the surprise of the policy (`Learner.init`), which no paper has.
    """
    base = base or Recipe(name="calibrated_prm_ias", update=Update(problems=8))
    shares, update = monte_carlo_steps(n=continuations), Update(lr=lr, epochs=epochs, loss_kind="scorer")
    loss, quantiles = ("quantile", {"prm": 0.5, "low": low}) if calibrated else ("bce", {"prm": 0.5})
    label = share_of_group(hard=not calibrated)
    models = {
        name: Recipe(credit=label, objective=value_from_prompt(loss=loss, tau=tau), update=update)
        for name, tau in quantiles.items()
    }
    by, asked = aggregate(step_score(model="prm"), by="last"), "low" if calibrated else "prm"
    return base.but(
        # no objective of its own: the policy samples, continues, and stays as it is
        rollout=independent(n=n, steps="newline"),
        reward=shares if calibrated else threshold(shares, at=1 / (2 * continuations)),
        measure=adaptive_best_of_n(by=by, low=asked, confidence=confidence, n=choose),
        also=(*base.also, *(Learner(name, with_surprise(init, surprise), recipe) for name, recipe in models.items())),
    )


TRUNK = {"init": "embedded:arithmetic:judge", "lr": 3e-4, "problems": 32, "epochs": 2}
"""A trunk that was taught to judge: on the policy's own the head hardly learns from so few labels."""

fidelity = "core"
left_out = (
    "budgets that change from step to step of a beam search (IAS-of-K, IAS-of-M), and the start from a published process reward "
    "model, tuned by LoRA: here models begin from the policy, unless init names one"
)
data = Data(answer="the gold answer")

claim = Claim(
    says="the chance of success that the median foretells at the prompt is nearer to the true one than a classifier's",
    versus="calibrated_prm_ias", task="arithmetic:biased=0.75,error=0.1", measure="brier", direction="lower", margin=0.061,
    settings=TRUNK, versus_settings={**TRUNK, "calibrated": False}, problems=300, steps=40, guard=Within("adaptive", low=-0.03),
    fault=Within("overestimate", low=0.05, says="chance that the classifier foretells, above the share that is right"),
    judge=Within("by_auc", low=0.6, says="right replies above wrong ones to the same problem, by the median"), learns=None,
    finding="the median's forecasts are nearer to the truth (squared error .09, the classifier's .17), since the classifier says "
    "too much by .28. But the median tells right replies from wrong ones worse (AUC .69, .84), and its choices are right in 46% "
    "of the problems, the classifier's in 57%: calibration is paid for with ranking. In that run 8 samples were the most, which "
    "each problem got by the median's low quantile (4.9 by the classifier): the number never adapted",
    version=2, replaces="from 4 problems a step in one pass the median hardly learnt to tell right replies from wrong ones, .58",
)  # fmt: skip
baseline = None
