"""Other models asked within an episode: of the run, or behind an address; and pools of them, with what each costs."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rewardlab.clients.client import client_of
from rewardlab.clients.endpoint import endpoint_of, is_served
from rewardlab.clients.messages import Failure, Reply, Request
from rewardlab.core import Message, Run, Sampling, Trajectory, ask
from rewardlab.data.pictures import addresses
from rewardlab.errors import RewardlabError

Expert = dict[str, Any]
"""name, about and price of a model, in money for a million tokens that it writes; and `model`, its name, or `column`, of a row."""


def replies_by(
    run: Run, model: str, prompts: Sequence[Sequence[Message]], max_new: int, temperature: float = 0.0
) -> list[Reply | Failure]:
    """What a model says to each prompt: openai:URL#NAME, or a model of the run by its name.

    A prompt that does not fit the context of a model of the run gets a Failure. Replies have the number of their tokens, as far as
    a server tells it.
    """
    if not prompts:
        return []
    if is_served(model):
        return client_of(model).chat([
            Request(tuple((m.role, m.text) for m in p), max_new, temperature, images=addresses(p)) for p in prompts
        ])  # fmt: skip
    asked: Any = run.model(model)
    read = asked.read([Trajectory(ask(p[-1].text)) for p in prompts], [tuple(p) for p in prompts])
    fits = [i for i, t in enumerate(read) if len(t) + max_new <= asked.context]
    wrote = asked.extend([read[i] for i in fits], Sampling(max_new, temperature), run.rng(f"asked {model}")) if fits else []
    told = {i: Reply(t.reply.strip(), tokens=int(t.mask.sum())) for i, t in zip(fits, wrote, strict=True)}
    return [told.get(i, Failure(f"it does not fit the context of {model!r}")) for i in range(len(prompts))]


def experts_in(pool: str) -> list[Expert]:
    """The models of a pool, from a JSON file or JSON text. Raises RewardlabError, with the entry, for what cannot be asked."""
    text = pool if pool.lstrip().startswith("[") else _text_of(pool)
    try:
        entries = json.loads(text)
    except ValueError as e:
        raise RewardlabError(f"the pool {pool[:60]!r} is not JSON: {e}") from None
    if not isinstance(entries, list) or not entries:
        raise RewardlabError(f"the pool {pool[:60]!r} is no list of models")
    found: list[Expert] = []
    for number, entry in enumerate(entries, 1):
        name = entry.get("name") if isinstance(entry, dict) else None
        if not isinstance(name, str) or not name.strip() or ":" in name or named(name, found):
            raise RewardlabError(f"model {number} of the pool needs a name of its own, without a colon: {str(entry)[:80]}")
        price, source = entry.get("price", 0.0), [key for key in ("model", "column") if entry.get(key)]
        if not isinstance(price, int | float) or price < 0 or len(source) != 1:
            raise RewardlabError(f"{name} in the pool needs a price from 0 up, and either a model or a column: {str(entry)[:120]}")
        if is_served(entry.get("model")):
            endpoint_of(entry["model"])
        found.append({"name": name, "about": str(entry.get("about", "")), "price": float(price), source[0]: entry[source[0]]})
    return found


def _text_of(pool: str) -> str:
    try:
        return Path(pool).expanduser().read_text("utf-8")
    except OSError as e:
        raise RewardlabError(f"the pool {pool[:60]!r} cannot be read: {e.strerror}. Name a JSON file, or write the list") from None


def named(name: str, experts: Sequence[Expert]) -> Expert | None:
    """The model of this name, in any case and spacing."""
    key = re.sub(r"\s", "", name).lower()
    return next((e for e in experts if re.sub(r"\s", "", e["name"]).lower() == key), None)
