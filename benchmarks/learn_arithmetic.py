"""Seconds in which GRPO improves the embedded policy by 20 points of pass@1 on held-out problems.

The clock starts at the base, loaded, and stops at the first evaluation that is 20 points above the base's; all evaluations
count. `peer` is the target. A run that stops at a good number has picked it, so pass@1 before and after is measured again,
off the clock, on other held-out problems that did not influence when to stop.
"""

from __future__ import annotations

import statistics
import time
from typing import Any

from _sides import Rows, embedded_model, in_own_process, main, row

TARGET = 60.0


def run(
    *, model: str | None = None, seeds: int = 3, gain: float = 0.2, evaluated: int = 300, checked: int = 700, every: int = 5,
    most: int = 150, **update: Any,
) -> Rows:  # fmt: skip
    """model: a checkpoint folder (default: the embedded policy's).  evaluated: problems per evaluation, `every` so many steps.

    checked: held-out problems that measure the gain off the clock.
    most: steps after which a seed counts as failed.  update: settings of `grpo`, if not its own.
    """
    made = {"folder": model, "made_in_seconds": 0.0} if model else embedded_model()
    shared = {"gain": gain, "evaluated": evaluated, "checked": checked, "every": every, "most": most}
    given = shared | {"model": made["folder"], "update": update}
    runs = [in_own_process(__file__, "ours", given | {"seed": seed}) for seed in range(seeds)]
    seconds = [r["seconds"] if r["reached"] else float("inf") for r in runs]
    median = statistics.median(seconds)
    if median == float("inf"):
        raise SystemExit(f"grpo did not gain {100 * gain:g} points in {most} steps: {runs}")
    about = {"method": "grpo", **update, **shared, "warm_up_seconds": made["made_in_seconds"], "seeds": runs}
    return [row("learn-arithmetic", median, TARGET, "s", about)]


def ours(
    *, model: str, seed: int, gain: float, evaluated: int, checked: int, every: int, most: int, update: dict[str, Any]
) -> dict[str, Any]:
    from rewardlab import registry
    from rewardlab.core import Run
    from rewardlab.engine.step import Ops, standard_loop
    from rewardlab.policies.llama.policy import LlamaPolicy
    from rewardlab.runs.config import RunConfig

    policy, task = LlamaPolicy.load(model, "cpu"), registry.task("arithmetic")
    recipe = registry.build("grpo", update)
    watched, others = task.test[:evaluated], task.test[evaluated : evaluated + checked]
    run = Run(policy, steps=most, seed=seed, max_new=task.max_new, verify=registry.part("reward", task.verifier))
    ops = Ops(recipe, run, task, RunConfig(steps=most, seed=seed))
    elsewhere = [ops.evaluate(others)["pass@1"]]
    ops.seconds, start = {}, time.perf_counter()
    seen = [ops.evaluate(watched)["pass@1"]]
    while run.step < run.steps:
        standard_loop(recipe, run, ops)
        run.step += 1
        if run.step % every == 0:
            seen.append(ops.evaluate(watched)["pass@1"])
            if seen[-1] >= seen[0] + gain:
                break
    seconds, spent = time.perf_counter() - start, {k: round(v, 2) for k, v in ops.seconds.items()}
    elsewhere.append(ops.evaluate(others)["pass@1"])
    return {
        "seed": seed, "reached": seen[-1] >= seen[0] + gain, "seconds": round(seconds, 2), "steps": run.step, "spent": spent,
        "before": seen[0], "after": seen[-1], "pass@1": [round(x, 3) for x in seen], "problems": len(watched),
        "before_elsewhere": elsewhere[0], "after_elsewhere": elsewhere[1], "problems_elsewhere": len(others),
        "dtype": str(policy.dtype).removeprefix("torch."),
    }  # fmt: skip


if __name__ == "__main__":
    main(run, {"ours": ours})
