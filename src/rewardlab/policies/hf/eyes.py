"""Pictures through a checkpoint's own processor of transformers: the text in a picture's place, and what the vision tower reads.

Token ids and pixels are then those that the model was trained with. The processors of several families want packages for videos
(torchvision, num2words) that pictures do not need; here they are made without them.
"""

from __future__ import annotations

import importlib
import json
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from rewardlab.data.pictures import digest_of, fitted
from rewardlab.errors import RewardlabError
from rewardlab.policies.hf.sight import Family, family_of

PREPROCESSOR, PROCESSOR = "preprocessor_config.json", "processor_config.json"
FILES = (PREPROCESSOR, PROCESSOR, "video_preprocessor_config.json")
KEPT = 256 << 20
"""Bytes of pictures ready for the vision tower that are kept: a group of replies looks at the same ones in several passes."""
PILLOW = "pictures need Pillow: pip install 'rewardlab[pictures]'"


class Shown(NamedTuple):
    """What a model is shown of a picture: the text in the place of its image token, how many image tokens this has, and tensors."""

    text: str
    tokens: int
    given: Mapping[str, Tensor]


class Eye:
    """Pictures of any size, through transformers' processor.

    token: what stands for a picture in the text of a chat template.  image: the token in whose place a feature is read.
    """

    def __init__(self, processor: Any, config: Any, files: Mapping[str, bytes]):
        if not hasattr(processor, "_process_images"):
            raise RewardlabError("pictures of any size need a newer transformers: pip install -U transformers")
        self.processor, self.files, self.family = processor, files, family_of(config)
        self.token = processor.image_token
        self.image = processor.tokenizer.convert_ids_to_tokens(config.image_token_id)
        self._texts: dict[tuple[int, ...], tuple[str, int]] = {}
        self._kept: OrderedDict[str, Shown] = OrderedDict()

    def text(self, picture: Any) -> tuple[str, int]:
        """What stands in the place of a picture, and the image tokens in it; both follow from its size."""
        if (shape := shape_of(picture)) not in self._texts:
            self._texts[shape] = self.shown(picture)[:2]
        return self._texts[shape]

    def shown(self, picture: Any, name: str = "") -> Shown:
        """name: the picture's digest, where it is known."""
        name = name or digest_of(picture)
        if name not in self._kept:
            self._kept[name] = self._processed(pixels_of(picture))
            while sum(x.nbytes for one in self._kept.values() for x in one.given.values()) > KEPT and len(self._kept) > 1:
                self._kept.popitem(last=False)
        self._kept.move_to_end(name)
        return self._kept[name]

    def _processed(self, pixels: np.ndarray) -> Shown:
        processor, height, width = self.processor, *pixels.shape[:2]
        try:
            from PIL import Image

            how = processor._merge_kwargs(tokenizer_init_kwargs=processor.tokenizer.init_kwargs, return_tensors="pt")
            found, (text,) = processor._process_images([Image.fromarray(pixels)], **how["images_kwargs"])
        except ImportError as e:
            raise RewardlabError(f"{PILLOW} ({e})") from e
        except (ValueError, TypeError, IndexError, ArithmeticError, RuntimeError) as e:
            raise RewardlabError(f"the model's processor cannot show a picture of {width} x {height}: {e}") from e
        given = {name: torch.as_tensor(np.asarray(found[name])) for name in self.family.given if name in found}
        return Shown(text, text.count(self.image), given)

    def save(self, folder: Path) -> None:
        """Write what the checkpoint said of its processor."""
        for name, content in self.files.items():
            (folder / name).write_bytes(content)


class PlainEye:
    """Square pictures of one size, for the small policies that are made here; others are scaled to it, between grey margins.

    mean, std: of each colour, by which pixels from 0 to 1 are scaled.  told: further settings to be saved.
    """

    def __init__(self, config: Any, image: str, told: Mapping[str, Any]):
        self.family: Family = family_of(config)
        vision, self.told, self.token, self.image = config.vision_config, told, image, image
        self.size = int(vision.image_size)
        self.tokens = (self.size // int(vision.patch_size)) ** 2
        half = (0.5, 0.5, 0.5)
        self.mean, self.std = (tuple(told.get(f"image_{x}") or half) for x in ("mean", "std"))

    def text(self, picture: Any) -> tuple[str, int]:
        return self.image * self.tokens, self.tokens

    def pixels(self, pictures: Sequence[Any], device: torch.device) -> Tensor:
        """(n, 3, size, size), scaled."""
        mean, std = (torch.tensor(x, device=device)[:, None, None] for x in (self.mean, self.std))
        sized = np.stack([fitted(pixels_of(picture), self.size) for picture in pictures])
        bytes_ = torch.from_numpy(sized).to(device).permute(0, 3, 1, 2).float()
        # for small policies this is bytes / 127.5 - 1 to the last bit, by which records were made
        return bytes_ / (255 * std) - mean / std

    def save(self, folder: Path) -> None:
        said = {**self.told, "image_mean": list(self.mean), "image_std": list(self.std)}
        (folder / PREPROCESSOR).write_text(json.dumps(said))


def pixels_of(picture: Any) -> np.ndarray:
    """(height, width, 3) bytes. Raises RewardlabError for what is none."""
    found = np.asarray(picture)
    if found.ndim != 3 or found.shape[2] != 3 or found.dtype != np.uint8 or not found.size:
        raise RewardlabError(f"a picture is an array of (height, width, 3) bytes, and one is {found.shape} {found.dtype}")
    return found


def shape_of(picture: Any) -> tuple[int, ...]:
    """(height, width, 3), of an encoded picture too, without decoding it."""
    return tuple(getattr(picture, "shape", None) or np.asarray(picture).shape)


def eye_of(folder: Path, config: Any, tokenizer: Any) -> Eye | PlainEye:
    """What shows pictures to the model in a folder. Raises RewardlabError where its processor cannot be made."""
    family, told = family_of(config), preprocessor(folder)
    if config.model_type == "llava" and not (told.keys() & {"image_processor_type", "processor_class", "size"}):
        return PlainEye(config, tokenizer.convert_ids_to_tokens(config.image_token_id), told)
    if not told:
        raise RewardlabError(f"{folder} does not say how its model is shown pictures: put its {PREPROCESSOR} there")
    files = {name: (folder / name).read_bytes() for name in FILES if (folder / name).is_file()}
    return Eye(processor_of(folder, family, tokenizer), config, files)


def processor_of(folder: Path, family: Family, tokenizer: Any) -> Any:
    """The processor in a checkpoint folder, for text and pictures alone."""
    import transformers

    try:
        kind = _without_videos(getattr(transformers, family.processor))
        images = transformers.AutoImageProcessor.from_pretrained(str(folder), trust_remote_code=False)
        said, _ = kind.get_processor_dict(str(folder))
        parts = {"image_processor": images, "tokenizer": tokenizer}
        with _no_words_needed(kind):
            return kind.from_args_and_dict([parts.get(name) for name in kind.get_attributes()], said)
    except ImportError as e:
        raise RewardlabError(f"{PILLOW} ({e})") from e
    except (OSError, ValueError, AttributeError, TypeError) as e:
        raise RewardlabError(f"{folder}: its {family.processor} cannot be made: {(str(e).splitlines() or [''])[0]}") from e


def _without_videos(kind: Any) -> Any:
    """A processor's class that may lack the part for videos, which torchvision reads."""

    def any_part(self: Any, name: str, part: Any) -> type:
        return type(part)

    return type(kind.__name__, (kind,), {"check_argument_for_proper_class": any_part})


@contextmanager
def _no_words_needed(kind: Any) -> Iterator[None]:
    """A context in which SmolVLM's processor does not ask for num2words, with which it describes videos."""
    module: Any = importlib.import_module(kind.__mro__[1].__module__)
    if getattr(module, "num2words", "") is not None:
        yield
        return
    module.num2words = str
    try:
        yield
    finally:
        module.num2words = None


def preprocessor(folder: Path) -> dict[str, Any]:
    """What the checkpoint says of its preprocessor of images: in a file of its own, or in that of the processor."""
    for name in (PREPROCESSOR, PROCESSOR):
        if (folder / name).is_file():
            told = json.loads((folder / name).read_text("utf-8"))
            return told if name == PREPROCESSOR else told.get("image_processor") or {}
    return {}


def chat_template(folder: Path) -> Any:
    """The chat template that the checkpoint's processor has, where the tokenizer may have none."""
    from transformers import ProcessorMixin

    try:
        return ProcessorMixin.get_processor_dict(str(folder))[0].get("chat_template")
    except (OSError, ValueError):
        return None
