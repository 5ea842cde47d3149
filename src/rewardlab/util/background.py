"""Event loops in background threads, for asynchronous work called from synchronous code."""

from __future__ import annotations

import asyncio
import inspect
import os
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


def wait_for(work: Coroutine[Any, Any, T], loop: str) -> T:
    """The result of `work`, done in the event loop of this name while this thread waits.

    Work of one loop must not wait for other work of the same loop by this function: neither would end.
    """
    future = asyncio.run_coroutine_threadsafe(work, _event_loop(loop))
    try:
        return future.result()
    except BaseException:
        # Ctrl-C, for one, is raised here, while the work goes on in the other thread
        future.cancel()
        raise


def waited(result: Any, loop: str) -> Any:
    """What a function gave, and where it is asynchronous what comes of that, done in the event loop of this name."""
    return wait_for(result, loop) if inspect.iscoroutine(result) else result


_loops: dict[tuple[str, int], asyncio.AbstractEventLoop] = {}


def _event_loop(name: str) -> asyncio.AbstractEventLoop:
    """The loop of this name in this process, which runs in a thread of its own.

    One for good, since clients (httpx, openai) belong to the loop in which they were used first; and not in the main thread, where
    notebooks run a loop already. A process that was forked has none of its parent's threads.
    """
    key = name, os.getpid()
    if key not in _loops:
        new = asyncio.new_event_loop()
        # of several threads that are here at once, one's loop is taken; a lock might be held for ever where a process was forked
        if _loops.setdefault(key, new) is new:
            threading.Thread(target=new.run_forever, name=name, daemon=True).start()
        else:
            new.close()
    return _loops[key]
