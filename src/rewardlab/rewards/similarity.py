"""Similarity of a reply to a text of the data, by edit distance, or to its question, by an encoder."""

from __future__ import annotations

import re
from typing import Literal

import numpy as np

from rewardlab.core import Group, Run, Score, Scores, Trajectory
from rewardlab.rewards.reward import reward
from rewardlab.text.words import LONGEST, similarity
from rewardlab.util.outputs import embeddings
from rewardlab.verifiers.sql.verifier import BEGINS, stated_query

COMMENT = re.compile(r"""('(?:[^']|'')*'|"[^"]*")|--[^\n]*|/\*.*?\*/""", re.DOTALL)
"""A comment of a query; a text in quotes, which may look like one, is its group."""
ASKS = re.compile(r"\bselect\b|\bvalues\s*\(", re.IGNORECASE)


@reward(over="groups")
def nearer_to_question(groups: list[Group], run: Run, *, model: str = "encoder", of: Literal["reply", "query"] = "reply") -> Scores:
    """Cosine similarity of a reply and its question, minus the mean over the step's other questions; from -2 to 2.

    model: the encoder's name in the run (a `Learner` of the recipe). Question and reply are embedded apart. Where the step has one
    question alone, nothing is subtracted. Questions in the step that read the same count once.
    of: "query" embeds the SQL query that the reply states, and no words or comments, which may say the question again; 0 without
    one.
    """
    encoder = run.model(model)
    asked = {group[0].problem.question: group[0].problem for group in groups if group}
    place = {question: i for i, question in enumerate(asked)}
    questions = embeddings(encoder, encoder.write([Trajectory(p) for p in asked.values()], list(asked)))
    rows = [t for group in groups for t in group]
    texts = [query_in(t.reply) if of == "query" else t.reply for t in rows]
    known = [i for i, text in enumerate(texts) if text is not None]
    scores = [Score(0.0, why="the reply states no query") for _ in rows]
    if known:
        replies = embeddings(encoder, encoder.write([Trajectory(rows[i].problem) for i in known], [texts[i] for i in known]))
        near = replies @ questions.T  # (replies, questions)
        own = near[np.arange(len(known)), [place[rows[i].problem.question] for i in known]]
        others = (near.sum(1) - own) / max(1, len(asked) - 1)
        for i, a, b in zip(known, own, others, strict=True):
            scores[i] = Score(float(a - b), why=f"cosine {a:.2f}, with other questions {b:.2f}")
    told = iter(scores)
    return [[next(told) for _ in group] for group in groups]


@reward
def similar_to(trajectory: Trajectory, *, column: str = "solution") -> Score:
    """1 - Levenshtein distance / length of the longer text, between the reply and the text in this column, both stripped of
    surrounding spaces.

    What completions of code are measured by where nothing runs them. No verdict where the column holds no text, or one that is too
    long; a reply that is too long earns 0.
    """
    wanted = trajectory.problem.meta.get(column)
    if not isinstance(wanted, str) or not wanted.strip() or len(wanted) > LONGEST:
        return Score(None, why=f"the column {column!r} holds no text of 1 to {LONGEST} characters")
    said = trajectory.reply.strip()
    return Score(similarity(said, wanted.strip()) if len(said) <= LONGEST else 0.0)


def query_in(reply: str) -> str | None:
    """The query that a reply states, without comments; None where it states none. Prose may begin like one (with, from)."""
    query = COMMENT.sub(lambda found: found[1] or " ", stated_query(reply)).strip()
    return query if BEGINS.match(query) and ASKS.search(query) else None
