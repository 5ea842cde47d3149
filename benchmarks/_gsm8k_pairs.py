"""Preference pairs from GSM8K's training part, which no benchmark of rewards holds: for trained raters of the kept scoreboard.

The better reply is the published solution. The worse one is, in turn, the solution of another question, or the same solution with
one of its numbers changed. Without the calculator's marks (<<16-3=13>>) and the line of the answer (#### 18), which tell it apart.

  python benchmarks/_gsm8k_pairs.py 2000 pairs.jsonl
  python benchmarks/_gsm8k_pairs.py 2000 short.jsonl 330    those of up to 330 characters, the two kinds in turn
"""

from __future__ import annotations

import json
import random
import re
import sys
from pathlib import Path

from rewardlab.tasks.sources import data_file

_NUMBER = re.compile(r"\d+(?:\.\d+)?")


def pairs(count: int, seed: int = 0) -> list[dict[str, str]]:
    rng = random.Random(seed)
    with data_file("gsm8k", "train.jsonl").open(encoding="utf-8") as file:
        rows = rng.sample([json.loads(line) for line in file], count)
    solutions = [re.sub(r"<<.*?>>", "", row["answer"]).partition("\n####")[0] for row in rows]
    made = []
    for i, (row, solution) in enumerate(zip(rows, solutions, strict=True)):
        rejected, subset = (solutions[i - 1], "other question") if i % 2 else (slipped(solution, rng), "one number changed")
        made.append({"prompt": row["question"], "chosen": solution, "rejected": rejected, "subset": subset})
    return made


def slipped(solution: str, rng: random.Random) -> str:
    """The solution with one of its numbers changed by up to a half."""
    place = rng.choice(list(_NUMBER.finditer(solution)))
    value = float(place[0])
    wrong = rng.choice([v for v in range(int(value / 2), int(1.5 * value) + 3) if v != value])
    return f"{solution[: place.start()]}{wrong}{solution[place.end() :]}"


def short(rows: list[dict[str, str]], longest: int) -> list[dict[str, str]]:
    """Those whose prompt and longer reply have so many characters at most; as many of either kind, in turn."""
    kept = [row for row in rows if len(row["prompt"]) + max(len(row["chosen"]), len(row["rejected"])) <= longest]
    kinds = ([row for row in kept if row["subset"] == kind] for kind in ("other question", "one number changed"))
    return [row for both in zip(*kinds, strict=False) for row in both]


if __name__ == "__main__":
    made = pairs(int(sys.argv[1]))
    made = short(made, int(sys.argv[3])) if len(sys.argv) > 3 else made
    Path(sys.argv[2]).write_text("".join(json.dumps(row) + "\n" for row in made), "utf-8")
