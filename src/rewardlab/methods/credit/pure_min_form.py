"""PURE: the return is the minimum of step rewards, not their sum, so that padding with rewarded steps gains nothing.

    r*_i = r_i exp(-r_i / T) / sum_j exp(-r_j / T);     A_t = (G_t - b) + (o - mean of the others' o),   G_t = sum_{i >= t} r*_i

r_i in [-1, 1] are step rewards, o is the verified outcome, known for a share of the problems only. As T -> 0 the return is min r
up to the worst step and 0 after it. The baseline b is the mean over the group's other replies of sum_t G_t / L, with L the most
tokens that a reply may have: one number for all tokens of a reply. Subtracted from each step and then summed, as the first released
code also could (`reward_baseline step`, or in proportion to a step's tokens), it would pay wrong replies for every further step.

Cheng et al. 2025, arXiv:2504.15275. T, baseline and whitening are those of the released code (CJReinforce/PURE, its verl branch,
as kept in viviable/new_prm, 5659ffd: core_algos.py); the weight of the outcome differs between its scripts, .1, 1 and 10, and is
`outcome` here. Its step rewards come from a trained model (prm=...); without one every step is checked, and a true line that only
repeats what is known is rewarded too, which invites padding. `minimum=False` leaves the sum form, `share=0` process rewards alone.
"""

import math

import torch
from torch import Tensor

from rewardlab.checks.claim import Claim, Within
from rewardlab.core import Batch, Learner, Recipe, Run, credit
from rewardlab.credit.group import leave_one_out, subtract_mean_return, whiten
from rewardlab.credit.terms import by_term
from rewardlab.credit.value import to_go
from rewardlab.data.columns import Column, Data
from rewardlab.methods.baselines.grpo import grpo
from rewardlab.rewards.algebra import signed
from rewardlab.rewards.model import step_score
from rewardlab.rewards.operator import operator
from rewardlab.rewards.process import PREFIX, prm_steps
from rewardlab.rewards.reward import Reward
from rewardlab.rewards.steps import correct_steps
from rewardlab.rewards.task import correct


@credit
def soft_minimum(a: Tensor, batch: Batch, run: Run, *, temperature: float = 0.1) -> Tensor:
    """Weight each event's reward by a softmin over its row, so that the sum approximates the row's minimum."""
    # positions without a reward are masked before the softmax: as zeros they would take part in the minimum
    weight = (-a / temperature).masked_fill(~batch.rewarded, -torch.inf).softmax(1)
    # where, not a product: a row without events has a softmax of NaN
    return torch.where(batch.rewarded, weight * a, 0.0)


@credit
def of_known_problems(a: Tensor, batch: Batch, run: Run, *, share: float = 0.1) -> Tensor:
    """Credit for a fixed share of the problems, as if the others had no gold answer."""
    # the end of the key, since its beginning decides which problems are held out; a hash needs no list of known problems
    places = [int(trajectory.problem.key[-13:], 16) / 16**13 for trajectory, _ in batch.rows]  # 13 hex digits as a number in [0, 1)
    # float64: 13 hex digits have 52 bits, which float32 would round
    known = torch.tensor(places, dtype=torch.float64, device=a.device) < share
    return torch.where(known[:, None], a, 0.0)


@operator(steps=True)
def signed_chance(log_odds: float) -> float:
    """Twice the chance of being right, less 1: from -1 to 1."""
    return math.tanh(log_odds / 2)


def pure_min_form(
    base: Recipe | None = None, *, n: int = 8, temperature: float = 0.1, share: float = 0.1, minimum: bool = True, prm: str = "",
    outcome: float = 1.0,
) -> Recipe:  # fmt: skip
    """temperature: of the softmin.  share: of the problems whose outcome is verified.  outcome: its weight, beside 1 for the steps.
    prm: a process reward model: `prm:PATH`, of `rewardlab prm train` or published, or a model with a value head (`Learner.init`);
    without it, steps are checked against the row's gold steps.
    """
    base = base or grpo(n=n)
    # the baseline after the sum: before it, every step would get its own share, and further steps would change the advantage
    steps = to_go() >> subtract_mean_return()
    verified = leave_one_out() >> to_go()
    chains = {
        "correct_steps": soft_minimum(temperature=temperature) >> steps if minimum else steps,
        "correct": of_known_problems(share=share) >> verified,
    }
    return base.but(
        rollout=base.required("rollout").but_innermost(steps="newline"),
        reward=_rated(prm) + outcome * correct(),
        also=(*base.also, Learner("prm", prm, Recipe(), every=0)) if prm else base.also,
        credit=by_term(chains=chains, others=verified) >> whiten(),
    )


def _rated(prm: str) -> Reward:
    """The reward of steps, from -1 to 1, in a term of its own."""
    if not prm:
        return correct_steps(wrong=-1.0)
    return (signed(prm_steps()) if prm.startswith(PREFIX) else signed_chance(step_score(model="prm"))).named("correct_steps")


fidelity = "core"
left_out = (
    "the training of the process reward model, several updates per batch, a KL of weight .001 in the first released script, and "
    "steps that are paragraphs (here lines)"
)
data = Data(
    answer="the gold answer",
    steps=Column("a list of gold steps, equations such as 7+5=12, read where no prm is given", optional=True),
    settings={"prm": "value-head"},
    rows=[
        {"prompt": "A train covers 180 km in 3 hours. What is its speed in km/h?", "answer": "60"},
        {"prompt": "What is $\\frac{1}{2} + \\frac{1}{4}$? Put the answer in \\boxed{}.", "answer": "\\frac{3}{4}"},
    ],
)
claim = Claim(
    says="with step rewards that also pay padding, replies stay shorter under the minimum than the sum, and are as often right",
    versus="pure_min_form", task="arithmetic:biased=0.75,error=0.1,redundant=0.4", measure="train.length", direction="lower",
    margin=5.0, versus_settings={"minimum": False}, steps=40, guard=Within("pass@1", low=-0.03),
    fault=Within("train.length", low=40.0, says="tokens of a reply under the sum, 38 at the start"),
    finding="start 32% right; paid by the worst step 76% are right at the end, in 33 tokens; paid by the sum of steps 67%, in 42: "
    "the policy pads. The steps are checked against gold steps, and no process reward model errs here",
    version=2,
    replaces="the baseline of the steps paid wrong replies for length on both sides",
)  # fmt: skip
baseline = "grpo"
