"""Whether published figures come out of released outputs by our code: the check of a benchmark whose outputs are at hand."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from rewardlab.errors import RewardlabError
from rewardlab.scoreboard.benchmark import Benchmark, Published
from rewardlab.scoreboard.figures import Marks
from rewardlab.scoreboard.items import Item, Verdict

DIGITS = 5.1e-5
"""Half of the last digit of a percentage with two digits, and what rounding to it may add."""


def reproduced(benchmark: Benchmark, within: float = DIGITS) -> dict[str, float]:
    """met: the share of published figures that come out, of those whose rater's outputs are released; figures: how many these are.
    control: the share that still comes out where each verdict is given to the next item, which a figure that reads nothing meets.

    Raises RewardlabError where the data is not at hand.
    """
    items = benchmark.items()
    known = _outputs(benchmark)
    rows = [(p, known[p.output]) for p in benchmark.published if p.output in known]
    if not rows:
        raise RewardlabError(f"{benchmark.title}: no published figure's outputs are among the data")
    found = {"met": _met(benchmark, items, rows, 0, within), "control": _met(benchmark, items, rows, 1, within)}
    return {**found, "figures": float(sum(len(p.figures) for p, _ in rows))}


def _outputs(benchmark: Benchmark) -> dict[str, dict[str, Verdict]]:
    assert benchmark.outputs is not None
    known: dict[str, dict[str, Verdict]] = {}
    for path in benchmark.released_files():
        for rater, item, verdict in benchmark.outputs(path):
            known.setdefault(rater, {})[item] = verdict
    return known


def _met(
    benchmark: Benchmark, items: Sequence[Item], rows: Sequence[tuple[Published, Mapping[str, Verdict]]], shift: int, within: float
) -> float:
    met = []
    for published, known in rows:
        own = [item for item in items if item.id in known]
        verdicts = [known[item.id] for item in own]
        verdicts = verdicts[shift:] + verdicts[:shift]
        found = benchmark.figures(Marks.of(own, [benchmark.marks(i, v) for i, v in zip(own, verdicts, strict=True)]))
        met += [abs(found.get(name, math.inf) - value) <= within for name, value in published.figures.items()]
    return sum(met) / len(met)
