"""Programs that are driven beside one another: what each does at random is its own."""

import asyncio
import json
import random
import urllib.request
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from rewardlab.envs.driven import Conversation
from rewardlab.envs.live import Live
from rewardlab.envs.own_random import OwnRandom


def ask(address, model):
    body = json.dumps({"model": model, "messages": [{"role": "user", "content": "?"}]}).encode()
    request = urllib.request.Request(f"{address}/chat/completions", body, {"Content-Type": "application/json"})
    return json.load(urllib.request.urlopen(request))["choices"][0]["message"]["content"]


async def gambler(address, model):
    """Draws before each of three requests, and in between lets others go on."""
    drawn = []
    for _ in range(3):
        drawn += [random.random(), float(np.random.rand())]
        await asyncio.sleep(0.01)
        drawn.append(random.random())
        await asyncio.to_thread(ask, address, model)
    return drawn


def played(number):
    conversation = Conversation(gambler, number)
    for i in range(3):
        conversation.reply("go on", 100 * number + i)
    return conversation.now.result


@pytest.mark.slow
def test_programs_side_by_side_draw_what_each_draws_alone():
    alone = [played(n) for n in range(6)]
    before, before_numpy = random.getstate(), np.random.get_state()
    with ThreadPoolExecutor(6) as threads:
        assert list(threads.map(played, range(6))) == alone
    assert len({numbers[0] for numbers in alone}) == 6
    for i in range(30):
        conversation = Conversation(gambler, i)
        conversation.reply("go on", i)
        # it may still be on its way to wait for the next reply
        assert random.getstate() == before
        conversation.abandon()
    assert (np.random.get_state()[1] == before_numpy[1]).all()


def test_without_a_seed_a_program_draws_what_everybody_draws():
    async def drawn():
        return random.random()

    random.seed(5)
    expected = random.random()
    random.seed(5)
    assert asyncio.run(OwnRandom().of(drawn())) == expected


def test_errors_and_results_of_a_seeded_program_come_through():
    async def program():
        try:
            await asyncio.wait_for(asyncio.sleep(10), 0.01)
        except TimeoutError:
            raise KeyError("none") from None

    own = OwnRandom()
    own.seed(3)
    with pytest.raises(KeyError, match="none"):
        asyncio.run(own.of(program()))


def test_threads_share_live_objects_and_each_is_taken_once():
    live = Live(size=1000)
    for i in range(500):
        live.keep("game", (), i)
    with ThreadPoolExecutor(8) as threads:
        taken = list(threads.map(lambda _: live.take("game", (), lambda: None, lambda x, a: None), range(500)))
    assert sorted(taken) == list(range(500))
    assert len(live) == 0
