"""A reward server, from its settings to its end."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from rewardlab.servers.http import Address, run
from rewardlab.servers.pool import Pool
from rewardlab.servers.rewards import RewardServer
from rewardlab.util.progress import console

SCORER = "rewardlab.servers.scoring:Served"


def serve(
    rewards: Sequence[str], task: str | None, address: Address, *, tokenizer: str | None = None, splitter: str = "newline",
    workers: int | None = None, seconds: float = 30.0, batch: int = 1024, queue: int = 8192,
) -> dict[str, Any]:  # fmt: skip
    """Serve until the process is asked to stop; what was served. Raises RewardlabError, before it listens, where anything is wrong.

    rewards, task, tokenizer, splitter: as of `scoring.Scorer`.  workers: processes; None: one for each core.  seconds: of one row.
    batch: rows of one request, at most.  queue: rows that may wait.
    """
    limits = address.limits()
    arguments = {"rewards": list(rewards), "task": task, "tokenizer": tokenizer, "splitter": splitter}
    pool = Pool(SCORER, arguments, workers=workers or len(os.sched_getaffinity(0)), seconds=seconds, most=queue)
    with address.bound() as sock:
        try:
            about = pool.start()
            # each worker has noted the same
            for note in about.get("notes", ()):
                console.print(note, highlight=False, markup=False, soft_wrap=True)
            server, url = RewardServer(pool, about, limits, batch), address.url(sock)
            says = f"serving {about['reward']} at {url} with {len(pool.workers)} workers"
            run(server.app(), sock, drain=address.drain, says=says)
        finally:
            pool.close()
    cut_off = {"cut_off": server.cut_off} if server.cut_off else {}
    return {"url": url, "reward": about["reward"], "requests": server.metrics.answered, "rows": pool.counts.total(), **cut_off}
