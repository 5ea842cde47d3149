"""Similarity of a reply to a text of the data, by edit distance, or to its question, by an encoder."""

from __future__ import annotations

import numpy as np

from rewardlab.core import Group, Run, Score, Scores, Trajectory
from rewardlab.rewards.reward import reward
from rewardlab.text.words import LONGEST, similarity
from rewardlab.util.outputs import embeddings


@reward(over="groups")
def nearer_to_question(groups: list[Group], run: Run, *, model: str = "encoder") -> Scores:
    """Cosine similarity of a reply and its question, minus the mean over the step's other questions; from -2 to 2.

    model: the encoder's name in the run (a `Learner` of the recipe). Question and reply are embedded apart. Where the step has one
    question alone, nothing is subtracted. Questions in the step that read the same count once.
    """
    encoder = run.model(model)
    asked = {group[0].problem.question: group[0].problem for group in groups if group}
    place = {question: i for i, question in enumerate(asked)}
    questions = embeddings(encoder, encoder.write([Trajectory(p) for p in asked.values()], list(asked)))
    rows = [t for group in groups for t in group]
    replies = embeddings(encoder, encoder.write([Trajectory(t.problem) for t in rows], [t.reply for t in rows]))
    near = replies @ questions.T  # (replies, questions)
    own = near[np.arange(len(rows)), [place[t.problem.question] for t in rows]]
    others = (near.sum(1) - own) / max(1, len(asked) - 1)
    scores = iter(
        [Score(float(a - b), why=f"cosine {a:.2f}, with other questions {b:.2f}") for a, b in zip(own, others, strict=True)]
    )
    return [[next(scores) for _ in group] for group in groups]


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
