"""How near a reply is to what was asked, or to a reference."""

from __future__ import annotations

from typing import Literal

from rewardlab.core import Group, Score
from rewardlab.rewards.reward import reward
from rewardlab.text.embedding import NGRAMS, embedded


@reward(over="group", relative=False)
def relevance(group: Group, *, to: Literal["prompt", "answer"] = "prompt", embed: str = NGRAMS) -> list[Score]:
    """The cosine of a reply with the last user message, or with the problem's answer, a text. Without such a text, no verdict.

    Easily gamed by itself: a copy of the prompt has the highest.  embed: see `redundancy`.
    """
    wanted = group[0].problem.question if to == "prompt" else group[0].problem.answer
    if not isinstance(wanted, str) or not wanted.strip():
        return [Score(None, why=f"the problem has no text as its {to}")] * len(group)
    table = embedded([wanted, *(t.reply for t in group)], embed)
    return [Score(float(cosine)) for cosine in table[1:] @ table[0]]
