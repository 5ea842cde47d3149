"""The tokens that end a reply."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from rewardlab.policies.chat import MARKS, REPLY, written

GENERATION = "generation_config.json"
SCORED_AT = "the prompt through the chat template, the reply, and the end token of a turn, where the score is read"
"""In the config.json of a reward model that rewardlab trained: how its input is written (`models/reward_model.py`)."""


def end_ids(tokenizer: Any) -> list[int]:
    """Ids of the end-of-sequence token, and of the end-of-turn tokens that chat models use instead.

    A template that closes replies by another token and writes one of these elsewhere means something else by it: gpt-oss's <|end|>
    stands between the thoughts of a reply and its answer.
    """
    vocabulary, closing = tokenizer.get_vocab(), _closing(tokenizer)
    template = json.dumps(tokenizer.chat_template, ensure_ascii=False) if closing else ""
    ids = [vocabulary[m] for m in MARKS if m in vocabulary and (m == closing or m not in template)]
    return ids + [i for i in (turn_end(tokenizer), tokenizer.eos_token_id) if i is not None]


def turn_end(tokenizer: Any) -> int | None:
    """The token by which the chat template closes a reply; the end of the sequence, where there is no template or it writes none.

    They are often not the same: <|im_end|> and <|endoftext|> of Qwen's base models, <end_of_turn> and <eos> of Gemma's.
    """
    closing = _closing(tokenizer)
    return tokenizer.eos_token_id if closing is None else tokenizer.convert_tokens_to_ids(closing)


def _closing(tokenizer: Any) -> str | None:
    """The token that the chat template writes after a reply; None for none."""
    if not getattr(tokenizer, "chat_template", None):
        return None
    turns = [{"role": "user", "content": "?"}, {"role": "assistant", "content": REPLY}]
    try:
        after = written(tokenizer, turns).rpartition(REPLY)[2].lstrip()
    except Exception:
        # a template may refuse such a conversation in words of its own
        return None
    tokens = {*tokenizer.get_added_vocab(), *tokenizer.all_special_tokens}
    return max((token for token in tokens if token and after.startswith(token)), key=len, default=None)


def generation_of(folder: Path | str) -> dict[str, Any]:
    """The contents of a checkpoint's own generation_config.json; empty where it has none that can be read."""
    try:
        held = json.loads((Path(folder) / GENERATION).read_text("utf-8"))
    except (OSError, ValueError):
        return {}
    return held if isinstance(held, dict) else {}


def generation_ends(folder: Path | str) -> list[int]:
    """The ids that end a reply by the checkpoint's own generation_config.json."""
    ids = generation_of(folder).get("eos_token_id")
    return [i for i in (ids if isinstance(ids, list) else [ids]) if isinstance(i, int)]


def write_generation(folder: Path, kept: Mapping[str, Any], tokenizer: Any, ends: Collection[int]) -> None:
    """Write a checkpoint's generation_config.json: what it said before it was trained, with all tokens that end a reply.

    kept: what it said.  A model that has learnt to end its replies by the token of its chat template would otherwise be read on by
    transformers and vLLM: config.json of a base model names the end of the sequence alone.
    """
    own = {name: i for name in ("bos_token_id", "pad_token_id") if (i := getattr(tokenizer, name, None)) is not None}
    # transformers writes this of a configuration that nobody has written
    said = {name: value for name, value in {**own, **generation_of(folder), **kept}.items() if name != "_from_model_config"}
    ids = sorted(ends)
    document = said | {"eos_token_id": ids if len(ids) > 1 else ids[0]}
    (folder / GENERATION).write_text(json.dumps(document, indent=2) + "\n", "utf-8")
