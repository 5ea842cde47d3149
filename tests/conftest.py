"""What several test files share."""

from __future__ import annotations

import gc
import os
import signal
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

# models are tiny here: threads only wait for each other, most of all beside other tests; and a fork of a process that has used
# several of them, as tests of kill -9 make, waits for ever, whatever the shell says
os.environ["OMP_NUM_THREADS"] = "1"

# a shell that starts the tests in the background has them ignore Ctrl-C, and so would every process that they start
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


WHOLLY_SLOW = (
    "test_benchmarks.py", "engine/test_killed_rank.py", "engine/test_sharded.py", "backends/test_engine_trl.py",
    "backends/test_trl.py", "backends/test_trl_baselines_pairs.py", "backends/test_trl_baselines_policy.py",
)  # fmt: skip
"""Files in which every test is slow. Without slow tests they are not even imported, since importing TRL alone takes seconds."""
SLOW_FILES = frozenset(Path(__file__).parent / name for name in WHOLLY_SLOW)


def with_slow(config: pytest.Config) -> bool:
    """Whether the slow tests run too, as in `make test-all`: `pytest -m ""`."""
    return "not slow" not in config.option.markexpr


def pytest_configure(config: pytest.Config) -> None:
    if missing := [str(path) for path in SLOW_FILES if not path.is_file()]:
        # one that moved would be run by `make test` for minutes, and nobody would notice
        raise pytest.UsageError(f"tests/conftest.py, WHOLLY_SLOW names files that do not exist: {', '.join(missing)}")
    if not with_slow(config):
        # nothing but a power cut tells whether files have reached the disk, and a training run waits for it 40 times, for .2 s
        os.fsync = lambda descriptor: None
        _train_no_policy()
    # the same examples in every run
    settings.register_profile("fixed", derandomize=True, deadline=None, max_examples=100 if with_slow(config) else 20)
    settings.load_profile("fixed")


def _train_no_policy() -> None:
    """On a machine that has no warmed-up policy yet, one test that asks for it would train it, for minutes. One that a test itself
    has put into a cache of its own is there to be read."""
    from rewardlab.util import files

    found, users = files.cached, files.cache()

    def cached(name: str, make: Callable[[Path], None]) -> Path:
        if name.startswith("embedded"):
            own = files.cache() != users and (files.cache() / name).exists()
            assert own, f"`make test` trains no policy ({name}): take 'untrained', or mark the test slow"
        return found(name, make)

    # before any module imports it by name
    files.cached = cached


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Nothing of 17,000 tests that are collected is garbage, and to search all of them for it whenever a test has made some objects
    takes a fifth of the time that tests take."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.set_threshold(20_000, 20, 50)
        gc.enable()


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    return True if collection_path in SLOW_FILES and not with_slow(config) else None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path in SLOW_FILES:
            item.add_marker(pytest.mark.slow)


@pytest.fixture(scope="session")
def thorough(pytestconfig: pytest.Config) -> bool:
    """Whether a test of many similar cases goes through all of them: where slow tests run too."""
    return with_slow(pytestconfig)


@pytest.fixture(scope="session")
def words():
    """The embedded policy's tokenizer."""
    from rewardlab.models.embedded import tokenizer

    return tokenizer()


@pytest.fixture
def own_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """An empty cache folder, also of the processes that the test starts. What was read of the package's files stays known: to read
    them anew takes each process seconds."""
    from rewardlab.util.files import cache

    known, folder = cache() / "registry", tmp_path / "cache"
    known.mkdir(parents=True, exist_ok=True)
    folder.mkdir()
    (folder / "registry").symlink_to(known)
    monkeypatch.setenv("REWARDLAB_CACHE", str(folder))
    return folder


@pytest.fixture
def no_hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., None]:
    """A Hugging Face hub at whose address nobody answers, and an empty cache of `datasets`: what is called with a name, a
    configuration and the rows of each split puts them there, as if they had been downloaded."""
    datasets = pytest.importorskip("datasets", reason="needs the extra 'data'")
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setattr(datasets.config, "HF_ENDPOINT", "http://127.0.0.1:9")
    cache = tmp_path / "datasets-cache"
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", str(cache))

    def downloaded(name: str, config: str, **splits: list[dict[str, Any]]) -> None:
        files = {}
        for split, rows in splits.items():
            files[split] = str(tmp_path / f"downloaded-{split}.parquet")
            datasets.Dataset.from_list(rows).to_parquet(files[split])
        datasets.load_dataset("parquet", name=config, data_files=files, cache_dir=str(cache))
        made = next((cache / "parquet").glob(f"{config}-*/0.0.0/*/dataset_info.json")).parent
        # as `datasets` lays out what it has downloaded: OWNER___NAME/CONFIG/VERSION/COMMIT
        owner, _, plain = name.partition("/")
        into = cache / f"{owner}___{plain}" / config / "0.0.0" / ("0" * 40)
        into.parent.mkdir(parents=True)
        made.rename(into)
        for split in splits:
            (into / f"parquet-{split}.arrow").rename(into / f"{plain}-{split}.arrow")

    return downloaded
