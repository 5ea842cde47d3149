"""Particle filtering: resample partial replies in proportion to a process reward model's scores.

    w_i = log(r_i / (1 - r_i));     particles of the next step ~ softmax(w), with replacement;     answer = argmax over i of r_i

Where beam search trusts the scores, resampling treats them as noisy evidence: a row that looks bad may survive.

Puri et al. 2025, arXiv:2502.01618, and the released code (probabilistic-inference-scaling, e6d4aa7, particle_gibbs.py,
script_to_run.sh): the last score of each particle, a softmax at temperature 1, ended particles among those that are resampled.
There the policy samples at .8, steps end at a blank line, and a particle ends with a box as well, or after 40 steps. Without a
scorer, the geometric mean of the policy's own probabilities is the score.
"""

from typing import Literal

from rewardlab.core import Recipe, Update
from rewardlab.data.columns import Data
from rewardlab.evals.passk import accuracy
from rewardlab.methods.baselines.weighted_vote import own_probability, weighted_majority
from rewardlab.rollouts.best import best
from rewardlab.rollouts.particles import particles


def particle_filtering(
    base: Recipe | None = None, *, n: int = 8, temperature: float = 1.0, step_tokens: int | None = None,
    weight: Literal["log-odds", "score"] = "log-odds", resampling: Literal["multinomial", "systematic"] = "multinomial",
    stop: tuple[str, ...] = ("\n",), choose: Literal["best", "vote"] = "best",
) -> Recipe:  # fmt: skip
    """n: particles.  step_tokens: most tokens of a step.  weight: log weights are the log-odds of scores, which must be chances, or
    the scores themselves.  resampling: how particles are chosen.  stop: the texts that end
    a step.  choose: the best reply, or a vote weighted by the scores."""
    base = base or Recipe(name="particle_filtering", reward=own_probability(), measure=accuracy(), update=Update())
    search = particles(
        score=base.required("reward"), n=n, weight=weight, resampling=resampling, temperature=temperature, step_tokens=step_tokens,
        stop=stop,
    )  # fmt: skip
    return base.but(rollout=search, select=best() if choose == "best" else weighted_majority())


fidelity = "core"
left_out = "what is built on it: particle Gibbs (a further pass around a kept reply), parallel tempering, an annealed softmax"
data = Data(answer="the gold answer")

claim = None
baseline = None
system = None
