"""The policy's own reasoning with the gold answer after it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from rewardlab.core import Group, Problem, Rollout, Run, Trajectory, Turn, rollout
from rewardlab.errors import RewardlabError
from rewardlab.text.prefixes import CLOSED, opening, reasoning_lines


@rollout(inner="of")
def gold_answer_after(problems: list[Problem], run: Run, *, of: Rollout, mark: str = "Answer:") -> list[Group]:
    """What `of` samples, each with the gold answer in the place of its own. The answer's tokens alone are the policy's decisions:
    its reasoning is text that was read, so that nothing is learnt of it. Recorded, so without log-probs of sampling.

    mark: what stands before an answer, where the reply does not think between tags.  Replies that leave the model's context no room
    for the answer are left out.
    """
    for p in problems:
        if p.answer is None or isinstance(p.answer, list | dict) or not str(p.answer).strip():
            raise RewardlabError(f"gold_answer_after needs a gold answer that is a text; problem {p.question[:60]!r} has none")
    groups = of(problems, run)
    rows = [t for group in groups for t in group]
    prompts = run.policy.read([Trajectory(t.problem) for t in rows], [t.problem.prompt for t in rows])
    befores, wholes = zip(*[_texts(t, mark) for t in rows], strict=True)
    written = zip(prompts, run.policy.write(prompts, befores), run.policy.write(prompts, wholes), strict=True)
    made = iter([_answering(*row) for row in written])
    done = [[replace(next(made), path=t.path) for t in group] for group in groups]
    fit = [kept for group in done if (kept := [t for t in group if len(t) <= run.policy.context])]
    if not fit:
        raise RewardlabError(f"no gold answer fits the model's context of {run.policy.context} after its reply: lower --max-new")
    return fit


def _texts(t: Trajectory, mark: str) -> tuple[str, str]:
    """A reply's reasoning, and the same with the gold answer."""
    thinks, lines = CLOSED in t.reply, reasoning_lines(t.reply)
    before = (opening(t.reply, lines) if lines else "") + (f"{CLOSED}\n" if thinks else "")
    return before, f"{before}{t.problem.answer}" if thinks else f"{before}{mark} {t.problem.answer}"


def _answering(prompt: Trajectory, reasoned: Trajectory, answered: Trajectory) -> Trajectory:
    """The row in which the tokens that both have are read, and the others decided."""
    both = min(len(reasoned), len(answered))
    # after the reasoning alone comes the end token, so the answer begins where the two differ
    first = int(np.argmax(answered.ids[:both] != reasoned.ids[:both]))
    whole, start = answered.turns[-1], first - len(prompt)
    read, decided = Turn(None, whole.ids[:start], text=reasoned.turns[-1].text), replace(whole, ids=whole.ids[start:])
    return replace(answered, turns=(*prompt.turns, read, decided))
