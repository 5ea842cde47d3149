"""An environment behind a real OpenEnv server, which is written against openenv-core's classes and started here."""

import copy
import json
import socket
import subprocess
import sys
import time
import urllib.request
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

pytest.importorskip("openenv", reason="the package openenv-core is not installed: pip install 'rewardlab[openenv]'")

from rewardlab import registry
from rewardlab.api import train
from rewardlab.core import Turn
from rewardlab.envs.actions import LIVE
from rewardlab.errors import RewardlabError
from rewardlab.models.embedded import tokenizer
from tests.helpers.checkpoints import checkpoint

SERVER = """
import random
import sys
import time

import uvicorn
from openenv.core.env_server.http_server import create_fastapi_app
from openenv.core.env_server.interfaces import Environment
from openenv.core.env_server.types import Action, Observation, State


class Guess(Action):
    number: int


class Told(Observation):
    text: str


class Guessing(Environment):
    SUPPORTS_CONCURRENT_SESSIONS = True

    def __init__(self):
        super().__init__()
        self.secret, self._state = 0, State()

    def reset(self, seed=None, episode_id=None, **kwargs):
        self.secret, self._state = random.Random(seed).randint(0, 9), State(episode_id=episode_id)
        return Told(text="Guess a number, 0 to 9.")

    def step(self, action, timeout_s=None, **kwargs):
        self._state.step_count += 1
        if action.number > 9:
            time.sleep(1)
        if action.number == self.secret:
            return Told(text="Found.", done=True, reward=1.0)
        return Told(text="Higher." if action.number < self.secret else "Lower.", reward=0.0)

    @property
    def state(self):
        return self._state


app = create_fastapi_app(Guessing, Guess, Told, max_concurrent_envs=64)
uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[1]), log_level="error")
"""


@pytest.fixture(scope="module")
def url(tmp_path_factory):
    file = tmp_path_factory.mktemp("server") / "server.py"
    file.write_text(SERVER)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with subprocess.Popen([sys.executable, str(file), str(port)]) as server:
        try:
            for _ in range(900):
                try:
                    urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=1)
                    break
                except OSError:
                    assert server.poll() is None, "the server has ended"
                    time.sleep(0.2)
            else:
                pytest.fail("the server did not answer within three minutes")
            yield f"http://127.0.0.1:{port}"
        finally:
            LIVE.clear()
            server.terminate()


def say(text):
    return Turn("policy", np.zeros(len(text), np.int64), text=text)


def test_an_episode_is_played_copied_and_won(url):
    task = registry.task(f"openenv:{url}")
    env, problem = registry.part("environment", "openenv"), task.test[0]
    opening, state = env.start(problem, 0)
    assert opening.text == "Guess a number, 0 to 9."
    answer, state = env(state, say("I think of\nAction: ten"))
    assert "is no number" in answer.text
    low, high, branch, message = 0, 9, copy.deepcopy(state), answer
    while not message.last:
        middle = (low + high) // 2
        message, state = env(state, say(f"<action>{middle}</action>"))
        low, high = (middle + 1, high) if message.text == "Higher." else (low, middle - 1)
    assert message.reward == 1.0
    # from a copy of an earlier state, where no session is open any more
    LIVE.clear()
    again, _ = env(json.loads(json.dumps(branch)), say(str(middle)))
    assert again.last
    assert again.text == "Found."


def test_episodes_do_not_wait_for_one_another(url):
    env, problem = registry.part("environment", "openenv"), registry.task(f"openenv:{url}").test[0]
    assert env.waits
    states = [env.start(problem, i)[1] for i in range(5)]
    begun = time.perf_counter()
    with ThreadPoolExecutor(5) as threads:
        answers = list(threads.map(lambda state: env(state, say("99"))[0].text, states))
    assert answers == ["Lower."] * 5
    # a second each, one after another five
    assert time.perf_counter() - begun < 4


def test_a_server_that_is_not_there_is_told():
    with pytest.raises(RewardlabError, match="no OpenEnv server answers"):
        registry.task("openenv:http://127.0.0.1:9")


def test_grpo_takes_a_step(url, tmp_path):
    checkpoint(tmp_path / "model", tokenizer(), "LlamaForCausalLM", max_position_embeddings=2048)
    short = {"steps": 1, "eval_problems": 2, "max_new": 6, "device": "cpu", "patience": 0, "max_missing": 1.0}
    settings = {"n": 2, "problems": 2}
    result = train("grpo", f"hf:{tmp_path / 'model'}", f"openenv:{url},turns=3", settings=settings, out=tmp_path / "run", **short)
    assert result.summary["steps"] == 1
    assert result.summary["before"]["turns"] <= 3
