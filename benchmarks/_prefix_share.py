"""What part of a beam search's time its prefixes take: all that a cache of keys and values across calls could save.

    python benchmarks/_prefix_share.py --model smollm2 --task gsm8k --problems 2 --out results/process/prefix_share.json

Each step of a search is a call of its own, which computes the rows so far anew, equal ones once. On one thread.
"""

from __future__ import annotations

import argparse
import json
import time
from collections import Counter
from pathlib import Path
from typing import Any

import torch

from rewardlab import registry
from rewardlab.core import Run
from rewardlab.models.load import load_policy
from rewardlab.policies.llama import decode
from rewardlab.rewards.intrinsic import likelihood
from rewardlab.rollouts.beams import beams

PHASES = {"_prefill": "prefixes", "_step": "steps"}


def timed(spent: Counter[str]) -> None:
    """Have the decoder add the seconds of its phases to `spent`."""
    for name, phase in PHASES.items():
        plain = getattr(decode.Decoder, name)

        def measured(self: Any, *inputs: Any, plain: Any = plain, phase: str = phase) -> Any:
            began = time.perf_counter()
            try:
                return plain(self, *inputs)
            finally:
                spent[phase] += time.perf_counter() - began

        setattr(decode.Decoder, name, measured)


def measured(model: str, task_name: str, problems: int, max_new: int, step_tokens: int) -> dict[str, Any]:
    task = registry.task(task_name)
    policy, spent = load_policy(model, "cpu", "auto", None, task), Counter[str]()
    search, test = beams(score=likelihood(), width=4, branch=4, step_tokens=step_tokens), list(task.test[:problems])
    search(test, Run(policy, seed=0, max_new=max_new))
    timed(spent)
    began = time.perf_counter()
    search(test, Run(policy, seed=1, max_new=max_new))
    whole = time.perf_counter() - began
    shares = {phase: round(spent[phase] / whole, 3) for phase in PHASES.values()}
    settings = {"problems": problems, "width": 4, "branch": 4, "max_new": max_new, "step_tokens": step_tokens}
    return {"model": model, "task": task_name, **settings, "dtype": str(policy.dtype), "share": shares}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="embedded")
    parser.add_argument("--task", default="arithmetic")
    parser.add_argument("--problems", type=int, default=16)
    parser.add_argument("--max-new", type=int, default=160)
    parser.add_argument("--step-tokens", type=int, default=40)
    parser.add_argument("--out", type=Path, help="a file of rows; this model's and task's is replaced")
    args = parser.parse_args()
    torch.set_num_threads(1)
    row = measured(args.model, args.task, args.problems, args.max_new, args.step_tokens)
    print(json.dumps(row, indent=2))
    if args.out:
        rows = json.loads(args.out.read_text("utf-8")) if args.out.exists() else []
        others = [x for x in rows if (x["model"], x["task"]) != (row["model"], row["task"])]
        args.out.write_text(json.dumps([*others, row], indent=2) + "\n", "utf-8")


if __name__ == "__main__":
    main()
