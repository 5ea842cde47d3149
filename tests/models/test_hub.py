"""A model named as on the hub comes from the local cache, else from the hub; where none can be reached, that is said at once."""

from __future__ import annotations

import shutil
import socket
import time

import huggingface_hub.constants as hub_settings
import pytest
from loopback_hub import COMMIT, serving

from rewardlab import registry
from rewardlab.api import plan
from rewardlab.errors import RewardlabError
from rewardlab.models import hub, vision
from rewardlab.models.checkpoint import absolute_name, find
from rewardlab.models.embedded import untrained
from rewardlab.models.load import load_policy

NAME = "Tiny/Llama-0.01M"


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("model")
    untrained().save(folder)
    return folder


def at(monkeypatch, address):
    """Put the hub at this address. The client reads HF_ENDPOINT only when it is imported."""
    monkeypatch.setattr(hub_settings, "ENDPOINT", address)
    monkeypatch.setattr(hub_settings, "HUGGINGFACE_CO_URL_TEMPLATE", f"{address}/{{repo_id}}/resolve/{{revision}}/{{filename}}")


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    """An empty cache, and a hub that refuses connections."""
    monkeypatch.setattr(hub_settings, "HF_HUB_CACHE", str(tmp_path / "cache"))
    at(monkeypatch, "http://127.0.0.1:9")
    monkeypatch.chdir(tmp_path)
    return tmp_path / "cache"


@pytest.fixture
def online(model, monkeypatch):
    with serving(NAME, model, ("main", "v1")) as (address, asked):
        at(monkeypatch, address)
        yield asked


def put_into(cache, model, leave_out=()):
    """Lay the model out in the cache as the hub's client does."""
    storage = cache / f"models--{NAME.replace('/', '--')}"
    shutil.copytree(model, storage / "snapshots" / COMMIT, ignore=lambda folder, names: leave_out)
    (storage / "refs").mkdir()
    (storage / "refs" / "main").write_text(COMMIT)


def test_a_cached_model_is_loaded_without_asking_the_hub(cache, model):
    put_into(cache, model)
    for name in (NAME, f"hf:{NAME}", f"{NAME}@{COMMIT}", f"{NAME}@main"):
        assert find(name).folder.name == COMMIT
    assert type(load_policy(NAME, "cpu", "float32")).__name__ == "LlamaPolicy"
    assert type(load_policy(f"hf:{NAME}", "cpu", "float32")).__name__ == "HFPolicy"


def test_a_run_is_to_resume_from_the_same_commit(cache, model):
    put_into(cache, model)
    assert absolute_name(NAME) == f"{NAME}@{COMMIT}"
    assert absolute_name(f"hf:{NAME}@main") == f"hf:{NAME}@{COMMIT}"


def test_a_model_that_is_not_cached_is_downloaded_once(online, model, capsys):
    folder = find(NAME).folder
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == {path.name: path.read_bytes() for path in model.iterdir()}
    assert f"downloading {NAME} from the hub" in capsys.readouterr().err
    online.clear()
    assert find(NAME).folder == folder
    assert not online
    assert find(f"{NAME}@v1").folder.name == COMMIT


def test_a_plan_downloads_all_but_the_weights(online, cache, monkeypatch, capsys):
    asked = {"settings": {"n": 2, "problems": 2}, "max_new": 8, "device": "cpu", "memory": "1GB"}
    found = plan("grpo", f"hf:{NAME}", "arithmetic:test_size=4", **asked)
    assert (found["fits"], "lacks" in found) == (True, False)
    assert set(found["memory"]) >= {"whole", "LoRA 32", "nf4, LoRA 32"}
    assert {path.rsplit("/", 1)[1] for path in online if "/resolve/" in path} >= {"config.json", "tokenizer.json"}
    assert not any(path.endswith(".safetensors") for path in online)
    assert capsys.readouterr().err.count("downloading") == 1
    # another process, without a network
    hub._FETCHED.clear()
    at(monkeypatch, "http://127.0.0.1:9")
    assert plan("grpo", f"hf:{NAME}", "arithmetic:test_size=4", **asked)["parameters"] == found["parameters"]
    with pytest.raises(RewardlabError, match="cannot be reached"):
        find(NAME)


def test_a_plan_of_a_model_that_sees_downloads_all_but_the_weights(monkeypatch, tmp_path):
    task = registry.task("scenes:test_size=4")
    vision.untrained(task).save(tmp_path / "sees")
    asked = {"settings": {"n": 2, "problems": 2}, "max_new": 8, "device": "cpu", "memory": "1GB"}
    with serving(NAME, tmp_path / "sees") as (address, paths):
        at(monkeypatch, address)
        found = plan("grpo", NAME, task, **asked)
    assert any(path.endswith("/tokenizer.json") for path in paths)
    assert not any(path.endswith(".safetensors") for path in paths)
    policy = load_policy(str(tmp_path / "sees"), "cpu", "bfloat16")
    assert found["parameters"] == sum(p.numel() for p in policy.parameters())
    assert found["memory"]["whole"]["weights"] == 4 * found["parameters"]
    # the same sums, and the same prompts with the tokens of their pictures, as of the loaded model
    loaded = plan("grpo", policy, task, **asked)
    assert (found["memory"]["whole"], found["prompts"]) == (loaded["memory"]["whole"], loaded["prompts"])
    # and with adapters, which are on its language model
    with_adapters = plan("grpo", str(tmp_path / "sees"), task, lora_rank=2, **asked)
    loaded = plan("grpo", load_policy(str(tmp_path / "sees"), "cpu", "bfloat16", lora_rank=2), task, **asked)
    assert with_adapters["memory"]["LoRA 2"] == loaded["memory"]["whole"]
    assert with_adapters["parameters"] > found["parameters"]


def test_training_after_a_plan_downloads_the_weights(online):
    assert not hub.has_weights(find(NAME, weights=False).folder)
    assert hub.has_weights(find(NAME).folder)
    online.clear()
    assert hub.has_weights(find(NAME, weights=False).folder)
    assert not online


def test_an_interrupted_download_is_finished(cache, online, model):
    put_into(cache, model, leave_out=("model.safetensors",))
    assert (find(NAME).folder / "model.safetensors").is_file()


def test_weights_in_parts_are_whole_when_all_parts_are_there(tmp_path):
    for name in ("model-00001-of-00002.safetensors", "model.safetensors.index.json"):
        (tmp_path / name).touch()
    assert not hub.has_weights(tmp_path)
    (tmp_path / "model-00002-of-00002.safetensors").touch()
    assert hub.has_weights(tmp_path)


@pytest.mark.parametrize(
    ("name", "message"),
    [("Tiny/Other", "has no model 'Tiny/Other', or it is private"), (f"{NAME}@v9", "no such branch, tag or commit")],
)
def test_what_the_hub_does_not_have_is_named(name, message, online):
    with pytest.raises(RewardlabError, match=message):
        find(name)


def test_without_a_hub_the_error_comes_at_once_and_says_what_to_do():
    started = time.monotonic()
    with pytest.raises(RewardlabError, match=r"not in the local cache .*127.0.0.1:9 cannot be reached.*hf download Qwen/Qwen2.5"):
        load_policy("Qwen/Qwen2.5-0.5B")
    assert time.monotonic() - started < 3


def test_a_hub_that_does_not_answer_is_given_up(monkeypatch):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        at(monkeypatch, f"http://127.0.0.1:{silent.getsockname()[1]}")
        monkeypatch.setattr(hub, "PATIENCE", 0.3)
        started = time.monotonic()
        with pytest.raises(RewardlabError, match="cannot be reached"):
            find("Qwen/Qwen2.5-0.5B")
        assert time.monotonic() - started < 3


def test_offline_mode_is_named(monkeypatch):
    monkeypatch.setattr(hub_settings, "HF_HUB_OFFLINE", True)
    with pytest.raises(RewardlabError, match="HF_HUB_OFFLINE forbids it"):
        find("Qwen/Qwen2.5-0.5B")
