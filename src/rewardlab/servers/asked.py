"""Requests of the OpenAI API: chat and text completions. What a policy here cannot do is refused by name.

After the reference of OpenAI (platform.openai.com/docs/api-reference), with what vLLM adds to it and clients use: top_k,
add_generation_prompt and continue_final_message to have a last message of the assistant continued, return_token_ids, and
stop_reason in answers.
"""

from __future__ import annotations

import difflib
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator
from pydantic_core import PydanticCustomError

from rewardlab.servers.limits import Refused

ROWS = 128
"""Replies of one request, at most."""
LIKELY = 20
NEUTRAL: dict[str, tuple[Any, ...]] = {
    "tools": ([],), "functions": ([],), "logit_bias": ({},), "frequency_penalty": (0,), "presence_penalty": (0,), "suffix": ("",),
    "response_format": ({"type": "text"},), "modalities": (["text"],), "audio": (), "prediction": (),
    "tool_choice": ("none", "auto"), "web_search_options": (), "best_of": (1,),
    # vLLM's and SGLang's
    "min_p": (0,), "repetition_penalty": (1,), "length_penalty": (1,), "min_tokens": (0,), "stop_token_ids": ([],),
    "ignore_eos": (False,), "bad_words": ([],), "allowed_token_ids": ([],), "skip_special_tokens": (True,),
    "spaces_between_special_tokens": (True, False),
    "include_stop_str_in_output": (False,), "use_beam_search": (False,), "add_generation_prompt": (True, False),
    "add_special_tokens": (False, True), "chat_template_kwargs": ({},), "documents": ([],), "echo": (False,),
    "return_tokens_as_token_ids": (False,), "guided_json": (), "guided_regex": (),
    "guided_choice": (), "guided_grammar": (), "structured_outputs": ({},), "regex": (), "json_schema": (), "ebnf": (),
    "prompt_logprobs": (0,),
    "truncate_prompt_tokens": (-1,), "chat_template": (), "reasoning_effort": (), "verbosity": (),
}  # fmt: skip
"""What is not done here: it may be given with a value that changes nothing, or null."""
ABOUT = (
    "user", "metadata", "store", "service_tier", "safety_identifier", "prompt_cache_key", "prompt_cache_retention", "request_id",
    "parallel_tool_calls", "cache_salt", "priority",
)  # fmt: skip
"""What says something of a request and changes no reply."""


class Part(BaseModel):
    model_config = ConfigDict(strict=True)
    type: str
    text: str = ""


class Function(BaseModel):
    """A function that the policy may call.  parameters: a JSON schema. What else a client says of it, templates may write."""

    model_config = ConfigDict(strict=True, extra="allow")
    name: str = Field(min_length=1)
    description: str | None = None
    parameters: dict[str, Any] | None = None


class Tool(BaseModel):
    model_config = ConfigDict(strict=True, extra="allow")
    type: Literal["function"]
    function: Function


class Called(BaseModel):
    """The function of a call, and its arguments as JSON text."""

    model_config = ConfigDict(strict=True)
    name: str
    arguments: str


class ToolCall(BaseModel):
    model_config = ConfigDict(strict=True)
    id: str = ""
    function: Called


class Said(BaseModel):
    model_config = ConfigDict(strict=True)
    role: Literal["system", "developer", "user", "assistant", "tool"]
    content: str | list[Part] | None = None
    tool_calls: list[ToolCall] | None = None
    function_call: dict[str, Any] | None = None

    @model_validator(mode="after")
    def _says_something(self) -> Said:
        if self.content in (None, []) and not self.tool_calls and not self.function_call:
            instead = ", or its tool_calls" if self.role == "assistant" else ""
            lacking = "the {role} message has no content: give a text{instead}"
            raise PydanticCustomError("no_content", lacking, {"role": self.role, "instead": instead})
        return self

    @property
    def text(self) -> str:
        if self.function_call:
            raise bad("function_call is of an older API, which is not supported here: give tool_calls", "messages")
        if not isinstance(self.content, list):
            return self.content or ""
        if other := next((part.type for part in self.content if part.type != "text"), None):
            raise bad(f"a message holds {other}: this model reads text alone", "messages")
        return "".join(part.text for part in self.content)


class Asked(BaseModel):
    """What both kinds have. None: as by default."""

    model_config = ConfigDict(strict=True)
    model: str
    max_tokens: int | None = Field(None, ge=0)
    temperature: float | None = Field(None, ge=0, le=2)
    top_p: float | None = Field(None, gt=0, le=1)
    top_k: int | None = Field(None, ge=-1)
    n: int | None = Field(None, ge=1, le=ROWS)
    stop: str | list[str] | None = None
    seed: int | None = Field(None, ge=-(2**63), lt=2**63)
    stream: bool | None = None
    stream_options: dict[str, Any] | None = None
    return_token_ids: bool | None = None

    @property
    def stops(self) -> tuple[str, ...]:
        stops = [self.stop] if isinstance(self.stop, str) else self.stop or []
        return tuple(stop for stop in stops if stop)

    @property
    def usage_in_stream(self) -> bool:
        return bool((self.stream_options or {}).get("include_usage"))


class Chat(Asked):
    max_tokens: int | None = Field(None, ge=1)
    messages: list[Said] = Field(min_length=1)
    max_completion_tokens: int | None = Field(None, ge=1)
    logprobs: bool | None = None
    top_logprobs: int | None = Field(None, ge=0, le=LIKELY)
    continue_final_message: bool | None = None
    tools: list[Tool] | None = None
    tool_choice: Literal["none", "auto"] | None = None

    @property
    def schemas(self) -> list[dict[str, Any]]:
        """The functions that the policy may call, as chat templates take them."""
        given = [] if self.tool_choice == "none" else self.tools or []
        return [_complete(tool.model_dump(exclude_none=True)) for tool in given]

    @property
    def most(self) -> int | None:
        return self.max_completion_tokens if self.max_completion_tokens is not None else self.max_tokens

    @property
    def likely(self) -> int | None:
        """How many of the likeliest tokens are wanted with their log-probs; None: no log-probs at all."""
        return (self.top_logprobs or 0) if self.logprobs else None

    @property
    def echo(self) -> bool:
        return False


class Completion(Asked):
    prompt: str | list[str] | list[int] | list[list[int]]
    logprobs: int | None = Field(None, ge=0, le=LIKELY)
    echo: bool = False

    @property
    def most(self) -> int:
        return 16 if self.max_tokens is None else self.max_tokens

    @property
    def likely(self) -> int | None:
        return self.logprobs

    @property
    def prompts(self) -> list[str | list[int]]:
        """Each a text, or ids."""
        if isinstance(self.prompt, str):
            return [self.prompt]
        ids = [x for x in self.prompt if isinstance(x, int)]
        return [ids] if ids else list(self.prompt)  # type: ignore[arg-type]


def _complete(schema: dict[str, Any]) -> dict[str, Any]:
    """With what templates and readers of calls expect: a description, and parameters."""
    function = schema["function"]
    return schema | {"function": {"name": "", "description": "", "parameters": {"type": "object", "properties": {}}} | function}


def read(kind: type[Asked], document: Any) -> Any:
    """A body as `kind`. Raises Refused, which names the field, for what is wrong in it or not done here."""
    if not isinstance(document, dict):
        raise bad("the body must be a JSON object")
    for name, values in NEUTRAL.items():
        value = document.get(name)
        neutral = any(value == x and isinstance(value, bool) == isinstance(x, bool) for x in values)
        if value is not None and name not in kind.model_fields and not neutral:
            when = ", and tell the server when it starts (--chat-template-kwargs)" if name == "chat_template_kwargs" else ""
            raise bad(f"{name} is not supported here: leave it out{when}", name)
    if document.get("add_generation_prompt") is False and not document.get("continue_final_message"):
        raise bad("add_generation_prompt=false goes with continue_final_message=true: leave it out", "add_generation_prompt")
    known = {*kind.model_fields, *NEUTRAL, *ABOUT}
    if other := next((name for name in document if name not in known and document[name] is not None), None):
        near = difflib.get_close_matches(other, known, n=1)
        meant = f"; did you mean {near[0]}?" if near else ": leave it out"
        raise bad(f"{other[:100]} is not known here{meant}", other[:100])
    try:
        return kind.model_validate(document)
    except ValidationError as problem:
        first = problem.errors(include_url=False, include_input=False)[0]
        where = ".".join(str(x) for x in first["loc"])
        raise bad(f"{where}: {first['msg'].lower()}", str(first["loc"][0])) from None


def bad(message: str, param: str | None = None, code: str = "", status: int = 400) -> Refused:
    """An error that names the field in question."""
    return Refused(status, message, code, param=param)
