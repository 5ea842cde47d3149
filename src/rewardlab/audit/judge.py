"""A judge behind an OpenAI-compatible chat endpoint, as a target. A template makes its prompt; its reply holds the score."""

from __future__ import annotations

import json
import os
import re
import urllib.error
import urllib.request
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from rewardlab.errors import RewardlabError

from .target import RewardResult, Row, Target

TEMPLATE = """Judge the reply to a question. The right answer is given. Is the reply's final answer right, and its reasoning sound?

[Question]
{prompt}

[Right answer]
{answer}

[Reply]
{response}

[End of the reply]
Say only a score from 0 (wrong) to 10 (right), in the form [[score]]."""

_NUMBER = r"([-+]?[0-9]{1,9}(?:\.[0-9]{1,9})?)"
_MARKED = (
    re.compile(rf"\[\[\s{{0,3}}{_NUMBER}"),
    re.compile(rf"(?:score|rating|grade)\"?[*_ ]{{0,3}}(?:is|:|=)[*_ ]{{0,3}}{_NUMBER}", re.I),
)
_ANY = re.compile(_NUMBER)


class Judge(Target):
    """spec: url; optionally model, template, pattern (a regular expression with one group), concurrency, seconds, and key
    (the name of the environment variable that holds the API key).
    """

    def __init__(self, spec: dict[str, Any]):
        self.url = completions_of(spec["url"])
        self.template = spec.get("template") or TEMPLATE
        if "{response}" not in self.template:
            raise RewardlabError("the judge's template has no {response} in it")
        self.pattern = re.compile(spec["pattern"]) if spec.get("pattern") else None
        self.concurrent = int(spec.get("concurrency") or 8)
        self.seconds = float(spec.get("seconds") or 6.0)
        self.headers = {"Content-Type": "application/json"}
        if spec.get("key"):
            if spec["key"] not in os.environ:
                raise RewardlabError(f"the environment variable {spec['key']}, which holds the judge's key, is not set")
            self.headers["Authorization"] = f"Bearer {os.environ[spec['key']]}"
        self.model = spec.get("model") or self._first_model()
        self.name = f"{self.model} at {spec['url']}"

    def score(self, rows: Sequence[Row]) -> list[RewardResult]:
        with ThreadPoolExecutor(self.concurrent) as pool:
            return list(pool.map(self._one, rows))

    def _one(self, row: Row) -> RewardResult:
        values = {"prompt": row.prompt, "response": row.reply, "answer": str(row.answer)}
        # one pass, so that a placeholder within a reply is not filled in
        prompt = re.sub(r"\{(prompt|response|answer)\}", lambda m: values[m[1]], self.template)
        body = {"model": self.model, "messages": [{"role": "user", "content": prompt}], "temperature": 0.0, "max_tokens": 512}
        try:
            text = self._post(self.url, body)["choices"][0]["message"]["content"] or ""
        except TimeoutError:
            return RewardResult("hang", None, f"no answer within {self.seconds:g} s")
        except (OSError, ValueError, KeyError, IndexError, TypeError) as problem:
            return RewardResult("error", None, f"the endpoint failed: {type(problem).__name__}: {problem}")
        value = self.read(text)
        why = text[:300]
        return (
            RewardResult("error", None, f"no score in the judge's reply {why!r}")
            if value is None
            else RewardResult("number", value, why)
        )

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

    def _first_model(self) -> str:
        try:
            return str(self._post(self.url.removesuffix("/chat/completions") + "/models")["data"][0]["id"])
        except (OSError, ValueError, KeyError, IndexError, TypeError) as problem:
            raise RewardlabError(
                f"cannot ask {self.url} for its models ({type(problem).__name__}: {problem}); give --judge-model NAME"
            ) from None

    def _post(self, url: str, body: dict[str, Any] | None = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(url, data, self.headers)
        try:
            with urllib.request.urlopen(request, timeout=self.seconds) as answer:
                return json.loads(answer.read())
        except urllib.error.HTTPError as problem:
            raise OSError(f"HTTP {problem.code}: {problem.read(200).decode(errors='replace')}") from None
        except urllib.error.URLError as problem:
            raise problem.reason if isinstance(problem.reason, OSError) else OSError(str(problem.reason)) from None


def completions_of(url: str) -> str:
    """The address of chat completions, for http://host:port, .../v1, or the whole address."""
    address = url.rstrip("/")
    if address.endswith("/chat/completions"):
        return address
    return address + ("" if re.search(r"/v\d+$", address) else "/v1") + "/chat/completions"


def _float(text: Any) -> float | None:
    try:
        return float(text)
    except (TypeError, ValueError):
        return None
