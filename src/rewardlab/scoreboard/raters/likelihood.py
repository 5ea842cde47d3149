"""Language models as raters, without a head: how likely a reply is, or how much likelier than to a reference (DPO's reward).

    likelihood   sum, or mean over tokens, of log pi(token)
    implicit     beta sum of log pi(token) / reference(token)          Rafailov et al. 2023, arXiv:2305.18290

The end token after a reply counts, unless `end=no`: of options that a model chooses from, the chance to say them is asked for, and
not to say nothing more.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from rewardlab.core import Problem, Trajectory
from rewardlab.errors import unknown
from rewardlab.models.checkpoint import find
from rewardlab.models.load import load_policy
from rewardlab.scoreboard.items import Item, Verdict, flat
from rewardlab.scoreboard.raters.passes import logprobs_of, seeing
from rewardlab.scoreboard.raters.rater import Rater, verdicts

if TYPE_CHECKING:
    from rewardlab.scoreboard.benchmark import Benchmark

NORMS = ("mean", "sum", "characters")
ENDS = ("yes", "no")


class Likelihood(Rater):
    """reference: of the implicit reward; empty: the plain likelihood.  norm: mean or sum over the tokens of a reply, or the sum
    over its characters and one (the space before it, as harnesses count); by default the mean of a likelihood, and the sum of an
    implicit reward.  beta: of the implicit reward.  end: whether the end token counts."""

    def __init__(
        self, name: str, model: str, device: str, dtype: str, *, reference: str = "", norm: str = "", beta: float = 0.1,
        end: str = "yes",
    ):  # fmt: skip
        super().__init__(name)
        if end not in ENDS:
            raise unknown("answer to whether the end token counts", end, ENDS)
        self.end = end == "yes"
        self.norm = norm or ("sum" if reference else "mean")
        if self.norm not in NORMS:
            raise unknown("way to sum up log-probs", self.norm, NORMS)
        self.beta, self.scale = beta, bool(reference)
        self.weights = [weights(m) for m in (model, reference) if m]
        self.policy: Any = load_policy(model, device, dtype)
        self.reference: Any = load_policy(reference, device, dtype) if reference else None
        self.sees = seeing(*(policy for policy in (self.policy, self.reference) if policy is not None))

    def fingerprint(self) -> str:
        return f"likelihood {self.weights} {self.norm} {self.beta if self.reference else ''} {self.policy.dtype}" + (
            "" if self.end else " without the end"
        )

    def judge(self, items: Sequence[Item], benchmark: Benchmark) -> list[Verdict]:
        replies = [item.replies[k] for item, k in flat(items)]
        problems = [Problem(tuple(item.prompt)) for item, _ in flat(items)]
        rows = self.policy.write(self.policy.read([Trajectory(p) for p in problems], [p.prompt for p in problems]), replies)
        fits = [i for i, t in enumerate(rows) if len(t) <= self.policy.context]
        found = dict(zip(fits, self._scored([rows[i] for i in fits]), strict=True))
        if self.norm == "characters":
            found = {i: score / (len(replies[i]) + 1) for i, score in found.items()}
        why = ["" if i in found else f"longer than the context of {self.policy.context} tokens" for i in range(len(rows))]
        return verdicts(items, [found.get(i) for i in range(len(rows))], why, (), [len(t) for t in rows])

    def _scored(self, rows: Sequence[Trajectory]) -> list[float]:
        ours = logprobs_of(self.policy, rows)
        theirs = logprobs_of(self.reference, rows) if self.reference else [np.zeros(len(a)) for a in ours]
        over = np.mean if self.norm == "mean" else np.sum
        scale = self.beta if self.reference else 1.0
        # the end is the last of what is decided; a reply of nothing else has a likelihood of 1
        gaps = [a - b if self.end else (a - b)[:-1] for a, b in zip(ours, theirs, strict=True)]
        return [scale * float(over(gap)) if len(gap) else 0.0 for gap in gaps]


def weights(model: str) -> str:
    """What tells a model's weights from others."""
    return find(model).base.weights or model
