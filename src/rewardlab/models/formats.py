"""The number format of the weights in a checkpoint folder."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from pathlib import Path

FORMATS = {"F32": "float32", "BF16": "bfloat16", "F16": "float16"}
"""Names in safetensors files, and torch's."""
SAMPLES, SAMPLE_BYTES = 16, 4096


def stored_dtype(folder: Path) -> str:
    """The format that most weights of a checkpoint have: float32, bfloat16 or float16; float32 where it is none of these.

    Read from the weights' files, whatever config.json says.
    """
    sizes: Counter[str] = Counter()
    for file in folder.glob("*.safetensors"):
        for name, entry in _header(file).items():
            if name != "__metadata__" and entry["dtype"] in FORMATS:
                start, end = entry["data_offsets"]
                sizes[FORMATS[entry["dtype"]]] += end - start
    return max(sizes, key=lambda name: sizes[name]) if sizes else "float32"


def fingerprint(folder: Path) -> str:
    """A hash that changes whenever the weights of a checkpoint are trained: of samples spread over its files, which is fast."""
    digest = hashlib.blake2b(digest_size=8)
    for path in sorted(folder.glob("*.safetensors")):
        with open(path, "rb") as file:
            for i in range(SAMPLES):
                file.seek(path.stat().st_size * i // SAMPLES)
                digest.update(file.read(SAMPLE_BYTES))
    return digest.hexdigest()


def cast(folder: Path, dtype: str) -> None:
    """Change the weights of a checkpoint to a format, and the format that its config.json names."""
    import torch
    from safetensors.torch import load_file, save_file

    wanted = getattr(torch, dtype)
    for file in folder.glob("*.safetensors"):
        tensors = {k: v.to(wanted) if v.is_floating_point() else v for k, v in load_file(file).items()}
        save_file(tensors, file, metadata={"format": "pt"})
    config = folder / "config.json"
    # older checkpoints call it torch_dtype
    values = {k: v for k, v in json.loads(config.read_text("utf-8")).items() if k != "torch_dtype"}
    for part in (values, *(v for v in values.values() if isinstance(v, dict) and "dtype" in v)):
        part["dtype"] = dtype
    config.write_text(json.dumps(values, indent=2, ensure_ascii=False), "utf-8")


def _header(file: Path) -> dict[str, dict]:
    """Names, formats and places of the tensors in a safetensors file: JSON, after eight bytes with its length."""
    with open(file, "rb") as f:
        return json.loads(f.read(int.from_bytes(f.read(8), "little")))
