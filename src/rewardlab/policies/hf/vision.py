"""A vision-language model of transformers as a policy, for text that contains images: a vision tower beside a language model.

Every image becomes as many image tokens as the vision tower outputs features, and the model replaces each of these tokens by a
feature; `eyes.py` says how a checkpoint's own processor shows it images of any size, `said.py` where they stand in the text, and
`sight.py` what its family is given. Images are kept in the turn that was read (`Turn.images`), as uint8 arrays (height, width, 3)
or encoded (`data.pictures.Picture`), and looked at in every pass: an image that several rows of a pass share, once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from rewardlab.core import Message, Trajectory
from rewardlab.data.pictures import digest_of
from rewardlab.errors import TooLong
from rewardlab.policies.adapter import Base
from rewardlab.policies.chat import dialogue, since_reply
from rewardlab.policies.hf.adapters import adapted
from rewardlab.policies.hf.eyes import Eye, PlainEye, chat_template, eye_of, shape_of
from rewardlab.policies.hf.policy import HFPolicy
from rewardlab.policies.hf.said import Speaker, expanded, first_ids, placed
from rewardlab.policies.hf.sight import GRID, features
from rewardlab.policies.tokenizer import encoded


class VisionPolicy(HFPolicy):
    """A model that reads images."""

    sees = True
    # equal tokens may stand for unlike images
    _by_ids_alone = False
    _eye: Eye | PlainEye | None = None

    @classmethod
    def load(
        cls, folder: Path | str, device: str = "auto", dtype: str = "auto", lora_rank: int | None = None,
        adapter: Path | None = None, base: Base | None = None, nf4: bool = False,
    ) -> VisionPolicy:  # fmt: skip
        """Read a Hugging Face checkpoint folder with its tokenizer and the settings of its processor.

        Adapters are on the linear layers of the language model; the vision tower stays as it is then.
        """
        policy = super().load(folder, device, dtype, lora_rank, adapter, base, nf4)
        assert isinstance(policy, VisionPolicy)
        policy.eye = eye_of(Path(folder), policy.model.config, policy.tokenizer)
        return policy

    @classmethod
    def _tokenizer(cls, folder: Path) -> Any:
        tokenizer = super()._tokenizer(folder)
        # the processor's own template is the one that knows images
        tokenizer.chat_template = chat_template(folder) or tokenizer.chat_template
        return tokenizer

    def save(self, folder: Path | str) -> None:
        super().save(folder)
        if not (self.base and self.value_head is None):
            self.eye.save(Path(folder))

    def _like(self, whole: Any, name: str, head: Tensor | None) -> VisionPolicy:
        seeing = VisionPolicy(whole, self.tokenizer, self.device, self.dtype, name, head)
        seeing._eye = self._eye
        return seeing

    @property
    def eye(self) -> Eye | PlainEye:
        """How it is shown images."""
        if self._eye is None:
            token = self.tokenizer.convert_ids_to_tokens(self.model.config.image_token_id)
            self._eye = PlainEye(self.model.config, token, {})
        return self._eye

    @eye.setter
    def eye(self, eye: Eye | PlainEye) -> None:
        self._eye = eye

    def freeze_vision(self) -> VisionPolicy:
        """Train the language model alone; the vision tower and what adapts its features stay as they are."""
        text = {id(p) for part in (self.model.get_decoder(), self.model.get_output_embeddings()) for p in part.parameters()}
        for p in self.model.parameters():
            p.requires_grad_(p.requires_grad and id(p) in text)
        return self

    # ---- reading -----------------------------------------------------------------------------------------------------

    def read(self, trajectories: Sequence[Trajectory], messages: Sequence[Sequence[Message]]) -> list[Trajectory]:
        """Append messages; an image stands at its mark `<image>` in the text, if there are as many marks as images, or else before
        the text. Where the chat template has a place of its own for images, they stand there."""
        return [_with_images(t, new) for t, new in zip(super().read(trajectories, messages), messages, strict=True)]

    @cached_property
    def _speaker(self) -> Speaker:
        return Speaker(self.tokenizer, self.eye.token, self.eye.family.around)

    def _ids_of(self, trajectory: Trajectory, new: tuple[Message, ...]) -> np.ndarray:
        if not trajectory.turns:
            return np.asarray(first_ids(self.tokenizer, self._render(new)), np.int64)
        if not any(m.images for m in new):
            return super()._ids_of(trajectory, self._placed(new))
        ended = len(trajectory.turns[-1].ids) and int(trajectory.turns[-1].ids[-1]) in self.ends
        end = self.tokenizer.convert_ids_to_tokens(self._end)
        text = self._with_tokens(since_reply(self._speaker, self._placed(new), end, bool(ended)), new)
        return np.asarray(encoded(self.tokenizer, [text], begins=False)[0], np.int64)

    def prompt_lengths(self, prompts: Sequence[tuple[Message, ...]]) -> list[int]:
        """The tokens of each prompt, those of its images included."""
        return [len(first_ids(self.tokenizer, self._render(p))) for p in prompts]

    def _render(self, messages: tuple[Message, ...]) -> str:
        return self._with_tokens(dialogue(self._speaker, self._placed(messages)), messages)

    def _placed(self, messages: Sequence[Message]) -> tuple[Message, ...]:
        return tuple(placed(m, (self.eye.token, self.eye.image)) for m in messages)

    def _with_tokens(self, text: str, messages: Sequence[Message]) -> str:
        pictures = [self.eye.text(picture)[0] for m in messages for picture in m.images]
        return expanded(self._speaker.unparted(text), self.eye.token, pictures)

    def check_fits(self, trajectory: Trajectory, max_new: int) -> None:
        """Refuse a prompt that leaves no room for the reply."""
        try:
            super().check_fits(trajectory, max_new)
        except TooLong as e:
            shown = {shape_of(p): self.eye.text(p)[1] for turn in trajectory.turns for p in turn.images}
            if not shown:
                raise
            told = ", ".join(f"{n} for a picture of {shape[1]} x {shape[0]}" for shape, n in shown.items())
            raise TooLong(f"{e}. Image tokens: {told}; smaller pictures take fewer where the model reads any size") from e

    # ---- looking -----------------------------------------------------------------------------------------------------

    @contextmanager
    def _looking(self, rows: Sequence[Trajectory], model: Any = None, left: bool = False) -> Iterator[None]:
        """In this context the model (by default the policy's) sees the images of these rows at their image tokens.

        An image token that the model itself sampled stands for no image: it is read as padding.  left: whether padding is there.
        """
        pictures = [image for t in rows for turn in t.turns for image in turn.images]
        look = self._plainly(pictures) if isinstance(self.eye, PlainEye) else self._features(pictures, self.eye)
        token, blank, family = self.model.config.image_token_id, self.tokenizer.pad_token_id or 0, self.eye.family

        def show(module: Any, args: Any, given: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
            # some models pass ids by place
            args, given = (), dict(zip(("input_ids",), args, strict=False)) | given
            ids = given["input_ids"]
            # a single column of ids is a token being sampled; images are in the prompt, whose features the cache holds by then
            whole = ids.shape[1] > 1
            seen, real = self._places(rows, ids.shape[1], left) if whole else (torch.zeros_like(ids, dtype=torch.bool), None)
            given = given | {"input_ids": ids.masked_fill((ids == token) & ~seen, blank)}
            if not pictures:
                return args, given
            if real is None:
                return args, given | family.gone_on(module, given)
            found = look(module)
            return args, given | found[0] | family.beside(module, seen, real, found[1], given)

        # a hook, because `generate` and `_hidden` pass token ids alone to the model
        whole = model or self.model
        inside = (whole.get_base_model() if adapted(whole) else whole).base_model
        hook = inside.register_forward_pre_hook(show, with_kwargs=True)
        try:
            yield
        finally:
            hook.remove()

    def _places(self, rows: Sequence[Trajectory], width: int, left: bool) -> tuple[Tensor, Tensor]:
        """(B, T) which tokens stand for images, and which are no padding."""
        seen, real = np.zeros((2, len(rows), width), bool)
        longest = max(map(len, rows), default=0)
        for row, t in enumerate(rows):
            at = longest - len(t) if left else 0
            real[row, at : at + len(t)] = True
            for turn in t.turns:
                if turn.images and turn.author is None:
                    seen[row, at : at + len(turn.ids)] = turn.ids == self.model.config.image_token_id
                at += len(turn.ids)
        return torch.from_numpy(seen).to(self.device), torch.from_numpy(real).to(self.device)

    def _plainly(self, pictures: Sequence[Any]) -> Any:
        pixels = self.eye.pixels(pictures, self.device) if pictures and isinstance(self.eye, PlainEye) else None
        return lambda module: ({"pixel_values": pixels, "mm_encoder_outputs": None}, None)

    def _features(self, pictures: Sequence[Any], eye: Eye) -> Any:
        """A function of the model that gives what stands in the images' places, and their grids; each image is looked at once."""
        places: dict[str, int] = {}
        # replies to one prompt hold the same object
        names = {key: digest_of(picture) for key, picture in {id(p): p for p in pictures}.items()}
        of = [places.setdefault(names[id(picture)], len(places)) for picture in pictures]
        shown = [eye.shown(pictures[of.index(i)], name) for name, i in places.items()]
        given = {name: x.to(self.device) for name, x in eye.family.joined([one.given for one in shown]).items()} if shown else {}

        def look(module: Any) -> tuple[Mapping[str, Any], Tensor | None]:
            found = features(module, given, [one.tokens for one in shown], of)
            return {"mm_encoder_outputs": {"image": found}}, given[GRID][of] if GRID in given else None

        return look

    # ---- the same calls, looking -------------------------------------------------------------------------------------

    @contextmanager
    def _reading(self, rows: Sequence[Trajectory]) -> Iterator[None]:
        with super()._reading(rows), self._looking(rows):
            yield

    def _begun(self, trajectories: Sequence[Trajectory], rng: torch.Generator) -> Sequence[Trajectory]:
        self._prompts = super()._begun(trajectories, rng)
        return self._prompts

    def _generate(self, model: Any, prompts: list[np.ndarray], sampler: Any, *kept: Any) -> None:
        rows = [self._prompts[i] for i in sampler.rows]
        with ExitStack() as eyes:
            eyes.enter_context(self._looking(rows, model, left=True))
            for _, other in self._joined:
                if isinstance(other, VisionPolicy) and other is not self:
                    eyes.enter_context(other._looking(rows, left=True))
            super()._generate(model, prompts, sampler, *kept)

    def _in_sampling(self, rows: Sequence[int], width: int) -> dict[str, Any]:
        shown = [self._prompts[i] for i in rows]
        if not any(turn.images for t in shown for turn in t.turns):
            return {}
        return self.eye.family.in_sampling(self._places(shown, width, left=True)[0])

    def score(self, trajectories: Sequence[Trajectory]) -> list[np.ndarray]:
        """Log-prob of every position, (len,)."""
        if isinstance(self.eye, PlainEye):
            # row by row, as the records of small policies were made
            return [row for t in trajectories for row in super(VisionPolicy, self).score([t])]
        return super().score(trajectories)


def _with_images(trajectory: Trajectory, new: Sequence[Message]) -> Trajectory:
    """The trajectory with the images of the messages in its newest turn."""
    return replace(trajectory, turns=(*trajectory.turns[:-1], replace(trajectory.turns[-1], images=_images(new))))


def _images(messages: Sequence[Message]) -> tuple[Any, ...]:
    return tuple(image for m in messages for image in m.images)
