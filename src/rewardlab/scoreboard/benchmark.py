"""A benchmark of rewards: how its rows are read, what they ask, its figures, and what others have published.

    benchmark = Benchmark(
        title="RM-Bench", data="rmbench", hub="THU-KEG/RM-Bench", read=read, marks=marks, figures=figures,
        example=[{"id": 1, "prompt": ...}], chance={"overall": 0.5},
    )

A method's file of kind "benchmark" makes one. Files in the published format are read from the folder that REWARDLAB_DATA names
(`data`), from `--data FILE`, or from the hub by `--data hf:OWNER/NAME:SPLIT`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, NamedTuple

from rewardlab.data.files import Row, is_rows, rows_of
from rewardlab.data.hub import is_named, is_saved, saved, splits_named, stored_rows
from rewardlab.data.pictures import pictures_in
from rewardlab.errors import RewardlabError
from rewardlab.models.hub import is_name
from rewardlab.scoreboard.figures import Figures, Marks
from rewardlab.scoreboard.items import Item, Verdict

Asks = Literal["replies", "steps"]
ROOT = "REWARDLAB_DATA"


def data_folder() -> Path:
    """The folder that REWARDLAB_DATA names, which holds a folder for each benchmark whose data is at hand."""
    return Path(os.environ.get(ROOT) or Path.cwd().parent / "shared" / "data")


@dataclass(frozen=True)
class Published:
    """Figures that others report of a rater, by name, and where.

    output: the rater's name in the released outputs, where these are among the data, so that the figures can be computed again.
    """

    rater: str
    figures: Mapping[str, float]
    source: str
    output: str = ""


class Counted(NamedTuple):
    """The items of a source.  equal: rows that are left out since they are equal to an earlier one.  other: rows that are left out
    since an earlier one, which asks something else, has their id; the first of them is at `where`."""

    items: list[Item]
    equal: int = 0
    other: int = 0
    where: str = ""


@dataclass(frozen=True)
class Benchmark:
    """title: as its paper has it.  data: its folder below REWARDLAB_DATA, or files in it ("instructions/hhh*"), or folders
    ("prmbench*").

    read: a row of a published file, the name of the file (without suffixes) -> its items; ValueError says what is wrong with the
    row.  asks: about whole replies, or about their steps.  marks: (item, verdict) -> numbers of one item.  figures: of all items'
    marks, the headline first.  chance: of a figure, what guessing gives.  example: rows in the published format, of several
    prompts.  hub: its name on the Hugging Face hub.  skip: names of files in the folder that hold no items.  lacks: what the data
    that is at hand lacks.  load: the rows of a file with their places, where a row is not a line.
    group: a column by which the rows of a file make up items, where an item is spread over several rows: `read` is then given
    {group: its value, "rows": [...]}. A row without the column is read by itself.
    outputs: reads a file of published verdicts -> (rater, item's id, verdict).  released: how the names of such files among the
    data begin (one beginning, or several); these are no items.
    pictures: columns that hold pictures, in any form of `data/pictures.py`; `read` is given each as a tuple of pictures.
    picture_folder: from which their paths go, where it is not the file's; as a path from there.
    made: items that are made of other data at hand, which takes its time: so many are told without making them.
    own: rows are a user's own: two different ones of one id are an error, where a published file may have them.
    lacking: what these items do not tell, though all items would: which parts the headline leaves out, "" where it is of all.
    published: figures of papers.  prompt: the benchmark's own prompt for judges of pairs, with {prompt}, {first} and {second}.
    """

    title: str
    read: Callable[[Row, str], Iterable[Item]]
    marks: Callable[[Item, Verdict], Mapping[str, float]]
    figures: Callable[[Marks], Figures]
    example: Sequence[Row]
    data: str = ""
    hub: str = ""
    load: Callable[[Path], Iterable[tuple[str, Row]]] | None = None
    skip: tuple[str, ...] = ()
    asks: Asks = "replies"
    chance: Mapping[str, float] = field(default_factory=dict)
    lacks: str = ""
    group: str = ""
    outputs: Callable[[Path], Iterator[tuple[str, str, Verdict]]] | None = None
    released: str | tuple[str, ...] = ""
    published: Sequence[Published] = ()
    prompt: str = ""
    pictures: tuple[str, ...] = ()
    picture_folder: str = ""
    made: int = 0
    own: bool = False
    lacking: Callable[[Sequence[Item]], str] | None = None

    @property
    def headline(self) -> str:
        """The figure that raters are compared by."""
        items = [item for row in self.example for item in self.read(row, "example")]
        return next(iter(self.figures(Marks.of(items, [self.marks(item, Verdict()) for item in items]))))

    def items(self, source: str | Path | None = None) -> list[Item]:
        """The items in a file or folder; without one, in the folder that REWARDLAB_DATA names. A second item of an id is left out.

        source: also a folder that `datasets` saved, or a dataset of the hub, hf:OWNER/NAME[:SPLIT] (data/hub.py).
        Raises RewardlabError where there are no files, and for a row that cannot be read, with its place.
        """
        return self.counted(source).items

    def counted(self, source: str | Path | None = None) -> Counted:
        """The items, and how many were left out since an earlier one has their id. Of a user's own, another row of one id is an
        error."""
        found: dict[str, Item] = {}
        equal, others = 0, []
        for path, rows in self._sources(source):
            for place, row in self._grouped(rows):
                for item in self._read(row, path, place):
                    first = found.setdefault(item.id, item := replace(item, place=f"{path.name}, {place}"))
                    if first is item:
                        continue
                    same = first.key(self.asks) == item.key(self.asks) and (first.worth, first.labels) == (item.worth, item.labels)
                    if self.own and not same:
                        raise RewardlabError(f"{path}, {place} has the id {item.id} of an earlier row, which is another one")
                    equal += same
                    others += [] if same else [item.place]
        if not found:
            raise RewardlabError(
                f"{self.title}: there are no items in {source or self.data}: every file is empty, or holds other rows"
            )
        return Counted(list(found.values()), equal, len(others), others[0] if others else "")

    def _sources(self, source: str | Path | None) -> Iterator[tuple[Path, Iterable[tuple[str, Row]]]]:
        """The files, or the splits of a dataset as if they were files of these names, and the rows of each with their places."""
        if isinstance(source, str) and is_named(source):
            if self.load:
                raise RewardlabError(f"{self.title} is not a row an item: give its files as they were published, and not {source}")
            named = splits_named(source)
        elif source is not None and is_saved(folder := Path(source).expanduser()):
            # one split that was saved by itself goes by the folder's name
            own = saved(folder)
            named = {folder / split: x for split, x in own.items()} if isinstance(own, dict) else {folder: own}
        else:
            yield from ((path, self.load(path) if self.load else rows_of(path)) for path in self.files(source))
            return
        yield from ((path, stored_rows(dataset)) for path, dataset in named.items())

    def _grouped(self, rows: Iterable[tuple[str, Row]]) -> Iterator[tuple[str, Row]]:
        """The rows as `read` takes them, those of one item together, in the order in which items begin."""
        together: dict[Any, tuple[str, dict[str, Any]]] = {}
        for place, row in rows:
            if not self.group or self.group not in row:
                yield place, row
                continue
            value = row[self.group]
            together.setdefault(value, (place, {self.group: value, "rows": []}))[1]["rows"].append(row)
        yield from together.values()

    def _read(self, row: Row, path: Path, place: str) -> list[Item]:
        try:
            return list(self.read(self._seen(row, path.parent), path.name.split(".")[0]))
        except KeyError as e:
            has = ", ".join(row) or "nothing"
            raise RewardlabError(f"{path}, {place}: no column {e}; {self.title} has one, and this row has {has}") from None
        except (ValueError, TypeError, IndexError, AttributeError) as e:
            raise RewardlabError(f"{path}, {place} is no row of {self.title}: {e}") from None

    def _seen(self, row: Row, folder: Path) -> Row:
        """The row with its pictures read. Raises ValueError for one that is missing or broken."""
        if "rows" in row and self.group in row:
            return row | {"rows": [self._seen(one, folder) for one in row["rows"]]}
        beside = folder / self.picture_folder
        folder = beside if beside.is_dir() else folder
        return row | {name: pictures_in(row[name], folder) for name in self.pictures if row.get(name) is not None}

    def files(self, source: str | Path | None = None) -> list[Path]:
        """The files to read."""
        if source is not None:
            path = Path(source).expanduser()
            if not path.exists():
                hub = f"; a dataset of the hub is written hf:{source}" if is_name(str(source)) else ""
                raise RewardlabError(f"there is no file or folder {path}{hub}")
            found = sorted(p for p in path.rglob("*") if is_rows(p)) if path.is_dir() else [path]
            if not found:
                raise RewardlabError(f"no file in the folder {path} is called .jsonl, .json, .csv or .parquet (.gz may follow)")
        elif not self.data:
            raise RewardlabError(f"{self.title} is not among the data at hand: give --data FILE{self._on_hub()}")
        else:
            folder, _, pattern = self.data.partition("/")
            root = data_folder()
            found = sorted(p for p in root.glob(f"{folder}/{pattern or '*'}") if is_rows(p))
            if not found:
                raise RewardlabError(
                    f"{self.title} is not in {root / folder}: set {ROOT} to the folder that holds {folder}/, or give "
                    f"--data FILE{self._on_hub()}"
                )
        return [p for p in found if not p.name.startswith((*self.skip, *self._released))]

    def released_files(self) -> list[Path]:
        """The files of released outputs among the data. Raises RewardlabError where the data is not at hand."""
        folder = self.files()[0].parent
        return sorted(p for p in folder.iterdir() if p.name.startswith(self._released) and is_rows(p))

    @property
    def _released(self) -> tuple[str, ...]:
        return (self.released,) if self.released and isinstance(self.released, str) else tuple(self.released)

    def _on_hub(self) -> str:
        return f", or --data hf:{self.hub} where the hub can be reached" if "/" in self.hub and not self.load else ""
