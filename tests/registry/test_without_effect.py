"""A setting that a method takes and does not use is told, and one that it uses is not."""

from __future__ import annotations

import sys

import pytest

from rewardlab import registry
from rewardlab.commands import cli, train
from rewardlab.registry.without_effect import without_effect

MINE = '''"""Idle: a setting that nothing uses, and one that something does."""
from rewardlab.methods.baselines.grpo import grpo

def idle(base=None, *, alpha: float = 0.1, epochs: int = 1):
    return (base or grpo()).but(epochs=epochs)

claim = None
'''


@pytest.fixture
def idle(tmp_path, monkeypatch):
    (folder := tmp_path / "own" / "wasting").mkdir(parents=True)
    (folder / "idle.py").write_text(MINE)
    for name in ("rewardlab.methods.wasting.idle", "rewardlab.methods.wasting"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.setenv("REWARDLAB_METHODS", str(folder.parent))


@pytest.mark.parametrize(
    ("method", "settings", "unused"),
    [
        ("idle", {"alpha": 0.3, "epochs": 2}, ["alpha"]),
        # what it would have anyway says nothing
        ("idle", {"alpha": 0.1}, []),
        ("hapo", {"weight": 0.5, "n": 4, "lr": 1e-4}, []),
        ("grpo+hapo", {"hapo.weight": 0.5, "grpo.n": 4}, []),
    ],
)
def test_settings_that_change_nothing_are_found(idle, method, settings, unused):
    assert without_effect(method, settings, registry.build(method, settings)) == unused


def test_training_tells_of_them(idle, capsys):
    train.request(cli.parse(train, "train", ["idle", "--task", "arithmetic", "--alpha", "0.3", "--epochs", "2"]))
    assert capsys.readouterr().err.strip() == "note: --alpha changes nothing: idle makes the same recipe without it"
