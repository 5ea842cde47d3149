"""Mean reward of a policy, of all replies or of the right ones."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from rewardlab.core import Problem, Rollout, Run, Sampling, Trajectory, measure
from rewardlab.errors import RewardlabError
from rewardlab.evals.passk import mean_interval
from rewardlab.rewards.reward import Reward
from rewardlab.settings.domain import NonNegativeFloat, PositiveInt


@measure
def mean_reward(
    problems: Sequence[Problem], run: Run, *, reward: Reward | None = None, temperature: NonNegativeFloat = 1.0, n: PositiveInt = 1
) -> dict[str, float]:
    """The mean reward of n replies to each problem, with its 95% interval over problems.

    reward: None means the task's verifier.  Replies without a verdict are left out, as are problems that have no other replies.
    """
    judge = reward or run.verify
    prompts = run.policy.read([Trajectory(p) for p in problems], [p.prompt for p in problems])
    done = run.policy.extend([t for t in prompts for _ in range(n)], Sampling(run.max_new, temperature), run.rng("eval"))
    scores = judge([done[i : i + n] for i in range(0, len(done), n)], run)
    totals = [[s.total for s in row if s.total is not None] for row in scores]
    # averaged within a problem first: the interval is over problems, whose replies are not independent
    means = np.array([np.mean(row) for row in totals if row])
    if not len(means):
        raise RewardlabError(f"{judge} gave no verdict on any of {len(problems)} held-out problems")
    half = 1.959964 * float(np.std(means, ddof=1)) / len(means) ** 0.5 if len(means) > 1 else float("nan")
    mean = float(means.mean())
    return {"reward": mean, "ci95_low": mean - half, "ci95_high": mean + half, "n": float(len(means))}


@measure(needs=("ref",))
def reward_and_kl(problems: Sequence[Problem], run: Run, *, n: PositiveInt = 1) -> dict[str, float]:
    """The mean verdict of n sampled replies to each problem, and how far the policy has moved for it.

    reward: by the task's verifier, with its 95% interval over problems; a reply without a verdict counts as 0.  kl: the mean of
    log pi / ref, in nats per reply: an estimate of KL(pi || ref).  length: tokens per reply.
    """
    prompts = run.policy.read([Trajectory(p) for p in problems], [p.prompt for p in problems])
    done = run.policy.extend([t for t in prompts for _ in range(n)], Sampling(run.max_new), run.rng("eval"))
    scores = run.verify([done[i : i + n] for i in range(0, len(done), n)], run)
    means = [float(np.mean([s.value or 0.0 for s in row])) for row in scores]
    low, high = mean_interval(means)
    ratios = [float((t.column("logprobs") - ref)[t.mask].sum()) for t, ref in zip(done, run.reference.score(done), strict=True)]
    return {
        "reward": float(np.mean(means)), "ci95_low": low, "ci95_high": high, "n": float(len(problems)),
        "kl": float(np.mean(ratios)), "length": float(np.mean([t.mask.sum() for t in done])),
    }  # fmt: skip


@measure
def reward_of_right(problems: Sequence[Problem], run: Run, *, reward: Reward, rollout: Rollout) -> dict[str, float]:
    """pass@1 of the samples of `rollout`, and right_reward: the mean of `reward` over the right ones.

    NaN where no reply is right, or none of the right ones gets a verdict from `reward`. A reply without a verdict by the task's
    verifier counts as wrong.
    """
    if run.verify is None:
        raise RewardlabError("reward_of_right needs the task's verifier, and this run has none: name a task")
    # a reward may remember what it has seen: held-out problems must not change what it pays in training
    aside = replace(run, memory=copy.deepcopy(run.memory))
    groups = rollout(list(problems), aside)
    right = [[s.value is not None and s.value >= 1.0 for s in row] for row in aside.verify(groups, aside)]
    scores = reward(groups, aside)
    paid = [
        s.total
        for row, oks in zip(scores, right, strict=True)
        for s, ok in zip(row, oks, strict=True)
        if ok and s.total is not None
    ]
    shares = [float(np.mean(row)) for row in right]
    low, high = mean_interval(shares)
    return {
        "pass@1": float(np.mean(shares)), "ci95_low": low, "ci95_high": high, "n": float(len(shares)),
        "right_reward": float(np.mean(paid)) if paid else float("nan"),
    }  # fmt: skip
