"""Models in 4 bits: their matrices are packed by bitsandbytes, adapters on them train, and what samples is what is trained."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from rewardlab.api import train
from rewardlab.core import Sampling, Trajectory, ask
from rewardlab.errors import RewardlabError
from rewardlab.methods.baselines.grpo import grpo
from rewardlab.methods.sampling.qerl import qerl
from rewardlab.models.checkpoint import absolute_name, find, is_hub_name
from rewardlab.models.embedded import untrained
from rewardlab.models.load import load_policy
from rewardlab.rewards.intrinsic import likelihood
from rewardlab.util import extras
from rewardlab.util.outputs import forward_batch

QUESTIONS = ["1 + 2 = ?", "what is 12 * 3, and then 7 more?"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    untrained(hidden=64, layers=2).save(folder := tmp_path_factory.mktemp("model"))
    return folder


@pytest.fixture
def packed(folder):
    for module in ("bitsandbytes", "accelerate", "peft"):
        pytest.importorskip(module, reason="needs the extra 'nf4'")
    return load_policy(f"nf4:{folder}", "cpu", "float32", 4)


def logprobs(policy):
    problems = [ask(q, "3") for q in QUESTIONS]
    rows = policy.write(policy.read([Trajectory(p) for p in problems], [p.prompt for p in problems]), ["3", "43"])
    return policy.evaluate(forward_batch(rows, policy.device)).logprobs


def test_the_name_may_stand_before_all_that_names_a_model(folder):
    assert find(f"nf4:{folder}") == find(str(folder))
    assert absolute_name(f"nf4:{folder}") == f"nf4:{folder.resolve()}"
    assert absolute_name("nf4:smollm2") == "nf4:smollm2"
    assert is_hub_name("nf4:org/name")


def test_without_adapters_or_the_package_it_is_refused(folder, monkeypatch):
    with pytest.raises(RewardlabError, match="--lora-rank"):
        load_policy(f"nf4:{folder}", "cpu", "float32")
    monkeypatch.setattr(extras.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(RewardlabError, match=r"rewardlab\[nf4\]"):
        load_policy(f"nf4:{folder}", "cpu", "float32", 4)


def test_every_matrix_of_a_layer_has_four_bits_and_the_values_of_the_format(packed, folder):
    import bitsandbytes as bnb

    matrices = [m for m in packed.model.modules() if isinstance(m, bnb.nn.Linear4bit)]
    assert len(matrices) == 2 * 7
    for m in matrices:
        assert m.weight.dtype == torch.uint8
        assert 2 * m.weight.numel() == m.in_features * m.out_features
    # what is computed with is the checkpoint's matrix, rounded by bitsandbytes
    q = packed.model.model.layers[0].self_attn.q_proj.base_layer
    original = load_policy(f"hf:{folder}", "cpu", "float32").model.model.layers[0].self_attn.q_proj.weight
    rounded = bnb.functional.dequantize_4bit(*bnb.functional.quantize_4bit(original.detach(), quant_type="nf4"))
    x = torch.randn(3, 64, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(q(x), x @ rounded.T, atol=1e-5, rtol=1e-4)
    assert (rounded - original).abs().mean() > 0.01 * original.abs().mean()


def test_replies_are_sampled_from_what_is_trained(packed):
    with torch.no_grad():
        for name, p in packed.whole.named_parameters():
            if "lora_B" in name:
                p += 0.1 * torch.randn(p.shape, generator=torch.Generator().manual_seed(1))
    problem = ask(QUESTIONS[0])
    rows = packed.extend(packed.read([Trajectory(problem)] * 3, [problem.prompt] * 3), Sampling(6), torch.Generator())
    for t, own in zip(rows, packed.score(rows), strict=True):
        assert np.abs(t.column("logprobs")[t.mask] - own[t.mask]).max() < 1e-4


def test_adapters_alone_have_a_gradient_and_a_copy_shares_the_rest(packed):
    reference = packed.copy("reference")
    assert logprobs(packed).any()
    assert torch.equal(logprobs(reference), logprobs(packed))
    logprobs(packed).sum().backward()
    trained = {k for k, p in packed.whole.named_parameters() if p.grad is not None and bool(p.grad.any())}
    assert trained
    assert all("lora_" in k for k in trained)
    assert set(packed.state()) >= trained
    with packed.noised(0.5, torch.Generator().manual_seed(0)):
        assert not torch.equal(logprobs(packed), logprobs(reference))


def test_a_step_of_qerl_on_it_moves_adapters_and_saves_them_alone(packed, folder, tmp_path):
    before = {k: v.clone() for k, v in packed.state().items()}
    base = grpo(n=4).but(reward=likelihood(), problems=2)
    given = {"steps": 2, "max_new": 6, "eval_problems": 2, "eval_every": 0}
    done = train(qerl(base, first=0.3, last=0.1, stages=2), packed, "arithmetic:test_size=2", out=tmp_path / "run", **given)
    assert done.run.step == 2
    assert any(not torch.equal(v, before[k]) for k, v in packed.state().items())
    packed.save(tmp_path / "adapter")
    assert {f.name for f in (tmp_path / "adapter").iterdir()} == {"adapter_config.json", "adapter_model.safetensors"}
    again = load_policy(f"nf4:{tmp_path / 'adapter'}", "cpu", "float32", 4)
    assert torch.equal(logprobs(again), logprobs(packed))
