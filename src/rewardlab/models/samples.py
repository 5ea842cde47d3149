"""Samples of a task's small policy with verdicts, generated once and cached."""

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


def samples(formula: str, problems: Sequence[Problem], n: int, seed: int = 0) -> list[list[tuple[str, float]]]:
    """n replies to each problem at temperature 1, by the small policy of the task `formula`, each with its verifier's verdict.

    Cached until that policy changes.
    """
    from rewardlab.models.embedded import checkpoint

    policy = checkpoint(registry.task(formula))
    asked = hashlib.blake2b("".join(problem.key for problem in problems).encode(), digest_size=6).hexdigest()

    def fill(folder: Path) -> None:
        (folder / FILE).write_text(json.dumps(_sampled(formula, policy, problems, n, seed)), "utf-8")

    found = json.loads((cached(f"samples-{policy.name}-{asked}-{n}-{seed}", fill) / FILE).read_text("utf-8"))
    return [[(text, verdict) for text, verdict in row] for row in found]


def _sampled(
    formula: str, checkpoint: Path, problems: Sequence[Problem], n: int, seed: int
) -> list[list[tuple[str, float]]]:  # fmt: skip
    from rewardlab.policies.llama.policy import LlamaPolicy

    task, policy = registry.task(formula), LlamaPolicy.load(checkpoint, "cpu", "auto")
    run, sampling = Run(policy, seed=seed, verify=registry.part("reward", task.verifier)), Sampling(task.max_new)
    replies: list[list[tuple[str, float]]] = []
    for batch in in_batches(f"sampling pairs from the small policy of {formula} (once)", problems, 128):
        prompts = policy.read([Trajectory(p) for p in batch], [p.prompt for p in batch])
        done = policy.extend([t for t in prompts for _ in range(n)], sampling, run.rng("samples"))
        groups = [done[i : i + n] for i in range(0, len(done), n)]
        for group, scores in zip(groups, run.verify(groups, run), strict=True):
            replies.append([(t.reply, score.value or 0.0) for t, score in zip(group, scores, strict=True)])
    return replies
