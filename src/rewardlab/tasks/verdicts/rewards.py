"""How good a judgement of a solution is, and what a judgement pays the steps that it is of."""

from __future__ import annotations

from rewardlab.core import Group, Run, Sampling, Score, Scores, Term, Trajectory
from rewardlab.rewards.reward import reward
from rewardlab.text.splitters import cut

from .language import WORDS, begun, read, to_judge

TERM = "step_verdicts"


@reward
def final_verdict(trajectory: Trajectory) -> Score:
    """1 where the final verdict, "Final: right" or "Final: wrong", is the gold one."""
    gold = trajectory.problem.answer
    if gold not in WORDS.values():
        return Score(None, why=f"the gold verdict {gold!r} is neither right nor wrong")
    said = read(trajectory.reply).final
    if said is None:
        return Score(0.0, why="no final verdict found")
    return Score(float(WORDS[said] == gold), why=f"said {WORDS[said]}, the solution is {gold}")


@reward
def every_step_judged(trajectory: Trajectory) -> float:
    """1 where the judgement has a verdict for each of the meta["count"] steps and a final one."""
    said = read(trajectory.reply)
    return float(said.final is not None and len(said.steps) == trajectory.problem.meta.get("count"))


@reward(over="groups")
def step_verdicts(groups: list[Group], run: Run, *, model: str = "verifier", max_new: int = 96) -> Scores:
    """What the model `model` says of each step: +1/K at the end of a right one, -1/K of a wrong one, of K steps (lines).

    The rollout marks the steps (steps="newline"). Solutions that do not fit the verifier's context are not put to it; where it
    does not give one verdict a step, steps earn nothing. Zha et al. 2025, arXiv:2505.15034
    """
    flat = [t for group in groups for t in group]
    lines = [cut(t.reply, "newline") for t in flat]
    verifier = run.model(model)
    rows = begun(verifier, [to_judge(t.problem.question, x) for t, x in zip(flat, lines, strict=True)], max_new)
    asked = {i: t for i, t in enumerate(rows) if t is not None and len(lines[i]) == len(flat[i].steps)}
    said = verifier.extend(list(asked.values()), Sampling(max_new), run.rng("verdicts"))
    scores = [_paid((), "not put to the verifier")] * len(flat)
    for i, judgement in zip(asked, said, strict=True):
        ok, places = read(judgement.reply).steps, flat[i].steps
        paid = tuple((at, (1 if right else -1) / len(places)) for at, right in zip(places, ok, strict=False))
        scores[i] = _paid(paid if len(ok) == len(places) else (), f"said {judgement.reply[:80]!r}")
    found = iter(scores)
    return [[next(found) for _ in group] for group in groups]


def _paid(steps: tuple[tuple[int, float], ...], why: str) -> Score:
    return Score(terms={TERM: Term(None, steps)}, why=why)
