"""Calls of the user's functions: in sequence, or concurrently if the function is `async`."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from rewardlab.rewards.call_timeout import TimedOut, Watch
from rewardlab.util.background import wait_for

AT_A_TIME = 32
"""Calls of an `async` function that may be under way together."""

Blame = Callable[[Exception, str], Exception]
"""Makes of an exception in a call, and the call's place, the exception to raise."""


class Arguments(NamedTuple):
    """One call. place: the rollouts that it scores, in words."""

    positional: Sequence[Any]
    named: Mapping[str, Any]
    place: str


def is_async(function: Callable) -> bool:
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(getattr(function, "__call__", None))  # noqa: B004


def results_of(function: Callable, calls: Sequence[Arguments], watch: Watch, blame: Blame | None = None) -> list[Any]:
    """What the function returns for each of the calls.

    Raises what `blame` makes of an exception in a call (None: the exception itself), and RewardlabError for a call of sys.exit.
    """
    if not is_async(function):
        return [_result(function, call, watch, blame) for call in calls]
    return wait_for(_results(function, calls, watch, blame), "rewards")


def _result(function: Callable, call: Arguments, watch: Watch, blame: Blame | None) -> Any:
    with watch.call(call.place):
        try:
            return function(*call.positional, **call.named)
        except SystemExit as e:
            raise watch.exited(e, call.place) from e
        except Exception as e:
            if blame is None:
                raise
            raise blame(e, call.place) from e


async def _results(function: Callable, calls: Sequence[Arguments], watch: Watch, blame: Blame | None) -> list[Any]:
    free = asyncio.Semaphore(AT_A_TIME)

    async def result(call: Arguments) -> Any:
        async with free:
            with watch.call(call.place):
                return await _awaited(function, call, watch, blame)

    tasks = [asyncio.create_task(result(call)) for call in calls]
    try:
        return await asyncio.gather(*tasks)
    finally:
        # after an error, the other calls are of no use any more
        for task in tasks:
            task.cancel()


async def _awaited(function: Callable, call: Arguments, watch: Watch, blame: Blame | None) -> Any:
    try:
        async with asyncio.timeout(watch.limit or None) as timeout:
            return await function(*call.positional, **call.named)
    except SystemExit as e:
        raise watch.exited(e, call.place) from e
    except Exception as e:
        if isinstance(e, TimeoutError) and timeout.expired():
            # the cancelled call's frames tell the line
            raise TimedOut(call.place).with_traceback((e.__cause__ or e).__traceback__) from e
        if blame is None:
            raise
        raise blame(e, call.place) from e
