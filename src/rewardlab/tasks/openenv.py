"""Environments behind an OpenEnv server, by its address.

    openenv:http://localhost:8000
    openenv:http://localhost:8000,whole=true,turns=5

github.com/meta-pytorch/OpenEnv (BSD; an optional extra: pip install 'rewardlab[openenv]').
"""

from __future__ import annotations

import json
from functools import partial

from rewardlab.core import Problem, Task, ask
from rewardlab.envs.actions import HOW
from rewardlab.envs.openenv import fields_of
from rewardlab.settings.domain import PositiveInt
from rewardlab.tasks.seeds import games


def openenv(
    *, url: str, about: str = "", whole: bool = False, turns: PositiveInt = 20, size: PositiveInt | None = None,
    test_size: PositiveInt = 50,
) -> Task:  # fmt: skip
    """The environment at `url`, each problem with a seed that it is reset with; every tenth seed is held out.

    about: what the policy is told of it.  whole: whether an action is the whole reply, such as a program; otherwise it is its last
    line.  turns: actions of an episode, at most.  size: so many seeds in epochs; None: endless. Right is an episode that earns at
    least 1.
    """
    fields = fields_of(url)
    form = "" if len(fields) == 1 else f"An action is a JSON object with these fields: {json.dumps(fields)}"
    rules = "\n".join(filter(None, [about or "You act in an environment.", form, "" if whole else HOW]))
    train, test = games(partial(_problem, rules, url, whole), ("openenv", url), size, test_size)
    return Task(
        name="openenv", train=train, test=test, verifier="earned", max_new=256, turns=turns, played=True,
        about=f"the environment behind the OpenEnv server at {url}", environment="openenv",
        columns=("prompt", "url", "number", "whole"),
    )  # fmt: skip


def _problem(rules: str, url: str, whole: bool, number: int) -> Problem:
    return ask(f"{rules}\nThis is episode {number}.", url=url, number=number, whole=whole)
