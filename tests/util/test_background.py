"""Asynchronous work from ordinary code: one loop for all threads, and another one in a forked process."""

import asyncio
import os
import sys
import threading

import pytest

from rewardlab.util.background import wait_for


async def here() -> tuple[int, str]:
    return id(asyncio.get_running_loop()), threading.current_thread().name


def test_threads_that_begin_at_once_share_one_loop():
    """Two loops would each own a part of what a client keeps."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for i in range(20):
            found, ready = [], threading.Barrier(8)

            def work(name=f"shared {i}", found=found, ready=ready):
                ready.wait()
                found.append(wait_for(here(), name))

            threads = [threading.Thread(target=work) for _ in range(8)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            assert len(found) == 8
            assert len(set(found)) == 1
    finally:
        sys.setswitchinterval(before)


def test_work_that_fails_says_so_and_the_loop_lives_on():
    async def fail() -> None:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        wait_for(fail(), "failing")
    assert wait_for(here(), "failing")[1] == "failing"


def test_a_forked_process_has_a_loop_of_its_own():
    wait_for(here(), "forked")
    child = os.fork()
    if not child:
        # nothing of pytest may run here
        os._exit(0 if wait_for(here(), "forked")[1] == "forked" else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
