"""The tokenizer of a checkpoint folder, read without what most of them do not need; and the tokens of what comes before replies."""

from __future__ import annotations

import json
from collections.abc import Sequence
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

    return AutoTokenizer.from_pretrained(str(folder), trust_remote_code=False)


def encoded(tokenizer: Any, texts: Sequence[str], begins: bool = True) -> list[list[int]]:
    """The ids of each text of messages, up to where a reply begins; a chat template has written its special tokens itself.

    begins: whether it is the beginning of a conversation. Without a template the tokenizer puts its own token before that (BOS),
    and before nothing that follows. One that closes what it reads (`add_eos_token`, as for fine-tuning) does not close this.
    """
    if not texts:
        # a tokenizer refuses an empty list
        return []
    special = begins and not tokenizer.chat_template
    # not verbose: transformers warns of texts longer than what the tokenizer's own file says, which is not the model's context
    rows = tokenizer(list(texts), add_special_tokens=special, verbose=False)["input_ids"]
    end, name = tokenizer.eos_token_id, tokenizer.eos_token
    if not special or end is None:
        return rows
    return [ids[:-1] if ids[-1:] == [end] and not text.endswith(name) else ids for text, ids in zip(texts, rows, strict=True)]


def _is_general(folder: Path) -> bool:
    try:
        about, model = (json.loads((folder / name).read_text("utf-8")) for name in ("tokenizer_config.json", "config.json"))
        # kinds of model that are our own say which trunk they have
        kind = model.get("trunk_type") or model.get("model_type")
        named = about.get("tokenizer_class") == GENERAL and "auto_map" not in about and kind in MODELS
        return named and (folder / "tokenizer.json").is_file()
    except (OSError, ValueError, AttributeError):
        return False
