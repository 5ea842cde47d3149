"""What a policy makes of a process reward model's rewards: the sum of its steps, and each of the cures.

python benchmarks/_process_rewards.py --folder /tmp/rewards --out results/process/rewards.json

Solutions hold redundant right lines, so that lines can be added without a mistake. A value head learns from true step labels: a
redundant line is a right one. Then policies are trained on its rewards, alone or beside the verifier's, by REINFORCE on the rewards
to go less the mean return of the group's other replies: the sum of the steps' rewards pays for further lines, and the cures are
meant not to (`rewardlab train reward_to_go --problems 8 --reward ...`). Right answers are counted by the verifier. What the folder
has already is not done again. About two minutes of one core for each reward and seed.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np

TRUNK = "embedded:arithmetic:judge"
TASK = "arithmetic:biased=0.75,error=0.1,redundant=0.4"
PAID = 'prm_steps(model="{prm}"'
REWARDS = {
    "outcome": "correct()",
    "sum": f"{PAID})",
    "outcome + sum": f"correct() + {PAID})",
    "gated sum": f"correct() >> {PAID})",
    "least step": 'prm_score(model="{prm}", form="min")',
    "outcome + clip": f"correct() + {PAID}, clip=0.5)",
    "outcome + delta": f"correct() + {PAID}, delta=True)",
    "outcome + clip and delta": f"correct() + {PAID}, clip=0.5, delta=True)",
    "clip": f"{PAID}, clip=0.5)",
    "delta": f"{PAID}, delta=True)",
}
"""Clip and delta were published beside an outcome reward; alone, a reply without steps loses nothing by them."""
MEASURED = ("truth", "length", "reward")


def judge(folder: Path, problems: int, seed: int) -> Path:
    """The process reward model, made once."""
    from rewardlab import api

    labelled, prm = folder / "labels.jsonl", folder / "prm"
    if not prm.exists():
        api.label_file(labelled, task=TASK, by="reference", problems=problems, samples=4, seed=seed, device="cpu")
        made = api.train_scorer(labelled, TRUNK, prm, steps=160, seed=seed, device="cpu", eval_every=0)
        (folder / "prm.json").write_text(json.dumps(made, indent=1, default=str))
    return prm


def trained(folder: Path, prm: Path, name: str, steps: int, seed: int) -> dict[str, Any]:
    """Right answers, tokens of a reply and the policy's own reward, over the first and the last tenth of training, a run."""
    from rewardlab import api, build
    from rewardlab.registry.formula import read_reward

    out = folder / "runs" / f"{name.replace(' ', '-')}-{seed}"
    reward = read_reward(REWARDS[name].format(prm=f"prm:{prm}"))
    recipe = build("reward_to_go", {"problems": 8}).but(reward=reward)
    if not (out / "summary.json").exists():
        api.train(recipe, task=TASK, out=out, steps=steps, seed=seed, device="cpu", eval_every=0, eval_problems=100)
    rows = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
    rows = [row for row in rows if "truth" in row]
    tenth = max(1, len(rows) // 10)
    return {
        what: [round(float(np.mean([row[what] for row in part])), 4) for part in (rows[:tenth], rows[-tenth:])] for what in MEASURED
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--problems", type=int, default=1500, help="whose solutions the reward model learns from")
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    args.folder.mkdir(parents=True, exist_ok=True)
    prm = judge(args.folder, args.problems, 0)
    learnt = json.loads((args.folder / "prm.json").read_text())
    found: dict[str, Any] = {name: [] for name in REWARDS}
    for seed in range(args.seeds):
        for name in REWARDS:
            found[name].append(trained(args.folder, prm, name, args.steps, seed))
            result = {"task": TASK, "steps": args.steps, "prm": learnt["steps"], "first and last tenth": found}
            args.out.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
