"""A benchmark's figures of a rater that is a function, on rows that are made up: for checks with planted faults."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from rewardlab.data.files import Row
from rewardlab.scoreboard.benchmark import Benchmark
from rewardlab.scoreboard.figures import Marks
from rewardlab.scoreboard.items import Item, Verdict


def items_of(benchmark: Benchmark, rows: Iterable[Row], file: str = "rows") -> list[Item]:
    """The items of rows in the published format, as from a file of this name."""
    return [item for row in rows for item in benchmark.read(row, file)]


def figures_of(benchmark: Benchmark, items: Sequence[Item], score: Callable[[Item, int], float]) -> dict[str, float]:
    """The figures of a rater that scores a reply, given by its item and its place."""
    verdicts = [Verdict(tuple(score(item, k) for k in range(len(item.replies)))) for item in items]
    return dict(benchmark.figures(Marks.of(items, [benchmark.marks(i, v) for i, v in zip(items, verdicts, strict=True)])))


def from_table(scores: Mapping[str, Sequence[float]]) -> Callable[[Item, int], float]:
    """A rater that knows the scores of the replies of each item, by its id."""

    def score(item: Item, k: int) -> float:
        return float(scores[item.id][k])

    return score
