"""The policy's likelihood of the gold answer after a reply's reasoning."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np

from rewardlab.core import Group, Run, Score, Scores, Trajectory
from rewardlab.rewards.reward import reward
from rewardlab.text.prefixes import thinks_in_tags
from rewardlab.text.reasoned import deciding_the_rest, gold_text, with_gold

Over = Literal["mean", "product", "geometric"]


def gold_logprobs(model: Any, rows: Sequence[Trajectory], mark: str, close: bool = True) -> list[np.ndarray | None]:
    """The log-prob of each token of the gold answer after the reasoning of each reply, without its mark and the end token.

    None where a problem has no gold answer that is a text, or it does not fit the model's context.
    close: thinking that was cut off is ended before the answer; false puts the mark and the answer within it.
    """
    asked = [i for i, t in enumerate(rows) if gold_text(t.problem)]
    if not asked:
        return [None] * len(rows)
    prompts = model.read([Trajectory(rows[i].problem) for i in asked], [rows[i].problem.prompt for i in asked])
    golds = [gold_text(rows[i].problem) for i in asked]
    replies = [rows[i].reply for i in asked]
    thinks = [close and thinks_in_tags(reply, prompt, model.decode) for reply, prompt in zip(replies, prompts, strict=True)]
    wholes = [with_gold(reply, gold, mark, x)[1] for reply, gold, x in zip(replies, golds, thinks, strict=True)]
    # the mark is read: every answer has it
    befores = [whole[: -len(gold)].rstrip(" ") for whole, gold in zip(wholes, golds, strict=True)]
    sides = (model.write(prompts, befores), model.write(prompts, wholes))
    made = [deciding_the_rest(*row) for row in zip(prompts, *sides, strict=True)]
    fit = [(i, t) for i, t in zip(asked, made, strict=True) if len(t) <= model.context]
    # the last token is the end token, which says nothing about the answer
    found = {i: x[len(t) - len(t.turns[-1].ids) : -1] for (i, t), x in zip(fit, model.score([t for _, t in fit]), strict=True)}
    return [found.get(i) for i in range(len(rows))]


def aggregated(logprobs: np.ndarray, over: Over) -> float:
    """One probability from those of an answer's tokens: their mean, their product, or their geometric mean."""
    x = logprobs.astype(np.float64)
    return float(np.exp(x).mean() if over == "mean" else np.exp(x.sum() if over == "product" else x.mean()))


@reward(over="groups", needs=("ref",))
def reference_probability(
    groups: list[Group],
    run: Run,
    *,
    over: Literal["mean", "product", "geometric"] = "mean",
    debias: bool = True,
    mark: str = "Answer:",
) -> Scores:
    """The policy's probability of the gold answer after a reply's own reasoning, from 0 to 1.

    over: how those of its tokens become one.  debias: less what the reference gives it without any reasoning, and at least 0.
    mark: what stands before an answer, where the reply does not think between tags. No verdict where the problem has no gold answer
    that is a text, or it does not fit the model's context.  Yu et al. 2025, arXiv:2506.18254
    """
    rows = [t for group in groups for t in group]
    reasoned = gold_logprobs(run.policy, rows, mark)
    bare = _without_reasoning(groups, run, over, mark) if debias else [0.0] * len(rows)
    scores = iter([_score(x, a, over) for x, a in zip(reasoned, bare, strict=True)])
    return [[next(scores) for _ in group] for group in groups]


def _without_reasoning(groups: list[Group], run: Run, over: Over, mark: str) -> list[float | None]:
    """What the reference gives the gold answer of each row's problem at once; each problem is asked once."""
    rows = [t for group in groups for t in group]
    problems = {t.problem.key: replace(t, turns=(), steps=()) for t in rows}
    found = gold_logprobs(run.model("reference"), list(problems.values()), mark)
    known = {key: None if x is None or not len(x) else aggregated(x, over) for key, x in zip(problems, found, strict=True)}
    return [known[t.problem.key] for t in rows]


def _score(logprobs: np.ndarray | None, bare: float | None, over: Over) -> Score:
    if logprobs is None or bare is None or not len(logprobs):
        return Score(None, why="the problem has no gold answer, or it does not fit the context")
    reasoned = aggregated(logprobs, over)
    return Score(max(0.0, reasoned - bare), why=f"{reasoned:.3f} with this reasoning, {bare:.3f} without")


@reward(over="groups", relative=True)
def reasoning_reflection(groups: list[Group], run: Run, *, weighted: bool = True, mark: str = "Answer:") -> Scores:
    """Mean log-prob of the gold answer's tokens after a reply's own reasoning, each token weighted by the standard deviation of its
    log-prob over the group. 0 where none varies: the reasoning makes no difference.

    weighted: false gives all tokens the same weight.  mark: what stands before an answer, where the reply does not think between
    tags. No verdict where the problem has no gold answer that is a text, it does not fit the model's context, or its tokens are
    others than after the group's first reply.  Xu et al. 2025, arXiv:2506.13351
    """
    return [_reflections(row, weighted) for row in _by_group(groups, run, mark)]


@reward(over="groups", relative=True)
def reference_variation(groups: list[Group], run: Run, *, mark: str = "Answer:") -> Scores:
    """The largest standard deviation over the group's reasonings of the log-prob of a gold token: how much reasoning matters for
    the problem. The same number for each of its replies; no verdict as in `reasoning_reflection`.
    """
    return [_variations(row) for row in _by_group(groups, run, mark)]


def _by_group(groups: list[Group], run: Run, mark: str) -> list[list[np.ndarray | None]]:
    found = iter(gold_logprobs(run.policy, [t for group in groups for t in group], mark))
    return [[next(found) for _ in group] for group in groups]


def _alike(rows: list[np.ndarray | None]) -> tuple[np.ndarray | None, list[bool]]:
    """(replies, tokens) the log-probs of the rows whose answer is cut into the same tokens as the first, and which these are."""
    count = next((len(x) for x in rows if x is not None), 0)
    alike = [x is not None and len(x) == count > 0 for x in rows]
    kept = [x for x, ok in zip(rows, alike, strict=True) if ok and x is not None]
    return (np.stack(kept).astype(np.float64) if kept else None), alike


def _reflections(rows: list[np.ndarray | None], weighted: bool) -> list[Score]:
    """Of the log-probs of one answer's tokens after each reply of a group."""
    table, alike = _alike(rows)
    if table is None:
        return [Score(None, why="no gold answer, or it does not fit the context")] * len(rows)
    weights = table.std(0) if weighted else np.ones(table.shape[1])
    # equal rows have a deviation of the size of a rounding error
    whole = weights.sum() if weights.max() > 1e-6 else np.inf
    means = iter((table @ weights / whole).tolist())
    return [Score(next(means)) if ok else Score(None, why="no gold answer, or it is cut into other tokens") for ok in alike]


def _variations(rows: list[np.ndarray | None]) -> list[Score]:
    table, alike = _alike(rows)
    most = None if table is None else float(table.std(0).max())
    return [Score(most) if ok else Score(None, why="no gold answer, or it is cut into other tokens") for ok in alike]
