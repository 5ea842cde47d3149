"""Environments behind an OpenEnv server: reset and step over a WebSocket, observations and actions as plain data.

The client is openenv-core's own (github.com/meta-pytorch/OpenEnv, BSD; read: 0.3.0, `GenericEnvClient`), so that the packages of
environments need not be installed here. An action of one field is the action of the reply; one of several is a JSON object.
"""

from __future__ import annotations

import functools
import json
import urllib.request
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from rewardlab.core import Message, Problem, Turn, environment
from rewardlab.errors import RewardlabError
from rewardlab.text import strict_json
from rewardlab.text.answers import after_thinking
from rewardlab.util.extras import require

from .actions import action_in, begun
from .actions import played as play

BESIDES = ("done", "reward", "metadata")
"""Fields of every observation, and of every action, that are none of its content."""
SECONDS = 10.0


@functools.cache
def schema_of(url: str) -> Mapping[str, Any]:
    """The JSON schema of the actions of the environment at this address. Raises RewardlabError where no server answers."""
    require("openenv", "openenv", what="an environment behind an OpenEnv server")
    try:
        with urllib.request.urlopen(f"{url.rstrip('/')}/schema", timeout=SECONDS) as answer:
            return json.load(answer)["action"]
    except (OSError, ValueError, KeyError) as e:
        raise RewardlabError(f"no OpenEnv server answers at {url} ({e}): start it, and give its address (openenv:URL)") from e


def fields_of(url: str) -> dict[str, Mapping[str, Any]]:
    """The fields of an action, with their schemas."""
    return {name: field for name, field in schema_of(url).get("properties", {}).items() if name not in BESIDES}


class Session:
    """An episode on a server."""

    def __init__(self, url: str, number: int, whole: bool) -> None:
        from openenv.core.generic_client import GenericEnvClient

        self.url, self.whole = url, whole
        self.client = GenericEnvClient(base_url=url).sync()
        try:
            self.client.connect()
            self.seen = shown(self.client.reset(seed=number).observation)
        except Exception as e:
            raise RewardlabError(
                f"the OpenEnv server at {url} begins no episode: {' '.join(str(e).split())}. It must allow as many sessions as "
                "there are episodes at a time (max_concurrent_envs of create_app)"
            ) from e

    def act(self, action: str) -> tuple[str, float, bool]:
        command = self._command(action)
        if isinstance(command, str):
            return f"{command}\n\n{self.seen}", 0.0, False
        try:
            result = self.client.step(command)
        except RuntimeError as e:
            # the environment refuses the action, or it is none by its schema
            return f"The environment answers: {' '.join(str(e).split())[:500]}", 0.0, False
        self.seen = shown(result.observation)
        return self.seen, float(result.reward or 0.0), bool(result.done)

    def _command(self, action: str) -> dict[str, Any] | str:
        """The action as the server takes it, or why there is none."""
        fields = fields_of(self.url)
        if len(fields) == 1:
            ((name, field),) = fields.items()
            if field.get("type") not in ("integer", "number"):
                return {name: action}
            try:
                return {name: int(action) if field["type"] == "integer" else float(action)}
            except ValueError:
                return f"{action[:60]!r} is no number, and {name} is one."
        try:
            value = strict_json.parse(action)
        except ValueError:
            value = None
        return value if isinstance(value, dict) else f"An action is a JSON object with: {', '.join(fields)}."

    def close(self) -> None:
        """End the session, so that the server has room for another."""
        self.client.close()


def shown(observation: Mapping[str, Any]) -> str:
    """An observation as text: its only field, or a line for each."""
    content = {name: value for name, value in observation.items() if name not in BESIDES and value is not None}
    texts = {name: value if isinstance(value, str) else json.dumps(value) for name, value in content.items()}
    return next(iter(texts.values())) if len(texts) == 1 else "\n".join(f"{name}: {text}" for name, text in texts.items())


def _begin(url: str, number: int, whole: bool) -> Callable[[], Session]:
    return partial(Session, url, number, whole)


def _start(problem: Problem, seed: int) -> tuple[Message, dict[str, Any]]:
    problem.required("url", "number", by="openenv", how="Name the task: --task openenv:URL")
    of = str(problem.meta["url"]), int(problem.meta["number"]), bool(problem.meta.get("whole"))
    return begun(("openenv", *of), _begin(*of))


@environment(start=_start, waits=True)
def openenv(state: dict[str, Any], turn: Turn) -> tuple[Message, dict[str, Any]]:
    """The environment behind the OpenEnv server at meta["url"], reset with the seed meta["number"]; its rewards are the messages'.

    An action is the last line of a reply, or stands between <action> tags; with meta["whole"] it is the whole reply.
    """
    of = state["of"][1:]
    action = after_thinking(turn.text).strip() if of[2] else action_in(turn.text)
    return play(state, action, _begin(*of))
