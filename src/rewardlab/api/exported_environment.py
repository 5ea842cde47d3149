"""What a package that `export-env` wrote becomes in `verifiers` < 0.4, and what both interfaces share."""

from __future__ import annotations

import asyncio
import importlib.util
import json
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path
from typing import Any, Literal

import numpy as np

from rewardlab import registry
from rewardlab.core import Message, Problem, Score, Trajectory, Turn
from rewardlab.errors import RewardlabError


def interface() -> Literal["classic", "tasksets"]:
    """Which interface of verifiers is installed."""
    version = tuple(int(x) for x in metadata.version("verifiers").split(".")[:2])
    return "tasksets" if version >= (0, 4) and importlib.util.find_spec("verifiers.v1") else "classic"


class Exported:
    """A task as it was exported.  about: verifier, environment and turns."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.about = json.loads((folder / "task.json").read_text("utf-8"))
        self.verify = registry.verifier(self.about["verifier"])
        named = self.about["environment"]
        self.environment = registry.part("environment", named) if isinstance(named, str) else registry.load_part(named)

    def rows(self, split: str) -> list[dict[str, Any]]:
        """The rows of a split: prompt, answer and meta."""
        return [json.loads(line) for line in (self.folder / f"{split}.jsonl").read_text("utf-8").splitlines()]

    def problem(self, row: dict[str, Any]) -> Problem:
        return Problem(tuple(Message(m["role"], m["content"]) for m in row["prompt"]), row["answer"], row["meta"])

    def begin(self, row: dict[str, Any], seed: int) -> Episode:
        """An episode of a row at its beginning."""
        return Episode(self, self.problem(row), seed)


class Episode:
    """One episode: what was said, and where its environment is.  opening: what the environment says first.  over: it has ended."""

    def __init__(self, exported: Exported, problem: Problem, seed: int) -> None:
        self.exported, self.over = exported, False
        self.opening: Message | None = None
        self.state: Any = None
        if exported.environment:
            self.opening, self.state = exported.environment.start(problem, seed)
        shown = [m.text for m in (*problem.prompt, *([self.opening] if self.opening else ()))]
        self.played = Trajectory(problem, (Turn(None, np.zeros(1, np.int64), text="\n".join(shown)),))

    def reply(self, text: str) -> Message | None:
        """The environment's answer to a reply; None without an environment, and where it ends without a word."""
        turn = Turn("policy", np.zeros(max(1, len(text)), np.int64), text=text)
        self.played = self.played.plus(turn)
        environment = self.exported.environment
        if environment is None:
            self.over = True
            return None
        # as a rollout tells it: without the verdict an environment of several tries takes every reply for right
        if isinstance(self.state, dict) and "task_verdict" in self.state:
            self.state = {**self.state, "task_verdict": self.score().value}
        message, self.state = environment(self.state, turn)
        self.over = message is None or message.last
        if message is not None:
            ids = np.zeros(0 if self.over else 1, np.int64)
            self.played = self.played.plus(Turn(None, ids, text=message.text, reward=message.reward))
        return message

    def score(self) -> Score:
        """The verifier's score of the episode as it stands."""
        return self.exported.verify([[self.played]])[0][0]


def parts_of(score: Score) -> dict[str, float]:
    """What is logged beside the reward: the numbers that the verifier reports, and whether there is a verdict."""
    numbers = {name: term.value for name, term in score.terms.items() if term.weight is None and term.value is not None}
    return {**numbers, "no_verdict": float(score.value is None)}


def classic(folder: Path, **options: Any) -> Any:
    """An Environment of verifiers < 0.4: rows as datasets, turns as `env_response`, the verifier as rubric."""
    import verifiers as vf
    from datasets import Dataset

    exported = Exported(folder)
    data = {split: _dataset(exported.rows(split), Dataset) for split in ("train", "test")}
    given = {"max_turns": exported.about["turns"], **options}
    rubric = vf.Rubric(funcs=[verdict, no_verdict], weights=[1.0, 0.0])
    return _classic_turns(exported)(dataset=data["train"], eval_dataset=data["test"], rubric=rubric, **given)


async def verdict(state: Any) -> float:
    """The verifier's score; 0 without a verdict, which the metric no_verdict tells."""
    score = await asyncio.to_thread(state["episode"].score)
    state["score"] = score
    return 0.0 if score.total is None else float(score.total)


async def no_verdict(state: Any) -> float:
    """1 where the verifier has no verdict."""
    return parts_of(state["score"])["no_verdict"]


def _classic_turns(exported: Exported) -> type:
    import verifiers as vf

    class Played(vf.MultiTurnEnv):
        """The turns of the exported environment."""

        async def setup_state(self, state: Any) -> Any:
            info = state["info"] if isinstance(state["info"], dict) else json.loads(state["info"])
            # the row is the seed: the rollouts of a row begin alike
            row, seed = json.loads(info["row"]), int(state.get("example_id") or 0)
            state["episode"] = episode = await asyncio.to_thread(exported.begin, row, seed)
            if episode.opening is not None:
                state["prompt"] = [*state["prompt"], vf.UserMessage(content=episode.opening.text)]
            return state

        @vf.stop
        async def is_over(self, state: Any) -> bool:
            """Whether the exported environment has ended the episode."""
            return bool(state["episode"].over)

        async def add_trajectory_step(self, state: Any, trajectory_step: Any) -> None:
            await super().add_trajectory_step(state, trajectory_step)
            state["said"] = await asyncio.to_thread(state["episode"].reply, _text(trajectory_step["completion"][-1]))

        async def env_response(self, messages: Any, state: Any, **_: Any) -> Any:
            return [vf.UserMessage(content=state["said"].text)]

    return Played


def _dataset(rows: Sequence[dict[str, Any]], kind: Any) -> Any:
    if not rows:
        raise RewardlabError("the package has a split without rows")
    # as text, since a table would give the objects of all rows the same keys
    return kind.from_list(
        [
            {"prompt": row["prompt"], "answer": json.dumps(row["answer"]), "info": json.dumps({"row": json.dumps(row)})}
            for row in rows
        ]
    )


def _text(message: Any) -> str:
    content = message["content"] if isinstance(message, dict) else message.content
    return content if isinstance(content, str) else "" if content is None else "\n".join(str(part) for part in content)
