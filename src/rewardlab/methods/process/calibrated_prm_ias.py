"""Calibrated PRM with IAS: a process reward model of quantiles of success, whose low one says how many samples a problem gets.

    quantile model:  max(tau d, (tau - 1) d),  d = share of right continuations - sigmoid(V),    at the prompt and after each step
    samples:         N(x) = log(1 - C) / log(1 - p_low(x)), from 1 to `choose`;    answer: the best of N(x) by the median

p_low is what the share of right continuations falls short of in one case out of ten. A model that is too sure of a hard problem
gives it too few samples; one that doubts its forecast gives more. Models taught that a step is right if any continuation is, or on
solutions of stronger policies, are too sure: `calibrated=False` is such a one, and its only number says how many samples there are.

Park et al. 2025, arXiv:2506.09338. The loss, C = 0.99, the chances' limits, and the last step's number as a reply's score are as
in the released code (young-j-park/prm-calibration, 4abcb99, trainer/qwen_trainer.py, utils/ias.py). It fine-tunes a published
model, whose head becomes one of three quantiles; here each quantile is a model of its own, of which two are used, and they begin
from the policy. The label of the prompt is the share of right replies in its group. (inferred): n, continuations. Left out: budgets
that change from step to step of a beam search.

Data: prompts with gold answers; the policy continues its own solutions. Steps are lines.
"""

from dataclasses import replace
from typing import Literal

import torch
from torch import Tensor

from rewardlab.core import Batch, Learner, Outputs, Recipe, Run, Update, credit, objective, with_surprise
from rewardlab.core.domain import Share
from rewardlab.evals.adaptive import adaptive_best_of_n
from rewardlab.objectives.step_labels import step_loss
from rewardlab.proof.claim import Claim, Within
from rewardlab.rewards.algebra import aggregate, threshold
from rewardlab.rewards.model import step_score
from rewardlab.rewards.monte_carlo import monte_carlo_steps
from rewardlab.rollouts.independent import independent

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
    """`value_of_steps`, where the end of the prompt is labelled too: by the row's credit, unless it is UNKNOWN."""
    first = batch.mask.int().argmax(1, keepdim=True)
    share, before = batch.credit.gather(1, first), (first - 1).clamp(min=0)
    reward, rewarded = batch.reward.scatter(1, before, share), batch.rewarded.scatter(1, before, share != UNKNOWN)
    return step_loss(out.value, replace(batch, reward=reward, rewarded=rewarded), loss, 0.0, tau)


def calibrated_prm_ias(
    base: Recipe | None = None, *, low: float = 0.1, confidence: float = 0.99, n: int = 4, continuations: int = 4, choose: int = 8,
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

claim = Claim(
    says="the chance of success that the median foretells at the prompt is nearer to the true one than a classifier's",
    versus="calibrated_prm_ias", task="arithmetic:biased=0.75,error=0.1", measure="brier", direction="lower", margin=0.061,
    settings=TRUNK, versus_settings={**TRUNK, "calibrated": False}, problems=300, steps=40, guard=Within("adaptive", low=-0.03),
    fault=Within("overestimate", low=0.05, says="chance that the classifier foretells, above the share that is right"),
    judge=Within("by_auc", low=0.6, says="right replies above wrong ones to the same problem, by the median"), learns=None,
    finding="Brier .09, the classifier's .17; but its choices are right in .46, the classifier's in .57 (AUC .69, .84)",
    version=2, replaces="from 4 problems a step in one pass the median hardly learnt to tell right replies from wrong ones, .58",
)  # fmt: skip
baseline = None
