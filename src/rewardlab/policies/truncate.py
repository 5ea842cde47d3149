"""Shorten a prompt from the left, so that a reply has room."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from rewardlab.core import Message
from rewardlab.errors import RewardlabError
from rewardlab.policies.text import TextPolicy

Prompt = Sequence[Message]


def truncate_left(policy: TextPolicy, prompt: Prompt, limit: int) -> tuple[Message, ...] | None:
    """The prompt in at most `limit` tokens, or None if even its last message has no room.

    The oldest text goes first. System messages stay whole, and so does the chat template, since the messages are shortened and
    not the tokens: whole turns of an earlier conversation go, up to a message of the user; then text from the left of that message.
    """
    system = [m for m in prompt if m.role == "system"]
    conversation = [m for m in prompt if m.role != "system"]
    # every template accepts a conversation that begins with the user
    starts = [i for i, m in enumerate(conversation) if m.role == "user"] or [len(conversation) - 1]
    for start in starts:
        first, *rest = conversation[start:]
        if (cut := _cut(policy, system, first, rest, limit)) is not None:
            return cut
    return None


def _cut(policy: TextPolicy, system: Prompt, first: Message, rest: Prompt, limit: int) -> tuple[Message, ...] | None:
    """The messages with `first` cut from the left until they fit; None if nothing of it would be left."""
    # where each token of the text begins
    begins = [begin for begin, _ in _offsets(policy.tokenizer, first.text)]
    shortened = (*system, first, *rest)
    dropped = 0
    # in rounds: the cut text may have more tokens than its part of the whole text had, but never many
    while (excess := policy.prompt_lengths([shortened])[0] - limit) > 0:
        dropped += excess
        if dropped >= len(begins):
            return None
        shortened = (*system, replace(first, text=first.text[begins[dropped] :]), *rest)
    return shortened


def _offsets(tokenizer: Any, text: str) -> list[tuple[int, int]]:
    if not tokenizer.is_fast:
        raise RewardlabError("truncate-left needs a fast tokenizer, and this model has none; use drop")
    return tokenizer(text, add_special_tokens=False, return_offsets_mapping=True, verbose=False)["offset_mapping"]
