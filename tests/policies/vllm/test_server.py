"""A server of vLLM as sampler, run by `make test-vllm`: weights and adapters are handed over, and a server that dies is told."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request

import pytest

pytest.importorskip("vllm")

from checkpoints import checkpoint
from sampled_elsewhere import CLOSE, RNG, SHAPE, begun, change, far

import rewardlab
from rewardlab.core import Sampling
from rewardlab.errors import RewardlabError
from rewardlab.policies.hf.policy import HFPolicy
from rewardlab.policies.llama.policy import LlamaPolicy
from rewardlab.policies.vllm.sampler import sampler_of

WHOLE = ("--hf-overrides", json.dumps({"tie_word_embeddings": False}))
ADAPTERS = ("--enable-lora", "--max-lora-rank", "8")
MODES = {"VLLM_SERVER_DEV_MODE": "1", "VLLM_ALLOW_RUNTIME_LORA_UPDATING": "1"}


@pytest.fixture(scope="module")
def folder(words, tmp_path_factory):
    where = tmp_path_factory.mktemp("model")
    checkpoint(where, words, "Qwen2ForCausalLM", tie_word_embeddings=True, **SHAPE)
    return where


def served(folder, *options):
    """A server of a checkpoint, once it answers: (process, address)."""
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    command = [
        sys.executable, "-m", "vllm.entrypoints.openai.api_server", "--model", str(folder), "--port", str(port),
        "--dtype", "float32", "--max-model-len", "256", "--max-num-seqs", "16", "--enforce-eager",
        "--kv-cache-memory-bytes", str(2**28), "--logprobs-mode", "processed_logprobs", *options,
    ]  # fmt: skip
    process = subprocess.Popen(command, env=os.environ | MODES, start_new_session=True)
    address = f"http://127.0.0.1:{port}"
    for _ in range(600):
        if process.poll() is not None:
            pytest.fail(f"the server ended with {process.returncode}")
        try:
            urllib.request.urlopen(f"{address}/health", timeout=1).close()
            return process, address
        except OSError:
            time.sleep(0.5)
    raise AssertionError("the server does not answer")


def killed(process):
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def test_weights_follow_and_a_run_survives_the_death_of_the_server(folder, tmp_path):
    process, address = served(folder, *WHOLE)
    try:
        policy = HFPolicy.load(folder, "cpu", "float32")
        policy.sampler = sampler_of(f"vllm:{address}", policy)
        for _ in range(3):
            done = policy.extend(begun(policy), Sampling(16), RNG.manual_seed(1))
            assert far(policy, done) < CLOSE
            change(policy)
        stopped = policy.extend(begun(policy), Sampling(30, stop=("1", "2", "+")), RNG.manual_seed(1))
        assert {t.stop for t in stopped} <= {"stop", "end", "length"}
        out = tmp_path / "run"
        trained = {"task": "arithmetic", "seed": 3, "max_new": 8, "eval_problems": 0, "dtype": "float32", "patience": 0}
        recipe = rewardlab.build("grpo", {"n": 4, "problems": 2})
        rewardlab.train(recipe, f"hf:{folder}", out=out, steps=2, sampler=f"vllm:{address}", **trained)
        with_it = rewardlab.resume(out, steps=4)
        assert with_it.summary["steps"] == 4
    finally:
        killed(process)
    with pytest.raises(RewardlabError, match="does not answer"):
        rewardlab.resume(out, steps=6)
    process, address = served(folder, *WHOLE)
    try:
        rewardlab.resume(out, steps=6, sampler=f"vllm:{address}")
    finally:
        killed(process)
    steps = [json.loads(line)["step"] for line in (out / "metrics.jsonl").read_text().splitlines()]
    assert max(steps) == 6


def test_adapters_alone_are_handed_over(folder):
    process, address = served(folder, *ADAPTERS)
    try:
        policy = LlamaPolicy.load(folder, "cpu", "float32").adapt(4)
        policy.sampler = sampler_of(f"vllm:{address}", policy)
        for _ in range(3):
            assert far(policy, policy.extend(begun(policy), Sampling(16), RNG)) < CLOSE
            change(policy)
    finally:
        killed(process)


def test_a_server_without_its_mode_is_told(folder, monkeypatch):
    monkeypatch.setitem(MODES, "VLLM_SERVER_DEV_MODE", "0")
    process, address = served(folder, *WHOLE)
    try:
        policy = HFPolicy.load(folder, "cpu", "float32")
        policy.sampler = sampler_of(f"vllm:{address}", policy)
        with pytest.raises(RewardlabError, match="VLLM_SERVER_DEV_MODE=1"):
            policy.extend(begun(policy), Sampling(4), RNG)
    finally:
        killed(process)
