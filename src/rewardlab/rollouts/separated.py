"""Replies with steps separated by a text that no splitter covers, such as semicolons between statements on one line."""

from __future__ import annotations

from dataclasses import replace

from rewardlab.core import Group, Problem, Rollout, Run, Trajectory, rollout
from rewardlab.errors import RewardlabError
from rewardlab.text.blocks import program_span


@rollout(wraps="inner")
def separated(problems: list[Problem], run: Run, *, inner: Rollout, at: str = "\n", program: bool = False) -> list[Group]:
    """The samples of `inner`, with a step end at each token that completes the text `at`, and at the end of the reply.

    Blank steps are none: where nothing but spaces follows, the last step ends with the reply. program: only what stands in the
    block of code that a verifier runs makes steps, if the reply has one; a block without a line has none. For replies of one turn.
    """
    if not at:
        raise RewardlabError("separated: a text that divides steps, such as at=';', is not empty")
    return [[_marked(t, at, program, run) for t in group] for group in inner(problems, run)]


def _marked(t: Trajectory, at: str, program: bool, run: Run) -> Trajectory:
    decided = [i for i, own in enumerate(t.mask_of(run.policy.name)) if own]
    pieces = run.policy.pieces(t.ids[decided]) if decided else []
    whole = t.reply
    span = program_span(whole) if program else None
    first, last = span or (0, len(whole))
    ends, text, begun = list[int](), "", 0
    for place, piece in zip(decided, pieces, strict=True):
        text += piece
        cut = text.find(at, begun)
        if cut >= 0:
            if text[max(begun, first) : min(cut, last)].strip():
                ends.append(place)
            begun = len(text)
    # the end token is no text, and belongs to the last step
    if decided and whole[max(begun, first) : last].strip():
        ends.append(decided[-1])
    elif ends and not whole[begun:].strip():
        ends[-1] = decided[-1]
    return replace(t, steps=tuple(ends or (() if span else decided[-1:])))
