"""Entropy with noise on the norms, on replies without it."""

from __future__ import annotations

import numpy as np
import pytest

from rewardlab.core import Run, ask
from rewardlab.methods.sampling.qerl import entropy_with_noise
from rewardlab.models.embedded import untrained
from rewardlab.rollouts.independent import independent
from rewardlab.util.outputs import entropies

PROBLEMS = [ask("1 + 2 = ?", "3"), ask("2 + 2 = ?", "4")]


def test_the_entropies_are_those_of_the_same_replies():
    run = Run(untrained(layers=2), max_new=6)
    found = entropy_with_noise(rollout=independent(n=2), sigma=0.5, times=2)(PROBLEMS, run)
    again = Run(run.policy, max_new=6)
    rows = [t for g in independent(n=2)(PROBLEMS, again) for t in g]

    def entropy():
        return np.concatenate([h[t.mask] for t, h in zip(rows, entropies(run.policy, rows), strict=True)]).mean()

    with_noise = []
    for _ in range(2):
        with run.policy.noised(0.5, again.rng("noise")):
            with_noise.append(entropy())
    assert found == {"entropy": pytest.approx(entropy()), "entropy.noise": pytest.approx(np.mean(with_noise))}
    assert with_noise[0] != with_noise[1]
    assert abs(found["entropy"] - found["entropy.noise"]) > 1e-4
