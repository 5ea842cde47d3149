"""Errors whose message is for the user: what is wrong, where, and how to fix it."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class RewardlabError(Exception):
    """An error that the user can fix. The command line prints only its message, without a traceback."""


class NotFinite(RewardlabError):
    """A reward, loss or gradient became NaN or infinite; the message names the term and the rollout."""


def unknown(kind: str, name: str, known: Iterable[str]) -> RewardlabError:
    """The error for an unknown name; it suggests the closest known names, whatever their case."""
    known = sorted(known)
    lower = {other.lower(): other for other in known}
    near = [lower[match] for match in difflib.get_close_matches(name.lower(), lower, n=3, cutoff=0.5)]
    hint = f"did you mean {' or '.join(near)}?" if near else f"known: {', '.join(known) or 'none'}"
    return RewardlabError(f"unknown {kind} {name!r}; {hint}")
