"""Noisy-verifier correction: verdicts of a verifier with known error rates are turned into what they are worth on average.

    f = P(accepted | wrong),  g = P(rejected | right)
    backward: R^ = (R - f) / (1 - f - g),  E[R^ | right] = 1, E[R^ | wrong] = 0;     loss = -(R^ - mean of the batch) log pi
    forward:  w = g if R = 1, g - 1 if R = 0,  E[w | right] = 0, E[w | wrong] = -(1 - f - g);     loss = -w log pi
    g = share of rejected replies that an appeal accepts, of all that are accepted

A verifier that errs pays right replies less and wrong ones more, unequally where its rates depend on the prompt. The backward
correction takes that out, and makes the noise larger by 1 / (1 - f - g); the forward one points where the clean gradient does, with
weights that stay within 1, and needs g alone. Appeals go to a second, better judge, who reads rejected replies alone.

Cai et al. 2025, arXiv:2510.00915 (abstract and summaries; no code was found). (inferred): that both act without the group's mean
and deviation, which take the forward correction out again, and at equal rates the backward one too; the batch's mean as the
baseline of backward rewards; the form of the estimate and its decay of .9; rates kept apart by a column.

Data: prompts with answers, and a verifier that errs, with its rates; or a judge for appeals: appeals=own_verdict(model=...), or any
reward from 0 to 1. A column that goes with the verifier's errors, such as the kind of answer, may tell rates apart (by=...).
"""

from typing import Literal

from rewardlab.core import Recipe
from rewardlab.credit.group import center_batch
from rewardlab.credit.value import to_go
from rewardlab.evals.bias import reward_bias
from rewardlab.methods.baselines.grpo import grpo
from rewardlab.proof.claim import Claim, Within
from rewardlab.rewards.imperfect import imperfect
from rewardlab.rewards.noisy import corrected, noisy_verdict
from rewardlab.rewards.reward import Reward
from rewardlab.rewards.task import correct
from rewardlab.rollouts.independent import independent


def noisy_verifier_correction(
    base: Recipe | None = None, *, way: Literal["backward", "forward"] = "forward", false_positive: float = 0.1,
    false_negative: float = 0.1, appeals: Reward | None = None, by: str = "", decay: float = 0.9, n: int = 8,
) -> Recipe:  # fmt: skip
    """false_positive, false_negative: f and g of the base's reward, which is the verifier; f is for backward alone.  appeals:
    judges rejected replies again, and g is estimated.  by: a column that tells kinds of prompts with rates of their own.
    decay: of the estimate.  n: of grpo. The credit takes the place of a base's.
    """
    base = base or grpo(n=n)
    paid = corrected(
        of=base.reward or correct(), way=way, false_positive=false_positive, false_negative=false_negative, appeals=appeals, by=by,
        decay=decay,
    )  # fmt: skip
    return base.but(reward=paid, credit=center_batch() >> to_go() if way == "backward" else to_go())


NOISY = noisy_verdict(false_positive=0.15, false_negative=0.35, spread=0.6, by="steps")
BACKWARD = corrected(of=NOISY, false_positive=0.15, appeals=imperfect(auc=0.95), by="steps")
# by construction: the rates that are corrected for are those of the planted noise
claim = Claim(
    says="verdicts corrected backward, at a rate that appeals to a fallible judge estimate, are on average nearer to the truth",
    versus=None, task="arithmetic:biased=0.8,error=0.05,difficulty=[2,5]", measure="bias.corrected", direction="lower", margin=0.08,
    against="bias.observed",
    by=reward_bias(reward=BACKWARD.named("corrected") + NOISY.named("observed"), rollout=independent(n=8), by="steps"),
    problems=500, steps=1,
    fault=Within("bias.observed", low=0.15, says="how far the verifier's verdicts are from the truth in the mean"), learns=None,
    sanity=True,
)  # fmt: skip
baseline = "grpo"
