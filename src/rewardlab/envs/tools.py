"""Tools whose results are data: what a conversation recorded, call by call."""

from __future__ import annotations

from typing import Any

from rewardlab.core import Message, Problem, Turn, environment
from rewardlab.data.values import list_of
from rewardlab.envs.tool_messages import SHOWN, cut
from rewardlab.errors import RewardlabError
from rewardlab.settings.domain import PositiveInt
from rewardlab.text.tool_calls import NO_RESULT, answer_to, call_of, calls_in

State = dict[str, Any]


def _start(problem: Problem, seed: int, *, field: str, shown: int) -> tuple[Message | None, State]:
    results = list_of(problem.meta.get(field))
    try:
        if results is None:
            raise ValueError("there is no list")
        for entry in results:
            call_of(entry)
    except ValueError as e:
        raise RewardlabError(
            f"recorded_tools needs in {field!r} of problem {problem.question[:60]!r} a list of calls with their results, "
            f'{{"name", "arguments", "result"}}: {e}'
        ) from None
    return None, {"results": [{**entry, "result": cut(str(entry.get("result", NO_RESULT)), shown)} for entry in results]}


@environment(start=_start)
def recorded_tools(state: State, turn: Turn, *, field: str = "results", shown: PositiveInt = SHOWN) -> tuple[Message | None, State]:
    """Answers the calls between <tool_call> and </tool_call> with the results in meta[`field`], {"name", "arguments", "result"}.

    A call that was never recorded has no result, and calls that cannot be read are told so. A reply without calls is final.
    shown: characters of a result.
    """
    calls = calls_in(turn.text)
    if calls == []:
        return None, state
    return Message("user", answer_to(calls, state["results"])), state
