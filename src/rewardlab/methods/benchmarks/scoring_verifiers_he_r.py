"""Scoring verifiers (HE-R, HE-R+, MBPP-R, MBPP-R+): programs of known shares of tests passed, ranked by a verifier that has none of
these tests: tests that a model has written, or the score of a reward model.

    top1    = mean over problems of 1[the best program is among those that score highest] / (how many these are);  bottom1 alike
    spearman, kendall = means over problems of rank correlations with the true ranks, equal scores sharing the mean of their ranks
    mae     = mean over programs of |score - share passed|;   r2 = 1 - sum (score - share)^2 / sum (share - mean)^2

Ficek et al. 2025, arXiv:2502.13820, and the released code (aleksficek/Scoring-Verifiers, commit 831ed40, evaluate.py): Kendall's
tau is tau-b, a problem whose scores are all equal counts 0 in both correlations, and mae and r2 are over all programs of a set at
once, r2 being 1 where all shares are equal. They take scores of tests as they are, those of reward models scaled to 0..1 within a
problem (`mae_scaled`); `mae` and `r2` are told where all scores are shares. Each figure is told of each of the four sets, as there;
those of all problems together are ours, and come first. The code stops at a program without a score; here its problem counts 0 in
the first four.

The published rows lie on the hub. Without them, a file of HumanEval is made into such rows: mutants of the canonical solutions,
chosen by the rule of the released filter_solutions.py, the shares measured on the asserts and on generated inputs, as in HE-R+
(`tasks/graded.py`). There, GPT-4o wrote "somewhat incorrect" solutions. `tests:unit_tests?k=8` is a verifier of 8 tests.
"""

from __future__ import annotations

import hashlib
import inspect
import itertools
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from rewardlab.checks.claim import Check
from rewardlab.core import Recipe, Run, seed_of, study
from rewardlab.data import mutants
from rewardlab.data.files import Row, rows_of, write
from rewardlab.sandbox import asserts
from rewardlab.scoreboard.benchmark import Benchmark
from rewardlab.scoreboard.choices import points
from rewardlab.scoreboard.correlation import kendall, spearman
from rewardlab.scoreboard.figures import Marks
from rewardlab.scoreboard.items import Item, Verdict, users
from rewardlab.tasks import graded
from rewardlab.util.files import cached

kind = "benchmark"
FIGURES = ("top1", "bottom1", "spearman", "kendall")
SETS = {"HE_base": "HE-R", "HE_plus": "HE-R+", "MBPP_base": "MBPP-R", "MBPP_plus": "MBPP-R+"}
"""Names of the sets in the code, and of their files."""
OWN = "HumanEval"
PROBLEMS = 60
MADE = 36
"""Of these problems, those that give rows."""
TESTS = ("unit_tests", "misread_tests")


def read(row: Mapping[str, Any], file: str) -> Iterator[Item]:
    """The programs of a problem, in the order of their ranks; worth: the share of tests passed."""
    solutions = sorted(row["all_solutions"], key=lambda s: s["rank"])
    if [s["rank"] for s in solutions] != list(range(1, len(solutions) + 1)) or not solutions:
        raise ValueError("the ranks of all_solutions are 1, 2, 3 and on, each once")
    own = [s["solution"] for s in solutions]
    prompt = row["prompt"] if "prompt" in row else row["text"]
    yield Item(
        f"{file}/{row['task_id']}", users(f"Write this in Python, as accurately as you can.\n\n{prompt}"),
        tuple(str(s["canonical_solution"] if "canonical_solution" in s else s["code"]) for s in own),
        tuple(float(s["average_test_score"]) for s in solutions), file,
        meta={name: value for name, value in row.items() if isinstance(value, list) and name != "all_solutions"},
    )  # fmt: skip


def marks(item: Item, verdict: Verdict) -> dict[str, float]:
    scores, worth = points(item, verdict), np.array(item.worth)
    if not np.isfinite(scores).all():
        return dict.fromkeys(FIGURES, 0.0)
    ranks = -np.arange(float(len(worth)))
    top, bottom = scores == scores.max(), scores == scores.min()
    found = {"top1": top[0] / top.sum(), "bottom1": bottom[-1] / bottom.sum()}
    found |= {name: float(np.nan_to_num(f(scores, ranks))) for name, f in (("spearman", spearman), ("kendall", kendall))}
    scaled = (scores - scores.min()) / (np.ptp(scores) or 1.0)
    found |= {"n": len(worth), "error_scaled": np.abs(scaled - worth).sum(), "share": worth.sum(), "share2": (worth**2).sum()}
    if not verdict.orders and scores.min() >= 0 and scores.max() <= 1:
        found |= {"error": np.abs(scores - worth).sum(), "error2": ((scores - worth) ** 2).sum()}
    return {name: float(x) for name, x in found.items()}


def figures(marks: Marks) -> dict[str, float]:
    """top1, bottom1, spearman and kendall over all problems, then the errors; then each of them of each set, as published."""
    found, sets = _figures(marks), [subset for subset in marks.subsets() if subset]
    each = {subset: _figures(marks.only(subset)) for subset in sets} if len(sets) > 1 else {}
    return found | {f"{name} {subset}": x for subset, row in each.items() for name, x in row.items()}


def _figures(marks: Marks) -> dict[str, float]:
    found = {name: marks.mean(name) for name in FIGURES}
    n = marks.total("n")
    if n:
        found["mae_scaled"] = marks.total("error_scaled") / n
        if not np.isnan(marks["error"][~np.isnan(marks["n"])]).any():
            found["mae"] = marks.total("error") / n
            spread = marks.total("share2") - marks.total("share") ** 2 / n
            # shares that are all equal leave a difference of rounding
            found["r2"] = 1 - marks.total("error2") / spread if spread > 1e-9 * n else 1.0
    return found


def load(path: Path) -> Iterator[tuple[str, Row]]:
    """Rows as they are; those of HumanEval itself, made into such rows."""
    rows = list(rows_of(path))
    yield from rows_of(_graded(path)) if rows and {"test", "entry_point"} <= rows[0][1].keys() - {"all_solutions"} else rows


def _graded(path: Path) -> Path:
    """The file of rows made of a file of HumanEval: made once, in a minute."""
    made = [inspect.getsource(module).encode() for module in (graded, mutants, asserts)]
    key = hashlib.sha256(b"".join([path.read_bytes(), *made])).hexdigest()[:16]

    def make(folder: Path) -> None:
        problems = [row for _, row in rows_of(path)][:PROBLEMS]
        rows = graded.graded_rows(problems)
        for row in rows:
            programs = [s["solution"]["canonical_solution"] for s in row["all_solutions"]]
            row["passes"] = [[[*map(int, x or ())] for x in asserts.passed(programs, [row[t]] * len(programs))] for t in TESTS]
        write(folder / "rows.jsonl", rows)

    return cached(f"graded-{PROBLEMS}-{key}", make) / "rows.jsonl"


def outputs(path: Path) -> Iterator[tuple[str, str, Verdict]]:
    """The file that the released evaluate.py reads: a row a program, with its rank and its score by tests or by a reward model."""
    found: dict[tuple[str, str], list[tuple[int, float]]] = {}
    for _, row in rows_of(path):
        score = row["reward"]["reward_score"] if "reward" in row else row["average_test_score"]
        found.setdefault((row["dataset"], str(row["task_id"])), []).append((row["rank"], float(score)))
    for (data, task), scores in found.items():
        yield path.name.split(".")[0], f"{SETS.get(data, data)}/{task}", Verdict(tuple(score for _, score in sorted(scores)))


def _row(task: str, prompt: str, *solutions: tuple[float, str]) -> dict[str, Any]:
    made = [
        {"rank": k, "average_test_score": share, "solution": {"prompt": prompt, "canonical_solution": f"{prompt}    {body}\n"}}
        for k, (share, body) in enumerate(solutions, 1)
    ]  # fmt: skip
    return {"task_id": task, "prompt": prompt, "all_solutions": made}


benchmark = Benchmark(
    title="Scoring verifiers (HE-R, MBPP-R)", data=f"humaneval/{OWN}*", hub="nvidia/Scoring-Verifiers", load=load, read=read,
    marks=marks, figures=figures, outputs=outputs, chance={"spearman": 0.0, "kendall": 0.0}, made=MADE,
    lacks=f"the published programs; mutants of {PROBLEMS} problems of HumanEval stand in",
    example=(
        _row("HumanEval/0", "def double(x):\n", (1.0, "return 2 * x"), (0.4, "return x + 2"), (0.1, "return x")),
        _row("HumanEval/1", "def largest(xs):\n", (1.0, "return max(xs)"), (0.5, "return xs[-1]")),
    ),
)  # fmt: skip


KS = (1, 2, 4, 8, 16)
MISREAD = 0.4
"""Share of problems that the worse writer of tests has misread."""


@study
def scaling_tests(run: Run, *, repeats: int = 8) -> dict[str, float]:
    """K tests of a writer who expects what the right program returns, and of one who has misread some of the problems and expects
    there what one of the wrong programs returns. Neither has the inputs by which the programs are ranked.

    least: the least of what must be above 0, the gains of each of Spearman's rho and top1 of the good writer from each K to
    the next, and the lead of the good writer in both at each K.
    """
    items = benchmark.items()
    rng = np.random.default_rng(seed_of("study", run.seed))
    found: dict[str, list[dict[str, float]]] = {f"{who} {k}": [] for who in ("good", "misreads") for k in KS}
    for _ in range(repeats):
        order = [rng.permutation(len(item.meta["unit_tests"])) for item in items]
        misread = rng.random(len(items)) < MISREAD
        for k in KS:
            for who, wrong in (("good", np.zeros(len(items), bool)), ("misreads", misread)):
                rows = [marks(i, _by_tests(i, o[:k], w)) for i, o, w in zip(items, order, wrong, strict=True)]
                found[f"{who} {k}"].append(figures(Marks.of(items, rows)))
    mean = {f"{name} {key}": float(np.mean([x[name] for x in row])) for key, row in found.items() for name in ("spearman", "top1")}
    gains = [mean[f"{x} good {b}"] - mean[f"{x} good {a}"] for x in ("spearman", "top1") for a, b in itertools.pairwise(KS)]
    leads = [mean[f"{x} good {k}"] - mean[f"{x} misreads {k}"] for x in ("spearman", "top1") for k in KS]
    return {"least": min(gains + leads), "problems": float(len(items)), **mean}


def _by_tests(item: Item, chosen: np.ndarray, misread: bool) -> Verdict:
    """The share of some of the row's tests, whose results are kept in the row."""
    table = np.array(item.meta["passes"][int(misread)], float)
    return Verdict(tuple(table[:, chosen].mean(1).tolist()))


def scoring_verifiers_he_r(base: Recipe | None = None) -> Recipe:
    """No settings: `rewardlab scoreboard RATER --on scoring-verifiers-he-r`."""
    base = base or Recipe(name="scoring_verifiers_he_r")
    return base.but(study=scaling_tests())


fidelity = "core"
left_out = (
    "the published programs, which are on the hub; the writing of tests and of wrong programs by models: tests of theirs are read "
    "from a column of the row, and mutants stand in for the programs"
)

check = Check(
    says="more tests rank programs better, in Spearman's rho and top-1; who misreads some problems is behind at each number",
    versus=None, task="arithmetic", measure="least", direction="higher", margin=0.005,
    finding="1 to 16 tests: Spearman's rho 0.76 to 0.94, top-1 63% to 93%; who misreads 40% of the problems ends at 0.52 and 61%",
)  # fmt: skip
