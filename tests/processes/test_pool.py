"""Calls in processes of their own: limits, crashes, order, threads."""

from __future__ import annotations

import os
import threading
import time

import pytest

from rewardlab.errors import RewardlabError
from rewardlab.processes.pool import Done, Failed, Workers


def make(function: str, **given) -> Workers:
    return Workers(function, **{"processes": 2, "seconds": 5.0} | given)


def test_values_come_in_the_order_of_the_calls():
    assert make("operator:add").map([(i, 1) for i in range(100)]) == [Done(i + 1) for i in range(100)]


def test_what_hangs_is_ended_and_only_that():
    pool = make("time:sleep", seconds=0.4, processes=1)
    began = time.monotonic()
    first, hung, last = pool.map([(0,), (60,), (0,)])
    assert (first, last) == (Done(None), Done(None))
    assert hung == Failed("timeout", "took over 0.4 s")
    assert time.monotonic() - began < 3
    assert pool.map([(0,)]) == [Done(None)]


def test_what_kills_its_process_fails_alone():
    assert make("os:_exit").map([(0,), (1,)]) == [Failed("crash", "the process died")] * 2
    # the second call was already sent to the process that the first one kills
    pool = make("rewardlab.processes.worker:answer", processes=1)
    assert [type(x) for x in pool.map([("no function", []), ("no function", [])])] == [Done, Done]


def test_what_raises_says_so():
    (found,) = make("operator:truediv").map([(1, 0)])
    assert found == Failed("error", "ZeroDivisionError: division by zero")


def test_calls_larger_than_a_pipe_do_not_block():
    sizes = (10, 300_000, 3, 100_000, 2_000_000)
    assert make("builtins:len").map([("x" * n,) for n in sizes]) == [Done(n) for n in sizes]


def test_many_threads_share_a_pool():
    pool, found = make("operator:mul"), {}

    def ask(k: int) -> None:
        found[k] = pool.map([(k, i) for i in range(50)])

    threads = [threading.Thread(target=ask, args=(k,)) for k in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {k: [Done(k * i) for i in range(50)] for k in range(6)}


def test_memory_is_limited():
    (found,) = make("builtins:bytearray", memory=1 << 30).map([(4 << 30,)])
    assert isinstance(found, Failed)
    assert "MemoryError" in found.why


def test_a_function_that_is_not_there_is_named():
    with pytest.raises(RewardlabError, match="no_such_thing"):
        make("os:no_such_thing").map([()])


def test_no_process_and_no_descriptor_is_left():
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(3):
        pool = make("builtins:abs")
        pool.map([(-1,), (-2,), (-3,)])
        pool.close()
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_fork_that_ends_leaves_its_parents_workers_alone():
    pool = make("builtins:abs", processes=1)
    pool.map([(-1,)])
    child = os.fork()
    if child == 0:
        pool.close()
        os._exit(0)
    os.waitpid(child, 0)
    assert pool.map([(-2,)]) == [Done(2)]
