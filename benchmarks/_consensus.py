"""What is kept where two real process reward models must agree on the first error, by the answers of 16,000 solutions to GSM8K.

python benchmarks/_consensus.py --out results/process/consensus.json

The step scores are those of StrictPRMBench; a step is wrong at a chance of 1/2 or less. Nobody has labelled these steps: what is
known is whether the answer is right, so that a solution with a wrong answer has an error somewhere, and of one with a right answer
it is supposed that it has none. Seconds of one core.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

SCORERS = ("math_shepherd", "rlhflow_prm", "skywork_prm", "skywork_prm_1_5b", "qwen_prm")
"""Those that give chances. The first two were taught by continuations; qwen_prm by consensus."""

Row = tuple[tuple[int | None, ...], bool]
"""The first wrong step by each annotator, None where it finds none; whether the answer is right."""


def figures(rows: Sequence[Row]) -> dict[str, float]:
    """Of the solutions on which the annotators agree.

    kept: their share.  mistaken: of these, where they find an error and the answer is right, or none and it is wrong.  flagged: of
    those with a wrong answer, where they find an error.  cleared: of those with a right one, where they find none.  wrong: the
    share with a wrong answer.
    """
    kept = [(places[0] is not None, right) for places, right in rows if len(set(places)) == 1]
    flagged, cleared = [error for error, right in kept if not right], [not error for error, right in kept if right]
    numbers = {
        "kept": len(kept) / len(rows), "mistaken": sum(error == right for error, right in kept) / len(kept),
        "flagged": sum(flagged) / len(flagged), "cleared": sum(cleared) / len(cleared), "wrong": len(flagged) / len(kept),
    }  # fmt: skip
    return {name: round(x, 4) for name, x in numbers.items()}


def measured() -> dict[str, Any]:
    """The figures of each model alone, and of each two."""
    from rewardlab.tasks.strictprm.problems import problems

    found: dict[str, Any] = {}
    for names in [*((name,) for name in SCORERS), *combinations(SCORERS, 2)]:
        rows = [
            (tuple(first_error(problem.meta[name][i]) for name in names), right)
            for problem in problems("gsm8k") for i, right in enumerate(problem.meta["right"])
        ]  # fmt: skip
        found[" + ".join(names)] = figures(rows)
    return found


def first_error(chances: Sequence[float]) -> int | None:
    return next((k for k, chance in enumerate(chances) if chance <= 0.5), None)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    args.out.write_text(json.dumps({"task": "strictprm:name=gsm8k", "annotators": measured()}, indent=1) + "\n")
