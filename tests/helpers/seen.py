"""Tiny pictures, files of rows that show them, and a tiny vision-language model with random weights that reads these."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from rewardlab.core import Message, Problem, Task
from rewardlab.data.pictures import png

SIZE, OF_TEMPLATES = 12, 36
"""Height and width of the pictures here, and of those in the rows of methods."""
WORDS = "how many red dots are there ? ! yes no what is it where the cup two chairs blue square squares"


def pixels(seed: int, size: tuple[int, int] = (SIZE, SIZE)) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, (*size, 3), dtype=np.uint8)


def saved(folder: Path, n: int, size: tuple[int, int] = (SIZE, SIZE)) -> list[str]:
    """Names of n different pictures in a folder."""
    for k in range(n):
        (folder / f"{k}.png").write_bytes(png(pixels(k, size)))
    return [f"{k}.png" for k in range(n)]


def lines(path: Path, rows: list[dict[str, Any]]) -> str:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(path)


def looker(folder: Path, words: str = WORDS, size: int = SIZE) -> str:
    """The folder of a tiny Llava with random weights, which reads pictures of size x size and these words."""
    from rewardlab.models.vision import untrained

    asked = [Problem((Message("user", words, images=(pixels(0, (size, size)),)),), "1")] * 300
    untrained(Task("looks", asked, (), "exact_match")).save(folder)
    return str(folder)
