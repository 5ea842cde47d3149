"""What is kept of a run in results/real: its summary, the command that made it, and its curve.

python benchmarks/_kept_run.py runs/FOLDER "rewardlab train ..." --out results/real/NAME.json
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

CURVE = (
    *("step", "reward", "length", "entropy", "drift", "mismatch_far", "grad_norm", "tokens"),
    *("eval/pass@1", "eval/ci95_low", "eval/ci95_high"),
)


def kept(run: Path, command: str) -> dict[str, Any]:
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    curve = [{k: line[k] for k in CURVE if k in line} for line in lines]
    return {"command": command, **json.loads((run / "summary.json").read_text()), "curve": curve}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path)
    parser.add_argument("command")
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    args.out.write_text(json.dumps(kept(args.run, args.command), indent=1) + "\n")
