"""Accuracy of answers forced at intermediate points of a reply's reasoning."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from rewardlab.core import Group, Problem, Run, Sampling, Score, Scores, Term, Trajectory
from rewardlab.errors import RewardlabError
from rewardlab.rewards.reward import reward
from rewardlab.settings.domain import NonNegativeFloat, NonNegativeInt, PositiveInt, PositiveShare
from rewardlab.text.prefixes import CLOSED, closed_thinking, thinks_in_tags

TERM = "forced_accuracy"


@reward(over="groups")
def forced_accuracy(
    groups: list[Group], run: Run, *, n: PositiveInt = 5, tokens: PositiveInt = 16, temperature: NonNegativeFloat = 0.6,
    top_p: PositiveShare = 0.95, mark: str = "Answer:", at: str = "", after: NonNegativeInt = 0, apart: NonNegativeInt = 0,
    thinks: bool = False,
) -> Scores:  # fmt: skip
    """At the end of each step, the share of right ones among n answers that are forced there.

    An answer is forced by closing the thinking, where the reply thinks between tags, cut off or not, else by a line that begins
    with `mark`; it has `tokens` tokens at most, and no more than a reply. The rollout marks the steps; the last one is, or ends
    with, the answer and is left out.
    at: a regular expression; then only those ends count before which a step that it matches is still to come next, and the last.
    after, apart: tokens of the reply before the first of them, and between two.
    thinks: replies think from their beginning, opened by the chat template; where the prompt ends with <think>, that is seen.
    Beginnings that are equal are sampled once. A step without any verdict on its answers is left out, a reply without a step before
    its last is paid for none. For replies of one turn.
    """
    if run.verify is None:
        raise RewardlabError("forced_accuracy needs the task's verifier, and this run has none: name a task")
    rows = [t for group in groups for t in group]
    if not all(t.steps for t in rows):
        raise RewardlabError('forced_accuracy needs the positions where steps end: set steps="newline" in the rollout')
    marks = ["" if thinks or thinks_in_tags(t.reply, t, run.policy.decode) else mark for t in rows]
    texts = {(i, end): _forced(t, end, run, marks[i]) for i, t in enumerate(rows) for end in _ends(t, run, at, after, apart)}
    asked = list(dict.fromkeys((rows[i].problem.key, text) for (i, _), text in texts.items()))
    problems = {t.problem.key: t.problem for t in rows}
    begun = begin(run.policy, [problems[key] for key, _ in asked], [text for _, text in asked])
    # what does not fit the context says nothing, and its step is not judged
    room = min(tokens, run.max_new)
    fit = [k for k, t in enumerate(begun) if len(t) + room <= run.policy.context]
    done = run.policy.extend([begun[k] for k in fit for _ in range(n)], Sampling(room, temperature, top_p), run.rng("forced"))
    verdicts = run.verify([done[k : k + n] for k in range(0, len(done), n)], run) if done else []
    shares = {asked[k]: share_right(row) for k, row in zip(fit, verdicts, strict=True)}
    found: list[list[tuple[int, float]]] = [[] for _ in rows]
    for (i, end), text in texts.items():
        if (share := shares.get((rows[i].problem.key, text))) is not None:
            found[i].append((end, share))
    scores = iter(found)
    return [[Score(terms={TERM: Term(None, tuple(next(scores)))}) for _ in group] for group in groups]


def begin(policy: Any, problems: Sequence[Problem], texts: Sequence[str]) -> list[Trajectory]:
    """Replies that begin with these texts, to be gone on from."""
    if not problems:
        return []
    prompts = policy.read([Trajectory(p) for p in problems], [p.prompt for p in problems])
    # a written reply ends with the end token, after which nothing would follow
    return [t.cut(len(t) - 1, policy.decode) for t in policy.write(prompts, texts)]


def share_right(verdicts: Sequence[Score]) -> float | None:
    """The share that is right of what has a verdict; None where nothing has."""
    known = [s.value >= 1.0 for s in verdicts if s.value is not None]
    return sum(known) / len(known) if known else None


def _ends(t: Trajectory, run: Run, at: str, after: int, apart: int) -> list[int]:
    """The positions of the step ends at which an answer is forced."""
    texts = [t.cut(end + 1, run.policy.decode).reply for end in t.steps]
    ends = list(t.steps[:-1])
    if CLOSED in t.reply:
        # what is written after the thinking has ended is the answer
        ends = ends[: next(k for k, text in enumerate(texts) if CLOSED in text) + 1]
    start, chosen = len(t) - int(t.mask.sum()), list[int]()
    for k, end in enumerate(ends[:-1]):
        far = end + 1 - start >= after and (not chosen or end - chosen[-1] >= apart)
        if far and (not at or re.search(at, texts[k + 1][len(texts[k]) :])):
            chosen.append(end)
    # the whole reasoning is what the last of its steps is judged by
    return [*chosen, *ends[-1:]]


def _forced(t: Trajectory, end: int, run: Run, mark: str) -> str:
    """The reply up to a position, and what makes it answer there: the mark, or, without one, the end of the thinking."""
    text = t.cut(end + 1, run.policy.decode).reply.rstrip()
    if mark:
        return f"{text}\n{mark}"
    return f"{closed_thinking(text)}\n"
