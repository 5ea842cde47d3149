"""What several test files share."""

from __future__ import annotations

import os
import signal

import pytest

os.environ.setdefault(
    "OMP_NUM_THREADS", "1"
)  # models are tiny here: threads only wait for each other, most of all beside other tests

# a shell that starts the tests in the background has them ignore Ctrl-C, and so would every process that they start
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def words():
    """The embedded policy's tokenizer."""
    from rewardlab.models.embedded import tokenizer

    return tokenizer()
