"""What the lean policy cannot run, left to transformers."""

from __future__ import annotations

from rewardlab.errors import RewardlabError


class Unsupported(RewardlabError):
    """The lean policy cannot run this checkpoint; the message says why. `load_policy` turns to transformers then."""
