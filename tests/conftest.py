"""What several test files share."""

from __future__ import annotations

import pytest

from rewardlab.embedded import tokenizer


@pytest.fixture(scope="session")
def words():
    """The embedded policy's tokenizer."""
    return tokenizer()
