"""False accepts and false rejects on the labelled pairs of tests/math_pairs.py, for rewardlab's verifier and Math-Verify 0.9.0.

python benchmarks/_math_errors.py                  prints them
python benchmarks/_math_errors.py --out FILE.json  and keeps them
python benchmarks/_math_errors.py --show           and every pair that ours gets wrong
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from _math import by_math_verify_within, by_rewardlab, errors

LIMIT = 20.0
"""Time limit of Math-Verify for a pair, in seconds; beyond it, it has no verdict."""

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "helpers"))


def table(labelled: Sequence[Any], verdicts: dict[str, list[bool | None]]) -> dict[str, Any]:
    """Errors of each verifier on all pairs, on each half, and by category."""
    parts = {"all": lambda p: True, "developed on": lambda p: not p.held_out, "held out": lambda p: p.held_out}
    parts |= {f"category {name}": lambda p, name=name: p.category == name for name in sorted({p.category for p in labelled})}
    found = {}
    for part, belongs in parts.items():
        chosen = [i for i, pair in enumerate(labelled) if belongs(pair)]
        labels = [labelled[i].correct for i in chosen]
        by_side = {side: errors([said[i] for i in chosen], labels) for side, said in verdicts.items()}
        found[part] = {"pairs": len(labels), "right": sum(labels), "wrong": len(labels) - sum(labels), **by_side}
    return found


def main() -> None:
    from math_pairs import pairs

    parser = argparse.ArgumentParser()
    parser.add_argument("--out", type=Path, help="keep the table here")
    parser.add_argument("--show", action="store_true", help="print the pairs that ours gets wrong")
    args = parser.parse_args()
    labelled = pairs()
    triples = [(p.response, p.answer, p.correct) for p in labelled]
    verdicts = {"rewardlab": by_rewardlab(triples), "math-verify 0.9.0": by_math_verify_within(triples, LIMIT)}
    found = table(labelled, verdicts)
    print(json.dumps({part: found[part] for part in ("all", "developed on", "held out")}, indent=1))
    if args.out:
        args.out.write_text(json.dumps(found, indent=1) + "\n")
    if args.show:
        for pair, said in zip(labelled, verdicts["rewardlab"], strict=True):
            if said is not pair.correct:
                print(said, pair)


if __name__ == "__main__":
    main()
