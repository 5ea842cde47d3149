"""What is wrong with the files of a checkpoint that a library could not read, in words, and what to do."""

from __future__ import annotations

import json
import pickle
import traceback
from pathlib import Path

from safetensors import SafetensorError, safe_open

TOKENIZERS = (
    "tokenizer.json", "tokenizer.model", "tekken.json", "vocab.json", "vocab.txt", "spiece.model", "sentencepiece.bpe.model",
)  # fmt: skip
"""Files of which a tokenizer has one."""
POINTER = b"version https://git-lfs"
"""How a file begins that git-lfs puts in the place of a large one."""
WEIGHTS = ("*.safetensors", "*.bin", "*.pt")


def reason(folder: Path, problem: Exception) -> str:
    """Why the checkpoint in this folder cannot be loaded, where this error came of trying to."""
    why = f"{type(problem).__name__}: {(str(problem).splitlines() or [''])[0]}"
    weights = sorted(path for pattern in WEIGHTS for path in folder.glob(pattern))
    if broken := _broken_json(folder):
        return broken
    if pointers := [path.name for path in (*weights, *folder.glob("tokenizer*")) if _begins(path, POINTER)]:
        return (
            f"{pointers[0]} is a pointer of git-lfs, and not the file itself: run `git lfs pull` in the folder it was cloned into"
        )
    if "custom code" in str(problem):
        return (
            "its tokenizer is code that comes with the checkpoint, and is not run; where a tokenizer.json is there too, take "
            "tokenizer_class and auto_map out of tokenizer_config.json"
        )
    if "tokenizer" in why.lower() and not any((folder / name).is_file() for name in TOKENIZERS):
        return "it holds no tokenizer; copy tokenizer.json and tokenizer_config.json of the model that it was made from into it"
    if not weights and isinstance(problem, OSError):
        return f"it holds no weights (model.safetensors); copy them into it ({why})"
    if isinstance(problem, SafetensorError):
        return f"a file of weights ({_torn(folder)}) is broken or was not copied whole ({problem}); copy it again"
    if isinstance(problem, pickle.UnpicklingError):
        return f"a file of weights ({', '.join(path.name for path in weights)}) is broken, or holds other things than weights"
    if "ignore_mismatched_sizes" in str(problem):
        return "its weights have other sizes than its config.json says: the two are of different models"
    return f"a file of its tokenizer is not as it should be ({why}); copy it again" if _reads_tokenizer(problem) else why


def _broken_json(folder: Path) -> str:
    """Which of the folder's JSON files is none."""
    for path in sorted(folder.glob("*.json")):
        try:
            held = json.loads(path.read_bytes())
        except ValueError as e:
            return f"its {path.name} is not JSON ({e}); copy it again"
        if path.name.endswith("config.json") and not isinstance(held, dict):
            return f"its {path.name} holds no settings: it is no JSON object"
    return ""


def _torn(folder: Path) -> str:
    """The file of weights that cannot be opened."""
    for path in sorted(folder.glob("*.safetensors")):
        try:
            with safe_open(path, "pt"):
                pass
        except (SafetensorError, OSError):
            return path.name
    return ".safetensors"


def _begins(path: Path, text: bytes) -> bool:
    with path.open("rb") as file:
        return file.read(len(text)) == text


def _reads_tokenizer(problem: Exception) -> bool:
    """Whether the error came up in the code of tokenizers."""
    frames = traceback.extract_tb(problem.__traceback__)
    return bool(frames) and "token" in Path(frames[-1].filename).name
