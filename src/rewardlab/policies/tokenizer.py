"""The tokenizer of a checkpoint folder, read without what most of them do not need."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

GENERAL = "TokenizersBackend"
"""The class that a tokenizer.json alone describes."""
MODELS = {"llama"}
"""Model types for which transformers takes the class that the tokenizer names."""


def read_tokenizer(folder: Path | str) -> Any:
    """As AutoTokenizer reads it. Where the files say that it is of the general class, AutoTokenizer is not imported.

    It would import the tables of all models and PyTorch's compiler: 1.6 s of one core, in a process that needs neither.
    """
    if _is_general(Path(folder)):
        from transformers import PreTrainedTokenizerFast

        return PreTrainedTokenizerFast.from_pretrained(str(folder))
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(str(folder))


def _is_general(folder: Path) -> bool:
    try:
        about, model = (json.loads((folder / name).read_text("utf-8")) for name in ("tokenizer_config.json", "config.json"))
        # kinds of model that are our own say which trunk they have
        kind = model.get("trunk_type") or model.get("model_type")
        named = about.get("tokenizer_class") == GENERAL and "auto_map" not in about and kind in MODELS
        return named and (folder / "tokenizer.json").is_file()
    except (OSError, ValueError, AttributeError):
        return False
