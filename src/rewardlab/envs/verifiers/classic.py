"""An environment of verifiers < 0.4: `load_environment(NAME, **options)` gives a dataset, a rollout and a rubric."""

from __future__ import annotations

import functools
import json
import logging
from collections.abc import Awaitable, Callable, Iterator, Mapping
from typing import Any

from rewardlab.core import Message
from rewardlab.envs.driven import in_loop, text_of, told
from rewardlab.errors import RewardlabError

from .shapes import Outcome, Row

NO_KEY = "REWARDLAB_NO_KEY"
"""The variable in which verifiers looks for the key of our address, which needs none."""
LEAST = (0, 1, 14)


class Classic:
    """It plays by its own `rollout`, which asks a model by the OpenAI API, and is scored by its own rubric, by groups."""

    def __init__(self, name: str, options: Mapping[str, Any]) -> None:
        import verifiers

        self.name, self.env = name, verifiers.load_environment(name, **options)
        if not hasattr(self.env, "run_group") or not hasattr(self.env.rubric, "score_group"):
            least = ".".join(map(str, LEAST))
            raise RewardlabError(f"this version of verifiers is too old: pip install 'verifiers>={least},<0.4'")
        self.has_test = any(getattr(self.env, name, None) is not None for name in ("eval_dataset", "eval_dataset_source"))
        if getattr(self.env, "dataset", None) is None and getattr(self.env, "dataset_source", None) is None:
            raise RewardlabError(f"{name} has no training problems, but problems to evaluate on alone")

    def rows(self, test: bool) -> Iterator[Row]:
        """Its dataset, or its eval dataset."""
        for row in self.env.get_eval_dataset() if test else self.env.get_dataset():
            yield Row(tuple(map(self._message, _prompt(row))), row.get("answer") or None, _json(row))

    def _message(self, message: Mapping[str, Any]) -> Message:
        if message.get("tool_calls"):
            raise RewardlabError(f"{self.name}: calls of tools in a prompt are not read")
        return Message(str(message["role"]), text_of(message.get("content")))

    def shown(self, data: str) -> list[str]:
        return [text_of(message.get("content")) for message in _prompt(json.loads(data))]

    def play(self, data: str) -> Callable[[str, str], Awaitable[Any]]:
        """Its result is the rollout's `state`."""

        async def run(address: str, model: str) -> Any:
            return await self.env.rollout(json.loads(data), _client(address), model, {})

        return run

    def closing(self, result: Any) -> str:
        final = result.get("final_env_response")
        if not final:
            return ""
        messages = [{"role": "user", "content": final}] if isinstance(final, str) else [_plain(message) for message in final]
        return told(messages).text

    def scores(self, results: list[Any]) -> list[Outcome]:
        """By `score_group`, which calls each reward function with what it asks for.

        A reward function that raises counts as 0 there; here there is no verdict then, which says why.
        """
        failed = _Failures()
        loggers = [rubric.logger for rubric in _rubrics(self.env.rubric)]
        for logger in loggers:
            logger.addHandler(failed)
        try:
            in_loop(self._scored(results))
        finally:
            for logger in loggers:
                logger.removeHandler(failed)
        return [self._outcome(state, failed.said) for state in results]

    async def _scored(self, states: list[Any]) -> None:
        await self.env.rubric.score_group(states)
        for state in states:
            await self.env.rubric.cleanup(state)

    def _outcome(self, state: Any, failed: list[str]) -> Outcome:
        parts = {name: float(value) for name, value in (state.get("metrics") or {}).items()}
        error = state.get("error")
        if error is not None or failed:
            cause = getattr(error, "__cause__", None) or error
            return Outcome(None, parts, f"{self.name}: {failed[0] if failed else f'{type(cause).__name__}: {cause}'}")
        return Outcome(float(state["reward"]), parts)


@functools.cache
def _client(address: str) -> Any:
    """The client of all episodes: each has its own model's name, and a client of its own would take a tenth of a second."""
    from verifiers.clients import resolve_client
    from verifiers.types import ClientConfig

    # the policy replies when it is its turn: nothing is asked twice
    return resolve_client(ClientConfig(api_base_url=address, api_key_var=NO_KEY, timeout=1e6, max_retries=0))


class _Failures(logging.Handler):
    """What rubrics log instead of raising."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.said: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.said.append(" ".join(record.getMessage().split()))


def _rubrics(rubric: Any) -> Iterator[Any]:
    """A rubric and those that it groups."""
    yield rubric
    for inner in getattr(rubric, "rubrics", None) or ():
        yield from _rubrics(inner)


def _prompt(row: Mapping[str, Any]) -> list[dict[str, Any]]:
    prompt = row["prompt"]
    return [{"role": "user", "content": prompt}] if isinstance(prompt, str) else [_plain(message) for message in prompt]


def _plain(message: Any) -> dict[str, Any]:
    return message if isinstance(message, dict) else message.model_dump(exclude_none=True)


def _json(row: Mapping[str, Any]) -> str:
    try:
        return json.dumps(dict(row))
    except TypeError as e:
        raise RewardlabError(f"a row of an environment must be plain data: {e}") from e
