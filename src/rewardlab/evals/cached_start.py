"""A measure with cached numbers before training, shared by runs that begin alike."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from rewardlab.core import Measure, Problem, Run, measure
from rewardlab.util.files import write_json


@measure
def cached_start(problems: Sequence[Problem], run: Run, *, inner: Measure, file: str) -> dict[str, float]:
    """The numbers of `inner`; those of step 0 are read from `file`, or written to it by the first run.

    Whoever names the file answers for it that all runs with it measure the same policy, on the same problems, by the same numbers.
    """
    if run.step:
        return inner(problems, run)
    if not Path(file).exists():
        Path(file).parent.mkdir(parents=True, exist_ok=True)
        write_json(Path(file), inner(problems, run))
    return json.loads(Path(file).read_text("utf-8"))
