"""Speculative rejection: best-of-n whose worst replies are given up while they are being written.

    after every `every` tokens, keep the rows with r >= the alpha-quantile of r;     answer = argmax over complete replies of r

The score of a partial reply foretells that of the whole, so that most of the tokens of best-of-n need not be written.

Sun et al. 2024, arXiv:2410.20290, and the released code (speculative_rejection.py): complete replies that were kept once stay to
the end, also if partial ones outdo them later. The paper scores whenever the memory is full; here after a number of tokens, so that
what is computed does not depend on the machine. Without a scorer, the geometric mean of the policy's own probabilities is the
score.
"""

from rewardlab.core import Recipe, Update
from rewardlab.evals.passk import accuracy
from rewardlab.methods.baselines.weighted_vote import own_probability
from rewardlab.rollouts.rejecting import rejecting
from rewardlab.select.best import best


def speculative_rejection(
    base: Recipe | None = None, *, n: int = 16, reject: float = 0.5, every: int = 32, temperature: float = 1.0
) -> Recipe:
    """n: replies that are begun.  reject: alpha, the share that goes each time.  every: tokens between the times."""
    base = base or Recipe(name="speculative_rejection", reward=own_probability(), measure=accuracy(), update=Update())
    search = rejecting(score=base.required("reward"), n=n, reject=reject, every=every, temperature=temperature)
    return base.but(rollout=search, select=best())


claim = None
baseline = None
system = None
