"""Labels of steps by continuations and by bisection, against the steps' own, on solutions that the small policy samples.

python benchmarks/_step_labels.py --out results/process/labels.json

The truth is `correct_steps`: a step is wrong if the solution has gone wrong by then. About two minutes of one core.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any


def measured(task: str, problems: int, replies: int, rollouts: tuple[int, ...], seed: int) -> dict[str, Any]:
    """The figures of `label_quality` by annotator, for so many replies to each of the task's first held-out problems."""
    from rewardlab import registry
    from rewardlab.api.inputs import begin_run, configured, policy_of
    from rewardlab.core import Recipe
    from rewardlab.evals.step_labels import label_quality
    from rewardlab.rewards.monte_carlo import binary_search_steps, monte_carlo_steps
    from rewardlab.rewards.steps import correct_steps
    from rewardlab.rollouts.independent import independent

    found, config = registry.task(task), configured(None, "embedded", task, {"seed": seed, "device": "cpu"})
    run = begin_run(Recipe(), policy_of(None, config, found), found, config)
    annotators = {
        f"{name} K={k}": part(n=k)
        for name, part in (("monte-carlo", monte_carlo_steps), ("binary-search", binary_search_steps))
        for k in rollouts
    }
    measure = label_quality(truth=correct_steps(), annotators=annotators, rollout=independent(n=replies, steps="newline"))
    started = time.process_time()
    figures = measure(list(found.test[:problems]), run)
    rows = {
        name: {key.removesuffix(f".{name}"): round(x, 4) for key, x in figures.items() if key.endswith(name)} for name in annotators
    }
    return {
        "task": task, "model": "embedded", "problems": problems, "replies": replies, "seed": seed, "steps": figures["steps"],
        "wrong": figures["wrong"], "seconds": round(time.process_time() - started, 1), "annotators": rows,
    }  # fmt: skip


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--task", default="arithmetic")
    parser.add_argument("--problems", type=int, default=150)
    parser.add_argument("--replies", type=int, default=2)
    parser.add_argument("--rollouts", type=int, nargs="+", default=[2, 4, 8])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    result = measured(args.task, args.problems, args.replies, tuple(args.rollouts), args.seed)
    args.out.write_text(json.dumps(result, indent=1) + "\n")
