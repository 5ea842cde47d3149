"""Multi-hop search with failed attempts, for policies that repair episodes.

    Find out: Who is the boss of the friend of Ann?
    1: Search: Ann friend
    -> Ann: the friend of Ann is Bob.
    2: Search: Ann boss
    -> Ann: the boss of Ann is Dee.
    3: Answer: Dee
    Accept, or Cut: the first turn that is wrong?         ->  Cut: 2

The small policy has read both: answers of the careless teacher of `facts`, and where such answers first go wrong.
"""

from __future__ import annotations

import random
from dataclasses import replace
from functools import partial
from typing import Any, Literal

from rewardlab.core import Problem, ProblemSource, Task
from rewardlab.errors import RewardlabError
from rewardlab.settings.domain import PositiveInt, Share
from rewardlab.tasks.sources import test_set, training
from rewardlab.text.refining import to_refine
from rewardlab.worlds.facts import facts

Talk = list[str]


def repairs(
    *, shown: Literal["questions", "attempts", "both"] = "questions", hops: PositiveInt = 4, error: Share = 0.6,
    biased: Share = 0.3, misjudged: Share = 0.2, test_size: PositiveInt = 1000, size: PositiveInt | None = None,
) -> Task:  # fmt: skip
    """Questions of `hops` hops as in `facts`, with the facts that answer them in the column `supporting`.

    shown: the problems: "questions"; "attempts" at them, to be accepted or cut; or, as the small policy has read them, "both".
    error, biased: of the teacher's answers, as in `facts`.  misjudged: how often an attempt is cut at a random place, or accepted.
    size: so many training problems, in epochs; None: endless.
    """
    if shown not in ("questions", "attempts", "both"):
        raise RewardlabError(f"repairs: shown is questions, attempts or both, not {shown!r}")
    if not 0 <= misjudged <= 1:
        raise RewardlabError(f"repairs: misjudged is a probability between 0 and 1, not {misjudged}")
    of = facts(hops=hops, error=error, biased=biased, test_size=1)
    sample = partial(_sample, questions=of.train, teacher=of.demonstrate, shown=shown, misjudged=misjudged)
    key = ("repairs", hops, shown, error, biased, misjudged)
    return Task(
        name="repairs",
        train=training(sample, key, size),
        test=test_set(sample, key, test_size),
        verifier="final_answer",
        max_new=16,
        about=f"who is whose what: {hops} hops through facts that must be searched for, and attempts to be repaired",
        environment="search",
        turns=hops + 1,
        demonstrate=partial(_demonstrate, teacher=of.demonstrate),
        columns=("prompt", "answer", "facts", "searches", "supporting", "solution"),
        warmed_as=None
        if shown == "both"
        else f"repairs:shown=both,hops={hops},error={error},biased={biased},misjudged={misjudged}",
    )


def _sample(rng: random.Random, *, questions: ProblemSource, teacher: Any, shown: str, misjudged: float) -> Problem:
    # the source is endless: any number is the position of a question
    found = questions[rng.getrandbits(40)]
    # not quite the words of `facts`: its training problems, which these are, would never be held out here
    problem = found.reworded(f"Find out: {found.question}")
    problem = replace(problem, meta={**problem.meta, "supporting": problem.meta["solution"][1:-1:2]})
    if shown == "questions" or (shown == "both" and rng.random() < 0.5):
        return problem
    talk = teacher(problem, rng)
    wrong = first_wrong(talk, problem.meta["solution"])
    if rng.random() < misjudged:
        wrong = rng.choice([None, *range(1, len(talk) // 2 + 2)])
    said = "Accept" if wrong is None else f"Cut: {wrong}"
    return replace(
        to_refine(problem, talk[::2], talk[1::2]), answer=[said], meta={**problem.meta, "solution": said}
    )  # fmt: skip


def first_wrong(talk: Talk, gold: Talk) -> int | None:
    """The number of the first reply, from 1, that is not that of the gold answer; None where all are."""
    replies, right = talk[::2], gold[::2]
    return next((i + 1 for i, reply in enumerate(replies) if i >= len(right) or reply != right[i]), None)


def _demonstrate(problem: Problem, rng: random.Random, *, teacher: Any) -> Talk | str:
    """An answer of the careless teacher; where an attempt went wrong is as it is."""
    solution = problem.meta["solution"]
    return solution if isinstance(solution, str) else teacher(problem, rng)
