"""A tool that looks cells of a table up, and adds."""

from __future__ import annotations

from typing import Any

from rewardlab.core import Message, Problem, Turn, environment
from rewardlab.errors import RewardlabError
from rewardlab.text.inspections import REFUSED

from .problems import used

State = dict[str, Any]


def _start(problem: Problem, seed: int, **_: Any) -> tuple[Message | None, State]:
    if not isinstance(problem.meta.get("table"), dict):
        raise RewardlabError(f"table_tool needs the column table, by row and column: problem {problem.question[:60]!r} has none")
    return None, {"table": problem.meta["table"]}


@environment(start=_start)
def table_tool(state: State, turn: Turn) -> tuple[Message | None, State]:
    """Answers the last line of a reply, if it is "look ROW COLUMN" or "sum A B"; another line that calls gets `Nothing.`

    A reply whose last line is neither is final.
    """
    lines = turn.text.strip().splitlines()
    if not lines or lines[-1].split(" ")[0] not in ("look", "sum"):
        return None, state
    return Message("user", used(state["table"], lines[-1]) or REFUSED), state
