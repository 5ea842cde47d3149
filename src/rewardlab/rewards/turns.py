"""A reward of single replies, applied to every turn of an episode, or to every thought in it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from rewardlab.core import Group, Run, Score, Scores, Trajectory
from rewardlab.errors import RewardlabError
from rewardlab.rewards.reward import Reward, reward
from rewardlab.settings.options import is_relative
from rewardlab.text.words import words

LONGEST = 20_000
"""Characters of a reply whose thoughts are read."""
_ATOM = re.compile(r"<([A-Za-z_][\w-]{0,40})>([^<]{0,4000})</\1>")
_NAME_OR_NUMBER = re.compile(r"(?<=[\w,;:'\")\]] )[A-Z]\w{0,60}|\b[0-9]{1,20}\b")
"""A capital says nothing where a text, a line, a sentence or a tag begins."""


@reward(over="groups", steps=True)
def each_turn(groups: list[Group], run: Run, *, inner: Reward) -> list[list[Any]]:
    """The reward `inner` of each reply of an episode, on the reply's last decision: it is given the episode up to there.

    No verdict where one of them has none. Raises RewardlabError for a reward that compares replies with one another.
    """
    rows = [t for group in groups for t in group]
    judged = iter(_one_by_one([t.cut(end + 1) for t in rows for end in t.ends], inner, run))
    scores = iter([_steps(t, [next(judged) for _ in t.ends]) for t in rows])
    return [[next(scores) for _ in group] for group in groups]


def _steps(episode: Trajectory, judged: Sequence[Score]) -> list[tuple[int, float]] | Score:
    totals = [score.total for score in judged]
    known = [total for total in totals if total is not None]
    if len(known) < len(totals) or not totals:
        return Score(None, why=next((s.why for s in judged if s.missing), "the episode has no reply"))
    return list(zip(episode.ends, known, strict=True))


@reward(over="groups")
def atomic_thoughts(groups: list[Group], run: Run, *, inner: Reward, whole: bool = False) -> Scores:
    """The mean reward `inner` of the atoms of an episode's thoughts, <think><plan>...</plan><risk>...</risk></think>.

    Each is judged by itself, as a reply to all that stands before its own. Their tags may have any name. An episode without any
    gets 0; no verdict where one of them has none.  whole: thoughts are judged as they are, and not by their atoms.
    """
    rows = [t for group in groups for t in group]
    parts = [[(at, text) for at, reply in enumerate(t.replies) for text in thoughts(reply, whole)] for t in rows]
    begun = [_replying(t, at, text) for t, row in zip(rows, parts, strict=True) for at, text in row]
    judged = iter(_one_by_one(begun, inner, run))
    scores = iter([_mean([next(judged) for _ in row]) for row in parts])
    return [[next(scores) for _ in group] for group in groups]


def thoughts(reply: str, whole: bool = False) -> list[str]:
    """What the atoms of a reply's thinking say, or its thinking as a whole; nothing where it is not opened and closed once."""
    start, end = reply.find("<think>"), reply.find("</think>")
    once = len(reply) <= LONGEST and reply.count("<think>") == reply.count("</think>") == 1
    if not once or end < start:
        return []
    thinking = reply[start + len("<think>") : end]
    atoms = [text.strip() for _, text in _ATOM.findall(thinking) if text.strip()]
    return [re.sub(r"<[^<>]{0,60}>", " ", thinking).strip()] if whole and atoms else atoms


def _replying(episode: Trajectory, at: int, text: str) -> Trajectory:
    """The episode up to its reply number `at`, of which only this text is left."""
    cut = episode.cut(episode.ends[at] + 1)
    return replace(cut, turns=(*cut.turns[:-1], replace(cut.turns[-1], text=text)))


def _mean(scores: Sequence[Score]) -> Score:
    totals = [score.total for score in scores]
    known = [total for total in totals if total is not None]
    if len(known) < len(totals):
        return Score(None, why=next(s.why for s in scores if s.missing))
    return Score(sum(known) / len(known) if known else 0.0, why=f"{len(known)} thoughts")


def _one_by_one(rows: list[Trajectory], of: Reward, run: Run) -> list[Score]:
    if is_relative(of):
        raise RewardlabError(f"{of} compares replies with one another, and here each is judged on its own: give a reward that can")
    # one call for all, since a judge may be asked about many at a time
    return [row[0] for row in of([[t] for t in rows], run)] if rows else []


@reward
def grounded(trajectory: Trajectory) -> Score:
    """1 where all names and numbers of the last reply occur in the text before it, the prompt and later messages, else 0.

    A name is a word with a capital that does not begin a line, a sentence or what stands in a tag.
    """
    read = {word for turn in trajectory.turns if turn.author is None for word in words(turn.text)}
    read |= {word for message in trajectory.problem.prompt for word in words(message.text)}
    said = {name.lower() for name in _NAME_OR_NUMBER.findall(trajectory.reply[:LONGEST])}
    new = sorted(said - read)
    return Score(float(not new), why=f"not read: {', '.join(new[:5])}" if new else "all of it was read")
