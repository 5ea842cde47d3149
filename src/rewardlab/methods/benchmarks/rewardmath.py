"""RewardMATH: one right solution of a problem against nine wrong ones, so that a liking for one style of writing is not enough.

    rank = 1 + the number of wrong solutions that do not score below the right one
    accuracy = mean 1[rank = 1],   mrr = mean 1 / rank,   pairs = the share of wrong solutions that score below the right one

A tie is lost. For judges of pairs, rank is 1 + the comparisons lost; a judgement that cannot be read is lost. Process reward models
give a score for each step; a solution's score is their minimum, maximum, product, geometric mean, mean, mean in log-odds, mean of
the odds, or the last one: `outputs:step_scores.jsonl.gz` makes a rater of each.

Kim et al. 2024, arXiv:2410.01729, and the released code (kimsh0507/RewardMATH_official, src/evaluation/eval.py). Read are the
published files of single solutions (RewardMATH_direct.json; RewardMATH/RewardMATH on the hub) and of pairs
(RewardMATH_pairwise.json). The data at hand has the problems and the scores of 27 models and 4 process reward models, and no texts
of solutions: without --data, only published outputs can be asked.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from rewardlab.checks.claim import Check
from rewardlab.core import Recipe, Run, study
from rewardlab.data.files import rows_of
from rewardlab.scoreboard.benchmark import Benchmark, Published
from rewardlab.scoreboard.figures import Marks
from rewardlab.scoreboard.items import Item, Verdict, users

kind = "benchmark"
GROUP = "problem_id"


def read(row: Mapping[str, Any], file: str) -> Iterator[Item]:
    """The right solution first. A row of problems alone has the writers of ten solutions, and no texts."""
    rows = row.get("rows", [row])
    first = rows[0]
    name = str(first[GROUP] if GROUP in first else first["index"])
    right, wrong = _solutions(rows)
    if len(right) != 1 or not wrong:
        raise ValueError(f"problem {name} has {len(right)} right and {len(wrong)} wrong solutions; it needs one, and some")
    solutions = (*right, *wrong)
    yield Item(
        name, users(first["problem"]), tuple("\n".join(steps) for steps in solutions), (1.0,) + (0.0,) * len(wrong),
        steps=() if not any(solutions) else solutions,
    )  # fmt: skip


def _solutions(rows: Sequence[Mapping[str, Any]]) -> tuple[list[tuple[str, ...]], list[tuple[str, ...]]]:
    """Right and wrong solutions, as steps. In the file of pairs, each row has the right one again."""
    if "eval_solution_A" in rows[0]:
        places = [("A", "B") if r["chosen_position"] == "A" else ("B", "A") for r in rows]
        both = [[tuple(r[f"eval_solution_{place}"]) for place in order] for r, order in zip(rows, places, strict=True)]
        return list(dict.fromkeys(pair[0] for pair in both)), [pair[1] for pair in both]
    if "eval_solution" in rows[0]:
        side = {kind: [tuple(r["eval_solution"]) for r in rows if r["solution_type"] == kind] for kind in ("chosen", "rejected")}
        return side["chosen"], side["rejected"]
    writers = rows[0]["solution_reference"]
    return [() for w in writers if w == "human_to_GPT-4"], [() for w in writers if w != "human_to_GPT-4"]


def marks(item: Item, verdict: Verdict) -> dict[str, float]:
    lost = sum((verdict.prefers(i, j) or 0.0) <= 0.5 for i, j in item.pairs)
    return {"first": float(lost == 0), "rank": 1 / (1 + lost), "won": len(item.pairs) - lost, "pairs": len(item.pairs)}


def figures(marks: Marks) -> dict[str, float]:
    """accuracy: the right solution scores above all others; mrr; pairs, each counted alike."""
    pairs = marks.total("pairs")
    return {"accuracy": marks.mean("first"), "mrr": marks.mean("rank"), "pairs": marks.total("won") / pairs if pairs else math.nan}


def _log_odds(p: np.ndarray) -> float:
    return float(1 / (1 + np.exp(-np.log(p / (1 - p)).mean())))


BY: dict[str, Callable[[np.ndarray], float]] = {
    "min": np.min, "max": np.max, "product": np.prod, "geometric_mean": lambda p: np.prod(p) ** (1 / len(p)), "mean": np.mean,
    "mean_logit": _log_odds, "mean_odd": lambda p: np.maximum(0, (p / (1 - p)).mean()), "last": lambda p: p[-1],
}  # fmt: skip
"""How the released code makes one score of those of the steps."""


def outputs(path: Path) -> Iterator[tuple[str, str, Verdict]]:
    """The released scores: ten numbers; nine verdicts on pairs, with the place of the right solution; or ten lists of step scores,
    which give a rater for each way to sum them up."""
    for _, row in rows_of(path):
        model, item, scores = str(row["model"]), str(row["index"]), row["score"]
        if "chosen_position" in row:
            orders = dict(_pair(j + 1, *x) for j, x in enumerate(zip(scores, row["chosen_position"], strict=True)))
            yield model, item, Verdict(orders=orders)
        elif isinstance(scores[0], list):
            for name, by in BY.items():
                with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
                    summed = [float(by(np.array(s, float))) if s else math.nan for s in scores]
                yield f"{model}/{name}", item, Verdict(tuple(None if math.isnan(x) else x for x in summed))
        else:
            yield model, item, Verdict(tuple(scores))


def _pair(j: int, said: str | None, place: str) -> tuple[tuple[int, int], float | None]:
    """The verdict on the right solution, 0, and the j-th wrong one, in the order in which they were shown."""
    return ((0, j) if place == "A" else (j, 0)), None if said not in ("A", "B") else float(said == "A")


_SOURCE = "released results of kimsh0507/RewardMATH_official, counted apart from this code"
_COUNTED = {
    "internlm2": (0.3727, 0.552), "internlm2_20b": (0.3395, 0.52), "grm_llama3": (0.2443, 0.458), "skywork_llama3": (0.2215, 0.447),
    "ArmoRM": (0.205, 0.422), "Eurus-RM": (0.1698, 0.383), "gpt4o": (0.2598, 0.467), "gpt4": (0.2247, 0.447),
}  # fmt: skip
_FIRST = {
    "beaver": 0.0725, "oasst-rm": 0.0704, "grm_gemma": 0.0497, "Math_Shepherd/product": 0.1718, "Math_Shepherd/min": 0.1532,
    "Math_Shepherd/last": 0.1822, "Math_Shepherd/geometric_mean": 0.1573,
}  # fmt: skip

benchmark = Benchmark(
    title="RewardMATH", data="rewardmath", skip=("step_scores", "rewardbench_"), released="scores", hub="RewardMATH/RewardMATH",
    group=GROUP, read=read, marks=marks, figures=figures, outputs=outputs,
    chance={"accuracy": 0.1, "mrr": float(np.mean([1 / k for k in range(1, 11)])), "pairs": 0.5},
    lacks="the texts of the solutions: without --data only published outputs can be asked",
    published=(
        *(Published(m, {"accuracy": a, "mrr": r}, _SOURCE, m) for m, (a, r) in _COUNTED.items()),
        *(Published(m, {"accuracy": a}, _SOURCE, m) for m, a in _FIRST.items()),
        Published("gpt4_pairwise", {"accuracy": 0.2981, "pairs": 0.7746}, _SOURCE, "gpt4_pairwise"),
    ),
    example=(
        {
            "problem": "What is $3 + 4 * 2$?", "answer": "11", "eval_solution_A": ["4 * 2 = 8.", "3 + 8 = \\boxed{11}."],
            "eval_solution_B": ["3 + 4 = 7.", "7 * 2 = \\boxed{14}."], "solution_reference": "gpt-4o-2024-05-13",
            "chosen_position": "A", "subject": "Prealgebra", "level": 1, "problem_id": 0, "id": 0,
        },
        {
            "problem": "Solve $2x = 10$.", "answer": "5", "eval_solution_A": ["Take 2 from both sides.", "So $x = \\boxed{8}$."],
            "eval_solution_B": ["Halve both sides.", "So $x = \\boxed{5}$."], "solution_reference": "google/gemma-7b-it",
            "chosen_position": "B", "subject": "Algebra", "level": 1, "problem_id": 1, "id": 9,
        },
    ),
)  # fmt: skip


@study
def counted_figures(run: Run) -> dict[str, float]:
    """met: the share of the figures above that come out of the released scores, to their last digit; control: with the scores
    in reverse, so that another solution is taken for the right one; figures: how many there are.

    Every record counts: the files of three judges have two problems twice."""
    items = {item.id: item for item in benchmark.items()}
    known: dict[str, list[tuple[Item, Verdict]]] = {}
    (path,) = benchmark.released_files()
    for file in (path, path.with_name(f"step_{path.name}")):
        for rater, name, verdict in outputs(file):
            known.setdefault(rater, []).append((items[name], verdict))
    met: list[bool] = []
    control: list[bool] = []
    for published in benchmark.published:
        rows = known[published.output]
        for found, side in ((_figures(rows), met), (_figures([(i, _turned(v)) for i, v in rows]), control)):
            side += [abs(found[name] - x) <= (5.1e-4 if name == "mrr" else 5.1e-5) for name, x in published.figures.items()]
    return {"met": float(np.mean(met)), "control": float(np.mean(control)), "figures": float(len(met))}


def _figures(rows: Sequence[tuple[Item, Verdict]]) -> dict[str, float]:
    return figures(Marks.of([i for i, _ in rows], [marks(i, v) for i, v in rows]))


def _turned(verdict: Verdict) -> Verdict:
    """The last solution in the place of the first."""
    if verdict.orders:
        return Verdict(orders={pair[::-1]: x for pair, x in verdict.orders.items()})
    return Verdict(verdict.scores[::-1])


def rewardmath(base: Recipe | None = None) -> Recipe:
    """No settings: `rewardlab scoreboard outputs:FILE --on rewardmath`, or any rater with --data."""
    base = base or Recipe(name="rewardmath")
    return base.but(study=counted_figures())


fidelity = "whole"

check = Check(
    says="accuracies and reciprocal ranks of 16 raters come out of the released scores", versus=None, task="arithmetic",
    measure="met", direction="higher", margin=0.9, against="control",
    finding="all 25 figures come out, of reward models, judges and one process reward model by four ways of summing up steps; of "
    "solutions taken in reverse, none",
)  # fmt: skip
