"""Rewards for traces of answers from numbered documents: their form, what they cite, and whether they agree with themselves."""

from __future__ import annotations

from typing import Literal

from rewardlab.core import Score, Trajectory
from rewardlab.data.values import list_of, number_of
from rewardlab.rewards.reward import reward
from rewardlab.text import traces


@reward
def trace_form(trajectory: Trajectory, *, template: Literal["v1", "v2", "v3", "v4", "v5"] = "v1") -> Score:
    """1 where the reply is the template's sections in their order and nothing else (`text/traces.py`)."""
    right = traces.well_formed(trajectory.reply, template)
    return Score(float(right), why=f"{'' if right else 'not '}the sections {', '.join(traces.TEMPLATES[template])}")


@reward
def receipt(trajectory: Trajectory, *, column: str = "supporting") -> Score:
    """1 where <gold_docs> lists just the documents in a column of the problem, 1/2 where it has some of them, else 0."""
    wanted = [number_of(value) for value in list_of(trajectory.problem.meta.get(column)) or [None]]
    if None in wanted:
        return Score(None, why=f"the problem has no column {column!r} with a list of numbers")
    said, numbers = traces.listed(traces.section(trajectory.reply, "gold_docs") or ""), {int(n) for n in wanted if n is not None}
    return Score(1.0 if said == numbers else 0.5 if said & numbers else 0.0, why=f"lists {sorted(said)} for {sorted(numbers)}")


@reward
def trace_consistency(
    trajectory: Trajectory, *, template: Literal["v1", "v2", "v3", "v4", "v5"] = "v1", column: str = "documents"
) -> Score:
    """The share of the template's checks of consistency that a reply passes, by its words (`text/traces.py`).

    No verdict where the problem has no column with a list of the documents, which are numbered from 1.
    """
    documents = list_of(trajectory.problem.meta.get(column))
    if not documents or not all(isinstance(text, str) for text in documents):
        return Score(None, why=f"the problem has no column {column!r} with a list of texts")
    found = traces.checks(trajectory.reply, template, documents)
    failed = [name for name, passed in found.items() if not passed]
    return Score(1 - len(failed) / max(1, len(found)), why=f"fails {', '.join(failed)}" if failed else "passes all checks")
