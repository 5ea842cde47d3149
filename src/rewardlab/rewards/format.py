"""Rewards for the form of a reply."""

from __future__ import annotations

import re

from rewardlab.core import Group, Run, Score, Scores, Trajectory
from rewardlab.errors import RewardlabError
from rewardlab.processes.pool import Done, Failed, workers
from rewardlab.rewards.reward import reward
from rewardlab.text.answers import after_answer, after_thinking, boxed
from rewardlab.text.blocks import program_span

SECONDS = 1.0
"""Time limit for matching one reply."""
OF_PROGRAMS = ("code", "verilog")
"""Verifiers of programs, which state no answer."""


@reward(over="groups")
def format_ok(groups: list[Group], *, pattern: str) -> Scores:
    r"""1 where the whole reply matches the regular expression; a dot also matches a line break.

    E.g. pattern=r"<think>.+</think>\s*<answer>.+</answer>". A reply for which matching takes over a second gets 0.
    """
    try:
        re.compile(pattern)
    except re.error as e:
        raise RewardlabError(f"format_ok: the pattern {pattern!r} is not a regular expression: {e}") from e
    # in worker processes, because a pattern can backtrack for ever and Python's `re` cannot be interrupted
    pool = workers("rewardlab.text.patterns:all_of", seconds=SECONDS)
    matches = iter(pool.map([(pattern, t.reply.strip()) for group in groups for t in group]))
    return [[_score(next(matches)) for _ in group] for group in groups]


@reward
def tagged(trajectory: Trajectory, *, tags: tuple[str, ...] = ("think", "answer")) -> Score:
    """The share of these tags that enclose something: <think>...</think>, each opened and closed once, in this order."""
    text, at, found = trajectory.reply, 0, []
    for tag in tags:
        start, end = text.find(f"<{tag}>", at), text.find(f"</{tag}>", at)
        once = text.count(f"<{tag}>") == text.count(f"</{tag}>") == 1
        if once and 0 <= start < end and text[start + len(tag) + 2 : end].strip():
            found.append(tag)
            # the next one begins after this one ends, so that they do not overlap
            at = end
    return Score(len(found) / max(1, len(tags)), why=f"tags in their place: {', '.join(found) or 'none'}")


@reward
def answer_given(trajectory: Trajectory, run: Run) -> Score:
    r"""1 where the reply states an answer, in \boxed{...} or after "answer"; where programs are verified, one in a block of code
    after any thinking: of those a comment may say "the answer is", which is none."""
    if run is not None and run.verify is not None and any(part.name in OF_PROGRAMS for part in run.verify.walk()):
        reply = after_thinking(trajectory.reply)
        span = program_span(reply)
        held = span is not None and bool(reply[slice(*span)].strip())
        return Score(float(held), why="holds a block of code" if held else "holds no block of code")
    stated = boxed(trajectory.reply) or after_answer(trajectory.reply)
    return Score(float(bool(stated)), why="states an answer" if stated else "states no answer")


def _score(match: Done | Failed) -> Score:
    if isinstance(match, Failed):
        return Score(0.0, why=f"the pattern {match.why} on this reply")
    return Score(float(match.value), why="well formed" if match.value else "does not match the pattern")
