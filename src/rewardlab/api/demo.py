"""A first run: warm up a small policy, train it, and measure the gain."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

from rewardlab import registry
from rewardlab.api import Result, train
from rewardlab.models.load import load_policy
from rewardlab.runs.folder import first_free
from rewardlab.util.files import write_json


def demo(out: Path | str | None = None, steps: int = 40) -> Result:
    """Warm up the embedded policy (cached), train it with GRPO against an exact verifier, and show the gain.

    out: folder of the run; by default the first of runs/demo, runs/demo-2, ... that does not exist.
    """
    started = time.perf_counter()
    # loaded here too, and not only by train, to time the warm-up; the second time it comes from the cache
    policy = load_policy("embedded")
    warmed_up = time.perf_counter()
    result = train(
        registry.build("grpo", {"problems": 32}),
        "embedded",
        "arithmetic",
        steps=steps,
        out=out or first_free(Path("runs"), "demo"),
        eval_every=10,
        eval_problems=500,
    )
    seconds = {
        "warm_up": round(warmed_up - started, 1),
        **result.summary["seconds"],
        "total": round(time.perf_counter() - started, 1),
    }
    summary = result.summary | {"seconds": seconds, "parameters": sum(p.numel() for p in policy.parameters())}
    write_json(result.out / "summary.json", summary)
    return replace(result, summary=summary)
