"""Encoders as reward models that learn: the pair that transformers reads, the same scores when saved, and what is refused."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch
import transformers
from tokenizers import Tokenizer, models, pre_tokenizers, processors

from rewardlab import registry
from rewardlab.api import train
from rewardlab.core import Message, Trajectory, ask
from rewardlab.errors import RewardlabError
from rewardlab.evals.pairs import end_values
from rewardlab.models.load import load_policy
from rewardlab.models.planned import planned
from rewardlab.models.reward_model import load_reward_model
from rewardlab.policies.hf.encoder import EncoderPolicy
from rewardlab.util.outputs import forward_batch

WORDS = ["good", "bad", "red", "blue", "say", "one", "two", "three", "answer"]
SMALL = {
    "vocab_size": 5 + len(WORDS), "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 24,
    "max_position_embeddings": 24, "pad_token_id": 0,
}  # fmt: skip
FAMILIES = {
    "bert": {},
    # its positions are counted from the padding's id on
    "roberta": {"max_position_embeddings": 25},
    "deberta-v2": {
        "relative_attention": True,
        "pos_att_type": ["p2c", "c2p"],
        "position_biased_input": False,
        "type_vocab_size": 0,
    },
    "modernbert": {"cls_token_id": 2, "sep_token_id": 3, "bos_token_id": 2, "eos_token_id": 3},
    "distilbert": {"dim": 16, "hidden_dim": 24, "n_layers": 2, "n_heads": 2},
}


def tokenizer(family):
    known = {w: i for i, w in enumerate(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS])}
    core = Tokenizer(models.WordLevel(known, unk_token="[UNK]"))
    core.pre_tokenizer = pre_tokenizers.Whitespace()
    between = "[SEP] [SEP]" if family == "roberta" else "[SEP]"
    core.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair=f"[CLS] $A {between} $B:1 [SEP]:1", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    named = {"pad_token": "[PAD]", "unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": "[SEP]", "mask_token": "[MASK]"}
    typed = ["token_type_ids"] if family in ("bert", "deberta-v2") else []
    inputs = ["input_ids", *typed, "attention_mask"]
    return transformers.PreTrainedTokenizerFast(tokenizer_object=core, model_max_length=24, model_input_names=inputs, **named)


@pytest.fixture
def folder(tmp_path):
    """An encoder without a head, with random weights large enough that everything matters."""

    def make(family="bert", kind="AutoModel", **more):
        torch.manual_seed(0)
        config = transformers.AutoConfig.for_model(family, **SMALL | FAMILIES[family] | more)
        model = getattr(transformers, kind).from_config(config)
        with torch.no_grad():
            for p in model.parameters():
                p.copy_(torch.randn_like(p) * 0.3 + (p.dim() == 1))
        model.save_pretrained(tmp_path / family)
        tokenizer(family).save_pretrained(tmp_path / family)
        return tmp_path / family

    return make


def scored(policy, prompts, replies):
    """The values at the ends of pairs, as training and evaluation read them."""
    asked = policy.read([Trajectory(ask(p)) for p in prompts], [(Message("user", p),) for p in prompts])
    return end_values(policy, policy.write(asked, replies))


PROMPTS = ["say one", "say two three", "red"]
REPLIES = ["one good", "bad", "blue blue [SEP] answer"]


@pytest.mark.parametrize("family", FAMILIES)
def test_scores_are_those_of_transformers_on_the_pair_and_of_what_is_saved(folder, tmp_path, family):
    policy = EncoderPolicy.load(folder(family), "cpu", "float32")
    with torch.no_grad():
        # the head begins at zero: any other makes the scores differ
        for p in policy.model.get_submodule("classifier").parameters():
            p.normal_(0, 1)
    ours = scored(policy, PROMPTS, REPLIES)
    assert len({round(float(x), 4) for x in ours}) == 3
    policy.save(tmp_path / "saved")
    model = transformers.AutoModelForSequenceClassification.from_pretrained(tmp_path / "saved").eval()
    words = transformers.AutoTokenizer.from_pretrained(tmp_path / "saved")
    with torch.no_grad():
        theirs = [float(model(**words(p, r, return_tensors="pt")).logits) for p, r in zip(PROMPTS, REPLIES, strict=True)]
    assert np.allclose(ours, theirs, atol=1e-5)
    rows = [((Message("user", p),), r) for p, r in zip(PROMPTS, REPLIES, strict=True)]
    assert np.allclose(load_reward_model(str(tmp_path / "saved"), "cpu", "float32").score(rows), theirs, atol=1e-5)
    # and what trains on from it begins there
    assert np.allclose(scored(load_policy(str(tmp_path / "saved"), "cpu", "float32"), PROMPTS, REPLIES), theirs, atol=1e-5)


def test_pairs_beyond_the_context_are_cut_as_when_they_are_scored(folder, tmp_path):
    policy = EncoderPolicy.load(folder("bert"), "cpu", "float32")
    with torch.no_grad():
        policy.model.classifier.weight.normal_(0, 1)
    prompts, replies = ["red blue " * 15, "one two " * 4], ["one good", "bad good " * 20]
    ours = scored(policy, prompts, replies)
    policy.save(tmp_path / "saved")
    rows = [((Message("user", p),), r) for p, r in zip(prompts, replies, strict=True)]
    model = load_reward_model(str(tmp_path / "saved"), "cpu", "float32")
    assert np.allclose(ours, model.score(rows), atol=1e-5)
    assert [cut for _, cut, _ in model.read(rows)] == [True, True]


def test_the_same_checkpoint_begins_with_the_same_head_each_time_and_ranks_nothing_yet(folder):
    place = folder("distilbert")
    first, second = (EncoderPolicy.load(place, "cpu", "float32") for _ in range(2))
    assert all(torch.equal(a, b) for a, b in zip(first.parameters(), second.parameters(), strict=True))
    assert scored(first, PROMPTS, REPLIES).tolist() == [0, 0, 0]


@pytest.fixture
def pairs(tmp_path):
    rng = np.random.default_rng(0)
    rows = []
    for _ in range(48):
        noise = " ".join(rng.choice(WORDS[2:], 3))
        rows.append({"prompt": f"say {noise}", "chosen": f"good {noise}", "rejected": f"bad {noise}"})
    file = tmp_path / "pairs.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return file


def test_bradley_terry_learns_on_it_and_its_run_is_used_as_any_reward_model(folder, pairs, tmp_path):
    out, task = tmp_path / "run", registry.task(str(pairs))
    learnt = train(
        "bradley_terry", str(folder()), task, settings={"problems": 8, "reward_lr": 3e-3}, steps=25, out=str(out), seed=0,
        device="cpu",
    )  # fmt: skip
    assert learnt.summary["after"]["pair_accuracy"] > 0.9
    model = load_reward_model(f"model:{out}", "cpu")
    good, bad = model.score([((Message("user", "say red"),), text) for text in ("good red", "bad red")])
    assert good > bad


def test_recomputing_layers_changes_no_gradient(folder):
    def gradients(recomputes):
        policy = EncoderPolicy.load(folder("bert"), "cpu", "float32")
        policy.recomputes = recomputes
        with torch.no_grad():
            policy.model.classifier.weight.normal_(0, 1, generator=torch.Generator().manual_seed(0))
        asked = policy.read([Trajectory(ask(p)) for p in PROMPTS], [(Message("user", p),) for p in PROMPTS])
        policy.evaluate(forward_batch(policy.write(asked, REPLIES), policy.device), ("value",)).value.sum().backward()
        return [p.grad for p in policy.parameters() if p.grad is not None]

    plain, again = gradients(False), gradients(True)
    assert len(plain) == len(again) > 10
    assert all(torch.allclose(a, b, atol=1e-6) for a, b in zip(plain, again, strict=True))


def test_a_plan_counts_its_parameters_without_reading_weights(folder):
    place = folder("roberta")
    real = sum(p.numel() for p in EncoderPolicy.load(place, "cpu", "float32").parameters())
    (place / "model.safetensors").unlink()
    assert sum(p.numel() for p in planned(str(place), "cpu", torch.float32).parameters()) == real


def test_ratings_by_attribute_have_an_output_each_and_are_weighed_where_it_is_used(folder, tmp_path):
    weights = {"helpful": 1.0, "long": -0.5}
    policy = EncoderPolicy.load(folder(), "cpu", "float32").copy("reward").rate(weights)
    with torch.no_grad():
        policy.model.classifier.weight.normal_(0, 1, generator=torch.Generator().manual_seed(0))
    ours = scored(policy, PROMPTS, REPLIES)
    policy.save(tmp_path / "rated")
    rows = [((Message("user", p),), r) for p, r in zip(PROMPTS, REPLIES, strict=True)]

    def by(query=""):
        return np.array(load_reward_model(f"{tmp_path / 'rated'}{query}", "cpu", "float32").score(rows))

    assert np.allclose(ours, by(), atol=1e-5)
    assert np.allclose(by("?label=helpful") - 0.5 * by("?label=long"), ours, atol=1e-5)
    again = load_policy(str(tmp_path / "rated"), "cpu", "float32")
    assert again.attributes == weights
    assert np.allclose(scored(again, PROMPTS, REPLIES), ours, atol=1e-5)


def test_what_an_encoder_cannot_do_is_refused_in_words(folder, tmp_path, pairs):
    place = folder("bert")
    with pytest.raises(RewardlabError, match="all of whose weights train"):
        load_policy(str(place), "cpu", lora_rank=4)
    task = registry.task("arithmetic")
    with pytest.raises(RewardlabError, match="is an encoder: it scores replies and writes none"):
        train("grpo", str(place), task, steps=1, out=str(tmp_path / "no"), device="cpu")
    policy = EncoderPolicy.load(place, "cpu")
    asked = policy.read([Trajectory(ask("red"))], [(Message("user", "red"),)])
    with pytest.raises(RewardlabError, match="a prompt and one reply, not several"):
        policy.write(asked, [["one", "and then", "two"]])


def test_a_classifier_of_several_labels_is_no_start(folder):
    place = folder("bert", "AutoModelForSequenceClassification", num_labels=3)
    with pytest.raises(RewardlabError, match="classifier of several labels"):
        load_policy(str(place), "cpu")
