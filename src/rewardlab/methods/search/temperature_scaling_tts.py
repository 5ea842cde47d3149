"""Temperature scaling: samples at a grid of temperatures in place of one, and no more where the temperatures agree.

    a temperature is sure:   its most frequent answer has >= 0.8 of its replies
    a question is easy:      all are sure, and >= 1.0 of them of one answer;    it is sampled no more
    answer = the most frequent of all replies;    pass@all = share of questions that any reply at any temperature solves

At one temperature coverage stops growing with samples. Each question has temperatures that suit it, so that a grid solves the union
of what each temperature solves; and most of the grid's cost is on questions that every temperature answers alike.

Wu, Mirhoseini & Tambe 2025, arXiv:2510.02611, section 4.2, by two readers' summaries, one of which has the rule and both of which
have its thresholds (sigma_intra = 0.8, sigma_cross = 1.0). The paper has temperatures 0.0 to 1.2 in steps of 0.1, of which 0.1 to
0.3 add nothing, 1024 replies at each and one at 0, and splits a budget evenly where it compares at equal samples. Its code was not
found; a reproduction (Desjajja/temperature-tts, f020af8, src/voting.py) decides after every reply, as here. (inferred): that a
temperature is sure with two replies at the earliest; that what is left of a budget goes to temperatures spread over the grid; that
replies without an answer count against a temperature; and that all replies vote, where the budget ends without agreement. With a
scorer, `best_of_n+temperature_scaling_tts` takes the best of the same replies.

`reach_of_temperatures()(problems, run)` measures, on any model, whether there is anything to gain: what each temperature solves,
the grid at as many samples, and whether the sets differ by more than two samples at one temperature do.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from rewardlab.checks.claim import Check, Within
from rewardlab.core import Group, Problem, Recipe, Rollout, Run, measure, rollout
from rewardlab.data.columns import Column, Data
from rewardlab.errors import RewardlabError
from rewardlab.evals.passk import count_right, mean_interval, pass_at
from rewardlab.methods.baselines.majority_vote import majority_vote
from rewardlab.rollouts.vote import majority
from rewardlab.settings.domain import NOT_NEGATIVE, PositiveInt, PositiveShare
from rewardlab.text.votes import answer_of, majority_of

GRID = (0.0, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.1, 1.2)
SLACK = 1e-9
"""By which a share may fall short of its threshold: .8 of 5 is a hair above 4 in floating point."""

# ---- How a budget is split, and when it need not be spent ---------------------------------------------------------------


def shares(n: int, temperatures: Sequence[float]) -> list[int]:
    """How many of n replies each temperature gets: one at 0, where all are alike, the others equally many."""
    counts = [0] * len(temperatures)
    if n < len(temperatures):
        for i in spread(n, len(temperatures)):
            counts[i] = 1
        return counts
    warm = [i for i, t in enumerate(temperatures) if t > 0]
    for i, t in enumerate(temperatures):
        counts[i] = (n - len(temperatures) + len(warm)) // len(warm) if t > 0 else 1
    for i in spread(n - sum(counts), len(warm)) if warm else ():
        counts[warm[i]] += 1
    return counts


def spread(some: int, of: int) -> list[int]:
    """So many places of a row, at equal distances: the middle one where it is one."""
    return [(2 * i + 1) * of // (2 * some) for i in range(some)]


def agreed(answers: Sequence[Sequence[Any]], within: float, across: float) -> bool:
    """Whether every temperature is sure of an answer, and enough of them of the same.  answers: of the replies at each."""
    tops = [majority_of(row) for row in answers]
    if any(top is None or row.count(top) < within * len(row) - SLACK for top, row in zip(tops, answers, strict=True)):
        return False
    return tops.count(majority_of(tops)) >= across * len(tops) - SLACK


def _check(*, inner: Any, temperatures: Any, **others: Any) -> None:
    if not temperatures or len(set(temperatures)) < len(temperatures):
        raise RewardlabError(f"temperatures must be different numbers, one at least, not {temperatures!r}")
    for temperature in temperatures:
        NOT_NEGATIVE.check("each of temperatures", temperature)
    if missing := [name for name in ("n", "temperature") if name not in inner.innermost.settings]:
        raise RewardlabError(f"{inner} has no {' and no '.join(missing)}, so that it cannot be sampled at several temperatures")


@rollout(wraps="inner", check=_check)
def over_temperatures(
    problems: list[Problem], run: Run, *, inner: Rollout, temperatures: tuple[float, ...] = GRID, least: PositiveInt = 2,
    within: PositiveShare = 0.8, across: PositiveShare = 1.0,
) -> list[Group]:  # fmt: skip
    """The replies of `inner`, n to each problem, split over temperatures in place of its own; fewer where these agree.

    After the first `least` replies at each temperature, and after each further one, no more are sampled to a problem of which all
    temperatures are sure (a share `within` of their replies has one answer) and a share `across` of them of one answer. With
    `least` at n or above the whole budget is spent. What temperatures agree on is also what most replies say where within * across
    is above 1/2. Replies are in the order of sampling, and of the grid. Episodes of an environment begin alike in every round.
    Logged: left_early, the share of problems that did not need their budget.

    Wu et al. 2025, arXiv:2510.02611
    """
    most = shares(inner.innermost.settings["n"], temperatures)
    groups: list[list[Group]] = [[[] for _ in temperatures] for _ in problems]
    order: list[Group] = [[] for _ in problems]
    live, done = list(range(len(problems))), 0
    while live and done < max(most):
        # the first replies in one call a temperature, since nothing is decided before
        until = max(done + 1, min(least, max(most)))
        for k, temperature in enumerate(temperatures):
            if (count := min(until, most[k]) - done) > 0:
                sampled = inner.but_innermost(n=count, temperature=temperature)([problems[i] for i in live], run)
                for i, rows in zip(live, sampled, strict=True):
                    order[i] += [replace(t, path=(len(order[i]) + j, *t.path[1:])) for j, t in enumerate(rows)]
                    groups[i][k] += rows
        done = until
        live = [i for i in live if not _settled(groups[i], most, done, least, within, across)]
    run.log("left_early", float(np.mean([len(rows) < sum(most) for rows in order])))
    return order


def _settled(
    rows: Sequence[Group], most: Sequence[int], done: int, least: int, within: float, across: float
) -> bool:  # fmt: skip
    """Whether temperatures agree: never with fewer than `least` replies at each, but the one that is as many at 0."""
    return done >= least and agreed([[answer_of(t.reply) for t in group] for group in rows if group], within, across)


# ---- What there is to gain of it ------------------------------------------------------------------------------------------


@measure
def reach_of_temperatures(
    problems: Sequence[Problem], run: Run, *, temperatures: tuple[float, ...] = GRID, n: PositiveInt = 64
) -> dict[str, float]:  # fmt: skip
    """What n replies solve at each temperature (solved_at_T), and split over all of them.

    best: the temperature that solves most of the first half of the problems; on the second half, single: what n replies solve
    there; grid: what n replies over all temperatures do; gain: the difference, with its 95% interval. other: the temperature whose
    n/2 replies add most to n/2 at `best` on the first half; new_other: the share of the second half that these add; new_same: that
    n/2 more replies at `best` add, by resampling alone. Temperatures solve different problems where new_other is the larger.
    All shares are unbiased estimates from the same n replies at each temperature. n: an even number; no verdict counts as wrong.
    """
    if n % 2 or len(problems) < 4:
        raise RewardlabError(f"n must be even, and there must be four problems or more, not n={n} and {len(problems)} problems")
    counted = [count_right(problems, run, n if t > 0 else 1, t) for t in temperatures]
    # replies at 0 are all alike
    right = np.array([[sum(row) * n // len(row) for row in rows] for rows in counted])
    whole, half = (np.array([[pass_at(k, n, int(x)) for x in row] for row in right]) for k in (n, n // 2))
    parts = [[pass_at(k, n, int(x)) if k else 0.0 for x in row] for k, row in zip(shares(n, temperatures), right, strict=True)]
    grid = 1 - np.prod(1 - np.array(parts), axis=0)
    first, second = np.arange(len(problems)) % 2 == 0, np.arange(len(problems)) % 2 == 1
    best = int(whole[:, first].mean(1).argmax())
    # a problem is new where the half at `best` has missed it
    new = half * (1 - half[best])
    new[best] = whole[best] - half[best]
    others = [k for k in range(len(temperatures)) if k != best] or [best]
    other = max(others, key=lambda k: float(new[k, first].mean()))
    gain = (grid - whole[best])[second]
    low, high = mean_interval(gain.tolist())
    return {
        **{f"solved_at_{t:g}": float(row.mean()) for t, row in zip(temperatures, whole, strict=True)},
        "best": temperatures[best], "single": float(whole[best, second].mean()), "grid": float(grid[second].mean()),
        "gain": float(gain.mean()), "ci95_low": low, "ci95_high": high, "other": temperatures[other],
        "new_other": float(new[other, second].mean()), "new_same": float(new[best, second].mean()),
    }  # fmt: skip


# ---- the recipe ---------------------------------------------------------------------------------------------------------


def temperature_scaling_tts(
    base: Recipe | None = None, *, n: int = 64, temperatures: tuple[float, ...] = GRID, least: int = 2, within: float = 0.8,
    across: float = 1.0,
) -> Recipe:  # fmt: skip
    """n: replies per problem at most, over all temperatures.  least: replies at each before a question may be left; n or more
    spends the whole budget.  within: sigma_intra.  across: sigma_cross."""
    base = base or majority_vote(n=n)
    how: dict[str, Any] = {"temperatures": temperatures, "least": least, "within": within, "across": across}
    return base.but(rollout=over_temperatures(inner=base.required("rollout"), **how), select=base.select or majority())


fidelity = "core"
left_out = (
    "the judge of traces, by which a right answer from wrong reasoning does not count as solved; the entropies of traces at each "
    "temperature"
)
data = Data(answer=Column("the gold answer, by which replies are judged; questions without one are answered too", optional=True))

# the baseline's temperature is the one of the grid at which 32 replies solved most of 60 training problems
check = Check(
    says="as many replies over a grid of temperatures solve more questions than at the best one of them, and vote as well",
    versus="majority_vote", task="arithmetic:biased=0.75,error=0.1", measure="pass@all", direction="higher", margin=0.02,
    settings={"n": 32, "temperatures": (0.4, 0.7, 1.0, 1.3), "least": 32}, versus_settings={"n": 32, "temperature": 1.3},
    problems=60, guard=Within("accuracy", low=-0.03),
    fault=Within("pass@all", high=0.97, says="questions that 32 replies at the best temperature solve"),
    tried="training problems, 64 replies at each temperature: here 32 of them solve .69, .89, .94 and .95 of the problems, and the "
    "grid .90; on domains the best temperature solves all but a thousandth, so that nothing is left to gain",
    finding="32 replies over the grid solve 87.5% of the questions, at the best temperature 90.8%, and their votes are right "
    "in 42.9% and 44.2%, at as many tokens; with another initial policy 89.2% and 94.8%, which was decided against "
    "the grid. More replies at one temperature still solve more here, as they no longer do in the paper at 1024, so "
    "that there is little to gain by others (`reach_of_temperatures`, which is in no record). Leaving early is off "
    "here",
)  # fmt: skip
kind = "answer"
