"""Steps of a search: sampled after many partial rows at once, and scored by any reward.

The searches are built of these. All problems grow together, so that one call of the policy serves them all, and equal rows are
adjacent, so that it computes them once. Each turn of a row after its prompt is one step, and `path` holds the child taken at each
(`Trajectory.spans`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from rewardlab.core import Group, Problem, Run, Sampling, Trajectory
from rewardlab.core.score import check_finite
from rewardlab.errors import RewardlabError
from rewardlab.rewards.reward import Reward
from rewardlab.text.splitters import mark

UNSURE = -math.inf
"""The score of a row without a verdict, which comes last."""
Scored = tuple[float, Trajectory]


@dataclass(frozen=True)
class Stepping:
    """How steps are sampled.

    size: most tokens of a step (None: of a reply); what is longer goes on as a further step.  stop: the texts that end a step.
    """

    size: int | None = None
    temperature: float = 1.0
    stop: tuple[str, ...] = ("\n",)


def started(problems: Sequence[Problem], run: Run) -> list[Trajectory]:
    """The prompts, from which all searches grow."""
    return run.policy.read([Trajectory(p) for p in problems], [p.prompt for p in problems])


def grown(
    rows: Sequence[Trajectory], numbers: Sequence[int], how: Stepping, run: Run, model: str = "policy"
) -> list[Trajectory]:  # fmt: skip
    """Each row after its next step, as the child of this number.

    It stays open (`stop` is None) where a step has ended, or is as long as a step may be, and the reply is not. A reply has at most
    run.max_new tokens, in however many steps. model: who writes the step, the policy or a model of the run that reads the same
    tokens. The row stays one reply of the policy's; the log-probs are the writer's.
    """
    writer = run.model(model)
    context = min(run.policy.context, writer.context)
    room = [max(1, min(run.max_new - t.written, context - len(t))) for t in rows]
    size = min(how.size or run.max_new, max(room, default=1))
    calls: dict[int, list[int]] = {}
    for i, t in enumerate(rows):
        # policies refuse a row that might outgrow their context: those near its end are sampled apart
        calls.setdefault(_most(t, size, room[i], context), []).append(i)
    done = list(rows)
    for most, at in calls.items():
        longer = writer.extend([rows[i] for i in at], Sampling(most, how.temperature, stop=how.stop), run.rng("rollout"))
        for i, t in zip(at, longer, strict=True):
            done[i] = _child(t, len(rows[i]), room[i], numbers[i], run)
    return done


def _most(t: Trajectory, size: int, room: int, context: int) -> int:
    """The most tokens of a row's next step, which may be more than its room: it is cut afterwards, where ids are tokens."""
    if any(turn.tokens is not None for turn in t.turns):
        return min(size, room)
    return size if len(t) + size <= context else room


def _child(longer: Trajectory, before: int, room: int, number: int, run: Run) -> Trajectory:
    """A row as `extend` gave it, as a child; a step that was sampled beside rows with more room is cut where the reply ends."""
    told = longer.turns[-1].tokens
    step = len(longer) - before if told is None else told
    if step > room and told is None:
        longer = longer.cut(before + room, run.policy.decode)
        stop: str | None = "length"
    elif longer.stop == "end":
        stop = "end"
    else:
        stop = None if step < room else "length"
    # whoever wrote it: turns of another author would be another reply
    turns = (*longer.turns[:-1], replace(longer.turns[-1], author=run.policy.name))
    return replace(longer, turns=turns, path=(*longer.path, number), stop=stop)


def completed(rows: Sequence[Trajectory], how: Stepping, run: Run) -> list[Trajectory]:
    """Each open row whose last step was cut before one of `how.stop`, with the rest of that step; other rows as they are."""
    done, at = list(rows), [i for i, t in enumerate(rows) if t.stop is None and not t.turns[-1].text.endswith(how.stop)]
    for i, t in zip(at, grown([rows[i] for i in at], [0] * len(at), how, run), strict=True):
        done[i] = one_step(t, run)
    return done


def one_step(t: Trajectory, run: Run) -> Trajectory:
    """The row with its last two steps as one, the child that the first of them was."""
    *before, a, b = t.turns
    ids = np.concatenate([a.ids, b.ids])
    logprobs, sampled = (
        None if x is None or y is None else np.concatenate([x, y]) for x, y in ((a.logprobs, b.logprobs), (a.sampled, b.sampled))
    )
    # decoded together: a character may begin in the first part and end in the second
    tokens = None if a.tokens is None or b.tokens is None else a.tokens + b.tokens
    whole = replace(a, ids=ids, logprobs=logprobs, sampled=sampled, text=run.policy.decode(ids), tokens=tokens)
    return replace(t, turns=(*before, whole), path=t.path[:-1])


def to_the_end(rows: Sequence[Trajectory], number: int, temperature: float, run: Run) -> list[Trajectory]:
    """Each open row after all that is left of its reply, sampled as one step; rows that have ended as they are."""
    return _where_open(rows, number, Stepping(None, temperature, ()), run)


def looked_ahead(
    rows: Sequence[Trajectory], steps: int, how: Stepping, run: Run, temperature: float = 0.0
) -> list[Trajectory]:  # fmt: skip
    """Each row after up to so many further steps, sampled greedily unless a temperature is given: what it leads to, to be scored
    in its place and discarded."""
    for _ in range(steps):
        rows = _where_open(rows, 0, replace(how, temperature=temperature), run)
    return list(rows)


def _where_open(rows: Sequence[Trajectory], number: int, how: Stepping, run: Run) -> list[Trajectory]:
    done, at = list(rows), [i for i, t in enumerate(rows) if t.stop is None]
    for i, t in zip(at, grown([rows[i] for i in at], [number] * len(at), how, run), strict=True):
        done[i] = t
    return done


def worths(groups: Sequence[Group], score: Reward, run: Run) -> list[list[float]]:
    """The total score of each row; UNSURE without a verdict. Raises NotFinite for a score that is NaN or infinite."""
    # a reward of a group may read its first row
    full = [marked(group, run) for group in groups if group]
    scores = score(full, run) if full else []
    check_finite(full, scores, f"the score {score}")
    found = iter(scores)
    return [[UNSURE if s.total is None else s.total for s in (next(found) if group else [])] for group in groups]


def marked(rows: Sequence[Trajectory], run: Run) -> Group:
    """The rows with the ends of their lines as `steps`, which rewards of steps read."""
    return [mark(t, "newline", run.policy.pieces, run.policy.name) for t in rows]


def best_of(rows: Sequence[Scored], n: int) -> list[Scored]:
    """The n rows with the highest scores, the best one first; of equal ones the earlier."""
    return sorted(rows, key=lambda scored: -scored[0])[:n]


def softmax(values: Sequence[float], temperature: float = 1.0) -> list[float]:
    """Shares in proportion to exp(value / temperature); nothing for those without a verdict, unless all are."""
    highest = max(values)
    if highest == UNSURE:
        return [1 / len(values)] * len(values)
    weights = [math.exp((value - highest) / temperature) for value in values]
    return [w / math.fsum(weights) for w in weights]


def read_alike(run: Run, models: Sequence[str]) -> None:
    """Raises RewardlabError unless a token means the same to the policy and to these models of the run, which write beside it."""
    for model in map(run.model, models):
        ours, theirs = (getattr(x, "tokenizer", None) for x in (run.policy, model))
        if model is not run.policy and ours and theirs and ours.get_vocab() != theirs.get_vocab():
            raise RewardlabError(f"{model.name!r} and the policy cannot write one reply together: their vocabularies differ")
