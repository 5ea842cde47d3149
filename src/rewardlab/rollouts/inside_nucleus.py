"""Replies of tokens that another model finds likely enough."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import torch

from rewardlab.core import Group, Problem, Run, Sampling, Trajectory, forward_batch, rollout
from rewardlab.core.domain import PositiveInt, PositiveShare

ROWS = 256
"""Rows of one forward pass, which bounds its memory."""


@rollout
def restricted_vocabulary(
    problems: list[Problem], run: Run, *, model: str, n: PositiveInt = 1, top_p: PositiveShare = 0.9, attempts: PositiveInt = 32
) -> list[Group]:
    """n replies to each problem, sampled from the policy restricted at each token to the top-p tokens of the model `model`.

    A reply is sampled freely, cut before its first token that is not among these, and goes on from there, until none is left: each
    token has the probability that it has under the restricted policy, and no decoder need know of a second model. `sampled` holds
    the log-probs of the restricted policy. Tokens that end a reply may always be sampled. After `attempts` rounds the replies stay
    as they are; logs `outside`, the share of their tokens outside the nucleus, and `cuts`, how often a reply was cut, in the mean.
    """
    prompts = run.policy.read([Trajectory(p) for p in problems], [p.prompt for p in problems])
    for t in prompts:
        run.policy.check_fits(t, run.max_new)
    rows = [replace(t, path=(i,)) for t in prompts for i in range(n)]
    begin, waiting, cuts = [len(t) for t in rows], list(range(len(rows))), 0
    for left in reversed(range(attempts)):
        room = [begin[i] + run.max_new - len(rows[i]) for i in waiting]
        # rows that were cut late have less room: what exceeds it is dropped again
        longest = min(max(room), run.policy.context - max(len(rows[i]) for i in waiting))
        extended = run.policy.extend([rows[i] for i in waiting], Sampling(longest), run.rng("rollout"))
        new = [_within(t, begin[i] + run.max_new, run) for i, t in zip(waiting, extended, strict=True)]
        outside = _first_outside(new, run, model, top_p)
        for i, t, at in zip(waiting, new, outside, strict=True):
            rows[i] = t if at is None or not left else t.cut(at, run.policy.decode)
        cuts += sum(at is not None for at in outside) if left else 0
        waiting = [i for i in waiting if rows[i].stop is None]
        if not waiting:
            break
    done, share = _restricted(rows, run, model, top_p)
    run.log("outside", share)
    run.log("cuts", cuts / max(1, len(rows)))
    return [done[i : i + n] for i in range(0, len(done), n)]


def _within(t: Trajectory, most: int, run: Run) -> Trajectory:
    """A row of `most` tokens at most; one that stopped for the length of a call alone may go on."""
    if len(t) > most:
        return replace(t.cut(most, run.policy.decode), stop="length")
    return replace(t, stop=None) if t.stop == "length" and len(t) < most else t


@torch.no_grad()
def _judged(rows: Sequence[Trajectory], run: Run, model: str, top_p: float) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """For each row (len,) the log-probs of the restricted policy, whether a token may be sampled; 0 and True where it was read."""
    found: tuple[list[np.ndarray], list[np.ndarray]] = ([], [])
    mask = run.model(model)
    for start in range(0, len(rows), ROWS):
        part = rows[start : start + ROWS]
        batch = forward_batch(part, run.policy.device)
        # the state one position before a token predicts it
        decided = batch.mask[:, 1:]
        own, other = (m.evaluate(batch, ("hidden",)).hidden[:, :-1][decided] for m in (run.policy, mask))
        numbers = run.policy.nucleus_logprobs(own, batch.ids[:, 1:][decided], mask, other, top_p)
        for kept, column, default in zip(found, numbers, (0.0, True), strict=True):
            table = torch.full(batch.mask.shape, default, dtype=column.dtype, device=column.device)
            table[:, 1:][decided] = column
            kept += [row[: len(t)] for row, t in zip(table.cpu().numpy(), part, strict=True)]
    return found


def _first_outside(rows: Sequence[Trajectory], run: Run, model: str, top_p: float) -> list[int | None]:
    _, inside = _judged(rows, run, model, top_p)
    return [None if x.all() else int(np.argmin(x)) for x in inside]


def _restricted(rows: Sequence[Trajectory], run: Run, model: str, top_p: float) -> tuple[list[Trajectory], float]:
    """The rows with the log-probs that they were sampled with, and the share of their tokens that may not be sampled."""
    logprobs, inside = _judged(rows, run, model, top_p)
    written = [t.ids[t.mask] for t in rows]
    # a reply is one text: where it was cut, a character of several tokens would be torn
    texts = run.policy.decode_all(written)
    done = []
    for t, ids, text, numbers in zip(rows, written, texts, logprobs, strict=True):
        turn = replace(t.turns[-1], ids=ids, logprobs=t.column("logprobs")[t.mask], sampled=numbers[t.mask], text=text)
        done.append(replace(t, turns=(t.turns[0], turn), stop=t.stop or "length"))
    return done, sum(int((~x).sum()) for x in inside) / max(1, sum(map(len, written)))
