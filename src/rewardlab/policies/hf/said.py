"""Where pictures stand in what a vision-language model reads: messages through its chat template, with a text in place of each."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from rewardlab.core import Message
from rewardlab.data.conversations import MARK
from rewardlab.errors import RewardlabError
from rewardlab.policies.tokenizer import encoded

PLACE = "\u241fPICTURE\u241f"
"""Stands for a picture within texts that a template is given."""
WORD = "\u241fWORD\u241f"
"""Stands for a text where a template is asked what it writes."""


class Speaker:
    """A tokenizer whose chat template is given pictures as parts of a message, if it knows these: they stand where it puts them.

    token: what it writes for a picture.  around: what a text has around that where no template writes it.
    """

    def __init__(self, tokenizer: Any, token: str, around: tuple[str, str]):
        self.tokenizer, self.token, self.plain = tokenizer, token, f"{around[0]}{token}{around[1]}"
        self._known: dict[str, bool] = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(self.tokenizer, name)

    def apply_chat_template(self, said: Sequence[dict[str, Any]], **given: Any) -> Any:
        return self.tokenizer.apply_chat_template([m | {"content": self._parted(m["content"])} for m in said], **given)

    def _parted(self, content: Any) -> Any:
        """The content of a message with its pictures in their places."""
        parts = [{"type": "text", "text": content}] if isinstance(content, str) else content
        if not any(PLACE in part.get("text", "") for part in parts):
            return content
        if self._writes_pictures():
            return [piece for part in parts for piece in _pieces(part)]
        plain = [part | {"text": self.unparted(part["text"])} for part in parts]
        return plain[0]["text"] if isinstance(content, str) else plain

    def unparted(self, text: str) -> str:
        """A text with the token of a picture in each place of one, for which no template writes it."""
        return text.replace(PLACE, self.plain)

    def _writes_pictures(self) -> bool:
        """Whether the template knows pictures as parts of a message."""
        template = json.dumps(self.tokenizer.chat_template, sort_keys=True)
        if template not in self._known:
            asked = [{"role": "user", "content": [{"type": "image"}, {"type": "text", "text": WORD}]}]
            try:
                text = self.tokenizer.apply_chat_template(asked, tokenize=False, add_generation_prompt=True)
            except Exception:
                # a template refuses in words of its own what it does not know
                text = ""
            # one that takes texts alone writes the list as it is
            self._known[template] = text.count(self.token) == 1 and WORD in text and "'type'" not in text
        return self._known[template]


def _pieces(part: dict[str, Any]) -> list[dict[str, Any]]:
    if PLACE not in part.get("text", ""):
        return [part]
    found: list[dict[str, Any]] = []
    for i, text in enumerate(part["text"].split(PLACE)):
        found += [{"type": "image"}] if i else []
        found += [{"type": "text", "text": text}] if text else []
    return found


def placed(message: Message, tokens: Sequence[str]) -> Message:
    """The message with PLACE in its text for each picture, and without these: at its marks, or else before the text.

    tokens: of the model, which stand for pictures; where the text has one of these in words, it gets a space within it.
    """
    texts, n = list(message.results or (message.text,)), len(message.images)
    if n and sum(text.count(MARK) for text in texts) == n:
        texts = [text.replace(MARK, PLACE) for text in texts]
    elif n:
        texts[0] = PLACE * n + texts[0]
    words = re.compile("|".join(sorted(map(re.escape, {t for t in tokens if t}), key=len, reverse=True)) or r"(?!)")
    texts = [words.sub(lambda found: f"{found[0][:1]} {found[0][1:]}", text) for text in texts]
    return replace(message, text="\n".join(texts), results=tuple(texts) if message.results else (), images=())


def first_ids(tokenizer: Any, text: str) -> list[int]:
    """The ids of a rendered conversation up to where a reply begins, as processors tokenise it: where the template has not written
    the token that begins a text, the tokenizer does (LLaVA 1.5), as tokenizers' own templates never ask it to."""
    if not tokenizer.chat_template or (tokenizer.bos_token and text.startswith(tokenizer.bos_token)):
        return encoded(tokenizer, [text])[0]
    ids = tokenizer([text], verbose=False)["input_ids"][0]
    # one that closes what it reads does not close a prompt
    return ids[:-1] if ids[-1:] == [tokenizer.eos_token_id] and not text.endswith(tokenizer.eos_token) else ids


def expanded(text: str, token: str, pictures: Sequence[str]) -> str:
    """A rendered text with what is shown of each picture in place of its token."""
    parts = text.split(token)
    if len(parts) != len(pictures) + 1:
        raise RewardlabError(
            f"the model's chat template writes {len(parts) - 1} pictures for {len(pictures)} of the messages: {text[:200]!r}"
        )
    return "".join(x for pair in zip(parts, [*pictures, ""], strict=True) for x in pair)
