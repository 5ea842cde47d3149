"""Raters on benchmarks: every rater is asked about every item, and the figures come out with their intervals."""

from __future__ import annotations

import importlib
import math
import random
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from rewardlab import registry
from rewardlab.core import seed_of
from rewardlab.data.files import write
from rewardlab.errors import RewardlabError, unknown
from rewardlab.processes.cluster import check_named, spread
from rewardlab.scoreboard import figures as statistics
from rewardlab.scoreboard import own_pairs
from rewardlab.scoreboard.benchmark import Benchmark
from rewardlab.scoreboard.biases import biases
from rewardlab.scoreboard.card import card, file_name
from rewardlab.scoreboard.figures import Marks
from rewardlab.scoreboard.items import Item, Verdict, missing
from rewardlab.scoreboard.kept import Kept
from rewardlab.scoreboard.page import page
from rewardlab.scoreboard.raters import OUTPUTS, Rater, load_rater
from rewardlab.scoreboard.raters.outputs import raters_in
from rewardlab.scoreboard.raters.rater import rated
from rewardlab.settings.domain import POSITIVE
from rewardlab.util.files import write_json, write_text
from rewardlab.util.progress import Bar

FIRST, BATCH, PACE = 4, 64, 10.0
"""Items that are rated together, at first and at most, and the seconds that this should take: so often the progress is told, and so
much a kill costs."""
EVERY = ""
"""In limits by benchmark: of each that is not named."""


@dataclass(frozen=True)
class Asked:
    """A benchmark with the items that are asked, of so many (`of`), and the resamples (`index`) of its intervals."""

    name: str
    benchmark: Benchmark
    items: list[Item]
    seed: int
    of: int = 0

    @cached_property
    def index(self) -> list[np.ndarray]:
        return statistics.resamples(self.items, self.seed)

    def only(self, places: Sequence[int]) -> Asked:
        """The same with some of its items: those that a file of outputs is about."""
        return self if len(places) == len(self.items) else replace(self, items=[self.items[i] for i in places])

    def with_texts(self) -> Asked:
        """The same without items whose texts are not at hand. Raises RewardlabError where none is left."""
        known = [i for i, item in enumerate(self.items) if not item.blank]
        if not known:
            raise RewardlabError(
                f"the replies of {self.benchmark.title} are not among the data at hand: give --data FILE, or outputs:FILE of others"
            )
        return self.only(known)


@dataclass(frozen=True)
class Answered:
    """What one rater said of all items of one benchmark.  seconds: 0 for what was known before.  blind: items with images were
    rated by their text alone.  cost: of a served model."""

    rater: str
    asked: Asked
    verdicts: list[Verdict]
    seconds: float = 0.0
    scale: bool = False
    blind: bool = False
    cost: Mapping[str, float] = field(default_factory=dict)


def benchmarks() -> list[str]:
    """The names of all benchmarks of rewards; the last is a file of pairs of one's own. Those of other things make none."""
    found = sorted(row["name"] for row in registry.rows() if row["kind"] == "benchmark" and _of_module(row["name"]) is not None)
    return [*found, own_pairs.NAME]


def benchmark_of(name: str) -> Benchmark:
    """The benchmark of rewards of this name, in either spelling. Raises RewardlabError for another one."""
    known = [row["name"] for row in registry.rows() if row["kind"] == "benchmark"]
    plain = plain_name(name)
    if plain == own_pairs.NAME:
        return own_pairs.benchmark
    found = _of_module(plain) if plain in known else None
    if found is None and plain in known:
        raise RewardlabError(f"{plain} is a benchmark of other things than rewards; run it with: rewardlab study {plain}")
    if found is None:
        raise unknown("benchmark", name, benchmarks())
    return found


def _of_module(name: str) -> Benchmark | None:
    return getattr(importlib.import_module(registry.method(name).__module__), "benchmark", None)


def scoreboard(
    raters: Sequence[str | Rater], on: Sequence[str], *, data: str | Path | None = None, out: str | Path | None = None,
    limit: int | Mapping[str, int] | None = None, seed: int = 0, device: str = "auto", dtype: str = "auto",
    against_published: bool = False, workers: str | None = None,
) -> dict[str, Any]:  # fmt: skip
    """The scoreboard of raters over benchmarks, as one document.

    raters: names as `raters/` has them, or raters.  on: benchmarks, by name.  data: a file or folder as it was published, of the
    one benchmark named; without it, each is read from the folder that REWARDLAB_DATA names.  limit: so many items of each, chosen
    by chance, the same for all raters; by the benchmark's name, other numbers for some ({"": 60, "rm-bench": 20}).
    out: a folder for scoreboard.json, index.html, verdicts.jsonl (which `outputs:` reads again) and a model card for each rater.
    against_published: the figures of papers stand beside.  workers: "ray" or "ray:N": processes of a Ray cluster, each of which
    loads the rater by its name, share the items.
    Raises RewardlabError, before any model is loaded, for unknown names and data that cannot be read.
    """
    if data is not None and len(on) != 1:
        raise RewardlabError(f"--data is the file of one benchmark, and {len(on)} are named")
    if workers:
        check_named(*raters)
    limits = _limits(limit, on)
    chosen = [asked(name, data, limits.get(plain_name(name)), seed) for name in dict.fromkeys(on)]
    if not chosen or not raters:
        raise RewardlabError("a scoreboard needs a rater and a benchmark")
    answered = [found for rater in raters for found in _answers(rater, chosen, device, dtype, workers)]
    document = _document(chosen, answered)
    if against_published:
        document["published"] = [
            {"benchmark": a.name, "rater": p.rater, "figures": dict(p.figures), "source": p.source}
            for a in chosen for p in a.benchmark.published
        ]  # fmt: skip
    if out is not None:
        _write(Path(out), document, chosen, answered)
    return document | {"out": None if out is None else str(out)}


def _limits(limit: int | Mapping[str, int] | None, on: Sequence[str]) -> dict[str, int]:
    """How many items are asked of those benchmarks that are not asked whole. Raises RewardlabError for one that is not asked."""
    said = {} if limit is None else {EVERY: limit} if isinstance(limit, int) else limit
    known = {plain_name(name) for name in on}
    limits = dict.fromkeys(known, said[EVERY]) if EVERY in said else {}
    for name, count in said.items():
        if name != EVERY and plain_name(name) not in known:
            raise unknown("benchmark with a limit", name, known)
        POSITIVE.check(f"the limit of {name or 'each benchmark'}", count)
    return limits | {plain_name(name): count for name, count in said.items() if name != EVERY}


def plain_name(name: str) -> str:
    """A benchmark's name as its file has it, from either spelling."""
    return name.replace("-", "_").replace(".", "_").lower()


def asked(name: str, data: str | Path | None = None, limit: int | None = None, seed: int = 0) -> Asked:
    """A benchmark with its items, or some of them, chosen by chance."""
    benchmark = benchmark_of(name)
    items = benchmark.items(data)
    of = len(items)
    if limit is not None and limit < len(items):
        # in the order of the file, whichever are chosen
        chosen = random.Random(seed_of("scoreboard", seed)).sample(range(len(items)), limit)
        items = [items[i] for i in sorted(chosen)]
    return Asked(plain_name(name), benchmark, items, seed, of)


def _answers(
    rater: str | Rater, asked: Sequence[Asked], device: str, dtype: str, workers: str | None = None
) -> Iterator[Answered]:  # fmt: skip
    if isinstance(rater, str) and rater.startswith(OUTPUTS):
        yield from _of_outputs(rater, asked)
        return
    one = load_rater(rater, device, dtype) if isinstance(rater, str) else rater
    kept = Kept(one)
    for a in asked:
        if a.benchmark.asks in one.asks:
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


def rating(rater: str, device: str, dtype: str) -> Callable[[str, Sequence[Item]], Rated]:
    """What a process of a cluster does: rate items of the benchmark of this name."""
    one = load_rater(rater, device, dtype)
    return lambda name, items: _rated(one, items, benchmark_of(name))


def _rated(rater: Rater, items: Sequence[Item], benchmark: Benchmark) -> Rated:
    before = rater.cost()
    found = rated(rater, items, benchmark)
    return found, {name: value - before[name] for name, value in rater.cost().items()}


Rounds = Iterator[tuple[list[int], Rated]]
"""The places of items that were rated together, and what was said of them."""


def _in_turn(rater: Rater, asked: Asked, places: Sequence[int]) -> Rounds:
    # a served model is asked about as many items at once as there may be; `cost` is empty for any other rater
    size, rest = BATCH if rater.cost() else FIRST, list(places)
    while rest:
        part, rest = rest[:size], rest[size:]
        began = time.perf_counter()
        said = _rated(rater, [asked.items[i] for i in part], asked.benchmark)
        seconds = time.perf_counter() - began
        yield part, said
        if not rater.cost():
            size = min(BATCH, 2 * size) if seconds < PACE / 2 else max(1, size // 2) if seconds > 2 * PACE else size


def _over_cluster(cluster: Over, asked: Asked, places: Sequence[int]) -> Rounds:
    parts = [list(places[start : start + BATCH]) for start in range(0, len(places), BATCH)]
    about, sizes = (cluster.rater, cluster.device, cluster.dtype), [len(part) for part in parts]
    calls = [(asked.name, [asked.items[i] for i in part]) for part in parts]
    answers = spread(cluster.rater, cluster.workers, f"{__name__}:rating", about, calls, sizes, cluster.device, hidden=True)
    yield from zip(parts, answers, strict=True)


def _answered(rater: Rater, asked: Asked, kept: Kept, cluster: Over | None = None) -> Answered:
    verdicts = kept.of(asked.items, asked.benchmark)
    # longest first: what does not fit is noticed at once, and the time left is not told too short
    size = [-sum(map(len, (item.question, *item.replies))) for item in asked.items]
    new = sorted((i for i, v in enumerate(verdicts) if v is None), key=size.__getitem__)
    began, cost = time.perf_counter(), Counter[str]()
    rounds = _over_cluster(cluster, asked, new) if cluster and new else _in_turn(rater, asked, new)
    with Bar(f"{rater.name} on {asked.benchmark.title}", len(asked.items), len(asked.items) - len(new)) as bar:
        for part, (found, spent) in rounds:
            kept.add([asked.items[i] for i in part], asked.benchmark, found)
            cost.update(spent)
            for i, verdict in zip(part, found, strict=True):
                verdicts[i] = verdict
            bar.advance(n=len(part))
    whole = [v for v in verdicts if v is not None]
    blind = rater.blind and not rater.sees and any(item.pictures for item in asked.items)
    spent_in_all = dict.fromkeys(rater.cost(), 0.0) | cost
    return Answered(rater.name, asked, whole, time.perf_counter() - began if new else 0.0, rater.scale, blind, spent_in_all)


# ---- what comes out -----------------------------------------------------------------------------------------------------


def _document(asked: Sequence[Asked], answered: Sequence[Answered]) -> dict[str, Any]:
    rows: dict[str, dict[str, Any]] = {}
    apart: list[dict[str, Any]] = []
    for a in asked:
        headlines, marks = {}, []
        for one in (x for x in answered if x.asked.name == a.name):
            entry, headline = _entry(one)
            rows.setdefault(one.rater, {})[a.name] = entry
            # what was asked about other items is not compared
            if one.asked is a:
                headlines[one.rater] = headline
                marks.append(_marks(a, one.verdicts))
        prompts = statistics.prompts_behind(a.benchmark.figures, marks, [item.cluster for item in a.items])
        apart += [{"benchmark": a.name, **row} for row in statistics.differences(headlines, prompts)]
    statistics.holm(apart)
    about = {
        a.name: {
            "title": a.benchmark.title, "items": len(a.items), "of": a.of, "asks": a.benchmark.asks,
            "headline": a.benchmark.headline, "chance": dict(a.benchmark.chance), "lacks": a.benchmark.lacks,
        }
        for a in asked
    }  # fmt: skip
    return {"benchmarks": about, "raters": rows, "differences": apart}


def figures_of(asked: Asked, verdicts: Sequence[Verdict]) -> dict[str, float]:
    """The figures of these verdicts, the headline first."""
    return dict(asked.benchmark.figures(_marks(asked, verdicts)))


def _marks(asked: Asked, verdicts: Sequence[Verdict]) -> Marks:
    rows = [asked.benchmark.marks(item, verdict) for item, verdict in zip(asked.items, verdicts, strict=True)]
    return Marks.of(asked.items, rows)


def _entry(one: Answered) -> tuple[dict[str, Any], tuple[float, np.ndarray]]:
    """The figures of a rater on a benchmark, and the first with its resamples: NaN where these items do not say it."""
    benchmark, items = one.asked.benchmark, one.asked.items
    marks = _marks(one.asked, one.verdicts)
    found = benchmark.figures(marks)
    replicates = statistics.bootstrap(benchmark.figures, marks, one.asked.index)
    entry = {
        "items": len(items),
        "figures": {
            name: {"value": float(value), "ci95": statistics.interval(float(value), replicates[name], len(items))}
            for name, value in found.items() if not math.isnan(value)
        },
        "no_verdict": float(np.mean([missing(i, v, benchmark.asks) for i, v in zip(items, one.verdicts, strict=True)])),
        "cut": sum(v.cut for v in one.verdicts), "tokens": sum(v.tokens for v in one.verdicts), "seconds": round(one.seconds, 2),
        "biases": biases(items, one.verdicts, one.scale) if benchmark.asks == "replies" else {},
        "cost": dict(one.cost), "blind": one.blind, "why": next((v.why for v in one.verdicts if v.why), ""),
    }  # fmt: skip
    first = next(iter(found))
    return entry, (float(found[first]), replicates[first])


def _write(out: Path, document: Mapping[str, Any], asked: Sequence[Asked], answered: Sequence[Answered]) -> None:
    out.mkdir(parents=True, exist_ok=True)
    write_json(out / "scoreboard.json", document)
    rows = [
        {"benchmark": one.asked.name, "rater": one.rater, "id": item.id, **verdict.to_json()}
        for one in answered for item, verdict in zip(one.asked.items, one.verdicts, strict=True)
    ]  # fmt: skip
    write(out / "verdicts.jsonl", rows)
    items, judged = {a.name: a.items for a in asked}, dict[str, dict[str, list[Verdict]]]()
    for one in answered:
        if any(one.asked is a for a in asked):
            judged.setdefault(one.asked.name, {})[one.rater] = one.verdicts
    write_text(out / "index.html", page(document, items, judged))
    (out / "cards").mkdir(exist_ok=True)
    for rater in document["raters"]:
        write_text(out / "cards" / file_name(rater), card(rater, document))


# ---- which benchmarks there are -----------------------------------------------------------------------------------------


def at_hand() -> dict[str, dict[str, Any]]:
    """Each benchmark: its title, how many items are at hand, and where (or what its file is called on the hub)."""
    found, names = {}, benchmarks()
    with Bar("counting items", len(names)) as bar:
        for name in names:
            one = benchmark_of(name)
            try:
                files, items = one.files(), one.made or sum(not item.blank for item in one.items())
                where = str(files[0].parent) if items else f"{files[0].parent}: no replies, but outputs of others"
            except RewardlabError:
                items, where = 0, f"not here: --data FILE{f' or hf:{one.hub}' if '/' in one.hub and not one.load else ''}"
            found[name] = {"title": one.title, "items": items, "where": where}
            bar.advance()
    return found


def with_data() -> list[str]:
    """The benchmarks whose data is at hand. Raises RewardlabError where there is none."""
    found = [name for name, about in at_hand().items() if about["items"]]
    if not found:
        raise RewardlabError("no benchmark's data is at hand: set REWARDLAB_DATA to its folder, or name one with --on and --data")
    return found
