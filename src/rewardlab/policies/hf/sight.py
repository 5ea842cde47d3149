"""Families of vision-language models: what the vision tower reads of a picture, and what the language model is given.

A vision tower makes features of a picture, and the language model reads them in place of as many image tokens:

    llava                  a feature a patch, of a square cut out of the picture
    llava_next             the same of the whole picture scaled down, and of tiles of it, whose rows end with a feature of their own
    internvl               of the whole and of tiles; patches gathered r x r into one (pixel shuffle)
    idefics3, smolvlm      the same; each tile is named by its row and column
    gemma3                 patches averaged to a fixed number; image tokens of a picture attend to one another in both directions
    qwen2_vl, 2_5_vl, 3_vl patches in rows, of a picture of any size, gathered m x m; tokens have positions in time, height and
                           width (M-RoPE); in 3_vl features of several layers, of which some are added within the language model

How a picture is scaled and cut, and which text stands in its place, their own processors say (`eyes.py`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from rewardlab.errors import RewardlabError, unknown


@dataclass(frozen=True)
class Family:
    """processor: its class in transformers.  given: the tensors that the vision tower reads of pictures.  around: the text around
    an image token where no chat template writes it."""

    processor: str
    given: tuple[str, ...] = ("pixel_values",)
    around: tuple[str, str] = ("", "")

    def joined(self, pictures: Sequence[Mapping[str, Tensor]]) -> dict[str, Tensor]:
        """What the vision tower reads of several pictures."""
        return {name: self._stacked([p[name] for p in pictures]) for name in self.given if name in pictures[0]}

    def _stacked(self, parts: list[Tensor]) -> Tensor:
        return torch.cat(parts)

    def beside(self, model: Any, seen: Tensor, real: Tensor, grids: Tensor | None, given: Mapping[str, Any]) -> dict[str, Any]:
        """What a pass over whole prompts is given besides its tokens and features.

        seen, real: (B, T), the image tokens and all that are no padding.  grids: of the pictures in every place, if the family has
        them.  given: what the pass is given already.
        """
        return {}

    def gone_on(self, model: Any, given: Mapping[str, Any]) -> dict[str, Any]:
        """The same of a pass over one more token, whose prompts are in the cache."""
        return {}

    def in_sampling(self, seen: Tensor) -> dict[str, Any]:
        """What `generate` is given, by which it makes masks."""
        return {}


class _Tiles(Family):
    """Pictures as the tiles of one row."""

    def _stacked(self, parts: list[Tensor]) -> Tensor:
        return torch.cat(parts, 1)


class _Uneven(Family):
    """Each picture with its own number of tiles, padded to the most of them."""

    def _stacked(self, parts: list[Tensor]) -> Tensor:
        if parts[0].dim() < 5:
            return torch.cat(parts)
        most = max(p.shape[1] for p in parts)
        return torch.cat([torch.cat((p, p.new_zeros(1, most - p.shape[1], *p.shape[2:])), 1) for p in parts])


class _Blocks(Family):
    def beside(self, model: Any, seen: Tensor, real: Tensor, grids: Tensor | None, given: Mapping[str, Any]) -> dict[str, Any]:
        return {} if given.get("token_type_ids") is not None else self.in_sampling(seen)

    def in_sampling(self, seen: Tensor) -> dict[str, Any]:
        return {"token_type_ids": seen.int()}


class _Rotary(Family):
    def beside(self, model: Any, seen: Tensor, real: Tensor, grids: Tensor | None, given: Mapping[str, Any]) -> dict[str, Any]:
        positions, model.rope_deltas = model.get_rope_index(
            given["input_ids"], seen.int(), image_grid_thw=grids, attention_mask=real.int()
        )
        if (known := given.get("position_ids")) is not None:
            # `generate` passes the places in the text too, by which the mask is made
            positions = torch.cat((_four(known)[:1], positions))
        return {"position_ids": positions}

    def gone_on(self, model: Any, given: Mapping[str, Any]) -> dict[str, Any]:
        known = _four(given["position_ids"])
        # `generate` counts tokens, of which those of a picture have fewer places than there are tokens
        return {"position_ids": torch.cat((known[:1], known[1:] + model.rope_deltas.to(known.device)))}


def _four(positions: Tensor) -> Tensor:
    """(4, B, T): in the text, in time, height and width, of which who counts tokens alone knows one (B, T)."""
    return positions if positions.dim() == 3 else positions[None].expand(4, -1, -1)


GRID = "image_grid_thw"
_QWEN = {"given": ("pixel_values", GRID), "around": ("<|vision_start|>", "<|vision_end|>")}
_MASKED = {"given": ("pixel_values", "pixel_attention_mask")}

FAMILIES: dict[str, Family] = {
    "llava": Family("LlavaProcessor"),
    "internvl": Family("InternVLProcessor", around=("", "\n")),
    "idefics3": _Tiles("Idefics3Processor", **_MASKED),
    "smolvlm": _Tiles("SmolVLMProcessor", **_MASKED),
    "qwen2_vl": _Rotary("Qwen2VLProcessor", **_QWEN),
    "qwen2_5_vl": _Rotary("Qwen2_5_VLProcessor", **_QWEN),
    "qwen3_vl": _Rotary("Qwen3VLProcessor", **_QWEN),
    "gemma3": _Blocks("Gemma3Processor"),
    "llava_next": _Uneven("LlavaNextProcessor", given=("pixel_values", "image_sizes")),
}  # fmt: skip


def family_of(config: Any) -> Family:
    """The family of a model of this configuration. Raises RewardlabError for one that is not known."""
    if config.model_type not in FAMILIES:
        raise unknown("family of vision-language models", config.model_type, FAMILIES)
    return FAMILIES[config.model_type]


def features(model: Any, given: Mapping[str, Tensor], counts: Sequence[int], of: Sequence[int]) -> Any:
    """What the vision tower makes of pictures, in the order of the places where they stand; each is looked at once.

    given: of each picture.  counts: of each, its image tokens.  of: of each place, which picture stands there.
    """
    found = model.get_image_features(**given, return_dict=True)

    def placed(made: Any) -> Any:
        rows = (made if isinstance(made, Tensor) else torch.cat(list(made))).flatten(0, -2)
        if len(rows) != sum(counts):
            raise RewardlabError(
                f"the model makes {len(rows)} features of pictures for which the checkpoint's processor writes {sum(counts)} image "
                "tokens: the processor's settings are another model's"
            )
        parts = rows.split(list(counts))
        every = torch.cat([parts[i] for i in of])
        return every if isinstance(made, Tensor) else [every]

    found.pooler_output = placed(found.pooler_output)
    if (deep := getattr(found, "deepstack_features", None)) is not None:
        found.deepstack_features = [placed(x) for x in deep]
    return found
