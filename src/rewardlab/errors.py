"""Errors whose message is for the user: what is wrong, where, and what to do."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class RewardlabError(Exception):
    """Something the user can mend. The command line prints its message alone, without a traceback."""


class NotFinite(RewardlabError):
    """A reward, loss or gradient became NaN or infinite; the message names the term and the rollout."""


def unknown(kind: str, name: str, known: Iterable[str]) -> RewardlabError:
    """The error for a name that does not exist, with the nearest names that do."""
    known = sorted(known)
    near = difflib.get_close_matches(name, known, n=3, cutoff=0.5)
    hint = f"did you mean {' or '.join(near)}?" if near else f"known: {', '.join(known) or 'none'}"
    return RewardlabError(f"unknown {kind} {name!r}; {hint}")
