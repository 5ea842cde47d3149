"""Environments of the package `verifiers` by name, whichever of its two interfaces they are written for.

    verifiers < 0.4    load_environment(NAME, **options): an Environment with rubric and dataset    classic.py
    verifiers >= 0.4   a Taskset named by its package, its tasks with rewards, agents that play     tasksets.py

Brown 2025, github.com/PrimeIntellect-ai/verifiers (MIT); read: 0.3.1 (`verifiers.legacy`) and 0.4.0 (`verifiers.v1`).
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import importlib.util
import json
import signal
import threading
from collections.abc import Iterator
from importlib import metadata
from typing import Any

from rewardlab.errors import RewardlabError
from rewardlab.util.extras import require

from .shapes import Loaded

_LOADING = threading.Lock()


def load(name: str, options: str) -> Loaded:
    """The environment of this name.  options: its own arguments, as JSON.

    Raises RewardlabError, in words, where the package or the environment is missing, and for what it says itself: a missing key of
    a judge, say.
    """
    # episodes begin in threads, and all of them play the same one
    with _LOADING:
        return _loaded(name, options)


@functools.cache
def _loaded(name: str, options: str) -> Loaded:
    require("verifiers", "verifiers", what="an environment of verifiers")
    module = name.rpartition("/")[2].partition("@")[0].replace("-", "_")
    version = metadata.version("verifiers")
    classic = importlib.util.find_spec("verifiers.v1.task") is None or _number(version) < (0, 4)
    given = json.loads(options)
    with kept_signals():
        try:
            if classic:
                if not hasattr(_imported(module, name), "load_environment"):
                    raise RewardlabError(
                        f"{name} has no load_environment, which verifiers {version} loads it by; if it is a taskset of the new "
                        "interface: pip install 'verifiers>=0.4'"
                    )
                from .classic import Classic

                return Classic(name, given)
            from .tasksets import Tasks

            return Tasks(name, given)
        except RewardlabError:
            raise
        except Exception as e:
            told = _old(module) if not classic else ""
            says = " ".join(str(e).split())
            raise RewardlabError(f"cannot load the environment {name} of verifiers: {type(e).__name__}: {says}{told}") from e


def _number(version: str) -> tuple[int, ...]:
    return tuple(int(x) for x in version.split("+")[0].split(".")[:2] if x.isdigit())


def _imported(module: str, name: str) -> Any:
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as e:
        if e.name != module:
            raise
        raise RewardlabError(
            f"there is no environment {name!r}: no module {module} is installed. Environments are packages of their own: "
            f"prime env install {name}, or pip install {name}"
        ) from None


def _old(module: str) -> str:
    """A hint where an environment is written for the older interface."""
    with contextlib.suppress(Exception):
        spec = importlib.util.find_spec(module)
        source = spec.loader.get_source(module) if spec and hasattr(spec.loader, "get_source") else ""  # type: ignore[union-attr]
        if "def load_environment" in (source or ""):
            return f". {module} has a load_environment, which is of the older interface: pip install 'verifiers<0.4'"
    return ""


@contextlib.contextmanager
def kept_signals() -> Iterator[None]:
    """The handlers of signals stay what they are: verifiers sets its own when an environment is made."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
