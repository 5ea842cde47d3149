"""Greedy search over steps with lookahead-corrected scores and resampling of low-scored steps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from rewardlab.core import Group, Problem, Run, Sampling, Trajectory, rollout
from rewardlab.rewards.reward import Reward
from rewardlab.rollouts.stepwise import UNSURE, Scored, Stepping, best_of, grown, looked_ahead, marked, started, worths
from rewardlab.settings.domain import NonNegativeFloat, PositiveInt, Share
from rewardlab.text.filled import filled

ASK = (
    "Problem:\n{question}\n\nSolution so far:\n{steps}\n\nThe last step may be wrong. Explain in a few sentences what is "
    "wrong with it, and how to do it better."
)
"""What an explainer reads, with {question} and {steps}."""
TOLD = "{question}\n\nAn earlier attempt at the next step was criticised: {explanation}"
"""What the policy reads when it writes a step again."""


@dataclass(frozen=True)
class Trust:
    """score, ahead, alpha: of the correction.  branch, threshold, explainer, ask, told: as in `lookahead_search`."""

    score: Reward
    branch: int = 4
    ahead: int = 1
    alpha: float = 0.5
    threshold: float = 0.5
    explainer: str = ""
    ask: str = ASK
    told: str = TOLD
    how: Stepping = field(default_factory=Stepping)

    def scored(self, groups: Sequence[Group], run: Run) -> list[list[Scored]]:
        """Rows with r + alpha (r_ahead - r), r the score of a row, r_ahead of its greedy continuation; either alone, if it is."""
        now = worths(groups, self.score, run)
        further = iter(looked_ahead([t for g in groups for t in g], self.ahead, self.how, run) if self.alpha else ())
        later = worths([[next(further) for _ in g] for g in groups], self.score, run) if self.alpha else now
        return [
            [(corrected(r, x, self.alpha), t) for r, x, t in zip(*rows, strict=True)]
            for rows in zip(now, later, groups, strict=True)
        ]

    def children(self, rows: Sequence[Trajectory], run: Run) -> list[Group]:
        """So many next steps of each row, in as many groups; equal ones are one."""
        parents = [t for t in rows for _ in range(self.branch)]
        done = grown(parents, [*range(self.branch)] * len(rows), self.how, run)
        return [_different(done[i : i + self.branch]) for i in range(0, len(done), self.branch)]

    def again(self, parents: Sequence[Trajectory], doubtful: Sequence[Trajectory], run: Run) -> list[Group]:
        """Further next steps of the parents, each after it was said to the policy what is wrong with the doubtful one."""
        if not self.explainer:
            return self.children(parents, run)
        shown = [{"question": t.problem.question, "steps": t.reply} for t in doubtful]
        model = run.model(self.explainer)
        asked = [t.problem.reworded(filled(self.ask, **x)) for t, x in zip(doubtful, shown, strict=True)]
        read = model.read([Trajectory(p) for p in asked], [p.prompt for p in asked])
        said = [t.reply.strip() for t in model.extend(read, Sampling(run.max_new, 0.0), run.rng("explanations"))]
        told = [
            t.problem.reworded(filled(self.told, question=t.problem.question, explanation=x))
            for t, x in zip(parents, said, strict=True)
        ]
        prompts = run.policy.read([Trajectory(p) for p in told], [p.prompt for p in told])
        begun = [replace(new, turns=(*new.turns, *t.turns[1:]), path=t.path) for new, t in zip(prompts, parents, strict=True)]
        # the row is that of the problem as it was asked: what was explained is no part of it
        return [
            [replace(x, problem=t.problem, turns=(t.turns[0], *x.turns[1:])) for x in group]
            for t, group in zip(parents, self.children(begun, run), strict=True)
        ]


def corrected(now: float, later: float, alpha: float) -> float:
    """r + alpha (r_later - r); the other one, where one of them has no verdict."""
    if UNSURE in (now, later):
        return max(now, later)
    return now + alpha * (later - now)


def _different(rows: Sequence[Trajectory]) -> Group:
    return list({(t.turns[-1].text, t.stop): t for t in reversed(rows)}.values())[::-1]


def walked(problems: Sequence[Problem], run: Run, trust: Trust) -> tuple[list[Scored], list[tuple[Scored, Scored]]]:
    """The end of each path with its score, and of every step that was chosen among several the best and the worst."""
    ends: list[Scored] = [(0.0, t) for t in started(problems, run)]
    pairs: list[tuple[Scored, Scored]] = []
    refined = 0
    while at := [i for i, (_, t) in enumerate(ends) if t.stop is None]:
        parents = [ends[i][1] for i in at]
        found = trust.scored(trust.children(parents, run), run)
        low = [k for k, rows in enumerate(found) if best_of(rows, 1)[0][0] < trust.threshold]
        if low:
            doubtful = [best_of(found[k], 1)[0][1] for k in low]
            more = trust.scored(trust.again([parents[k] for k in low], doubtful, run), run)
            for k, rows in zip(low, more, strict=True):
                found[k] = [*found[k], *rows]
        refined += len(low)
        for i, rows in zip(at, found, strict=True):
            ranked = best_of(rows, len(rows))
            ends[i] = ranked[0]
            pairs += [(ranked[0], ranked[-1])] if len(ranked) > 1 else []
    run.log("refined_steps", refined / max(1, len(problems)))
    return ends, pairs


@rollout(rows=lambda **_: 1)
def lookahead_search(
    problems: list[Problem], run: Run, *, score: Reward, branch: PositiveInt = 4, ahead: PositiveInt = 1, alpha: Share = 0.5,
    threshold: float = 0.5, explainer: str = "", ask: str = ASK, told: str = TOLD, temperature: NonNegativeFloat = 1.0,
    step_tokens: PositiveInt | None = None, stop: tuple[str, ...] = ("\n",),
) -> list[Group]:  # fmt: skip
    """One reply to each problem: after each step, the best of `branch` next ones by corrected score.

    The score r of a step is corrected by that of a greedy continuation of `ahead` steps: r + alpha (r_ahead - r). Where no next
    step reaches the threshold, as many are sampled again and join them, after the model `explainer` of the run (if one is named)
    has said what is wrong with the best.  ask, told: what the explainer reads, and then the policy.  Logged: refined_steps, per
    problem. Sun et al. 2025, arXiv:2501.07861
    """
    how = Stepping(step_tokens, temperature, tuple(stop))
    ends, _ = walked(problems, run, Trust(score, branch, ahead, alpha, threshold, explainer, ask, told, how))
    return [marked([t], run) for _, t in ends]


@rollout(rows=lambda **_: 2, across_problems=True)
def lookahead_pairs(
    problems: list[Problem], run: Run, *, score: Reward, gap: NonNegativeFloat = 0.1, branch: PositiveInt = 4,
    ahead: PositiveInt = 1, alpha: Share = 0.5, threshold: float = 0.5, explainer: str = "", ask: str = ASK, told: str = TOLD,
    temperature: NonNegativeFloat = 1.0, step_tokens: PositiveInt | None = None, stop: tuple[str, ...] = ("\n",),
) -> list[Group]:  # fmt: skip
    """Pairs of next steps from the paths of `lookahead_search`: best and worst with the same prefix, at least `gap` apart.

    The beginning is text that both read. Where no pair is left, a row without decisions is returned twice, which teaches nothing.
    """
    how = Stepping(step_tokens, temperature, tuple(stop))
    _, pairs = walked(problems, run, Trust(score, branch, ahead, alpha, threshold, explainer, ask, told, how))
    kept = [[a, b] for (x, a), (y, b) in pairs if y != UNSURE and x - y >= gap]
    run.log("pairs_per_problem", len(kept) / len(problems))
    if not kept:
        return [[replace(t, stop="end")] * 2 for t in started(problems[:1], run)]
    return [[last_step(t) for t in pair] for pair in kept]


def last_step(t: Trajectory) -> Trajectory:
    """The row, of which the last step alone is a decision."""
    *earlier, step = t.turns
    read = (replace(turn, author=None, logprobs=None, sampled=None) for turn in earlier)
    return replace(t, turns=(*read, step), stop=t.stop or "stop", path=(), steps=())
