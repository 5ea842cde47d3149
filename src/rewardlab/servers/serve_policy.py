"""A policy server, from its settings to its end."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from rewardlab.clients.endpoint import is_served
from rewardlab.errors import RewardlabError
from rewardlab.models.load import load_policy
from rewardlab.servers.generator import Generator
from rewardlab.servers.http import Address, run
from rewardlab.servers.policy import PolicyServer


def serve(
    model: str, address: Address, *, name: str | None = None, most_new: int = 1024, queue: int = 256, device: str = "auto",
    dtype: str = "auto", chat_template_kwargs: Mapping[str, Any] | None = None,
) -> dict[str, Any]:  # fmt: skip
    """Serve until the process is asked to stop; what was served. Raises RewardlabError, before it listens, where anything is wrong.

    model: as `load_policy` takes it.  name: by which it is asked for.  most_new: tokens of a reply, at most.  queue: requests
    that may wait.  chat_template_kwargs: what the model's chat template is told beside the messages.
    """
    limits = address.limits()
    with address.bound() as sock:
        generator = Generator(writing(model, device, dtype, chat_template_kwargs or {}), queue)
        try:
            server = PolicyServer(generator, name or name_of(model), limits, most_new)
            url = f"{address.url(sock)}/v1"
            run(server.app(), sock, drain=address.drain, says=f"serving {server.name} at {url}: openai:{url}#{server.name}")
        finally:
            generator.close()
    return {"url": url, "model": server.name, "requests": server.metrics.answered, "tokens": generator.generated}


def writing(model: str, device: str = "auto", dtype: str = "auto", told: Mapping[str, Any] = MappingProxyType({})) -> Any:
    """The policy of this name, told of its chat template. Raises RewardlabError for one that writes no text."""
    if is_served(model):
        raise RewardlabError(f"{model} is served already: give its address to clients")
    policy = load_policy(model, device, dtype)
    if not hasattr(policy, "all_pieces") or policy.has_value_head:
        raise RewardlabError(f"{model} writes no text, and cannot be served: name a language model, or a run that trained one")
    if told:
        policy.use_template_kwargs(told)
    return policy


def name_of(model: str) -> str:
    """A short name: the folder's, or the model's own."""
    path = Path(model).expanduser()
    return path.resolve().name if path.exists() else model
