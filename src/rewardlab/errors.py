"""Errors whose message is for the user: what is wrong, where, and how to fix it."""

from __future__ import annotations

import difflib
import inspect
import signal
import traceback
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar


class RewardlabError(Exception):
    """An error that the user can fix. The command line prints only its message, without a traceback."""


class Unusable(RewardlabError):
    """What was asked cannot be used, whatever else it is asked: a server that does not answer, a budget that is spent."""


class TooLong(RewardlabError):
    """A text is longer than the context of the model that was to read it. Training leaves its row out, and counts it."""


class NothingKept(RewardlabError):
    """Of the problems that a rollout looked at, none is to learn from. Those of another process may be."""


class NotFinite(RewardlabError):
    """A reward, loss or gradient became NaN or infinite; the message names the term and the rollout."""


class Stopped(KeyboardInterrupt):
    """A signal asked this process to stop, and it did. number: of the signal; 0 if it is not known."""

    def __init__(self, number: int = 0):
        super().__init__(f"stopped by {signal.Signals(number).name}" if number else "stopped")
        self.number = number


# a reward of the user's own in place of the method's: its terms have other names
REMEDIES = {"reward term": "the method reads a part of the reward by this name: give it to yours, (PART).named('{name}') + ..."}
"""What to do beside choosing a known name, by kind."""


def unknown(kind: str, name: str, known: Iterable[str]) -> RewardlabError:
    """The error for an unknown name; it suggests the closest known names, whatever their case."""
    known = sorted(known)
    # what flags share, their two dashes, makes them no more alike
    lower = {other.lower().lstrip("-"): other for other in known}
    near = [lower[match] for match in difflib.get_close_matches(name.lower().lstrip("-"), lower, n=3, cutoff=0.5)]
    hint = f"did you mean {' or '.join(near)}?" if near else f"known: {', '.join(known) or 'none'}"
    remedy = f" ({REMEDIES[kind].format(name=name)})" if kind in REMEDIES else ""
    return RewardlabError(f"unknown {kind} {name!r}; {hint}{remedy}")


def reason_of(problem: BaseException) -> str:
    """What an error says, in one line, with its kind where it is not one of ours, and with what was noted on its way."""
    says = " ".join(str(problem).split())
    text = says if isinstance(problem, RewardlabError) else f"{type(problem).__name__}{f': {says}' if says else ''}"
    return "; ".join([text, *(" ".join(note.split()) for note in getattr(problem, "__notes__", ()))])


def located(error: Exception, file: str) -> str:
    """ "FILE, line 7: NameError: ..." for an error that was raised in a user's file, or beneath a line of it."""
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == file]
    line = error.lineno if isinstance(error, SyntaxError) and error.filename == file else lines[-1] if lines else None
    says = error.msg if isinstance(error, SyntaxError) else " ".join(str(error).split())
    kind = "" if isinstance(error, RewardlabError) else f"{type(error).__name__}: "
    return f"{file}{f', line {line}' if line else ''}: {kind}{says}"


_PLACE: ContextVar[str] = ContextVar("place", default="")
"""Where the environment is that is asked now."""


@contextmanager
def naming(function: Callable, name: str, place: str) -> Iterator[str]:
    """Around a call of an environment's function: an exception in one that is the user's names file, line and place.

    Gives the place: without one that of the environment around this one, since an environment in a file is called by ours.
    """
    before = _PLACE.set(place or _PLACE.get())
    try:
        yield _PLACE.get()
    # an exit too, which would end the run without a word
    except (Exception, SystemExit) as e:
        if function.__module__.startswith("rewardlab."):
            raise
        file = inspect.unwrap(function).__code__.co_filename
        lines = [frame.lineno for frame in traceback.extract_tb(e.__traceback__) if frame.filename == file]
        line = f", line {lines[-1]}" if lines else ""
        says = " ".join(str(e).split())
        raise RewardlabError(f"the environment {name} of {file}{line}: {type(e).__name__}: {says} ({_PLACE.get()})") from e
    finally:
        _PLACE.reset(before)
