"""A real language model becomes a process reward model, and is scored on the real PRMBench as it is.

python benchmarks/_prm_smollm2.py --data ../shared/data --folder /tmp/prm --out results/process/prmbench_smollm2.json

Solutions: GSM8K's own, as its authors wrote them, and as many in which the result of one calculation is wrong and is carried on
from there; that step is labelled wrong, and those after it are not labelled. SmolLM2-135M learns from them with a value head, by
LoRA. It is measured on such solutions to problems of GSM8K's test set, and on PRMBench, beside the same model's likelihood of each
step and its own verdicts (Yes or No after each step), which take no training. What the folder has already is not done again. Half
an hour of one core.
"""

from __future__ import annotations

import argparse
import json
import random
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

CALCULATION = re.compile(r"<<[^=<>]*=(-?\d+(?:\.\d+)?)>>")
SHIFTS = (-20, -10, -5, -3, -2, -1, 1, 2, 3, 5, 10, 20)


def with_error(question: str, lines: list[str], rng: random.Random) -> tuple[list[str], int] | None:
    """The lines with one calculated result wrong, also where later lines use it, and the place of the error; None if none fits.

    Only whole results that the question does not name and that no earlier line holds: elsewhere a number would be replaced that
    means something else.
    """
    found = [(i, match[1]) for i, line in enumerate(lines) for match in CALCULATION.finditer(line)]
    rng.shuffle(found)
    for place, right in found:
        number = re.compile(rf"(?<![\d.,]){re.escape(right)}(?![\d]|[.,]\d)")
        if "." in right or any(number.search(text) for text in (question, *lines[:place])):
            continue
        wrong = str(max(0, int(right) + rng.choice(SHIFTS)))
        if wrong != right:
            return [number.sub(wrong, line) if i >= place else line for i, line in enumerate(lines)], place
    return None


def solutions(path: Path, n: int, seed: int) -> list[dict[str, Any]]:
    """n rows, half of them right, from problems chosen by chance."""
    rng = random.Random(seed)
    rows = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    rng.shuffle(rows)
    made: list[dict[str, Any]] = []
    for row in rows:
        if len(made) >= n:
            break
        worked, _, answer = row["answer"].partition("\n#### ")
        lines = [line for line in worked.split("\n") if line.strip()]
        if (spoilt := with_error(row["question"], lines, rng)) is None:
            continue
        shown = {"prompt": row["question"], "answer": answer.strip()}
        changed, place = spoilt
        made.append({**shown, "steps": cleaned(lines), "labels": [1.0] * len(lines), "right": True})
        labels = [1.0] * place + [0.0] + [None] * (len(lines) - place - 1)
        made.append({**shown, "steps": cleaned(changed), "labels": labels, "right": False})
    return made[:n]


def cleaned(lines: list[str]) -> list[str]:
    """Without the calculator's notes, which would tell a right result from a wrong one."""
    return [re.sub(r"<<[^<>]*>>", "", line) for line in lines]


def kept(path: Path, work: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """What `work` gives, or gave when it was last called for this file."""
    if not path.exists():
        path.write_text(json.dumps(work(), indent=1, default=str))
    document: dict[str, Any] = json.loads(path.read_text())
    return document


def measured(folder: Path, args: argparse.Namespace) -> dict[str, Any]:
    """Each scorer's figures on both sets."""
    from rewardlab import api

    test = folder / "test.jsonl"
    scorers = {"trained head": str(folder / "prm"), "likelihood": "smollm2?as=likelihood", "own verdicts": "smollm2?as=generative"}
    sets = {"gsm8k": (str(test), None), "prmbench": ("prmbench", args.bench)}
    found: dict[str, Any] = {}
    for called, model in scorers.items():
        for on, (file, limit) in sets.items():

            def work(model: str = model, file: str = file, limit: int | None = limit) -> dict[str, Any]:
                return api.evaluate_scorer(model, file, limit=limit, seed=args.seed, device="cpu")

            document = kept(folder / f"{called.replace(' ', '-')}-{on}.json", work)
            found[f"{called} on {on}"] = {k: v for k, v in document.items() if k not in ("calibration", "positions", "lengths")}
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="the folder that holds gsm8k and prmbench")
    parser.add_argument("--train", type=int, default=960, help="solutions to learn from, half of them wrong")
    parser.add_argument("--test", type=int, default=120)
    parser.add_argument("--bench", type=int, default=100, help="solutions of PRMBench, chosen by chance from all its categories")
    parser.add_argument("--steps", type=int, default=60, help="of 16 solutions each")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    args.folder.mkdir(parents=True, exist_ok=True)
    for name, n in (("train", args.train), ("test", args.test)):
        rows = solutions(args.data / "gsm8k" / f"{name}.jsonl", n, args.seed)
        (args.folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))

    from rewardlab import api
    from rewardlab.models.smollm2 import checkpoint

    trained = kept(args.folder / "trained.json", lambda: api.train_scorer(
        args.folder / "train.jsonl", str(checkpoint()), args.folder / "prm", kind="head", loss="bce", steps=args.steps,
        lora_rank=16, seed=args.seed, device="cpu", eval_every=0,
    ))  # fmt: skip
    settings = {k: v for k, v in vars(args).items() if k in ("train", "test", "bench", "steps", "seed")}
    result = {"model": "SmolLM2-135M-Instruct", **settings, "trained": trained, "measured": measured(args.folder, args)}
    args.out.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps(result, indent=1, default=str)
    args.out.write_text(text.replace(str(args.folder), "FOLDER").replace(str(checkpoint()), "smollm2") + "\n")


if __name__ == "__main__":
    main()
