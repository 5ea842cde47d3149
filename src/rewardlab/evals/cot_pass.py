"""CoT-Pass@k: pass@k over replies whose reasoning is right too, and not only their answer.

    cot_pass@k = mean over problems of 1 - C(n - d, k) / C(n, k),    d: of n replies those with a right answer and right reasoning

Wen et al. 2025, arXiv:2506.14245. An answer that may be guessed is found by any model that guesses often enough; a chain is not.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rewardlab.core import Group, Problem, Run, Sampling, Scores, Trajectory, measure
from rewardlab.evals.passk import mean_interval, pass_at
from rewardlab.rewards.reward import Reward
from rewardlab.settings.domain import NonNegativeFloat, PositiveInt, PositiveShare

AT_LEAST = 0.5
"""What right reasoning is paid at least: of several verdicts, the majority."""


def sound(groups: Sequence[Group], verdicts: Scores, by: Reward, run: Run, at_least: float = AT_LEAST) -> list[list[bool | None]]:
    """Whether replies with a right answer have right reasoning, by a reward that is asked of these alone; None without a verdict
    of it. Replies whose answer is not right are False.
    """
    right = [[s.value is not None and s.value >= 1.0 for s in row] for row in verdicts]
    asked = [[t for t, ok in zip(group, row, strict=True) if ok] for group, row in zip(groups, right, strict=True)]
    asked_of = [group for group in asked if group]
    found = iter([s.total for row in (by(asked_of, run) if asked_of else []) for s in row])

    def told(ok: bool) -> bool | None:
        if not ok:
            return False
        paid = next(found)
        return None if paid is None else paid >= at_least

    return [[told(ok) for ok in row] for row in right]


@measure
def cot_pass_curve(
    problems: Sequence[Problem], run: Run, *, by: Reward, n: PositiveInt = 16, temperature: NonNegativeFloat = 1.0,
    at_least: PositiveShare = AT_LEAST,
) -> dict[str, float]:  # fmt: skip
    """pass@1, pass@2, pass@4 ... pass@n and cot_pass@1 ... cot_pass@n, each from n replies; sound: of the replies with a right
    answer, those with right reasoning; unjudged: those without a verdict of it, which count as unsound.

    by: a reward that judges reasoning, such as a judge or a checker of steps.  at_least: what right reasoning is paid.
    ci95_low, ci95_high: of cot_pass@1, over problems.
    """
    groups = _sampled(problems, run, n, temperature)
    verdicts = run.verify(groups, run)
    reasoned = sound(groups, verdicts, by, run, at_least)
    right = [sum(s.value is not None and s.value >= 1.0 for s in row) for row in verdicts]
    both = [sum(ok is True for ok in row) for row in reasoned]
    ks = [2**i for i in range(n.bit_length()) if 2**i <= n]
    low, high = mean_interval([count / n for count in both])
    answers = sum(right)
    told = {f"pass@{k}": float(np.mean([pass_at(k, n, count) for count in right])) for k in ks}
    told |= {f"cot_pass@{k}": float(np.mean([pass_at(k, n, count) for count in both])) for k in ks}
    told |= {"ci95_low": low, "ci95_high": high, "n": float(len(problems))}
    unjudged = sum(ok is None for row in reasoned for ok in row)
    # of no right answer nothing can be said
    return told | ({"sound": sum(both) / answers, "unjudged": unjudged / answers} if answers else {})


def _sampled(problems: Sequence[Problem], run: Run, n: int, temperature: float) -> list[Group]:
    prompts = run.policy.read([Trajectory(p) for p in problems], [p.prompt for p in problems])
    done = run.policy.extend([t for t in prompts for _ in range(n)], Sampling(run.max_new, temperature), run.rng("eval"))
    return [done[i : i + n] for i in range(0, len(done), n)]
