"""Whether other models come to a reply's answer, when they go on from the beginning of its reasoning."""

from __future__ import annotations

from typing import Any

from rewardlab.core import Group, Run, Sampling, Score, Scores, Trajectory
from rewardlab.core.domain import NonNegativeFloat
from rewardlab.rewards.reward import reward
from rewardlab.text.prefixes import begun, same_answer, stated


@reward(over="groups")
def reasoning_transfer(
    groups: list[Group], run: Run, *, models: tuple[str, ...] = ("listener",), at: tuple[float, ...] = (0.25, 0.5, 0.75),
    temperature: NonNegativeFloat = 0.9,
) -> Scores:  # fmt: skip
    """The share of continuations that state the reply's own answer, right or wrong: each model goes on once from the first share of
    the reasoning's lines, for each of the shares `at`.

    models: their names in the run (`Learner`s of the recipe). 0 for a reply without reasoning, or without an answer. No verdict
    where a model's context cannot hold one.  Sivakumaran et al. 2026, arXiv:2602.16154
    """
    rows = [t for group in groups for t in group]
    answers = [stated(t.reply) if begun(t.reply, 1.0) else None for t in rows]
    asked = [(i, begun(rows[i].reply, share)) for i, answer in enumerate(answers) if answer for share in at]
    heard: list[list[str | None]] = [[] for _ in rows]
    for name in models:
        texts = continued(run.model(name), [rows[i] for i, _ in asked], [text for _, text in asked], run, temperature)
        for (i, _), text in zip(asked, texts, strict=True):
            heard[i].append(text)
    scores = iter([_agreement(answer, texts) for answer, texts in zip(answers, heard, strict=True)])
    return [[next(scores) for _ in group] for group in groups]


def continued(model: Any, rows: list[Trajectory], texts: list[str], run: Run, temperature: float) -> list[str | None]:
    """What the model makes of each text as the beginning of its own reply to the row's prompt; None where it does not fit."""
    if not rows:
        return []
    prompts = model.read([Trajectory(t.problem) for t in rows], [t.problem.prompt for t in rows])
    # written as a reply, less the token that ends it
    started = [t.cut(len(t) - 1, model.decode) for t in model.write(prompts, texts)]
    fit = [i for i, t in enumerate(started) if len(t) + run.max_new <= model.context]
    done = model.extend([started[i] for i in fit], Sampling(run.max_new, temperature), run.rng("listeners")) if fit else []
    replies = {i: t.reply for i, t in zip(fit, done, strict=True)}
    return [replies.get(i) for i in range(len(texts))]


def _agreement(answer: str | None, texts: list[str | None]) -> Score:
    if not answer:
        return Score(0.0, why="no reasoning, or no answer")
    if None in texts:
        return Score(None, why="the beginning of the reasoning does not fit a listener's context")
    said = [stated(text or "") for text in texts]
    return Score(sum(bool(x) and same_answer(x or "", answer) for x in said) / max(1, len(said)), why=f"they say {said}")
