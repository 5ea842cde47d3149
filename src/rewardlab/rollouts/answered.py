"""The policy's own reasoning with the gold answer after it."""

from __future__ import annotations

from dataclasses import replace

from rewardlab.core import Group, Problem, Rollout, Run, Trajectory, rollout
from rewardlab.errors import RewardlabError
from rewardlab.text.reasoned import deciding_the_rest, with_gold


@rollout(inner="of")
def append_answer(problems: list[Problem], run: Run, *, of: Rollout, mark: str = "Answer:") -> list[Group]:
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
    befores, wholes = zip(*[with_gold(t.reply, str(t.problem.answer), mark) for t in rows], strict=True)
    written = zip(prompts, run.policy.write(prompts, befores), run.policy.write(prompts, wholes), strict=True)
    made = iter([deciding_the_rest(*row) for row in written])
    done = [[replace(next(made), path=t.path) for t in group] for group in groups]
    fit = [kept for group in done if (kept := [t for t in group if len(t) <= run.policy.context])]
    if not fit:
        raise RewardlabError(f"no gold answer fits the model's context of {run.policy.context} after its reply: lower --max-new")
    return fit
