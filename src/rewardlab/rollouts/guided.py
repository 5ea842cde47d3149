"""A hint where all replies are wrong, which is taken away again before anything is learnt from what was said with it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from rewardlab.core import Group, Problem, Rollout, Run, Trajectory, rollout
from rewardlab.errors import RewardlabError
from rewardlab.rollouts.goals import reprompted
from rewardlab.text.filled import filled

GUIDED = "guided"
"""The tag of rows that were written with a hint and stand after the prompt without it."""


@rollout(inner="of")
def hint_on_failure(
    problems: list[Problem], run: Run, *, of: Rollout, column: str = "hint", told: str = "{question} Hint: {hint}",
    everywhere: bool = False, plain: bool = True,
) -> list[Group]:  # fmt: skip
    """The groups that `of` samples, where those whose replies are all wrong are sampled anew with a hint in the prompt.

    plain: the new replies stand after the prompt without the hint, as if they had been said to it, with the log-probs that they had
    with it: so the importance ratio of a token is pi(token | prompt) / pi_old(token | prompt, hint).  False: the hint stays.
    told: the question with its hint.  column: of the hint; where it is empty, the first line of the column `solution` is one.
    everywhere: all groups are.  Replies without a verdict count neither way; a group without any verdict keeps its replies.
    Logs the share of groups that were guided, and of these the share in which a reply was right.
    """
    groups = of(problems, run)
    failed = [g for g, row in enumerate(run.verdicts(groups)) if everywhere or _all_wrong([s.value for s in row])]
    if failed:
        # asked for by the groups, since the sampler may have dropped problems or taken further ones
        asked = [groups[g][0].problem for g in failed]
        # by the sampler itself: what filters groups around it may give back fewer than were asked for, or others
        again = of.innermost([_with_hint(p, column, told) for p in asked], run)
        new = [[_taught(t, p, run) if plain else t for t in group] for p, group in zip(asked, again, strict=True)]
        for g, group in zip(failed, new, strict=True):
            groups[g] = group
        run.log("rescued", float(np.mean([any(s.value is not None and s.value >= 1 for s in row) for row in run.verdicts(new)])))
    run.log("guided", len(failed) / max(1, len(groups)))
    return groups


def _all_wrong(verdicts: list[float | None]) -> bool:
    known = [v for v in verdicts if v is not None]
    return bool(known) and max(known) < 1


def _with_hint(problem: Problem, column: str, told: str) -> Problem:
    hint = problem.meta.get(column)
    if not isinstance(hint, str) or not hint.strip():
        solution = problem.meta.get("solution")
        hint = solution.strip().partition("\n")[0] if isinstance(solution, str) else ""
    if not hint:
        raise RewardlabError(
            f"problem {problem.question[:60]!r} has no text in the column {column!r}, nor in 'solution', as a hint"
        )
    return problem.reworded(filled(told, question=problem.question, hint=hint))


def _taught(t: Trajectory, problem: Problem, run: Run) -> Trajectory:
    moved = reprompted(t, problem, run)
    # no step's weights said this to this prompt: in low precision the trainer would put its own log-probs in place of the recorded
    turns = tuple(turn if turn.author is None else replace(turn, step=-1) for turn in moved.turns)
    return replace(moved, turns=turns, tag=GUIDED)
