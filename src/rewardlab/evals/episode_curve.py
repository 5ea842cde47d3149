"""How many problems are solved by one of several episodes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rewardlab.core import Problem, Rollout, Run, measure
from rewardlab.errors import RewardlabError
from rewardlab.evals.passk import mean_interval, pass_at
from rewardlab.settings.domain import PositiveInt
from rewardlab.text.answers import final_answer


@measure
def episode_curve(problems: Sequence[Problem], run: Run, *, rollout: Rollout, k: PositiveInt = 1) -> dict[str, float]:
    """As `pass_curve` of single replies: pass@1 with its 95% interval over problems, pass@2, pass@4 ... and pass@k, of the n
    episodes that `rollout` samples to each problem, by the task's verifier, and `distinct` answers in last replies that are right.

    turns: the mean number of replies per episode. An episode without a verdict counts as wrong.
    """
    if run.verify is None:
        raise RewardlabError("episode_curve needs the task's verifier, and this run has none: name a task")
    groups = rollout(list(problems), run)
    judged = [
        [(t, s.value is not None and s.value >= 1.0) for t, s in zip(group, row, strict=True)]
        for group, row in zip(groups, run.verify(groups, run), strict=True)
    ]
    n, right = min(map(len, judged)), [sum(ok for _, ok in row) for row in judged]
    low, high = mean_interval([count / len(row) for count, row in zip(right, judged, strict=True)])
    curve = {
        f"pass@{of}": float(np.mean([pass_at(of, len(row), count) for count, row in zip(right, judged, strict=True)]))
        for of in sorted({k, *(2**i for i in range(n.bit_length()))})
    }
    return curve | {
        "ci95_low": low, "ci95_high": high, "n": float(len(judged)),
        "distinct": float(np.mean([len({final_answer(t.reply) for t, ok in row if ok}) for row in judged])),
        "turns": float(np.mean([len(t.ends) for group in groups for t in group])),
    }  # fmt: skip
