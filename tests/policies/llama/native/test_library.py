"""The compiled part is optional: whatever keeps it from being built, PyTorch does its work."""

from __future__ import annotations

import shutil

import pytest

from rewardlab.policies.llama.native import library as native


@pytest.fixture
def anew(monkeypatch, tmp_path):
    """`library` as in a new process with an empty cache."""
    monkeypatch.setenv("REWARDLAB_CACHE", str(tmp_path))
    monkeypatch.delenv("CXX", raising=False)
    monkeypatch.delenv(native.OFF, raising=False)
    return native.library.__wrapped__


def test_without_a_compiler_there_is_no_library(anew, monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda name: None)
    assert anew() is None


def test_a_compiler_that_fails_leaves_no_library_and_nothing_in_the_cache(anew, monkeypatch, tmp_path):
    monkeypatch.setenv("CXX", shutil.which("false"))
    assert anew() is None
    assert not [entry for entry in tmp_path.iterdir() if entry.is_dir()]


def test_a_cache_that_cannot_be_written_leaves_no_library(anew, monkeypatch, tmp_path):
    (tmp_path / "file").touch()
    monkeypatch.setenv("REWARDLAB_CACHE", str(tmp_path / "file"))
    assert anew() is None


def test_it_can_be_turned_off(anew, monkeypatch):
    monkeypatch.setenv(native.OFF, "0")
    assert anew() is None


@pytest.mark.slow
def test_it_is_compiled_once_for_a_source_and_a_compiler(anew, monkeypatch):
    if native.library() is None:
        pytest.skip("no C++ compiler")
    monkeypatch.setattr(native, "FLAGS", ("-std=c++17", "-O0", "-shared", "-fPIC"))  # compiles in a tenth of the time
    assert anew() is not None
    monkeypatch.setattr(native, "_compile", None)
    assert anew() is not None
