"""The bodies of a reward server's requests, and its answers: OpenRLHF's, slime's, and our own.

After OpenRLHF 0.11.2's openrlhf/utils/agent.py (`_fetch_rewards_via_http`) and openrlhf/cli/serve_rm.py: {"query", "prompts",
"labels"} to {"rewards", "scores", "extra_logs"}, lists all of them; and slime's slime/rollout/rm_hub/__init__.py, `remote_rm`
(commit 0b420f1): {"prompt", "response", "label"} to what is the sample's reward.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from rewardlab.processes.pool import Done, Failed
from rewardlab.servers.limits import Refused
from rewardlab.util.messages import text_of

ENDS = ("</s>", "<|im_end|>", "<|endoftext|>", "<|eot_id|>", "<|end_of_text|>", "<end_of_turn>", "<|end|>")
"""What trainers leave at the end of a response where they decode it with its special tokens, as OpenRLHF does."""
BEGINS = ("", "<s>", "<bos>", "<|begin_of_text|>", "<|endoftext|>", "<｜begin▁of▁sentence｜>", "[gMASK]<sop>", "[gMASK] <sop>")
"""Tokens that begin a text."""
HEADER = re.compile(
    r"\s*(?:<\|im_end\|>|<\|eot_id\|>|<end_of_turn>|<\|end\|>|<\|end_of_text\|>|</s>)?\s*(?:<\|im_start\|>assistant\n?"
    r"|<\|start_header_id\|>assistant<\|end_header_id\|>\n{0,2}|<start_of_turn>model\n?|<\|assistant\|>\n?|\[/INST\]|<｜Assistant｜>"
    r"|<\|start\|>assistant(?:<\|channel\|>\w+)?<\|message\|>|(?:#{1,3} ?)?(?:Response|Assistant|ASSISTANT|Answer):)"
)
"""What chat templates write between a prompt and its response."""
RESPONSE = ("response", "completion", "reply", "text", "solution_str")
"""Names of a response in a row, of which the first counts that it has: those by which reward functions ask for it, too."""
STATUS = {"timeout": 422, "crash": 422, "error": 500, "none": 503, "stopped": 503}
"""By why a row has no score: the status, where the protocol has no word for it."""


class Message(BaseModel):
    """content: a text. Parts of text, and calls of tools, become one."""

    model_config = ConfigDict(strict=True)
    role: str
    content: str

    @model_validator(mode="before")
    @classmethod
    def _in_words(cls, value: Any) -> Any:
        if isinstance(value, dict) and (isinstance(value.get("content"), list) or isinstance(value.get("tool_calls"), list)):
            return {**value, "content": text_of(value)}
        return value


class Row(BaseModel):
    """One response, by any of its names (`RESPONSE`).  answer: the gold answer, a text, number, list or object, as the reward takes
    it.  meta: further columns.  ids: the tokens of the response, to which positions of steps then refer.
    """

    model_config = ConfigDict(strict=True, extra="forbid")
    prompt: str | list[Message] = ""
    response: str
    answer: Any = None
    meta: dict[str, Any] = Field(default_factory=dict)
    ids: list[int] | None = None

    @model_validator(mode="before")
    @classmethod
    def _named(cls, value: Any) -> Any:
        if not isinstance(value, dict) or "response" in value:
            return value
        name = next((name for name in RESPONSE if name in value), "response")
        return {("response" if key == name else key): x for key, x in value.items()}


class Rows(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid")
    rows: list[Row]


class OpenRLHF(BaseModel):
    """query: prompts with their responses, as one text each."""

    model_config = ConfigDict(strict=True)
    query: list[str]
    prompts: list[str]
    labels: list[Any] | None = None

    def rows(self) -> list[Row]:
        labels = self.labels or [None] * len(self.query)
        if not len(self.query) == len(self.prompts) == len(labels):
            raise Refused(
                422, f"{len(self.query)} queries, {len(self.prompts)} prompts, {len(labels)} labels: one of each for a row"
            )
        pairs = zip(self.query, self.prompts, labels, strict=True)
        return [
            Row(prompt=prompt, response=response_of(i, query, prompt), answer=label)
            for i, (query, prompt, label) in enumerate(pairs)
        ]


class Slime(BaseModel):
    model_config = ConfigDict(strict=True)
    prompt: str | list[Message]
    response: str
    label: Any = None

    def rows(self) -> list[Row]:
        return [Row(prompt=self.prompt, response=without_end(self.response), answer=self.label)]


def read(model: type[BaseModel], document: Any) -> Any:
    """A document as `model`. Raises Refused (422) that says which field is wrong."""
    try:
        return model.model_validate(document)
    except ValidationError as problem:
        raise Refused(422, _wrong(model, problem)) from None


OBJECT = "must be an object {{...}}, not {input}"
WORDS = {
    "missing": "field required", "extra_forbidden": "unknown field", "string_type": "must be a text, not {input}",
    "list_type": "must be a list, not {input}", "int_type": "must be a whole number, not {input}",
    "model_type": OBJECT, "model_attributes_type": OBJECT, "dict_type": OBJECT,
}  # fmt: skip
"""What is wrong with a field, by pydantic's name for it."""
TOLD = 5
"""Wrong fields of a request that are named."""


def _wrong(model: type[BaseModel], problem: ValidationError) -> str:
    """Each wrong field with what is wrong, in the order of the request."""
    found: dict[str, list[dict[str, Any]]] = {}
    for error in problem.errors(include_url=False):
        # what may be one of several types is read as each: of a field that has errors below it these say more
        where = ".".join(str(x) for x in error["loc"] if x != "str" and not str(x).startswith("list["))
        found.setdefault(where or "the body", []).append(dict(error))
    deepest = {where: errors for where, errors in found.items() if not any(other.startswith(f"{where}.") for other in found)}
    told = [f"{where}: {_said(errors)}" for where, errors in deepest.items()]
    fields = ", ".join((Row if model is Rows and any("." in where for where in deepest) else model).model_fields)
    unknown = any(error["type"] == "extra_forbidden" for errors in deepest.values() for error in errors)
    more = f" (and {len(told) - TOLD} more)" if len(told) > TOLD else ""
    # protocols of others have no place for them
    columns = ": other columns go into meta" if model in (Row, Rows) else ""
    return "; ".join(told[:TOLD]) + more + (f" (fields: {fields}{columns})" if unknown else "")


def _said(errors: list[dict[str, Any]]) -> str:
    kinds = {error["type"] for error in errors}
    if kinds == {"string_type", "list_type"}:
        return "must be a text or a list of messages"
    first = errors[0]
    words = WORDS.get(first["type"])
    return words.format(input=type_of(first["input"])) if words else str(first["msg"]).lower()


def type_of(value: Any) -> str:
    """What a JSON value is, in words."""
    kinds = {bool: "true or false", str: "a text", int: "a number", float: "a number", list: "a list", type(None): "null"}
    return kinds.get(type(value), "an object")


def response_of(i: int, query: str, prompt: str) -> str:
    """The response in a query. Raises Refused where the prompt is not in it: a prompt that is scored with the response may be
    rewarded for what it says itself.
    """
    before, found, after = query.partition(prompt)
    # the tokenizer may have put a token before the text
    if found and before.strip() in BEGINS:
        return without_end(after)
    # a prompt as it stands in the data, within a chat template that was put around it
    at = query.find(prompt.strip()) if prompt.strip() else -1
    while at >= 0:
        if header := HEADER.match(query, at + len(prompt.strip())):
            return without_end(query[header.end() :])
        at = query.find(prompt.strip(), at + 1)
    raise Refused(
        422, f"query.{i} does not begin with prompts.{i}: nothing says where the response begins (a prompt that was cut, or a chat "
        "template that is not known here? send prompts with the template that queries have)"
    )  # fmt: skip


def without_end(text: str) -> str:
    """A response without the end tokens that were decoded with it."""
    while (shorter := next((text.removesuffix(end) for end in ENDS if text.endswith(end)), text)) != text:
        text = shorter
    return text


def scored(result: Done | Failed, size: int) -> list[dict[str, Any]]:
    """The documents of the rows of one call. Without a score: "score" is null, "why" says why, and "failed" is a word of STATUS."""
    # a row alone is a group of one rollout, which its sender does not know
    place = ("rollout 0 of group 0", "this row") if size == 1 else ("", "")
    if isinstance(result, Done):
        return [
            row if row["score"] is not None else {**row, "failed": "none", "why": row["why"].replace(*place) or "no verdict"}
            for row in result.value
        ]
    why = result.why.replace(*place)
    empty: dict[str, Any] = {"score": None, "steps": [], "terms": {}, "why": why, "extracted": "", "failed": result.kind}
    return [empty] * size


def numbers(rows: Sequence[dict[str, Any]]) -> list[float]:
    """The scores. Raises Refused for one that is missing, which these protocols have no word for: it must not become a 0."""
    for i, row in enumerate(rows):
        if row["score"] is None:
            status = STATUS[row["failed"]]
            headers = {"Retry-After": "1"} if status == 503 else {}
            raise Refused(status, f"row {i} has no score: {row['why']}", row["failed"], headers)
    return [row["score"] for row in rows]


def openrlhf(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """rewards, scores (for its dynamic filtering: the same), and in extra_logs the terms that all rows have a value of."""
    rewards = numbers(rows)
    names = dict.fromkeys(name for row in rows for name in row["terms"])
    values = {name: [row["terms"].get(name, {}).get("value") for row in rows] for name in names}
    return {"rewards": rewards, "scores": rewards, "extra_logs": {k: v for k, v in values.items() if None not in v}}
