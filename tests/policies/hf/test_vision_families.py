"""Vision-language models of several families, with random weights: what is sampled is scored alike, and as transformers has it."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
import torch
import transformers

from rewardlab.core import Message, Problem, Sampling, Task, Trajectory
from rewardlab.errors import RewardlabError
from rewardlab.models.load import load_policy
from rewardlab.models.vision import untrained
from rewardlab.policies.ends import turn_end
from rewardlab.policies.hf.sight import FAMILIES, sight_of

SIZE, PATCH, TOKENS = 36, 6, 9
SHAPE = {
    "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "num_key_value_heads": 1, "intermediate_size": 48,
    "max_position_embeddings": 256, "bos_token_id": None, "tie_word_embeddings": True,
}  # fmt: skip
TOWER = {"hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 48}
SQUARE = {"image_size": SIZE, "patch_size": PATCH}
ROPE = {"rope_parameters": {"rope_type": "default", "rope_theta": 1e4, "mrope_section": [2, 3, 3]}}
QWEN = {"depth": 2, "num_heads": 2, "patch_size": PATCH, "spatial_merge_size": 2, "temporal_patch_size": 2}
MADE = {
    "internvl": ("InternVLForConditionalGeneration", {"vision_config": TOWER | {k: [v, v] for k, v in SQUARE.items()}}),
    "idefics3": ("Idefics3ForConditionalGeneration", {"vision_config": TOWER | SQUARE, "scale_factor": 2}),
    "smolvlm": ("SmolVLMForConditionalGeneration", {"vision_config": TOWER | SQUARE, "scale_factor": 2}),
    "qwen2_vl": ("Qwen2VLForConditionalGeneration", {"vision_config": QWEN | {"embed_dim": 32, "hidden_size": 32, "mlp_ratio": 2}}),
    "qwen2_5_vl": (
        "Qwen2_5_VLForConditionalGeneration",
        {"vision_config": QWEN | {"hidden_size": 32, "out_hidden_size": 32, "intermediate_size": 48, "window_size": 24,
                                  "fullatt_block_indexes": [1]}},
    ),
}  # fmt: skip


def picture(seed: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, (SIZE, SIZE, 3), dtype=np.uint8)


def asked(text: str, *seeds: int) -> Problem:
    return Problem((Message("user", text, images=tuple(map(picture, seeds))),), "1")


PROBLEMS = (asked("how many red", 0), asked("how many red ? yes", 1), asked("no"), asked("how many red", 2, 3))


def family(kind: str, folder):
    """A checkpoint of a family, and its policy."""
    cls, config = MADE[kind]
    task = Task("looks", [asked("how many red ? yes no", 0)] * 300, (), "exact_match")
    words = untrained(task).tokenizer
    cls = getattr(transformers, cls)
    text = SHAPE | {"vocab_size": len(words), "eos_token_id": words.eos_token_id, "pad_token_id": words.pad_token_id}
    if kind.startswith("qwen"):
        text |= ROPE
    elif kind != "internvl":
        text["model_type"] = "llama"
    token = words.convert_tokens_to_ids("<image>")
    torch.manual_seed(0)
    model = cls(cls.config_class(text_config=text, image_token_id=token, tie_word_embeddings=True, **config)).eval()
    with torch.no_grad():
        for p in model.parameters():
            p.copy_(torch.randn_like(p) * 0.3 + (p.dim() == 1))
    model.save_pretrained(folder)
    words.save_pretrained(folder)
    said = {"image_mean": [0.4, 0.5, 0.6], "image_std": [0.2, 0.3, 0.4], "max_pixels": SIZE * SIZE + 100}
    (folder / "preprocessor_config.json").write_text(json.dumps(said))
    return model, load_policy(str(folder), "cpu", "float32")


def read(policy, problems):
    return policy.read([Trajectory(p) for p in problems], [p.prompt for p in problems])


@pytest.mark.parametrize("kind", MADE)
def test_what_is_sampled_is_scored_alike_in_a_batch_with_and_without_pictures(kind, tmp_path):
    _, policy = family(kind, tmp_path)
    assert policy.sees
    assert (policy.image_size, policy.tokens_per_image) == (SIZE, TOKENS)
    rows = policy.extend(read(policy, PROBLEMS), Sampling(6), torch.Generator().manual_seed(0))
    together = policy.score(rows)
    for row, known, problem in zip(rows, together, PROBLEMS, strict=True):
        sampled = row.turns[-1].logprobs
        assert known[row.mask] == pytest.approx(sampled, abs=2e-4)
        # the same reply below other pictures is another one's
        if problem.prompt[0].images:
            other = replace(problem, prompt=asked(problem.question, *(9 + k for k in range(len(problem.prompt[0].images)))).prompt)
            (turned,) = read(policy, [other])
            below = replace(turned, turns=(*turned.turns, *row.turns[1:]))
            assert np.abs(policy.score([below])[0][row.mask] - sampled).max() > 1e-3


@pytest.mark.parametrize("kind", MADE)
def test_log_probs_are_those_of_transformers_own_call(kind, tmp_path):
    model, policy = family(kind, tmp_path)
    (row,) = policy.write(read(policy, PROBLEMS[3:]), ["1 2"])
    ids = torch.from_numpy(row.ids)[None].long()
    seen = ids == model.config.image_token_id
    assert int(seen.sum()) == 2 * TOKENS
    pixels = policy._pixels([picture(2), picture(3)])
    given = {"pixel_values": pixels[None] if kind in ("idefics3", "smolvlm") else pixels}
    if kind.startswith("qwen"):
        given = {
            "pixel_values": policy.sight.rows(pixels), "image_grid_thw": torch.tensor([[1, 6, 6]] * 2),
            "mm_token_type_ids": seen.int(),
        }  # fmt: skip
    with torch.no_grad():
        logits = model(input_ids=ids, **given).logits[0].log_softmax(-1)
    plainly = logits[:-1].gather(1, ids[0, 1:, None])[:, 0].numpy()
    assert policy.score([row])[0][1:][row.mask[1:]] == pytest.approx(plainly[row.mask[1:]], abs=2e-4)


def test_pictures_are_cut_into_patches_as_the_familys_own_processor_does(tmp_path):
    _, policy = family("qwen2_vl", tmp_path)
    kind = getattr(transformers, "Qwen2VLImageProcessorPil", None)
    if kind is None:
        pytest.skip("this version of transformers has no image processor of Qwen2-VL without torchvision")
    processor = kind(
        patch_size=PATCH, merge_size=2, temporal_patch_size=2, min_pixels=SIZE, max_pixels=SIZE * SIZE,
        image_mean=list(policy.mean), image_std=list(policy.std),
    )  # fmt: skip
    found = processor(images=[picture(0), picture(1)], return_tensors="pt")
    assert found["image_grid_thw"].tolist() == [[1, 6, 6]] * 2
    ours = policy.sight.rows(policy._pixels([picture(0), picture(1)]))
    assert torch.allclose(ours, found["pixel_values"].float(), atol=1e-4)


def test_a_copy_and_a_saved_policy_see_the_same(tmp_path):
    _, policy = family("qwen2_vl", tmp_path / "first")
    (row,) = policy.write(read(policy, PROBLEMS[:1]), ["1 2"])
    policy.save(tmp_path / "again")
    for other in (load_policy(str(tmp_path / "again"), "cpu", "float32"), policy.copy("other")):
        assert other.image_size == SIZE
        assert other.score([row])[0] == pytest.approx(policy.score([row])[0], abs=1e-5)


PARTS = (
    "{% for m in messages %}{% for part in m['content'] %}{% if part['type'] == 'text' %}{{ part['text'] }}{% endif %}{% endfor %}"
    "<end>{% endfor %}{% if add_generation_prompt %}\n{% endif %}"
)


def test_a_template_that_writes_parts_alone_is_given_parts(tmp_path):
    _, policy = family("smolvlm", tmp_path)
    (plain,) = policy.write(read(policy, PROBLEMS[:1]), ["1 2"])
    policy.tokenizer.chat_template = PARTS
    policy.save(tmp_path / "parts")
    other = load_policy(str(tmp_path / "parts"), "cpu", "float32")
    (row,) = other.write(read(other, PROBLEMS[:1]), ["1 2"])
    assert row.ids.tolist() == plain.ids.tolist()
    assert turn_end(other.tokenizer) == other.tokenizer.convert_tokens_to_ids("<end>")


def test_other_families_are_refused_in_words(tmp_path):
    (tmp_path / "config.json").write_text(
        json.dumps({"architectures": ["MllamaForConditionalGeneration"], "model_type": "mllama", "vision_config": {}})
    )
    untrained(Task("looks", [PROBLEMS[0]] * 300, (), "exact_match")).tokenizer.save_pretrained(tmp_path)
    with pytest.raises(RewardlabError, match=r"llava, internvl.*openai:URL#NAME"):
        load_policy(str(tmp_path), "cpu", "float32")
    assert "mllama" not in FAMILIES
    with pytest.raises(RewardlabError, match="llava"):
        sight_of(transformers.MllamaConfig(), {})
