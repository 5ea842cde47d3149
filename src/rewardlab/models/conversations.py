"""The tokens of a conversation that a reward model scores: as it was trained here, or as its chat template writes the whole."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from rewardlab.core import Message
from rewardlab.policies.chat import after_opened, dialogue, since_reply
from rewardlab.policies.ends import turn_end
from rewardlab.policies.tokenizer import encoded


def as_trained(words: Any, prompt: Sequence[Message], reply: str, after: Sequence[Message] = ()) -> list[int]:
    """Prompt, reply and the end token of its turn, as a policy reads and writes them; then the messages after the reply, up to
    where the next one would begin.  words: the tokenizer."""
    end, text = cast(int, turn_end(words)), dialogue(words, prompt)
    reply = after_opened(words, reply)
    # each piece alone: together, a token might reach over from one to the next
    ids = [*encoded(words, [text])[0], *words(reply, add_special_tokens=False, verbose=False)["input_ids"], end]
    if not after:
        return ids
    return [*ids, *encoded(words, [since_reply(words, after, words.convert_ids_to_tokens(end), True)], begins=False)[0]]


def by_template(words: Any, prompt: Sequence[Message], reply: str, after: Sequence[Message] = ()) -> list[int]:
    """The whole as the chat template writes it; without one, line by line."""
    if not words.chat_template:
        return _ids(words, "\n".join([*(m.text for m in prompt), reply, *(m.text for m in after)]))
    turns = _turns([*prompt, Message("assistant", reply), *after])
    return _ids(words, words.apply_chat_template(turns, tokenize=False, add_generation_prompt=bool(after)))


def _turns(messages: Sequence[Message]) -> list[dict[str, str]]:
    return [{"role": m.role, "content": m.text} for m in messages]


def _ids(words: Any, text: str) -> list[int]:
    # a chat template writes the special tokens itself
    return list(words(text, add_special_tokens=not words.chat_template, verbose=False)["input_ids"])
