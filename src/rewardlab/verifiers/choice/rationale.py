"""Whether a rationale supports the chosen option."""

from __future__ import annotations

import re

from rewardlab.core import Score, Trajectory
from rewardlab.rewards.reward import reward
from rewardlab.text.rationale import rationale

from .options import Options, choose
from .verifier import options_of

_LETTER = re.compile(r"(?:\b(?:[Oo]ption|[Cc]hoice)\s\(?|\()([A-Z])(?![\w'’])")
"""A letter that can only be an option's: "option B", "(B)"."""


@reward
def rationale_agrees(trajectory: Trajectory) -> Score:
    """1 where the last option that the rationale names, by its text or as "option B", is the chosen one.

    The options are the column `options`. Whether they are right does not matter. A reply that chooses none, or several, or whose
    rationale names none, gets 0. A problem without options gives no verdict.
    """
    try:
        options = options_of(trajectory.problem.meta.get("options", trajectory.problem.meta.get("choices")))
    except (ValueError, TypeError, AttributeError) as problem:
        return Score(None, why=f"the options of the problem cannot be read: {problem}")
    if not any(options.values()):
        return Score(None, why="the problem has no column 'options' with the texts of its options")
    chosen = choose(trajectory.reply, options).letters
    concluded = last_named(rationale(trajectory.reply), options)
    agrees = len(chosen) == 1 and chosen == concluded
    return Score(float(agrees), why=f"concludes {concluded or 'nothing'}, chooses {chosen or 'nothing'}")


def last_named(text: str, options: Options) -> str:
    """The letter of the option that a text names last; "" if it names none."""
    places = [(match.end(), -match.start(), match[1]) for match in _LETTER.finditer(text) if match[1] in options]
    for letter, option in options.items():
        if option:
            pattern = rf"(?<!\w){re.escape(option.strip())}(?!\w)"
            places += [(match.end(), -match.start(), letter) for match in re.finditer(pattern, text, re.IGNORECASE)]
    # of two that end at one place the longer one is meant: "New York", not "York"
    return max(places, default=(0, 0, ""))[2]
