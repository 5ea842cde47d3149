"""SmolLM2 in 4 bits against float32 weights, both below the same adapters and computed in bfloat16 by transformers: memory, speed.

    REWARDLAB_BENCH_THREADS=1 python benchmarks/_four_bits.py > results/real/four-bits.json      (extra `nf4`)

What QeRL reports of NVFP4 and its kernels on GPUs; here it is bitsandbytes' NF4 on a processor. Processor seconds, not the clock's,
so that other work beside it does not count.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any

from _sides import Rows, in_own_process, main, row

FORMATS = {"ours": "nf4:smollm2", "peer": "hf:smollm2"}
RANK = 32


def run(*, problems: int = 4, rollouts: int = 8, max_new: int = 32, repeats: int = 3) -> Rows:
    settings = {"problems": problems, "rollouts": rollouts, "max_new": max_new, "repeats": repeats}
    ours, peer = (in_own_process(__file__, name, settings) for name in FORMATS)
    told = {**FORMATS, "lora_rank": RANK, **settings}
    return [
        row("weights", ours["weights"], peer["weights"], "MiB", told),
        row("weights-of-layers", ours["layers"], peer["layers"], "MiB", told),
        row("sample", ours["sample"], peer["sample"], "tokens/s", told),
        row("forward-and-backward", ours["train"], peer["train"], "tokens/s", told),
    ]


def side(name: str, problems: int, rollouts: int, max_new: int, repeats: int) -> dict[str, float]:
    """MiB of all weights and of those of the layers, and tokens per processor second of sampling and of training."""
    from rewardlab.core import Run, Sampling, Trajectory, ask
    from rewardlab.models.load import load_policy
    from rewardlab.util.outputs import forward_batch

    policy = load_policy(FORMATS[name], "cpu", "bfloat16", RANK)
    # all replies at full length, so that both sides sample as many tokens
    policy.ends = frozenset()
    run = Run(policy, seed=0, max_new=max_new)
    asked = [ask(f"What is {i} + {2 * i}?", str(3 * i)) for i in range(1, problems + 1) for _ in range(rollouts)]
    prompts = policy.read([Trajectory(p) for p in asked], [p.prompt for p in asked])

    def sample() -> Any:
        return policy.extend(prompts, Sampling(max_new), run.rng("rollout"))

    batch = forward_batch(sample(), policy.device)

    def train() -> None:
        policy.evaluate(batch).logprobs[batch.mask].mean().backward()

    train()
    weights = dict(policy.model.named_parameters())
    layers = [w for at, w in weights.items() if ".layers." in at and "lora" not in at]
    return {
        "weights": sum(w.nbytes for w in weights.values()) / 2**20, "layers": sum(w.nbytes for w in layers) / 2**20,
        "sample": len(asked) * max_new / seconds(sample, repeats), "train": batch.ids.numel() / seconds(train, repeats),
    }  # fmt: skip


def seconds(do: Callable[[], Any], repeats: int) -> float:
    """Processor seconds of a call, the median of several."""
    spent = []
    for _ in range(repeats):
        began = time.process_time()
        do()
        spent.append(time.process_time() - began)
    return statistics.median(spent)


if __name__ == "__main__":
    main(run, {name: lambda name=name, **settings: side(name, **settings) for name in FORMATS})
