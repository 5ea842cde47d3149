"""The data tools on files: read, choose or order rows, write them, and say what was left out and why.

Every tool takes `out`, the file to write, which may be the input; and `dropped`, the file for the rows that are left out (None:
OUT.dropped.jsonl; where the input is replaced, rows are added to it). It returns counts, and raises RewardlabError before anything
is written for whatever cannot be read, written or understood.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from rewardlab.errors import RewardlabError, unknown

from . import duplicates, filters, ordering
from .conversations import ROLES, WHO, decoded, first_of, is_conversation, text_in
from .drops import Drop, Fates, first, leaving, staying
from .files import Row
from .mixing import Source, mixture
from .pair_rows import paired
from .picture_rows import folder_of, shown_by
from .tables import Places, Table
from .values import number_of, text_of, value_of

File = Path | str
Limits = str | Sequence[float | None]
"""Bounds as a text ("0.1:0.9") or as a pair of numbers, of which one may be None."""
Judge = Callable[[Sequence[Row]], Fates]
ORDERS = ("easy-first", "hard-first", "bands", "target")
OF_ORDERS: Mapping[str, Sequence[str]] = {
    "hard": ORDERS[:3], "stages": ("bands",), "cuts": ("bands",), "target": ("target",), "width": ("target",),
}  # fmt: skip
"""The orders that read a setting of `curriculum_file`; every order reads the others."""
PASS_RATE, ANSWER = "pass_rate", "answer"


def filter_file(
    source: File, out: File, dropped: File | None = None, *, between: Mapping[str, Limits] | None = None,
    length: Mapping[str, Limits] | None = None, answer_column: str | None = None, judge: Judge | None = None,
) -> dict[str, Any]:  # fmt: skip
    """Rows stay that survive every rule, tried in this order: the answer, numbers, lengths, the judge.

    between: columns of numbers and their bounds ("0.1:0.9", "25%:", or (0.1, 0.9); see `filters.Bounds`).  length: columns of
    texts and the bounds of their lengths in characters.  answer_column: rows without an answer go; None is "answer", where the
    file has it.  judge: called with the rows that survived the other rules (`rewardlab.api.own_answers` makes one of a reward).
    Quantiles are those of all rows of the file.
    """
    numbers = {column: filters.Bounds.read(text) for column, text in (between or {}).items()}
    lengths = {column: filters.Bounds.read(text) for column, text in (length or {}).items()}
    places = Places("filter", [source], out, dropped)
    table = Table.load(source)
    table.require(*numbers, *lengths)
    answers = _answer_column(table, answer_column)
    fates: list[Fates] = [[None] * len(table.rows)]
    if table.has(answers):
        fates.append(filters.broken_answers(table.rows, answers))
    fates += [filters.within(table.rows, column, bounds) for column, bounds in numbers.items()]
    fates += [filters.length_within(table.rows, column, bounds) for column, bounds in lengths.items()]
    fate = first(*fates)
    if judge is not None:
        judged = iter(judge(staying(table.rows, fate)))
        fate = [drop or next(judged) for drop in fate]
    return places.finish([table], _left_out(table, fate), staying(table.rows, fate))


def dedupe_file(
    source: File, out: File, dropped: File | None = None, *, against: Sequence[File] = (), column: str = "prompt",
    answer_column: str | None = None, similarity: float = duplicates.SIMILARITY, ngram: int = duplicates.NGRAM,
    overlap: int = duplicates.OVERLAP,
) -> dict[str, Any]:  # fmt: skip
    """Rows go whose text is in a test set, then those whose text equals, or nearly equals, that of an earlier row.

    column: of the texts.  answer_column: longer answers (worked solutions) are compared with those of the test set too, and
    duplicates whose answers differ are pointed out; None is "answer", where the file has it.  similarity, ngram: see
    `duplicates.duplicates`.  against: files of test sets, with the same columns.  overlap: words in a row, see
    `duplicates.contaminated`.  What the system says is not compared, nor is an instruction with which nine in ten texts begin or
    end, since it would make all of them alike; "not_compared" says which.
    """
    places = Places("dedupe", [source], out, dropped, kept=against)
    table, tests = Table.load(source), [Table.load(test) for test in against]
    for of in (table, *tests):
        of.require(column)
        if of is not table and of.broken:
            raise RewardlabError(f"{of.source}, {of.broken[0].place}: {of.broken[0].why}; a test set is compared whole")
    named = _answer_column(table, answer_column)
    texts, answers = _texts(table, column), _texts(table, named)
    ends = duplicates.shared_ends(texts)
    texts = duplicates.without_ends(texts, *ends)
    tested, answered = [of for test in tests for of in _own(test, column, ends)], _placed(tests, named)
    of_tests = dict(_alike([shown for test in tests for shown in _shown(test, column)]))
    fate: Fates = [None] * len(texts)
    # rows that show other pictures ask for other things, whatever their words
    for shown, rows in _alike(_shown(table, column)):
        known, solved = ([each[i] for i in of_tests.get(shown, ())] for each in (tested, answered))
        said, told, at = ([of[i] for i in rows] for of in (texts, answers, table.places))
        found = first(duplicates.contaminated(said, known, overlap), duplicates.same_answers(told, solved))
        for i, drop in zip(rows, _once(found, said, told, at, similarity, ngram), strict=True):
            fate[i] = drop
    ignored = {"not_compared": " ... ".join(" ".join(end.split()) for end in ends if end)} if any(ends) else {}
    return places.finish([table], _left_out(table, fate), staying(table.rows, fate), **ignored)


def _once(fate: Fates, texts: Sequence[str], answers: Sequence[str], places: Sequence[str], similarity: float, ngram: int) -> Fates:
    """The fates of texts, of which those that stay are to stay once: what is taken out for the test's sake is no reason to take out
    another."""
    own = [i for i, drop in enumerate(fate) if drop is None]
    said, told, at = ([of[i] for i in own] for of in (texts, answers, places))
    found = dict(zip(own, duplicates.duplicates(said, similarity, ngram, at, told), strict=True))
    return [found.get(i, drop) for i, drop in enumerate(fate)]


def pairs_file(
    source: File, out: File, dropped: File | None = None, *, choose: str = "best-worst", gap: float = 0.0,
    prompt_column: str = "prompt", reply_column: str | None = None, score_column: str | None = None, seed: int = 0,
) -> dict[str, Any]:  # fmt: skip
    """Preference pairs (columns chosen, rejected, chosen_score, rejected_score, gap) from scored replies.

    A row holds a prompt with lists of replies and scores, or one reply and its score; then rows with equal prompts go together.
    choose, gap, seed: see `pairing.pairs`.  reply_column, score_column: None is the first that there is of those that the tools of
    rewardlab write (replies and scores, response and correct). Other columns of a prompt's rows stay where they agree.
    """
    places = Places("pairs", [source], out, dropped)
    table = Table.load(source)
    table.require(prompt_column)
    rows, fate = paired(table, choose, gap, prompt_column, reply_column, score_column, seed)
    return places.finish([table], _left_out(table, fate), rows, prompts=len({text_of(row[prompt_column]) for row in rows}))


def mix_files(
    sources: Mapping[str, float], out: File, dropped: File | None = None, *, rows: int | None = None, repeat: float = 1.0,
    seed: int = 0, source_column: str = "source", rename: Mapping[str, str] | None = None,
) -> dict[str, Any]:  # fmt: skip
    """Rows of several files by weight, shuffled, with the file's name in `source_column`.

    sources: files and their weights, above 0.  rows: None is the largest mixture in which every file can give its part.  repeat:
    how often a file may be gone through at most.  rename: new names of columns by their old ones, wherever there are such; a column
    that a file lacks is null in its rows.
    """
    weights = {name: _weight(name, weight) for name, weight in sources.items()}
    # rows that are not sampled are in their file alone
    places = Places("mix", [], out, dropped, kept=list(sources))
    tables = {source: Table.load(source) for source in sources}
    _check_renamed(list(tables.values()), rename or {})
    for table in tables.values():
        if table.has(source_column):
            raise RewardlabError(f"{table.source} has a column {source_column} already; name the new one by --source-column")
        table.rows = [
            _renamed(row, rename or {}, f"{table.source}, {place}") for row, place in zip(table.rows, table.places, strict=True)
        ]
    mixed = mixture(
        [Source(name, tables[name].rows, weight) for name, weight in weights.items()], rows, repeat, seed, source_column
    )
    given = {name: sum(row[source_column] == name for row in mixed) for name in sources}
    return places.finish(tables.values(), [], mixed, from_files=given)


def curriculum_file(
    source: File, out: File, dropped: File | None = None, *, by: str = PASS_RATE, order: str = "easy-first",
    hard: Literal["low", "high"] | None = None, stages: int | None = None, cuts: Sequence[float] = (),
    target: float | None = None, width: float | None = None, rows: int | None = None, seed: int = 0,
) -> dict[str, Any]:  # fmt: skip
    """Rows in an order by difficulty, for training with `order="file"`.

    by: the column of the difficulty.  hard: whether low or high numbers are hard; None: low ones of pass_rate, high ones of others.
    order: "easy-first"; "hard-first"; "bands": `stages` of nearly equal size, or those between `cuts`, from easy to hard, each
    shuffled, with its number in the column `stage`; "target": sampled by weights that fall with the distance to `target` (None:
    0.5), as a Gaussian of `width` (None: 0.2; column `weight`).  rows: only so many rows are kept, the first in that order.
    """
    check_order(order, {"hard": hard, "stages": stages, "cuts": cuts or None, "target": target, "width": width})
    places = Places("curriculum", [source], out, dropped)
    table = Table.load(source)
    table.require(by)
    values = [number_of(value_of(row, by)) for row in table.rows]
    at = [i for i, value in enumerate(values) if value is not None]
    sign = -1.0 if (hard or ("low" if by == PASS_RATE else "high")) == "low" else 1.0
    numbers = [value for value in values if value is not None]
    if order == "target":
        ranking, added = _sampled(by, numbers, 0.5 if target is None else target, 0.2 if width is None else width, seed)
    else:
        ranking, added = _sorted([sign * x for x in numbers], order, stages, sorted(sign * cut for cut in cuts), seed)
    kept = ranking[:rows]
    numbered = set(at)
    fate: Fates = [None if i in numbered else Drop(by, f"{by} is not a number") for i in range(len(values))]
    for k in ranking[len(kept) :]:
        fate[at[k]] = Drop("not among the first", f"it comes after the first {rows} rows")
    return places.finish([table], _left_out(table, fate), [{**table.rows[at[k]], **added[k]} for k in kept])


Ranked = tuple[list[int], list[Row]]
"""Indices in order, and the columns that each row gets, by index."""


def check_order(order: str, given: Mapping[str, Any], flag: str = "") -> None:
    """Raise RewardlabError for an order that there is not, and for a setting that another order reads.

    given: None is a setting that was not given.  flag: what stands before the name of a setting, in messages.
    """
    if order not in ORDERS:
        raise unknown("order", order, ORDERS)
    for name, value in given.items():
        if value is not None and order not in (read_by := OF_ORDERS[name]):
            several = f"{', '.join(read_by[:-1])} or {read_by[-1]}" if len(read_by) > 1 else read_by[0]
            raise RewardlabError(f"{flag}{name} is for {flag}order {several}, and the order here is {order}")


def _sampled(by: str, numbers: Sequence[float], target: float, width: float, seed: int) -> Ranked:
    weights = ordering.weights(numbers, target, width)
    # below that, waiting times are infinite, and the order would be one by chance
    if numbers and max(weights) < 1e-300:
        raise RewardlabError(
            f"no row is near the target {target:g}: {by} lies between {min(numbers):g} and {max(numbers):g}, so that at the width "
            f"{width:g} every weight is 0; choose a target in that range, or a greater width"
        )
    return ordering.sample(weights, None, seed), [{"weight": round(weight, 6)} for weight in weights]


def _sorted(difficulty: Sequence[float], order: str, stages: int | None, cuts: Sequence[float], seed: int) -> Ranked:
    if order == "bands":
        bands = ordering.bands(difficulty, stages, cuts)
        return ordering.easy_first(bands, seed), [{"stage": stage} for stage in bands]
    return ordering.easy_first([-x for x in difficulty] if order == "hard-first" else difficulty, seed), [{} for _ in difficulty]


def _answer_column(table: Table, named: str | None) -> str:
    """The column of the answers. The usual one may be missing; one that the user named is a wrong name where no row has it."""
    if named is not None:
        table.require(named)
    return ANSWER if named is None else named


def _left_out(table: Table, fates: Fates) -> list[tuple[str, Row, Drop]]:
    return leaving(table.places, table.rows, fates)


def _texts(table: Table, column: str) -> list[str]:
    return [_asked(value_of(row, column)) for row in table.rows]


def _shown(table: Table, column: str) -> list[tuple[str, ...]]:
    """What tells the pictures of each row from those of others."""
    folder = folder_of(table.source)
    return [shown_by(row, column, folder) for row in table.rows]


def _alike(shown: Sequence[tuple[str, ...]]) -> list[tuple[tuple[str, ...], list[int]]]:
    """The places of the rows that show the same pictures, or none."""
    found: dict[tuple[str, ...], list[int]] = {}
    for i, of in enumerate(shown):
        found.setdefault(of, []).append(i)
    return list(found.items())


def _asked(value: Any) -> str:
    """A value as one text; of a conversation without what the system says, which rows share that ask for different things."""
    messages = decoded(value)
    if not is_conversation(messages):
        return text_of(value)
    said = [(str(first_of(message, WHO)).strip().lower(), text_in(message)) for message in messages]
    return "\n".join(text for role, text in said if role not in ROLES["system"])


def _placed(tests: Sequence[Table], column: str) -> list[tuple[str, str]]:
    """The texts of test sets with their places."""
    return [
        (f"{test.source}, {place}", text) for test in tests for place, text in zip(test.places, _texts(test, column), strict=True)
    ]


def _own(test: Table, column: str, ends: tuple[str, str]) -> list[tuple[str, str]]:
    """The texts of a test set with their places, without the instruction that the training texts share, and without its own."""
    texts = duplicates.without_ends(_texts(test, column), *ends)
    texts = duplicates.without_ends(texts, *duplicates.shared_ends(texts))
    return [(f"{test.source}, {place}", text) for place, text in zip(test.places, texts, strict=True)]


def _weight(name: str, weight: Any) -> float:
    number = None if isinstance(weight, bool) else number_of(weight)
    if number is None or number <= 0:
        raise RewardlabError(
            f"the weight of {name} is {weight}: a mixture needs files, each with a weight above 0, such as {name}=2"
        )
    return number


def _check_renamed(tables: Sequence[Table], names: Mapping[str, str]) -> None:
    """Raise RewardlabError for a column to rename that no row of any file has."""
    columns = dict.fromkeys(name for table in tables for name in table.columns)
    unknown_names = [old for old in names if old not in columns]
    if unknown_names and columns:
        raise RewardlabError(f"no file has a column {unknown_names[0]} to rename; the columns are: {', '.join(columns)}")


def _renamed(row: Row, names: Mapping[str, str], place: str) -> Row:
    for old, new in names.items():
        if old in row and new in row:
            raise RewardlabError(f"{place}: it has a column {old} and a column {new}, so that {old} cannot be renamed to {new}")
    return {names.get(name, name): value for name, value in row.items()}
