"""What samples replies, and what becomes of its rounding: vllm,memory=0.5, vllm:http://localhost:8000, truncate:3."""

from __future__ import annotations

from dataclasses import dataclass, fields
from urllib.parse import urlsplit

from rewardlab.errors import RewardlabError
from rewardlab.settings.domain import Domain, PositiveFloat, PositiveInt, Share, check_values, parse_value, read_options

VLLM = "vllm"
_HOW = "write vllm, vllm,memory=0.5 or vllm:http://localhost:8000"


@dataclass(frozen=True)
class Settings:
    """How vLLM samples; each may follow the name: vllm,rows=64.

    memory: share of a GPU's memory for vLLM, its weights included; the trainer needs the rest.  cache: GiB for keys and values on a
    CPU.  context: ids of prompt and reply at most (default: what the model reads).  rows: replies at a time.  eager: start without
    compiling the model, which takes minutes less and samples slower; by default on a CPU alone.  folder: where weights are handed
    to a server, which must read it too (default: a folder of this machine).  concurrency: requests at a time.  timeout: seconds
    that a server may take for an answer.
    """

    memory: Share = 0.4
    cache: PositiveFloat = 1.0
    context: PositiveInt | None = None
    rows: PositiveInt = 256
    eager: bool | None = None
    folder: str = ""
    concurrency: PositiveInt = 128
    timeout: PositiveFloat = 600.0

    def __post_init__(self) -> None:
        check_values(type(self), vars(self), " of the sampler")


@dataclass(frozen=True)
class Name:
    """url: of a server; empty for vLLM in this process."""

    url: str
    settings: Settings


def read(name: str) -> Name:
    """A sampler's name. Raises RewardlabError for what cannot be read."""
    place, *options = name.split(",")
    kind, _, url = place.partition(":")
    if kind.strip() != VLLM:
        raise RewardlabError(f"{name!r} is no sampler: {_HOW}")
    if url and not urlsplit(url).hostname:
        raise RewardlabError(f"{url!r} is no address of a server: {_HOW}")
    given = read_options(options, {f.name for f in fields(Settings)}, "the sampler", plain=("folder",))
    return Name(url.rstrip("/").removesuffix("/v1"), Settings(**given))


SAMPLER = Domain("the name of a sampler", lambda name: isinstance(name, str) and bool(read(name)))
"""Its check raises what `read` does, which says more."""


@dataclass(frozen=True)
class Correction:
    """What becomes of a difference between sampler and trainer: the settings of the part `weigh_mismatch`."""

    limit: float
    of: str
    above: str


def correction(text: str) -> Correction:
    """truncate, mask-rows, truncate:3 ... Raises RewardlabError for what cannot be read."""
    how, _, limit = text.partition(":")
    above, _, rows = how.partition("-")
    value = parse_value(limit) if limit else 2.0
    if above not in ("truncate", "mask") or rows not in ("", "rows") or not isinstance(value, int | float) or value <= 0:
        raise RewardlabError(f"{text!r} is no correction: write truncate, mask, truncate-rows or mask-rows, or truncate:3")
    return Correction(float(value), "row" if rows else "token", above)


MISMATCH = Domain("a correction", lambda text: isinstance(text, str) and bool(correction(text)))
