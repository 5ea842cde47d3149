"""Recorded replies and a chat template that opens the thoughts of a reply: what is said before they are learnt from."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rewardlab.core import Problem
from rewardlab.engine.distributed import is_rank_zero
from rewardlab.policies.chat import THINK, opened
from rewardlab.policies.template_kwargs import read_by
from rewardlab.policies.text import TextPolicy
from rewardlab.util.progress import console

CLOSE = "</think>"
SWITCHES = ("enable_thinking", "thinking")
"""What templates call whether a reply has thoughts."""


def tell_open_thoughts(policy: TextPolicy, problems: Iterable[Problem], fields: Sequence[str]) -> None:
    """Say how many replies in these columns begin with the <think> that the template has written, which is left out of them, and
    how many never close it: then the whole reply is learnt as thoughts."""
    if not opened(policy.tokenizer) or not is_rank_zero():
        return
    replies = [text for p in problems for field in fields for text in _replies(p.meta.get(field))]
    twice = sum(text.lstrip().startswith(THINK) for text in replies)
    never = sum(CLOSE not in text for text in replies)
    notes = [f"{twice:,} begin with it too, which is left out of them"] if twice else []
    notes += [f"{never:,} never write {CLOSE}, so that all they say is learnt as thoughts{_advice(policy)}"] if never else []
    if notes:
        console.print(
            f"note: the chat template begins each reply with {THINK}; of the {len(replies):,} recorded replies {'; '.join(notes)}",
            highlight=False, markup=False, soft_wrap=True,
        )  # fmt: skip


def _advice(policy: TextPolicy) -> str:
    """How replies without thoughts are written, where the template can."""
    switch = next((name for name in SWITCHES if name in read_by(policy.tokenizer.chat_template)), None)
    return f" (replies without thoughts: --chat-template-kwargs '{{\"{switch}\": false}}')" if switch else ""


def _replies(value: object) -> list[str]:
    """The replies in a column: a text, or a list in which the user's messages stand between them."""
    return [text for text in (value[::2] if isinstance(value, list) else [value]) if isinstance(text, str)]
