"""A taskset of verifiers >= 0.4: its tasks carry rewards, and agents play them.

An agent's harness is a program that calls the model. Where the environment names none, it is `harness.py`, which runs in this
process; others run as verifiers runs them (most need `uv`, or a container).
"""

from __future__ import annotations

import asyncio
import functools
import json
import sys
from collections.abc import Awaitable, Callable, Iterator, Mapping
from typing import Any

from rewardlab.core import Message
from rewardlab.envs.driven import in_loop, text_of
from rewardlab.errors import RewardlabError

from .shapes import Outcome, Row

HARNESS = "rewardlab_chat"
"""The name by which verifiers finds our harness."""
NO_KEY = "REWARDLAB_NO_KEY"


class Tasks:
    """It plays by its own `run_episode`, and its tasks score themselves when an agent's run is closed."""

    has_test = False

    def __init__(self, name: str, options: Mapping[str, Any]) -> None:
        import verifiers.v1 as vf

        from . import harness

        # verifiers imports a harness by the name of its module, which must have no dots
        sys.modules[HARNESS] = harness
        self.name = name
        self.env = vf.load_environment(_config(name, options))

    def rows(self, test: bool) -> Iterator[Row]:
        """Its tasks, in the order of the taskset."""
        for task in self.env.taskset:
            data = task.data
            prompt = (*([Message("system", data.system_prompt)] if data.system_prompt else ()), *_messages(data.prompt))
            yield Row(prompt, getattr(data, "answer", None), data.model_dump_json(exclude_none=True))

    def shown(self, data: str) -> list[str]:
        task = self._task(data).data
        return [*([task.system_prompt] if task.system_prompt else ()), *(m.text for m in _messages(task.prompt))]

    def _task(self, data: str) -> Any:
        kind = type(self.env.taskset).task_type()
        return kind(kind.data_type().model_validate(json.loads(data)), self.env.taskset.config.task)

    def play(self, data: str) -> Callable[[str, str], Awaitable[Any]]:
        """Its result is the Episode."""

        async def run(address: str, model: str) -> Any:
            import verifiers.v1 as vf

            await self._served
            client = vf.EvalClientConfig(base_url=address, api_key_var=NO_KEY)
            return await self.env.run_episode(self._task(data), vf.ModelContext(model=model, client=client))

        # what its episodes share is brought up once, in the loop that they run in
        in_loop(self._serve())
        return run

    async def _serve(self) -> None:
        if not hasattr(self, "_served"):
            self._served: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._serving = asyncio.ensure_future(self._keep_serving())
            await self._served

    async def _keep_serving(self) -> None:
        try:
            async with self.env.serving():
                self._served.set_result(None)
                await asyncio.Event().wait()
        except Exception as e:
            if not self._served.done():
                self._served.set_exception(e)

    def closing(self, result: Any) -> str:
        return ""

    def scores(self, results: list[Any]) -> list[Outcome]:
        return [self._outcome(episode) for episode in results]

    def _outcome(self, episode: Any) -> Outcome:
        """The rewards of the traces that are the policy's own: those of a model that the environment pins are not."""
        errors = [*episode.errors, *(error for trace in episode.traces for error in trace.errors)]
        if not episode.ok:
            says = f"{errors[0].type}: {errors[0].message}" if errors else "the episode failed"
            return Outcome(None, why=f"{self.name}: {' '.join(says.split())[:500]}")
        own = [trace for trace in episode.traces if getattr(trace.agent, "trainable", True)] or episode.traces
        rewards = {name: reward for trace in own for name, reward in trace.rewards.items()}
        if missing := [name for name, reward in rewards.items() if reward is None]:
            return Outcome(None, why=f"{self.name}: {missing[0]} was not scored")
        metrics = {name: float(value) for trace in own for name, value in trace.metrics.items() if value is not None}
        parts = {**metrics, **{name: float(reward.score) for name, reward in rewards.items()}}
        return Outcome(float(sum(trace.reward for trace in own)), parts)


def _messages(prompt: Any) -> tuple[Message, ...]:
    if prompt is None:
        return ()
    if isinstance(prompt, str):
        return (Message("user", prompt),)
    plain = [message.model_dump(exclude_none=True) for message in prompt]
    return tuple(Message(message["role"], text_of(message.get("content"))) for message in plain)


def _config(name: str, options: Mapping[str, Any]) -> Any:
    """The environment's config: options with a dot are those of the environment (`agent.max_turns`), others of its taskset."""
    import verifiers.v1 as vf
    from verifiers.v1.configs.agent import agent_config_fields
    from verifiers.v1.utils.loaders import default_harness_id, env_config_type

    document: dict[str, Any] = {"taskset": {"id": name}}
    for key, value in options.items():
        *path, last = key.split(".") if "." in key else ("taskset", key)
        functools.reduce(lambda inner, step: inner.setdefault(step, {}), path, document)[last] = value
    kind = env_config_type(name, document.get("id", ""))
    roles = [field for field, info in kind.model_fields.items() if isinstance(info.default, vf.AgentConfig)]
    if not roles:
        raise RewardlabError(f"the environment {name} has no agent that a policy could be")
    for role in roles:
        given, default = document.setdefault(role, {}), kind.model_fields[role].default
        if default.harness is None and "harness" not in given and default_harness_id(name) == "bash":
            given["harness"] = {"id": HARNESS}
        if "runtime" not in given and "runtime" not in default.model_fields_set:
            # the default is a sandbox of Prime Intellect, which needs an account
            given["runtime"] = {"type": "subprocess"}
    config = vf.resolve_env_config(document)
    assert agent_config_fields(config)
    return config
