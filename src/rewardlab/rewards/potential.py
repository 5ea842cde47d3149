"""How far reasoning has come: after each step an answer is forced, and read for how sure and how right it is."""

from __future__ import annotations

from typing import Literal

import numpy as np

from rewardlab.core import Group, Run, Sampling, Score, Scores, Term, Trajectory, Turn, entropies
from rewardlab.core.domain import NonNegativeFloat, PositiveInt
from rewardlab.errors import RewardlabError
from rewardlab.rewards.forced_answer import begin
from rewardlab.rewards.reference import aggregated, gold_logprobs
from rewardlab.rewards.reward import reward
from rewardlab.text.reasoned import gold_text, with_gold

TERM = "step_potential"


def potential(right: float, sure: float) -> float:
    """1.5 right sure + 0.5 right - sure, from -1 where it is sure of a wrong answer, over 0 where it has none, to 1."""
    return 1.5 * right * sure + 0.5 * right - sure


@reward(over="groups")
def step_potential(
    groups: list[Group], run: Run, *, of: Literal["potential", "sure", "right"] = "potential", probes: PositiveInt = 5,
    tokens: PositiveInt = 10, temperature: NonNegativeFloat = 0.6, mark: str = "Answer:",
) -> Scores:  # fmt: skip
    """At the end of each step but the last, what an answer shows that is forced there by `mark`; the policy is not trained on it.

    right: the mean probability of the gold answer's tokens.  sure: the mean over `probes` sampled answers of exp(-mean entropy of
    their first tokens), as many as the gold answer has and `tokens` at most: what follows an answer says nothing about it.
    potential: of both (`potential`).  The rollout marks the steps. No verdict for a reply whose problem has no gold answer as text;
    a reply of one step has none to be judged.  Wu et al. 2026, arXiv:2601.03823
    """
    rows = [t for group in groups for t in group]
    if not all(t.steps for t in rows):
        raise RewardlabError('step_potential needs the positions where steps end: set steps="newline" in the rollout')
    starts = [(i, at) for i, t in enumerate(rows) if gold_text(t.problem) for at in t.steps[:-1]]
    begun = [_answering(rows[i].cut(at + 1, run.policy.decode), mark) for i, at in starts]
    golds = gold_logprobs(run.policy, begun, mark)
    right = [aggregated(x, "mean") if x is not None and len(x) else None for x in golds]
    lengths = [0 if x is None else min(len(x), tokens) for x in golds]
    sure: list[float | None] = [0.0] * len(begun) if of == "right" else _sure(begun, lengths, run, mark, probes, temperature)
    found: dict[int, list[tuple[int, float]]] = {}
    for (i, at), r, s in zip(starts, right, sure, strict=True):
        if r is not None and s is not None:
            found.setdefault(i, []).append((at, {"potential": potential(r, s), "sure": s, "right": r}[of]))
    scores = iter([_score(t, found.get(i, [])) for i, t in enumerate(rows)])
    return [[next(scores) for _ in group] for group in groups]


def _answering(t: Trajectory, mark: str) -> Trajectory:
    """The beginning of a reply as text that goes on to an answer: without one, its last line would be taken for the answer."""
    text = f"{t.reply.rstrip()}\n{mark} ?"
    return Trajectory(t.problem, (Turn("policy", np.zeros(0, np.int64), text=text),))


def _sure(
    begun: list[Trajectory], lengths: list[int], run: Run, mark: str, probes: int, temperature: float
) -> list[float | None]:  # fmt: skip
    """The mean over probes of exp(-mean entropy of their first tokens), so many for each beginning; None where there are none."""
    if not any(lengths):
        return [None] * len(begun)
    written = begin(run.policy, [t.problem for t in begun], [with_gold(t.reply, "", mark)[1].rstrip(" ") for t in begun])
    sampling = Sampling(max(lengths), temperature)
    # what does not fit the context says nothing, and its step is not judged
    fit = [i for i, t in enumerate(written) if lengths[i] and len(t) + sampling.max_new <= run.policy.context]
    answers = run.policy.extend([written[i] for i in fit for _ in range(probes)], sampling, run.rng("probe")) if fit else []
    spread = zip(np.repeat(fit, probes), entropies(run.policy, answers), strict=True)
    found = [float(np.exp(-h[len(written[i]) :][: lengths[i]].mean())) for i, h in spread]
    means = {i: float(np.mean(found[k * probes : (k + 1) * probes])) for k, i in enumerate(fit)}
    return [means.get(i) for i in range(len(begun))]


def _score(t: Trajectory, steps: list[tuple[int, float]]) -> Score:
    if not gold_text(t.problem):
        return Score(terms={TERM: Term(None, ())}, missing=True, why="the problem has no gold answer that is a text")
    # a reply without a step before its last has a verdict, and nothing to be paid for
    return Score(terms={TERM: Term(None, tuple(steps))})
