"""Run the benchmarks of this checkout: rewardlab and a peer side by side, each in its own process.

  rewardlab bench
  rewardlab bench generate-embedded --json
  rewardlab bench --device cuda

`generate-embedded` is benchmarks/generate_embedded.py; run with --json it prints one JSON document: a row, or a list of
rows, with name, ratio, ours, peer, unit, settings. Modules whose name starts with _ are not benchmarks. With --device cuda models
run on the GPU on both sides, in those benchmarks that have a model: against transformers, TRL, and vLLM where it is installed.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

HELP = "run the benchmarks of this checkout"
ON_GPU = ("generate-embedded", "generate-smollm2", "step-embedded", "step-smollm2")
"""Benchmarks that run a model on either device."""


def flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("names", nargs="*", metavar="NAME", help="benchmarks to run (default: all)")
    where = "cpu (default), or cuda: on the GPU, the benchmarks that can run there"
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu", help=where)


def run(args: argparse.Namespace) -> list[dict[str, Any]]:
    from rewardlab.errors import RewardlabError, unknown
    from rewardlab.registry import catalogue

    root = catalogue.repository()
    if root is None or not (root / "benchmarks").is_dir():
        raise RewardlabError("there are no benchmarks here; run `rewardlab bench` from a checkout (pip install -e .)")
    known = {p.stem.replace("_", "-"): p for p in sorted((root / "benchmarks").glob("*.py")) if p.stem[0] != "_"}
    if args.device == "cuda":
        known = on_gpu(known, args.names)
    # both spellings are accepted, that of the flag and that of the file
    names = [name.replace("_", "-") for name in args.names]
    for name, written in zip(names, args.names, strict=True):
        if name not in known:
            raise unknown("benchmark", written, known)
    return [row for name in names or known for row in measure(name, known[name], args.device)]


def on_gpu(known: dict[str, Path], names: Sequence[str]) -> dict[str, Path]:
    """The benchmarks that can run on a GPU. Raises RewardlabError where there is none, and for a name that cannot."""
    from rewardlab.errors import RewardlabError
    from rewardlab.util.device import device_of

    device_of("cuda")
    can = {name: path for name, path in known.items() if name in ON_GPU}
    if wrong := [name for name in names if name.replace("_", "-") in known and name.replace("_", "-") not in can]:
        raise RewardlabError(f"the benchmark {wrong[0]} has no model to run on a GPU; those that have: {', '.join(can)}")
    return can


def measure(name: str, path: Path, device: str = "cpu") -> list[dict[str, Any]]:
    """The rows of one benchmark, run in a process of its own; a failure is a row with its error."""
    # progress goes to stderr, since stdout is for the document
    print(f"{name} ...", file=sys.stderr, flush=True)
    started = time.monotonic()
    # stderr is not captured: progress and tracebacks of a benchmark are shown as they come
    command, env = [sys.executable, str(path), "--json"], os.environ | {"REWARDLAB_BENCH_DEVICE": device}
    process = subprocess.run(command, cwd=path.parents[1], stdout=subprocess.PIPE, text=True, env=env)
    print(f"{name}: {time.monotonic() - started:.0f} s", file=sys.stderr, flush=True)
    if process.returncode:
        return [{"name": name, "error": f"exit code {process.returncode}"}]
    try:
        rows = json.loads(process.stdout)
    except ValueError:
        return [{"name": name, "error": "did not print one JSON document"}]
    return rows if isinstance(rows, list) else [rows]


def show(document: list[dict[str, Any]]) -> None:
    from rewardlab.commands.tables import table

    columns = ("name", "ratio", "ours", "peer", "unit")
    table(columns, [[row.get(k, row.get("error") if k == "unit" else None) for k in columns] for row in document])


def exit_code(document: list[dict[str, Any]]) -> int:
    return 1 if any("error" in row for row in document) else 0
