"""A task exported for verifiers: the real package loads it and plays it, with replies that are written and with a served model."""

import asyncio
import json
import re
import subprocess
import sys
from importlib import metadata

import numpy as np
import pytest

from rewardlab import registry
from rewardlab.api import export_environment
from rewardlab.core import Message, Problem, Task
from rewardlab.envs.driven import Asked, Conversation, Over
from rewardlab.errors import RewardlabError
from rewardlab.models.embedded import tokenizer
from tests.helpers.checkpoints import checkpoint

verifiers = pytest.importorskip("verifiers", reason="the package verifiers is not installed: pip install 'rewardlab[verifiers]'")
NEW = tuple(map(int, metadata.version("verifiers").split(".")[:2])) >= (0, 4)


@pytest.fixture
def loaded(tmp_path, monkeypatch):
    """(task, what verifiers loads of its export)."""
    added = []

    def load(name, **options):
        document = export_environment(name, tmp_path / "package", rows=5, test_rows=3)
        monkeypatch.syspath_prepend(str(tmp_path / "package"))
        added.append(document["name"])
        if not NEW:
            return document, verifiers.load_environment(document["name"], **options)
        import verifiers.v1 as vf

        return document, vf.load_environment(vf.resolve_env_config({"taskset": {"id": document["name"]}}))

    yield load
    for name in added:
        sys.modules.pop(name, None)


def rows_of(env):
    if not NEW:
        return list(env.get_dataset())
    return list(env.taskset)


def program(env, row):
    """The program of verifiers that plays a row, as its trainers and evaluations call it."""

    async def run(address, model):
        if NEW:
            import verifiers.v1 as vf

            client = vf.EvalClientConfig(base_url=address, api_key_var="NO_SUCH_KEY")
            async with env.serving():
                return await env.run_episode(row, vf.ModelContext(model=model, client=client))
        from verifiers.types import ClientConfig

        client = ClientConfig(api_base_url=address, api_key_var="NO_SUCH_KEY", max_retries=0)
        return await env.run_rollout(row, client, model, {"max_tokens": 8})

    return run


def reward_of(result):
    if not NEW:
        assert result.get("error") is None, result["error"]
        return result["reward"], result["metrics"]
    assert result.ok, result.errors or result.traces[0].errors
    (trace,) = result.traces
    return trace.reward, trace.metrics


def scripted(env, row, *replies):
    """What an episode earned in which a model says just this, what it was told, and whether it ended with the last reply."""
    conversation = Conversation(program(env, row))
    told = []
    for reply in replies:
        assert isinstance(conversation.now, Asked), conversation.now
        told.append(conversation.now.messages[-1]["content"])
        conversation.reply(reply)
    over = conversation.now
    assert isinstance(over, Over), over.messages
    assert over.error is None, over.error
    return (*reward_of(over.result), told)


def answer_of(row):
    return json.loads(row.data.row)["answer"] if NEW else json.loads(row["answer"])


def test_a_task_of_one_reply_is_judged_by_its_own_verifier(loaded):
    document, env = loaded("arithmetic")
    assert (document["rows"], document["test_rows"], document["verifier"]) == (5, 3, registry.task("arithmetic").verifier)
    row = rows_of(env)[0]
    reward, metrics, told = scripted(env, row, f"Answer: {answer_of(row)}")
    assert (reward, metrics["no_verdict"]) == (1.0, 0.0)
    assert told == [registry.task("arithmetic").train[0].question]
    assert scripted(env, row, "Answer: 1234")[0] == 0.0


def test_a_task_with_an_environment_is_played_in_turns(loaded):
    _, env = loaded("errands")
    row = rows_of(env)[0]
    meta = json.loads(row.data.row)["meta"] if NEW else json.loads(json.loads(row["info"])["row"])["meta"]
    reward, _, told = scripted(env, row, *meta["things"])
    assert reward == 1.0
    assert told[1] == f"Here is a {meta['things'][0]}."
    assert scripted(env, row, *["a pink hat"] * len(meta["things"]))[0] == 0.0


def test_an_opening_of_the_environment_comes_before_the_first_reply(loaded):
    pytest.importorskip("gymnasium")
    document, env = loaded("gym_text:FrozenLake-v1,is_slippery=false")
    assert document["turns"] == 50
    way = ["down", "down", "right", "right", "down", "right"]
    reward, _, told = scripted(env, rows_of(env)[0], *way)
    assert reward == 1.0
    assert "[S]FFF" in told[0]
    assert "HF[F]G" in told[-1]


@pytest.fixture
def served(tmp_path):
    """The address and the name of a model that `rewardlab serve-model` serves: a random Llama."""
    checkpoint(tmp_path / "model", tokenizer(), "LlamaForCausalLM", max_position_embeddings=2048)
    command = [
        sys.executable,
        "-m",
        "rewardlab",
        "serve-model",
        f"hf:{tmp_path / 'model'}",
        "--port",
        "0",
        "--name",
        "tiny",
        "--max-new",
        "8",
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as server:
        try:
            found = None
            while server.poll() is None and found is None:
                found = re.search(r"openai:(http\S+)#tiny", server.stdout.readline())
            assert found, "the server has not started"
            yield found[1], "tiny"
        finally:
            server.terminate()


def test_a_served_model_plays_it(loaded, served):
    _, env = loaded("errands")
    reward, metrics = reward_of(asyncio.run(program(env, rows_of(env)[0])(*served)))
    assert 0.0 <= reward <= 1.0
    assert metrics["no_verdict"] == 0.0


def test_folders_in_use_and_problems_without_text_are_refused(tmp_path):
    (tmp_path / "used").mkdir()
    (tmp_path / "used" / "file").touch()
    with pytest.raises(RewardlabError, match="there already"):
        export_environment("arithmetic", tmp_path / "used")
    seen = Problem((Message("user", "What is this?", images=(np.zeros((2, 2, 3)),)),))
    with pytest.raises(RewardlabError, match="no text"):
        export_environment(Task("seen", [seen], [seen], "exact_match"), tmp_path / "new")
    assert not (tmp_path / "new").exists()
