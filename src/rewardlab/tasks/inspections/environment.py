"""A tool that looks cells of a table up, and adds."""

from __future__ import annotations

from typing import Any

from rewardlab.core import Message, Problem, Turn, environment
from rewardlab.errors import RewardlabError
from rewardlab.text.inspections import REFUSED, call_in

from .problems import used

State = dict[str, Any]


def _start(problem: Problem, seed: int, **_: Any) -> tuple[Message | None, State]:
    if not isinstance(problem.meta.get("table"), dict):
        raise RewardlabError(f"table_tool needs the column table, by row and column: problem {problem.question[:60]!r} has none")
    return None, {"table": problem.meta["table"]}


@environment(start=_start)
def table_tool(state: State, turn: Turn) -> tuple[Message | None, State]:
    """Answers the call of a reply, if it is "look ROW COLUMN" or "sum A B"; another one by these names gets `Nothing.`

    It is the last line, or stands in a block of code or a <tool_call>. A reply without either is final.
    """
    call = call_in(turn.text)
    if call.split(" ")[0] not in ("look", "sum"):
        return None, state
    return Message("user", used(state["table"], call) or REFUSED), state
