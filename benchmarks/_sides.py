"""Two sides of a comparison, each in its own process with the same number of threads.

A benchmark module has `run(**settings) -> rows` and a table of sides, functions of plain settings that return plain data:

    def run(*, repeats=3):
        fast, slow = (in_own_process(__file__, side, {"repeats": repeats}) for side in ("ours", "peer"))
        return [row("name", fast["rate"], slow["rate"], "tokens/s", {...})]

    if __name__ == "__main__":
        main(run, {"ours": ours, "peer": peer})
"""

from __future__ import annotations

import argparse
import functools
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

THREADS = int(os.environ.get("REWARDLAB_BENCH_THREADS", "2"))
DEVICE = os.environ.get("REWARDLAB_BENCH_DEVICE", "cpu")
"""Where models run on both sides: cpu, or cuda. Only benchmarks that name it run on a GPU (`rewardlab bench --device cuda`)."""
Rows = list[dict[str, Any]]
Side = Callable[..., Any]
taken_by_others: list[float] = []
"""The share of the processor that other programs used while each side ran. If it is large, the numbers are unreliable."""


# ---- the process of the benchmark ------------------------------------------------------------------------------------


def main(run: Callable[..., Rows], sides: Mapping[str, Side]) -> None:
    """The command line of a benchmark: run it and print its rows, or be one of its sides."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    parser.add_argument("--side", choices=sorted(sides), help=argparse.SUPPRESS)
    parser.add_argument("--settings", type=json.loads, default={}, help=argparse.SUPPRESS)
    parser.add_argument("--result", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.side:
        args.result.write_text(json.dumps(sides[args.side](**args.settings)))
        return
    print(json.dumps(run(), indent=None if args.json else 2))


def in_own_process(script: str, side: str, settings: Mapping[str, Any], limit: float | None = None) -> Any:
    """What a side of the benchmark `script` returns, run alone with THREADS threads; what it prints shows if it fails.

    limit: seconds after which it is ended, which is a failure.
    """
    limits = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS"), str(THREADS))
    calm = {"TOKENIZERS_PARALLELISM": "false", "HF_HUB_OFFLINE": "1", "TRANSFORMERS_VERBOSITY": "error"}
    # a library that finds a GPU would use it
    calm |= {"CUDA_VISIBLE_DEVICES": ""} if DEVICE == "cpu" else {}
    with tempfile.TemporaryDirectory() as folder:
        result = Path(folder) / "result.json"
        command = [sys.executable, script, "--side", side, "--settings", json.dumps(settings), "--result", str(result)]
        before = _processor_seconds()
        try:
            done = subprocess.run(
                command, env=os.environ | limits | calm, capture_output=True, text=True, errors="replace", timeout=limit
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            raise SystemExit(f"{Path(script).name}, side {side}, took longer than {limit:.0f} seconds") from None
        total, idle, own = (b - a for a, b in zip(before, _processor_seconds(), strict=True))
        taken_by_others.append(max(0.0, 1 - (idle + own) / total) if total else 0.0)
        if done.returncode:
            said = "\n".join((done.stdout + done.stderr).splitlines()[-30:])
            raise SystemExit(f"{Path(script).name}, side {side}, ended with exit code {done.returncode}:\n{said}")
        return json.loads(result.read_text())


def _processor_seconds() -> tuple[float, float, float]:
    """Processor times: of all cores, idle, and of the sides run so far; zeros if the system does not report them."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    try:
        ticks = [int(x) for x in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]]
    except (OSError, ValueError):
        return 0.0, 0.0, 0.0
    second = os.sysconf("SC_CLK_TCK")
    return sum(ticks) / second, (ticks[3] + ticks[4]) / second, children.ru_utime + children.ru_stime


def row(name: str, ours: float, peer: float, unit: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """One line of the report; ratio > 1 says that ours is better: more of it per second, or fewer seconds."""
    ratio = ours / peer if unit.endswith("/s") else peer / ours
    about = {"threads": THREADS, **_gpu(), "cpu_taken_by_others": tidy(max(taken_by_others, default=0.0))}
    numbers = {"ratio": tidy(ratio), "ours": tidy(ours), "peer": tidy(peer)}
    return {"name": name, **numbers, "unit": unit, "settings": about | dict(settings)}


def _gpu() -> dict[str, Any]:
    """The GPU of a row that was measured on one."""
    if DEVICE == "cpu":
        return {}
    import torch

    return {"device": torch.cuda.get_device_name(), "cuda": torch.version.cuda, "torch": torch.__version__}


def tidy(x: float) -> float:
    """Four significant digits."""
    return float(f"{x:.4g}")


def embedded_model() -> dict[str, Any]:
    """The folder of the embedded checkpoint, and the seconds that training it took (0 if it was cached)."""
    return in_own_process(__file__, "embedded", {})


def smollm2_model() -> str:
    """The folder of SmolLM2's checkpoint."""
    return in_own_process(__file__, "smollm2", {})


# ---- within a side ---------------------------------------------------------------------------------------------------


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    """Seconds of a call, and what it returned; on a GPU until it has done all of it."""
    settled()
    start = time.perf_counter()
    found = work()
    settled()
    return time.perf_counter() - start, found


def settled() -> None:
    """Wait for the GPU, if there is one."""
    if DEVICE != "cpu":
        import torch

        torch.cuda.synchronize()


def rate_of(draw: Callable[[], int], repeats: int) -> dict[str, Any]:
    """Tokens per second of a call that returns its token count: the median of `repeats` calls, after one warm-up call."""
    draw()
    runs = [timed(draw) for _ in range(repeats)]
    rate = statistics.median(tokens / seconds for seconds, tokens in runs)
    return {"rate": tidy(rate), "tokens": round(statistics.mean(tokens for _, tokens in runs))}


def memory() -> float:
    """Peak memory of this process in MiB; on a GPU, that of its tensors there.

    Linux also keeps it per address space: its getrusage counts what the parent held before it started this program.
    """
    if DEVICE != "cpu":
        import torch

        return torch.cuda.max_memory_allocated() / (1 << 20)
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024
    except (OSError, StopIteration):
        unit = 1 << 20 if sys.platform == "darwin" else 1 << 10
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit


def matrix_peak(dtype: str, sizes: Sequence[int], repeats: int = 5) -> float:
    """GFLOP/s of this machine's fastest square matrix product in a number format."""
    import torch

    best = 0.0
    for n in sizes:
        a, b = (torch.randn(n, n, device=DEVICE).to(getattr(torch, dtype)) for _ in range(2))
        out = torch.empty_like(a)
        fastest = min(timed(functools.partial(torch.mm, a, b, out=out))[0] for _ in range(1 + repeats))
        best = max(best, 2e-9 * n**3 / fastest)
    return best


def memory_bandwidth(mib: int = 512, repeats: int = 5) -> float:
    """GB/s at which this machine reads: the fastest sum over a table that no cache holds."""
    import torch

    table = torch.ones(mib << 18, device=DEVICE)
    return table.numel() * 4e-9 / min(timed(table.sum)[0] for _ in range(1 + repeats))


def _smollm2() -> str:
    from rewardlab.models import smollm2

    return str(smollm2.checkpoint())


def _embedded() -> dict[str, Any]:
    from rewardlab.models import embedded

    start = time.perf_counter()
    folder = embedded.checkpoint()
    return {"folder": str(folder), "made_in_seconds": tidy(time.perf_counter() - start)}


if __name__ == "__main__":
    main(list, {"embedded": _embedded, "smollm2": _smollm2, "memory_bandwidth": memory_bandwidth})
