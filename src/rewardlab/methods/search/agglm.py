"""AggLM: learn to aggregate several candidate solutions into an answer, with a balance of easy and hard sets.

    y ~ pi(. | x, y_1 .. y_m),  y_i ~ solver(. | x);    reward 1[y right], GRPO
    hard: the most frequent answer of y_1 .. y_m is wrong.    trained on: all hard sets, and easy ones, `easy` as many

A vote loses the answers that few found, and a score of solutions can only choose. Hard sets teach to find what is right among what
is not; with these alone the policy learns to distrust majorities, and with all sets as they come it learns little, since most are
easy and earn their reward whatever is written.

Zhao et al. 2025, arXiv:2509.06870, sections 3 and 4 (no code was found): m = 8, easy sets half as many as hard ones, solutions
sampled at 1.5 for training and at 1 for measuring, and shown as they stand after </think>; 8 replies to a set, sampled at 1.5 as
well, and a KL of .001 in the loss. The prompt says the same in our words.

The policy must have room for m solutions in its prompt. `solver` is another model of the same run, by default the policy as it
begins.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch

from rewardlab.checks.claim import Claim, Within
from rewardlab.core import Group, Learner, Policy, Problem, Recipe, Rollout, Run, Sampling, Trajectory, measure, rollout
from rewardlab.data.columns import Data
from rewardlab.methods.baselines.grpo import grpo
from rewardlab.rewards.task import correct
from rewardlab.settings.domain import NonNegativeFloat, PositiveInt
from rewardlab.text.answers import after_thinking
from rewardlab.text.filled import filled
from rewardlab.text.votes import answer_of, majority_of

# ---- Problems together with several solutions of them, from which one answer is to be made ---------------------------

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
        # thinking would fill the prompt; of a reply that never ended its own, nothing else is there to be read
        shown = between.join((after_thinking(t.reply) or t.reply).strip() for t in self.solutions)
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


@rollout(wraps="inner", across_problems=True)
def of_candidates(
    problems: list[Problem], run: Run, *, inner: Rollout, n: PositiveInt = 8, easy: NonNegativeFloat = 0.5, model: str = "solver",
    temperature: NonNegativeFloat = 1.0, ask: str = ASK, between: str = "\n\n",
) -> list[Group]:  # fmt: skip
    """The groups of `inner`, with n solutions by the model `model` of the run in each prompt.

    ask, between: the prompt, with {question} and {solutions}, and what stands between two solutions.

    Of the sets, those are used whose most frequent answer is wrong, and of the others at most `easy` times as many.
    Logged: hard, the share of wrong majorities before; kept, the share of sets that are used.  Zhao et al. 2025, arXiv:2509.06870
    """
    sets = candidates(problems, run.model(model), run, n, Sampling(run.max_new, temperature), run.rng("candidates"))
    kept = mixed(sets, easy)
    run.log("hard", sum(not s.easy for s in sets) / len(sets))
    run.log("kept", len(kept) / len(sets))
    return inner([s.asked(ask, between) for s in kept], run)


# ---- the recipe ---------------------------------------------------------------------------------------------------------

SOLVER = "solver"


@measure
def aggregated(
    problems: Sequence[Problem], run: Run, *, n: PositiveInt = 8, model: str = SOLVER, temperature: NonNegativeFloat = 1.0,
    ask: str = ASK, between: str = "\n\n",
) -> dict[str, float]:  # fmt: skip
    """aggregated: right answers of the policy that reads n solutions.  majority: right votes of these; pass@1, best: the mean of
    them, and whether any is right.  minority: of the sets with a right solution and a wrong vote, the share that is aggregated
    rightly; spared: of the right votes, the share that is; 0 where there are none.  alone: right answers without any solution."""
    rng, sampling = run.rng("eval"), Sampling(run.max_new, temperature)
    sets = candidates(problems, run.model(model), run, n, sampling, rng)
    ends = [_right([s.asked(ask, between) for s in sets], run, sampling), _right(problems, run, sampling)]
    right, easy = np.array(ends[0]), np.array([s.easy for s in sets])
    minority = ~easy & np.array([any(s.right) for s in sets])
    return {
        "aggregated": float(right.mean()), "majority": float(easy.mean()), "alone": float(np.mean(ends[1])),
        "pass@1": float(np.mean([np.mean(s.right) for s in sets])), "best": float(np.mean([any(s.right) for s in sets])),
        "minority": float(right[minority].mean()) if minority.any() else 0.0,
        "spared": float(right[easy].mean()) if easy.any() else 0.0, "n": float(len(sets)),
    }  # fmt: skip


def _right(problems: Sequence[Problem], run: Run, sampling: Sampling) -> list[bool]:
    prompts = run.policy.read([Trajectory(p) for p in problems], [p.prompt for p in problems])
    done = run.policy.extend(prompts, sampling, run.rng("aggregates"))
    return [s.value is not None and s.value >= 1.0 for (s,) in run.verify([[t] for t in done], run)]


def agglm(
    base: Recipe | None = None, *, m: int = 8, easy: float = 0.5, solver: str = "copy:policy", temperature: float = 1.5,
    ask: str = ASK, between: str = "\n\n", n: int = 8, reply_temperature: float = 1.5, beta: float = 0.001,
) -> Recipe:  # fmt: skip
    """m: solutions that are read.  easy: easy sets for each hard one; a large number takes all sets as they come, 0 hard ones
    alone.  solver: who writes the solutions (`Learner.init`).  temperature: of the solver, in training.  ask, between: what is
    read, with {question} and {solutions}, and what stands between two of these.  n, reply_temperature, beta: of grpo: replies to a
    set, how they are sampled, and the weight of the KL."""
    base = base or grpo(n=n, temperature=reply_temperature, beta=beta)
    how: dict[str, Any] = {"n": m, "model": SOLVER, "ask": ask, "between": between}
    sets = of_candidates(inner=base.required("rollout"), easy=easy, temperature=temperature, **how)
    return base.but(
        rollout=sets, reward=base.reward or correct(),
        measure=aggregated(**how),
        also=(*base.also, Learner(SOLVER, solver, Recipe(), every=0)),
    )  # fmt: skip


fidelity = "core"
left_out = (
    "a training set sampled beforehand, of 16 sets for each problem, whose easy ones repeat problems as little as can be: here "
    "sets are sampled as problems come up, one each"
)
data = Data(answer="the gold answer")

claim = Claim(
    says="a policy that learnt to aggregate is right more often than the vote of the solutions that it reads",
    versus=None, task="drafts", measure="aggregated", direction="higher", margin=0.033, against="majority",
    settings={"m": 4, "temperature": 1.0, "ask": "Refine.\n{question}\n{solutions}", "between": "\n"}, problems=500, steps=120,
    fault=Within("majority", high=0.85, says="right votes"), learns="aggregated", start=None,
    tried="40 steps, 3 seeds: from .14 to .34, still rising",
    finding="the vote of four solutions is right 41% of the time; the policy that reads them rises from 13% to 34% in 120 steps, "
    "and stays below it. It is right in 29% of the cases where the vote is wrong and a solution right, but spoils 34% of the "
    "right votes",
)  # fmt: skip
baseline = "majority_vote"
