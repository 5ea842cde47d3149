"""A judge that pays a policy, watched on a fixed sample of replies: what it agrees with, how it drifts, what fools it.

A policy learns whatever its judge pays for. So at every evaluation the judge (or any other reward) is asked about the same few
replies, about as many that the policy writes now, and about texts that answer nothing.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from rewardlab.core import Group, Measure, Message, Problem, Run, Sampling, Scores, Trajectory, measure
from rewardlab.data.files import Row, read
from rewardlab.errors import RewardlabError
from rewardlab.judges.cases import label_of
from rewardlab.rewards.reward import Reward
from rewardlab.settings.domain import PositiveInt
from rewardlab.settings.options import is_relative
from rewardlab.text.empty_replies import KEYS
from rewardlab.util.ranking import auc_of

MEMORY = "watched.replies"
ORDERS = ("judge_prefers_first", "first_place")
"""What rewards that ask about pairs log of the order in which they stand."""
EACH, TRIED = 4, 4
"""Replies to a problem, so that a judge can compare them; and problems on which texts that answer nothing are tried."""
Truth = list[list[bool | None]]


class Sample(NamedTuple):
    """Replies, in groups by problem, and whether each is right, or better than the other of its pair; None where nobody knows."""

    groups: list[Group]
    truth: Truth


def learnt_part(reward: Reward) -> Reward:
    """The sum of the parts of a reward that ask a model (those with a setting `model`); the whole reward where none does."""
    parts = [part for part in reward.walk() if isinstance(part, Reward) and isinstance(part.settings.get("model"), str)]
    return sum(parts[1:], parts[0]) if parts else reward


@measure(wraps="inner")
def watched(
    problems: Sequence[Problem], run: Run, *, reward: Reward, inner: Measure | None = None, file: str = "",
    replies: PositiveInt = 32,
) -> dict[str, float]:  # fmt: skip
    """The numbers of `inner`, which decide, and of `reward`, each with `watched.` before its name:

    agreement: the chance that it pays a right reply more than a wrong one, ties counting half, on the same `replies` at every
    evaluation, with agreement_low and agreement_high, its 95% interval; agreement_now: the same on replies of the policy as it is.
    mean: what it pays the same replies.  no_verdict: the share of them on which it gives none.  prefers_first: of a reward that
    compares replies, how often the one that stands first is paid more; its own count, where it logs one, else that of `first_paid`.
    key.NAME: what it pays a text that answers nothing, on average.  key_limit: the pay from which that counts as
    paid: half of the way from wrong replies to right ones, or, where it does not tell these apart beyond chance or nobody does, the
    mean of all replies and their standard deviation.  keys_paid: how many are paid more.

    The same replies are the policy's before its training, EACH to a problem, judged by the task's verifier; or those of `file`:
    rows with `chosen` and `rejected`, or with `reply` and `label`. What is not known is left out.
    """
    found = dict(inner(problems, run)) if inner is not None else {}
    # a reward may remember what it has seen: what is watched must not change what it pays in training
    aside = replace(run, memory=copy.deepcopy(run.memory), metrics={})
    kept = _from_file(file, run, replies) if file else _from_policy(problems[: max(1, replies // EACH)], run)
    compares = is_relative(reward)
    scores = reward(kept.groups, aside)
    flat = [s.total for row in scores for s in row]
    known = [x for x in flat if x is not None]
    numbers = agreement(scores, kept.truth, compares) | {"no_verdict": 1 - len(known) / len(flat)}
    numbers |= {"mean": float(np.mean(known))} if known else {}
    if compares:
        logged = [aside.metrics[name] for name in ORDERS if name in aside.metrics]
        numbers |= {"prefers_first": logged[0]} if logged else first_paid(reward, kept.groups, scores, aside)
    if not file:
        now = _judged(_sampled(problems[: len(kept.groups)], run), run)
        numbers |= {f"{k}_now": v for k, v in agreement(reward(now.groups, aside), now.truth, compares).items()}
    numbers |= keys_paid(reward, kept, scores, run, aside)
    return found | {f"watched.{name}": value for name, value in numbers.items()}


# ---- the same replies ----------------------------------------------------------------------------------------------------


def _sampled(problems: Sequence[Problem], run: Run) -> list[Group]:
    begun = run.policy.read([Trajectory(p) for p in problems], [p.prompt for p in problems])
    done = run.policy.extend([t for t in begun for _ in range(EACH)], Sampling(run.max_new), run.rng("watched"))
    return [done[i : i + EACH] for i in range(0, len(done), EACH)]


def _from_policy(problems: Sequence[Problem], run: Run) -> Sample:
    """The replies of the policy when it was first watched; texts, so that a resumed run judges the same."""
    known: dict[str, list[str]] = run.memory.setdefault(MEMORY, {})
    if not known:
        known |= {group[0].problem.key: [t.reply for t in group] for group in _sampled(problems, run)}
    return _judged(_recorded([(p, known[p.key]) for p in problems if p.key in known], run), run)


def _recorded(chosen: Sequence[tuple[Problem, Sequence[str]]], run: Run) -> list[Group]:
    """A group for each problem and these replies to it."""
    rows = [Trajectory(p) for p, texts in chosen for _ in texts]
    begun = run.policy.read(rows, [t.problem.prompt for t in rows])
    done = iter(run.policy.write(begun, [text for _, texts in chosen for text in texts]))
    return [[next(done) for _ in texts] for _, texts in chosen]


def _judged(groups: list[Group], run: Run) -> Sample:
    if run.verify is None:
        return Sample(groups, [[None] * len(group) for group in groups])
    values = [[s.value for s in row] for row in run.verify(groups, run)]
    return Sample(groups, [[None if v is None else v >= 1.0 for v in row] for row in values])


def _from_file(path: str, run: Run, most: int) -> Sample:
    """The labelled replies of a file, at most so many."""
    chosen: list[tuple[Problem, list[str]]] = []
    truth: Truth = []
    for entry in read(path):
        if entry.blank:
            continue
        row, place = entry.row, f"{path}, {entry.place}"
        if row is None:
            raise RewardlabError(f"{place}: {entry.why}")
        problem = _problem(row, place)
        if isinstance(row.get("chosen"), str) and isinstance(row.get("rejected"), str):
            chosen.append((problem, [row["chosen"], row["rejected"]]))
            truth.append([True, False])
        elif isinstance(row.get("reply"), str) and row.get("label") is not None:
            chosen.append((problem, [row["reply"]]))
            truth.append([label_of(row["label"], problem) > 0.5])
        else:
            raise RewardlabError(f"{place}: a row to watch a judge with has `chosen` and `rejected`, or a `reply` and its `label`")
        if sum(map(len, truth)) >= most:
            break
    if not chosen:
        raise RewardlabError(f"{path} has no rows to watch a judge with")
    return Sample(_recorded(chosen, run), truth)


def _problem(row: Row, place: str) -> Problem:
    said = row.get("prompt")
    if isinstance(said, str):
        prompt: tuple[Message, ...] = (Message("user", said),)
    elif isinstance(said, list) and said and all(isinstance(m, dict) and "content" in m for m in said):
        prompt = tuple(Message(str(m.get("role", "user")), str(m["content"])) for m in said)
    else:
        raise RewardlabError(f"{place}: a row to watch a judge with has a `prompt`, a text or a list of messages")
    return Problem(prompt, row.get("answer"), {k: v for k, v in row.items() if k not in ("prompt", "answer")})


# ---- numbers -------------------------------------------------------------------------------------------------------------


def agreement(scores: Scores, truth: Truth, within: bool = False) -> dict[str, float]:
    """How far a reward ranks right replies above wrong ones, with a 95% interval; nothing where there are not both.

    within: compare the replies to one problem alone.  The interval is Wilson's, for as many as there are of the rarer kind: the
    comparisons of one reply with many are not independent.
    """
    rows = [
        [(s.total, ok) for s, ok in zip(row, known, strict=True) if s.total is not None and ok is not None]
        for row, known in zip(scores, truth, strict=True)
    ]
    parts = rows if within else [[pair for row in rows for pair in row]]
    counted = [(sum(ok for _, ok in part), sum(not ok for _, ok in part), auc_of(part)) for part in parts]
    both = [(right, wrong, auc) for right, wrong, auc in counted if right and wrong]
    if not both:
        return {}
    pairs = sum(right * wrong for right, wrong, _ in both)
    share = sum(right * wrong * auc for right, wrong, auc in both) / pairs
    low, high = wilson(share, min(sum(right for right, _, _ in both), sum(wrong for _, wrong, _ in both)))
    return {"agreement": share, "agreement_low": low, "agreement_high": high}


def wilson(share: float, n: int, z: float = 1.959964) -> tuple[float, float]:
    """Wilson's 95% interval of a share of n."""
    centre, spread = share + z * z / (2 * n), z * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    return max(0.0, (centre - spread) / (1 + z * z / n)), min(1.0, (centre + spread) / (1 + z * z / n))


def first_paid(reward: Reward, groups: list[Group], scores: Scores, aside: Run) -> dict[str, float]:
    """How often, of two replies of a group, the one that stands first is paid more, ties half, in the order of `scores` and in the
    reverse one: quality cancels. Nothing where no two replies have a verdict."""
    turned = reward([group[::-1] for group in groups], aside)
    rows = [[s.total for s in row] for both in (scores, turned) for row in both]
    pairs = [(a, b) for row in rows for i, a in enumerate(row) for b in row[i + 1 :] if a is not None and b is not None]
    return {"prefers_first": float(np.mean([0.5 + 0.5 * np.sign(a - b) for a, b in pairs]))} if pairs else {}


def keys_paid(reward: Reward, kept: Sample, scores: Scores, run: Run, aside: Run) -> dict[str, float]:
    """What texts that answer nothing are paid beside the replies of a few problems, and how many are paid too much."""
    names = list(KEYS)
    texts = [(g[0].problem, [*(t.reply for t in g), *KEYS.values()]) for g in kept.groups[:TRIED]]
    paid = [row[-len(names) :] for row in reward(_recorded(texts, run), aside)]
    means = {
        name: float(np.mean(known))
        for i, name in enumerate(names) if (known := [v for row in paid if (v := row[i].total) is not None])
    }  # fmt: skip
    limit = key_limit(scores, kept.truth)
    if limit is None:
        return {}
    count = sum(x > limit + 1e-9 for x in means.values())
    return {"keys_paid": float(count), "key_limit": limit} | {f"key.{name}": x for name, x in means.items()}


def key_limit(scores: Scores, truth: Truth) -> float | None:
    """The pay above which a text that answers nothing is paid too much; None where no reply has a verdict."""
    flat = [(s.total, ok) for row, t in zip(scores, truth, strict=True) for s, ok in zip(row, t, strict=True)]
    known = [x for x, _ in flat if x is not None]
    if not known:
        return None
    if agreement(scores, truth).get("agreement_low", 0.0) > 0.5:
        right, wrong = ([x for x, ok in flat if x is not None and ok is wanted] for wanted in (True, False))
        return float(np.mean(right) + np.mean(wrong)) / 2
    return float(np.mean(known) + np.std(known))
