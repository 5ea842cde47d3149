"""An exported reward model for readers who know nothing of rewardlab: transformers, TRL, OpenRLHF.

They render a conversation by the chat template, pad rows to one length, and read the head at the last token that is not padding.
Here it was read in training at the token that ends the reply's turn. So the template must end there, where most write a line
break too, and padding must be another token: where both are one, the last token of the reply is read instead. Either mistake gives
scores that look like scores.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from rewardlab.policies.ends import turn_end

CLOSED = (
    "{{% set conversation %}}{template}{{% endset %}}{{{{ conversation if add_generation_prompt else conversation.rstrip() }}}}"
)
"""A chat template that says what `template` says, without the space after its last turn."""
PADS = ("<|pad|>", "<pad>", "[PAD]", "<|endoftext|>", "<|end_of_text|>", "<|finetune_right_pad_id|>", "<unk>", "<s>")
"""Tokens that may stand for padding, the likeliest first."""


def end_where_scored(folder: Path) -> None:
    """Change chat template and padding of an exported reward model so that its last token is the one that it is scored at.

    Nothing is written where they are so already, and nothing is changed that cannot be made so.
    """
    from transformers import AutoTokenizer

    words: Any = AutoTokenizer.from_pretrained(str(folder), trust_remote_code=False)
    end = turn_end(words)
    if end is None:
        return
    template = words.chat_template
    if isinstance(template, str) and not _ends(words, template, end):
        # Jinja drops one line break at the end of a template, but none before endset
        closed = CLOSED.format(template=template.removesuffix("\n"))
        words.chat_template = closed if _ends(words, closed, end) else template
    pad = words.pad_token_id
    if pad in (None, end) and (other := _other_than(words, end)):
        words.pad_token = other
    if (words.chat_template, words.pad_token_id) != (template, pad):
        words.save_pretrained(folder)
    file = folder / "config.json"
    config = json.loads(file.read_text("utf-8"))
    if words.pad_token_id not in (None, config.get("pad_token_id")):
        file.write_text(json.dumps(config | {"pad_token_id": words.pad_token_id}, indent=2), "utf-8")


def _ends(words: Any, template: str, end: int) -> bool:
    """Whether a conversation by this template ends with the token `end`."""
    turns = [{"role": "user", "content": "?"}, {"role": "assistant", "content": "yes"}]
    try:
        text = words.apply_chat_template(turns, chat_template=template, tokenize=False)
    except Exception:
        # a template may refuse such a conversation in words of its own
        return False
    return words(text, add_special_tokens=False)["input_ids"][-1:] == [end]


def _other_than(words: Any, end: int) -> str | None:
    """A special token that no reply ends with, to stand for padding; None where there is none."""
    known = [*words.get_added_vocab(), *words.all_special_tokens]
    likely = [token for token in PADS if token in known]
    return next((token for token in (*likely, *known) if words.convert_tokens_to_ids(token) != end), None)
