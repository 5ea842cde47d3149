"""Episodes of an environment of `verifiers`: `verifiers:NAME` is the task, and this environment plays it.

Its program cannot be copied or saved, so the state of an episode is its row and the replies so far. The live program is kept; if it
is missing, or at another point, a new one is begun and given the same replies. What it does at random is seeded by the row and
the number of replies: so the episodes of a problem begin alike, and the same replies lead to the same point. Episodes are played
beside one another, since such programs may ask tools, judges and servers.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

from rewardlab.core import Message, Problem, Turn, environment, seed_of
from rewardlab.envs.driven import Asked, Conversation, Over, schemas_of, text_of, told
from rewardlab.envs.live import Live
from rewardlab.envs.tool_messages import told_of
from rewardlab.errors import RewardlabError

from .loaded import load
from .shapes import Loaded, Outcome

State = dict[str, Any]
NEEDED = ("environment", "options", "row")
"""Columns that the task `verifiers` writes."""

LIVE: Live[Conversation] = Live(drop=Conversation.abandon)
"""Programs that wait for a reply, or for their verdict."""


def _start(problem: Problem, seed: int) -> tuple[Message | None, State]:
    problem.required(*NEEDED, by="verifiers_episode", how="Name the task: --task verifiers:NAME")
    of = [str(problem.meta[name]) for name in NEEDED]
    environment, conversation = load(of[0], of[1]), _begun(*of)
    LIVE.keep(tuple(of), (), conversation)
    if isinstance(conversation.now, Over):
        raise _failed(of[0], conversation.now, environment)
    before = environment.shown(of[2])
    asked = [text_of(message.get("content")) for message in conversation.now.messages]
    if asked[: len(before)] != before:
        raise RewardlabError(
            f"{of[0]} begins an episode otherwise than its row says: {asked[: len(before)]!r:.200}. Episodes begin with the prompt "
            "of the row here, and one message more"
        )
    return _opening(schemas_of(conversation.now.tools), told(conversation.now.messages[len(before) :]).text), {
        "of": of,
        "replies": [],
    }


def _opening(tools: Sequence[dict[str, Any]], text: str) -> Message | None:
    if not tools:
        return Message("user", text) if text else None
    of_tools = told_of(tools)
    # what stands beside tools must be read too: then both are in words
    return Message("user", f"{of_tools.text}\n\n{text}") if text else of_tools


@environment(start=_start, waits=True)
def verifiers_episode(state: State, turn: Turn) -> tuple[Message | None, State]:
    """The environment of `verifiers` that the problem names in meta["environment"], with its options and row, as its task writes.

    Replies call tools in any form that models write. The episode ends when the environment asks no more; what it
    earned is its rubric's to say: the verifier `verifiers_reward`.
    """
    of, replies = state["of"], state["replies"]
    conversation = _taken(of, replies)
    before = conversation.now
    now = conversation.reply(turn.text, _seed(of, len(replies) + 1))
    state = {"of": of, "replies": [*replies, turn.text]}
    LIVE.keep(tuple(of), state["replies"], conversation)
    if isinstance(now, Over):
        closing = "" if now.error else load(of[0], of[1]).closing(now.result)
        return (Message("user", closing, last=True) if closing else None), state
    return told(_new(of[0], before, now)), state


def outcomes(problem: Problem, episodes: Sequence[Sequence[str]]) -> list[Outcome]:
    """What episodes of one problem earned, each given as its replies; one that is not at its end ends here."""
    of = [str(problem.meta[name]) for name in NEEDED]
    ends = [_taken(of, list(replies)).stop() for replies in episodes]
    well = iter(load(of[0], of[1]).scores([end.result for end in ends if end.error is None]) if _any_well(ends) else [])
    return [next(well) if end.error is None else Outcome(None, why=str(_failed(of[0], end))) for end in ends]


def _any_well(ends: Sequence[Over]) -> bool:
    return any(end.error is None for end in ends)


def _new(name: str, before: Asked | Over, now: Asked) -> list[dict[str, Any]]:
    """The messages after the last reply. Raises RewardlabError where what was said before has changed."""
    known = before.messages if isinstance(before, Asked) else []
    same = [text_of(m.get("content")) for m in known] == [text_of(m.get("content")) for m in now.messages[: len(known)]]
    if not same or len(now.messages) <= len(known) or now.messages[len(known)].get("role") != "assistant":
        raise RewardlabError(
            f"{name} goes on with another conversation than the one so far (it rewrites what was said, or a second agent asks "
            "the same model): only conversations that grow can be trained on here"
        )
    return now.messages[len(known) + 1 :]


def _taken(of: Sequence[str], replies: Sequence[str]) -> Conversation:
    """The program that is at this point: a live one, or a new one that is given the replies again."""
    count = itertools.count(1)

    def again(conversation: Conversation, text: str) -> None:
        conversation.reply(text, _seed(of, next(count)))

    return LIVE.take(tuple(of), replies, lambda: _begun(*of), again)


def _begun(*of: str) -> Conversation:
    name, options, row = of
    return Conversation(load(name, options).play(row), _seed(of, 0))


def _seed(of: Sequence[str], replies: int) -> int:
    """Of what an environment does at random after so many replies."""
    return seed_of("verifiers", *of, replies)


def _failed(name: str, over: Over, environment: Loaded | None = None) -> RewardlabError:
    """Why an episode came to no end of its own, in words."""
    if over.error is not None:
        cause = over.error.__cause__ or over.error
        return RewardlabError(f"{name}: {type(cause).__name__}: {' '.join(str(cause).split())}")
    why = environment.scores([over.result])[0].why if environment else ""
    return RewardlabError(f"{why or name}: it ended before the first reply")
