"""Words that the embedded policy was never taught."""

import json

import pytest

from rewardlab import registry
from rewardlab.api import inputs
from rewardlab.core import ask
from rewardlab.models.embedded import TASKS
from rewardlab.models.vocabulary import warn_of_untaught
from rewardlab.runs.config import RunConfig


@pytest.fixture
def loaded(monkeypatch):
    """Names of the policies that were to be loaded: the warning must come before, and training one takes minutes."""
    names = []
    monkeypatch.setattr(inputs, "load_policy", lambda name, *_: names.append(name))
    return names


def words(tmp_path, capfd, model=None):
    path = tmp_path / "mine.jsonl"
    path.write_text("".join(json.dumps({"prompt": f"Tom buys {i} apples.", "answer": i}) + "\n" for i in range(20)))
    config = RunConfig(task=str(path), model=model)
    inputs.policy_of(None, config, inputs.task_of(None, config))
    return capfd.readouterr().err


def test_prompts_of_ones_own_in_words_never_taught_are_pointed_out(tmp_path, capfd, loaded):
    said = words(tmp_path, capfd)
    # 60 words (Tom, buys, apples) of 60, 20 full stops and 30 digits
    assert "55% of the words in these prompts" in said
    assert all(word in said for word in ("'Tom'", "'buys'", "'apples'", "--model: smollm2"))
    assert loaded == ["embedded"]


def test_nothing_is_said_of_another_model_or_of_words_that_were_taught(tmp_path, capfd, loaded):
    assert words(tmp_path, capfd, model="smollm2") == ""
    for name in TASKS:
        config = RunConfig(task=f"{name}:test_size=50")
        inputs.policy_of(None, config, inputs.task_of(None, config))
        # problems of one's own in the same words
        warn_of_untaught(registry.task(name, test_size=50).test)
    # it has a policy of its own, which is taught on rows of another kind
    config = RunConfig(task="duels:test_size=50")
    inputs.policy_of(None, config, inputs.task_of(None, config))
    warn_of_untaught([ask("Start with 7. Add 5. Multiply by 3.")])
    assert capfd.readouterr().err == ""
