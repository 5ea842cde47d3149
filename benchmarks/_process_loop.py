"""A process reward model goes all the way on small chains of arithmetic: labels, training as each kind, evaluation, search.

python benchmarks/_process_loop.py --folder /tmp/loop --out results/process/loop.json

Labels: true ones, those of 4 continuations a step, and those of bisection. Models: a value head on each of them, and the implicit
kind on true ones; all are judged on true labels of other problems. (The small policies have no words for a generative one: see
`bench judges`, text.) Then searches by the head on Monte-Carlo labels, and by the majority, at equal tokens of policy and scorer
together. What the folder has already is not done again. About a quarter of an hour of one core. What a policy makes of
such rewards: `_process_rewards.py`.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

TRUNK = "embedded:arithmetic:judge"
LABELS = {
    "true": {"by": "reference"},
    "monte-carlo": {"by": "monte-carlo", "rollouts": 4},
    "bisection": {"by": "binary-search", "rollouts": 4},
}
MODELS = {
    "head-true": ("true", {"kind": "head", "loss": "bce", "steps": 60}),
    "head-monte-carlo": ("monte-carlo", {"kind": "head", "loss": "soft", "steps": 60}),
    "head-bisection": ("bisection", {"kind": "head", "loss": "bce", "steps": 60}),
    "implicit-true": ("true", {"kind": "implicit", "loss": "bce", "beta": 0.5, "lr": 3e-4, "steps": 60}),
}
METHODS = ("majority_vote", "weighted_vote", "best_of_n", "beam_search", "dvts", "rebase", "particle_filtering")


def timed(work: Callable[[], Any]) -> tuple[Any, float]:
    """What it gives, and its processor seconds."""
    started = time.process_time()
    return work(), round(time.process_time() - started, 1)


def kept(path: Path, work: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """What `work` gives, or gave when it was last called for this file."""
    if not path.exists():
        found, seconds = timed(work)
        path.write_text(json.dumps({**found, "seconds": seconds}, indent=1, default=str))
    return json.loads(path.read_text())


def labels(task: str, folder: Path, problems: int, seed: int) -> dict[str, Any]:
    """The cost of each kind of labels, and how many steps they call right."""
    from rewardlab import api

    found = {}
    for name, how in LABELS.items():
        out = folder / f"{name}.jsonl"
        found[name] = kept(folder / f"{name}.labels.json", lambda out=out, how=how: api.label_file(
            out, task=task, problems=problems, samples=4, seed=seed, device="cpu", **how
        ))  # fmt: skip
    return found


def models(folder: Path, seed: int) -> dict[str, Any]:
    """Each model's figures on true labels of problems that it did not learn from."""
    from rewardlab import api
    from rewardlab.data.solutions import row_of
    from rewardlab.data.step_formats import read_solutions
    from rewardlab.prm.rows import solutions_task

    _, others = solutions_task(list(read_solutions(folder / "true.jsonl")), 0.1, seed)
    test = folder / "test.jsonl"
    test.write_text("".join(json.dumps(row_of(s)) + "\n" for s in others))
    found = {}
    for name, (of, how) in MODELS.items():

        def work(name: str = name, of: str = of, how: dict[str, Any] = how) -> dict[str, Any]:
            api.train_scorer(folder / f"{of}.jsonl", TRUNK, folder / name, seed=seed, device="cpu", eval_every=0, **how)
            return api.evaluate_scorer(str(folder / name), test, device="cpu")

        document = kept(folder / f"{name}.json", work)
        found[name] = {key: document[key] for key in ("first_error", "steps", "seconds")}
    return found


def searches(task: str, folder: Path, budgets: list[int], problems: int, seed: int) -> dict[str, Any]:
    """Accuracy at equal tokens, by the head that learnt from Monte-Carlo labels."""
    from rewardlab import api

    return kept(folder / "searches.json", lambda: api.search(
        METHODS, task, scorer=f"prm:{folder / 'head-monte-carlo'}", budgets=budgets, problems=problems, seed=seed, device="cpu",
        page=folder / "searches.html",
    ))  # fmt: skip


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--task", default="arithmetic:biased=0.75,error=0.1")
    parser.add_argument("--problems", type=int, default=600, help="whose solutions are labelled")
    parser.add_argument("--budgets", type=int, nargs="+", default=[250, 500, 1000, 2000])
    parser.add_argument("--searched", type=int, default=300, help="held-out problems of the searches")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    args.folder.mkdir(parents=True, exist_ok=True)
    result = {"task": args.task, "problems": args.problems, "samples": 4, "seed": args.seed}
    result["labels"] = labels(args.task, args.folder, args.problems, args.seed)
    result["models"] = models(args.folder, args.seed)
    result["searches"] = searches(args.task, args.folder, args.budgets, args.searched, args.seed)
    args.out.write_text(json.dumps(result, indent=1) + "\n")
