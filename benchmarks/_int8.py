"""Weights in 8 bits beside those in bfloat16: SmolLM2's time a token for a few rows, its log-probs, and its greedy replies.

python benchmarks/_int8.py [--threads 2] [--out results/bench/int8.json]

rows: of so many replies at a time, the least wall and processor milliseconds a token of several calls in turn.  logprobs: the mean
and the largest difference of what the steps say of sampled tokens from what is computed of the same texts in float32, of both
formats: that of bfloat16 is its rounding alone.  greedy: the share of greedy replies that are the same to the last token, and of
tokens before the first that differs.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch

from rewardlab import load_policy
from rewardlab.core import Sampling, Trajectory, ask, stream

QUESTIONS = (
    "Tell me a story about a fox.", "What is 17 times 3?", "Write a haiku about rain.", "Why is the sky blue?",
    "Name three rivers in Europe.", "How do I boil an egg?", "Explain photosynthesis in one sentence.", "What is a prime number?",
)  # fmt: skip
NAMES = {"bfloat16": "smollm2", "int8": "int8:smollm2"}


def drawn(policy: Any, questions: tuple[str, ...], tokens: int, temperature: float) -> list[Trajectory]:
    problems = [ask(q) for q in questions]
    rows = policy.read([Trajectory(p) for p in problems], [p.prompt for p in problems])
    return policy.extend(rows, Sampling(tokens, temperature), stream("bench", 0))


def timed(policies: dict[str, Any], rows: int, tokens: int, rounds: int) -> dict[str, dict[str, float]]:
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in policies}
    for _ in range(1 + rounds):
        for name, policy in policies.items():
            ends, policy.ends = policy.ends, frozenset()
            wall, used = time.perf_counter(), sum(os.times()[:4])
            drawn(policy, QUESTIONS[:1] * rows, tokens, 1.0)
            spent = time.perf_counter() - wall, sum(os.times()[:4]) - used
            policy.ends = ends
            found[name].append((1e3 * spent[0] / tokens / rows, 1e3 * spent[1] / tokens / rows))
    least = {name: [round(min(x), 2) for x in zip(*runs[1:], strict=True)] for name, runs in found.items()}
    return {name: {"wall_ms": wall, "processor_ms": used} for name, (wall, used) in least.items()}


def differences(policy: Any, exact: Any, tokens: int) -> dict[str, float]:
    rows = drawn(policy, QUESTIONS, tokens, 1.0)
    told = [t.turns[-1].logprobs for t in rows]
    off = np.concatenate([np.abs(a - b[-len(a) :]) for a, b in zip(told, exact.score(rows), strict=True)])
    return {"mean": float(off.mean()), "largest": float(off.max()), "tokens": len(off)}


def agreement(policies: dict[str, Any], tokens: int) -> dict[str, float]:
    one, other = ([t.turns[-1].ids.tolist() for t in drawn(p, QUESTIONS, tokens, 0.0)] for p in policies.values())
    length = max(map(len, one + other))
    tables = [np.array([row + [end] * (length - len(row)) for row in rows]) for end, rows in ((-1, one), (-2, other))]
    same = (tables[0] == tables[1]).cumprod(1).sum(1).tolist()
    whole = [a == b for a, b in zip(one, other, strict=True)]
    return {"replies": sum(whole) / len(whole), "tokens": sum(same) / sum(map(len, one))}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--tokens", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--rows", type=int, nargs="*", default=[1, 2, 4, 8, 16])
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    policies = {kind: load_policy(name, "cpu", "bfloat16") for kind, name in NAMES.items()}
    exact = load_policy("smollm2", "cpu", "float32")
    document = {
        "threads": args.threads, "tokens": args.tokens, "load": os.getloadavg()[0],
        "logprobs": {kind: differences(policy, exact, args.tokens) for kind, policy in policies.items()},
        "greedy": agreement(policies, args.tokens),
        "rows": {str(n): timed(policies, n, args.tokens, args.rounds) for n in args.rows},
    }  # fmt: skip
    print(json.dumps(document, indent=1))
    if args.out:
        args.out.write_text(json.dumps(document, indent=1) + "\n")


if __name__ == "__main__":
    main()
