"""Rewards for judging solutions, and step rewards that a judgement gives to the solution."""

from __future__ import annotations

from rewardlab.core import Group, Run, Sampling, Score, Scores, Term, Trajectory
from rewardlab.core.domain import PositiveInt
from rewardlab.rewards.reward import reward
from rewardlab.text.splitters import cut

from .language import WORDS, begun, read, to_judge

TERM = "step_verdicts"


@reward
def final_verdict(trajectory: Trajectory) -> Score:
    """1 where the final verdict, "Final: +" or "Final: -", is the gold one."""
    gold = trajectory.problem.answer
    if gold not in WORDS.values():
        return Score(None, why=f"the gold verdict {gold!r} is neither right nor wrong")
    verdict = read(trajectory.reply).final
    if verdict is None:
        return Score(0.0, why="no final verdict found")
    return Score(float(WORDS[verdict] == gold), why=f"said {WORDS[verdict]}, the solution is {gold}")


@reward
def every_step_judged(trajectory: Trajectory) -> float:
    """1 where the judgement has a verdict for each of the meta["count"] steps and a final one."""
    judgement = read(trajectory.reply)
    return float(judgement.final is not None and len(judgement.steps) == trajectory.problem.meta.get("count"))


@reward(over="groups")
def step_verdicts(groups: list[Group], run: Run, *, model: str = "verifier", max_new: PositiveInt = 96, told: str = "") -> Scores:
    """The verdict of the model `model` on each of the K steps (lines): +1/K at the end of a right one, -1/K of a wrong one.

    The rollout marks the steps (steps="newline"). Solutions that do not fit the verifier's context are not judged; where it
    does not give one verdict for each step, steps earn nothing.  told: how to judge, before each solution.  Zha et al. 2025,
    arXiv:2505.15034
    """
    rollouts = [t for group in groups for t in group]
    steps = [cut(t.reply, "newline") for t in rollouts]
    verifier = run.model(model)
    rows = begun(verifier, [to_judge(t.problem.question, x, told=told) for t, x in zip(rollouts, steps, strict=True)], max_new)
    to_judge_rows = {i: t for i, t in enumerate(rows) if t is not None and len(steps[i]) == len(rollouts[i].steps)}
    judgements = verifier.extend(list(to_judge_rows.values()), Sampling(max_new), run.rng("verdicts"))
    scores = [_step_score((), "not judged: the solution does not fit the verifier's context")] * len(rollouts)
    for i, judgement in zip(to_judge_rows, judgements, strict=True):
        verdicts, ends = read(judgement.reply).steps, rollouts[i].steps
        rewards = tuple((position, (1 if right else -1) / len(ends)) for position, right in zip(ends, verdicts, strict=False))
        scores[i] = _step_score(rewards if len(verdicts) == len(ends) else (), f"said {judgement.reply[:80]!r}")
    scores_in_order = iter(scores)
    return [[next(scores_in_order) for _ in group] for group in groups]


def _step_score(steps: tuple[tuple[int, float], ...], why: str) -> Score:
    return Score(terms={TERM: Term(None, steps)}, why=why)
