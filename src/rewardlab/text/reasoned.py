"""The gold answer appended to a reply's reasoning, as text and as tokens."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from rewardlab.core import Problem, Trajectory, Turn

from .prefixes import CLOSED, closed_thinking, opening, reasoning_lines

ANSWER = "<answer>"


def gold_text(problem: Problem) -> str:
    """The gold answer as text; empty where there is none, or one that is no text."""
    answer = problem.answer
    return "" if answer is None or isinstance(answer, list | dict) else str(answer).strip()


def with_gold(reply: str, gold: str, mark: str = "Answer:", thinks: bool = False) -> tuple[str, str]:
    """A reply's reasoning, and the same with the gold answer in the place of its own.

    mark: what stands before an answer, where the reply does not think between tags. Where it answers between tags, the gold answer
    stands after the tag, and all before it as it is.
    thinks: the reply thinks between tags even if it does not end its thinking (`thinks_in_tags`), which then is ended; false takes
    thinking that was cut off for a text without tags.
    """
    reply = closed_thinking(reply) if thinks else reply
    if (at := reply.rfind(ANSWER)) > reply.rfind(CLOSED):
        before = reply[: at + len(ANSWER)]
        return before, f"{before} {gold}"
    thinks, lines = CLOSED in reply, reasoning_lines(reply)
    before = (opening(reply, lines) if lines else "") + (f"{CLOSED}\n" if thinks else "")
    return before, f"{before}{gold}" if thinks else f"{before}{mark} {gold}"


def deciding_the_rest(prompt: Trajectory, before: Trajectory, whole: Trajectory) -> Trajectory:
    """`whole`, in which the tokens that it shares with `before` are read, and the others, with the end token, decided."""
    both = min(len(before), len(whole))
    # after the beginning alone comes the end token, so the rest begins where the two differ
    first = int(np.argmax(whole.ids[:both] != before.ids[:both]))
    turn, start = whole.turns[-1], first - len(prompt)
    read, decided = Turn(None, turn.ids[:start], text=before.turns[-1].text), replace(turn, ids=turn.ids[start:])
    return replace(whole, turns=(*prompt.turns, read, decided))
