"""A judge behind an OpenAI-compatible chat endpoint, as a target. A template makes its prompt; its reply holds the score."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any

from rewardlab.audit.target import RewardResult, Row, Target
from rewardlab.clients.client import Client
from rewardlab.clients.endpoint import Endpoint, base_of, endpoint_of, is_served
from rewardlab.clients.messages import Failure, Reply, Request
from rewardlab.errors import RewardlabError
from rewardlab.text.filled import filled

TEMPLATE = """Judge the reply to a question. The right answer is given. Is the reply's final answer right, and its reasoning sound?

[Question]
{prompt}

[Right answer]
{answer}

[Reply]
{response}

[End of the reply]
Say only a score from 0 (wrong) to 10 (right), in the form [[score]]."""
MAX_NEW = 512
RETRIES = 2
_NUMBER = r"([-+]?[0-9]{1,9}(?:\.[0-9]{1,9})?)"
_MARKED = (
    re.compile(rf"\[\[\s{{0,3}}{_NUMBER}"),
    re.compile(rf"(?:score|rating|grade)\"?[*_ ]{{0,3}}(?:is|:|=)[*_ ]{{0,3}}{_NUMBER}", re.I),
)
_ANY = re.compile(_NUMBER)


class Judge(Target):
    """spec: url, which may be openai:URL#NAME; optionally model, template, pattern (a regular expression with one group),
    concurrency, seconds, and key (the name of the environment variable that holds the API key).
    """

    def __init__(self, spec: dict[str, Any]):
        self.template = spec.get("template") or TEMPLATE
        if "{response}" not in self.template:
            raise RewardlabError("the judge's template has no {response} in it")
        self.pattern = re.compile(spec["pattern"]) if spec.get("pattern") else None
        self.client = Client(_endpoint(spec))
        self.concurrent = self.client.settings.concurrency
        self.name = str(self.client.endpoint)

    def score(self, rows: Sequence[Row]) -> list[RewardResult]:
        prompts = [filled(self.template, prompt=row.prompt, response=row.reply, answer=str(row.answer)) for row in rows]
        try:
            replies = self.client.chat([Request((("user", prompt),), MAX_NEW) for prompt in prompts])
        except RewardlabError as problem:
            return [_failed(str(problem))] * len(rows)
        return [self._result(reply) for reply in replies]

    def spent(self) -> dict[str, Any]:
        return {"model": self.name, **asdict(self.client.usage)}

    def _result(self, reply: Reply | Failure) -> RewardResult:
        if isinstance(reply, Failure):
            return RewardResult("hang", None, reply.why) if reply.timed_out else _failed(reply.why)
        value, why = self.read(reply.text), reply.text[:300]
        if value is None:
            return RewardResult("error", None, f"no score in the judge's reply {why!r}")
        return RewardResult("number", value, why)

    def read(self, text: str) -> float | None:
        """The score in a judge's reply: the pattern's match, else [[7]], else "score: 7", else the last number."""
        if self.pattern:
            matches = self.pattern.findall(text)
            return _float(matches[-1]) if matches else None
        for mark in (*_MARKED, _ANY):
            # the last match: a judge reasons first and states its score at the end
            if matches := mark.findall(text):
                return _float(matches[-1])
        return None


def _endpoint(spec: dict[str, Any]) -> Endpoint:
    """The endpoint, asked anew each time: whether it judges the same reply alike is part of the audit."""
    url, seconds = spec["url"], float(spec.get("seconds") or 6.0)
    named = endpoint_of(url) if is_served(url) else Endpoint(base_of(url))
    own = {"key": spec.get("key"), "concurrency": None if is_served(url) else spec.get("concurrency")}
    given = {name: value for name, value in own.items() if value}
    settings = replace(named.settings, cache=False, timeout=seconds, total=seconds, retries=RETRIES, **given)
    return Endpoint(named.url, spec.get("model") or named.model, settings)


def _failed(why: str) -> RewardResult:
    return RewardResult("error", None, f"the endpoint failed: {why}")


def _float(text: Any) -> float | None:
    try:
        return float(text)
    except (TypeError, ValueError):
        return None
