"""How sure a policy is of its next tokens with noise on the scales of its norms, and without."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rewardlab.core import Problem, Rollout, Run, entropies, measure
from rewardlab.core.domain import PositiveFloat, PositiveInt
from rewardlab.errors import RewardlabError


@measure
def entropy_with_noise(
    problems: Sequence[Problem], run: Run, *, rollout: Rollout, sigma: PositiveFloat, times: PositiveInt = 8
) -> dict[str, float]:
    """Entropy in nats of the next token, the mean over the decisions of replies that the policy gives without noise.

    entropy: of the policy; entropy.noise: with N(0, sigma^2) added to the scales of its layers' norms, the mean over so many
    `times`.
    """
    if not hasattr(run.policy, "noised"):
        raise RewardlabError(f"entropy_with_noise is for language models, and {run.policy.name!r} is none")
    rows = [t for group in rollout(list(problems), run) for t in group]

    def entropy() -> float:
        decided = [h[t.mask] for t, h in zip(rows, entropies(run.policy, rows), strict=True)]
        return float(np.concatenate(decided).mean())

    plain, with_noise = entropy(), []
    for _ in range(times):
        with run.policy.noised(sigma, run.rng("noise")):
            with_noise.append(entropy())
    return {"entropy": plain, "entropy.noise": float(np.mean(with_noise))}
