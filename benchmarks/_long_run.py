"""A long run watched from outside: memory, open descriptors and processor seconds, every 50 steps.

python benchmarks/_long_run.py --out FILE.json               2,000 steps of GRPO on the embedded policy, about ten minutes
python benchmarks/_long_run.py --out FILE.json --steps 200

Processor seconds, not the clock's, so that other work beside it does not count.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

EVERY = 50
SETTINGS = (
    *("--task", "arithmetic", "--n", "8", "--problems", "8", "--lr", "1e-5"),
    *("--eval-every", "200", "--eval-problems", "50", "--checkpoint-every", "100"),
)


def watched(steps: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "run"
        words = ["train", "grpo", *SETTINGS, "--steps", str(steps)]
        process = subprocess.Popen(
            [sys.executable, "-m", "rewardlab", *words, "--out", str(out)], env=os.environ | {"OMP_NUM_THREADS": "1"}
        )
        rows: list[dict[str, Any]] = []
        while process.poll() is None:
            time.sleep(0.5)
            metrics = out / "metrics.jsonl"
            step = len(metrics.read_bytes().splitlines()) if metrics.exists() else 0
            if not rows or step >= rows[-1]["step"] + EVERY:
                rows += _seen(process.pid, step)
        summary = json.loads((out / "summary.json").read_text())
    return {"command": f"OMP_NUM_THREADS=1 rewardlab {' '.join(words)}", "rows": rows, "summary": summary}


def _seen(process: int, step: int) -> list[dict[str, Any]]:
    """One row, or none where the process has just ended."""
    place = Path(f"/proc/{process}")
    try:
        status = dict(line.split(":", 1) for line in (place / "status").read_text().splitlines())
        times = (place / "stat").read_text().rpartition(")")[2].split()
        return [
            {
                "step": step, "processor_seconds": (int(times[11]) + int(times[12])) / os.sysconf("SC_CLK_TCK"),
                "memory_mib": round(int(status["VmRSS"].split()[0]) / 1024, 1), "descriptors": len(list((place / "fd").iterdir())),
                "threads": int(status["Threads"]),
            }
        ]  # fmt: skip
    except (OSError, KeyError):
        return []


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--steps", type=int, default=2000)
    args = parser.parse_args()
    args.out.write_text(json.dumps(watched(args.steps), indent=1))
