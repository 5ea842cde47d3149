"""What a package that `export-env` wrote becomes in `verifiers` >= 0.4: a Taskset and the Env that plays it."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rewardlab.api.exported_environment import Episode, Exported, parts_of
from rewardlab.envs.verifiers.tasksets import HARNESS


def taskset(folder: Path) -> tuple[type, type]:
    """The classes that the package exports: its Taskset, and its Env."""
    from rewardlab.envs.verifiers import harness

    # an agent that is not told otherwise chats in this process
    sys.modules[HARNESS] = harness
    exported = Exported(folder)
    return _rows(exported), _play(exported)


def _rows(exported: Exported) -> type:
    import verifiers.v1 as vf

    class Data(vf.TaskData):
        """A row, as JSON."""

        row: str = ""

    class Row(vf.Task[Data, vf.State, vf.TaskConfig]):
        """A row of the task. It is scored by `Play`, which has the episode."""

    class Config(vf.TasksetConfig):
        """split: train or test."""

        split: str = "train"

    class Tasks(vf.Taskset[Row, Config]):
        """The rows of the task."""

        def load(self) -> Iterator[Any]:
            for row in exported.rows(self.config.split):
                system = [m["content"] for m in row["prompt"] if m["role"] == "system"]
                rest = [m for m in row["prompt"] if m["role"] != "system"]
                data = Data(prompt=rest, system_prompt="\n\n".join(system) or None, row=json.dumps(row))
                yield Row(data, self.config.task)

    return Tasks


def _play(exported: Exported) -> type:
    import verifiers.v1 as vf

    class PlayConfig(vf.EnvConfig):
        """agent: who plays; by default it chats, in this process."""

        agent: vf.AgentConfig = vf.AgentConfig(harness={"id": HARNESS}, runtime={"type": "subprocess"})

    class Play(vf.Env[PlayConfig]):
        """The turns of the exported environment, and the verifier as reward."""

        async def run(self, task: Any, agents: Any) -> None:
            episode = await asyncio.to_thread(exported.begin, json.loads(task.data.row), task.data.idx or 0)
            if episode.opening is not None:
                task = task.with_data(prompt=[*task.data.prompt, vf.UserMessage(content=episode.opening.text)])
            async with agents.agent.interaction(task) as talk:
                await _talked(talk, episode, exported.about["turns"])
            score = await asyncio.to_thread(episode.score)
            for name, value in parts_of(score).items():
                talk.trace.record_metric(name, value)
            talk.trace.record_reward("verdict", 0.0 if score.total is None else float(score.total), 1.0)

    return Play


async def _talked(talk: Any, episode: Episode, turns: int) -> None:
    """Agent and environment take turns, until one of them ends the episode."""
    segment = await talk.turn()
    for turn in range(turns):
        if segment.terminated:
            return
        message = await asyncio.to_thread(episode.reply, segment.last_reply)
        if message is None or episode.over or turn + 1 == turns:
            return
        segment = await talk.turn(message.text)
