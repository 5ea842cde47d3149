"""Process reward models, by every convention that `prm/` knows: of steps as they are, of replies by aggregation."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from rewardlab.errors import unknown
from rewardlab.prm import load_scorer
from rewardlab.prm.load import settings_of
from rewardlab.scoreboard.items import Item, Verdict, flat
from rewardlab.scoreboard.raters.rater import Rater, verdicts
from rewardlab.text.splitters import cut

if TYPE_CHECKING:
    from rewardlab.scoreboard.benchmark import Benchmark

BY: dict[str, Callable[[Sequence[float]], float]] = {
    "min": min, "last": lambda x: x[-1], "product": math.prod, "mean": lambda x: sum(x) / len(x),
    "geometric": lambda x: math.prod(x) ** (1 / len(x)),
}  # fmt: skip
"""How the chances of steps become a score of the reply."""

LONG, EMPTY = "does not fit the context", "the reply is empty, and has no step"


class Steps(Rater):
    """by: how a reply is scored by its steps.  splitter: where a benchmark does not say what the steps of a reply are."""

    asks = ("replies", "steps")

    def __init__(self, name: str, model: str, device: str, dtype: str, by: str = "min", splitter: str = ""):
        super().__init__(name)
        if by not in BY:
            raise unknown("way to score a reply by its steps", by, BY)
        self.by, self.dtype = by, dtype
        self.found, self.convention, self.settings = settings_of(model)
        self.scorer = load_scorer(model, device, dtype)
        # as it learnt, unless it is told
        self.splitter = splitter or self.scorer.splitter or "newline"

    def fingerprint(self) -> str:
        return f"steps {self.found.base.weights} {self.convention} {self.settings} {self.by} {self.splitter} {self.dtype}"

    def judge(self, items: Sequence[Item], benchmark: Benchmark) -> list[Verdict]:
        solutions = [(item.question, self._steps(item, k)) for item, k in flat(items)]
        fits = [i for i, (prompt, steps) in enumerate(solutions) if steps and self.scorer.fits(prompt, steps)]
        chances = dict(zip(fits, self.scorer.score([solutions[i] for i in fits]), strict=True))
        if benchmark.asks == "replies":
            scores = [BY[self.by](chances[i]) if i in chances else None for i in range(len(solutions))]
            why = ["" if i in chances else LONG if steps else EMPTY for i, (_, steps) in enumerate(solutions)]
            return verdicts(items, scores, why)
        rows = iter([tuple(chances[i]) if i in chances else None for i in range(len(solutions))])
        return [Verdict(steps=tuple(next(rows) for _ in item.replies)) for item in items]

    def _steps(self, item: Item, k: int) -> list[str]:
        steps = item.steps[k] if item.steps else cut(item.replies[k], self.splitter)
        # a blank step has nothing to score; where a benchmark labels one, it must keep its place
        return [s if s.strip() else "..." for s in steps] if item.steps else [s for s in steps if s.strip()]
