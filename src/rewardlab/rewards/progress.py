"""Step values and progress: for the policy, for a prover with several tries, under a KL penalty."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Literal

from rewardlab.core import Group, Run, Sampling, Score, Scores, Term, Trajectory
from rewardlab.errors import RewardlabError
from rewardlab.rewards.forced_answer import share_right
from rewardlab.rewards.operator import operator
from rewardlab.rewards.reward import Reward, reward
from rewardlab.rewards.scores import derive
from rewardlab.settings.domain import NonNegativeFloat, PositiveInt, PositiveShare


@operator(steps=True)
def best_of(chance: float, *, k: PositiveInt = 4) -> float:
    """1 - (1 - p)^k: the chance that at least one of k tries is right, where the reward p is the chance of one.

    So the value of a step for the policy becomes its value for a prover that takes the best of k of the policy's replies.
    """
    return 1.0 - (1.0 - min(1.0, max(0.0, chance))) ** k


@operator(steps=True)
def soft_best(chance: float, *, eta: NonNegativeFloat = 2.0) -> float:
    """(1/eta) log(1 - p + p e^eta): the soft maximum of rewards of 0 and 1, of which a share p are 1; p itself at eta = 0.

    The value of a state to the policy that is best where leaving the sampling policy costs KL / eta. It is p for small eta, and
    near 1 wherever p > 0 for large.  Zhang et al. 2024, arXiv:2412.11006
    """
    p = min(1.0, max(0.0, chance))
    if eta == 0 or p == 0:
        return p
    # e^eta overflows from 710 on; for small eta the other form would cancel
    return math.log1p(p * math.expm1(eta)) / eta if eta < 30 else 1.0 + math.log(p + (1 - p) * math.exp(-eta)) / eta


@reward(over="groups")
def step_gain(groups: list[Group], run: Run, *, inner: Reward, first: Literal["free", "group"] = "free") -> Scores:
    """At the end of each step, the value by the reward `inner` minus the value of the step before.

    first: what the first step of which `inner` speaks is compared with. free: nothing, so that it is not paid.  group: the mean of
    the first steps of the group's replies; all of them begin at the prompt, whose value that is, if `inner` values what is left to
    do.
    """
    return [_gains(row, first) for row in inner(groups, run)]


@reward(over="groups")
def relative_progress(groups: list[Group], run: Run, *, inner: Reward, start: Reward, eps: PositiveShare = 0.8) -> Scores:
    """1 at the end of each step that keeps at least a share `eps` of the chance of a right answer, 0 at the others.

        P_k = q_k / q_(k-1),     q_k: what `inner` says after step k,     q_0: what `start` says of the problem

    A step from which one continuation in many is right is not right for that, as in hard estimation (q_k > 0); nor is a step of a
    hard problem wrong because q_k is low. Once nothing is left to lose (q_(k-1) = 0), this and all later steps are wrong, even if
    an answer is found again. No verdict where either has none.  Zhao et al. 2025, arXiv:2504.00891
    """
    both = zip(inner(groups, run), start(groups, run), strict=True)
    return [[_kept(score, first, eps) for score, first in zip(*rows, strict=True)] for rows in both]


def _kept(score: Score, first: Score, eps: float) -> Score:
    if score.missing or first.value is None:
        return derive("relative_progress", None, [score, first])
    before, labels = first.value, []
    for at, value in score.steps:
        # the epsilon is for shares such as 0.8 * 0.25, which rounding puts above 0.2
        labels.append((at, float(before > 0 and value >= eps * before - 1e-9)))
        before = value if before > 0 else 0.0
    return derive("relative_progress", Term(None, tuple(labels)), [score, first])


def _gains(row: list[Score], first: str) -> list[Score]:
    begun = [s.steps[0][1] for s in row if not s.missing and s.steps]
    prompt = sum(begun) / len(begun) if begun else 0.0
    found = []
    for score in row:
        values = [x for _, x in score.steps]
        before = [prompt, *values[:-1]]
        gains = [(at, x - b) for (at, x), b in zip(score.steps, before, strict=False)]
        term = None if score.missing else Term(None, tuple(gains if first == "group" else gains[1:]))
        found.append(derive("step_gain", term, [score]))
    return found


@reward(over="groups")
def chance_from_here(groups: list[Group], run: Run, *, n: PositiveInt = 4, temperature: NonNegativeFloat = 1.0) -> Scores:
    """The share of right ones among n sampled continuations of a partial reply; of a finished reply, whether it is right.

    No verdict where nothing more fits the context. Rows of a search are partial replies; equal ones are sampled once.
    """
    if run.verify is None:
        raise RewardlabError("chance_from_here needs the task's verifier, and this run has none: name a task")
    rows = {_key(t): t for group in groups for t in group}
    ended = [key for key, t in rows.items() if t.stop is not None]
    room = {key: min(run.max_new - t.written, run.policy.context - len(t)) for key, t in rows.items() if t.stop is None}
    shares: dict[tuple[str, bytes], float | None] = {}
    if ended:
        verdicts = run.verify([[rows[key]] for key in ended], run)
        shares |= {key: share_right(row) for key, row in zip(ended, verdicts, strict=True)}
    for size in sorted({r for r in room.values() if r > 0}):
        begun = [key for key, r in room.items() if r == size]
        sampled = [rows[key] for key in begun for _ in range(n)]
        done = run.policy.extend(sampled, Sampling(size, temperature), run.rng("monte_carlo"))
        verdicts = run.verify([done[k : k + n] for k in range(0, len(done), n)], run)
        shares |= {key: share_right(row) for key, row in zip(begun, verdicts, strict=True)}
    why = "no verdict, or no room to go on"
    found = [[shares.get(_key(t)) for t in group] for group in groups]
    return [[Score(x, why=why if x is None else "") for x in row] for row in found]


def _key(t: Trajectory) -> tuple[str, bytes]:
    return t.problem.key, t.ids.tobytes()


@reward(over="groups")
def promising(groups: list[Group], run: Run, *, inner: Reward, k: PositiveInt = 4, alpha: NonNegativeFloat = 0.5) -> Scores:
    """Q + alpha A of the last step of each row of a search, to rank partial replies.

    Q: what `inner` says of the row, the chance that the policy ends right from there.  A: what the step adds to the chance of a
    prover that has k tries, best_of(Q after the step) - best_of(Q before it). A row without a step yet has Q alone. Where `inner`
    has nothing to say of a prompt, as models that judge steps have not, its Q is the mean of the group's first steps.
    Setlur et al. 2024, arXiv:2410.08146
    """
    before = [[_without_last_step(t) for t in group] for group in groups]
    found = []
    for group, after, earlier in zip(before, inner(groups, run), inner(before, run), strict=True):
        begun = [q.total for t, q in zip(group, after, strict=True) if q.total is not None and not t.mask.any()]
        prompt = Score(sum(begun) / len(begun)) if begun else Score(None, why="no first step has a verdict")
        known = [prompt if v.total is None and not t.mask.any() else v for t, v in zip(group, earlier, strict=True)]
        found.append([_promise(q, v, k, alpha) for q, v in zip(after, known, strict=True)])
    return found


def _without_last_step(t: Trajectory) -> Trajectory:
    """The row before its last step: in a search each turn after the prompt is one."""
    if not t.turns or t.turns[-1].author is None:
        return t
    return replace(t, turns=t.turns[:-1], path=t.path[:-1], stop=None, steps=())


def _promise(after: Score, before: Score, k: int, alpha: float) -> Score:
    if after.total is None or before.total is None:
        return Score(None, why=after.why or before.why)
    prover = best_of.function
    return Score(after.total + alpha * (prover(after.total, k=k) - prover(before.total, k=k)))
