"""A retrieval server, from its settings to its end."""

from __future__ import annotations

from typing import Any

from rewardlab.data.corpus import corpus_of
from rewardlab.servers.http import Address, run
from rewardlab.servers.retrieval import RetrievalServer


def serve(corpus: str, address: Address, *, topk: int = 3, batch: int = 1024) -> dict[str, Any]:
    """Serve until the process is asked to stop; what was served. Raises RewardlabError, before it listens, where anything is wrong.

    corpus: as `corpus_of` takes it.  topk: documents of a query, where a request does not say.  batch: queries of one request, at
    most.
    """
    limits, index = address.limits(), corpus_of(corpus)
    with address.bound() as sock:
        server, url = RetrievalServer(index, corpus, limits, topk, batch), f"{address.url(sock)}/retrieve"
        run(server.app(), sock, drain=address.drain, says=f"serving {len(index.documents)} documents of {corpus} at {url}")
    return {"url": url, "corpus": corpus, "requests": server.metrics.answered}
