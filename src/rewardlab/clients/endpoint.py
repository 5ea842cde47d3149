"""Names of served models, openai:URL#NAME, and their request options."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Literal
from urllib.parse import urlsplit

from rewardlab.errors import RewardlabError
from rewardlab.settings.domain import (
    KWARGS,
    NonNegativeFloat,
    NonNegativeInt,
    PositiveFloat,
    PositiveInt,
    check_values,
    read_options,
)

PREFIX = "openai:"
SAYS = ("prefill", "marks", "tokenizer", "ids", "neutral", "chat_template_kwargs")
"""The options that what a served model says may depend on."""
LOCAL = {"localhost", "127.0.0.1", "::1"}
_HOW = "write openai:URL#NAME, such as openai:http://localhost:8000/v1#my-model or openai:https://api.openai.com/v1#gpt-4o-mini"


@dataclass(frozen=True)
class Settings:
    """How a served model is asked; each may follow its name: openai:URL#NAME,concurrency=16,budget=1e6.

    key: the environment variable with the API key. Without it, OPENAI_API_KEY is sent if it is set and the address is https or of
    this machine.  concurrency: requests at a time.  timeout: seconds of one try.  total: seconds of a request with all its tries.
    retries: tries after the first.  backoff: seconds before the first of them, at random from half of it up; twice that before each
    further one.  cache: replies are kept on disk, and not asked for again; turn it off where another model may be served by the
    same name.  budget: tokens, read and written, of this process.  cost: the same in money, by price_in and price_out for a million
    tokens.  limit: what the server calls the most tokens of a reply.  prefill: the server continues a last message of the
    assistant.  marks: how the server is told to write one of a judge's marks and nothing else, for models too small to keep to a
    form: grammar (llama.cpp), structured_outputs (vLLM), regex (SGLang); empty: it is only asked to.  tokenizer: a folder or a name
    of the hub, for a policy's ids.  ids: prompts are sent as these ids, and replies come as ids with log-probs (vLLM).  neutral:
    top-p, top-k, min-p and the repetition penalty are sent where they change nothing, too.
    chat_template_kwargs: what the server tells its chat template beside the messages, as vLLM, SGLang and llama.cpp take it, a JSON
    object: chat_template_kwargs={"enable_thinking": false}.  context: ids of prompt and reply, if
    to be checked.
    """

    key: str = ""
    concurrency: PositiveInt = 8
    timeout: PositiveFloat = 60.0
    total: PositiveFloat = 600.0
    retries: NonNegativeInt = 5
    backoff: NonNegativeFloat = 0.5
    cache: bool = True
    budget: PositiveInt | None = None
    cost: PositiveFloat | None = None
    price_in: NonNegativeFloat = 0.0
    price_out: NonNegativeFloat = 0.0
    limit: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    prefill: bool = False
    marks: Literal["", "grammar", "structured_outputs", "regex"] = ""
    tokenizer: str = ""
    ids: bool = False
    neutral: bool = False
    chat_template_kwargs: Mapping[str, Any] = field(default_factory=dict)
    context: PositiveInt | None = None

    def __post_init__(self) -> None:
        check_values(type(self), vars(self), " of a served model")
        KWARGS.check("chat_template_kwargs of a served model", self.chat_template_kwargs)
        if self.cost is not None and not (self.price_in or self.price_out):
            raise RewardlabError("cost of a served model needs its prices for a million tokens: price_in=0.15,price_out=0.6")
        if self.ids and not self.tokenizer:
            raise RewardlabError("ids=true of a served model needs the tokenizer of its ids: tokenizer=FOLDER or ORG/NAME,ids=true")


@dataclass(frozen=True)
class Endpoint:
    """A served model. url: of the API, without a path of its own calls.  model: empty for the only one that is served there."""

    url: str
    model: str = ""
    settings: Settings = Settings()

    @property
    def local(self) -> bool:
        return urlsplit(self.url).hostname in LOCAL

    @property
    def secure(self) -> bool:
        """Whether a key may be sent there that was not named for it: nobody between could read it."""
        return self.local or self.url.startswith("https://")

    def __str__(self) -> str:
        return f"{self.model or 'the model'} at {self.url}"


def is_served(name: Any) -> bool:
    """Whether a model's name stands for a served one."""
    return isinstance(name, str) and name.startswith(PREFIX)


def endpoint_of(name: str) -> Endpoint:
    """The endpoint of openai:URL#NAME,option=value. Raises RewardlabError for what cannot be read."""
    address, _, rest = name.removeprefix(PREFIX).partition("#")
    # not at commas within a JSON object
    model, *options = re.split(r",(?![^{}]*\})", rest)
    if "," in address:
        raise RewardlabError(f"{name!r}: options follow the model's name; {_HOW}")
    # an environment variable may be called as a number is written
    given = read_options(options, {f.name for f in fields(Settings)}, "a served model", plain=("key", "tokenizer"))
    return Endpoint(base_of(address), model.strip(), Settings(**given))


def identity(name: Any) -> Any:
    """A served model's name with the options alone that what it says may depend on; any other value as it is.

    Whoever resumes with a higher budget, or more requests at a time, asks the same.
    """
    if not is_served(name):
        return name
    endpoint, usual = endpoint_of(name), Settings()
    told = {key: value for key in SAYS if (value := getattr(endpoint.settings, key)) != getattr(usual, key)}
    return ",".join([f"{PREFIX}{endpoint.url}#{endpoint.model}", *(f"{key}={_written(value)}" for key, value in told.items())])


def _written(value: Any) -> str:
    return json.dumps(value, sort_keys=True) if isinstance(value, Mapping) else str(value)


def base_of(url: str) -> str:
    """The address of the API, for http://host:port, .../v1, or the address of its chat completions."""
    parts = urlsplit(url.strip())
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise RewardlabError(f"{url!r} is not the address of a server; {_HOW}")
    if parts.username or parts.password or parts.query:
        raise RewardlabError(
            f"the address of the server {parts.hostname} holds a password or a query; keep keys in the environment: key=MY_KEY"
        )
    address = url.strip().rstrip("/").removesuffix("/chat/completions")
    return address if re.search(r"/v\d+[a-z]*(/openai)?$", address) or len(parts.path) > 1 else f"{address}/v1"
