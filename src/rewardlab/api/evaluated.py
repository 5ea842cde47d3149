"""What `evaluate` says of sampled replies: pass@k, the best of k by a reward, right reasoning, and what had no verdict."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from rewardlab.core import Environment
from rewardlab.errors import RewardlabError
from rewardlab.evals.best_of import best_at, kl_of_best
from rewardlab.evals.own_reward import interval_of
from rewardlab.evals.passk import mean_interval, pass_at
from rewardlab.rewards.reward import Reward


class Sampled(NamedTuple):
    """How each problem is answered: n times, which gives the unbiased estimate of pass@k for every k up to n; alone or in an
    environment.

    by: the reward that chooses among replies; or, with reasoning, that judges the reasoning of right ones.
    """

    n: int
    temperature: float
    env: Environment | None
    turns: int
    by: Reward | None = None
    reasoning: bool = False


class Counted(NamedTuple):
    """What became of the replies to some problems, n to each.

    right: how many, by problem.  why: reasons for which others have no verdict.  cut_off: at the length limit, of `replies`, of
    which an episode has several.  logged: what the environment says of its episodes (`Environment.logged`).  paid: by problem, what
    the reward of `best_of` pays its replies, and what they are worth.  sound: of the right ones, how many reason rightly, by
    problem; of others of them `unsure` had no verdict of that.  worth: by problem, the verdicts that there are.
    """

    right: list[int]
    why: Counter[str]
    cut_off: int
    replies: int
    logged: dict[str, float]
    paid: Sequence[tuple[list[float | None], list[float]]] = ()
    sound: Sequence[int] = ()
    unsure: int = 0
    worth: Sequence[list[float]] = ()


def summary(
    about: dict[str, Any], counted: Sequence[Counted], k: Sequence[int], sampling: Sampled, judge: str | None
) -> dict[str, Any]:
    right, unjudged = [x for one in counted for x in one.right], sum((one.why for one in counted), Counter[str]())
    scores = {f"pass@{i}": with_interval([pass_at(i, sampling.n, r) for r in right]) for i in k}
    episodes = {} if sampling.env is None else _of_episodes(counted, sampling.n)
    about = about | {"n": len(right)} | ({"judge": judge} if judge else {})
    picked: dict[str, Any] = {}
    if sampling.by is not None:
        reasoned = sampling.reasoning
        picked = _reasoned(counted, k, sampling) if reasoned else {"best_of": str(sampling.by), "best": _best(counted, k, judge)}
    unfinished = _no_verdict(unjudged, sampling.n * len(right)) | _unfinished(counted)
    return about | scores | _graded(counted) | picked | episodes | unfinished


def _graded(counted: Sequence[Counted]) -> dict[str, Any]:
    """mean_verdict: what a reply is worth by a judge whose verdicts lie between right and wrong, in the mean over problems.

    Only a verdict of at least 1 is right, so that pass@k says nothing of replies that are all half good. Those without a verdict
    are left out.
    """
    worth = [row for one in counted for row in one.worth if row]
    if all(x in (0.0, 1.0) for row in worth for x in row):
        return {}
    return {"mean_verdict": with_interval([sum(row) / len(row) for row in worth], interval_of)}


def _best(counted: Sequence[Counted], k: Sequence[int], judge: str | None) -> list[dict[str, Any]]:
    """What the best of k replies is worth, and what it is paid, in the mean over problems.  judge: of its worth; None: the task's
    verifier, whose shares have a range."""
    rows, bounds = [row for one in counted for row in one.paid], mean_interval if judge is None else interval_of
    if not any(x is not None for paid, _ in rows for x in paid):
        raise RewardlabError("the reward of best_of scored no reply, so that none is the best")
    # what nobody scored is chosen only where nothing else is there, and has no score to be counted
    known = [(paid, [0.0 if x is None else x for x in paid]) for paid, _ in rows if None not in paid]
    return [
        {
            "k": i, **with_interval([best_at(i, paid, worth) for paid, worth in rows], bounds),
            "paid": sum(best_at(i, *row) for row in known) / len(known) if known else None, "kl": kl_of_best(i),
        }
        for i in k
    ]  # fmt: skip


def _reasoned(counted: Sequence[Counted], k: Sequence[int], sampling: Sampled) -> dict[str, Any]:
    """cot_pass@k beside pass@k, and of the right replies the share that reasons rightly, and that without a verdict of it."""
    both, right = [x for one in counted for x in one.sound], sum(x for one in counted for x in one.right)
    unsure = sum(one.unsure for one in counted)
    if right and unsure == right:
        raise RewardlabError("the reward of the reasoning gave no verdict on any right reply, so that nothing was measured")
    shares = {"sound": sum(both) / right, "unjudged_reasoning": unsure / right} if right else {}
    scores = {f"cot_pass@{i}": with_interval([pass_at(i, sampling.n, d) for d in both]) for i in k}
    return {"reasoning": str(sampling.by)} | scores | {name: x for name, x in shares.items() if x or name == "sound"}


def _unfinished(counted: Sequence[Counted]) -> dict[str, float]:
    replies, cut_off = sum(one.replies for one in counted), sum(one.cut_off for one in counted)
    return {"cut_off": cut_off / replies} if cut_off else {}


def _of_episodes(counted: Sequence[Counted], n: int) -> dict[str, float]:
    """turns: replies per episode; and the means of what the environment says."""
    episodes = n * sum(len(one.right) for one in counted)
    names = dict.fromkeys(name for one in counted for name in one.logged)
    means = {name: sum(one.logged.get(name, 0.0) * n * len(one.right) for one in counted) / episodes for name in names}
    return {"turns": sum(one.replies for one in counted) / episodes, **means}


def _no_verdict(why: Counter[str], replies: int) -> dict[str, Any]:
    """Raises RewardlabError if no reply got a verdict: then nothing was measured."""
    if not why:
        return {}
    often = why.most_common(1)[0][0]
    if why.total() == replies:
        raise RewardlabError(f"no reply got a verdict, most often because: {often}")
    return {"no_verdict": why.total() / replies, "no_verdict_because": often}


def with_interval(values: Sequence[float], of: Callable[[Sequence[float]], Any] = mean_interval) -> dict[str, Any]:
    """The mean of the values, with its 95% interval.  of: what gives it; of numbers that are no shares `interval_of`, or None."""
    bounds = of(values)
    return {"value": sum(values) / len(values), "ci95": bounds and list(bounds)}
