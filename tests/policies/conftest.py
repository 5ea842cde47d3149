"""What tests of both text policies share."""

from __future__ import annotations

import pytest

from rewardlab.models.embedded import untrained
from rewardlab.policies.hf.policy import HFPolicy


@pytest.fixture(scope="module")
def policies(tmp_path_factory):
    """The lean policy and transformers' on one checkpoint."""
    lean = untrained(layers=3)
    lean.save(folder := tmp_path_factory.mktemp("lean"))
    return lean, HFPolicy.load(folder, "cpu", "float32")
