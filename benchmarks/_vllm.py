"""GRPO on SmolLM2 with replies sampled by vLLM, beside the policy itself and transformers: rewards, and where a step's time goes.

    make test-vllm                                         # makes .venv-vllm
    .venv-vllm/bin/python benchmarks/_vllm.py              # writes results/bench/vllm.json
    .venv-vllm/bin/python benchmarks/_vllm.py --sides 2 --steps 16 --seeds 3 --out results/bench/vllm_curve.json

Each side is a run in its own process, on the same problems; sides take turns. The reward is the share of digits in a reply, which
pays something from the first step on. ratio: seconds of the first side over those of this one, without the first two steps, in
which things are compiled and caches filled. curve: the mean reward of each step over seeds. reward: by seed, of the second half of
the steps; its differences from the first side on the same seeds say whether a side learns as that one does.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SIDES = {
    "rewardlab": ("smollm2", None),
    "rewardlab, sampled by vLLM": ("smollm2", "vllm,cache=1,context=512,rows=64"),
    "transformers": ("hf:smollm2", None),
    "transformers, sampled by vLLM": ("hf:smollm2", "vllm,cache=1,context=512,rows=64"),
}
NAMES = ("Ada", "Bo", "Cem", "Dana", "Eli", "Finn", "Gus", "Hana")
PAY = "def pay(reply):\n    return sum(c.isdigit() for c in reply) / max(1, len(reply))\n"


def one(side: str, folder: Path, seed: int, steps: int, dtype: str) -> dict[str, list[float]]:
    """A run, in this process: what each step measured, by name."""
    import rewardlab
    from rewardlab.registry.formula import read_reward

    model, sampler = SIDES[side]
    recipe = rewardlab.build("grpo", {"n": 4, "problems": 4, "lr": 3e-5}).scored_by(read_reward(f"{folder / 'pay.py'}:pay"))
    out = folder / f"{list(SIDES).index(side)}-s{seed}"
    rewardlab.train(
        recipe, model, str(folder / "rows.jsonl"), out=out, steps=steps, seed=seed, max_new=24, eval_problems=0, dtype=dtype,
        sampler=sampler, patience=0, checkpoint_every=0,
    )  # fmt: skip
    lines = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
    names = ("reward", "mismatch_far", "tokens", "length", "seconds/step", "seconds/generate", "seconds/train")
    return {name: [line[name] for line in lines if name in line] for name in names}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--sides", type=int, default=len(SIDES), help="so many of the sides, from the first")
    parser.add_argument("--out", type=Path, default=ROOT / "results" / "bench" / "vllm.json")
    parser.add_argument("--side", help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--seed", type=int, default=0, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.side:
        found = one(args.side, args.folder, args.seed, args.steps, args.dtype)
        (args.folder / "found.json").write_text(json.dumps(found))
        return
    runs: dict[str, list[dict]] = {side: [] for side in list(SIDES)[: args.sides]}
    with tempfile.TemporaryDirectory() as where:
        write_inputs(Path(where))
        for seed in range(args.seeds):
            for side in runs:
                mine = ["--side", side, "--folder", where, "--seed", str(seed), "--steps", str(args.steps), "--dtype", args.dtype]
                begun = time.perf_counter()
                subprocess.run([sys.executable, __file__, *mine], check=True)
                found = json.loads((Path(where) / "found.json").read_text())
                runs[side].append(found | {"process": time.perf_counter() - begun})
                print(f"{side}, seed {seed}: reward {found['reward'][0]:.3f} to {statistics.mean(found['reward'][-3:]):.3f}")
    settings = {"steps": args.steps, "seeds": args.seeds, "dtype": args.dtype, "rows": 16, "max_new": 24, "cores": os.cpu_count()}
    told = {
        "settings": settings,
        "machine": machine(),
        "sides": [account(side, of, runs["rewardlab"]) for side, of in runs.items()],
    }
    args.out.write_text(json.dumps(told, indent=1) + "\n")


def machine() -> dict[str, float]:
    """The most that this machine did: products of float32 matrices, and reading memory; the best of several."""
    import torch

    a, big = torch.randn(1024, 1024), torch.randn(1 << 27)
    products, sums = [], []
    for _ in range(8):
        begun = time.perf_counter()
        torch.mm(a, a)
        products.append(2 * 1024**3 / (time.perf_counter() - begun) / 1e9)
        begun = time.perf_counter()
        big.sum()
        sums.append(4 * len(big) / (time.perf_counter() - begun) / 1e9)
    return {"gflop_s": round(max(products), 1), "gb_s": round(max(sums), 1)}


def write_inputs(folder: Path) -> None:
    (folder / "pay.py").write_text(PAY)
    prompts = [f"{a} and {b} want to know their lucky number. Tell it." for a in NAMES for b in NAMES if a != b]
    (folder / "rows.jsonl").write_text("".join(json.dumps({"prompt": p, "answer": "7"}) + "\n" for p in prompts))


def second_half(run: dict) -> float:
    return statistics.mean(run["reward"][len(run["reward"]) // 2 :])


def account(side: str, runs: list[dict], usual: list[dict]) -> dict:
    """What a side's runs come to; ratios of seconds to those of the `usual` side."""

    def median(of: list[dict], name: str) -> float:
        return statistics.median(seconds for run in of for seconds in run[name][2:])

    parts, late = ("step", "generate", "train"), [second_half(run) for run in runs]
    return {
        "side": side, "reward_first": [run["reward"][0] for run in runs],
        "reward_last": [statistics.mean(run["reward"][-3:]) for run in runs],
        "reward": late, "less_the_first_side": [a - b for a, b in zip(late, map(second_half, usual), strict=True)],
        "curve": [statistics.mean(values) for values in zip(*(run["reward"] for run in runs), strict=True)],
        "mismatch_far": [statistics.mean(run["mismatch_far"]) if run["mismatch_far"] else None for run in runs],
        "ratio": {part: median(usual, f"seconds/{part}") / median(runs, f"seconds/{part}") for part in parts},
        "share_generate": median(runs, "seconds/generate") / median(runs, "seconds/step"), "runs": runs,
    }  # fmt: skip


if __name__ == "__main__":
    main()
