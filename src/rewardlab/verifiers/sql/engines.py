"""Read-only sqlite and duckdb databases, for queries that a model wrote.

sqlite: the file is opened read-only, and an authorizer permits reading only (no ATTACH, PRAGMA, transaction or extension).
duckdb: read-only, in a read-only transaction, one SELECT statement, no files or network, locked settings.
Both: one statement, with limits on time, memory and rows. A single operation of an engine cannot be
interrupted, so this runs in a worker process that can be killed. Imports no rewardlab module.
"""

from __future__ import annotations

import contextlib
import os
import re
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

MEMORY = 512 << 20
"""Bytes that an engine may use."""
SIZE = 32 << 20
"""Most bytes of one value, and of all texts of a result together."""
STEP = 10_000
"""sqlite operations between two checks of the time limit."""
OPEN = 32
"""Most databases that a process keeps open."""

_CREATES = re.compile(r"\bcreate\s+(?:or\s+replace\s+)?(?:temp\w*\s+)?(?:table|view)\s", re.IGNORECASE)

Row = tuple[Any, ...]


class QueryFailed(Exception):
    """The query has no result; the message says why."""


class Unusable(Exception):
    """The database cannot be opened or created."""


class Result(NamedTuple):
    """The rows, the number of columns, and the tables and views that were read (lower case)."""

    rows: list[Row]
    width: int
    read: frozenset[str]


class Sqlite:
    dialect = "sqlite"

    def __init__(self, path: str | None, script: str = ""):
        # without a write-ahead log the file is the whole database and may be opened as immutable: no locks, no files beside it
        immutable = path and not os.path.exists(f"{path}-wal")
        where = f"file:{quote(path)}?mode=ro{'&immutable=1' * bool(immutable)}" if path else ":memory:"
        self.link = sqlite3.connect(where, uri=True, cached_statements=0, isolation_level=None)
        self.link.executescript(script)
        # one text that is not valid UTF-8 must not make its whole row unreadable
        self.link.text_factory = lambda raw: raw.decode("utf-8", "surrogateescape")
        names = [name for (name,) in self.link.execute("SELECT name FROM sqlite_master WHERE type IN ('table', 'view')")]
        self.schema = {name.lower(): self._columns(name) for name in names}
        # trusted_schema off: views of a file that we do not trust can call no function with side effects
        for setting in ("query_only = ON", "temp_store = MEMORY", "trusted_schema = OFF", f"hard_heap_limit = {MEMORY}"):
            self.link.execute(f"PRAGMA {setting}")
        self.link.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, SIZE)
        self.link.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)
        self._read: set[str] = set()
        # last, since the authorizer also refuses the PRAGMAs above
        self.link.set_authorizer(self._allow)

    def run(self, query: str, seconds: float, rows: int) -> Result:
        end = time.monotonic() + seconds
        # sqlite calls the handler every STEP operations; true aborts the query
        self.link.set_progress_handler(lambda: time.monotonic() > end, STEP)
        self._read.clear()
        try:
            with contextlib.closing(self.link.execute(query)) as cursor:
                if cursor.description is None:
                    raise QueryFailed("is not a query")
                return Result(_fetch(cursor.fetchone, rows), len(cursor.description), frozenset(self._read & self.schema.keys()))
        except sqlite3.Error as problem:
            late = time.monotonic() > end
            raise QueryFailed(f"takes over {seconds:.3g} s" if late else f"fails: {problem}") from problem
        except (sqlite3.Warning, ValueError, MemoryError, RecursionError, OverflowError) as problem:
            raise QueryFailed(f"fails: {problem or type(problem).__name__}") from problem

    def _columns(self, table: str) -> list[str]:
        quoted = table.replace('"', '""')
        # a view whose table was dropped raises here; it counts as having no columns
        with contextlib.suppress(sqlite3.Error):
            return [row[1].lower() for row in self.link.execute(f'PRAGMA table_info("{quoted}")')]
        return []

    def _allow(self, action: int, first: str | None, second: str | None, *_: Any) -> int:
        if action == sqlite3.SQLITE_READ:
            self._read.add((first or "").lower())
            return sqlite3.SQLITE_OK
        loads = action == sqlite3.SQLITE_FUNCTION and (second or "").lower() == "load_extension"
        reads = action in (sqlite3.SQLITE_SELECT, sqlite3.SQLITE_FUNCTION, sqlite3.SQLITE_RECURSIVE)
        return sqlite3.SQLITE_OK if reads and not loads else sqlite3.SQLITE_DENY


class Duckdb:
    dialect = "duckdb"

    def __init__(self, path: str | None, script: str = ""):
        import duckdb

        settings: dict[str, Any] = {
            "enable_external_access": "false", "autoinstall_known_extensions": "false", "autoload_known_extensions": "false",
            "allow_community_extensions": "false", "python_enable_replacements": "false", "threads": "1", "temp_directory": "",
            "memory_limit": f"{MEMORY >> 20}MB",
        }  # fmt: skip
        self.link = duckdb.connect(path or ":memory:", read_only=path is not None, config=settings)
        if script:
            self.link.execute(script)
        # after the script, which may change settings; a query may not
        self.link.execute("SET lock_configuration = true")
        listed = self.link.execute("SELECT table_name, column_name FROM information_schema.columns ORDER BY ordinal_position")
        self.schema: dict[str, list[str]] = {}
        for table, column in listed.fetchall():
            self.schema.setdefault(table.lower(), []).append(column.lower())

    def run(self, query: str, seconds: float, rows: int) -> Result:
        end = time.monotonic() + seconds
        # duckdb has no progress handler: another thread interrupts the query
        clock = threading.Timer(seconds, self.link.interrupt)
        try:
            statements = self.link.extract_statements(query)
            if len(statements) != 1 or statements[0].type.name != "SELECT":
                raise QueryFailed("is not one query")
            read = frozenset(name.lower() for name in self.link.get_table_names(query)) & self.schema.keys()
            clock.start()
            self.link.execute("BEGIN TRANSACTION READ ONLY")
            # the parsed statement, not the text: what was checked is what runs
            cursor = self.link.execute(statements[0])
            return Result(_fetch(cursor.fetchone, rows), len(cursor.description or ()), read)
        except QueryFailed:
            raise
        except Exception as problem:
            if type(problem).__name__ in ("FatalException", "InternalException"):
                # after these errors a duckdb connection accepts no further query: reopen the databases
                _opened.cache_clear()
            message = str(problem).partition("\n")[0]
            raise QueryFailed(f"takes over {seconds:.3g} s" if time.monotonic() > end else f"fails: {message}") from problem
        finally:
            clock.cancel()
            with contextlib.suppress(Exception):
                self.link.execute("ROLLBACK")


Database = Sqlite | Duckdb


def database(source: str, dialect: str) -> Database:
    """A database, which stays open for later queries.

    source: the path of a sqlite or duckdb file, or an SQL script that creates it.  Raises Unusable.
    """
    if is_script(source):
        return _opened(None, source, dialect, 0, 0)
    try:
        with open(source, "rb") as file:
            head = file.read(16)
        # what is written last may stand in a log beside the file
        files = [os.stat(name) for name in (source, f"{source}-wal") if os.path.exists(name)]
    except OSError as problem:
        raise Unusable(f"the database cannot be read: {problem}") from problem
    signatures = {"sqlite": head.startswith(b"SQLite format 3"), "duckdb": head[8:12] == b"DUCK"}
    kind = next((name for name, fits in signatures.items() if fits), None)
    if kind is None:
        raise Unusable(f"{Path(source).name} is neither a sqlite nor a duckdb file")
    # time and size are in the cache key, so that a changed file is opened anew
    return _opened(source, "", kind, max(of.st_mtime_ns for of in files), sum(of.st_size for of in files))


def is_script(source: str) -> bool:
    """Whether a database is given as an SQL script rather than as a path."""
    return _CREATES.search(source) is not None


@lru_cache(maxsize=OPEN)
def _opened(path: str | None, script: str, dialect: str, changed: int, size: int) -> Database:
    make: dict[str, Callable[..., Database]] = {"sqlite": Sqlite, "duckdb": Duckdb}
    if dialect not in make:
        raise Unusable(f"the dialect {dialect!r} is neither sqlite nor duckdb")
    try:
        return make[dialect](path, script)
    except ImportError as problem:
        raise Unusable(f"this needs {problem.name}: pip install 'rewardlab[verify]'") from problem
    except Exception as problem:
        raise Unusable(f"the database cannot be {'opened' if path else 'created'}: {problem}") from problem


def _fetch(next_row: Callable[[], Row | None], most: int) -> list[Row]:
    rows: list[Row] = []
    # the number of rows does not bound memory: one cell may be huge
    bytes_left = SIZE
    for row in _until_none(next_row):
        if len(rows) == most:
            raise QueryFailed(f"returns over {most} rows")
        bytes_left -= sum(len(cell) for cell in row if isinstance(cell, str | bytes))
        if bytes_left < 0:
            raise QueryFailed(f"returns over {SIZE >> 20} MB")
        rows.append(row)
    return rows


def _until_none(next_row: Callable[[], Row | None]) -> Iterator[Row]:
    return iter(next_row, None)  # type: ignore[arg-type]
