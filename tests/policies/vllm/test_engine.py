"""vLLM in this process, run by `make test-vllm` in an environment that has it: replies and log-probs are those of the policy."""

import json
import math

import numpy as np
import pytest

pytest.importorskip("vllm")

from checkpoints import checkpoint
from sampled_elsewhere import CLOSE, QUESTIONS, RNG, SHAPE, begun, change, far

import rewardlab
from rewardlab.core import Sampling
from rewardlab.policies.hf.policy import HFPolicy
from rewardlab.policies.llama.policy import LlamaPolicy
from rewardlab.policies.vllm.sampler import sampler_of
from rewardlab.registry.formula import read_reward

SPEC = "vllm,cache=0.2,context=256,rows=16"


@pytest.fixture(scope="module", params=["tied", "untied", "Qwen2"])
def folder(request, words, tmp_path_factory):
    kind = "Qwen2ForCausalLM" if request.param == "Qwen2" else "LlamaForCausalLM"
    where = tmp_path_factory.mktemp(request.param)
    checkpoint(where, words, kind, tie_word_embeddings=request.param == "tied", **SHAPE)
    return where


def test_a_policy_is_sampled_with_the_weights_that_it_has_now(folder):
    for policy in (LlamaPolicy.load(folder, "cpu", "float32"), HFPolicy.load(folder, "cpu", "float32")):
        policy.sampler = sampler_of(SPEC, policy)
        rows, sampling = begun(policy), Sampling(24)
        done = policy.extend(rows, sampling, RNG.manual_seed(1))
        assert far(policy, done) < CLOSE
        assert all(t.stop in ("end", "length") for t in done)
        assert all((t.stop == "end") == (int(t.turns[-1].ids[-1]) in policy.ends) for t in done)
        again = policy.extend(rows, sampling, RNG.manual_seed(1))
        assert [t.reply for t in again] == [t.reply for t in done]
        change(policy)
        changed = policy.extend(rows, sampling, RNG.manual_seed(1))
        assert far(policy, changed) < CLOSE
        assert [t.reply for t in changed] != [t.reply for t in done]
        same_beside_others(policy, rows)
        greedy_as_by_itself(policy, rows)
        ends_at_strings(policy, rows)
        warped(policy, rows)


def same_beside_others(policy, rows):
    sampling = Sampling(12, seeds=tuple(range(len(rows))))
    all_rows = policy.extend(rows, sampling, RNG)
    alone = policy.extend(rows[3:4], Sampling(12, seeds=(3,)), RNG)
    assert alone[0].reply == all_rows[3].reply


def greedy_as_by_itself(policy, rows):
    ours = policy.extend(rows, Sampling(12, 0.0), RNG)
    sampler, policy.sampler = policy.sampler, None
    theirs = policy.extend(rows, Sampling(12, 0.0), RNG)
    policy.sampler = sampler
    assert [t.reply for t in ours] == [t.reply for t in theirs]


def ends_at_strings(policy, rows):
    free = policy.extend(rows, Sampling(30), RNG.manual_seed(2))
    row, piece = next((i, c) for i, t in enumerate(free) for c in t.reply if c.isascii() and t.reply.index(c) < 20)
    done = policy.extend(rows, Sampling(30, stop=(piece,)), RNG.manual_seed(2))
    assert done[row].stop == "stop"
    # what it would have written, up to the string, which stays
    own = done[row].turns[-1].ids
    assert own.tolist() == free[row].turns[-1].ids[: len(own)].tolist()
    assert piece in done[row].reply
    assert piece not in policy.decode(own[:-1])


def warped(policy, rows):
    """Under temperature and top-k the log-prob of what was sampled is that of the distribution sampled from; none is the raw."""
    done = policy.extend(rows, Sampling(8, 0.7, top_k=2), RNG.manual_seed(3))
    turns = [t.turns[-1] for t in done]
    assert all(turn.logprobs is None for turn in turns)
    # the more likely of two tokens has half of the probability at least, and it is sampled somewhere
    best = max(float(turn.sampled.max()) for turn in turns)
    assert math.log(0.5) <= best <= 0


@pytest.mark.parametrize("kind", [LlamaPolicy, HFPolicy])
def test_adapters_are_swapped(kind, folder):
    policy = (
        LlamaPolicy.load(folder, "cpu", "float32").adapt(4)
        if kind is LlamaPolicy
        else HFPolicy.load(folder, "cpu", "float32", lora_rank=4)
    )
    policy.sampler = sampler_of(SPEC, policy)
    rows = begun(policy)
    for _ in range(3):
        assert far(policy, policy.extend(rows, Sampling(16), RNG)) < CLOSE
        change(policy)


def test_grpo_learns_as_without_and_resumes(folder, tmp_path):
    """The same rewards within noise; a run that was stopped and resumed samples what it would have sampled."""
    rows = tmp_path / "rows.jsonl"
    rows.write_text("".join(json.dumps({"prompt": q, "answer": "2"}) + "\n" for q in QUESTIONS))
    reward = tmp_path / "pay.py"
    reward.write_text("def pay(reply):\n    return float(reply.count(chr(50))) / max(1, len(reply))\n")
    same = {"task": str(rows), "seed": 3, "max_new": 8, "eval_problems": 0, "dtype": "float32", "patience": 0}
    recipe = rewardlab.build("grpo", {"lr": 1e-2, "n": 8, "problems": 3}).scored_by(read_reward(f"{reward}:pay"))

    def curve(out):
        lines = (out / "metrics.jsonl").read_text().splitlines()
        return [json.loads(line)["reward"] for line in lines if '"reward"' in line]

    rewardlab.train(recipe, f"hf:{folder}", out=tmp_path / "own", steps=30, **same)
    rewardlab.train(recipe, f"hf:{folder}", out=tmp_path / "vllm", steps=30, sampler=SPEC, mismatch="truncate", **same)
    own, other = curve(tmp_path / "own"), curve(tmp_path / "vllm")
    print(own, other)
    assert min(np.mean(own[-5:]), np.mean(other[-5:])) > 0.1 + max(own[0], other[0])
    rewardlab.train(recipe, f"hf:{folder}", out=tmp_path / "part", steps=10, sampler=SPEC, mismatch="truncate", **same)
    rewardlab.resume(tmp_path / "part", steps=30)
    assert curve(tmp_path / "part") == pytest.approx(other, abs=1e-6)
