"""Thinking that is cut off at several budgets, at each of which answers are sampled."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from rewardlab.core import Group, Problem, Rollout, Run, Sampling, Trajectory, Turn, rollout
from rewardlab.core.domain import NonNegativeFloat, PositiveInt
from rewardlab.errors import RewardlabError

THINKING, ANSWER = "thinking", "answer"
"""Tags of the two kinds of rows."""


@rollout(inner="of")
def under_budgets(
    problems: list[Problem], run: Run, *, of: Rollout, longest: PositiveInt = 32, cuts: PositiveInt = 4, answers: PositiveInt = 4,
    tokens: PositiveInt = 16, temperature: NonNegativeFloat = 1.0, mark: str = "\nAnswer:",
) -> list[Group]:  # fmt: skip
    """For each group of `of` the thinking of its replies, tagged "thinking", and then for each of them and each budget a group of
    answers, tagged "answer", in which the thinking so far and the mark are only read.

    Budgets are longest/cuts, 2 longest/cuts ... longest tokens. Thinking ends where the reply says `mark` (without blanks around
    it), or at `longest`. Budgets from its end on share one group, with `answers` replies for each of them. `Trajectory.steps` of
    the thinking holds the last position of each budget that it reaches.  tokens: of an answer at most.
    """
    if cuts > longest:
        raise RewardlabError(f"thinking of {longest} tokens has no {cuts} different budgets: raise longest, or lower cuts")
    asked = of.but_innermost(stop=(mark.strip(),))(problems, replace(run, max_new=longest))
    ends = [longest * k // cuts for k in range(1, cuts + 1)]
    groups: list[Group] = []
    prefixes: list[Trajectory] = []
    for group in asked:
        thinking = [replace(t, tag=THINKING, steps=_last_positions(t, ends)) for t in group]
        places = [len(groups) + 1 + k for k in range(sum(len(t.steps) for t in thinking))]
        groups += [thinking, *([] for _ in places)]
        begun = [(t, at, answers * (cuts - k if k == len(t.steps) - 1 else 1)) for t in thinking for k, at in enumerate(t.steps)]
        for place, (t, at, count) in zip(places, begun, strict=True):
            prefix = _asked(t, at, mark, run)
            groups[place] = [replace(prefix, path=(i,)) for i in range(count)]
            prefixes += groups[place]
    done = iter(run.policy.extend(prefixes, Sampling(tokens, temperature), run.rng("answers")) if prefixes else [])
    return [group if group[0].tag == THINKING else [_marked(next(done), mark) for _ in group] for group in groups]


def _last_positions(t: Trajectory, ends: list[int]) -> tuple[int, ...]:
    """The position of the last decision within each budget, up to the one in which the thinking ends."""
    decided = np.flatnonzero(t.mask)
    if not len(decided):
        return ()
    within = [int(decided[min(end, len(decided)) - 1]) for end in ends]
    return tuple(dict.fromkeys(within))


def _asked(t: Trajectory, at: int, mark: str, run: Run) -> Trajectory:
    """The thinking up to a position and the mark, as text that was read."""
    said = t.cut(at + 1, run.policy.decode)
    if said.reply.rstrip().endswith(mark.strip()):
        read = said
    else:
        # an end token would end the answer before it begins
        kept = len(said) - 1 if t.stop == "end" and at == len(t) - 1 else len(said)
        (written,) = run.policy.write([t.cut(kept, run.policy.decode)], [mark])
        read = written.cut(len(written) - 1, run.policy.decode)
    turns = tuple(Turn(None, turn.ids, text=turn.text, images=turn.images) for turn in read.turns)
    return Trajectory(t.problem, turns, tag=ANSWER)


def _marked(t: Trajectory, mark: str) -> Trajectory:
    """The answer with its mark in its text, as a verifier expects it."""
    return replace(t, turns=(*t.turns[:-1], replace(t.turns[-1], text=mark.strip() + t.turns[-1].text)))
