"""Raters on benchmarks: every rater is asked about every item, and the figures come out with their intervals."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from rewardlab.errors import RewardlabError
from rewardlab.processes.cluster import check_named, spread
from rewardlab.scoreboard.asked import Asked, asked, benchmark_of, limits, plain_name
from rewardlab.scoreboard.benchmark import Benchmark
from rewardlab.scoreboard.document import Answered, document_of, write_files
from rewardlab.scoreboard.items import Item, Verdict, first_reason
from rewardlab.scoreboard.kept import Kept, resumable
from rewardlab.scoreboard.lost import Lost
from rewardlab.scoreboard.raters import OUTPUTS, Rater, load_rater
from rewardlab.scoreboard.raters.outputs import raters_in
from rewardlab.scoreboard.raters.rater import rated_singly
from rewardlab.util.files import results_folder
from rewardlab.util.progress import Bar

FIRST, BATCH, PACE = 4, 64, 10.0
"""Items that are rated together, at first and at most, and the seconds that this should take: so often the progress is told, and so
much a kill costs."""
DEATHS = 4
"""Items in a row over which processes of a cluster die, after which no other is asked."""


def scoreboard(
    raters: str | Rater | Sequence[str | Rater], on: str | Sequence[str], *, data: str | Path | None = None,
    out: str | Path | None = None, limit: int | Mapping[str, int] | None = None, seed: int = 0, device: str = "auto",
    dtype: str = "auto", against_published: bool = False, workers: str | None = None,
) -> dict[str, Any]:  # fmt: skip
    """The scoreboard of raters over benchmarks, as one document.

    raters: names as `raters/` has them, or raters, or one of these.  on: benchmarks, by name, or one.  data: a file or folder as it
    was published, of the one benchmark named; without it, each is read from the folder that REWARDLAB_DATA names.  limit: so many
    items of each, chosen by chance, the same for all raters; by the benchmark's name, other numbers for some ({"": 60,
    "rm-bench": 20}).  out: a folder for scoreboard.json, index.html, verdicts.jsonl (which `outputs:` reads again) and a model card
    for each rater.  against_published: the figures of papers stand beside.  workers: "ray" or "ray:N": processes of a Ray cluster,
    each of which loads the rater by its name, share the items.
    A rater that cannot be loaded, or fails on all items of a benchmark, is left out, and stands under "failed" with the reason.
    Raises RewardlabError, before any model is loaded, for unknown benchmarks and data that cannot be read; and where every rater
    fails.
    """
    # a rater that is named twice is asked once; it is compared with others and not with itself
    raters, on = (list(dict.fromkeys(_several(named))) for named in (raters, on))
    _check(raters, on, data, out, workers)
    at_most = limits(limit, on)
    chosen = [asked(name, data, at_most.get(plain_name(name)), seed) for name in on]
    lost = Lost(alone=len(raters) == 1)
    answered = told_apart([(rater, list(_answers(rater, chosen, device, dtype, lost, workers))) for rater in raters])
    if lost.rows and not answered:
        raise lost.error()
    document = document_of(chosen, answered) | {"failed": lost.rows}
    if against_published:
        document["published"] = [
            {"benchmark": a.name, "rater": p.rater, "figures": dict(p.figures), "source": p.source}
            for a in chosen for p in a.benchmark.published
        ]  # fmt: skip
    if out is not None:
        write_files(Path(out), document, chosen, answered)
    return document | {"out": None if out is None else str(out)}


def _check(raters: Sequence[Any], on: Sequence[str], data: Any, out: str | Path | None, workers: str | None) -> None:
    """Raise RewardlabError, or OSError for a folder that cannot be made, before anything is read."""
    if not on or not raters:
        raise RewardlabError("a scoreboard needs a rater and a benchmark")
    if strange := [rater for rater in raters if not isinstance(rater, str | Rater)]:
        raise RewardlabError(f"a rater is a name, or a Rater, and not {strange[0]!r}; a function is named FILE.py:FUNCTION")
    if data is not None and len(on) != 1:
        raise RewardlabError(f"--data is the file of one benchmark, and {len(on)} are named")
    if workers:
        check_named(*raters)
    if out is not None:
        # hours before it is written to
        results_folder(Path(out), ("scoreboard.json", "verdicts.jsonl", "index.html", "cards"), "benchmarks")


def _several(named: Any) -> list[Any]:
    return [named] if isinstance(named, str | Rater) else list(named)


def told_apart(found: Sequence[tuple[str | Rater, Sequence[Answered]]]) -> list[Answered]:
    """What all raters said. Raters of one name in several files of outputs are called by their file, as `outputs:FILE#RATER`.

    Raises RewardlabError for two others of one name, since a table has one row for it.
    """
    names = Counter(name for _, answers in found for name in {one.rater for one in answers})
    told = []
    for rater, answers in found:
        for one in answers:
            if names[one.rater] > 1 and isinstance(rater, str) and rater.startswith(OUTPUTS):
                one = replace(one, rater=f"{rater.partition('#')[0]}#{one.rater}")
            told.append(one)
    again = [key for key, n in Counter((one.rater, one.asked.name) for one in told).items() if n > 1]
    if again:
        raise RewardlabError(f"two raters are called {again[0][0]}: name each differently, or leave one out")
    return told


def _answers(
    rater: str | Rater, asked: Sequence[Asked], device: str, dtype: str, lost: Lost, workers: str | None = None
) -> Iterator[Answered]:  # fmt: skip
    if isinstance(rater, str) and rater.startswith(OUTPUTS):
        with lost.noting(rater):
            yield from _of_outputs(rater, asked)
        return
    kept = None
    with lost.noting(rater if isinstance(rater, str) else rater.name):
        one = load_rater(rater, device, dtype) if isinstance(rater, str) else rater
        kept = Kept(one)
    for a in asked if kept else ():
        if a.benchmark.asks in one.asks:
            with lost.noting(one.name, a.name):
                yield _answered(one, a.with_texts(), kept, Over(workers, str(rater), device, dtype) if workers else None)


def _of_outputs(name: str, asked: Sequence[Asked]) -> list[Answered]:
    """The verdicts in a file, on those benchmarks that it is about. Raises RewardlabError where it is about none."""
    found: list[Answered] = []
    refused = None
    for a in asked:
        try:
            raters = raters_in(name, a.benchmark, a.name)
        except RewardlabError as problem:
            refused = problem
            continue
        for one in raters:
            own = a.only([i for i, item in enumerate(a.items) if item.id in one.known])
            if own.items:
                found.append(Answered(one.name, own, one.judge(own.items, a.benchmark)))
    if not found:
        raise refused or RewardlabError(f"{name} holds no verdict on an item that is asked")
    return found


class Over(NamedTuple):
    """A cluster, and how its processes load the rater."""

    workers: str
    rater: str
    device: str
    dtype: str


Rated = tuple[list[Verdict], Mapping[str, float]]
"""Verdicts on items, and what they cost of a served model."""


def rating(rater: str, device: str, dtype: str, folder: str) -> Callable[[str, Sequence[Item]], Rated]:
    """What a process of a cluster does: rate items of the benchmark of this name.  folder: in which the rater's name was given."""
    if Path(folder).is_dir():
        # a cluster that runs already was started in another one
        os.chdir(folder)
    one = load_rater(rater, device, dtype)
    return lambda name, items: _rated(one, items, benchmark_of(name))


def _rated(rater: Rater, items: Sequence[Item], benchmark: Benchmark) -> Rated:
    before = rater.cost()
    found = rated_singly(rater, items, benchmark)
    return found, {name: value - before[name] for name, value in rater.cost().items()}


Rounds = Iterator[tuple[list[int], Rated]]
"""The places of items that were rated together, and what was said of them."""


def _in_turn(rater: Rater, asked: Asked, places: Sequence[int]) -> Rounds:
    # a served model is asked about as many items at once as there may be, once it has answered; `cost` is empty for any other rater
    size, rest = FIRST, list(places)
    while rest:
        part, rest = rest[:size], rest[size:]
        began = time.perf_counter()
        said = _rated(rater, [asked.items[i] for i in part], asked.benchmark)
        seconds = time.perf_counter() - began
        yield part, said
        if rater.cost():
            size = BATCH
        else:
            size = min(BATCH, 2 * size) if seconds < PACE / 2 else max(1, size // 2) if seconds > 2 * PACE else size


def _over_cluster(cluster: Over, asked: Asked, places: Sequence[int]) -> Rounds:
    again: list[int] = []
    for part, said in _sent(cluster, asked, [list(places[start : start + BATCH]) for start in range(0, len(places), BATCH)]):
        if isinstance(said, str):
            again += part
        else:
            yield part, said
    # each by itself, to find the item over which processes die; where they die of any, not of all again
    in_a_row = 0
    for (place,), said in _sent(cluster, asked, [[i] for i in again]):
        in_a_row = in_a_row + 1 if isinstance(said, str) else 0
        yield [place], _died(said) if isinstance(said, str) else said
        again.remove(place)
        if in_a_row == DEATHS:
            break
    for place in again:
        yield [place], _died(f"not asked, since processes died over {DEATHS} others in a row")


def _sent(cluster: Over, asked: Asked, parts: Sequence[list[int]]) -> Iterator[tuple[list[int], Rated | str]]:
    """What was said of each part; a text, the reason, where processes died over it."""
    if not parts:
        return
    about, sizes = (cluster.rater, cluster.device, cluster.dtype, os.getcwd()), [len(part) for part in parts]
    calls = [(asked.name, [asked.items[i] for i in part]) for part in parts]
    function = f"{__name__}:rating"
    yield from zip(
        parts, spread(cluster.rater, cluster.workers, function, about, calls, sizes, cluster.device, hidden=True, crashed=str),
        strict=True,
    )  # fmt: skip


def _died(why: str) -> Rated:
    """Of an item over which processes died, as where native code crashes or memory runs out."""
    return [Verdict(why=why, failed=True)], {}


def _answered(rater: Rater, asked: Asked, kept: Kept, cluster: Over | None = None) -> Answered:
    verdicts = kept.of(asked.items, asked.benchmark)
    # longest first: what does not fit is noticed at once, and the time left is not told too short
    size = [-sum(map(len, (item.question, *item.replies))) for item in asked.items]
    new = sorted((i for i, v in enumerate(verdicts) if v is None), key=size.__getitem__)
    began, cost = time.perf_counter(), Counter[str]()
    rounds = _over_cluster(cluster, asked, new) if cluster and new else _in_turn(rater, asked, new)
    title = asked.benchmark.title
    with Bar(f"{rater.name} on {title}", len(asked.items), len(asked.items) - len(new)) as bar, resumable(verdicts):
        for part, (found, spent) in rounds:
            kept.add([asked.items[i] for i in part], asked.benchmark, found)
            cost.update(spent)
            for i, verdict in zip(part, found, strict=True):
                verdicts[i] = verdict
            bar.advance(n=len(part))
    # said here, since verdicts that are kept may be older than the word
    whole = [replace(v, judged=v.judged or rater.writes) for v in verdicts if v is not None]
    if all(v.failed for v in whole):
        why, where = first_reason(asked.items, whole, failed=True)
        raise RewardlabError(f"it failed on all {len(whole):,} items; first, on {where}: {why}")
    blind = rater.blind and not rater.sees and any(item.pictures for item in asked.items)
    spent_in_all = dict.fromkeys(rater.cost(), 0.0) | cost
    return Answered(rater.name, asked, whole, time.perf_counter() - began if new else 0.0, rater.scale, blind, spent_in_all)
