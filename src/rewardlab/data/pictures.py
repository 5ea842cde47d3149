"""Pictures in rows of data: paths, bytes, base64, dictionaries of Hugging Face datasets, arrays, and lists of them (frames).

A picture stays encoded, as it is stored, and becomes an array of pixels whenever it is looked at: thousands of photographs do not
fit the memory as pixels. It is decoded once when it is read, so that a broken one is told with its place in the data.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import io
import os
import struct
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from rewardlab.errors import RewardlabError

SUFFIXES = (".png", ".jpg", ".jpeg", ".webp", ".gif", ".bmp", ".tif", ".tiff")
VIDEOS = (".mp4", ".avi", ".mkv", ".mov", ".webm")
FORMATS = ("PNG", "JPEG", "WEBP", "GIF", "BMP", "TIFF")
SENT = {b"\x89PNG": "image/png", b"\xff\xd8\xff": "image/jpeg"}
"""How files that every served model takes begin; others are sent as PNG."""
GREY = 127
ENCODED = 64
"""Characters that base64 of a picture has at least."""
HELD_IN = ("bytes", "path", "url", "data", "base64")
"""What a dictionary that is a picture may hold it under: those of Hugging Face, and of messages by several APIs."""


class Picture:
    """A picture in a file or in bytes; as an array (`np.asarray`), (height, width, 3) bytes.

    digest: a hash of its encoded bytes.  Raises ValueError where these are no picture.
    """

    def __init__(self, source: bytes | Path):
        self.source = source
        self.digest = hashlib.sha256(self.data).hexdigest()
        self.shape = self.pixels().shape

    @property
    def data(self) -> bytes:
        """As it is stored."""
        return self.source if isinstance(self.source, bytes) else self.source.read_bytes()

    def pixels(self) -> np.ndarray:
        """(height, width, 3) bytes, turned as a camera noted."""
        image, ops = _pillow()
        try:
            with image.open(io.BytesIO(self.data), formats=FORMATS) as opened:
                return np.array(ops.exif_transpose(opened).convert("RGB"))
        except (OSError, SyntaxError, ValueError, EOFError, image.DecompressionBombError) as e:
            name = f"{len(self.data)} bytes" if isinstance(self.source, bytes) else str(self.source)
            raise ValueError(f"{name} can be read as no picture: {e}") from None

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        return self.pixels().astype(dtype or np.uint8, copy=False)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Picture) and self.digest == other.digest

    def __hash__(self) -> int:
        return hash(self.digest)

    def __repr__(self) -> str:
        return f"Picture({self.shape[1]} x {self.shape[0]})"


def pictures_in(value: Any, folder: Path | None = None) -> tuple[Any, ...]:
    """The pictures in a cell of a row, in their order: one, or the frames of a list or of a folder.

    folder: from which paths go. Raises ValueError where there is none, or a broken one.
    """
    if isinstance(value, Picture):
        return (value,)
    if is_pixels(value) or (isinstance(value, np.ndarray) and value.ndim == 4 and is_pixels(value[0])):
        return tuple(value) if value.ndim == 4 else (value,)
    if isinstance(value, bytes | bytearray):
        return (Picture(bytes(value)),)
    if isinstance(value, Mapping):
        known = next((value[name] for name in HELD_IN if value.get(name) is not None), None)
        return pictures_in(known, folder)
    if type(value).__module__.partition(".")[0] == "PIL":
        return (Picture(_stored(value)),)
    if isinstance(value, str) and value:
        return _of_text(value, folder or Path())
    if isinstance(value, Sequence) and not isinstance(value, str) and len(value):
        return tuple(picture for part in value for picture in pictures_in(part, folder))
    raise ValueError(f"a picture is a path, bytes, base64, or a list of them, and not {repr(value)[:60]}")


def may_be_picture(value: Any, folder: Path) -> bool:
    """Whether a cell may be meant as a picture: all but a text that is neither an address, nor encoded, nor a picture's or a file's
    name."""
    if not isinstance(value, str) or value.lstrip().startswith(("[", "{")):
        return True
    if "://" in value or value.startswith("data:") or ("." not in value and len(value) >= ENCODED):
        return True
    return Path(value).suffix.lower() in (*SUFFIXES, *VIDEOS) or os.path.exists(folder / value)


def is_pixels(value: Any) -> bool:
    """Whether a value is an array of a picture, (height, width, 3) bytes."""
    return isinstance(value, np.ndarray) and value.dtype == np.uint8 and value.ndim == 3 and value.shape[-1] == 3 and value.size > 0


def _of_text(text: str, folder: Path) -> tuple[Any, ...]:
    if text.startswith("data:"):
        return (Picture(_decoded(text.partition(",")[2])),)
    if text.startswith(("http://", "https://")):
        raise ValueError(f"the picture {text[:200]} is an address: save it to a file, and give its path")
    text = text.removeprefix("file://")
    # base64 of a picture is long and has no dot
    if "." not in text and len(text) >= ENCODED and not (folder / text[:200]).exists():
        return (Picture(_decoded(text)),)
    path = folder / text
    if path.suffix.lower() in VIDEOS:
        path = path.with_suffix("")
        if not path.is_dir():
            raise ValueError(f"{text} is a video: save its frames as pictures in {path}, named in their order")
    if path.is_dir():
        frames = sorted(p for p in path.iterdir() if p.suffix.lower() in SUFFIXES)
        if not frames:
            raise ValueError(f"the folder {path} holds no frames")
        return tuple(map(Picture, frames))
    if not path.is_file():
        raise ValueError(f"there is no picture {path}")
    return (Picture(path),)


def _decoded(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error as e:
        raise ValueError(f"the picture {text[:30]}... is not base64: {e}") from None


def _stored(image: Any) -> bytes:
    """An image of Pillow as a PNG file."""
    _, ops = _pillow()
    file = io.BytesIO()
    ops.exif_transpose(image).convert("RGB").save(file, "PNG", compress_level=1)
    return file.getvalue()


def digest_of(picture: Any) -> str:
    """A hash of all of a picture's pixels, or of its bytes."""
    if isinstance(picture, Picture):
        return picture.digest
    array = np.ascontiguousarray(picture)
    return hashlib.sha256(f"{array.shape} {array.dtype}".encode() + array.tobytes()).hexdigest()


def named(shown: Sequence[str]) -> str:
    """Pictures in words, by their hashes, after the text that they stand with: equal words below others are another question."""
    several = f"{len(shown)} picture{'s' * (len(shown) != 1)}"
    return f"\n[{several}: {' '.join(digest[:12] for digest in shown)}]" if shown else ""


def fitted(picture: Any, size: int) -> np.ndarray:
    """(size, size, 3) bytes: the whole picture, scaled, between grey margins. One that has this size already stays as it is."""
    array = np.asarray(picture)
    if array.shape == (size, size, 3):
        return array
    image, _ = _pillow()
    height, width = array.shape[:2]
    scale = size / max(height, width)
    inner = max(1, round(width * scale)), max(1, round(height * scale))
    scaled = np.asarray(image.fromarray(array).resize(inner, image.Resampling.BICUBIC))
    found = np.full((size, size, 3), GREY, np.uint8)
    top, left = (size - inner[1]) // 2, (size - inner[0]) // 2
    found[top : top + inner[1], left : left + inner[0]] = scaled
    return found


def evenly(frames: Sequence[Any], n: int) -> tuple[Any, ...]:
    """At most n of the frames, at even distances, the first and the last among them."""
    if len(frames) <= n:
        return tuple(frames)
    return tuple(frames[i] for i in np.linspace(0, len(frames) - 1, n).round().astype(int)) if n > 1 else (frames[0],)


def png(array: np.ndarray) -> bytes:
    """(height, width, 3) bytes as a PNG file."""
    height, width = array.shape[:2]
    lines = b"".join(b"\0" + row.tobytes() for row in np.ascontiguousarray(array, np.uint8))
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    parts = ((b"IHDR", header), (b"IDAT", zlib.compress(lines)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data)) for name, data in parts
    )


def base64_of(array: np.ndarray) -> str:
    """An array of pixels as a PNG file in base64, as rows of JSON hold pictures."""
    return base64.b64encode(png(array)).decode()


def address_of(picture: Any) -> str:
    """A picture as a `data:` address, for served models and pages."""
    data = picture.data if isinstance(picture, Picture) else b""
    media = next((name for start, name in SENT.items() if data.startswith(start)), "")
    if not media:
        data, media = png(np.asarray(picture)), "image/png"
    return f"data:{media};base64,{base64.b64encode(data).decode()}"


def refuse_pictures(messages: Sequence[Any], who: str) -> None:
    """Raise RewardlabError for messages that show pictures, to a model that reads their text alone."""
    if any(m.images for m in messages):
        raise RewardlabError(f"{who} reads text alone, and a prompt shows pictures, which its score would say nothing of")


def addresses(messages: Sequence[Any]) -> tuple[tuple[str, ...], ...]:
    """The addresses of what each message shows, as requests to served models hold them; empty where none shows anything."""
    shown = tuple(tuple(map(address_of, m.images)) for m in messages)
    return shown if any(shown) else ()


def _pillow() -> tuple[Any, Any]:
    try:
        from PIL import Image, ImageOps
    except ImportError:
        raise RewardlabError("pictures are read by Pillow, which is not installed: pip install 'rewardlab[pictures]'") from None
    return Image, ImageOps
