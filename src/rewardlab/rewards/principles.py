"""Scores of a reward model that reads, in its prompt or after the reply, the principles by which a reply is judged."""

from __future__ import annotations

import random
from typing import Any

from rewardlab.core import Group, Message, Problem, Run, Score, Scores, Trajectory, seed_of
from rewardlab.data.values import list_of
from rewardlab.errors import RewardlabError
from rewardlab.rewards.model import PREFIX, conversation, reader, scored, trained_model
from rewardlab.rewards.reward import reward
from rewardlab.settings.domain import NonNegativeInt
from rewardlab.text.principles import AFTER, question_about, with_principles
from rewardlab.util.outputs import last_values

COLUMNS = ("principle", "principles")


@reward(over="groups")
def principled_score(
    groups: list[Group], run: Run, *, principles: tuple[str, ...] = (), n: NonNegativeInt = 0, model: str = "reward"
) -> Scores:
    """The score of a reply by a reward model of `rlbff` or `salmon`, which is told these principles.

    principles: told with every prompt; without any, those of the row's columns `principle` and `principles`, and without these no
    verdict.  n: so many of them, sampled for each prompt and step; 0: all.  model: model:RUN, or its name in the run.
    Raises RewardlabError for several principles at a time of a model that was taught to answer for one (`rlbff`).
    """
    told = [_told(groups_of[0].problem, principles, n, run) if groups_of else () for groups_of in groups]
    rows = [(t, said) for group, said in zip(groups, told, strict=True) if said for t in group]
    scores = iter(_scores(rows, run, model))
    none = Score(None, why="neither the reward nor the row names a principle to judge by")
    return [[next(scores) if said else none for _ in group] for group, said in zip(groups, told, strict=True)]


def _told(problem: Problem, principles: tuple[str, ...], n: int, run: Run) -> tuple[str, ...]:
    known = principles or tuple(text for name in COLUMNS for text in _texts(problem.meta.get(name)))
    if not n or n >= len(known):
        return known
    return tuple(random.Random(seed_of("principles", run.seed, run.step, problem.key)).sample(known, n))


def _texts(value: Any) -> list[str]:
    return [str(text) for text in (list_of(value) or ([value] if isinstance(value, str) else [])) if text]


def _scores(rows: list[tuple[Trajectory, tuple[str, ...]]], run: Run, model: str) -> list[Score]:
    if not rows:
        return []
    scorer = trained_model(run, model, written=True) if model.startswith(PREFIX) else reader(run, model)
    about = [_one(said, model) for _, said in rows] if getattr(scorer, "reads", "") == AFTER else []
    asked, replies = [], []
    for t, said in rows:
        messages, reply = conversation(t)
        problem = Problem(tuple(messages), meta=t.problem.meta)
        asked.append(problem if about else problem.reworded(with_principles(problem.question, said)))
        replies.append(reply)
    if model.startswith(PREFIX):
        shown = [(list(p.prompt), text) for p, text in zip(asked, replies, strict=True)]
        return scored(scorer, shown, run, about)
    written = run.policy.write(run.policy.read([Trajectory(p) for p in asked], [p.prompt for p in asked]), replies)
    if about:
        written = run.policy.read(written, [(Message("user", question_about(said)),) for said in about])
    return [Score(value) for value in last_values(scorer, written)]


def _one(principles: tuple[str, ...], model: str) -> str:
    if len(principles) > 1:
        raise RewardlabError(
            f"the reward model {model} is asked after each reply about one principle, and here are {len(principles)}: n=1 samples "
            "one of them; for their sum, add a principled_score of each"
        )
    return principles[0]
