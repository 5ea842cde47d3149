"""Wrong steps of a reply, by a vote of several critiques."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Literal

from rewardlab.core import Group, Problem, Run, Sampling, Score, Scores, Trajectory
from rewardlab.errors import RewardlabError
from rewardlab.rewards.noise import FRESH, quantile, step_errors
from rewardlab.rewards.reward import Reward, reward
from rewardlab.rewards.steps import step_texts
from rewardlab.settings.domain import NonNegativeFloat, PositiveInt, Share
from rewardlab.text.filled import filled
from rewardlab.text.listed import listed_numbers

ASK = (
    "Problem:\n{question}\n\nSolution:\n{steps}\n\nCheck every step by itself. End with the numbers of the steps that are wrong, "
    "'Wrong steps: 2, 5', or with 'Wrong steps: none'."
)
_LISTED = re.compile(r"\bwrong steps?(?:\(s\))?[\s*_]{0,4}[:：]", re.IGNORECASE)


def listed(critique: str) -> set[int] | None:
    """The numbers after the last "Wrong steps:" of a critique; None where it states neither numbers nor that there are none."""
    *_, last = [None, *_LISTED.finditer(critique)]
    return None if last is None else listed_numbers(critique[last.end() :][:4000])


def voted(critiques: Sequence[set[int]], step: int, agree: str) -> bool:
    """Whether more than half of the critiques list a step, or, where agree is "all", whether every one does."""
    said = sum(step in critique for critique in critiques)
    return said == len(critiques) if agree == "all" else 2 * said > len(critiques)


@reward(over="groups")
def wrong_steps(
    groups: list[Group], run: Run, *, model: str = "critic", ask: str = ASK, votes: PositiveInt = 4,
    agree: Literal["majority", "all"] = "all", splitter: Literal["newline", "paragraph", "tag", "sentence"] = "newline",
    max_new: PositiveInt = 512, temperature: NonNegativeFloat = 1.0,
) -> Scores:  # fmt: skip
    """1 at the end of each step that the critiques find wrong, 0 at the others.

    model: the critic, a model of the run, which reads the whole reply and lists its wrong steps, `votes` times.  ask: what it
    reads, with {question} and {steps}.  agree: how many critiques must list a step.  splitter: that of the rollout.  max_new,
    temperature: of a critique. Critiques that list nothing readable do not vote; no verdict on a reply without any vote, or that
    does not fit the critic's context.  Xie et al. 2025, arXiv:2508.02298
    """
    rows = [t for group in groups for t in group]
    steps = [_steps(t, splitter) for t in rows]
    asked = [_to_criticise(t.problem, lines, ask) for t, lines in zip(rows, steps, strict=True)]
    said, _ = answers(run, model, asked, votes, Sampling(max_new, temperature))
    known = [[found for text in texts if (found := listed(text)) is not None] for texts in said]
    scores = iter([_score(t, lines, critiques, agree) for t, lines, critiques in zip(rows, steps, known, strict=True)])
    return [[next(scores) for _ in group] for group in groups]


def answers(
    run: Run, model: str, asked: Sequence[Problem], votes: int, sampling: Sampling
) -> tuple[list[list[str]], int]:  # fmt: skip
    """`votes` replies of a model of the run to each question, and the tokens of the questions, each counted once.

    None to a question that the model's context cannot hold with a reply.
    """
    critic = run.model(model)
    read = critic.read([Trajectory(p) for p in asked], [p.prompt for p in asked]) if asked else []
    fits = [i for i, row in enumerate(read) if len(row) + sampling.max_new <= critic.context]
    begun = [read[i] for i in fits for _ in range(votes)]
    said = [t.reply for t in critic.extend(begun, sampling, run.rng("critiques"))] if begun else []
    found = {i: said[k * votes : (k + 1) * votes] for k, i in enumerate(fits)}
    return [found.get(i, []) for i in range(len(asked))], sum(len(read[i]) for i in fits)


def _to_criticise(problem: Problem, steps: Sequence[str], ask: str) -> Problem:
    numbered = "\n".join(f"{i}: {step}" for i, step in enumerate(steps, 1))
    return problem.reworded(filled(ask, question=problem.question, steps=numbered))


def _steps(trajectory: Trajectory, splitter: str) -> list[str]:
    if not trajectory.steps:
        raise RewardlabError(f"critiques of steps need the positions where steps end: set splitter={splitter!r} in the rollout")
    return step_texts(trajectory, splitter)


def _score(trajectory: Trajectory, steps: Sequence[Any], critiques: list[set[int]], agree: str) -> Score:
    ends = trajectory.steps
    if not critiques or len(steps) != len(ends):
        return Score(None, why="no critique lists its wrong steps" if not critiques else "steps of text and tokens differ")
    wrong = [voted(critiques, i, agree) for i in range(1, len(ends) + 1)]
    return Score(steps=tuple((at, float(x)) for at, x in zip(ends, wrong, strict=True)), why=f"{sum(wrong)} of {len(ends)} steps")


@reward(over="groups")
def noisy_critiques(
    groups: list[Group], run: Run, *, inner: Reward, miss: Share = 0.2, alarm: Share = 0.2, votes: PositiveInt = 4,
    agree: Literal["majority", "all"] = "all", fresh: Share = FRESH,
) -> Scores:  # fmt: skip
    """`wrong_steps` by a critic of known error rates: a step is wrong where the step reward `inner` pays it nothing; each critique
    independently misses a wrong step at the rate `miss` and flags a right one at the rate `alarm`.

    The noise belongs to problem, reply, step and critique: the same reply is criticised alike. fresh: share of a
    critique's noise that is new at each step. No verdict where `inner` gives none.
    """
    return [[_noisy(t, s, miss, alarm, votes, agree, fresh, run.seed) for t, s in zip(*rows, strict=True)]
            for rows in zip(groups, inner(groups, run), strict=True)]  # fmt: skip


def _noisy(t: Trajectory, truth: Score, miss: float, alarm: float, votes: int, agree: str, fresh: float, seed: int) -> Score:
    if truth.missing or not truth.steps:
        return Score(None, why=truth.why or "no steps were judged")

    ends, numbered = [at for at, _ in truth.steps], list(enumerate(truth.steps, 1))

    def lists(critique: int) -> set[int]:
        noise = {right: step_errors(("critique", seed, critique, right), t, ends, fresh) for right in (True, False)}
        return {i for i, (_, paid) in numbered if quantile(noise[paid > 0][i - 1]) < (alarm if paid > 0 else 1 - miss)}

    critiques = [lists(k) for k in range(votes)]
    return Score(steps=tuple((at, float(voted(critiques, i, agree))) for i, (at, _) in numbered), why=truth.why)
