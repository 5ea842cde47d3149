"""rewardlab as a package: sdist and wheel, an empty environment, and every kind of command from another folder.

python benchmarks/_package.py --python python3.13 --folder /tmp/package-3.13 --out FILE     from nothing, with PyTorch as TORCH says
python benchmarks/_package.py --env /tmp/env --folder /tmp/package --out FILE               in an environment that has PyTorch

Builds from a copy of the checkout, and counts warnings. Installs the wheel (--source: the checkout itself, as `pip install .`)
with the extra `verify`, then runs list, show, parts, doctor, train, eval, answer, verify, audit, report and export, and asks mypy
about a file that uses the package. PyTorch is $TORCH (torch==2.13.0), whatever build the package index gives.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
COPIED = ("src", "pyproject.toml", "README.md", "LICENSE")
USES = """
from rewardlab import Recipe, build, train

recipe: Recipe = build("grpo", {"n": 4})
result = train(recipe, task="arithmetic", steps=1)
wrong: int = result.out
reveal_type(recipe)
"""
REPLIES = [{"response": "So it is \\boxed{\\frac{1}{2}}", "answer": "0.5"}, {"response": "Answer: 3", "answer": "4"}]
REWARD = "def short(completion):\n    return -0.01 * len(completion)\n"


def run(argv: list[str | Path], cwd: Path, **more: Any) -> subprocess.CompletedProcess[str]:
    # these settings of a developer's shell would make the builders warn, or the checkout be found
    env = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "PYTHONDONTWRITEBYTECODE", "REWARDLAB_CACHE")}
    return subprocess.run([str(x) for x in argv], cwd=cwd, capture_output=True, text=True, env=env | more.pop("env", {}), **more)


def must(done: subprocess.CompletedProcess[str]) -> subprocess.CompletedProcess[str]:
    if done.returncode:
        raise SystemExit(f"{' '.join(done.args)} ended with {done.returncode}:\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}")
    return done


def environment(folder: Path, python: str) -> Path:
    """A new environment with PyTorch in it; its Python."""
    must(run([python, "-m", "venv", folder], folder.parent))
    must(run([folder / "bin" / "pip", "install", os.environ.get("TORCH", "torch==2.13.0")], folder.parent))
    return folder / "bin" / "python"


def built(python: Path, folder: Path) -> tuple[Path, dict[str, Any]]:
    """The wheel, and what building said: from the sdist, which is built from a copy of the checkout."""
    copy = folder / "checkout"
    for name in COPIED:
        source = ROOT / name
        ignored = shutil.ignore_patterns("__pycache__", "*.egg-info")
        shutil.copytree(source, copy / name, ignore=ignored) if source.is_dir() else shutil.copy(source, copy / name)
    must(run([python, "-m", "pip", "install", "-q", "build"], folder))
    done = must(run([python, "-W", "always", "-m", "build", "--outdir", folder / "dist", copy], folder))
    said = done.stdout + done.stderr
    warnings = [line for line in said.splitlines() if re.search(r"warning|deprecat", line, re.IGNORECASE)]
    (wheel,) = (folder / "dist").glob("*.whl")
    (sdist,) = (folder / "dist").glob("*.tar.gz")
    return wheel, {"wheel_kb": wheel.stat().st_size // 1024, "sdist_kb": sdist.stat().st_size // 1024, "warnings": warnings}


def commands(folder: Path) -> dict[str, list[str]]:
    """The command lines, in their order."""
    (folder / "replies.jsonl").write_text("".join(json.dumps(row) + "\n" for row in REPLIES))
    (folder / "mine.py").write_text(REWARD)
    small = [
        "--task",
        "arithmetic:difficulty=1",
        "--device",
        "cpu",
        "--model",
        "untrained",
        "--eval-problems",
        "8",
        "--max-new",
        "8",
    ]
    return {
        "version": ["--version"], "help": ["--help"], "list": ["list", "--json"], "show": ["show", "grpo"],
        "parts": ["parts", "judge"], "doctor": ["doctor", "--json"],
        "train": ["train", "grpo", *small, "--steps", "3", "--n", "4", "--problems", "2", "--out", "run"],
        "resume": ["train", "--resume", "run", "--steps", "4", "--json"],
        "train on a reward of one's own": ["train", "rloo", *small, "--steps", "1", "--reward", "mine.py:short", "--out", "own"],
        "report": ["report", "run"], "diagnose": ["diagnose", "run"],
        "eval": ["eval", "run", "--problems", "8", "--k", "1", "--json"],
        "answer": ["answer", "majority_vote", "--model", "run", "--problems", "4", "--n", "4", "--json"],
        "export": ["export", "run", "exported"],
        "verify": ["verify", "math", "--in", "replies.jsonl", "--out", "judged.jsonl", "--json"],
        "audit": ["audit", "final_number", "--kind", "numbers", "--questions", "2", "--out", "audit.html", "--json"],
    }  # fmt: skip


def tried(python: Path, folder: Path) -> dict[str, Any]:
    """Each command's exit code and seconds, and the end of what it said where it failed."""
    env = {"REWARDLAB_CACHE": str(folder / "cache"), "PYTHONWARNINGS": "error::DeprecationWarning:rewardlab"}
    found = {}
    for name, argv in commands(folder).items():
        started = time.perf_counter()
        done = run([python.parent / "rewardlab", *argv], folder, env=env, timeout=900)
        found[name] = {"exit": done.returncode, "seconds": round(time.perf_counter() - started, 1)}
        if done.returncode:
            found[name]["said"] = (done.stdout + done.stderr)[-1500:]
        print(name, found[name], flush=True)
    judged = [json.loads(line)["correct"] for line in (folder / "judged.jsonl").read_text().splitlines()]
    found["verify"]["verdicts"] = judged
    return found


def typed(python: Path, folder: Path) -> dict[str, Any]:
    """What mypy says of a file that uses the installed package: it must find its types, and the one mistake."""
    must(run([python, "-m", "pip", "install", "-q", "mypy"], folder))
    (folder / "uses.py").write_text(USES)
    said = run([python, "-m", "mypy", "--no-incremental", "uses.py"], folder).stdout.splitlines()
    return {"said": said, "believed": any("rewardlab.core.recipe.Recipe" in line for line in said)
            and sum(": error:" in line for line in said) == 1}  # fmt: skip


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", default="python3", help="of the new environment")
    parser.add_argument("--env", type=Path, help="an environment that is there, in place of a new one")
    parser.add_argument("--source", action="store_true", help="install the checkout itself, and not its wheel")
    parser.add_argument("--folder", type=Path, required=True, help="a new folder for all of it")
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    folder = args.folder.resolve()
    folder.mkdir(parents=True)
    python = args.env.resolve() / "bin" / "python" if args.env else environment(folder / "env", args.python)
    wheel, building = built(python, folder)
    what = folder / "checkout" if args.source else wheel
    must(run([python, "-m", "pip", "install", "--force-reinstall", "--no-deps", what], folder))
    must(run([python, "-m", "pip", "install", f"{what}[verify]"], folder))
    elsewhere = folder / "elsewhere"
    elsewhere.mkdir()
    # the checkout must not be found by chance
    shutil.rmtree(folder / "checkout")
    version = run(
        [python, "-c", "import platform, torch; print(platform.python_version(), torch.__version__)"], folder
    ).stdout.split()
    installed = "checkout" if args.source else "wheel"
    document = {"python": version[0], "torch": version[1], "installed": installed, "building": building}
    document |= {"commands": tried(python, elsewhere), "mypy": typed(python, elsewhere)}
    failed = [name for name, one in document["commands"].items() if one["exit"]]
    print(json.dumps({"failed": failed, "warnings": building["warnings"], "typed": document["mypy"]["believed"]}, indent=1))
    if args.out:
        args.out.write_text(json.dumps(document, indent=1) + "\n")
    raise SystemExit(bool(failed or building["warnings"] or not document["mypy"]["believed"]))
