"""Tiny checkpoints of every family of vision-language models, with random weights: chat templates, image tokens and processors as
published ones have them, and a tokenizer of bytes and some pieces of words."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers

TEXT = {
    "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "num_key_value_heads": 1, "intermediate_size": 48,
    "max_position_embeddings": 512, "bos_token_id": None, "head_dim": 16,
}  # fmt: skip
TOWER = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 48}
SQUARE = {"image_size": 16, "patch_size": 4}
ROPE = {"rope_parameters": {"rope_type": "default", "rope_theta": 1e4, "mrope_section": [2, 3, 3]}}
EYES = {"depth": 2, "num_heads": 2, "patch_size": 4, "spatial_merge_size": 2, "temporal_patch_size": 2, "hidden_size": 32}
CLIP = {"vision_config": TOWER | SQUARE | {"model_type": "clip_vision_model", "projection_dim": 32}, "vision_feature_layer": -2}
QWEN = {"patch_size": 4, "merge_size": 2, "temporal_patch_size": 2, "size": {"shortest_edge": 256, "longest_edge": 1536}}
PINPOINTS = [[16, 32], [32, 16], [32, 32]]
TILES = {"size": {"longest_edge": 32}, "max_image_size": {"longest_edge": 16}}
IM = "<|im_end|>"
PARTS = (
    "{% for m in messages %}{% if loop.first and m['role'] != 'system' and DEFAULT %}<|im_start|>system\nYou are a helpful "
    "assistant.<|im_end|>\n{% endif %}<|im_start|>{{ m['role'] }}\n{% if m['content'] is string %}{{ m['content'] }}{% else %}"
    "{% for c in m['content'] %}{% if c['type'] == 'image' %}PICTURE{% elif 'text' in c %}{{ c['text'] }}{% endif %}"
    "{% endfor %}{% endif %}<|im_end|>\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
QWENS = PARTS.replace("PICTURE", "<|vision_start|><|image_pad|><|vision_end|>")
LLAVA = (
    "{% for m in messages %}{% if m['role'] != 'system' %}{{ m['role'].upper() + ': ' }}{% endif %}"
    "{% for c in m['content'] | selectattr('type', 'equalto', 'image') %}{{ '<image>\n' }}{% endfor %}"
    "{% for c in m['content'] | selectattr('type', 'equalto', 'text') %}{{ c['text'] + ' ' }}{% endfor %}"
    "{% endfor %}{% if add_generation_prompt %}{{ 'ASSISTANT:' }}{% endif %}"
)
GEMMA = (
    "{{ bos_token }}{% for m in messages %}{% if (m['role'] == 'user') != (loop.index0 % 2 == 0) %}"
    "{{ raise_exception('Conversation roles must alternate') }}{% endif %}"
    "{{ '<start_of_turn>' + ('model' if m['role'] == 'assistant' else m['role']) + '\n' }}"
    "{% if m['content'] is string %}{{ m['content'] | trim }}{% else %}{% for c in m['content'] %}"
    "{% if c['type'] == 'image' %}{{ '<start_of_image>' }}{% else %}{{ c['text'] | trim }}{% endif %}{% endfor %}{% endif %}"
    "{{ '<end_of_turn>\n' }}{% endfor %}{% if add_generation_prompt %}{{ '<start_of_turn>model\n' }}{% endif %}"
)
SMOL = (
    "<|im_start|>{% for m in messages %}{{ m['role'] | capitalize }}{% if m['content'] is string %}{{ ': ' + m['content'] }}"
    "{% else %}{% if m['content'][0]['type'] == 'image' %}{{ ':' }}{% else %}{{ ': ' }}{% endif %}{% for c in m['content'] %}"
    "{% if c['type'] == 'text' %}{{ c['text'] }}{% else %}{{ '<image>' }}{% endif %}{% endfor %}{% endif %}<end_of_utterance>\n"
    "{% endfor %}{% if add_generation_prompt %}{{ 'Assistant:' }}{% endif %}"
)
VISION = ["<|im_start|>", "<|vision_start|>", "<|vision_end|>", "<|video_pad|>"]
TILED = ["<fake_token_around_image>", "<global-img>", *(f"<row_{i}_col_{j}>" for i in range(1, 3) for j in range(1, 3))]

KINDS: dict[str, dict[str, Any]] = {
    "llava": {
        "model": "LlavaForConditionalGeneration", "image": "<image>", "end": "</s>", "begin": "<s>", "template": LLAVA,
        "config": CLIP | {"image_seq_length": 16, "vision_feature_select_strategy": "default"},
        "pictures": ("CLIPImageProcessor", {"size": {"shortest_edge": 16}, "crop_size": {"height": 16, "width": 16}}),
        "processor": {"patch_size": 4, "num_additional_image_tokens": 1, "vision_feature_select_strategy": "default"},
    },
    "qwen2_5_vl": {
        "model": "Qwen2_5_VLForConditionalGeneration", "image": "<|image_pad|>", "end": IM,
        "template": QWENS.replace("DEFAULT", "true"), "tokens": VISION,
        "config": {"vision_config": EYES | {
            "out_hidden_size": 32, "intermediate_size": 48, "window_size": 16, "fullatt_block_indexes": [1],
        }},
        "text": ROPE, "pictures": ("Qwen2VLImageProcessor", QWEN),
    },
    "qwen2_vl": {
        "model": "Qwen2VLForConditionalGeneration", "image": "<|image_pad|>", "end": IM,
        "template": QWENS.replace("DEFAULT", "true"), "tokens": VISION,
        "config": {"vision_config": EYES | {"embed_dim": 32, "mlp_ratio": 2}},
        "text": ROPE, "pictures": ("Qwen2VLImageProcessor", QWEN),
    },
    "qwen3_vl": {
        "model": "Qwen3VLForConditionalGeneration", "image": "<|image_pad|>", "end": IM,
        "template": QWENS.replace("DEFAULT", "false"), "tokens": VISION,
        "config": {"vision_config": EYES | {
            "out_hidden_size": 32, "intermediate_size": 48, "num_position_embeddings": 16, "deepstack_visual_indexes": [0],
        }},
        "text": ROPE, "pictures": ("Qwen2VLImageProcessor", QWEN),
    },
    "gemma3": {
        "model": "Gemma3ForConditionalGeneration", "image": "<image_soft_token>", "end": "<end_of_turn>", "template": GEMMA,
        "tokens": ["<start_of_turn>"], "bos": "<bos>",
        "named": {"boi_token": "<start_of_image>", "eoi_token": "<end_of_image>", "image_token": "<image_soft_token>"},
        "config": {"vision_config": TOWER | SQUARE, "mm_tokens_per_image": 4},
        "text": {"sliding_window": 8, "layer_types": ["sliding_attention", "full_attention"], "query_pre_attn_scalar": 16},
        "pictures": ("Gemma3ImageProcessor", {"size": {"height": 16, "width": 16}, "do_pan_and_scan": None}),
        "processor": {"image_seq_length": 4},
    },
    "internvl": {
        "model": "InternVLForConditionalGeneration", "image": "<IMG_CONTEXT>", "end": IM,
        "template": PARTS.replace("DEFAULT", "false").replace("PICTURE", "<IMG_CONTEXT>\n"), "tokens": ["<|im_start|>"],
        "named": {
            "start_image_token": "<img>", "end_image_token": "</img>", "context_image_token": "<IMG_CONTEXT>",
            "video_token": "<video>",
        },
        "config": {"vision_config": TOWER | {k: [v, v] for k, v in SQUARE.items()}, "image_seq_length": 4},
        "text": {"model_type": "qwen2"},
        "pictures": ("GotOcr2ImageProcessor", {"size": {"height": 16, "width": 16}, "min_patches": 1, "max_patches": 4}),
        "processor": {"image_seq_length": 4},
    },
    "smolvlm": {
        "model": "SmolVLMForConditionalGeneration", "image": "<image>", "end": "<end_of_utterance>", "template": SMOL,
        "tokens": [*TILED, "<|im_start|>"], "config": {"vision_config": TOWER | SQUARE, "scale_factor": 2},
        "text": {"model_type": "llama"}, "pictures": ("SmolVLMImageProcessor", TILES), "processor": {"image_seq_len": 4},
    },
    "idefics3": {
        "model": "Idefics3ForConditionalGeneration", "image": "<image>", "end": "<end_of_utterance>", "template": SMOL,
        "tokens": [*TILED, "<|im_start|>"], "config": {"vision_config": TOWER | SQUARE, "scale_factor": 2},
        "text": {"model_type": "llama"}, "pictures": ("Idefics3ImageProcessor", TILES), "processor": {"image_seq_len": 4},
    },
    "llava_next": {
        "model": "LlavaNextForConditionalGeneration", "image": "<image>", "end": "</s>", "begin": "<s>", "template": LLAVA,
        "config": CLIP | {"vision_feature_select_strategy": "default", "image_grid_pinpoints": PINPOINTS},
        "pictures": ("LlavaNextImageProcessor", {
            "size": {"shortest_edge": 16}, "crop_size": {"height": 16, "width": 16}, "image_grid_pinpoints": PINPOINTS,
        }),
        "processor": {"patch_size": 4, "num_additional_image_tokens": 1, "vision_feature_select_strategy": "default"},
    },
}  # fmt: skip


@cache
def core() -> Any:
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    made = Tokenizer(models.BPE())
    made.pre_tokenizer, made.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    letters = pre_tokenizers.ByteLevel.alphabet()
    made.train_from_iterator(
        ["how many red balls are here? yes no\n\n"] * 3,
        trainers.BpeTrainer(vocab_size=280, initial_alphabet=letters, show_progress=False),
    )
    return made.to_str()


def tokenizer(kind: str) -> Any:
    from tokenizers import Tokenizer
    from tokenizers.processors import TemplateProcessing

    about = KINDS[kind]
    named = about.get("named", {})
    words = transformers.PreTrainedTokenizerFast(
        tokenizer_object=Tokenizer.from_str(core()), eos_token=about["end"], pad_token="<pad>",
        bos_token=about.get("bos") or about.get("begin"),
        **({"extra_special_tokens": named} if named else {}),
    )  # fmt: skip
    words.add_tokens(
        [transformers.AddedToken(t, special=True) for t in (about["image"], *about.get("tokens", ()))], special_tokens=True
    )
    words.chat_template = about["template"]
    if "begin" in about:
        # as Llama's: it writes the token that begins a text
        begin = [(about["begin"], words.bos_token_id)]
        words.backend_tokenizer.post_processor = TemplateProcessing(single=f"{about['begin']} $A", special_tokens=begin)
    return words


def checkpoint(kind: str, folder: Path) -> Any:
    """A checkpoint in a folder; its model."""
    about, words = KINDS[kind], tokenizer(kind)
    cls = getattr(transformers, about["model"])
    ids = {"eos_token_id": words.eos_token_id, "pad_token_id": words.pad_token_id}
    text = TEXT | {"vocab_size": len(words)} | ids | about.get("text", {})
    named = about.get("named", {})
    further = {
        f"{x}_token_index": words.convert_tokens_to_ids(named[f"{x}_token"]) for x in ("boi", "eoi") if f"{x}_token" in named
    }
    if "video_token" in named or "<|video_pad|>" in about.get("tokens", ()):
        further["video_token_id"] = words.convert_tokens_to_ids(named.get("video_token", "<|video_pad|>"))
    where = words.convert_tokens_to_ids(about["image"])
    config = cls.config_class(
        text_config=text, image_token_id=where, image_token_index=where, tie_word_embeddings=False, **about["config"], **further
    )
    torch.manual_seed(0)
    model = cls(config).eval()
    with torch.no_grad():
        for name, p in model.named_parameters():
            # Gemma's norms scale by 1 + weight
            p.copy_(torch.randn_like(p) * 0.25 + (p.dim() == 1 and "norm" in name and kind != "gemma3"))
    model.save_pretrained(folder)
    words.save_pretrained(folder)
    name, said = about["pictures"]
    (folder / "preprocessor_config.json").write_text(json.dumps({"image_processor_type": name, "do_resize": True, **said}))
    (folder / "processor_config.json").write_text(json.dumps(about.get("processor", {})))
    return model


def picture(seed: int, height: int, width: int) -> np.ndarray:
    """Blots, of which something is left when they are scaled."""
    rng = np.random.default_rng(seed)
    coarse = rng.integers(0, 256, (-(-height // 4), -(-width // 4), 3), dtype=np.uint8)
    return coarse.repeat(4, 0).repeat(4, 1)[:height, :width]
