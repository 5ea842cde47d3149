"""DPO: the paper's loss by default, and cDPO's with label smoothing."""

from __future__ import annotations

import pytest

from rewardlab import registry


def test_label_smoothing_is_a_soft_label():
    assert str(registry.build("dpo").objective) == "dpo_loss()"
    smoothed = registry.build("dpo", {"label_smoothing": 0.1, "beta": 0.2}).objective
    assert smoothed.name == "soft_dpo_loss"
    assert smoothed.settings["label"] == pytest.approx(0.9)
    assert smoothed.settings["beta"] == 0.2
