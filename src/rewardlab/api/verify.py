"""Judge files of replies with a verifier, on all cores."""

from __future__ import annotations

import functools
import json
import os
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice, tee
from pathlib import Path
from typing import Any

import numpy as np

from rewardlab import registry
from rewardlab.api.reply_rows import BLANK, Broken, Columns, Item, begun
from rewardlab.clients.client import client_of
from rewardlab.clients.endpoint import is_served
from rewardlab.core import Message, Problem, Run, Score, Trajectory, Turn
from rewardlab.data.files import TABLES, Row, check_out, check_source, count_rows, encoded, output
from rewardlab.errors import RewardlabError, unknown
from rewardlab.processes.pool import Done, Failed, Workers
from rewardlab.registry import names
from rewardlab.registry.formula import read_reward
from rewardlab.registry.parts import shared_part
from rewardlab.registry.settings import fit
from rewardlab.rewards.reward import Reward
from rewardlab.settings.hyperparameters import hyperparameters
from rewardlab.settings.old_names import unknown_setting
from rewardlab.text.answers import NO_ANSWER
from rewardlab.util.messages import said
from rewardlab.util.progress import Bar, console
from rewardlab.verifiers.contract import Pair, Verdict, Verifier

CHUNK = 32
"""Rows per call of a worker process."""
ASKED = 128
"""Rows about which a served model is asked together."""
ALONE = 5.0
"""Seconds for which this process judges alone: worker processes take about as long to start."""


def verify_file(
    kind: str, source: Path | str, out: Path | str, settings: Mapping[str, Any] | None = None, *, prompt_column: str = "prompt",
    answer_column: str = "answer", response_column: str = "response", workers: str | None = None,
) -> dict[str, Any]:  # fmt: skip
    """Write each row of `source` to `out` with its verdict: "correct", "extracted" and "why" are added, and replace columns of
    these names. "-" is standard input or output.

    source: JSON lines, or a .csv or .parquet file.  out: JSON lines, one for each line of `source`, in its order; it may be the
    same file, and is replaced completely or not at all. A line that cannot be judged gets "correct": null, and "why" says what is
    wrong with which line; if it is not a JSON object, it is kept as it is under "raw". A blank line stays blank.
    workers: "ray" or "ray:N", to judge over a Ray cluster.

    Returns how many rows are right, wrong (of these no_answer: those in which the verifier finds none), without a verdict and
    broken, and rows per second. Raises RewardlabError, before anything is written, for a wrong name, setting or path, and for a
    missing package.
    """
    # made and refused once before any file is opened
    kind, values = fitted(*named(kind, settings or {}))
    columns = Columns(prompt_column, answer_column, response_column)
    check_paths(source, out)
    tally, started = Tally(), time.perf_counter()
    items = begun(source, columns)
    with output(out) as file, Bar(f"verify {kind}", count_rows(source)) as bar:
        for item in _judge_all(kind, values, items, columns, workers):
            row = item.row() if isinstance(item, Broken) else item
            tally.add(item)
            file.write(encoded(row) if row else "\n")
            bar.advance()
    return {"verifier": kind, **tally.document(time.perf_counter() - started), "out": str(out)}


@dataclass
class Tally:
    """How many rows got which verdict, and what is wrong with the others."""

    verdicts: Counter[bool | None] = field(default_factory=Counter)
    unfound: int = 0
    broken: list[str] = field(default_factory=list)
    causes: Counter[str] = field(default_factory=Counter)

    def add(self, item: Item) -> None:
        if item is BLANK:
            return
        if isinstance(item, Broken):
            self.broken.append(item.why)
            return
        self.verdicts[item["correct"]] += 1
        self.unfound += item["correct"] is False and NO_ANSWER in item["why"]
        self.causes.update([item["why"]] if item["correct"] is None else ())

    def document(self, seconds: float) -> dict[str, Any]:
        rows = self.verdicts.total() + len(self.broken)
        return {
            "rows": rows, "right": self.verdicts[True], "wrong": self.verdicts[False], "no_answer": self.unfound,
            "no_verdict": self.verdicts[None], "broken": len(self.broken), "rows_per_second": round(rows / seconds, 1),
            "broken_lines": self.broken, "no_verdict_because": self.causes.most_common(1)[0][0] if self.causes else None,
        }  # fmt: skip


class Judging:
    """A reward function of the user as a verifier: a reply that it pays at least 1 is right."""

    def __init__(self, reward: Reward):
        self.reward = reward

    def check_all(self, pairs: list[Pair]) -> list[Verdict]:
        """One verdict for each pair. Raises RewardlabError for an error in the function, and for NaN and infinity."""
        rows = [[_as_trajectory(pair)] for pair in pairs]
        return [_verdict(score) for (score,) in self.reward(rows, Run(None))]


def _as_trajectory(pair: Pair) -> Trajectory:
    problem = Problem((Message("user", pair.prompt),), pair.answer, dict(pair.meta))
    # bytes stand for tokens, since there is no tokenizer
    ids = np.frombuffer(str(pair.response).encode("utf-8", "replace"), np.uint8).astype(np.int64)
    return Trajectory(
        problem, (Turn(None, np.zeros(1, np.int64), text=pair.prompt), Turn("policy", ids, text=pair.response)), "end"
    )


def _verdict(score: Score) -> Verdict:
    if score.total is None:
        return Verdict(None, score.extracted, score.why or "no verdict")
    why = f"it pays {score.total:g}" + (f": {score.why}" if score.why else "")
    return Verdict(score.total >= 1, score.extracted, why, value=score.total)


def verifier(kind: str, settings: Mapping[str, Any] | None = None) -> Verifier | Judging:
    """The verifier of this name, with its settings. Raises RewardlabError if it needs a package that is not installed."""
    if names.SOURCE.fullmatch(kind):
        return Judging(read_reward(kind))
    made = registry.part("reward", kind, **(settings or {}))
    made.require()
    return made


def named(kind: str, settings: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
    """A verifier's name and settings; openai:URL#NAME stands for the verifier that asks this model."""
    return ("judged_answer", {"model": kind, **settings}) if is_served(kind) else (kind, settings)


def fitted(kind: str, settings: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """The verifier's name, and its settings with values that were written as text read; raises RewardlabError for wrong ones."""
    known = registry.verifiers()
    if names.SOURCE.fullmatch(kind):
        if settings:
            raise RewardlabError(f"settings of a function are written with it: {kind}({', '.join(f'{k}=...' for k in settings)})")
        verifier(kind)
        return kind, {}
    if kind not in known:
        raise unknown("verifier", kind, known)
    function = shared_part("reward", kind).function
    for name in settings:
        if name not in hyperparameters(function):
            raise unknown_setting(f"setting of {kind}", name, hyperparameters(function))
    values = {name: registry.parse_value(v) if isinstance(v, str) else v for name, v in settings.items()}
    values = {name: fit(function, name, value) for name, value in values.items()}
    made = verifier(kind, values)
    if not isinstance(made, Judging) and (model := asked_model(kind, made.settings)) is not None:
        # made once: without its package or its key no row could be judged
        client_of(model)
    return kind, values


def asked_model(kind: str, settings: Mapping[str, Any]) -> str | None:
    """The served model that a verifier asks; None if it judges by itself."""
    return settings.get({"judged_answer": "model", "named_verifier": "judge"}.get(kind, "")) or None


def check_paths(source: Path | str, out: Path | str) -> None:
    """Raise RewardlabError unless `source` can be read and `out` be written."""
    check_source(source, "--in")
    check_out(out)
    if Path(out).suffix.lower() in TABLES:
        raise RewardlabError(f"{out}: the output is JSON lines; give the name of a .jsonl file")


def judge(kind: str, settings: Mapping[str, Any], rows: list[Row], columns: Columns) -> list[Row]:
    """The rows with their verdicts. Their other columns are the problem's data."""
    # a worker process gets it as a list, since calls travel as JSON
    columns = Columns(*columns)
    pairs = [_pair(row, columns) for row in rows]
    # settings travel as text, since the keys of a cache must be hashable
    verdicts = _cached_verifier(kind, json.dumps(settings)).check_all(pairs)
    return [row | {"correct": v.correct, "extracted": v.extracted, "why": v.why} for row, v in zip(rows, verdicts, strict=True)]


def _pair(row: Row, columns: Columns) -> Pair:
    prompt = row.get(columns.prompt, "")
    # a function that asks for the prompt gets it as text or as messages, as in training, and not as the column has it
    data = row if isinstance(prompt, str) else {name: value for name, value in row.items() if name != columns.prompt}
    return Pair(_reply(row[columns.response]), row[columns.answer], str(said(prompt)), data)


def _reply(value: Any) -> Any:
    """A reply as text: a number in a file stands for what was written, and messages for what the last of them says."""
    return str(value) if isinstance(value, int | float) and not isinstance(value, bool) else said(value)


@functools.lru_cache(maxsize=8)
def _cached_verifier(kind: str, settings: str) -> Verifier | Judging:
    """The verifier, loaded once per process: finding a part by its name reads all files of its folder."""
    return verifier(kind, json.loads(settings))


def _judge_all(
    kind: str, settings: Mapping[str, Any], items: Iterator[Item], columns: Columns, workers: str | None
) -> Iterator[Item]:
    """The items with their verdicts, in order."""
    return _judge_over(workers, kind, settings, items, columns) if workers else _judge_here(kind, settings, items, columns)


def _judge_here(kind: str, settings: Mapping[str, Any], items: Iterator[Item], columns: Columns) -> Iterator[Item]:
    """The first items are judged in this process, the others in worker processes; all of them here where those do not start."""
    cores, started = len(os.sched_getaffinity(0)), time.monotonic()
    # one process asks a server, since each would have a budget of its own
    alone = asked_model(kind, settings) is not None
    chunks = _chunks(items, ASKED if alone else CHUNK)
    for chunk in chunks:
        yield from _merged(chunk, judge(kind, settings, _whole(chunk), columns))
        if cores > 1 and not alone and time.monotonic() - started > ALONE:
            break
    # a chunk has no time limit, since each verifier limits the time of every reply
    pool = Workers("rewardlab.api.verify:judge", seconds=1e6, memory=-1, pinned=True)
    try:
        sent, kept = tee(chunks)
        calls = ((kind, settings, _whole(chunk), columns) for chunk in sent)
        # some chunks per core at a time: no core waits long, and memory does not grow with the file
        for chunk, result in zip(kept, _in_workers(pool, _chunks(calls, 16 * cores)), strict=True):
            yield from _merged(chunk, _judged(chunk, result))
    finally:
        pool.close()


def _in_workers(pool: Workers, blocks: Iterable[list[Any]]) -> Iterator[Done | Failed]:
    """The verdicts of calls, by the pool; by this process alone from where a process of the pool does not start."""
    alone = False
    for calls in blocks:
        if not alone:
            try:
                yield from pool.map(calls)
                continue
            except RewardlabError as e:
                # a busy machine may take longer to start one than the pool waits: what is judged already is not to be lost for that
                console.print(f"note: {e}; rows are judged in one process", highlight=False, markup=False, soft_wrap=True)
                alone = True
        yield from (Done(judge(*call)) for call in calls)


def judging(kind: str, settings: Mapping[str, Any], columns: Columns) -> Callable[[list[Row]], list[Row]]:
    """What a process of a cluster does: judge rows."""
    return lambda rows: judge(kind, settings, rows, columns)


def _judge_over(workers: str, kind: str, settings: Mapping[str, Any], items: Iterator[Item], columns: Columns) -> Iterator[Item]:
    """All items are judged over a cluster."""
    from rewardlab.processes.ray import RayWorkers

    with RayWorkers("rewardlab.api.verify:judging", workers, about=(kind, settings, columns)) as cluster:
        # read twice: by the cluster, some chunks ahead, and here, with the lines that cannot be judged
        sent, kept = tee(_chunks(items, CHUNK))
        for chunk, result in zip(kept, cluster.stream((_whole(chunk),) for chunk in sent), strict=False):
            yield from _merged(chunk, _judged(chunk, result))


def _judged(chunk: list[Item], result: Done | Failed) -> list[Row]:
    return result.value if isinstance(result, Done) else [_unjudged(row, result.why) for row in _whole(chunk)]


def _whole(chunk: list[Item]) -> list[Row]:
    """The rows of a chunk that can be judged."""
    return [item for item in chunk if not isinstance(item, Broken)]


def _merged(chunk: list[Item], judged: list[Row]) -> Iterator[Item]:
    """The chunk with its rows replaced by the judged ones."""
    rows = iter(judged)
    return (item if isinstance(item, Broken) else next(rows) for item in chunk)


def _unjudged(row: Row, why: str) -> Row:
    return row | {"correct": None, "extracted": "", "why": f"the verifier failed: {why}"}


def _chunks(items: Iterable[Any], size: int) -> Iterator[list[Any]]:
    items = iter(items)
    while chunk := list(islice(items, size)):
        yield chunk
