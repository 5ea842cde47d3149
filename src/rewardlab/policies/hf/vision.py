"""A vision-language model of transformers as a policy, for text that contains images: a vision tower beside a language model.

Every image becomes as many image tokens as the vision tower outputs features, and the model replaces each of these tokens by a
feature; `sight.py` says how each family is shown them. Images are kept in the turn that was read (`Turn.images`), as uint8 arrays
(height, width, 3), and encoded in every pass.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import torch
from torch import Tensor

from rewardlab.core import Batch, Message, Outputs, Sampling, Trajectory
from rewardlab.errors import RewardlabError
from rewardlab.policies.adapter import Base
from rewardlab.policies.hf.policy import HFPolicy
from rewardlab.policies.hf.sight import Sight, sight_of
from rewardlab.util.device import device_of, dtype_of

PREPROCESSOR, PROCESSOR = "preprocessor_config.json", "processor_config.json"


class VisionPolicy(HFPolicy):
    """A model that reads square images of one size.

    told: what the checkpoint's preprocessor says; by its mean and std of each colour pixels from 0 to 1 are scaled.
    """

    sees = True
    told: Mapping[str, Any] = MappingProxyType({})
    mean: tuple[float, ...] = (0.5, 0.5, 0.5)
    std: tuple[float, ...] = (0.5, 0.5, 0.5)
    # equal tokens may stand for unlike images
    _by_ids_alone = False

    @classmethod
    def load(
        cls, folder: Path | str, device: str = "auto", dtype: str = "auto", lora_rank: int | None = None,
        adapter: Path | None = None, base: Base | None = None, nf4: bool = False,
    ) -> VisionPolicy:  # fmt: skip
        """Read a Hugging Face checkpoint folder with its tokenizer."""
        from transformers import AutoModelForImageTextToText, AutoTokenizer

        if lora_rank or adapter or nf4:
            raise RewardlabError("adapters on vision-language models, and 4 bits, are not offered; train the whole model")
        where = device_of(device)
        model = AutoModelForImageTextToText.from_pretrained(str(folder), dtype=torch.float32, trust_remote_code=False)
        policy = cls(model, AutoTokenizer.from_pretrained(str(folder), trust_remote_code=False), where, dtype_of(dtype, where))
        policy.stop_as_in(folder)
        policy.told = preprocessor(Path(folder))
        policy.mean, policy.std = (tuple(policy.told.get(f"image_{x}") or getattr(policy, x)) for x in ("mean", "std"))
        return policy

    def save(self, folder: Path | str) -> None:
        super().save(folder)
        said = {**self.told, "image_mean": list(self.mean), "image_std": list(self.std)}
        (Path(folder) / PREPROCESSOR).write_text(json.dumps(said))

    def copy(self, name: str, value_head: bool = False) -> VisionPolicy:
        copied = super().copy(name, value_head)
        seeing = VisionPolicy(copied.whole, self.tokenizer, self.device, self.dtype, name, copied.value_head)
        seeing.attributes = copied.attributes
        seeing._as_loaded(self)
        seeing.mean, seeing.std, seeing.told = self.mean, self.std, self.told
        seeing.recomputes = self.recomputes
        return seeing

    @cached_property
    def sight(self) -> Sight:
        """How its family is shown images."""
        return sight_of(self.model.config, self.told)

    @property
    def image_size(self) -> int:
        """Height and width of the images that it reads."""
        return self.sight.size

    @property
    def tokens_per_image(self) -> int:
        return self.sight.tokens

    # ---- reading -----------------------------------------------------------------------------------------------------

    def read(self, trajectories: Sequence[Trajectory], messages: Sequence[Sequence[Message]]) -> list[Trajectory]:
        """Append messages; their images come before their text."""
        shown = [self._shown(new) for new in messages]
        return [_with_images(t, new) for t, new in zip(super().read(trajectories, shown), messages, strict=True)]

    def prompt_lengths(self, prompts: Sequence[tuple[Message, ...]]) -> list[int]:
        """The tokens of each prompt, those of its images included."""
        return super().prompt_lengths([self._shown(p) for p in prompts])

    def _shown(self, messages: Sequence[Message]) -> tuple[Message, ...]:
        """The messages with image tokens in place of their images."""
        token = self.tokenizer.convert_ids_to_tokens(self.model.config.image_token_id)
        mark = f"{self.sight.before}{token * self.tokens_per_image}{self.sight.after}"
        return tuple(replace(m, text=mark * len(m.images) + m.text, images=()) for m in messages)

    @contextmanager
    def _looking(self, rows: Sequence[Trajectory], model: Any = None) -> Iterator[None]:
        """In this context the model (by default the policy's) sees the images of these rows at their first image tokens.

        An image token that the model itself sampled stands for no image: it is read as padding.
        """
        images = [[image for turn in t.turns for image in turn.images] for t in rows]
        pixels = self._pixels([image for seen in images for image in seen])
        shown_tokens = torch.tensor([len(seen) * self.tokens_per_image for seen in images], device=self.device)[:, None]
        token, blank = self.model.config.image_token_id, self.tokenizer.pad_token_id or 0

        def show(module: Any, args: Any, given: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
            ids = given["input_ids"]
            marks = ids == token
            # a single column of ids is a token being sampled; images are in the prompt, whose features the cache holds by then
            shown = marks & (marks.cumsum(1) <= shown_tokens) if ids.shape[1] > 1 else torch.zeros_like(marks)
            given = given | {"input_ids": ids.masked_fill(marks & ~shown, blank)}
            if pixels is None:
                return args, given
            if ids.shape[1] == 1:
                return args, given | self.sight.gone_on(module, given)
            return args, given | {"mm_encoder_outputs": None} | self.sight.shown(module, pixels, shown, given)

        # a hook, because `generate` and `_hidden` pass token ids alone to the model
        hook = (model or self.model).base_model.register_forward_pre_hook(show, with_kwargs=True)
        try:
            yield
        finally:
            hook.remove()

    def _pixels(self, images: Sequence[np.ndarray]) -> Tensor | None:
        """(n, 3, size, size), scaled; None if there is no image."""
        size = self.image_size
        for image in images:
            if np.shape(image) != (size, size, 3):
                raise RewardlabError(
                    f"this policy sees images of {size} x {size} x 3 bytes, and one is {np.shape(image)}; scale it"
                )
        if not images:
            return None
        mean, std = (torch.tensor(x, device=self.device)[:, None, None] for x in (self.mean, self.std))
        bytes_ = torch.from_numpy(np.stack(images)).to(self.device).permute(0, 3, 1, 2).float()
        # for small policies this is bytes / 127.5 - 1 to the last bit, by which records were made
        return bytes_ / (255 * std) - mean / std

    # ---- the same calls, looking -------------------------------------------------------------------------------------

    def extend(self, trajectories: Sequence[Trajectory], sampling: Sampling, rng: torch.Generator) -> list[Trajectory]:
        """Sample one reply for each trajectory."""
        self._prompts = trajectories
        return super().extend(trajectories, sampling, rng)

    def _generate(self, model: Any, prompts: list[np.ndarray], sampler: Any, *kept: Any) -> None:
        rows = [self._prompts[i] for i in sampler.rows]
        with ExitStack() as eyes:
            eyes.enter_context(self._looking(rows, model))
            for _, other in self._joined:
                if isinstance(other, VisionPolicy) and other is not self:
                    eyes.enter_context(other._looking(rows))
            super()._generate(model, prompts, sampler, *kept)

    def score(self, trajectories: Sequence[Trajectory]) -> list[np.ndarray]:
        """Log-prob of every position, (len,); row by row: batches are sorted by length, which would mix up the images."""
        logprobs = []
        for t in trajectories:
            with self._looking([t]):
                logprobs += super().score([t])
        return logprobs

    def evaluate(self, batch: Batch, wants: Sequence[str] = ("logprobs",), per_token: Sequence[Any] = ()) -> Outputs:
        """Log-probs and entropies where `batch.mask`, values and hidden states everywhere; (B, T), with gradient."""
        with self._looking([t for t, _ in batch.rows]):
            return super().evaluate(batch, wants, per_token)


def preprocessor(folder: Path) -> dict[str, Any]:
    """What the checkpoint says of its preprocessor of images: in a file of its own, or in that of the processor."""
    for name in (PREPROCESSOR, PROCESSOR):
        if (folder / name).is_file():
            told = json.loads((folder / name).read_text("utf-8"))
            return told if name == PREPROCESSOR else told.get("image_processor") or {}
    return {}


def _with_images(trajectory: Trajectory, new: Sequence[Message]) -> Trajectory:
    """The trajectory with the images of the messages in its newest turn, whose text is shown without image tokens."""
    images = tuple(image for m in new for image in m.images)
    newest = replace(trajectory.turns[-1], images=images, text="\n".join(m.text for m in new))
    return replace(trajectory, turns=(*trajectory.turns[:-1], newest))
