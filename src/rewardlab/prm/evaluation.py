"""Evaluation of step scorers on labelled solutions."""

from __future__ import annotations

import os
import random
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from rewardlab.core import seed_of, uniform_of
from rewardlab.data.files import is_rows, write
from rewardlab.data.solutions import Solution, row_of
from rewardlab.data.step_formats import name_of, read_solutions, solutions_in
from rewardlab.errors import RewardlabError
from rewardlab.evals.labelled import WORTH, chosen_among
from rewardlab.evals.process import THRESHOLD, Judged, best_threshold, figures, first_errors
from rewardlab.prm import StepScorer, load_scorer
from rewardlab.prm.rows import by_steps
from rewardlab.report.step_scores import write_page
from rewardlab.settings.domain import SHARE
from rewardlab.util.files import check_page
from rewardlab.util.progress import Bar

BENCHMARKS = ("processbench", "prmbench")
"""Folders of the shared data (REWARDLAB_DATA) that may be named without their path."""
BATCH = 64
"""Solutions between two lines of the progress bar."""


def evaluate_scorer(
    model: str | StepScorer, on: Any, *, threshold: float = THRESHOLD, fit_threshold: bool = False,
    limit: int | None = None, seed: int = 0, format: str = "auto", page: str | Path | None = None, out: str | Path | None = None,
    device: str = "auto", dtype: str = "auto",
) -> dict[str, Any]:  # fmt: skip
    """First errors, steps, calibration, categories and cost of a scorer: the figures of `evals/process.py`, as one document.

    model: what `load_scorer` takes, or a scorer.  on: a file or folder of solutions in any format of `data/step_formats.py`, or
    processbench or prmbench, whose files lie in the folder that REWARDLAB_DATA names; or rows as of a file, or solutions.
    threshold: a step is judged right above it.
    fit_threshold: choose it for the best F1 on half of the problems, and measure on the others; never on the same ones.  limit: so
    many solutions, chosen by chance.  page: an HTML page of it.  out: each solution with its `chances`, as JSON lines.
    Solutions without labels, with blank steps, or longer than the model's context, are left out and counted. Where it is known of
    several solutions to a question whether they are right (`right`), `choosing` says how often the one that is worth most is, by
    each way to make one number of the steps; those without labels count there too.
    """
    SHARE.check("threshold", threshold)
    if page:
        check_page(Path(page))
    chosen, on = _sampled(_solutions(on, format), limit, seed), name_of(on)
    if not any(_is_labelled(s) for _, s in chosen):
        raise RewardlabError(f"{on} has no solution with a labelled step to measure on")
    scorer = load_scorer(model, device, dtype) if isinstance(model, str) else model
    began, before = time.perf_counter(), scorer.token_count.total
    scored = _judged(scorer, chosen)
    judged = [(name, j) for name, j in scored if _is_labelled(j.solution)]
    cost = {"tokens": scorer.token_count.total - before, "seconds": round(time.perf_counter() - began, 3)}
    if out:
        write(out, [{**row_of(j.solution), "chances": list(j.chances)} for _, j in scored])
    threshold, measured = _fitted(judged, on, seed) if fit_threshold else (threshold, judged)
    document = {
        "model": model if isinstance(model, str) else scorer.name, "convention": scorer.convention, "on": on,
        "threshold": threshold, "threshold_fitted_on": len(judged) - len(measured), "solutions": len(measured),
        "left_out": len(chosen) - len(scored), **figures([j for _, j in measured], threshold),
        "choosing": _choosing([j for _, j in scored]),
        "subsets": _of_subsets(measured, threshold), "cost": cost, **_other_steps(scorer, chosen, on),
    }  # fmt: skip
    if page:
        write_page(document, Path(page))
    return document | {"page": str(page) if page else None}


def _other_steps(scorer: StepScorer, chosen: Sequence[tuple[str, Solution]], on: str) -> dict[str, str]:
    """What is to be told of a scorer that is measured on other steps than it learnt from."""
    if scorer.splitter in ("", "paragraph") or by_steps([s for _, s in chosen]) != "paragraph":
        return {}
    return {"note": f"the scorer learnt from steps by {scorer.splitter!r}, and steps of {on} hold several lines"}


def _solutions(on: Any, format: str) -> list[tuple[str, Solution]]:
    """Each solution with the name of its file."""
    if not isinstance(on, str | Path):
        return [("given", s) for s in solutions_in(on, format)]
    return [(file.name.split(".")[0], s) for file in _files(on) for s in read_solutions(file, format)]


def _files(on: str | Path) -> list[Path]:
    """The files of a benchmark by its name, of a folder, or the file itself. Raises RewardlabError where there are none."""
    path = Path(on).expanduser()
    if not path.exists() and str(on) in BENCHMARKS:
        roots = [Path(root)] if (root := os.environ.get("REWARDLAB_DATA")) else [Path.cwd().parent / "shared" / "data"]
        path = next((root / str(on) for root in roots if (root / str(on)).is_dir()), path)
        if not path.exists():
            raise RewardlabError(
                f"the files of {on} are not there (looked in {roots[0]}): download them, and set REWARDLAB_DATA to the folder that "
                f"holds {on}/, or give the path of a file"
            )
    if not path.exists():
        raise RewardlabError(f"there is no file {path}; a benchmark is one of {', '.join(BENCHMARKS)}")
    files = sorted(p for p in path.iterdir() if is_rows(p)) if path.is_dir() else [path]
    if not files:
        raise RewardlabError(f"the folder {path} holds no .jsonl, .json, .parquet or .csv file")
    return files


def solutions_of(on: Any, format: str = "auto") -> list[Solution]:
    """The solutions of a file, a folder, a benchmark by its name, or rows."""
    return [s for _, s in _solutions(on, format)]


def _sampled(solutions: list[tuple[str, Solution]], limit: int | None, seed: int) -> list[tuple[str, Solution]]:
    if limit is None or limit >= len(solutions):
        return solutions
    # in the order of the files, whichever are chosen
    return [solutions[i] for i in sorted(random.Random(seed_of("scored", seed)).sample(range(len(solutions)), limit))]


def _judged(scorer: StepScorer, chosen: Sequence[tuple[str, Solution]]) -> list[tuple[str, Judged]]:
    """Those that the scorer can read and of which something can be measured: labelled ones, and those that are chosen among."""
    several = _in_choice([s for _, s in chosen])
    readable = [
        (name, s) for name, s in chosen
        if (_is_labelled(s) or s.prompt in several) and all(step.strip() for step in s.steps) and scorer.fits(s.prompt, s.steps)
    ]  # fmt: skip
    found: list[tuple[str, Judged]] = []
    with Bar("scoring solutions", len(readable)) as bar:
        for start in range(0, len(readable), BATCH):
            part = readable[start : start + BATCH]
            rows = scorer.score([(s.prompt, s.steps) for _, s in part])
            found += [(name, Judged(s, tuple(row))) for (name, s), row in zip(part, rows, strict=True)]
            bar.advance(n=len(part))
    return found


def _is_labelled(s: Solution) -> bool:
    return any(label is not None for label in s.labels)


def _in_choice(solutions: Sequence[Solution]) -> set[str]:
    """The questions of which several solutions are known to be right or wrong."""
    known = Counter(s.prompt for s in solutions if s.right is not None)
    return {prompt for prompt, n in known.items() if n > 1}


def _choosing(judged: Sequence[Judged]) -> list[dict[str, Any]]:
    """For each way to make one number of a solution's steps: how often the chosen one of a question is right."""
    told = [(j.solution.prompt, j.solution.right) for j in judged]
    found = {by: chosen_among(told, [float(of(np.array(j.chances))) for j in judged]) for by, of in WORTH.items()}
    return [{"by": by, **row} for by, row in found.items() if row]


def _fitted(judged: Sequence[tuple[str, Judged]], on: str, seed: int) -> tuple[float, list[tuple[str, Judged]]]:
    """The threshold that is best on half of the problems, and the solutions of the others."""
    fit, measured = ([(name, j) for name, j in judged if _fits(j, seed) is first] for first in (True, False))
    if "f1" not in first_errors([j for _, j in fit]) or not measured:
        raise RewardlabError(
            f"no threshold can be fitted on {on}: half of its problems must hold solutions with a wrong step and others without, "
            f"and the other half some to measure on; {len(judged)} could be read. Give more, or a --threshold"
        )
    return best_threshold([j for _, j in fit]), measured


def _fits(j: Judged, seed: int) -> bool:
    """Whether a solution is of the half on which the threshold is chosen; all solutions of a problem are of the same one."""
    return uniform_of("threshold", seed, j.solution.prompt) < 0.5


def _of_subsets(measured: Sequence[tuple[str, Judged]], threshold: float) -> dict[str, Any]:
    """First errors of each file, where there are several, and the mean of their F1, as ProcessBench averages its four."""
    names = list(dict.fromkeys(name for name, _ in measured))
    if len(names) < 2:
        return {}
    found: dict[str, Any] = {name: first_errors([j for of, j in measured if of == name], threshold) for name in names}
    f1 = [row["f1"] for row in found.values() if "f1" in row]
    return {**found, "mean_f1": sum(f1) / len(f1)} if f1 else found
