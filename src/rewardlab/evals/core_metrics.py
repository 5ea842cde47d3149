"""Core metrics beside what a claim compares: greedy accuracy, majority vote, and likelihood of the gold solutions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from rewardlab.core import Group, Measure, Problem, Run, Sampling, Trajectory, measure
from rewardlab.settings.domain import NonNegativeInt
from rewardlab.text.answers import final_answer

BESIDE = ("greedy", "majority", "gold", "gold_logprob")
"""The numbers that `core_metrics` adds."""


@measure
def core_metrics(
    problems: Sequence[Problem],
    run: Run,
    *,
    inner: Measure,
    greedy: NonNegativeInt = 500,
    voters: NonNegativeInt = 8,
    votes: NonNegativeInt = 100,
) -> dict[str, float]:
    """The numbers of the measure `inner`, completed by core metrics, for text policies whose replies the task's verifier judges:

    greedy: accuracy of the most likely reply to the first `greedy` problems.  majority: of the most frequent answer among
    `voters` samples, on the first `votes` problems.  gold: the mean probability of exactly the solution in the problems' column
    `solution`, without any sampling; its logarithm per token is gold_logprob.
    """
    found = inner(problems, run)
    # policies that are not of text, and data without answers, have none of these
    if run.verify is None or not hasattr(run.policy, "tokenizer"):
        return found
    beside = {
        **_greedy(problems[:greedy], inner, run),
        **_majority(problems[:votes], inner, run, voters),
        **_gold(problems[:greedy], run),
    }
    # what the measure itself calls by one of these names stays, for a claim may compare it; its first number stays the first
    return {**found, **beside, **found}


def _replies(problems: Sequence[Problem], of: Measure, run: Run, n: int, temperature: float) -> list[Group]:
    """n replies to each problem, sampled as the measure does: episodes where it plays them."""
    play: Any = of.settings.get("rollout")
    if play is not None:
        return play.but_innermost(n=n, temperature=temperature)(list(problems), run)
    prompts = run.policy.read([Trajectory(p) for p in problems], [p.prompt for p in problems])
    done = run.policy.extend([t for t in prompts for _ in range(n)], Sampling(run.max_new, temperature), run.rng("beside"))
    return [done[i : i + n] for i in range(0, len(done), n)]


def _greedy(problems: Sequence[Problem], of: Measure, run: Run) -> dict[str, float]:
    if not problems:
        return {}
    verdicts = run.verify(_replies(problems, of, run, 1, 0.0), run)
    return {"greedy": float(np.mean([_right(row[0].value) for row in verdicts]))}


def _majority(problems: Sequence[Problem], of: Measure, run: Run, n: int) -> dict[str, float]:
    if not problems or not n:
        return {}
    groups = _replies(problems, of, run, n, 1.0)
    chosen = [_most_frequent(group) for group in groups]
    verdicts = run.verify([[group[i]] for group, i in zip(groups, chosen, strict=True)], run)
    return {"majority": float(np.mean([_right(row[0].value) for row in verdicts]))}


def _most_frequent(group: Group) -> int:
    """The first reply with the most frequent answer; replies without an answer do not vote."""
    answers = [final_answer(t.reply) for t in group]
    counts = Counter(answer for answer in answers if answer is not None)
    # of equally frequent answers the one that came first, as Counter keeps them
    return answers.index(counts.most_common(1)[0][0]) if counts else 0


def _gold(problems: Sequence[Problem], run: Run) -> dict[str, float]:
    known = [p for p in problems if isinstance(p.meta.get("solution"), str)]
    if not known:
        return {}
    prompts = run.policy.read([Trajectory(p) for p in known], [p.prompt for p in known])
    written = run.policy.write(prompts, [p.meta["solution"] for p in known])
    logprobs = [row[t.mask] for t, row in zip(written, run.policy.score(written), strict=True)]
    sums = np.array([row.sum(dtype=np.float64) for row in logprobs])
    tokens = sum(len(row) for row in logprobs)
    return {"gold": float(np.exp(sums).mean()), "gold_logprob": float(sums.sum() / tokens)}


def _right(value: float | None) -> bool:
    return value is not None and value >= 1.0
