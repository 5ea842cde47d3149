"""How hard a reward model can be pressed: the true quality of notes that are the best of n by it, and that a policy learns from it.

Reward models learn from notes by an annotator whose labels are right, turned round, or follow a taste for words of praise. Then the
best of up to 256 replies to held-out prompts is chosen by each, and GRPO is paid by it; what the notes are worth is known.

  python benchmarks/_over_optimisation.py results/reward_models/over-optimisation.json
"""

from __future__ import annotations

import json
import sys
from datetime import date
from pathlib import Path
from typing import Any

from rewardlab import api, registry
from rewardlab.registry.formula import read_reward
from rewardlab.runs.metrics import read_metrics
from rewardlab.util.files import write_json

LABELS = {
    "right": "verified_notes:gold=0.2,size=1000",
    "three in ten turned round": "verified_notes:gold=0.2,flip=0.3,size=1000",
    "a taste for praise": "verified_notes:gold=0.2,taste=0.3,size=1000",
}
METHODS: dict[str, dict[str, Any]] = {
    "bradley_terry": {}, "cheems": {"prior": 0.0}, "secrets_rlhf_2": {"votes": 3},
}  # fmt: skip
K = (1, 4, 16, 64, 256)
PROMPTS, STEPS, RATE, UPDATES = 60, 80, 3e-4, 80


def trained(method: str, task: str, start: int, out: Path) -> None:
    settings = {"init": "value-head:surprise", "problems": 16, "reward_lr": RATE, **METHODS[method]}
    api.train(
        method, policy(start), task, settings=settings, steps=STEPS, seed=start, out=out, eval_problems=300, eval_every=10**6,
        checkpoint_every=0, device="cpu",
    )  # fmt: skip


def policy(start: int) -> str:
    """An initial policy of the world; reward models begin from it."""
    return f"embedded#{start}" if start else "embedded"


def chosen(reward: str) -> list[dict[str, float]]:
    found = api.evaluate("embedded", "notes", k=K, problems=PROMPTS, judge="note_quality", best_of=reward)
    return found["best"]


def learnt(reward: str, seed: int, out: Path) -> list[dict[str, float]]:
    """The mean of ten updates each: what GRPO's policy is paid, and what its notes are worth."""
    paid = read_reward(reward) + 0.0 * read_reward("note_quality")
    api.train(
        registry.method("grpo")(n=8).but(problems=8, lr=3e-4, reward=paid), task="notes", steps=UPDATES, seed=seed, out=out,
        eval_problems=1, eval_every=10**6, checkpoint_every=0, device="cpu",
    )  # fmt: skip
    rows = [row for row in read_metrics(out) if "reward/note_quality" in row]
    return [
        {"update": i + 10, "paid": mean(rows[i : i + 10], "reward"), "worth": mean(rows[i : i + 10], "reward/note_quality")}
        for i in range(0, len(rows) - 9, 10)
    ]  # fmt: skip


def mean(rows: list[dict[str, float]], name: str) -> float:
    return sum(row[name] for row in rows) / len(rows)


def main(out: Path, work: Path, starts: tuple[int, ...] = (0, 1, 2)) -> None:
    found = (
        json.loads(out.read_text())
        if out.exists()
        else {"date": date.today().isoformat(), "prompts": PROMPTS, "rate": RATE, "rows": []}
    )
    known = {(row["labels"], row["method"], row["start"]) for row in found["rows"]}
    for start in starts:
        for labels, task in LABELS.items():
            for method in METHODS:
                if (labels, method, start) in known:
                    continue
                run = work / f"{labels}-{method}-{start}".replace(" ", "-")
                if not (run / "summary.json").exists():
                    trained(method, task, start, run)
                accuracy = json.loads((run / "summary.json").read_text())["after"]
                row = {"labels": labels, "method": method, "start": start, "held_out": accuracy, "best_of": chosen(f"model:{run}")}
                if method == "bradley_terry" and start < 2:
                    row["trained_on"] = learnt(f"model:{run}", start, work / f"policy-{run.name}")
                found["rows"].append(row)
                write_json(out, found)
    if "truth" not in found:
        found |= {name: chosen(reward) for name, reward in (("truth", "note_quality"), ("length", "-1 * length_penalty()"))}
    write_json(out, found)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2] if len(sys.argv) > 2 else "runs/over-optimisation"))
