"""Code review: programs line by line with their specification; find the wrong line, if there is one, and explain it.

    Wanted: over 3, times 2, largest.       Line 2 is * 5, wanted is times 2.
    1: keep > 3                             Lines: 2
    2: * 5                                  Answer: flawed
    3: max

Each problem has a pair of replies: of a careful reader, who errs now and then in either direction, and of one who calls everything
sound, and so is right more often.
"""

from __future__ import annotations

import random
from functools import partial

from rewardlab.core import Problem, Task, ask
from rewardlab.errors import RewardlabError
from rewardlab.settings.domain import PositiveInt, Share
from rewardlab.tasks.pairs import Paired, Reply, all_paired, with_pair
from rewardlab.tasks.sources import test_set, training
from rewardlab.worlds.codes import FOLDS, LISTS

FLAWED, SOUND = "flawed", "sound"
NUMBERS = 2, 60
"""Enough that sound programs do not run out: problems that are held out are all different."""
NO_FLAW = "Each line is as wanted."


def flaws(
    *,
    flawed: Share = 0.1,
    misses: Share = 0.25,
    alarms: Share = 0.2,
    test_size: PositiveInt = 1000,
    size: PositiveInt | None = None,
) -> Task:
    """Programs of three lines, the share `flawed` of which has a wrong one.

    misses, alarms: how often a careful reader overlooks a flaw, and sees one where there is none.  size: so many training problems,
    each with one pair, in epochs; None: endless.
    """
    for name, share in (("flawed", flawed), ("misses", misses), ("alarms", alarms)):
        if not 0 <= share <= 1:
            raise RewardlabError(f"flaws: {name} is a share between 0 and 1, not {share}")
    sample, key = partial(_sample, flawed=flawed), ("flaws", flawed)
    pair = partial(_pair, misses=misses, alarms=alarms)
    return Task(
        name="flaws",
        train=Paired(training(sample, key, size), pair),
        test=all_paired(test_set(sample, key, test_size), pair),
        verifier="final_answer",
        max_new=48,
        about="programs of a few lines: is one wrong, which, and why",
        demonstrate=partial(_demonstrate, misses=misses, alarms=alarms),
        columns=("prompt", "answer", "lines", "analysis", "wanted", "code", "solution", "chosen", "rejected", "qualities"),
    )


def _sample(rng: random.Random, *, flawed: float) -> Problem:
    words, code = zip(*(_stage(rng, last) for last in (False, False, True)), strict=True)
    wrong, number = list(code), rng.randint(1, 3) if rng.random() < flawed else None
    if number is not None:
        wrong[number - 1] = _other(code[number - 1], number == 3, rng)
    said = _analysis(words, wrong, number)
    shown = "\n".join(f"{i}: {line}" for i, line in enumerate(wrong, 1))
    return ask(
        f"Wanted: {', '.join(words)}.\n{shown}",
        SOUND if number is None else FLAWED,
        lines=[] if number is None else [number],
        analysis=said,
        wanted=list(words),
        code=wrong,
        solution=_reply(said, number),
    )


def _stage(rng: random.Random, last: bool) -> tuple[str, str]:
    """What is wanted of a line, and the line."""
    table, k = FOLDS if last else LISTS, rng.randint(*NUMBERS)
    words = rng.choice(sorted(table))
    return words.format(k=k), table[words].format(k=k)


def _other(line: str, last: bool, rng: random.Random) -> str:
    while (other := _stage(rng, last)[1]) == line:
        pass
    return other


def _analysis(words: tuple[str, ...] | list[str], code: list[str], number: int | None) -> str:
    return NO_FLAW if number is None else f"Line {number} is {code[number - 1]}, wanted is {words[number - 1]}."


def _reply(analysis: str, number: int | None) -> str:
    return f"{analysis}\nLines: {number or 'none'}\nAnswer: {FLAWED if number else SOUND}"


def _demonstrate(problem: Problem, rng: random.Random, *, misses: float, alarms: float) -> str:
    """A careful reader's reply."""
    found = next(iter(problem.meta["lines"]), None)
    if rng.random() < (misses if found else alarms):
        found = None if found else rng.randint(1, 3)
    return _reply(_analysis(problem.meta["wanted"], problem.meta["code"], found), found)


def _pair(problem: Problem, rng: random.Random, *, misses: float, alarms: float) -> Problem:
    careful, lazy = _demonstrate(problem, rng, misses=misses, alarms=alarms), _reply(NO_FLAW, None)
    return with_pair(problem, Reply(careful, 1.0), Reply(lazy, 0.0))
