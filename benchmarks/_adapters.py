"""A step of learning of SmolLM2's adapters, against the same with the gradients of whole matrices, and against peft's.

    REWARDLAB_BENCH_THREADS=1 python benchmarks/_adapters.py > results/real/adapters.json      (`make smollm2`)

Forward and backward over the replies to one prompt, in float32. Processor seconds, not the clock's, so that other work beside it
does not count.
"""

from __future__ import annotations

from typing import Any

from _four_bits import seconds
from _sides import Rows, in_own_process, main, row

SIDES = {"ours": "smollm2", "whole": "smollm2", "peft": "hf:smollm2"}
"""whole: the lean policy, with the gradient of each matrix, from which those of its adapter follow."""
RANK = 16


def run(*, prompt: int = 60, rollouts: int = 8, reply: int = 13, repeats: int = 5) -> Rows:
    settings = {"prompt": prompt, "rollouts": rollouts, "reply": reply, "repeats": repeats}
    found = {name: in_own_process(__file__, name, settings) for name in SIDES}
    told = {"model": "smollm2", "lora_rank": RANK, **settings}
    return [row(f"forward-and-backward-{name}", found["ours"], found[name], "replies/s", told) for name in ("whole", "peft")]


def side(name: str, prompt: int, rollouts: int, reply: int, repeats: int) -> float:
    """Replies per processor second, forward and backward."""
    import numpy as np

    from rewardlab.core import Trajectory, Turn, ask
    from rewardlab.models.load import load_policy
    from rewardlab.util.outputs import forward_batch

    policy: Any = load_policy(SIDES[name], "cpu", "float32", RANK)
    if name == "whole":
        cast = policy.weights

        def with_gradients() -> Any:
            weights = cast()
            for layer in weights.layers:
                layer.adapters = {}
            return weights

        policy.weights = with_gradients
    replies = [Turn("policy", np.arange(reply) * 7 + 10 * i) for i in range(rollouts)]
    problem, asked = ask("1+1?", "2"), Turn(None, np.arange(prompt) + 1000)
    batch = forward_batch([Trajectory(problem, (asked, said)) for said in replies], policy.device)

    def learn() -> None:
        policy.evaluate(batch).logprobs[batch.mask].mean().backward()

    learn()
    return rollouts / seconds(learn, repeats)


if __name__ == "__main__":
    main(run, {name: lambda name=name, **settings: side(name, **settings) for name in SIDES})
