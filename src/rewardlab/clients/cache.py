"""A disk cache of served models' replies, so that stopped runs resume without repeated requests."""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
from pathlib import Path
from typing import Any

from rewardlab.errors import RewardlabError
from rewardlab.util.files import cache as cache_folder


def key_of(url: str, body: dict[str, Any], sample: int) -> str:
    """A hash of all that a reply depends on. No API key is part of it.

    body: the model, the messages, and the settings of sampling with the seed.  sample: which of several replies it is.
    """
    document = json.dumps([url, body, sample], sort_keys=True, ensure_ascii=False)
    return hashlib.blake2b(document.encode("utf-8", "surrogatepass"), digest_size=20).hexdigest()


class Cache:
    """Documents by key in one SQLite file, which several processes may use at a time."""

    def __init__(self, path: Path | None = None):
        self.path = path or cache_folder() / "served" / "replies.sqlite"
        self._connection: tuple[int, sqlite3.Connection] | None = None

    def get(self, key: str) -> dict[str, Any] | None:
        row = self._run("SELECT reply FROM replies WHERE key = ?", (key,))
        return json.loads(row[0]) if row else None

    def put(self, key: str, reply: dict[str, Any]) -> None:
        self._run("INSERT OR REPLACE INTO replies VALUES (?, ?)", (key, json.dumps(reply)))

    def _run(self, statement: str, values: tuple[str, ...]) -> Any:
        try:
            return self._open().execute(statement, values).fetchone()
        except (sqlite3.Error, OSError) as problem:
            raise RewardlabError(
                f"the cache of served models {self.path} cannot be used: {problem}; delete the file, set REWARDLAB_CACHE to a "
                "folder that can be written to, or do without: openai:URL#NAME,cache=false"
            ) from None

    def _open(self) -> sqlite3.Connection:
        # a connection must not be used in a process that was forked from the one that made it
        if self._connection is None or self._connection[0] != os.getpid():
            self.path.parent.mkdir(parents=True, exist_ok=True)
            connection = sqlite3.connect(self.path, timeout=30.0, isolation_level=None, check_same_thread=False)
            # readers and a writer at the same time; a crash of the machine may lose the last replies, and nothing else
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = NORMAL")
            connection.execute("CREATE TABLE IF NOT EXISTS replies (key TEXT PRIMARY KEY, reply TEXT NOT NULL)")
            self._connection = os.getpid(), connection
        return self._connection[1]
