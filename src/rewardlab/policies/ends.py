"""The tokens that end a reply."""

from __future__ import annotations

from typing import Any


def end_ids(tokenizer: Any) -> list[int]:
    """Ids of the end-of-sequence token, and of the end-of-turn tokens that chat models use instead."""
    vocabulary = tokenizer.get_vocab()
    marks = ("<|im_end|>", "<|eot_id|>", "<end_of_turn>", "<|end|>")
    ids = [vocabulary[m] for m in marks if m in vocabulary]
    return ids + ([tokenizer.eos_token_id] if tokenizer.eos_token_id is not None else [])
