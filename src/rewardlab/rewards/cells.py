"""Whether a reply cites the cells of a table that it should have read."""

from __future__ import annotations

import re
from collections.abc import Mapping

from rewardlab.core import Score, Trajectory
from rewardlab.data.values import list_of
from rewardlab.rewards.reward import reward

_CITED = re.compile(r"<\|(.*?)\|><\|(.*?)\|>")


@reward
def cited_cells(trajectory: Trajectory, *, column: str = "evidence") -> Score:
    """The Jaccard similarity of the cells that a reply cites, <|value|><|column|>, and those of a column of the problem.

    That holds a list of {"value", "column"}, or its JSON. 0 where a problem has no such column, so that tables with and without can
    be mixed; no verdict where it holds something else. A cell counts once, however often it is cited.
    """
    given = trajectory.problem.meta.get(column)
    if given is None:
        return Score(0.0, why=f"the problem has no column {column!r}")
    listed = list_of(given)
    if listed is None or not all(isinstance(c, Mapping) and {"value", "column"} <= c.keys() for c in listed):
        return Score(None, why=f"the column {column!r} is no list of {{'value', 'column'}}")
    wanted = {(str(c["value"]), str(c["column"])) for c in listed}
    cited = set(_CITED.findall(trajectory.reply))
    shared, all_cells = len(cited & wanted), len(cited | wanted)
    # as the released code has it: nothing cited where nothing should be is worth nothing
    return Score(shared / all_cells if all_cells else 0.0, why=f"{shared} of {len(wanted)} cells, and {len(cited) - shared} others")
