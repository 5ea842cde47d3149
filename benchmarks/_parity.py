"""Parity of every method that an engine carries, each on the task of its claim: advantages, loss and gradient of one step.

python benchmarks/_parity.py verl [METHOD ...]        needs the engine's package; about four minutes for verl

Writes results/parity/ENGINE.json; methods that were not named keep their rows. Exit code 1: one of them differs.
"""

from __future__ import annotations

import contextlib
import json
import sys
from pathlib import Path
from typing import Any

from rewardlab import registry
from rewardlab.backends import parity, trl, verl
from rewardlab.errors import RewardlabError
from rewardlab.models.load import load_policy
from rewardlab.util.files import write_json

RESULTS = Path(__file__).parents[1] / "results" / "parity"
ENGINES = {"trl": trl, "verl": verl}


def compared(method: str, engine: str) -> dict[str, Any]:
    """What `rewardlab parity` says of a method; a refusal that comes only with the task is its verdict too."""
    recipe, task = registry.build(method), registry.task(registry.module_of(method).claim.task)
    try:
        start = load_policy("untrained", task=task)
        return parity.compare(recipe, task, start, registry.part("reward", task.verifier), engine)
    except RewardlabError as why:
        return {"method": method, "engine": engine, "verdict": "not compared", "why": str(why), "differences": {}, "largest": {}}


def main(engine: str, *named: str) -> int:
    methods = named or [name for name in registry.methods() if not ENGINES[engine].cannot_carry(registry.build(name))]
    path = RESULTS / f"{engine}.json"
    rows = json.loads(path.read_text("utf-8"))["rows"] if named and path.is_file() else {}
    for method in methods:
        with contextlib.redirect_stdout(sys.stderr):
            rows[method] = compared(method, engine)
        print(method, rows[method]["verdict"], rows[method]["why"], flush=True)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_json(path, {"engine": engine, "versions": ENGINES[engine].versions(), "rows": rows})
    return int(any(rows[method]["verdict"] == "differs" for method in methods))


if __name__ == "__main__":
    raise SystemExit(main(*sys.argv[1:]))
