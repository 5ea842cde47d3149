"""What several test files share."""

from __future__ import annotations

import os

import pytest

os.environ.setdefault(
    "OMP_NUM_THREADS", "1"
)  # models are tiny here: threads only wait for each other, most of all beside other tests


@pytest.fixture(scope="session")
def words():
    """The embedded policy's tokenizer."""
    from rewardlab.models.embedded import tokenizer

    return tokenizer()
