"""How families of vision-language models are shown square pictures: the text in a picture's place, and what the model is given.

A vision tower makes features of a picture, and the language model reads them in place of as many image tokens:

    llava             a feature a patch
    internvl          patches gathered r x r into one (pixel shuffle), between <img> and </img>
    idefics3, smolvlm the same; the picture as a whole, not its tiles
    qwen2_vl, 2_5_vl  patches in rows, gathered m x m; tokens have positions in time, height and width (M-RoPE)

Every picture has the same size, so that the features of a batch fill its image tokens in order, whichever row they belong to.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from rewardlab.errors import unknown

LARGEST = 448
"""Height and width of pictures for models that take any size: 256 image tokens of Qwen2-VL."""


@dataclass(frozen=True)
class Sight:
    """size: height and width of pictures.  tokens: image tokens of each.  before, after: the text around these."""

    size: int
    tokens: int
    before: str = ""
    after: str = ""

    def shown(self, model: Any, pixels: Tensor, seen: Tensor, given: Mapping[str, Any]) -> dict[str, Any]:
        """What a pass over whole prompts is given besides its tokens.  pixels: (n, 3, size, size).  seen: (B, T), the image tokens.
        given: what it is given already."""
        return {"pixel_values": pixels}

    def gone_on(self, model: Any, given: Mapping[str, Any]) -> dict[str, Any]:
        """The same of a pass over one more token, whose prompts are in the cache."""
        return {}


class _Tiles(Sight):
    """Pictures as the tiles of one row."""

    def shown(self, model: Any, pixels: Tensor, seen: Tensor, given: Mapping[str, Any]) -> dict[str, Any]:
        return {"pixel_values": pixels[None]}


@dataclass(frozen=True)
class _Patches(Sight):
    """patch: pixels of one.  merge: patches a side that become a token.  frames: of a video that make up a patch; a picture is
    still."""

    patch: int = 14
    merge: int = 2
    frames: int = 2

    def shown(self, model: Any, pixels: Tensor, seen: Tensor, given: Mapping[str, Any]) -> dict[str, Any]:
        side = self.size // self.patch
        grid = torch.tensor([[1, side, side]] * len(pixels), device=pixels.device)
        positions, model.rope_deltas = model.get_rope_index(
            given["input_ids"], seen.int(), image_grid_thw=grid, attention_mask=given.get("attention_mask")
        )
        if (known := given.get("position_ids")) is not None:
            # `generate` passes the places in the text too, by which the mask is made
            positions = torch.cat((known[:1], positions))
        return {"pixel_values": self.rows(pixels), "image_grid_thw": grid, "position_ids": positions}

    def rows(self, pixels: Tensor) -> Tensor:
        """(patches of all pictures, values of a patch); those that become a token stand together."""
        n, colours, blocks = *pixels.shape[:2], self.size // (self.patch * self.merge)
        side = (blocks, self.merge, self.patch)
        still = pixels[:, None].expand(-1, self.frames, -1, -1, -1).reshape(n, self.frames, colours, *side, *side)
        return still.permute(0, 3, 6, 4, 7, 2, 1, 5, 8).reshape(-1, colours * self.frames * self.patch**2)

    def gone_on(self, model: Any, given: Mapping[str, Any]) -> dict[str, Any]:
        known = given["position_ids"]
        # `generate` counts tokens, of which those of a picture have fewer places than there are tokens
        return {"position_ids": torch.cat((known[:1], known[1:] + model.rope_deltas.to(known.device)))}


def sight_of(config: Any, told: Mapping[str, Any]) -> Sight:
    """How a model of this configuration is shown pictures.  told: what its preprocessor says."""
    kind, vision = config.model_type, config.vision_config
    if kind not in FAMILIES:
        raise unknown("family of vision-language models", kind, FAMILIES)
    patch = _side(vision.patch_size)
    if kind.startswith("qwen"):
        unit = patch * vision.spatial_merge_size
        size = max(unit, min(LARGEST, _most(told)) // unit * unit)
        tokens = (size // unit) ** 2
        around = "<|vision_start|>", "<|vision_end|>"
        return _Patches(size, tokens, *around, patch, vision.spatial_merge_size, vision.temporal_patch_size)
    size = _side(vision.image_size)
    if kind == "internvl":
        return Sight(size, int(size // patch * config.downsample_ratio) ** 2, "<img>", "</img>\n")
    if kind == "llava":
        return Sight(size, (size // patch) ** 2)
    fake = "<fake_token_around_image>"
    return _Tiles(size, (size // patch // config.scale_factor) ** 2, f"{fake}<global-img>", fake)


FAMILIES = ("llava", "internvl", "idefics3", "smolvlm", "qwen2_vl", "qwen2_5_vl")


def _side(size: Any) -> int:
    return int(size if isinstance(size, int) else size[0])


def _most(told: Mapping[str, Any]) -> int:
    """The largest height and width that a preprocessor lets a square picture have."""
    pixels = told.get("max_pixels") or (told.get("size") or {}).get("longest_edge")
    return int(pixels**0.5) if pixels else LARGEST
