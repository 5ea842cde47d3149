"""Every environment that is installed for the package verifiers, by name, judged by its own rubric.

    verifiers:wordle
    verifiers:primeintellect/math-python,max_turns=4

Brown 2025, github.com/PrimeIntellect-ai/verifiers (MIT; an optional extra: pip install 'rewardlab[verifiers]'). Both interfaces are
read: `load_environment` of verifiers < 0.4, and tasksets of verifiers >= 0.4, each with the version that is installed.

Training problems are its dataset, in epochs; held-out ones its eval dataset. Without one, a problem is held out by a hash of its
row. Rows are kept whole in each problem, so that a run resumes on the same ones.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from rewardlab.core import Message, Problem, Task, seed_of
from rewardlab.envs.verifiers.loaded import load
from rewardlab.envs.verifiers.shapes import Row
from rewardlab.errors import RewardlabError
from rewardlab.settings.domain import PositiveInt
from rewardlab.tasks.sources import Shuffled

TEST_SHARE = 0.1


def verifiers(
    *, name: str, options: Mapping[str, Any] | None = None, size: PositiveInt = 2000, test_size: PositiveInt = 100,
    turns: PositiveInt = 10, max_new: PositiveInt = 512, seed: int = 0,
) -> Task:  # fmt: skip
    """The environment `name`.

    options: its own arguments (verifiers >= 0.4: of its taskset; `agent.max_turns=3` are those of a seat).  size: rows that are
    read of one that has more, or no end.  test_size: held-out problems, at most.  turns: replies of an episode, at most; the
    environment may end it before.  seed: orders the training epochs.
    """
    try:
        written = json.dumps(dict(options or {}), sort_keys=True)
    except TypeError as e:
        raise RewardlabError(f"the options of {name} must be plain data: {e}") from e
    environment = load(name, written)
    rows = list(itertools.islice(environment.rows(test=False), size))
    if environment.has_test:
        held = list(itertools.islice(environment.rows(test=True), test_size))
    else:
        held = [row for row in rows if _held_out(row)][:test_size]
        kept = {row.data for row in held}
        rows = [row for row in rows if row.data not in kept]
    if not rows:
        raise RewardlabError(f"the environment {name} has no problems to train on")
    return Task(
        name=f"verifiers_{name.rpartition('/')[2].replace('-', '_')}",
        train=Shuffled([_problem(row, name, written) for row in rows], seed),
        test=[_problem(row, name, written) for row in held],
        verifier="verifiers_reward",
        max_new=max_new,
        about=f"the environment {name} of verifiers, judged by its own rubric",
        environment="verifiers_episode",
        turns=turns,
        played=True,
        columns=("prompt", "answer", "environment", "options", "row"),
    )


def _held_out(row: Row) -> bool:
    return seed_of("verifiers", "held out", row.data) % 1000 < 1000 * TEST_SHARE


def _problem(row: Row, name: str, options: str) -> Problem:
    meta = {"environment": name, "options": options, "row": row.data}
    problem = Problem(row.prompt, row.answer, meta)
    # of an environment that says everything itself
    return replace(problem, prompt=problem.prompt or (Message("system", ""),))
