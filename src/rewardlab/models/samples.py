"""What the small policy of a task says: samples that are made once and cached."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path

from rewardlab import registry
from rewardlab.core import Problem, Run, Sampling, Trajectory
from rewardlab.util.files import cached
from rewardlab.util.progress import in_batches

FILE = "samples.json"


def samples(formula: str, problems: Sequence[Problem], n: int, seed: int = 0) -> list[list[str]]:
    """n replies to each problem at temperature 1, by the small policy of the task `formula`; cached until that policy changes."""
    from .embedded import checkpoint

    policy = checkpoint(registry.task(formula))
    asked = hashlib.blake2b("".join(problem.key for problem in problems).encode(), digest_size=6).hexdigest()

    def fill(folder: Path) -> None:
        (folder / FILE).write_text(json.dumps(_sampled(formula, policy, problems, n, seed)), "utf-8")

    return json.loads((cached(f"samples-{policy.name}-{asked}-{n}-{seed}", fill) / FILE).read_text("utf-8"))


def _sampled(formula: str, checkpoint: Path, problems: Sequence[Problem], n: int, seed: int) -> list[list[str]]:
    from rewardlab.policies.llama.policy import LlamaPolicy

    policy, run = LlamaPolicy.load(checkpoint, "cpu", "auto"), Run(None, seed=seed)
    sampling = Sampling(registry.task(formula).max_new)
    replies: list[list[str]] = []
    for batch in in_batches(f"sampling pairs from the small policy of {formula} (once)", problems, 128):
        prompts = policy.read([Trajectory(p) for p in batch], [p.prompt for p in batch])
        done = policy.extend([t for t in prompts for _ in range(n)], sampling, run.rng("samples"))
        replies += [[t.reply for t in done[i : i + n]] for i in range(0, len(done), n)]
    return replies
