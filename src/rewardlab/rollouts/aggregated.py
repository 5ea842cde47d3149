"""Problems together with several solutions of them, from which one answer is to be made."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch

from rewardlab.core import Group, Policy, Problem, Rollout, Run, Sampling, Trajectory, rollout
from rewardlab.core.domain import NonNegativeFloat, PositiveInt
from rewardlab.text.filled import filled
from rewardlab.text.votes import answer_of, majority_of

ASK = (
    "Problem:\n{question}\n\nSome attempts at it:\n\n{solutions}\n\nAny, all or none of them may be right. Review them, correct "
    "what is wrong, put together what is of use, and write a complete solution that ends with the answer."
)
"""What an aggregator reads, with {question} and {solutions}."""


@dataclass(frozen=True)
class Candidates:
    """Solutions of a problem.  right: of each, whether it is.  voted: the place of the first with the most frequent answer."""

    problem: Problem
    solutions: Group
    right: tuple[bool, ...]
    voted: int

    @property
    def easy(self) -> bool:
        """Whether the most frequent answer is right."""
        return self.right[self.voted]

    def asked(self, ask: str = ASK, between: str = "\n\n") -> Problem:
        """What the aggregator reads; answer and columns stay, so that its reply is judged as any other."""
        shown = between.join(t.reply.strip() for t in self.solutions)
        return self.problem.reworded(filled(ask, question=self.problem.question, solutions=shown))


def candidates(
    problems: Sequence[Problem], model: Policy, run: Run, n: int, sampling: Sampling, rng: torch.Generator
) -> list[Candidates]:  # fmt: skip
    """n solutions of each problem by the model, which the task's verifier judges; no verdict counts as wrong."""
    prompts = model.read([Trajectory(p) for p in problems], [p.prompt for p in problems])
    rows = [replace(t, path=(i,)) for t in prompts for i in range(n)]
    done = model.extend(rows, sampling, rng)
    groups = [done[i : i + n] for i in range(0, len(done), n)]
    assert run.verify is not None
    right = [tuple(s.value is not None and s.value >= 1.0 for s in row) for row in run.verify(groups, run)]
    return [Candidates(p, g, row, _voted(g)) for p, g, row in zip(problems, groups, right, strict=True)]


def _voted(group: Group) -> int:
    answers = [answer_of(t.reply) for t in group]
    return answers.index(majority_of(answers))


def mixed(sets: Sequence[Candidates], easy: float) -> list[Candidates]:
    """All hard sets, whose most frequent answer is wrong, and the first easy ones, at most `easy` times as many; at least one set.

    In the order in which they came.
    """
    room = max(round(easy * sum(not s.easy for s in sets)), 1 if all(s.easy for s in sets) else 0)
    kept = []
    for s in sets:
        room -= s.easy
        if not s.easy or room >= 0:
            kept.append(s)
    return kept


@rollout(inner="of", across_problems=True)
def of_candidates(
    problems: list[Problem], run: Run, *, of: Rollout, n: PositiveInt = 8, easy: NonNegativeFloat = 0.5, model: str = "solver",
    temperature: NonNegativeFloat = 1.0, ask: str = ASK, between: str = "\n\n",
) -> list[Group]:  # fmt: skip
    """What `of` samples from the problems with n solutions of each, by the model `model` of the run, in the prompt.

    ask, between: the prompt, with {question} and {solutions}, and what stands between two solutions.

    Of the sets, those are used whose most frequent answer is wrong, and of the others at most `easy` times as many.
    Logged: hard, the share of wrong majorities before; kept, the share of sets that are used.  Zhao et al. 2025, arXiv:2509.06870
    """
    sets = candidates(problems, run.model(model), run, n, Sampling(run.max_new, temperature), run.rng("candidates"))
    kept = mixed(sets, easy)
    run.log("hard", sum(not s.easy for s in sets) / len(sets))
    run.log("kept", len(kept) / len(sets))
    return of([s.asked(ask, between) for s in kept], run)
