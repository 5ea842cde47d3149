"""Small policies for tasks that are not text, each made once for its task and cached.

A module KIND.py has `warmed(task)`, the policy that a task of this kind is played with, and `untrained(task)`, a tiny one with
random weights for tests. A task names its kind in `Task.model`.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

PACKAGE = Path(__file__).parents[1]
TOOL = re.compile(r"^from (?:rewardlab|\.)\.kit\.(\w+) import", re.MULTILINE)


def fingerprint(tasks: Iterable[str], makers: Iterable[str], told: Any = None) -> str:
    """Changes whenever a policy would come out different.

    With the files of its tasks and of the tools these draw problems with, with its makers' files (paths in the package), and
    with what else is told.
    """
    files = {PACKAGE / maker for maker in makers}.union(*(_drawn_with(PACKAGE / "tasks" / f"{task}.py") for task in tasks))
    return hashlib.blake2b(b"".join(f.read_bytes() for f in sorted(files)) + repr(told).encode(), digest_size=6).hexdigest()


def _drawn_with(file: Path) -> set[Path]:
    """A task's file and the tools it uses."""
    tools = [PACKAGE / "kit" / f"{name}.py" for name in TOOL.findall(file.read_text())]
    return {file}.union(*map(_drawn_with, tools))
