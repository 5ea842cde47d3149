"""How many of the phrases that a rationale should mention it does mention."""

from __future__ import annotations

import re

from rewardlab.core import Score, Trajectory
from rewardlab.rewards.reward import reward
from rewardlab.text.rationale import rationale


@reward
def rationale_coverage(trajectory: Trajectory, *, column: str = "required") -> Score:
    """The share of the phrases in a column that occur in the reply before its answer, as whole words, ignoring case.

    column: a list of texts.  A problem whose list is empty, or missing, gives no verdict.
    """
    wanted = trajectory.problem.meta.get(column)
    if (
        not isinstance(wanted, list | tuple)
        or not wanted
        or not all(isinstance(phrase, str) and phrase.strip() for phrase in wanted)
    ):
        return Score(None, why=f"the problem has no column {column!r} with a list of texts")
    text = rationale(trajectory.reply)
    missing = [phrase for phrase in wanted if not re.search(rf"(?<!\w){re.escape(phrase.strip())}(?!\w)", text, re.IGNORECASE)]
    return Score(1 - len(missing) / len(wanted), why=f"not mentioned: {', '.join(missing)}" if missing else "all mentioned")
