"""Completions by token ids: a prompt goes out as ids, and a reply comes back as ids with their log-probs.

So no text is tokenised again: a reply is continued exactly where it ended, whatever a chat template does to a last message. By
`/completions` with `return_token_ids`, as vLLM has it (from 0.10.2), and `rewardlab serve-model`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from rewardlab.clients.client import Call
from rewardlab.clients.messages import NEUTRAL, ended_by
from rewardlab.clients.retries import Trouble, checked


@dataclass(frozen=True)
class Continuation:
    """A reply that is asked for to a prompt of ids; otherwise as `Request`."""

    prompt: tuple[int, ...]
    max_new: int
    temperature: float = 1.0
    top_p: float = 1.0
    top_k: int = 0
    seed: int | None = None
    stop: tuple[str, ...] = ()

    def call(self, model: str) -> Call:
        """The request. Every setting is sent: a server has defaults of its own for what is left out."""
        body = {
            "model": model, "prompt": list(self.prompt), "max_tokens": self.max_new, "temperature": self.temperature,
            "logprobs": 0, "return_token_ids": True, **NEUTRAL, "top_p": self.top_p, "top_k": self.top_k,
        }  # fmt: skip
        optional = {"seed": self.seed, "stop": list(self.stop) or None}
        body |= {name: value for name, value in optional.items() if value is not None}
        return Call("/completions", body, most_read=len(self.prompt), most_written=self.max_new)


@dataclass(frozen=True, eq=False)
class Continued:
    """ids, logprobs: (n,) of what was written, with the token that ended it.  stop: "end", "stop" (a stop string) or "length"."""

    ids: np.ndarray
    logprobs: np.ndarray
    stop: str


def continued_of(document: Any) -> Continued:
    """The reply in an answer. Raises Trouble for an answer that does not hold its ids and log-probs."""
    choice = checked(document, "choices", 0)
    ids, logprobs = choice.get("token_ids"), checked(choice, "logprobs", "token_logprobs")
    # an empty reply has no ids in any form
    if not isinstance(ids, list) or len(ids) != len(logprobs):
        raise Trouble("the answer has no ids of its tokens (return_token_ids of vLLM), one for each log-prob", again=False)
    by, _ = ended_by(choice)
    stop = "length" if choice.get("finish_reason") == "length" else "end" if by is None else "stop"
    return Continued(np.asarray(ids, np.int64), np.asarray(logprobs, np.float32), stop)
