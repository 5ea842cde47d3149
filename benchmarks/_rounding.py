"""Differences between the log-probs of the sampler, the trainer and transformers in bfloat16, and of each from float32.

python benchmarks/_rounding.py CHECKPOINT --task sums [--system TEXT] [--problems 6] [--rollouts 4]

Of each pair: the standard deviation over sampled tokens, the largest difference, and the share of tokens whose probability differs
by over 20%. For an on-policy update the ratio of the first two should be 1.
"""

from __future__ import annotations

import argparse
import itertools
import math

import numpy as np
import torch

from rewardlab import registry
from rewardlab.core import Sampling, Trajectory
from rewardlab.models.load import load_policy


def log_probs(model: str, task: str, system: str | None, problems: int, rollouts: int, max_new: int) -> dict[str, np.ndarray]:
    """Source to the log-probs of all sampled tokens, (n,)."""
    asked = list(registry.task(task, system=system).test[:problems])
    policy = load_policy(model, "cpu", "bfloat16", None, None)
    read = policy.read([Trajectory(p) for p in asked], [p.prompt for p in asked])
    drawn = policy.extend([t for t in read for _ in range(rollouts)], Sampling(max_new, 1.0), torch.Generator().manual_seed(0))

    def of_drawn(rows: list[np.ndarray]) -> np.ndarray:
        return np.concatenate([row[t.mask] for t, row in zip(drawn, rows, strict=True)])

    others = {"float32": (model, "float32"), "transformers bfloat16": (f"hf:{model}", "bfloat16")}
    return {
        "sampling": of_drawn([t.column("logprobs") for t in drawn]),
        "training": of_drawn(policy.score(drawn)),
        **{name: of_drawn(load_policy(path, "cpu", dtype, None, None).score(drawn)) for name, (path, dtype) in others.items()},
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--task", required=True)
    parser.add_argument("--system")
    parser.add_argument("--problems", type=int, default=6)
    parser.add_argument("--rollouts", type=int, default=4)
    parser.add_argument("--max-new", type=int, default=24)
    said = log_probs(**vars(parser.parse_args()))
    for (a, x), (b, y) in itertools.combinations(said.items(), 2):
        apart = np.abs(x - y)
        far = (apart > math.log(1.2)).mean()
        print(f"{a:22} {b:22} std {np.std(x - y):.4f}  most {apart.max():.3f}  over 20%: {far:.4f}")
