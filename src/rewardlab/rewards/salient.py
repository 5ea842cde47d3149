"""Whether a reply goes by the features that an expert goes by."""

from __future__ import annotations

import re

from rewardlab.core import Score, Trajectory
from rewardlab.data.values import list_of
from rewardlab.rewards.reward import reward
from rewardlab.text.rationale import rationale


@reward
def feature_match(trajectory: Trajectory, *, column: str = "salient", features: str = "features") -> Score:
    """The Jaccard similarity of the features that a reply names before it answers, and those that an expert goes by.

    column: the expert's features of this problem.  features: all that can be named; a reply names those that stand in it as whole
    words, in either case. No verdict where a column is missing, or holds something else than names. A reply that names nothing
    earns 0.
    """
    wanted, known = (list_of(trajectory.problem.meta.get(name)) for name in (column, features))
    if not wanted or not known or not all(isinstance(name, str) and name.strip() for name in (*wanted, *known)):
        return Score(None, why=f"the problem has no columns {column!r} and {features!r} with names of features")
    expert, text = {name.strip().lower() for name in wanted}, rationale(trajectory.reply).lower()
    names = {name.strip().lower() for name in known} | expert
    cited = {name for name in names if re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text)}
    shared = len(cited & expert)
    return Score(shared / len(cited | expert), why=f"{shared} of the expert's {len(expert)} features, {len(cited) - shared} others")
